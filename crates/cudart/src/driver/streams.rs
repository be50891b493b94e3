//! Streams.

use crate::boundary::exported;
use crate::pointer::Out;
use crate::work::Work;

exported! { driver
    /// A stream.
    fn cuStreamCreate(call, stream: Out<usize>, flags: u32) {
        stream.wanted()?;
        stream.set(call.runtime.create_stream(flags, 0)?)
    }

    /// A stream with a priority, which makes no difference here but is kept.
    fn cuStreamCreateWithPriority(call, stream: Out<usize>, flags: u32, priority: i32) {
        stream.wanted()?;
        stream.set(call.runtime.create_stream(flags, priority)?)
    }

    /// Gives a stream back.
    fn cuStreamDestroy(call, stream: usize) {
        call.runtime.destroy_stream(stream)
    }

    /// The same.
    fn cuStreamDestroy_v2(call, stream: usize) {
        call.runtime.destroy_stream(stream)
    }

    /// Waits for a stream.
    fn cuStreamSynchronize / cuStreamSynchronize_ptsz(call, stream: usize) {
        call.runtime.wait(&*call.stream(stream)?)
    }

    /// Whether a stream has nothing left to do.
    fn cuStreamQuery / cuStreamQuery_ptsz(call, stream: usize) {
        call.runtime.query_stream(&*call.stream(stream)?)
    }

    /// Lets a stream wait for an event.
    fn cuStreamWaitEvent / cuStreamWaitEvent_ptsz(call, stream: usize, event: usize, _flags: u32) {
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Wait(event))
    }

    /// The flags of a stream.
    fn cuStreamGetFlags / cuStreamGetFlags_ptsz(call, stream: usize, flags: Out<u32>) {
        flags.set(call.stream(stream)?.flags)
    }

    /// The priority of a stream.
    fn cuStreamGetPriority / cuStreamGetPriority_ptsz(call, stream: usize, priority: Out<i32>) {
        priority.set(call.stream(stream)?.priority)
    }

    /// A number that no other stream has.
    fn cuStreamGetId / cuStreamGetId_ptsz(call, stream: usize, id: Out<u64>) {
        id.set(u64::from(call.stream(stream)?.id().0) + 1)
    }

    /// The context of a stream.
    fn cuStreamGetCtx / cuStreamGetCtx_ptsz(call, stream: usize, context: Out<usize>) {
        call.stream(stream)?;
        context.set(crate::driver::contexts::PRIMARY)
    }

    /// The device of a stream.
    fn cuStreamGetDevice / cuStreamGetDevice_ptsz(call, stream: usize, device: Out<i32>) {
        call.stream(stream)?;
        device.set(0)
    }

    /// The context of a stream, which is not one of a part of the device.
    fn cuStreamGetCtx_v2 / cuStreamGetCtx_v2_ptsz(call, stream: usize, context: Out<usize>, part: Out<usize>) {
        call.stream(stream)?;
        part.set_if_wanted(0);
        context.set(crate::driver::contexts::PRIMARY)
    }
}
