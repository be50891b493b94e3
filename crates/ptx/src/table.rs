//! The instruction table: the contents of `instructions/*.inst` as data.
//!
//! A [`Row`] is an instruction; a [`Form`] is one of its forms, with its modifiers in order and its operands
//! with types. Parser, printer, builder, verifier, generators and the reference page all read this table.
//! Nothing else in the workspace lists instructions.

use crate::types::{IsaVersion, Type};
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// Row of the table: an instruction.
#[derive(Debug)]
pub struct Row {
    /// The opcode that the row describes.
    pub opcode: Opcode,
    /// Name in PTX, with the words that always follow: `bar.warp.sync`.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Heading in the manual.
    pub group: &'static str,
    /// Class of the instruction.
    pub class: Class,
    /// Effects besides computing a result.
    pub effects: Effects,
    /// True if the result depends only on the inputs: no memory, no other thread, no machine state.
    pub is_function: bool,
    /// True if host executors refuse it.
    pub is_refused: bool,
    /// True if an operand is the mask of participating lanes.
    pub has_members: bool,
    first_form: u16,
    form_count: u16,
}

impl Row {
    /// Tests if every executor runs it. Of classes that are not general, at least the forms that compilers
    /// emit are run; other forms may be refused with their location.
    pub fn is_general(&self) -> bool {
        !self.is_refused
    }

    /// Returns the forms of the instruction, in the order in which they are tried.
    pub fn forms(&self) -> impl Iterator<Item = FormId> + use<> {
        (self.first_form..self.first_form + self.form_count).map(FormId)
    }

    /// Returns all instructions in table order.
    pub fn all() -> &'static [Row] {
        &ROWS
    }
}

impl Opcode {
    /// Returns the entry of the instruction table.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns its name in PTX.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Tests if it is a warp operation on the active lanes, without a member mask: `shfl`, `vote`,
    /// `activemask`.
    pub fn takes_active_lanes(self) -> bool {
        let row = self.row();
        row.class == Class::Warp && !row.has_members
    }
}

/// Index of a form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FormId(u16);

impl FormId {
    /// Returns the form.
    pub fn get(self) -> &'static Form {
        &FORMS[usize::from(self.0)]
    }

    /// Returns its index in the table.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Debug for FormId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.get().opcode.name(), self.get().notation)
    }
}

/// Form of an instruction.
#[derive(Debug)]
pub struct Form {
    /// The opcode of the row that it belongs to.
    pub opcode: Opcode,
    /// Modifiers and operands in the table's notation.
    pub notation: &'static str,
    /// PTX version that introduced it.
    pub isa: IsaVersion,
    /// First target that supports it.
    pub sm: u16,
    /// List of the only targets that support it.
    pub only: Option<&'static str>,
    /// Exactness of its result.
    pub exactness: Exactness,
    /// Modifiers, in order.
    pub slots: &'static [Slot],
    /// Operands, in order.
    pub operands: &'static [OperandSpec],
}

/// Slot of a modifier.
#[derive(Debug)]
pub struct Slot {
    /// Name by which operands refer to it.
    pub name: Option<char>,
    /// True if it may be omitted.
    pub optional: bool,
    /// Modifiers allowed in the slot.
    pub choices: &'static [Modifier],
}

/// Specification of an operand.
#[derive(Debug)]
pub struct OperandSpec {
    /// Name in the manual.
    pub name: &'static str,
    /// True if the instruction writes it.
    pub written: bool,
    /// Kind of the operand.
    pub kind: OperandKind,
    /// Rule for its type.
    pub ty: TypeRule,
    /// Number of registers.
    pub length: Length,
    /// True if the register may be wider than the type.
    pub wider: bool,
    /// True if `_` is allowed.
    pub sink: bool,
    /// True if a special register or the address of a symbol is allowed.
    pub symbol: bool,
    /// True if it is joined to the previous operand with `|`.
    pub paired: bool,
    /// Presence of the operand.
    pub presence: Presence,
}

