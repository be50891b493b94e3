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
mod apply;
mod arithmetic;
mod assemble;
#[doc(hidden)]
pub mod bindings;
mod build;
mod chain;
mod check;
mod context;
mod cut;
mod defined;
mod elementwise;
#[doc(hidden)]
pub mod emit;
mod error;
mod executor;
mod expect;
mod expectation;
mod first_axis;
mod fit;
mod group;
mod hash;
mod host_array;
mod join;
mod kernel_settings;
mod known;
mod lane;
mod lane_results;
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
mod parsed_call;
mod patches;
mod pattern;
mod plan;
mod plan_cache;
mod random;
#[doc(hidden)]
pub mod record;
mod runs;
mod segments;
mod shape;
#[doc(hidden)]
pub mod sizes;
mod spelling;
mod stage;
#[doc(hidden)]
pub mod tape;
mod template;
mod terms;
pub mod text;
#[doc(hidden)]
pub mod trace;
mod tracing;
mod view;

pub use amount::Amount;
pub use apply::Typing;
pub use broadloom_skeleton::cost::{Costs, Teams, Workers};
pub use broadloom_skeleton::{Boundary, Combine, Rule, SortKey};
pub use cut::Reason;
pub use elementwise::Elementwise;
pub use emit::Patch;
pub use error::{Error, Result};
pub use executor::Statistics;
pub use host_array::HostArray;
pub use kernel_settings::Chains;
pub use lane::Lane;
pub use layout::Layout;
pub use limits::MAX_ARGUMENTS;
pub use node::{Context, Expression, Inputs, Length, Node, State};
pub use op::{Extreme, Op, Scalar};
pub use operation::{Applied, Extent, Feed, Form, Joining, Operation, Parts, Site, Variants};
pub use operations::{Reads, Step};
pub use plan::{KernelSummary, ResultSummary, Summary, shown_time};
pub use segments::{Checked, Direction, Segments, StoredForms, Total};
pub use shape::{Axes, MAX_COUNT, MAX_RANK, Shape};
pub use template::{FittedTemplate, Template};
pub use tracing::Symbol;
pub use view::{AxisMap, View};
