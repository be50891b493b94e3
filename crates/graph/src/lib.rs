//! Data-parallel graphs, and the planner of arrays, NESL and effects.
//!
//! A [`Node`] is an array that is computed or will be: a buffer, a constant fill, an elementwise operation, a
//! [`View`], a gather, a reduction along axes. Constructing nodes checks them and computes nothing.
//! [`Context::evaluate`] computes them in these steps:
//!
//! 1. *record*: the nodes become a *tape*. Equal nodes are recorded once. Scalars, sizes and
//!    large offsets are left out. If a plan for an equal tape exists, it is reused;
//! 2. *cut*: a cost model of the machine cuts the graph into kernels;
//! 3. *order*: the kernels are ordered for low memory use, and results reuse the memory of dead arrays;
//! 4. *emit*: each kernel becomes scalar code and a pattern of `skeleton`;
//! 5. *fit*: the values that depend on the sizes of a run are computed once for each set of sizes;
//! 6. *run*: the kernels are launched in stream order, without waiting.
//!
//! [`Context::template`] does all steps except the last for a function of arrays, once: see [`Template`].
//!
//! Graphs have a [textual form](text). The plan can be inspected as data: see [`Summary`]. [`naive`] is a
//! reference implementation for tests. It computes graphs on the host, with one loop per node.
//!
//! ```
//! use broadloom_graph::{Context, Elementwise, Node, Shape};
//! use broadloom_device::Device;
//! use broadloom_interp::Interp;
//! use broadloom_scalar::{BinaryOp, Type};
//!
//! let context = Context::new(&Device::new(Interp::new(Default::default())));
//! let x = Node::upload(&context, Type::U8, Shape::from([2, 2]), &[1, 2, 3, 4])?;
//! let y = Node::elementwise(Elementwise::Binary(BinaryOp::Mul), &[&x, &x])?;
//! let z = Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&y, &x])?;
//! assert_eq!(context.explain(&[z.clone()])?.kernels.len(), 1);
//! assert_eq!(z.read()?.to_bytes(), [2, 6, 12, 20]);
//! # Ok::<(), broadloom_graph::Error>(())
//! ```
//!
//! Modules form rooms that open one way: `expr` (nodes and operations), `tape` (the canonical form of
//! expressions), `emit` (traces and code), `plan` (kernels) and `run` (execution). A room uses those before
//! it.

mod emit;
mod expr;
mod hash;
mod limits;
pub mod naive;
mod plan;
mod run;
mod tape;
pub mod text;

pub use broadloom_skeleton::cost::{
    ArenaBytes, ByWorker, Costs, FlattenedLevels, SequentialCalls, TeamCalls, Teams, Workers, are_large_calls,
};
pub use broadloom_skeleton::{Boundary, Combine, Rule, SortKey};
pub use emit::patch::Patch;
pub use expr::amount::Amount;
pub use expr::apply::Typing;
pub use expr::elementwise::Elementwise;
pub use expr::error::{Error, Result};
pub use expr::host_array::HostArray;
pub use expr::kernel_settings::Chains;
pub use expr::layout::Layout;
pub use expr::node::{Context, Expression, Inputs, Length, Node, State};
pub use expr::op::{Extreme, Op, Scalar};
pub use expr::operation::{
    Application, Extent, Feed, Operation, OperationPattern, OperationResult, PatternParts, SharedKernel, Variants,
};
pub use expr::operations::{Reads, Step};
pub use expr::segments::{Direction, IndexedLines, Segments, StoredForms, Total};
pub use expr::shape::{Axes, MAX_COUNT, MAX_RANK, Shape};
pub use expr::tracing::Symbol;
pub use expr::view::{AxisMap, View};
pub use limits::MAX_ARGUMENTS;
pub use plan::cut::Reason;
pub use plan::summary::{KernelSummary, ResultSummary, Summary, shown_time};
pub use run::executor::Statistics;
pub use run::lane::Lane;
pub use run::template::{FittedTemplate, Template};
