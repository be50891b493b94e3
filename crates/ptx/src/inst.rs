//! Instructions and their operands.

use crate::ids::{Block, Func, Loc, Proto, Reg, Targets, Var};
use crate::table::{Class, Effects, Form, FormId, Modifier, Opcode, Special};
use crate::types::{Space, Type};
use broadloom_diag::Span;
use smallvec::SmallVec;
use std::sync::LazyLock;

/// Modifiers of an instruction, one per slot of the form; `None` for an absent optional one.
pub type Modifiers = SmallVec<[Option<Modifier>; 8]>;

/// Instruction with its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct InstData {
    /// Guard `@p` or `@!p`.
    pub guard: Option<Guard>,
    /// Opcode and modifiers.
    pub mnemonic: Mnemonic,
    /// Operands, one per operand of the form. An omitted paired operand is [`Operand::Absent`]; optional
    /// operands at the end are missing.
    pub operands: SmallVec<[Operand; 4]>,
    /// Line of the high-level source, from `.loc`.
    pub loc: Option<Loc>,
    /// Location in the PTX text.
    pub span: Span,
}

/// Predicate that guards an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The predicate.
    pub reg: Reg,
    /// True if the instruction runs when the predicate is false.
    pub negated: bool,
}

/// Opcode and modifiers of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Mnemonic {
    /// Instruction of the table.
    Known {
        /// Form of the instruction.
        form: FormId,
        /// Selected modifiers, one per slot.
        modifiers: Modifiers,
    },
    /// Well-formed instruction that the table does not have, with all its modifiers.
    Opaque(Box<str>),
}

impl InstData {
    /// Returns the form, unless the instruction is opaque.
    pub fn form(&self) -> Option<&'static Form> {
        match &self.mnemonic {
            Mnemonic::Known { form, .. } => Some(form.get()),
            Mnemonic::Opaque(_) => None,
        }
    }

    /// Returns the opcode, unless the instruction is opaque.
    pub fn opcode(&self) -> Option<Opcode> {
        self.form().map(|form| form.opcode)
    }

    /// Returns the class, unless the instruction is opaque.
    pub fn class(&self) -> Option<Class> {
        self.opcode().map(|opcode| opcode.row().class)
    }

    /// Returns the effects. An opaque instruction is assumed to have the strongest effects.
    pub fn effects(&self) -> Effects {
        self.opcode().map_or(Effects::VISIBLE, |opcode| opcode.row().effects)
    }

    /// Tests if it loads from memory: `ld`, `ldu`.
    pub fn is_load(&self) -> bool {
        matches!(self.opcode(), Some(Opcode::Ld | Opcode::Ldu))
    }

    /// Tests if it stores to memory: `st`.
    pub fn is_store(&self) -> bool {
        self.opcode() == Some(Opcode::St)
    }

    /// Tests if it is an atomic memory operation: `atom`, `red`.
    pub fn is_atomic(&self) -> bool {
        self.class() == Some(Class::Atomic)
    }

    /// Tests if it is ordered among the accesses of other threads: volatile, relaxed, acquire, release or
    /// mmio.
    pub fn is_ordered(&self) -> bool {
        use Modifier::{Acquire, Mmio, Relaxed, Release, Volatile};
        self.modifiers().any(|modifier| matches!(modifier, Volatile | Relaxed | Acquire | Release | Mmio))
    }

    /// Tests if it uses the carry flag, which is not an operand.
    pub fn uses_carry(&self) -> bool {
        self.class() == Some(Class::Carry) || self.has(Modifier::Cc)
    }

    /// Returns the position of the operand that is the mask of participating lanes.
    pub fn members(&self) -> Option<usize> {
        let form = self.form().filter(|form| form.opcode.row().has_members)?;
        form.operands.iter().position(|spec| spec.name == "m")
    }

    /// Tests if it ends a block.
    pub fn is_control(&self) -> bool {
        self.effects().has(Effects::CONTROL)
    }

    /// Tests if control never continues after it: a jump, return, exit or trap without a guard.
    pub fn is_terminator(&self) -> bool {
        self.guard.is_none() && self.is_control()
    }

    /// Returns the modifiers that are present, in order.
    pub fn modifiers(&self) -> impl Iterator<Item = Modifier> + '_ {
        let slots: &[Option<Modifier>] = match &self.mnemonic {
            Mnemonic::Known { modifiers, .. } => modifiers,
            Mnemonic::Opaque(_) => &[],
        };
        slots.iter().filter_map(|slot| *slot)
    }

    /// Tests if a modifier is present.
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers().any(|m| m == modifier)
    }

    /// Returns the modifier in the slot that the table names with this letter.
    pub fn slot(&self, name: char) -> Option<Modifier> {
        let Mnemonic::Known { form, modifiers } = &self.mnemonic else { return None };
        let index = form.get().slots.iter().position(|slot| slot.name == Some(name))?;
        modifiers.get(index).copied().flatten()
    }

    /// Returns the types among the modifiers, in order, with the type of the instruction first.
    pub fn types(&self) -> impl Iterator<Item = Type> + '_ {
        self.modifiers().filter_map(Modifier::ty)
    }

    /// Returns the state space among the modifiers, or generic if there is none.
    pub fn space(&self) -> Space {
        self.modifiers().find_map(Modifier::space).unwrap_or(Space::Generic)
    }

    /// Returns the mnemonic with all modifiers, as printed.
    pub fn mnemonic_text(&self) -> String {
        match &self.mnemonic {
            Mnemonic::Known { form, .. } => {
                let mut text = form.get().opcode.name().to_owned();
                for modifier in self.modifiers() {
                    text.push('.');
                    text.push_str(modifier.text());
                }
                text
            }
            Mnemonic::Opaque(text) => text.to_string(),
        }
    }
}

