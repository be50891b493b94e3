//! Kinds of symbolic values that a kernel computes with while it is traced.

pub use broadloom_scalar::traced::{Floating, Kind, Number, Term, Traced};

/// A traced sample.
pub type Real<'k> = Traced<'k, f32>;
/// A traced number of a state. Moving averages carry states in double precision.
pub type Precise<'k> = Traced<'k, f64>;
/// A traced integer.
pub type Whole<'k> = Traced<'k, i32>;
/// A traced condition.
pub type Truth<'k> = Traced<'k, bool>;
