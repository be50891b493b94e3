//! Events.

use crate::boundary::exported;
use crate::pointer::Out;
pub(crate) use crate::shared_api::events::*;

exported! { runtime
    /// Creates an event.
    fn cudaEventCreate(call, event: Out<usize>) {
        event.wanted()?;
        event.set(call.runtime.create_event(0)?)
    }
}
