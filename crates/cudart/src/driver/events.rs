//! Events.

use crate::boundary::exported;
pub(crate) use crate::runtime::events::{
    cuEventCreate, cuEventDestroy, cuEventDestroy_v2, cuEventElapsedTime, cuEventElapsedTime_v2, cuEventQuery, cuEventRecord,
    cuEventRecord_ptsz, cuEventSynchronize,
};
use crate::work::Work;

exported! { driver
    /// Records an event, with flags.
    fn cuEventRecordWithFlags / cuEventRecordWithFlags_ptsz(call, event: usize, stream: usize, _flags: u32) {
        let stream = call.stream(stream)?;
        let event = call.runtime.events.get(event)?;
        call.runtime.submit(&stream, Work::Record(event))
    }
}
