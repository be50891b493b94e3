//! The mbarrier object, and the effects of instructions on it (manual: "mbarrier").
//!
//! An mbarrier is 64 bits of shared memory that only its own instructions may access, so the executor chooses
//! their layout. It counts phases. A phase is complete when no arrival is pending and no byte is outstanding.
//! Then the next one begins at once, with the expected number of pending arrivals.
//!
//! | bits | what |
//! | --- | --- |
//! | 0 to 19 | arrivals that the current phase still waits for |
//! | 20 to 39 | arrivals that each later phase waits for |
//! | 40 to 60 | the tx-count: bytes that the current phase still waits for, in two's complement |
//! | 61, 62 | the number of the current phase, modulo four |
//! | 63 | set as long as the object is alive, so that memory of zeros is none |
//!
//! The state that an arrival returns is the object before the arrival. Each function takes the object and
//! returns its successor, so that an executor can exchange the two atomically.

use std::fmt;

/// Maximum number of arrivals, and of bytes, that a phase can wait for.
pub const MOST: u32 = (1 << 20) - 1;

const EXPECTED: u32 = 20;
const BYTES: u32 = 40;
const PHASE: u32 = 61;
const ALIVE: u64 = 1 << 63;

/// State of a barrier object that counts arrivals and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mbarrier {
    pending: u32,
    expected: u32,
    bytes: i32,
    phase: u8,
}

/// Result of an instruction on an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The object after the operation.
    pub object: Mbarrier,
    /// True if the instruction completed the phase.
    pub completed: bool,
}

/// Invalid use of an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The memory holds no mbarrier: it was never initialised, or it was invalidated.
    NotAlive,
    /// Number of arrivals outside 1 to [`MOST`].
    Count(u32),
    /// More arrivals than the phase waits for.
    TooMany {
        /// Number of arrivals.
        count: u32,
        /// Number of pending arrivals.
        pending: u32,
    },
    /// More dropped arrivals than expected.
    DroppedTooMany {
        /// Number of dropped arrivals.
        count: u32,
        /// Number of expected arrivals.
        expected: u32,
    },
    /// The last arrival of a phase had `.noComplete`.
    Completes,
    /// Number of bytes, or the sum of those outstanding, beyond [`MOST`].
    Bytes(i64),
    /// State from before the previous phase.
    Stale,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misuse::NotAlive => write!(f, "there is no mbarrier here: none was initialised, or it was invalidated"),
            Misuse::Count(count) => write!(f, "an mbarrier counts 1 to {MOST} arrivals, not {count}"),
            Misuse::TooMany { count, pending } => {
                write!(f, "an arrival that counts for {count} at an mbarrier whose phase waits for {pending} more")
            }
            Misuse::DroppedTooMany { count, expected } => {
                write!(f, "an arrival that drops {count} from an mbarrier that expects {expected}")
            }
            Misuse::Completes => write!(f, "an arrival with `.noComplete` completes the phase of the mbarrier"),
            Misuse::Bytes(bytes) => write!(f, "an mbarrier counts at most {MOST} bytes either way, not {bytes}"),
            Misuse::Stale => write!(f, "the state is from a phase of the mbarrier before the last one"),
        }
    }
}

impl std::error::Error for Misuse {}

fn counted(count: u32) -> Result<u32, Misuse> {
    if (1..=MOST).contains(&count) { Ok(count) } else { Err(Misuse::Count(count)) }
}

impl Mbarrier {
    /// Creates an mbarrier whose phases wait for `count` arrivals.
    pub fn new(count: u32) -> Result<Mbarrier, Misuse> {
        let expected = counted(count)?;
        Ok(Mbarrier { pending: expected, expected, bytes: 0, phase: 0 })
    }

    /// Decodes the mbarrier in memory.
    pub fn from_bits(bits: u64) -> Result<Mbarrier, Misuse> {
        if bits & ALIVE == 0 {
            return Err(Misuse::NotAlive);
        }
        Ok(Mbarrier {
            pending: bits as u32 & MOST,
            expected: (bits >> EXPECTED) as u32 & MOST,
            bytes: crate::sign_extend(bits >> BYTES, 21) as i32,
            phase: (bits >> PHASE) as u8 & 3,
        })
    }

    /// Encodes the mbarrier for memory; an arrival returns this as its state.
    pub fn bits(self) -> u64 {
        let bytes = crate::truncate(self.bytes as u64, 21);
        u64::from(self.pending) | u64::from(self.expected) << EXPECTED | bytes << BYTES | u64::from(self.phase) << PHASE | ALIVE
    }

    /// Returns `mbarrier.pending_count` of a state.
    pub fn pending_count(state: u64) -> u32 {
        state as u32 & MOST
    }

    fn settled(mut self) -> Step {
        let completed = self.pending == 0 && self.bytes == 0;
        if completed {
            self.pending = self.expected;
            self.phase = (self.phase + 1) & 3;
        }
        Step { object: self, completed }
    }

    fn with_bytes(mut self, more: i64) -> Result<Mbarrier, Misuse> {
        let bytes = i64::from(self.bytes) + more;
        if more.unsigned_abs() > u64::from(MOST) || bytes.unsigned_abs() > u64::from(MOST) {
            return Err(Misuse::Bytes(bytes));
        }
        self.bytes = bytes as i32;
        Ok(self)
    }

    /// Does `mbarrier.expect_tx`: the phase waits for `bytes` more bytes.
    pub fn expect(self, bytes: u32) -> Result<Step, Misuse> {
        Ok(self.with_bytes(i64::from(bytes))?.settled())
    }

    /// Does `mbarrier.complete_tx`: `bytes` bytes have arrived.
    pub fn complete(self, bytes: u32) -> Result<Step, Misuse> {
        Ok(self.with_bytes(-i64::from(bytes))?.settled())
    }

    /// Does an arrival that counts for several, after the phase waits for `bytes` more. With `drop`, later
    /// phases expect fewer arrivals by `count`.
    pub fn arrive(self, count: u32, bytes: u32, drop: bool) -> Result<Step, Misuse> {
        let count = counted(count)?;
        let mut object = self.with_bytes(i64::from(bytes))?;
        let too_many = Misuse::TooMany { count, pending: self.pending };
        object.pending = self.pending.checked_sub(count).ok_or(too_many)?;
        if drop {
            let too_many = Misuse::DroppedTooMany { count, expected: self.expected };
            object.expected = self.expected.checked_sub(count).ok_or(too_many)?;
        }
        Ok(object.settled())
    }

    /// Does an arrival with `.noComplete`, which must not be the last of its phase.
    pub fn arrive_without_completing(self, count: u32, drop: bool) -> Result<Step, Misuse> {
        let step = self.arrive(count, 0, drop)?;
        if step.completed { Err(Misuse::Completes) } else { Ok(step) }
    }

    /// Returns whether the phase of a state is complete. It must be the current one or the one before.
    pub fn is_complete(self, state: u64) -> Result<bool, Misuse> {
        match self.phase.wrapping_sub(Mbarrier::from_bits(state)?.phase) & 3 {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Misuse::Stale),
        }
    }

    /// Returns whether the phase of this parity is complete: the current one, or else the one before. The
    /// first phase is even.
    pub fn is_complete_parity(self, parity: u32) -> bool {
        u32::from(self.phase) & 1 != parity & 1
    }
}
