//! Copies between devices and contexts, of which all are one device, and access to peers, of which there is none.

use crate::boundary::exported;
use crate::device::check_device;
use crate::pointer::Out;
use crate::status::Status;
use crate::work::{CopyBox, Direction};

exported! { driver
    /// Copies bytes between contexts.
    fn cuMemcpyPeer / cuMemcpyPeer_ptds(call, to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize) {
        call.runtime.copy(&*call.stream(0)?, CopyBox::linear(to, from, bytes), Direction::DeviceToDevice)
    }

    /// The same in stream order.
    fn cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz(call, to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize, stream: usize) {
        call.runtime.copy_async(&*call.stream(stream)?, CopyBox::linear(to, from, bytes), Direction::DeviceToDevice)
    }

    /// A fact about two devices, which have to be two.
    fn cuDeviceGetP2PAttribute(_call, value: Out<i32>, attribute: u32, from: i32, to: i32) {
        value.wanted()?;
        check_device(from)?;
        check_device(to)?;
        if (1..=5).contains(&attribute) { Err(Status::INVALID_DEVICE) } else { Err(Status::INVALID_VALUE) }
    }
}
