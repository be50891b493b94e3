//! Lazy n-dimensional arrays.
//!
//! An [`Array`] is a value: operations on it give new arrays and change nothing. Nothing is computed before it is needed: an expression is
//! a graph, and reading a result ([`Array::to_vec`], [`Array::item`]) has the planner cut it into as few kernels as pay, on whatever device the
//! [`Context`] stands for. A loop that builds the same expression again finds its plan and its kernels; sizes and scalars may differ.
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
//! | what | where |
//! | --- | --- |
//! | made from and turned into values | [`Array::new`], [`Array::full`], [`Array::positions`], [`Array::to_vec`], [`Array::item`], [`Array::from_ndarray`], [`Array::load_npy`] … |
//! | operations on elements | operators, [`Array::sqrt`] …, [`Array::lt`] …, [`Array::select`], [`Array::cond`], [`Array::cast`] |
//! | closures | [`Array::map`], [`Array::zip_with`], [`Array::window`] |
//! | other places | [`Array::slice`], [`Array::replace_slice`], [`Array::section`], [`Array::shift`], [`Array::rotate`], [`Array::pad`], [`Array::transpose`], [`Array::gather`], [`Array::take`], [`Array::scatter`] … |
//! | elements combined | [`Array::sum`], [`Array::max_along`], [`Array::reduce_with`], [`Array::argmin`], [`Array::cumulative_sum`], [`Array::scan_with`], [`Array::inner`] … |
//! | within segments | [`Segments`], [`Array::segmented_sum`], [`Array::segmented_cumulative_sum`], [`Array::segmented_filter`], [`Array::distributed`], [`Array::segmented_sort`] … |
//! | another order, chosen, counted | [`Array::sort`], [`Array::argsort`], [`Array::sort_by`], [`Array::pack`], [`Array::nonzero`], [`Array::unique`], [`Array::runs`], [`Array::repeat_each`], [`Array::partition`], [`Array::histogram`], [`Array::matmul`] |
//! | traced once, called often | [`Function`] |
//! | what will happen | [`Array::explain`], [`Array::plan`], [`Context::statistics`] |
//!
//! Mistakes in shapes, axes and types are told at the call, with the operation and both shapes or types. Operators panic instead, since
//! they have no other way; each has a method beside it that gives a `Result`.

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
    Amount, Boundary, Context, Error, KernelSummary, Node, Reason, Result, ResultSummary, Shape, Statistics, Summary,
};
pub use broadloom_scalar::Precision;
pub use closure::{Term, Traced, Window};
pub use element::{Arithmetic, Bits, Element, F32x4, Float, Floating, Integer, Number};
pub use function::{Argument, Arguments, Body, Function, Outcome, Results};
pub use npy::FileError;
pub use segments::Segments;
pub use span::Span;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/ARRAYS.md")]
struct Guide;
