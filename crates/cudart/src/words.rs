//! Stream memory operations: write a word, or wait until a word satisfies a condition (`cuStreamWriteValue32`
//! and related functions).
//!
//! A waiting stream occupies one of the device's cores. **At least one core stays free**, otherwise the wait
//! is refused. On a device with its own address space the host could never change the word, so all these
//! operations are refused.

use crate::objects::streams::Stream;
use crate::objects::words::{WordOperation, load, poll};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::tell::tell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

impl WordOperation {
    /// Checks that the word is in accessible memory.
    pub(crate) fn check(&self, runtime: &Runtime) -> Outcome {
        let (address, wide) = match *self {
            WordOperation::Write { address, wide, .. }
            | WordOperation::Wait { address, wide, .. }
            | WordOperation::Reduce { address, wide, .. } => (address, wide),
            WordOperation::Barrier => return Ok(()),
        };
        let bytes = if wide { 8 } else { 4 };
        if !runtime.device()?.unified {
            return Err(Status::NOT_SUPPORTED);
        }
        if !address.is_multiple_of(bytes) {
            return Err(Status::INVALID_VALUE);
        }
        runtime.memory.device_range(address, bytes)
    }
}

/// Waiting streams, with their numbers of pending waits. The waits of a stream run in turn, so each stream
/// occupies one core.
static WAITING: Mutex<BTreeMap<u32, u32>> = Mutex::new(BTreeMap::new());

fn waiting() -> MutexGuard<'static, BTreeMap<u32, u32>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runtime {
    /// Makes a stream wait for a condition unknown to the device. The waiting core does nothing else.
    pub(crate) fn wait_in_stream(&self, stream: &Stream, over: impl Fn() -> bool + Send + 'static) -> Outcome {
        let (opened, id) = (self.device()?, stream.id());
        if over() && self.judge(opened.backend().query_stream(id))? {
            return Ok(());
        }
        let cores = opened.machine().multiprocessors as usize;
        {
            let mut waiting = waiting();
            if !waiting.contains_key(&id.0) && waiting.len() + 1 >= cores {
                tell(&format!("no more streams can wait for memory or for another process: each keeps one of {cores} cores"));
                return Err(Status::NOT_SUPPORTED);
            }
            *waiting.entry(id.0).or_default() += 1;
        }
        let wait = move || {
            poll(over);
            let mut waiting = waiting();
            if let Some(count) = waiting.get_mut(&id.0) {
                *count -= 1;
                if *count == 0 {
                    waiting.remove(&id.0);
                }
            }
        };
        self.judge(opened.backend().call(id, Box::new(wait)))
    }
}

/// Performs operations in stream order.
pub(crate) fn perform(runtime: &Runtime, stream: &Stream, operations: &[WordOperation]) -> Outcome {
    for operation in operations.iter().copied() {
        match operation {
            WordOperation::Wait { address, value, wide, until } => {
                runtime.wait_in_stream(stream, move || until.holds(load(address, wide), value, wide))?;
            }
            WordOperation::Write { .. } | WordOperation::Reduce { .. } | WordOperation::Barrier => {
                runtime.judge(runtime.device()?.backend().call(stream.id(), Box::new(move || operation.perform())))?;
            }
        }
    }
    Ok(())
}
