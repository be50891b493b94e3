//! Reductions and scans of segments.

use super::Costs;

/// Elements of the smallest part of a line of segments on vectors.
pub const SEGMENT_PART: u32 = 4096;
/// Elements of the longest segment that a lane of vectors has for itself: others wait for it.
pub const SHORT_SEGMENT: u32 = 32;
/// Elements of a segment in the mean, up to which a warp of vectors reads rows of elements rather than rows
/// of each segment. By measurement on a Xeon with AVX-512, one thread beside other work: sums of 500,000
/// `f32` take 0.75 ms in rows of elements for means of 5.5 and 6.5, and 0.56, 0.47 and 0.38 in rows of each
/// segment for 8, 9.5 and 12; of `f64` 1.3, and 0.86, 0.72 and 0.61. The second grows with the number of
/// segments and would meet the first between 5 and 6.
pub const SPARSE_SEGMENT: u32 = 7;
/// Steps of a scan of a warp, each a combination, an exchange of lanes and a choice.
const SCAN_STEPS: u64 = 5;
/// An element in a row of segments besides its scan: where segments end, and their results. By measurement on
/// a Xeon with AVX-512, as is the next one.
const SEGMENTED_ELEMENT: u64 = 46;
/// A read of elements at places that lanes compute each for itself.
const GATHER: u64 = 51;
/// Rounds of a warp per round that an average lane needs. Each lane processes its own segment, and the warp
/// ends with the longest one.
const WAITING: u64 = 2;

impl Costs<'_> {
    /// Returns whether a warp of vectors reads segments in rows of neighbouring elements and scans each row.
    /// The alternative is a segment for each lane, with a gather for each element. The source has `inputs`
    /// inputs; the operator combines `values` values in `operations`.
    pub fn scans_segments(&self, inputs: u64, values: u64, operations: u64) -> bool {
        let scanned = SEGMENTED_ELEMENT + SCAN_STEPS * (operations + 2 * values);
        scanned <= WAITING * (inputs * GATHER + operations)
    }

    /// Returns whether a reduction of segments knows the segment of an element when it reads the element. A
    /// tile of threads reads its elements before it knows where segments end.
    pub fn knows_segments(&self) -> bool {
        self.in_vectors()
    }
}
