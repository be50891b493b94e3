//! Streams.

use crate::boundary::exported;
use crate::objects::streams::PRIORITIES;
use crate::pointer::Out;
pub(crate) use crate::shared_api::streams::*;

exported! { runtime
    fn cudaStreamCreate(call, stream: Out<usize>) => stream.set_by(|| call.runtime.create_stream(0, 0));

    fn cudaDeviceGetStreamPriorityRange(call, least: Out<i32>, greatest: Out<i32>) {
        call.runtime.device()?;
        least.set_if_wanted(PRIORITIES[0]);
        greatest.set_if_wanted(PRIORITIES[1]);
        Ok(())
    }
}
