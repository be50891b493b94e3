//! The arrays of the programs.

use broadloom::Array;

/// An array of floats.
pub(super) type Floats = Array<f32>;
/// The result of building arrays.
pub(super) type Result<T> = broadloom::array::Result<T>;
