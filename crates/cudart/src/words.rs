//! Stream memory operations: write a word, or wait until a word satisfies a condition (`cuStreamWriteValue32`
//! and related functions).
//!
//! A waiting stream occupies one of the device's cores. **At least one core stays free**, otherwise the wait
//! is refused. On a device with its own address space the host could never change the word, so all these
//! operations are refused.

use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::streams::Stream;
use crate::tell::tell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Condition of a wait. The values are the headers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Cyclic `word >= value`.
    Reached,
    /// `word == value`.
    Equal,
    /// `word & value != 0`.
    And,
    /// `!(word | value) != 0`.
    Nor,
}

/// Reduction operator. The values are the headers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Or,
    And,
    Add,
}

/// Operation on a word of 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordOperation {
    Write {
        address: u64,
        value: u64,
        wide: bool,
    },
    Wait {
        address: u64,
        value: u64,
        wide: bool,
        until: Until,
    },
    Reduce {
        address: u64,
        value: u64,
        wide: bool,
        reduction: Reduction,
    },
    /// Memory barrier. Operations are always ordered, so it does nothing.
    Barrier,
}

impl Until {
    /// Returns the condition in the lower bits of flags.
    pub(crate) fn new(flags: u32) -> Outcome<Until> {
        Ok(match flags {
            0 => Until::Reached,
            1 => Until::Equal,
            2 => Until::And,
            3 => Until::Nor,
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    fn holds(self, word: u64, value: u64, wide: bool) -> bool {
        let (word, value) = if wide { (word, value) } else { (u64::from(word as u32), u64::from(value as u32)) };
        match self {
            Until::Reached if wide => word.wrapping_sub(value) as i64 >= 0,
            Until::Reached => (word as u32).wrapping_sub(value as u32) as i32 >= 0,
            Until::Equal => word == value,
            Until::And => word & value != 0,
            Until::Nor if wide => !(word | value) != 0,
            Until::Nor => !(word | value) as u32 != 0,
        }
    }
}

/// Returns the word at an address as an atomic, for operations visible to other threads.
fn narrow(address: u64) -> &'static AtomicU32 {
    // SAFETY: the word lies inside memory that the program holds and is aligned. The program keeps the memory
    // while work on it is pending, as NVIDIA's driver requires.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

fn wide_at(address: u64) -> &'static AtomicU64 {
    // SAFETY: as in `narrow`.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

fn load(address: u64, wide: bool) -> u64 {
    if wide { wide_at(address).load(Ordering::SeqCst) } else { u64::from(narrow(address).load(Ordering::SeqCst)) }
}

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

    fn perform(self) {
        match self {
            WordOperation::Write { address, value, wide: true } => wide_at(address).store(value, Ordering::SeqCst),
            WordOperation::Write { address, value, wide: false } => narrow(address).store(value as u32, Ordering::SeqCst),
            WordOperation::Wait { address, value, wide, until } => poll(|| until.holds(load(address, wide), value, wide)),
            WordOperation::Reduce { address, value, wide: true, reduction } => {
                let word = wide_at(address);
                match reduction {
                    Reduction::Or => word.fetch_or(value, Ordering::SeqCst),
                    Reduction::And => word.fetch_and(value, Ordering::SeqCst),
                    Reduction::Add => word.fetch_add(value, Ordering::SeqCst),
                };
            }
            WordOperation::Reduce { address, value, wide: false, reduction } => {
                let (word, value) = (narrow(address), value as u32);
                match reduction {
                    Reduction::Or => word.fetch_or(value, Ordering::SeqCst),
                    Reduction::And => word.fetch_and(value, Ordering::SeqCst),
                    Reduction::Add => word.fetch_add(value, Ordering::SeqCst),
                };
            }
            WordOperation::Barrier => fence(Ordering::SeqCst),
        }
    }
}

/// Polls until another stream, another process or the host makes a condition true.
pub(crate) fn poll(over: impl Fn() -> bool) {
    let mut rounds = 0u32;
    while !over() {
        rounds = rounds.saturating_add(1);
        if rounds > 100 {
            std::thread::sleep(Duration::from_micros(50));
        } else {
            std::thread::yield_now();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_the_headers() {
        assert!(Until::Reached.holds(5, 5, false) && Until::Reached.holds(3, u64::from(u32::MAX), false));
        assert!(!Until::Reached.holds(4, 5, true) && Until::Reached.holds(0, u64::MAX, true));
        assert!(Until::Equal.holds(1 << 32 | 7, 7, false) && !Until::Equal.holds(1 << 32 | 7, 7, true));
        assert!(Until::And.holds(6, 2, false) && !Until::And.holds(4, 2, false));
        assert!(Until::Nor.holds(1, 2, false) && !Until::Nor.holds(u64::from(u32::MAX), 0, false));
        assert!(Until::new(4).is_err());
    }
}
