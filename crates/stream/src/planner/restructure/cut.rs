//! Cuts: the actors of a section that become one kernel, the shape of the kernel, and where its buffers are
//! stored.

use super::components::Components;
use super::section::{Actor, Needs, Section};
use super::wiring::{Range, target};
use crate::planner::translate::{Rounds, Words};
use broadloom_skeleton::cost::dataflow;

/// The place of a buffer in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferPlace {
    /// Global memory that is read.
    Read,
    /// Global memory that is written.
    Written,
    /// Memory of the thread.
    Local,
    /// Shared memory at this byte offset.
    Shared(u64),
    /// Global memory that is read and first copied to shared memory, at this byte offset.
    Staged(u64),
    /// Global memory that is written from shared memory at the end, at this byte offset.
    Collected(u64),
    /// Global memory that is read into registers with vector loads.
    Loaded,
    /// Global memory that is written from registers at the end with vector stores.
    Kept,
    /// Not in this kernel.
    Elsewhere,
}

impl BufferPlace {
    /// Returns whether the buffer is in global memory.
    pub fn is_global(self) -> bool {
        self.is_input() || self.is_output()
    }

    /// Returns whether the kernel reads the buffer in global memory.
    pub fn is_input(self) -> bool {
        matches!(self, BufferPlace::Read | BufferPlace::Staged(_) | BufferPlace::Loaded)
    }

    /// Returns whether the kernel writes the buffer in global memory.
    pub fn is_output(self) -> bool {
        matches!(self, BufferPlace::Written | BufferPlace::Collected(_) | BufferPlace::Kept)
    }

    /// Returns the place without a copy in shared memory or registers.
    pub(super) fn direct(self) -> BufferPlace {
        match self {
            BufferPlace::Staged(_) | BufferPlace::Loaded => BufferPlace::Read,
            BufferPlace::Collected(_) | BufferPlace::Kept => BufferPlace::Written,
            other => other,
        }
    }
}

/// The shape of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One unit per thread.
    Thread,
    /// This number of units per block.
    Block(i64),
    /// One or several blocks per firing. Their threads share the rounds of loops.
    Firing,
    /// Windows of this many items per block: a convolution by the fast Fourier transform.
    Spectrum(u32),
}

/// Actors that become one kernel.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The actors, by number.
    pub actors: Vec<usize>,
    /// Arrangement of threads.
    pub shape: Shape,
    /// Threads of a block.
    pub threads: u32,
    /// Units of a thread, in a kernel by thread.
    pub per_thread: i64,
    /// True if buffers in shared memory are padded against bank conflicts.
    pub padded: bool,
    /// The place of each buffer of the section.
    pub places: Vec<BufferPlace>,
    /// Firings and items that one unit needs.
    pub unit: Needs,
    /// Firings and items that all units of a block need.
    pub block: Needs,
    /// Items of each buffer that a block holds, including those that are computed and not needed.
    pub extents: Vec<Option<Range>>,
    /// Bytes of shared memory.
    pub shared_bytes: u64,
    /// Actors whose firings a thread runs together in registers, in a kernel by block.
    pub components: Vec<Components>,
    /// For each actor, the end of the firings that a batch of one unit needs, over all kernels.
    pub last: Vec<Option<i64>>,
    /// Units beyond those of the batch, so that later kernels have the items they peek.
    pub extra: i64,
}

impl Cut {
    /// Returns whether the firings of a unit are unrolled, in a kernel by thread.
    pub fn is_written_out(&self, section: &Section) -> bool {
        let costs =
            self.actors.iter().map(|index| cost(&section.actors[*index]).saturating_mul(section.actors[*index].firings as u64));
        costs.fold(0u64, u64::saturating_add) <= dataflow::UNROLLED_UNIT
    }

    /// Returns the code of a round if the threads of a block share the rounds of an actor's firings. They do
    /// so if there are too few firings for all threads.
    pub fn rounds<'s>(&self, section: &'s Section, index: usize) -> Option<&'s Rounds> {
        let firings = self.block.firings[index].map_or(0, Range::len);
        let few = matches!(self.shape, Shape::Block(_)) && dataflow::shares_rounds(firings, self.threads);
        section.actors[index].code.rounds.as_ref().filter(|_| few)
    }

    /// Returns the padding: the words left out after every 32 words of a buffer in shared memory. Padding
    /// costs some operations for each access. A buffer has none if few accesses would conflict on a bank.
    pub fn padding(&self, section: &Section, buffer: usize) -> u64 {
        self.padding_among(section, buffer, self.actors.iter().copied())
    }

    /// Returns the padding, for a buffer that no actors but these use.
    pub(super) fn padding_among(&self, section: &Section, buffer: usize, users: impl Iterator<Item = usize>) -> u64 {
        let words = section.buffers[buffer].words;
        match self.shape {
            Shape::Thread | Shape::Firing | Shape::Spectrum(_) => return padding(words),
            Shape::Block(_) if !self.padded => return 0,
            Shape::Block(_) => {}
        }
        let shares = |index: &usize| {
            let grouped = self.components.iter().any(|group| group.actors.len() > 1 && group.actors.contains(index));
            grouped || self.rounds(section, *index).is_some()
        };
        let (mut accesses, mut conflicts) = (0, 0);
        let mut users: Vec<usize> = users.filter(|index| self.actors.binary_search(index).is_ok()).collect();
        users.dedup();
        for index in &users {
            let actor = &section.actors[*index];
            for port in [&actor.input, &actor.output].into_iter().flatten().filter(|port| port.buffer == buffer) {
                if shares(index) {
                    return padding(words);
                }
                let next = target(&port.steps, port.start + port.rate) - target(&port.steps, port.start);
                let stride = next.unsigned_abs() * u64::from(words.count);
                let together = if stride == 0 { 1 } else { 1 << stride.trailing_zeros().min(5) };
                let own = actor.firings as u64 * port.seen.unsigned_abs();
                accesses += own;
                conflicts += own * (together - 1);
            }
        }
        if dataflow::pads(conflicts, accesses) { padding(words) } else { 0 }
    }
}

/// Returns the words left out after every 32 words of a tape in shared memory, so that threads a power of two
/// apart use different banks. Pairs of words stay aligned.
pub(crate) fn padding(words: Words) -> u64 {
    if words.count.is_multiple_of(2) && words.element.bytes() <= 4 { 2 } else { 1 }
}

/// Returns the number of words of an array in shared memory, including its padding.
pub(crate) fn padded(words: u64, padding: u64) -> u64 {
    words + (words / 32 + 1) * padding
}

/// Returns the cost of a firing in simple operations.
pub fn cost(actor: &Actor) -> u64 {
    broadloom_skeleton::cost::function(&actor.code.function)
}
