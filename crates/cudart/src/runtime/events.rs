//! Events.

use crate::boundary::exported;
pub(crate) use crate::common::events::*;
use crate::pointer::Out;

exported! { runtime
    /// Creates an event.
    fn cudaEventCreate(call, event: Out<usize>) {
        event.wanted()?;
        event.set(call.runtime.create_event(0)?)
    }
}
