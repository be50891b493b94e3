//! Capture of streams into graphs.

use crate::boundary::exported;
use crate::pointer::{In, Out};
pub(crate) use crate::shared_api::capture::*;

exported! { runtime
    /// Returns the state of a capture. In the CUDA 13 runtime the list of edges comes before its length.
    fn cudaStreamGetCaptureInfo / cudaStreamGetCaptureInfo_ptsz(call, stream: usize, status: Out<u32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, edges: Out<usize>, count: Out<usize>) {
        if crate::version::runtime_version() >= 13 {
            return info(call, stream, status, id, graph, nodes, edges, count);
        }
        let (state, number, _) = state_of(call, stream)?;
        status.set(state)?;
        if state != 0 {
            id.set_if_wanted(number);
        }
        Ok(())
    }

    /// Changes the dependencies of later work. In the CUDA 13 runtime a list of edges comes before the count.
    fn cudaStreamUpdateCaptureDependencies / cudaStreamUpdateCaptureDependencies_ptsz(call, stream: usize, nodes: In<usize>, third: usize, fourth: usize, fifth: u32) {
        let (count, flags) = if crate::version::runtime_version() >= 13 { (fourth, fifth) } else { (third, fourth as u32) };
        update(call, stream, &nodes.get_all(count)?, flags)
    }
}
