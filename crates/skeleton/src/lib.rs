//! Parallel patterns.
//!
//! A pattern is a value. It consists of scalar functions for its inputs and outputs ([`Source`], [`Sink`])
//! and of everything else that its code depends on. For a machine it becomes a [`Program`]: kernels, and
//! their launches for any sizes. A planner fuses work into a pattern through these functions. Patterns and
//! programs can be compared and hashed. Sizes and scalars are not part of them, so a change of only those
//! does not compile anything again.
//!
//! | pattern | what it does |
//! | --- | --- |
//! | [`Map`] | a function at every position; gathers, index arrays, outer products and [random numbers](random) are maps |
//! | [`Stencil`] | a function of neighbourhoods, several rows of results at a time |
//! | [`TiledStencil`] | a function of the values around a position, staged in shared memory; offsets may be computed |
//! | [`Sweep`] | a state carried along an axis, with outputs at every position |
//! | [`Reduce`] | an associative [`Operator`] over any axes, several at once |
//! | [`Scan`] | all prefixes along an axis; within segments of any length by [`Operator::segmented`] |
//! | [`SegmentedReduce`] | an associative [`Operator`] over segments of a line |
//! | [`SegmentNumbers`] | the segment of each element of a line |
//! | [`Pack`] | the values at chosen positions, followed by the others |
//! | [`Scatter`] | values written to computed places, and combined there |
//! | [`Histogram`] | the number of positions in each bin |
//! | [`Transpose`] | two axes exchanged |
//! | [`Product`] | the product of two matrices |
//! | [`Sort`] | a stable sort by several keys of any type |
//! | [`SegmentedSort`] | a stable sort within short segments |
//!
//! The [`kit`] is for patterns of another shape.
//!
//! ```
//! use broadloom_device::Device;
//! use broadloom_interp::Interp;
//! use broadloom_scalar::{AccessorKind, Builder, Type};
//! use broadloom_skeleton::{Call, Domain, Map, Sink, Source};
//!
//! // i ↦ a · x[i] + y[i]
//! let f = Builder::function("saxpy");
//! let (i, a) = (f.parameter("i", Type::I32), f.parameter("a", Type::F32));
//! let (x, y) = (f.accessor("x", AccessorKind::Input, Type::F32, 1), f.accessor("y", AccessorKind::Input, Type::F32, 1));
//! let sum = f.fma(a, f.read(x, &[i.into()]), f.read(y, &[i.into()]));
//! let saxpy = Source::new(f.finish_function(&[sum]).unwrap(), 1).unwrap();
//!
//! let device = Device::new(Interp::new(Default::default()));
//! let map = Map { domain: Domain::LINE, source: saxpy, sink: Sink::STORE };
//! let program = map.program(device.machine()).unwrap().load(&device).unwrap();
//!
//! let x = device.upload(&[1.0f32, 2.0, 3.0]).unwrap();
//! let y = device.upload(&[10.0f32, 20.0, 30.0]).unwrap();
//! let result = device.allocate::<f32>(3).unwrap();
//! let bytes = |buffer: &broadloom_device::Buffer<f32>| buffer.view::<u8>().unwrap();
//! program
//!     .run(&Call {
//!         inputs: &[bytes(&x), bytes(&y)],
//!         outputs: &[bytes(&result)],
//!         scalars: &[2.0f32.into()],
//!         sizes: &[3],
//!         ..Call::default()
//!     })
//!     .unwrap();
//! assert_eq!(result.read().unwrap(), [12.0, 24.0, 36.0]);
//! ```

mod boundary;
mod call;
mod chain;
mod combine;
pub mod cost;
mod count;
mod domain;
mod error;
mod fit;
mod histogram;
mod key;
pub mod kit;
mod layout;
mod library;
mod map;
mod operator;
mod order;
mod pack;
mod plain;
mod product;
mod product_panels;
mod program;
pub mod random;
mod read_steps;
mod reduce;
mod relay;
mod rows;
mod run;
mod scan;
mod scatter;
mod segmented_sort;
mod segments;
mod sort;
mod source;
mod stencil;
mod sweep;
mod tiled;
mod transpose;

pub use boundary::{Boundary, Rule};
pub use call::Call;
pub use chain::{Chain, ChainLayout, Reach, Stage, Tap, TapRead};
pub use combine::Combine;
pub use cost::ScatterTables;
pub use count::Count;
pub use domain::Domain;
pub use error::{Error, Result};
pub use fit::FittedProgram;
pub use histogram::Histogram;
pub use key::Key;
pub use layout::{Access, Layout, Number};
pub use library::{Generator, Library, Pattern};
pub use map::Map;
pub use operator::Operator;
pub use order::ordered;
pub use pack::Pack;
pub use plain::PlainProduct;
pub use product::Product;
pub use program::{Argument, Output, Program, Step, Temporary};
pub use read_steps::{ReadStep, ReadSteps};
pub use reduce::{Reduce, Spread};
pub use relay::Relay;
pub use rows::{RowAction, RowForm, RowStage, RowTail, RowValue, Rows};
pub use run::LoadedProgram;
pub use scan::{Scan, ScanSpread};
pub use scatter::Scatter;
pub use segmented_sort::SegmentedSort;
pub use segments::{SegmentNumbers, SegmentedReduce};
pub use sort::{Sort, SortKey};
pub use source::{Sink, Source};
pub use stencil::{Border, Fold, Stencil};
pub use sweep::{Split, Sweep, SweepSpread};
pub use tiled::{Staging, Tile, TiledStencil};
pub use transpose::Transpose;
