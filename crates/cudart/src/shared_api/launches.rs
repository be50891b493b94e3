//! Launches of kernels and calls of host functions.

use crate::boundary::{Call, exported};
use crate::objects::work::{HostFunction, Work};
use crate::pointer::In;
use crate::status::{Outcome, Status};
use crate::types::LaunchAttribute;

/// Decodes launch attributes: cooperative flag and cluster size.
pub(crate) fn asked(attributes: In<LaunchAttribute>, count: u32) -> Outcome<(bool, Option<[u32; 3]>)> {
    const COOPERATIVE: u32 = 2;
    const CLUSTER: u32 = 4;
    let (mut cooperative, mut cluster) = (false, None);
    for attribute in attributes.get_all(count as usize)? {
        match attribute.id {
            COOPERATIVE => cooperative = attribute.value[0] != 0,
            CLUSTER => cluster = Some([attribute.value[0], attribute.value[1], attribute.value[2]]),
            // Hints on priorities, caches and overlap have no visible effect.
            _ => {}
        }
    }
    Ok((cooperative, cluster))
}

/// Calls a host function in stream order. `given` is the stream to pass before the data, together with a
/// status.
pub(crate) fn host_function(call: &Call, stream: usize, function: usize, data: usize, given: Option<usize>) -> Outcome {
    if function == 0 {
        return Err(Status::INVALID_VALUE);
    }
    call.runtime.submit(&*call.stream(stream)?, Work::Host(HostFunction { function, data, stream: given }))
}

exported! { runtime
    fn cudaLaunchHostFunc / cudaLaunchHostFunc_ptsz | cuLaunchHostFunc / cuLaunchHostFunc_ptsz(call, stream: usize, function: usize, data: usize)
        => host_function(call, stream, function, data, None);

    /// Calls a host function in stream order. The synchronisation mode has no effect.
    fn cudaLaunchHostFunc_v2 / cudaLaunchHostFunc_v2_ptsz | cuLaunchHostFunc_v2 / cuLaunchHostFunc_v2_ptsz(call, stream: usize, function: usize, data: usize, mode: u32) {
        if mode > 1 {
            return Err(Status::INVALID_VALUE);
        }
        host_function(call, stream, function, data, None)
    }

    fn cudaStreamAddCallback / cudaStreamAddCallback_ptsz | cuStreamAddCallback / cuStreamAddCallback_ptsz(call, stream: usize, function: usize, data: usize, flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        host_function(call, stream, function, data, Some(stream))
    }
}
