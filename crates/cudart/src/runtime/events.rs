//! Events.

use crate::boundary::exported;
use crate::pointer::Out;
pub(crate) use crate::shared_api::events::*;

exported! { runtime
    fn cudaEventCreate(call, event: Out<usize>) => event.set_by(|| call.runtime.create_event(0));
}
