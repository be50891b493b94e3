//! Kernel compiled for a block shape. The compiler produces it, the cache stores it and the runtime runs it.

use crate::abi::Kind;
use broadloom_analysis::Proof;
use broadloom_device::place::SourcePlace;
use broadloom_diag::Span;
use broadloom_ptx::{Func, InstData, Operand, Reg, Selector, Var};

/// Number of memory accesses of a kernel, by their translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// One access for the whole warp.
    pub uniform: u32,
    /// A plain vector access.
    pub contiguous: u32,
    /// A few vector accesses, or one with a known stride.
    pub strided: u32,
    /// Gathers and scatters.
    pub scattered: u32,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// An object file in memory (ELF, relocatable) whose only exported function is `kernel`.
    pub object: Vec<u8>,
    /// Execution mode.
    pub kind: Kind,
    /// Local memory of one lane in bytes, a multiple of 16.
    pub local_bytes: u64,
    /// Bytes that a call needs after the local memory of its first warp: local memory of the other warps that
    /// it runs, and their values kept across barriers.
    pub kept_bytes: u64,
    /// Bytes of all arrays that a thread touches, if some arrays are write-only; else 0.
    pub stream_bytes: u64,
    /// Static shared memory in bytes; the dynamic part follows, aligned to 16.
    pub shared_bytes: u64,
    /// Variables and functions of the module whose addresses the code reads from
    /// [`crate::abi::Warp::variables`].
    pub variables: Vec<AddressedItem>,
    /// Pure instructions that the runtime evaluates, by index.
    pub operations: Vec<RareInstruction>,
    /// Instructions that can fault by themselves.
    pub sites: Vec<FaultSite>,
    /// Reason why the kernel is not vectorised, if it is not.
    pub not_vectorised: Option<String>,
    /// Translation of loads.
    pub loads: Accesses,
    /// Translation of stores.
    pub stores: Accesses,
    /// Condition on launches for code that assumes that index arithmetic does not wrap. `None` if there is no
    /// condition; then there is no second version of the code.
    pub proof: Option<Proof>,
    /// Pairs of pointer parameters, by offset in the parameter block, that the code assumes to point to
    /// different buffers.
    pub apart: Vec<(u64, u64)>,
}

/// Item whose address only a loaded module knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressedItem {
    /// A global or constant variable of the module.
    Variable(Var),
    /// Variable declared inside a function.
    Local(Func, Var),
    /// A function: [`crate::abi::function_address`] of it.
    Function(Func),
}

/// Pure instruction without its registers. The instruction can be rebuilt from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RareInstruction {
    /// Name with all modifiers.
    pub mnemonic: String,
    /// Operands in order.
    pub operands: Vec<RareOperand>,
}

/// Operand of a rare instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RareOperand {
    /// A number that the instruction reads at run time.
    Value,
    /// Part of a register, or a negated register.
    Part(bool, Option<Selector>),
    /// Several operands in braces.
    Vector(Vec<RareOperand>),
    /// Absent operand between others.
    Absent,
    /// Discarded result.
    Sink,
}

impl RareInstruction {
    /// Returns an instruction without its registers.
    pub fn of(inst: &InstData) -> RareInstruction {
        RareInstruction { mnemonic: inst.mnemonic_text(), operands: inst.operands.iter().map(RareOperand::of).collect() }
    }

    /// Rebuilds the instruction with other registers. Returns `None` if the table has no such instruction.
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

/// Instruction that can fault, for messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FaultSite {
    /// The instruction as text.
    pub instruction: String,
    /// Span in the PTX text: source, first byte, byte after the last. `None` if it comes from no text.
    pub span: Option<Span>,
    /// Position in the high-level source.
    pub source: Option<SourcePlace>,
}