impl OperandSpec {
    /// Returns the type that the modifiers give it; `None` if it has none.
    pub fn type_in(&self, modifiers: &[Option<Modifier>]) -> Option<Type> {
        let slot = |index: u8| modifiers.get(usize::from(index)).copied().flatten().and_then(Modifier::ty);
        match self.ty {
            TypeRule::Untyped => None,
            TypeRule::Slot(index) => slot(index),
            TypeRule::Wide(index) => slot(index).and_then(Type::widened),
            TypeRule::Fixed(ty) => Some(ty),
        }
    }
}

/// What may stand at the place of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// Register or, when read, immediate.
    Value,
    /// A number in the text of the instruction.
    Immediate,
    /// Predicate, possibly negated.
    Negatable,
    /// Address in brackets.
    Memory,
    /// Texture with coordinates, in brackets.
    Texture,
    /// Tensor map with coordinates, in brackets.
    Tensor,
    /// The label of a block.
    Label,
    /// A list of labels.
    Targets,
    /// All operands of a `call`.
    Call,
}

/// Rule that derives the type of an operand from the modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeRule {
    /// No type.
    Untyped,
    /// Type in the slot with this index.
    Slot(u8),
    /// Type of twice the width of the slot's type.
    Wide(u8),
    /// Fixed type.
    Fixed(Type),
}

/// Number of registers of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// A scalar.
    One,
    /// The number given by the slot with this index (`.v2`, `.v4`, …), or one if the slot is empty.
    Slot(u8),
    /// This number, in braces.
    Exactly(u8),
    /// One, or any number in braces.
    Any,
    /// Two or more in braces, together as wide as the type.
    Parts,
}

/// Presence of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// Always present.
    Required,
    /// May be omitted together with all that follow.
    Optional,
    /// Present exactly when the previous operand is.
    WithPrevious,
}

/// Exactness of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exactness {
    /// Exact: there is one correct result.
    Exact,
    /// Error bound in the manual's words.
    Error(&'static str),
}

/// Effects of an instruction besides computing its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Effects(u16);

impl Effects {
    /// Reads memory.
    pub const READ: Effects = Effects(1);
    /// Writes memory.
    pub const WRITE: Effects = Effects(2);
    /// Reads and writes memory atomically.
    pub const ATOMIC: Effects = Effects(4);
    /// Waits for other threads of the CTA.
    pub const BARRIER: Effects = Effects(8);
    /// Exchanges data with, or waits for, lanes of the warp.
    pub const WARP: Effects = Effects(16);
    /// Ends a block.
    pub const CONTROL: Effects = Effects(32);
    /// Calls a function.
    pub const CALL: Effects = Effects(64);
    /// Ends the kernel with an error.
    pub const TRAP: Effects = Effects(128);
    /// Orders memory accesses.
    pub const FENCE: Effects = Effects(256);
    /// Returns a different result each time.
    pub const VARIES: Effects = Effects(512);
    /// Has an effect visible outside of the kernel.
    pub const VISIBLE: Effects = Effects(1024);
    /// Reports whether other threads have arrived, and is polled until they have.
    pub const POLL: Effects = Effects(2048);

