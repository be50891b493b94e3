//! Instructions and their operands.

use crate::module::{Block, Func, Loc, Proto, Reg, Targets, Var};
use crate::select;
use crate::table::{Class, Effects, Form, FormId, Modifier, Opcode, Special};
use crate::types::{Space, Type};
use broadloom_diag::Span;
use smallvec::SmallVec;
use std::sync::LazyLock;

/// One modifier per slot of the form, `None` where an optional one is absent.
pub type Modifiers = SmallVec<[Option<Modifier>; 8]>;

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct InstData {
    /// `@p` or `@!p` before it.
    pub guard: Option<Guard>,
    /// What it does.
    pub mnemonic: Mnemonic,
    /// One per operand of the form. A paired operand that was left out is [`Operand::Absent`]; optional ones at the end are
    /// missing.
    pub operands: SmallVec<[Operand; 4]>,
    /// The line of the high-level source, from `.loc`.
    pub loc: Option<Loc>,
    /// The place in the PTX text.
    pub span: Span,
}

/// A predicate before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The predicate.
    pub reg: Reg,
    /// Whether the instruction runs when it is false.
    pub negated: bool,
}

/// Which instruction it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Mnemonic {
    /// One of the table.
    Known {
        /// The shape.
        form: FormId,
        /// The modifiers chosen, one per slot.
        modifiers: Modifiers,
    },
    /// A well-formed instruction that the table does not have, with all its modifiers.
    Opaque(Box<str>),
}

impl InstData {
    /// The instruction that a mnemonic such as `selp.b32` and its operands mean, without a guard; `None` when the table has none
    /// like it. A second result joined by `|` follows the first.
    ///
    /// ```
    /// use broadloom_ptx::{InstData, Opcode, Operand, Reg};
    /// let (a, b) = (Reg::from_u32(0), Reg::from_u32(1));
    /// let add = InstData::of("add.u32", [Operand::Reg(a), Operand::Reg(b), Operand::from(1)]).unwrap();
    /// assert_eq!(add.opcode(), Some(Opcode::Add));
    /// assert!(InstData::of("add.u33", []).is_none());
    /// ```
    pub fn of(mnemonic: &str, operands: impl IntoIterator<Item = Operand>) -> Option<InstData> {
        let mut words = mnemonic.split('.');
        let root = words.next()?;
        let words: Vec<&str> = words.collect();
        let operands: Vec<Operand> = operands.into_iter().collect();
        select::candidates(root, &words).into_iter().find_map(|(form, modifiers)| {
            let pairs: Vec<bool> = form.get().operands.iter().map(|spec| spec.paired).take(operands.len()).collect();
            let pairs = if pairs.len() == operands.len() { pairs } else { vec![false; operands.len()] };
            let apart = vec![false; operands.len()];
            let places = select::fill_operands(form, &modifiers, &operands, &apart)
                .or_else(|| select::fill_operands(form, &modifiers, &operands, &pairs))?;
            let operands = places.into_iter().map(|place| place.cloned().unwrap_or(Operand::Absent)).collect();
            Some(InstData {
                guard: None,
                mnemonic: Mnemonic::Known { form, modifiers },
                operands,
                loc: None,
                span: Span::default(),
            })
        })
    }

