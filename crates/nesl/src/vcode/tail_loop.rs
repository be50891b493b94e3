//! Loop forms of functions: a function whose only recursion is its last call, as a loop. Its sequences are
//! parts of vectors that it reads, *tables*: a sequence is two parameters, its start and its length.
//!
//! A round of the loop executes a tree of blocks. Each leaf returns the results, or gives the parameters of
//! the next round. Registers are assigned once, except those that both branches of [`Step::Choose`] copy to.

use super::{Check, Op, Type};
use broadloom_diag::Span;
use std::sync::Arc;

/// Register of a loop: a scalar. The first ones are the parameters.
pub type Reg = u32;

/// Operand of a call, in the order of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopOperand {
    /// A parameter.
    Param,
    /// The segment descriptor of the tables that follow. It is not used.
    Pool,
    /// A table of this type.
    Table(Type),
}

/// Function as a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct TailLoop {
    /// The name of the function in the program.
    pub source: String,
    /// The operands of a call.
    pub operands: Vec<LoopOperand>,
    /// Types of the parameters.
    pub params: Vec<Type>,
    /// True for each parameter that no round changes.
    pub invariant: Vec<bool>,
    /// Types of the results.
    pub results: Vec<Type>,
    /// Types of all registers.
    pub registers: Vec<Type>,
    /// One round.
    pub round: LoopBlock,
    /// True if a step may end the run with an error.
    pub may_fail: bool,
    /// True if the loop has more than one round.
    pub repeats: bool,
    /// The parameters that are lengths of sequences that are never stored.
    pub extents: Vec<Reg>,
}

impl TailLoop {
    /// Returns the number of steps of a round, all branches included.
    pub fn size(&self) -> usize {
        self.round.size()
    }

    /// Returns the types of the tables.
    pub fn tables(&self) -> impl Iterator<Item = Type> + '_ {
        self.operands.iter().filter_map(|operand| match operand {
            LoopOperand::Table(ty) => Some(*ty),
            LoopOperand::Param | LoopOperand::Pool => None,
        })
    }
}

/// Steps, and what follows them.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopBlock {
    /// Computations of the block, in order.
    pub steps: Vec<Step>,
    /// The end of the round, or a branch.
    pub end: LoopEnd,
}

impl LoopBlock {
    fn size(&self) -> usize {
        let own: usize = self.steps.iter().map(Step::size).sum();
        own + match &self.end {
            LoopEnd::Return(_) | LoopEnd::Again(_) => 1,
            LoopEnd::If(_, branches) => 1 + branches.0.size() + branches.1.size(),
        }
    }
}

/// End of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopEnd {
    /// The results of the function.
    Return(Vec<Reg>),
    /// The parameters of the next round.
    Again(Vec<Reg>),
    /// A branch on a bool.
    If(Reg, Box<(LoopBlock, LoopBlock)>),
}

/// Step of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An int, or the bits of a float or a bool.
    Const(Reg, i64),
    /// An elementwise instruction. Unused operands are equal to the first.
    Op {
        /// The result.
        to: Reg,
        /// The instruction and its type suffix.
        op: Op,
        /// The type suffix.
        ty: Type,
        /// The operands.
        args: [Reg; 3],
        /// The expression that it belongs to.
        span: Span,
    },
    /// Reads an element of a table.
    Load {
        /// The result.
        to: Reg,
        /// The number of the table.
        table: usize,
        /// The index in the sequence, which is valid, and the start of the sequence.
        args: [Reg; 2],
    },
    /// Ends the run with an error unless the operands are valid. Unused operands are equal to the first.
    Check(Check, [Reg; 3], Span),
    /// Copies a register.
    Copy(Reg, Reg),
    /// Executes one of two lists of steps, by a bool.
    Choose(Reg, Vec<Step>, Vec<Step>),
    /// Ends the run with this error unless the bool is true.
    Require(Reg, Arc<str>, Span),
    /// Executes steps for each index of a sequence.
    Fold(Box<LoopFold>),
}

/// Steps for the indices from 0 to below a length, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFold {
    /// Number of executions of the steps.
    pub length: Reg,
    /// The current index, for the steps to read.
    pub index: Reg,
    /// Registers that keep their values for the next index.
    pub carried: Vec<Carried>,
    /// The steps for an index.
    pub steps: Vec<Step>,
}

/// Register that the steps for an index get from those for the index before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// The register. After the last index it holds the result.
    pub reg: Reg,
    /// The value for the first index.
    pub start: Reg,
    /// The value for the next index.
    pub next: Reg,
}

/// Estimated number of indices of a fold.
const FOLDED: usize = 16;

impl Step {
    fn size(&self) -> usize {
        match self {
            Step::Choose(_, then, otherwise) => 1 + then.iter().chain(otherwise).map(Step::size).sum::<usize>(),
            Step::Fold(fold) => 1 + FOLDED * fold.steps.iter().map(Step::size).sum::<usize>(),
            Step::Const(..) | Step::Op { .. } | Step::Load { .. } | Step::Check(..) | Step::Copy(..) | Step::Require(..) => 1,
        }
    }

    /// Tells whether the step may end the run with an error.
    pub fn may_fail(&self) -> bool {
        match self {
            Step::Op { op, .. } => op.failure().is_some(),
            Step::Check(..) | Step::Require(..) => true,
            Step::Fold(fold) => fold.steps.iter().any(Step::may_fail),
            Step::Choose(_, then, otherwise) => then.iter().chain(otherwise).any(Step::may_fail),
            Step::Const(..) | Step::Copy(..) | Step::Load { .. } => false,
        }
    }
}
