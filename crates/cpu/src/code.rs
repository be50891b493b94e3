//! A kernel compiled for a block shape: what the compiler gives, the cache keeps and the runtime runs.

use crate::abi::Kind;
use broadloom_analysis::Proof;
use broadloom_device::place::SourcePlace;
use broadloom_diag::Span;
use broadloom_ptx::{Func, InstData, Operand, Reg, Selector, Var};

/// How memory accesses of a kernel were translated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// One access for the whole warp.
    pub uniform: u32,
    /// A plain vector access.
    pub contiguous: u32,
    /// A few vector accesses, or one with a known distance between lanes.
    pub strided: u32,
    /// Gathers and scatters.
    pub scattered: u32,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// An object file in memory (ELF, relocatable) whose only exported function is `kernel`.
    pub object: Vec<u8>,
    /// How it is run.
    pub kind: Kind,
    /// Local memory of one lane in bytes, a multiple of 16.
    pub local_bytes: u64,
    /// What a call needs behind the local memory of its first warp, in bytes: local memory of the others that it runs, and what they
    /// keep across barriers.
    pub kept_bytes: u64,
    /// What a thread touches of all arrays, in bytes, when some of them are only written; 0 when none is.
    pub stream_bytes: u64,
    /// Static shared memory in bytes; the dynamic part follows, aligned to 16.
    pub shared_bytes: u64,
    /// The module's variables and functions whose addresses the code takes from [`crate::abi::Warp::variables`].
    pub variables: Vec<Named>,
    /// Pure instructions that the runtime evaluates, by their place.
    pub operations: Vec<Rare>,
    /// Instructions that can fault by themselves.
    pub sites: Vec<Site>,
    /// Why the kernel is not run as vectors, when it is not.
    pub not_vectorised: Option<String>,
    /// How loads were translated.
    pub loads: Accesses,
    /// How stores were translated.
    pub stores: Accesses,
    /// What code that takes for granted that index arithmetic does not wrap needs of its launches; `None` when that is nothing, and then
    /// there is no other code.
    pub proof: Option<Proof>,
    /// Pointers among the parameters, by their offsets in the parameter block, that the code takes to lead to different buffers.
    pub apart: Vec<(u64, u64)>,
}

/// What has an address that only a loaded module knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// A global or constant variable of the module.
    Variable(Var),
    /// One that is declared inside of a function.
    Local(Func, Var),
    /// A function: [`crate::abi::function_address`] of it.
    Function(Func),
}

/// A pure instruction without its registers: enough to make an operation of it again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rare {
    /// The name with all modifiers.
    pub mnemonic: String,
    /// What stands at each operand.
    pub operands: Vec<RareOperand>,
}

/// What stands at an operand of a rare instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RareOperand {
    /// A value.
    Value,
    /// A part of a register, or one behind a minus.
    Part(bool, Option<Selector>),
    /// Several in braces.
    Vector(Vec<RareOperand>),
    /// Nothing, in the middle of others.
    Absent,
    /// A result that is thrown away.
    Sink,
}

impl Rare {
    /// What an instruction is without its registers.
    pub fn of(inst: &InstData) -> Rare {
        Rare { mnemonic: inst.mnemonic_text(), operands: inst.operands.iter().map(RareOperand::of).collect() }
    }

    /// An instruction like the one that it was made from, with other registers; `None` when the table has none like it.
    pub fn instruction(&self) -> Option<InstData> {
        InstData::of(&self.mnemonic, self.operands.iter().map(RareOperand::operand).filter(|operand| *operand != Operand::Absent))
    }
}

impl RareOperand {
    fn of(operand: &Operand) -> RareOperand {
        match operand {
            Operand::Part { negated, selector, .. } => RareOperand::Part(*negated, *selector),
            Operand::Vector(list) => RareOperand::Vector(list.iter().map(RareOperand::of).collect()),
            Operand::Absent => RareOperand::Absent,
            Operand::Sink => RareOperand::Sink,
            Operand::Reg(_) | Operand::Not(_) | Operand::Imm(_) | Operand::Special(_) | Operand::Symbol(..) => RareOperand::Value,
            Operand::Memory(_) | Operand::Texture(_) | Operand::Label(_) | Operand::Targets(_) => RareOperand::Value,
            Operand::Pair(_) | Operand::Call(_) => RareOperand::Value,
        }
    }

    fn operand(&self) -> Operand {
        let reg = Reg::from_u32(0);
        match self {
            RareOperand::Value => Operand::Reg(reg),
            RareOperand::Part(negated, selector) => Operand::Part { reg, negated: *negated, selector: *selector },
            RareOperand::Vector(list) => Operand::Vector(list.iter().map(RareOperand::operand).collect()),
            RareOperand::Absent => Operand::Absent,
            RareOperand::Sink => Operand::Sink,
        }
    }
}

/// An instruction that can fault, for messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The instruction as text.
    pub instruction: String,
    /// Its place in the PTX text: source, first byte, byte behind the last; `None` when it comes from no text.
    pub span: Option<Span>,
    /// The place in the high-level source.
    pub source: Option<SourcePlace>,
}
