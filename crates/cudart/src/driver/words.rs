//! Stream memory operations.

use crate::boundary::{Call, exported};
use crate::objects::words::WordOperation;
use crate::objects::work::Work;
use crate::shared_api::words::{list, waiting};
use crate::status::{Outcome, Status};

fn write(call: &Call, stream: usize, address: u64, value: u64, wide: bool, flags: u32) -> Outcome {
    if flags > 1 {
        return Err(Status::INVALID_VALUE);
    }
    submit(call, stream, vec![WordOperation::Write { address, value, wide }])
}

fn wait(call: &Call, stream: usize, address: u64, value: u64, wide: bool, flags: u32) -> Outcome {
    submit(call, stream, vec![waiting(address, value, wide, flags)?])
}

fn submit(call: &Call, stream: usize, operations: Vec<WordOperation>) -> Outcome {
    let stream = call.stream(stream)?;
    operations.iter().try_for_each(|operation| operation.check(call.runtime))?;
    call.runtime.submit(&stream, Work::Words(operations))
}

exported! { driver
    /// Writes a 32-bit word.
    fn cuStreamWriteValue32 / cuStreamWriteValue32_ptsz = cuStreamWriteValue32_v2 / cuStreamWriteValue32_v2_ptsz(call, stream: usize, address: u64, value: u32, flags: u32) {
        write(call, stream, address, u64::from(value), false, flags)
    }

    /// Writes a 64-bit word.
    fn cuStreamWriteValue64 / cuStreamWriteValue64_ptsz = cuStreamWriteValue64_v2 / cuStreamWriteValue64_v2_ptsz(call, stream: usize, address: u64, value: u64, flags: u32) {
        write(call, stream, address, value, true, flags)
    }

    /// Waits for a 32-bit word.
    fn cuStreamWaitValue32 / cuStreamWaitValue32_ptsz = cuStreamWaitValue32_v2 / cuStreamWaitValue32_v2_ptsz(call, stream: usize, address: u64, value: u32, flags: u32) {
        wait(call, stream, address, u64::from(value), false, flags)
    }

    /// Waits for a 64-bit word.
    fn cuStreamWaitValue64 / cuStreamWaitValue64_ptsz = cuStreamWaitValue64_v2 / cuStreamWaitValue64_v2_ptsz(call, stream: usize, address: u64, value: u64, flags: u32) {
        wait(call, stream, address, value, true, flags)
    }

    /// Performs several operations in order.
    fn cuStreamBatchMemOp / cuStreamBatchMemOp_ptsz = cuStreamBatchMemOp_v2 / cuStreamBatchMemOp_v2_ptsz(call, stream: usize, count: u32, operations: usize, flags: u32) {
        if flags == 0 { submit(call, stream, list(count, operations)?) } else { Err(Status::INVALID_VALUE) }
    }
}
