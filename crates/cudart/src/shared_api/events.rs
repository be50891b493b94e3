//! Events.

use crate::boundary::exported;
use crate::objects::work::Work;
use crate::pointer::Out;
use crate::status::Status;

exported! { runtime
    fn cudaEventCreateWithFlags | cuEventCreate(call, event: Out<usize>, flags: u32)
        => event.set_by(|| call.runtime.create_event(flags));
    fn cudaEventDestroy | cuEventDestroy = cuEventDestroy_v2(call, event: usize) => call.runtime.destroy_event(event);

    fn cudaEventRecord / cudaEventRecord_ptsz | cuEventRecord / cuEventRecord_ptsz(call, event: usize, stream: usize) {
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Record(event))
    }

    fn cudaEventQuery | cuEventQuery(call, event: usize) => call.runtime.query_event(event);
    fn cudaEventSynchronize | cuEventSynchronize(call, event: usize) => call.runtime.wait_for_event(event);
    fn cudaEventElapsedTime = cudaEventElapsedTime_v2 | cuEventElapsedTime = cuEventElapsedTime_v2(call, milliseconds: Out<f32>, start: usize, end: usize)
        => milliseconds.set_by(|| call.runtime.elapsed(start, end));

    /// Records an event in a stream, with flags.
    fn cudaEventRecordWithFlags / cudaEventRecordWithFlags_ptsz | cuEventRecordWithFlags / cuEventRecordWithFlags_ptsz(call, event: usize, stream: usize, flags: u32) {
        if flags > 1 {
            return Err(Status::INVALID_VALUE);
        }
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Record(event))
    }
}
