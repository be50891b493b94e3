//! Copies between devices, of which there is one, and attributes of pairs of devices.

use crate::boundary::{Call, transfers};
use crate::location::check_device;
use crate::objects::boxes::{CopyBox, Direction};
use crate::pointer::In;
use crate::shared_api::copies::runtime_box;
use crate::status::Outcome;
use crate::types::{Extent, Memcpy3DParms, PitchedPtr};
use crate::work::Transfer;

pub(crate) use crate::shared_api::peers::*;

/// `cudaMemcpy3DPeerParms`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerParms {
    pub(crate) src_array: usize,
    pub(crate) src_pos: Extent,
    pub(crate) src_ptr: PitchedPtr,
    pub(crate) src_device: i32,
    pub(crate) dst_array: usize,
    pub(crate) dst_pos: Extent,
    pub(crate) dst_ptr: PitchedPtr,
    pub(crate) dst_device: i32,
    pub(crate) extent: Extent,
}

fn peer_box(call: &Call, parms: In<PeerParms>) -> Outcome<CopyBox> {
    const WITHIN: u32 = 3;
    let given = parms.get()?;
    check_device(given.src_device)?;
    check_device(given.dst_device)?;
    let parms = Memcpy3DParms {
        src_array: given.src_array,
        src_pos: given.src_pos,
        src_ptr: given.src_ptr,
        dst_array: given.dst_array,
        dst_pos: given.dst_pos,
        dst_ptr: given.dst_ptr,
        extent: given.extent,
        kind: WITHIN,
    };
    runtime_box(call, &parms).map(|(copy, _)| copy)
}

transfers! { runtime
    fn cudaMemcpy3DPeer / cudaMemcpy3DPeer_ptds, cudaMemcpy3DPeerAsync / cudaMemcpy3DPeerAsync_ptsz
    (call, parms: In<PeerParms>) => Transfer::Copy(peer_box(call, parms)?, Direction::DeviceToDevice);
}
