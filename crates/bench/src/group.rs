//! Names of the groups of benchmarks.

/// Kernels in CUDA C++.
pub(crate) const KERNELS: &str = "kernels";
/// Expressions of whole arrays.
pub(crate) const ARRAYS: &str = "arrays";
/// Programs as users write them.
pub(crate) const PROGRAMS: &str = "programs";
/// Image effects.
pub(crate) const EFFECTS: &str = "effects";
/// Functions of NESL programs.
pub(crate) const NESL: &str = "nesl";
/// The programs of `examples/nesl`.
pub(crate) const NESL_PROGRAMS: &str = "nesl_programs";
/// StreamIt programs.
pub(crate) const STREAMS: &str = "streams";
/// Segmented operations. Their peer is the same operation without segments.
pub(crate) const SEGMENTS: &str = "segments";
/// Host overhead of array expressions.
pub(crate) const OVERHEAD: &str = "overhead";
/// Compile times of kernels.
pub(crate) const COMPILE: &str = "compile";
/// Times of the command from its start.
pub(crate) const START: &str = "start";
/// Speed of the interpreter.
pub(crate) const INTERP: &str = "interp";
