//! The kit that patterns are written with. A crate that needs kernels of another shape uses it in the same
//! way as the patterns of this crate.
//!
//! | part | use |
//! | --- | --- |
//! | [`Draft`] | a program under construction: numbers inputs, outputs, scalars and temporaries, appends kernels and launches |
//! | [`Writer`] | a kernel under construction: a [`Builder`](broadloom_scalar::Builder) that declares parameters on first use |
//! | [`Inlet`], [`Outlet`] | a [`Source`](crate::Source) and a [`Sink`](crate::Sink) in a kernel: values at a position, results at a position |
//! | [`NestedSource`] | a source inside a function, for composing functions |
//! | [`Accumulator`] | the running result of an [`Operator`](crate::Operator) |
//! | [`Shared`], [`Temporaries`] | lists of values in shared memory, and in temporary memory of a run |
//! | [`reduce_warp`], [`reduce_block`], [`scan_warp`], [`shift_warp`], [`broadcast`], [`each_lane`] | cooperation of the threads of a warp or a block |
//! | [`TileChain`] | look-back: one pass over a line, tile by tile, where a tile needs the result of the
//! tiles before it |
//! | [`ravel`], [`unravel`] | conversion between positions and row-major numbers |
//!
//! A pattern is a type that implements [`Generator`](crate::Generator). Its program depends on the machine
//! and on the fields that take part in its equality, never on sizes. Grids, temporaries and loop bounds that
//! follow from sizes are [`Count`](crate::Count)s. [`Draft::launch`] returns the errors in the code of a
//! kernel.
//!
//! Rules that every kernel keeps:
//!
//! - A grid that is empty for some sizes is not launched. All other sizes must work.
//! - All threads of a block reach each barrier. All lanes of a warp reach each warp operation.
//! - A block may wait only for blocks with smaller numbers, as [`TileChain`] does.
//! - Floats are combined in an order that depends on sizes alone, so results repeat bit for bit.
//!
//! A kernel that subtracts the mean of its row from each element, with one block for each row:
//!
//! ```
//! use broadloom_device::{Device, Machine};
//! use broadloom_interp::Interp;
//! use broadloom_scalar::{AccessorKind, Axis, Builder, Type, Unroll};
//! use broadloom_skeleton::kit::{Accumulator, Draft, Shared, Writer, ravel, reduce_block};
//! use broadloom_skeleton::{Call, Count, Domain, Generator, Operator, Program, Result, Sink, Source};
//!
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Centred {
//!     source: Source,
//!     sink: Sink,
//! }
//!
//! const THREADS: u32 = 128;
//!
//! impl Generator for Centred {
//!     fn program(&self, _: &Machine) -> Result<Program> {
//!         let domain = Domain::with_axes(2);
//!         let index = domain.check("centred", &[&self.source], &self.sink)?;
//!         self.sink.check("centred", 2, &self.source.results())?;
//!         let mut draft = Draft::new("centred", 2);
//!         let inlet = draft.source(&self.source);
//!         let outlet = draft.sink(&self.sink, &self.source.results(), &domain.count());
//!         draft.limit(domain.count());
//!         let sum = Operator::sum(self.source.results()[0])?;
//!
//!         let k = Writer::new("centred", [THREADS, 1, 1]);
//!         let lengths = [0, 1].map(|axis| k.count(Count::size(axis), index));
//!         let (row, thread) = (k.convert(k.block(Axis::X), index), k.thread(Axis::X));
//!         let first = k.convert(thread, index);
//!         let total = Accumulator::new(&k, &sum);
//!         k.for_step(first, lengths[1], THREADS, Unroll::Never, |column| total.add(&k, &inlet.at(&k, &[row, column])));
//!         let all = reduce_block(&k, &sum, &total.get(&k), thread, THREADS);
//!         let shared = Shared::new(&k, &sum.types(), 1);
//!         k.if_then(k.eq(thread, 0), || shared.set(&k, k.literal(0u32), &all));
//!         k.barrier();
//!         let mean = k.div(shared.get(&k, k.literal(0u32))[0], k.convert(lengths[1], Type::F32));
//!         k.for_step(first, lengths[1], THREADS, Unroll::Never, |column| {
//!             let position = [row, column];
//!             let centred = k.sub(inlet.at(&k, &position)[0], mean);
//!             outlet.put(&k, &position, ravel(&k, &position, &lengths), &[centred]);
//!         });
//!         draft.launch(k, [Count::size(0), 1u32.into(), 1u32.into()], [THREADS, 1, 1])?;
//!         Ok(draft.finish())
//!     }
//! }
//!
//! // (i, j) ↦ x[2·i + j]
//! let f = Builder::function("element");
//! let (i, j) = (f.parameter("i", Type::I32), f.parameter("j", Type::I32));
//! let x = f.accessor("x", AccessorKind::Input, Type::F32, 1);
//! let value = f.read(x, &[f.add(f.mul(i, 2), j).into()]);
//! let source = Source::new(f.finish_function(&[value])?, 2)?;
//!
//! let device = Device::new(Interp::new(Default::default()));
//! let program = Centred { source, sink: Sink::STORE }.program(device.machine())?.load(&device)?;
//! let input = device.upload(&[1.0f32, 3.0, 10.0, 20.0])?.view::<u8>().unwrap();
//! let output = device.allocate::<f32>(4)?;
//! let outputs = [output.view::<u8>().unwrap()];
//! program.run(&Call { inputs: &[input], outputs: &outputs, sizes: &[2, 2], ..Call::default() })?;
//! assert_eq!(output.read()?, [-1.0, 1.0, -5.0, 5.0]);
//! # Ok::<(), broadloom_skeleton::Error>(())
//! ```

mod accumulator;
mod cooperate;
mod draft;
mod lookback;
mod nested;
mod ports;
mod position;
mod temporaries;
mod writer;

pub use accumulator::Accumulator;
pub use cooperate::{Shared, broadcast, each_lane, reduce_block, reduce_warp, scan_from_heads, scan_warp, shift_warp};
pub(crate) use cooperate::{choose, last_bit};
pub use draft::{Draft, IncludedArguments};
pub use lookback::TileChain;
pub use nested::NestedSource;
pub use ports::{Inlet, Outlet};
pub use position::{ravel, unravel, unravel_in_vectors};
pub use temporaries::Temporaries;
pub use writer::Writer;
