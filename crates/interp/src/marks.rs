//! Marks in generic addresses, which name the owner of the memory.
//!
//! Local memory is at the same generic addresses for every thread, and shared memory for every block. An
//! address that reaches another thread through memory therefore leads to the memory of that thread. In
//! checking mode, `cvta` marks its results with the thread or block, so that such an access is found. An
//! address keeps its low 32 bits; addresses of 32 bits have no room for a mark.
//!
//! | bits | what |
//! | --- | --- |
//! | 0 to 35 | the address; four bits more than it needs, for offsets that leave the window |
//! | 36 to 45 | the thread, for local memory |
//! | 46 to 60 | the block, as far as it fits |
//! | 61 | set for local memory |
//! | 62 | set in marked addresses |

use crate::cta::Cta;
use crate::memory::{CLUSTER_STRIDE, LOCAL_BASE, SHARED_BASE};
use broadloom_ptx::Space;

const ADDRESS_BITS: u32 = 36;
const BLOCK_SHIFT: u32 = 46;
const BLOCK_MASK: u64 = (1 << 15) - 1;
const LOCAL: u64 = 1 << 61;
const MARKED: u64 = 1 << 62;

fn is_marked(address: u64) -> bool {
    address >> 62 == 1
}

fn block_mark(cta: &Cta) -> u64 {
    MARKED | (cta.number & BLOCK_MASK) << BLOCK_SHIFT
}

fn thread_mark(cta: &Cta, thread: usize) -> u64 {
    block_mark(cta) | LOCAL | (thread as u64) << ADDRESS_BITS
}

/// Marks a generic address that a thread makes of its own local memory or of the shared memory of its block.
pub(crate) fn mark(cta: &Cta, thread: usize, address: u64) -> u64 {
    match address {
        LOCAL_BASE..SHARED_BASE => address | thread_mark(cta, thread),
        SHARED_BASE.. if address < SHARED_BASE + CLUSTER_STRIDE => address | block_mark(cta),
        _ => address,
    }
}

/// Returns an address without its mark.
pub(crate) fn unmarked(address: u64) -> u64 {
    if is_marked(address) { address & ((1 << ADDRESS_BITS) - 1) } else { address }
}

/// Address that a thread or an instruction may not use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongAddress {
    /// Address of the memory of another thread or block.
    #[error("{address:#x} is an address in the {owner}; here it leads to other memory")]
    Owner { address: u64, owner: String },
    /// Address of another state space than the instruction's.
    #[error("{address:#x} is an address in {actual}, but the instruction is for `{space}`")]
    Space { address: u64, actual: &'static str, space: Space },
}

/// Returns an address without its mark if it has none or that of the thread.
pub(crate) fn own(cta: &Cta, thread: usize, address: u64) -> Result<u64, WrongAddress> {
    let mark = address >> ADDRESS_BITS << ADDRESS_BITS;
    if !is_marked(address) || mark == block_mark(cta) || mark == thread_mark(cta, thread) {
        return Ok(unmarked(address));
    }
    let shown = unmarked(address);
    let number = (address >> ADDRESS_BITS) as usize % (1 << (BLOCK_SHIFT - ADDRESS_BITS));
    let owner = match cta.threads.get(number) {
        _ if address & LOCAL == 0 => "shared memory of another block".to_owned(),
        Some(other) if mark == thread_mark(cta, number) => {
            let [x, y, z] = other.id;
            format!("local memory of thread ({x}, {y}, {z})")
        }
        Some(_) | None => "local memory of a thread of another block".to_owned(),
    };
    Err(WrongAddress::Owner { address: shown, owner })
}