    /// Tests if all of `other` are included.
    pub const fn has(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Tests if any of `other` are included.
    pub const fn has_any(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// Tests if memory is read.
    pub const fn reads_memory(self) -> bool {
        self.has_any(Effects(Effects::READ.0 | Effects::ATOMIC.0))
    }

    /// Tests if memory is written.
    pub const fn writes_memory(self) -> bool {
        self.has_any(Effects(Effects::WRITE.0 | Effects::ATOMIC.0))
    }

    /// Tests if memory is read, or a function is called that may read it.
    pub const fn may_read(self) -> bool {
        self.reads_memory() || self.has(Effects::CALL)
    }

    /// Tests if memory is written, or a function is called that may write it.
    pub const fn may_write(self) -> bool {
        self.writes_memory() || self.has(Effects::CALL)
    }

    /// Tests if there are no effects: the instruction may be removed, repeated or moved.
    pub const fn is_pure(self) -> bool {
        self.0 == 0
    }
}

/// Row of a special register.
#[derive(Debug)]
pub struct SpecialRow {
    /// Name in PTX.
    pub name: &'static str,
    /// Type.
    pub ty: Type,
    /// One-line description.
    pub summary: &'static str,
    /// PTX version that introduced it.
    pub isa: IsaVersion,
    /// First target that supports it.
    pub sm: u16,
    /// Threads that share its value.
    pub scope: Scope,
    /// True if its value may change over time: clocks, counters, and the location of a thread.
    pub varies: bool,
}

/// Threads that share the value of a special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// One thread.
    Thread,
    /// The threads of a warp.
    Warp,
    /// The threads of a block.
    Block,
    /// All threads of the launch.
    Launch,
}

impl Special {
    /// Tests if all threads of a block always read the same value from it.
    pub fn is_same_in_block(self) -> bool {
        self.row().scope >= Scope::Block && !self.row().varies
    }
}

impl Modifier {
    /// Returns the type of this name, if it is one.
    pub fn ty(self) -> Option<Type> {
        static TYPES: LazyLock<Vec<Option<Type>>> =
            LazyLock::new(|| Modifier::ALL.iter().map(|modifier| Type::from_name(modifier.text())).collect());
        TYPES[self as usize]
    }

    /// Returns the number of elements of a vector modifier (`.v2`, `.v4`, `.v8`).
    pub fn vector_length(self) -> Option<u8> {
        match self.text() {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        }
    }
}

impl Form {
    /// Renders the syntax: `add[.rn|.rz|.rm|.rp][.ftz][.sat].f32 d, a, b`. Optional parts are in brackets.
    pub fn syntax(&self) -> String {
        const SHOWN: usize = 8;
        let mut text = self.opcode.name().to_owned();
        for slot in self.slots {
            let mut choices: Vec<String> = slot.choices.iter().take(SHOWN).map(|choice| format!(".{}", choice.text())).collect();
            if slot.choices.len() > SHOWN {
                choices.push("…".to_owned());
            }
            let (open, close) = match (slot.optional, choices.len()) {
                (true, _) => ("[", "]"),
                (false, 1) => ("", ""),
                (false, _) => ("{", "}"),
            };
            text.push_str(open);
            text.push_str(&choices.join("|"));
            text.push_str(close);
        }
        let operands = self.operand_notation(&[]);
        if !operands.is_empty() {
            text.push(' ');
            text.push_str(&operands);
        }
        text
    }

    /// Renders the operands: `d, a, [b]`. Vectors have the length that the modifiers give.
    pub fn operand_notation(&self, modifiers: &[Option<Modifier>]) -> String {
        let mut text = String::new();
        let mut open = 0;
        for (index, spec) in self.operands.iter().enumerate() {
            let optional = spec.presence == Presence::Optional;
            if optional {
                text.push('[');
            }
            if index > 0 {
                text.push_str(if spec.paired { "|" } else { ", " });
            }
            let count = match spec.length {
                Length::One | Length::Any | Length::Parts => None,
                Length::Exactly(count) => Some(count),
                Length::Slot(slot) => modifiers.get(usize::from(slot)).copied().flatten().and_then(Modifier::vector_length),
            };
            let name = spec.name;
            text.push_str(&match (spec.kind, spec.length, count) {
                (OperandKind::Call, ..) => "[(results), ]function[, (arguments)][, prototype]".to_owned(),
                (OperandKind::Memory, ..) => format!("[{name}]"),
                (OperandKind::Texture | OperandKind::Tensor, ..) => format!("[{name}, {{…}}]"),
                (_, Length::Parts, _) => format!("{{{name}0, …}}"),
                (_, _, Some(count @ 5..)) => format!("{{{name}0, …, {name}{}}}", count - 1),
                (_, _, Some(count)) => {
                    let names: Vec<String> = (0..count).map(|number| format!("{name}{number}")).collect();
                    format!("{{{}}}", names.join(", "))
                }
                (_, Length::One | Length::Any | Length::Slot(_) | Length::Exactly(_), None) => name.to_owned(),
            });
            if optional && spec.paired {
                text.push(']');
            } else if optional {
                open += 1;
            }
        }
        text.push_str(&"]".repeat(open));
        text
    }
}
