//! Sorts: digits, tiles and sorting networks.

use super::Costs;

/// The longest segment that a block of threads sorts in shared memory.
pub const SORTED_SEGMENT: u64 = 1024;
/// The longest segment that the lanes of vectors sort together.
pub const SORTED_BY_LANES: u64 = 1 << 14;
/// The longest segment that one warp of threads sorts.
pub const SORTED_IN_WARP: u32 = 256;
/// Threads of a block that sorts a segment.
pub const SEGMENT_SORT_THREADS: u32 = 128;
/// Segments that a lane of vectors sorts one after the other, so that a block has enough work.
pub const SEGMENT_SORT_TURNS: u32 = 4;
/// Elements of a segmented sort that a thread keeps in registers.
pub const SEGMENT_SORT_HELD: u32 = 8;
/// Bits of a digit of a radix sort on threads: a block has a thread for each of its values.
pub const SORT_BITS: u32 = 8;
/// Counters for each value of a digit on vectors, so that equal neighbours do not wait for each other.
pub const SORT_TABLES: u32 = 4;
/// Elements that a sort on vectors moves together if all elements of a part have the same digit.
pub const SORT_TOGETHER: u32 = 16;
/// Earlier tiles whose published counts a thread of a sort reads together.
pub const SORT_LOOKS: u32 = 4;
/// Measured cost of a round of a sort on vectors, by the bits of a digit; the unit does not matter.
pub const SORT_ROUNDS: [(u32, u32); 4] = [(8, 30), (9, 32), (10, 37), (11, 44)];
/// Cost of an element in a round of a radix sort: finding its rank in the block, and moving it. By
/// measurement, 340 on an H200 and 320 on a Xeon with AVX-512.
pub const SORT_ROUND: u64 = 330;
/// Cost of an element in a step of a sorting network. By measurement, 14 on an H200 and 12 on a Xeon with
/// AVX-512.
pub const NETWORK_STEP: u64 = 13;
/// Minimum length of a line whose first elements are selected before they are sorted. A selection reads the
/// line five times, a sort moves it four times, and both have kernels for short lines.
pub const LEAST_SELECTED: usize = 1 << 16;
/// Minimum length of such a line, in numbers of the elements that are selected.
pub const SELECTED_PART: usize = 64;

impl Costs<'_> {
    /// Returns how many elements of a sort a thread keeps in registers, at most: a key, a place and a value
    /// for each, with three blocks resident on a core.
    pub fn sorted_by_thread(&self, with_values: bool) -> u32 {
        match self.machine.registers {
            Some(registers) if registers >= 1 << 16 && !with_values => 18,
            Some(registers) if registers >= 1 << 16 => 12,
            _ => 4,
        }
    }
}
