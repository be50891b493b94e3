//! Copies between devices and contexts. All contexts are one device, and there are no peers.

use crate::boundary::{Call, transfers};
use crate::contexts::check;
use crate::objects::boxes::{CopyBox, Direction};
use crate::pointer::In;
use crate::shared_api::copies::driver_box;
use crate::status::Outcome;
use crate::types::DriverMemcpy3D;
use crate::work::Transfer;

pub(crate) use crate::shared_api::peers::*;

fn peer_box(call: &Call, parms: In<DriverMemcpy3D>) -> Outcome<CopyBox> {
    let parms = parms.get()?;
    check(parms.from.context)?;
    check(parms.to.context)?;
    driver_box(call, &parms)
}

transfers! { driver
    fn cuMemcpyPeer / cuMemcpyPeer_ptds, cuMemcpyPeerAsync / cuMemcpyPeerAsync_ptsz
    (call, to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize) => Transfer::bytes(to, from, bytes, Direction::DeviceToDevice);
    /// The handles of contexts are in fields that `CUDA_MEMCPY3D` does not use.
    fn cuMemcpy3DPeer / cuMemcpy3DPeer_ptds, cuMemcpy3DPeerAsync / cuMemcpy3DPeerAsync_ptsz
    (call, parms: In<DriverMemcpy3D>) => Transfer::Copy(peer_box(call, parms)?, Direction::Default);
}
