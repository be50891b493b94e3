//! Streams.

use crate::boundary::exported;
use crate::objects::work::Work;
use crate::pointer::{In, Out};
use crate::status::Status;

exported! { runtime
    fn cudaStreamCreateWithFlags | cuStreamCreate(call, stream: Out<usize>, flags: u32)
        => stream.set_by(|| call.runtime.create_stream(flags, 0));
    /// Creates a stream with a priority, which is stored but has no effect.
    fn cudaStreamCreateWithPriority | cuStreamCreateWithPriority(call, stream: Out<usize>, flags: u32, priority: i32)
        => stream.set_by(|| call.runtime.create_stream(flags, priority));
    fn cudaStreamDestroy | cuStreamDestroy = cuStreamDestroy_v2(call, stream: usize) => call.runtime.destroy_stream(stream);
    fn cudaStreamSynchronize / cudaStreamSynchronize_ptsz | cuStreamSynchronize / cuStreamSynchronize_ptsz(call, stream: usize)
        => call.runtime.wait(&*call.stream(stream)?);
    fn cudaStreamQuery / cudaStreamQuery_ptsz | cuStreamQuery / cuStreamQuery_ptsz(call, stream: usize)
        => call.runtime.query_stream(&*call.stream(stream)?);
    fn cudaStreamGetFlags / cudaStreamGetFlags_ptsz | cuStreamGetFlags / cuStreamGetFlags_ptsz(call, stream: usize, flags: Out<u32>)
        => flags.set(call.stream(stream)?.flags);
    fn cudaStreamGetPriority / cudaStreamGetPriority_ptsz | cuStreamGetPriority / cuStreamGetPriority_ptsz(call, stream: usize, priority: Out<i32>)
        => priority.set(call.stream(stream)?.priority);
    fn cudaStreamGetId / cudaStreamGetId_ptsz | cuStreamGetId / cuStreamGetId_ptsz(call, stream: usize, id: Out<u64>)
        => id.set(u64::from(call.stream(stream)?.id().0) + 1);
    fn cudaStreamGetDevice / cudaStreamGetDevice_ptsz | cuStreamGetDevice / cuStreamGetDevice_ptsz(call, stream: usize, device: Out<i32>)
        => call.stream(stream)?, device.set(0);
    /// Accepts hints on caches and priorities, which have no effect.
    fn cudaStreamSetAttribute / cudaStreamSetAttribute_ptsz | cuStreamSetAttribute / cuStreamSetAttribute_ptsz(call, stream: usize, _attribute: u32, value: In<u64>)
        => call.stream(stream)?, value.get().map(drop);
    /// Copies the attributes of another stream, which have no effect.
    fn cudaStreamCopyAttributes / cudaStreamCopyAttributes_ptsz | cuStreamCopyAttributes / cuStreamCopyAttributes_ptsz(call, to: usize, from: usize)
        => call.stream(to)?, call.stream(from).map(drop);

    fn cudaStreamWaitEvent / cudaStreamWaitEvent_ptsz | cuStreamWaitEvent / cuStreamWaitEvent_ptsz(call, stream: usize, event: usize, flags: u32) {
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Wait(event))
    }
}