    /// The shape, unless the instruction is opaque.
    pub fn form(&self) -> Option<&'static Form> {
        match &self.mnemonic {
            Mnemonic::Known { form, .. } => Some(form.get()),
            Mnemonic::Opaque(_) => None,
        }
    }

    /// The instruction, unless it is opaque.
    pub fn opcode(&self) -> Option<Opcode> {
        self.form().map(|form| form.opcode)
    }

    /// The class of the instruction, unless it is opaque.
    pub fn class(&self) -> Option<Class> {
        self.opcode().map(|opcode| opcode.row().class)
    }

    /// Its effects; nothing is known of an opaque instruction, so it has the worst.
    pub fn effects(&self) -> Effects {
        self.opcode().map_or(Effects::VISIBLE, |opcode| opcode.row().effects)
    }

    /// Whether it loads from memory: `ld`, `ldu`.
    pub fn is_load(&self) -> bool {
        matches!(self.opcode(), Some(Opcode::Ld | Opcode::Ldu))
    }

    /// Whether it stores to memory: `st`.
    pub fn is_store(&self) -> bool {
        self.opcode() == Some(Opcode::St)
    }

    /// Whether it is an atomic of memory: `atom`, `red`.
    pub fn is_atomic(&self) -> bool {
        self.class() == Some(Class::Atomic)
    }

    /// Whether it is ordered among the accesses of other threads: volatile, relaxed, acquire, release or mmio.
    pub fn is_ordered(&self) -> bool {
        use Modifier::{Acquire, Mmio, Relaxed, Release, Volatile};
        self.modifiers().any(|modifier| matches!(modifier, Volatile | Relaxed | Acquire | Release | Mmio))
    }

    /// Whether it uses the carry flag, which is no operand.
    pub fn uses_carry(&self) -> bool {
        self.class() == Some(Class::Carry) || self.has(Modifier::Cc)
    }

    /// The position of the operand that names the lanes of the warp that take part.
    pub fn members(&self) -> Option<usize> {
        let form = self.form().filter(|form| form.opcode.row().has_members)?;
        form.operands.iter().position(|spec| spec.name == "m")
    }

    /// Whether it ends a block.
    pub fn is_control(&self) -> bool {
        self.effects().has(Effects::CONTROL)
    }

    /// Whether control never goes on behind it: a jump, return, exit or trap without a guard.
    pub fn is_terminator(&self) -> bool {
        self.guard.is_none() && self.is_control()
    }

    /// The modifiers that are there, in order.
    pub fn modifiers(&self) -> impl Iterator<Item = Modifier> + '_ {
        let slots: &[Option<Modifier>] = match &self.mnemonic {
            Mnemonic::Known { modifiers, .. } => modifiers,
            Mnemonic::Opaque(_) => &[],
        };
        slots.iter().filter_map(|slot| *slot)
    }

    /// Whether a modifier is there.
    pub fn has(&self, modifier: Modifier) -> bool {
        self.modifiers().any(|m| m == modifier)
    }

    /// The modifier in the slot that the table names with this letter.
    pub fn slot(&self, name: char) -> Option<Modifier> {
        let Mnemonic::Known { form, modifiers } = &self.mnemonic else { return None };
        let index = form.get().slots.iter().position(|slot| slot.name == Some(name))?;
        modifiers.get(index).copied().flatten()
    }

    /// The types among the modifiers, in order: the type of the instruction first.
    pub fn types(&self) -> impl Iterator<Item = Type> + '_ {
        self.modifiers().filter_map(Modifier::ty)
    }

    /// The state space among the modifiers; generic when none is named.
    pub fn space(&self) -> Space {
        self.modifiers().find_map(Modifier::space).unwrap_or(Space::Generic)
    }

    /// The name with all modifiers, as it is printed.
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
    /// The state space that it names, if it is one.
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
    /// An integer that fits a signed one.
    Int(i64),
    /// An integer above that.
    Uint(u64),
    /// The bits of an `f32`, written `0f3F800000`.
    F32(u32),
    /// The bits of an `f64`, written `0d3FF0000000000000`.
    F64(u64),
}

impl Imm {
    /// The integer from 64 bits without a sign.
    pub fn from_u64(value: u64) -> Imm {
        i64::try_from(value).map_or(Imm::Uint(value), Imm::Int)
    }

    /// The bits of an integer, extended to 64; `None` for floats.
    pub fn integer_bits(self) -> Option<u64> {
        match self {
            Imm::Int(value) => Some(value as u64),
            Imm::Uint(value) => Some(value),
            Imm::F32(_) | Imm::F64(_) => None,
        }
    }
}

/// A name that stands for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable of the module, or of the function when `Var` is one of its own.
    Var(Var),
    /// A parameter or variable of the function.
    Local(Var),
    /// A function.
    Func(Func),
}

/// The start of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A register.
    Reg(Reg),
    /// A name.
    Symbol(Symbol),
    /// Nothing: the offset is the address.
    Absolute,
}

/// An address in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The start.
    pub base: Base,
    /// The offset that is added.
    pub offset: i64,
}

/// A byte or half of a register, as video instructions select it.
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
    /// Bytes of the result that a SIMD video instruction writes, when they are two or three: `.b10`, `.b310`, …, one bit per byte.
    Mask(u8),
}

/// A texture, sampler and coordinates, or a tensor map and coordinates, in brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct TextureOperand {
    /// The texture, surface or tensor map.
    pub base: Address,
    /// The sampler, coordinates and whatever follows, separated by commas.
    pub rest: Vec<Operand>,
}

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A function by name.
    Direct(Func),
    /// Whatever function the register points to.
    Indirect {
        /// The register.
        reg: Reg,
        /// The prototype of the function.
        proto: Option<Proto>,
    },
}

/// The operands of a `call`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Where results go: registers or `.param` variables.
    pub results: Vec<Operand>,
    /// Who is called.
    pub callee: Callee,
    /// Arguments: registers, immediates or `.param` variables.
    pub arguments: Vec<Operand>,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A predicate behind `!`.
    Not(Reg),
    /// A register of a video instruction, perhaps negated, perhaps only a part of it.
    Part {
        /// The register.
        reg: Reg,
        /// Whether a minus stands before it.
        negated: bool,
        /// Which part.
        selector: Option<Selector>,
    },
    /// An immediate.
    Imm(Imm),
    /// A special register.
    Special(Special),
    /// The address of a name.
    Symbol(Symbol, i64),
    /// An address in brackets.
    Memory(Address),
    /// A texture or tensor in brackets.
    Texture(Box<TextureOperand>),
    /// Several in braces.
    Vector(Box<[Operand]>),
    /// A place in the code.
    Label(Block),
    /// A list of places.
    Targets(Targets),
    /// `_`: the result is thrown away.
    Sink,
    /// Two joined by `|`, in an opaque instruction. Known instructions have one operand each.
    Pair(Box<[Operand; 2]>),
    /// An optional paired operand that was left out.
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
