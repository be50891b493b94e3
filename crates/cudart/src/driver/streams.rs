//! Streams.

use crate::boundary::exported;
use crate::contexts::PRIMARY;
use crate::pointer::Out;
pub(crate) use crate::shared_api::streams::*;

exported! { driver
    fn cuStreamGetCtx / cuStreamGetCtx_ptsz(call, stream: usize, context: Out<usize>) => call.stream(stream)?, context.set(PRIMARY);

    /// Returns the context of a stream, which is never a green context.
    fn cuStreamGetCtx_v2 / cuStreamGetCtx_v2_ptsz(call, stream: usize, context: Out<usize>, part: Out<usize>) {
        call.stream(stream)?;
        part.set_if_wanted(0);
        context.set(PRIMARY)
    }
}