impl Modifier {
    /// Returns the state space that it names, if any.
    pub fn space(self) -> Option<Space> {
        static SPACES: LazyLock<Vec<Option<Space>>> =
            LazyLock::new(|| Modifier::ALL.iter().map(|modifier| space_of(modifier.text())).collect());
        SPACES[self as usize]
    }
}

fn space_of(word: &str) -> Option<Space> {
    Some(match word {
        "const" => Space::Const,
        "global" => Space::Global,
        "local" => Space::Local,
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}

/// An immediate value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Imm {
    /// Integer in the range of `i64`.
    Int(i64),
    /// Integer above that range.
    Uint(u64),
    /// Bits of an `f32`, written `0f3F800000`.
    F32(u32),
    /// Bits of an `f64`, written `0d3FF0000000000000`.
    F64(u64),
}

impl Imm {
    /// Creates an integer from an unsigned value.
    pub fn from_u64(value: u64) -> Imm {
        i64::try_from(value).map_or(Imm::Uint(value), Imm::Int)
    }

    /// Returns the bits of an integer, extended to 64; `None` for floats.
    pub fn integer_bits(self) -> Option<u64> {
        match self {
            Imm::Int(value) => Some(value as u64),
            Imm::Uint(value) => Some(value),
            Imm::F32(_) | Imm::F64(_) => None,
        }
    }
}

/// Name that denotes an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable of the module, or of the function when `Var` is one of its own.
    Var(Var),
    /// A parameter or variable of the function.
    Local(Var),
    /// A function.
    Func(Func),
}

/// Base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A register.
    Reg(Reg),
    /// A name.
    Symbol(Symbol),
    /// None: the offset is the address.
    Absolute,
}

/// An address in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The register or variable that the offset is added to.
    pub base: Base,
    /// Constant offset.
    pub offset: i64,
}

/// Byte or half of a register, as selected by video instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Selector {
    B0,
    B1,
    B2,
    B3,
    H0,
    H1,
    /// Packed selectors of SIMD video instructions: `.b3210`, `.h10`, …, one digit per lane of the result.
    Lanes(u16),
    /// Result bytes that a SIMD video instruction writes, if two or three: `.b10`, `.b310`, …, one bit per
    /// byte.
    Mask(u8),
}

/// Texture, sampler and coordinates, or tensor map and coordinates, in brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct TextureOperand {
    /// The texture, surface or tensor map.
    pub base: Address,
    /// Sampler, coordinates and further operands, separated by commas.
    pub rest: Vec<Operand>,
}

/// Target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// Function by name.
    Direct(Func),
    /// Function pointer.
    Indirect {
        /// Register that holds the pointer.
        reg: Reg,
        /// Prototype of the function.
        proto: Option<Proto>,
    },
}

/// The operands of a `call`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Destinations of the results: registers or `.param` variables.
    pub results: Vec<Operand>,
    /// Target of the call.
    pub callee: Callee,
    /// Arguments: registers, immediates or `.param` variables.
    pub arguments: Vec<Operand>,
}

/// What an instruction reads, writes or jumps to.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// Negated predicate.
    Not(Reg),
    /// Register of a video instruction, possibly negated, possibly a part of it.
    Part {
        /// The register.
        reg: Reg,
        /// True if negated.
        negated: bool,
        /// Selected part.
        selector: Option<Selector>,
    },
    /// Immediate value.
    Imm(Imm),
    /// A special register.
    Special(Special),
    /// Address of a symbol, with an offset.
    Symbol(Symbol, i64),
    /// Address in brackets.
    Memory(Address),
    /// Texture or tensor in brackets.
    Texture(Box<TextureOperand>),
    /// Vector of operands in braces.
    Vector(Box<[Operand]>),
    /// The target of a branch.
    Label(Block),
    /// List of labels.
    Targets(Targets),
    /// Discarded result, `_`.
    Sink,
    /// Two operands joined by `|`, in an opaque instruction. Known instructions have separate operands.
    Pair(Box<[Operand; 2]>),
    /// Omitted optional paired operand.
    Absent,
    /// All operands of a `call`.
    Call(Box<Call>),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Operand::Reg(reg)
    }
}

impl From<Imm> for Operand {
    fn from(imm: Imm) -> Self {
        Operand::Imm(imm)
    }
}

impl From<Special> for Operand {
    fn from(special: Special) -> Self {
        Operand::Special(special)
    }
}

impl From<i32> for Operand {
    fn from(value: i32) -> Self {
        Operand::Imm(Imm::Int(i64::from(value)))
    }
}

impl From<u32> for Operand {
    fn from(value: u32) -> Self {
        Operand::Imm(Imm::Int(i64::from(value)))
    }
}

impl From<i64> for Operand {
    fn from(value: i64) -> Self {
        Operand::Imm(Imm::Int(value))
    }
}

impl From<u64> for Operand {
    fn from(value: u64) -> Self {
        Operand::Imm(Imm::from_u64(value))
    }
}

impl From<f32> for Operand {
    fn from(value: f32) -> Self {
        Operand::Imm(Imm::F32(value.to_bits()))
    }
}

impl From<f64> for Operand {
    fn from(value: f64) -> Self {
        Operand::Imm(Imm::F64(value.to_bits()))
    }
}

impl From<Address> for Operand {
    fn from(address: Address) -> Self {
        Operand::Memory(address)
    }
}

impl From<Block> for Operand {
    fn from(block: Block) -> Self {
        Operand::Label(block)
    }
}
