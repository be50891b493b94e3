//! Data-parallel graphs, and the planner of arrays, NESL and effects.
//!
//! A [`Node`] is an array that is computed or will be: a buffer, a constant fill, an elementwise operation, a
//! [`View`], a gather, a reduction along axes. Constructing nodes checks them and computes nothing.
//! [`Context::evaluate`] computes them in these steps:
//!
//! 1. *record*: the nodes become a [tape](crate::tape). Equal nodes are recorded once. Scalars, sizes and
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
//! Hidden modules are public only for the tests of this crate.

mod amount;
mod assemble;
mod build;
mod chain;
mod check;
mod context;
mod cut;
mod defined;
#[doc(hidden)]
pub mod emit;
mod error;
mod expect;
mod first_axis;
mod fit;
mod hash;
mod join;
mod known;
mod lane;
mod layout;
mod length;
mod limits;
pub mod naive;
mod node;
#[doc(hidden)]
pub mod number;
mod op;
mod operation;
mod operations;
mod pattern;
mod plan;
mod random;
#[doc(hidden)]
pub mod record;
mod runs;
mod segments;
mod shape;
#[doc(hidden)]
pub mod sizes;
#[doc(hidden)]
pub mod tape;
mod template;
pub mod text;
#[doc(hidden)]
pub mod trace;
mod view;

pub use amount::Amount;
pub use broadloom_skeleton::SortKey;
pub use broadloom_skeleton::cost::{Costs, Teams, Workers};
pub use chain::Chains;
pub use context::{Context, Statistics};
pub use cut::Reason;
pub use emit::Patch;
pub use error::{Error, Result};
pub use lane::Lane;
pub use layout::Layout;
pub use length::Length;
pub use limits::MAX_ARGUMENTS;
pub use naive::HostArray;
pub use node::{Expression, Inputs, Node, State};
pub use op::{Axes, Combine, Elementwise, Extreme, Op, Scalar};
pub use operation::{Applied, Extent, Feed, Form, Joining, Operation, Parts, Site, Variants};
pub use operations::{Reads, Step};
pub use plan::{KernelSummary, ResultSummary, Summary, shown_time};
pub use segments::{Checked, Direction, Segments, StoredForms, Total};
pub use shape::{MAX_COUNT, MAX_RANK, Shape};
pub use template::{FittedTemplate, Symbol, Template};
pub use view::{AxisMap, Boundary, Rule, View};
