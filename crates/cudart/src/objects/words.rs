//! Stream memory operations on words.

use crate::status::{Outcome, Status};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::Duration;

/// Condition of a wait. The values are the headers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitCondition {
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
        until: WaitCondition,
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

impl WaitCondition {
    /// Returns the condition in the lower bits of flags.
    pub(crate) fn new(flags: u32) -> Outcome<WaitCondition> {
        Ok(match flags {
            0 => WaitCondition::Reached,
            1 => WaitCondition::Equal,
            2 => WaitCondition::And,
            3 => WaitCondition::Nor,
            _ => return Err(Status::INVALID_VALUE),
        })
    }

    pub(crate) fn holds(self, word: u64, value: u64, wide: bool) -> bool {
        let (word, value) = if wide { (word, value) } else { (u64::from(word as u32), u64::from(value as u32)) };
        match self {
            WaitCondition::Reached if wide => word.wrapping_sub(value) as i64 >= 0,
            WaitCondition::Reached => (word as u32).wrapping_sub(value as u32) as i32 >= 0,
            WaitCondition::Equal => word == value,
            WaitCondition::And => word & value != 0,
            WaitCondition::Nor if wide => !(word | value) != 0,
            WaitCondition::Nor => !(word | value) as u32 != 0,
        }
    }
}

/// Returns the word at an address as an atomic, for operations visible to other threads.
pub(crate) fn narrow(address: u64) -> &'static AtomicU32 {
    // SAFETY: the word lies inside memory that the program holds and is aligned. The program keeps the memory
    // while work on it is pending, as NVIDIA's driver requires.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

pub(crate) fn wide_at(address: u64) -> &'static AtomicU64 {
    // SAFETY: as in `narrow`.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

pub(crate) fn load(address: u64, wide: bool) -> u64 {
    if wide { wide_at(address).load(Ordering::SeqCst) } else { u64::from(narrow(address).load(Ordering::SeqCst)) }
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

impl WordOperation {
    pub(crate) fn perform(self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_the_headers() {
        assert!(WaitCondition::Reached.holds(5, 5, false) && WaitCondition::Reached.holds(3, u64::from(u32::MAX), false));
        assert!(!WaitCondition::Reached.holds(4, 5, true) && WaitCondition::Reached.holds(0, u64::MAX, true));
        assert!(WaitCondition::Equal.holds(1 << 32 | 7, 7, false) && !WaitCondition::Equal.holds(1 << 32 | 7, 7, true));
        assert!(WaitCondition::And.holds(6, 2, false) && !WaitCondition::And.holds(4, 2, false));
        assert!(WaitCondition::Nor.holds(1, 2, false) && !WaitCondition::Nor.holds(u64::from(u32::MAX), 0, false));
        assert!(WaitCondition::new(4).is_err());
    }
}
