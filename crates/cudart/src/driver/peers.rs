//! Copies between devices and contexts. All contexts are one device, and there are no peers.

use crate::boundary::{Call, exported};
use crate::contexts::check;
use crate::objects::boxes::{CopyBox, Direction};
use crate::pointer::In;
use crate::shared_api::copies::driver_box;
use crate::status::Outcome;
use crate::types::DriverMemcpy3D;

pub(crate) use crate::shared_api::peers::*;

fn peer_box(call: &Call, parms: In<DriverMemcpy3D>) -> Outcome<CopyBox> {
    let parms = parms.get()?;
    check(parms.from.context)?;
    check(parms.to.context)?;
    driver_box(call, &parms)
}

exported! { driver
    /// Copies bytes between contexts.
    fn cuMemcpyPeer / cuMemcpyPeer_ptds(call, to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize) {
        call.runtime.copy(&*call.stream(0)?, CopyBox::linear(to, from, bytes), Direction::DeviceToDevice)
    }

    /// Copies bytes between contexts in stream order.
    fn cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz(call, to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize, stream: usize) {
        call.runtime.copy_async(&*call.stream(stream)?, CopyBox::linear(to, from, bytes), Direction::DeviceToDevice)
    }

    /// Copies a box between contexts. Their handles are in fields that `CUDA_MEMCPY3D` does not use.
    fn cuMemcpy3DPeer / cuMemcpy3DPeer_ptds(call, parms: In<DriverMemcpy3D>) {
        let copy = peer_box(call, parms)?;
        call.runtime.copy(&*call.stream(0)?, copy, Direction::Default)
    }

    /// Copies a box between contexts in stream order.
    fn cuMemcpy3DPeerAsync / cuMemcpy3DPeerAsync_ptsz(call, parms: In<DriverMemcpy3D>, stream: usize) {
        let copy = peer_box(call, parms)?;
        call.runtime.copy_async(&*call.stream(stream)?, copy, Direction::Default)
    }
}
