//! Builder of modules and kernels.
//!
//! A [`ModuleBuilder`] holds variables and functions; a [`FunctionBuilder`] emits one function. Every
//! instruction of the table is a method of [`Instructions`]. It takes the modifiers and then the sources, and
//! returns the result in a register of the instruction's result type. Guards and destinations come first, as
//! in PTX: `b.guard(p)`, `b.to(d)`.
//!
//! | PTX | here |
//! | --- | --- |
//! | `add.f32 %f3, %f1, %f2;` | `let z = b.add(F32, x, y);` |
//! | `add.s32 %i, %i, 1;` | `b.to(i).add(S32, i, 1);` |
//! | `@!%p bra DONE;` | `b.guard(!p).bra((), done);` |
//! | `ld.global.f32 %f1, [%rd1+4];` | `let v = b.ld((Global, F32), p.offset(4));` |
//! | `st.shared.f32 [tile], %f1;` | `b.st((Shared, F32), tile, v);` |
//! | `ld.global.v2.f32 {%f1, %f2}, [%rd1];` | `let [x, y] = b.vector().ld((Global, V2, F32), p);` |
//! | `shfl.sync.idx.b32 %r1\|%p1, %r2, 0, 31, -1;` | `let (d, p) = b.pair().shfl_sync((Idx, B32), v, 0, 31, -1);` |
//! | `mov.u32 %r1, %tid.x;` | `let tid = b.special(Special::TidX);` |
//! | `bar.sync 0;` | `b.bar(Sync, 0);` |
//!
//! A mistake never panics. It is recorded, and [`ModuleBuilder::finish`] returns all mistakes, each with its
//! function and instruction. The verifier checks types and sizes; [`ModuleBuilder::verified`] does both. A
//! finished module is canonical: parsing its printed text gives the same module.
//!
//! Vector addition:
//!
//! ```
//! use broadloom_ptx::Modifier::{Ge, Global, Lo, Wide, F32, S32, U32, U64};
//! use broadloom_ptx::builder::{Instructions, ModuleBuilder};
//! use broadloom_ptx::{IsaVersion, Special, Target, Type};
//!
//! let mut m = ModuleBuilder::new(IsaVersion::new(7, 0), Target::sm(75));
//! let mut b = m.kernel("vector_add");
//! let x = b.arg("x", Type::U64);
//! let y = b.arg("y", Type::U64);
//! let n = b.arg("n", Type::U32);
//! let (ctaid, ntid, tid) = (b.special(Special::CtaidX), b.special(Special::NtidX), b.special(Special::TidX));
//! let i = b.mad((Lo, S32), ctaid, ntid, tid);
//! let outside = b.setp((Ge, U32), i, n);
//! b.if_then(!outside, |b| {
//!     let bytes = b.mul((Wide, U32), i, 4);
//!     let (from, to) = (b.add(U64, x, bytes), b.add(U64, y, bytes));
//!     let (u, v) = (b.ld((Global, F32), from), b.ld((Global, F32), to));
//!     let sum = b.add(F32, u, v);
//!     b.st((Global, F32), to, sum);
//! });
//! b.ret(());
//! m.define(b);
//! let module = m.verified().unwrap();
//! assert!(broadloom_ptx::print(&module).contains("add.f32"));
//! ```
//!
//! The sum of a block in shared memory, with a barrier in a loop:
//!
//! ```
//! use broadloom_ptx::Modifier::{Gt, Global, Lo, Lt, Shared, Sync, Wide, F32, U32};
//! use broadloom_ptx::builder::{Instructions, ModuleBuilder};
//! use broadloom_ptx::{IsaVersion, Special, Target, Type};
//!
//! let mut m = ModuleBuilder::new(IsaVersion::new(7, 0), Target::sm(75));
//! let mut b = m.kernel("block_sum");
//! let (input, output) = (b.arg("input", Type::U64), b.arg("output", Type::U64));
//! let tile = b.shared("tile", Type::F32, &[256]);
//! let (ctaid, tid) = (b.special(Special::CtaidX), b.special(Special::TidX));
//! let i = b.mad((Lo, U32), ctaid, 256, tid);
//! let from = b.mad((Wide, U32), i, 4, input);
//! let value = b.ld((Global, F32), from);
//! let base = b.mov(U32, tile);
//! let mine = b.mad((Lo, U32), tid, 4, base);
//! b.st((Shared, F32), mine, value);
//!
//! let width = b.mov(U32, 128);
//! b.while_loop(
//!     |b| b.setp((Gt, U32), width, 0).into(),
//!     |b| {
//!         b.bar(Sync, 0);
//!         let active = b.setp((Lt, U32), tid, width);
//!         b.if_then(active, |b| {
//!             let other = b.mad((Lo, U32), width, 4, mine);
//!             let (u, v) = (b.ld((Shared, F32), mine), b.ld((Shared, F32), other));
//!             let sum = b.add(F32, u, v);
//!             b.st((Shared, F32), mine, sum);
//!         });
//!         b.to(width).shr(U32, width, 1);
//!     },
//! );
//!
//! let first = b.setp((broadloom_ptx::Modifier::Eq, U32), tid, 0);
//! b.if_then(first, |b| {
//!     let sum = b.ld((Shared, F32), tile);
//!     let to = b.mad((Wide, U32), ctaid, 4, output);
//!     b.st((Global, F32), to, sum);
//! });
//! b.ret(());
//! m.define(b);
//! let module = m.verified().unwrap();
//! assert_eq!(module.kernels().count(), 1);
//! ```

mod call;
mod canonical;
pub mod codes;
mod convert;
mod emit;
mod function;
mod module;
mod structured;

pub use call::Callable;
pub use convert::{IntoModifiers, IntoOperands, ModifierList, ToModifier};
pub use emit::{Emit, Instructions, Results};
pub use function::FunctionBuilder;
pub use module::ModuleBuilder;
