//! Streams.

use crate::boundary::exported;
use crate::pointer::Out;
pub(crate) use crate::runtime::streams::{
    cuStreamCreate, cuStreamCreateWithPriority, cuStreamDestroy, cuStreamDestroy_v2, cuStreamGetDevice, cuStreamGetDevice_ptsz,
    cuStreamGetFlags, cuStreamGetFlags_ptsz, cuStreamGetId, cuStreamGetId_ptsz, cuStreamGetPriority, cuStreamGetPriority_ptsz,
    cuStreamQuery, cuStreamQuery_ptsz, cuStreamSynchronize, cuStreamSynchronize_ptsz,
};
use crate::work::Work;

exported! { driver
    /// Makes a stream wait for an event.
    fn cuStreamWaitEvent / cuStreamWaitEvent_ptsz(call, stream: usize, event: usize, _flags: u32) {
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Wait(event))
    }

    /// Returns the context of a stream.
    fn cuStreamGetCtx / cuStreamGetCtx_ptsz(call, stream: usize, context: Out<usize>) {
        call.stream(stream)?;
        context.set(crate::driver::contexts::PRIMARY)
    }

    /// Returns the context of a stream, which is never a green context.
    fn cuStreamGetCtx_v2 / cuStreamGetCtx_v2_ptsz(call, stream: usize, context: Out<usize>, part: Out<usize>) {
        call.stream(stream)?;
        part.set_if_wanted(0);
        context.set(crate::driver::contexts::PRIMARY)
    }
}
