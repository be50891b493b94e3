//! Lazy n-dimensional arrays.
//!
//! An [`Array`] is a value: operations return new arrays and change nothing. Computation is lazy: an
//! expression is a graph. Reading a result ([`Array::to_vec`], [`Array::item`]) lets the planner split it
//! into kernels for the device of the [`Context`]. A loop that builds the same expression again reuses its
//! plan and its kernels; sizes and scalars may differ.
//!
//! ```
//! # use broadloom_array::{Array};
//! # fn context() -> broadloom_array::Context {
//! #     broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())))
//! # }
//! let context = context();
//! let x = Array::line(&context, &[1.0f32, -2.0, 3.0])?;
//! let y = Array::line(&context, &[10.0f32, 20.0, 30.0])?;
//! let norm = (&x * 2.0 + &y).abs().sum();
//! assert_eq!(norm.plan()?.kernels.len(), 1);
//! assert_eq!(norm.item()?, 64.0);
//! # Ok::<(), broadloom_array::Error>(())
//! ```
//!
//! | topic | functions |
//! | --- | --- |
//! | creation and reading | [`Array::new`], [`Array::full`], [`Array::positions`], [`Array::to_vec`], [`Array::item`], [`Array::from_ndarray`], [`Array::load_npy`] … |
//! | element-wise operations | operators, [`Array::sqrt`] …, [`Array::lt`] …, [`Array::select`], [`Array::cond`], [`Array::cast`] |
//! | closures | [`Array::map`], [`Array::zip_with`], [`Array::window`] |
//! | indexing and shapes | [`Array::slice`], [`Array::replace_slice`], [`Array::section`], [`Array::shift`], [`Array::rotate`], [`Array::pad`], [`Array::transpose`], [`Array::gather`], [`Array::take`], [`Array::scatter`] … |
//! | reductions and scans | [`Array::sum`], [`Array::max_along`], [`Array::reduce_with`], [`Array::argmin`], [`Array::cumulative_sum`], [`Array::scan_with`], [`Array::inner`] … |
//! | segments | [`Segments`], [`Array::segmented_sum`], [`Array::segmented_cumulative_sum`], [`Array::segmented_filter`], [`Array::distributed`], [`Array::segmented_sort`] … |
//! | sorting, selecting, counting | [`Array::sort`], [`Array::argsort`], [`Array::sort_by`], [`Array::pack`], [`Array::nonzero`], [`Array::unique`], [`Array::runs`], [`Array::repeat_each`], [`Array::partition`], [`Array::histogram`], [`Array::matmul`] |
//! | compiled functions | [`Function`] |
//! | plans and statistics | [`Array::explain`], [`Array::plan`], [`Context::statistics`] |
//!
//! Errors in shapes, axes and types are reported by the call, with the operation and both shapes or types.
//! Operators panic instead; each has a method that returns a `Result`.

mod arith;
mod array;
mod closure;
mod element;
mod function;
mod host;
mod npy;
mod order;
mod reduce;
mod scan;
mod scatter;
mod segments;
mod span;
mod transform;

pub use arith::Operand;
pub use array::{Array, evaluate_all};
pub use broadloom_graph::{
    Amount, Boundary, Context, Error, KernelSummary, Node, Patch, Reason, Result, ResultSummary, Shape, Statistics, Summary,
};
pub use broadloom_scalar::Precision;
pub use closure::{Term, Traced, Window};
pub use element::{Arithmetic, Bits, Element, F32x4, Float, Floating, Integer, Number};
pub use function::{Argument, Arguments, ClosureResult, Function, FunctionBody, Results};
pub use npy::FileError;
pub use segments::Segments;
pub use span::Span;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/ARRAYS.md")]
struct Guide;
