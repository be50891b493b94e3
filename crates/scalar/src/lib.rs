//! The code of one thread: typed, structured and imperative.
//!
//! Array expressions, bodies of comprehensions, effects and filters become this code before they become PTX.
//! The parallel patterns are written *in* it: a pattern is Rust code that builds a whole [`Kernel`] and
//! inlines the user's [`Function`]s into it. One simplifier and one lowering serve all.
//!
//! - [`Type`] is an [`Element`] type with a number of lanes; [`Literal`] is one element.
//! - A [`Builder`] writes a function or kernel. A [`Value`] is a copyable handle. Pure expressions are shared
//!   when they are made, and have no place. Operations that depend on a place (variables, memory, accessors,
//!   other threads) happen at their call. Mistakes are recorded and returned by [`Builder::finish_function`]
//!   and [`Builder::finish_kernel`].
//! - A [`Function`] is a value: it can be compared, hashed, printed, [evaluated](Function::evaluate) and
//!   [inlined](Builder::inline). Its *accessors* are inputs and outputs that become code only when it is
//!   inlined: see [`Binding`].
//! - A [`Kernel`] has pointers and scalars as parameters, shared memory, barriers, warp operations and
//!   atomics. [`lower`](fn@lower) translates it to PTX after [simplification](Kernel::simplify). Loops with few
//!   iterations are unrolled, and local arrays are kept in registers. 64-bit indices become 32-bit ones if
//!   [promises](Builder::assume), loop bounds and [`LaunchBounds`] show that they fit. Products are fused
//!   with sums ([`Lowering::contract`]).
//! - [`traced::Traced`] provides values with the operators of Rust, for closures that are called once to be
//!   recorded.
//! - [`op`] defines the result of each operation, including corner cases.
//!
//! A function and a kernel that applies it to every element:
//!
//! ```
//! use broadloom_scalar::{Axis, Builder, Element, LaunchBounds, Type, lower};
//!
//! // x ↦ 1 + x + x² + … + xⁿ, by Horner's rule.
//! let f = Builder::function("geometric");
//! let (x, n) = (f.parameter("x", Type::F32), f.parameter("n", Type::I32));
//! let sum = f.variable_with(f.constant(Type::F32, 1.0));
//! f.for_range(0, n, |_| f.set(sum, f.add(f.mul(f.get(sum), x), 1.0)));
//! let geometric = f.finish_function(&[f.get(sum)]).unwrap();
//! assert_eq!(geometric.evaluate(&[2.0f32.into(), 3i32.into()]).unwrap(), [15.0f32.into()]);
//!
//! let k = Builder::kernel("map_geometric");
//! k.launch_bounds(LaunchBounds::block(256));
//! let (input, output) = (k.pointer("input", Element::F32), k.pointer("output", Element::F32));
//! let (count, n) = (k.parameter("count", Type::U32), k.parameter("n", Type::I32));
//! let i = k.global_thread(Axis::X);
//! k.if_then(k.lt(i, count), || {
//!     let x = k.load(input, i);
//!     let y = k.inline(&geometric, &[x, n], &mut []);
//!     k.store(output, i, y[0]);
//! });
//! let kernel = k.finish_kernel().unwrap();
//! let module = lower(&[kernel]).unwrap();
//! assert_eq!(module.kernels().count(), 1);
//! ```

mod address;
mod binding;
mod body;
mod builder;
mod declaration;
mod error;
mod eval;
mod forms;
mod function;
mod id;
mod inline;
mod kernel;
mod lower;
pub mod math;
mod math_function;
mod memory;
mod methods;
pub mod op;
mod print;
mod range;
mod rewrite;
mod schedule;
mod semantics;
mod simplify;
mod structure;
pub mod text;
pub mod traced;
mod types;

pub use binding::{Binding, popping, pushing, reading, windowing, writing};
pub use body::{ArrayDecl, Block, Body, MAX_NESTING, MAX_NODES, SharedDecl, Statement, Table, Unroll};
pub use builder::{Accessor, Array, Builder, Divisor, FastDivisor, Memory, Operand, Value, Variable};
pub use declaration::{AccessorDecl, AccessorKind, ParameterDecl, ParameterKind};
pub use error::{Error, Result};
pub use eval::{Environment, Lanes};
pub use forms::LinearForm;
pub use function::Function;
pub use id::{AccessorId, ArrayId, BlockId, Id, Ids, SharedId, TableId, Var};
pub use kernel::{Kernel, LaunchBounds};
pub use lower::{Lowering, lower, lower_with};
pub use math_function::{MathFunction, Precision};
pub use memory::{Access, Base, Cache, Level, Order, Scope};
pub use op::{AtomicOp, Axis, BinaryOp, CompareOp, Op, Shuffle, Special, UnaryOp, Vote, WarpReduce};
pub use types::{Element, Literal, Type};
