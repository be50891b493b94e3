//! Events.

use crate::boundary::exported;
use crate::pointer::Out;
use crate::work::Work;

exported! { driver
    /// An event.
    fn cuEventCreate(call, event: Out<usize>, flags: u32) {
        event.wanted()?;
        event.set(call.runtime.create_event(flags)?)
    }

    /// Gives an event back.
    fn cuEventDestroy(call, event: usize) {
        call.runtime.destroy_event(event)
    }

    /// The same.
    fn cuEventDestroy_v2(call, event: usize) {
        call.runtime.destroy_event(event)
    }

    /// Puts an event behind the work of a stream.
    fn cuEventRecord / cuEventRecord_ptsz(call, event: usize, stream: usize) {
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Record(event))
    }

    /// The same, with flags.
    fn cuEventRecordWithFlags / cuEventRecordWithFlags_ptsz(call, event: usize, stream: usize, _flags: u32) {
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Record(event))
    }

    /// Whether an event has happened.
    fn cuEventQuery(call, event: usize) {
        call.runtime.query_event(event)
    }

    /// Waits for an event.
    fn cuEventSynchronize(call, event: usize) {
        call.runtime.wait_for_event(event)
    }

    /// Milliseconds from one event to another.
    fn cuEventElapsedTime(call, milliseconds: Out<f32>, start: usize, end: usize) {
        milliseconds.wanted()?;
        milliseconds.set(call.runtime.elapsed(start, end)?)
    }

    /// The same.
    fn cuEventElapsedTime_v2(call, milliseconds: Out<f32>, start: usize, end: usize) {
        milliseconds.wanted()?;
        milliseconds.set(call.runtime.elapsed(start, end)?)
    }
}
