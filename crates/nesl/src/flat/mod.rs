//! Flattened programs: functions over flat vectors, in `let` form.
//!
//! ```text
//! core → flatten → flat → inline_calls → remove_dead_values → emit → vcode
//! ```
//!
//! Operations are those of VCODE, on named vectors instead of a stack. A [`Block`] is a straight-line region;
//! control flow is a call, or a conditional with two blocks. Every vector has a type and an index space, its
//! [`SpaceId`]. Vectors of one space have one length whatever the data is, so elementwise operations on them
//! can be done in one pass. A segment descriptor is a vector of lengths over its own space; the space of its
//! elements is that of the vectors it is used with. If a check finds that two descriptors have equal lengths
//! (`each`), the spaces of their elements are one from there on.
//!
//! Invariants, checked by [`verify`]:
//! - a vector is defined once, before its uses, in the block that uses it or in one around that;
//! - operands and results have the types that the operation requires;
//! - operands of an elementwise operation and its result have one space;
//! - both blocks of a conditional return vectors of the number and types of its results; a call passes
//!   vectors of the types of its callee's parameters.

mod build;
mod dead;
mod emit;
mod inline;
mod print;
mod verify;

pub(crate) use build::Builder;
pub use dead::remove_dead_values;
pub use emit::emit;
pub use inline::inline_calls;
pub use verify::verify;

use crate::vcode::{self, Check, Constant, Foreign, Sequential, TailLoop, Type};
use broadloom_diag::Span;
use cranelift_entity::{PrimaryMap, entity_impl};
use smallvec::SmallVec;
use std::sync::Arc;

/// Names a vector of a [`Function`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(u32);
entity_impl!(VarId, "v");

/// Names an index space of a [`Function`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(u32);
entity_impl!(SpaceId, "s");

/// Names a function of a [`Program`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(u32);
entity_impl!(FuncId, "f");

/// A vector.
#[derive(Clone, Copy, Debug)]
pub struct Var {
    /// The type of its elements; characters are ints.
    pub ty: Type,
    /// The index space.
    pub space: SpaceId,
}

/// An operation.
#[derive(Clone, Debug)]
pub enum Op {
    /// An instruction of VCODE with its type suffix. `PACK` returns the vector and the segment descriptor.
    Vector(vcode::Op, Type),
    /// A constant vector of the program.
    Const(Constant),
    /// Ends the run with an error unless its operands are valid.
    Check(Check),
    /// A function of the implementation, for every element.
    Foreign(Box<Foreign>),
    /// Calls a function of the program.
    Call(FuncId),
    /// Maps sizes of calls to the number of their execution mode (0 flattened, 1 both, 2 sequential) and the
    /// largest small size.
    Small,
    /// A call that may run sequentially; the function takes the same operands.
    Sequential(Arc<Sequential>, FuncId),
    /// A call that runs as a loop; the function takes the same operands.
    Loop(Arc<TailLoop>, FuncId),
    /// A conditional on a bool of one element, with the blocks for true and false.
    If(Box<(Block, Block)>),
}

/// Operands or results of an operation. Most have few.
pub type Vars = SmallVec<[VarId; 4]>;

/// An operation with its operands and the vectors that it defines.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// The operation.
    pub op: Op,
    /// The operands.
    pub args: Vars,
    /// The variables that it defines.
    pub results: Vars,
    /// The expression that it belongs to.
    pub span: Span,
}

/// A straight-line region, except for the conditionals in it.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The operations.
    pub stmts: Vec<Stmt>,
    /// The vectors that it returns.
    pub results: Vec<VarId>,
}

/// Flat code with parameters; its variables are vectors.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Unique name in the program.
    pub name: String,
    /// Name in the NESL program; `None` for functions of the library.
    pub source: Option<String>,
    /// The vectors.
    pub vars: PrimaryMap<VarId, Var>,
    /// Index spaces. A space that a check has found equal to another refers to that one.
    pub spaces: PrimaryMap<SpaceId, Option<SpaceId>>,
    /// The parameters.
    pub params: Vec<VarId>,
    /// The code.
    pub body: Block,
}

/// The functions of flat code, and the one that starts.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// All functions; calls refer to them by id.
    pub functions: PrimaryMap<FuncId, Function>,
    /// Entry function. The caller of the program provides its arguments.
    pub main: Option<FuncId>,
}

impl Op {
    /// Returns whether an operation can be left out if its results are not used, and done once for equal
    /// operands: it has no effect and cannot end the run with an error.
    ///
    /// Permutations are pure: flattening makes indices that it has checked or that are in range by
    /// construction. `MAKE_SEGDES` is pure for the same reason: lengths are checked before.
    pub fn is_pure(&self) -> bool {
        match self {
            Op::Vector(op, _) => op.failure().is_none() && !op.has_effect(),
            Op::Const(_) => true,
            Op::Foreign(call) => call.is_pure(),
            Op::Check(_) | Op::Call(_) | Op::Small | Op::Sequential(..) | Op::Loop(..) | Op::If(_) => false,
        }
    }
}
