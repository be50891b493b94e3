//! The instruction table: what `instructions/*.inst` says, as data.
//!
//! A [`Row`] is an instruction, a [`Form`] one of its shapes: which modifiers in which order, which operands of which
//! types. Everything that knows instructions (parser, printer, builder, verifier, generators, the reference page) reads it
//! here; nothing else in the workspace lists them.

use crate::types::{IsaVersion, Type};
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// An instruction.
#[derive(Debug)]
pub struct Row {
    /// The instruction.
    pub opcode: Opcode,
    /// Its name in PTX, with the words that always follow: `bar.warp.sync`.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// The heading it stands under in the manual.
    pub group: &'static str,
    /// Its kind of work.
    pub class: Class,
    /// Its effects beside computing a result.
    pub effects: Effects,
    /// Whether it is a function of its inputs: no memory, no other thread, no machine.
    pub is_function: bool,
    /// Whether executors on the host refuse it.
    pub is_refused: bool,
    /// Whether an operand names the lanes of the warp that take part.
    pub has_members: bool,
    first_form: u16,
    form_count: u16,
}

impl Row {
    /// Whether every executor runs it, of classes that are not general at least the forms that compilers emit; the others may be
    /// refused, with their place.
    pub fn is_general(&self) -> bool {
        !self.is_refused
    }

    /// Its shapes.
    pub fn forms(&self) -> impl Iterator<Item = FormId> + use<> {
        (self.first_form..self.first_form + self.form_count).map(FormId)
    }

    /// All instructions, in the order of the table.
    pub fn all() -> &'static [Row] {
        &ROWS
    }
}

impl Opcode {
    /// Its row.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name in PTX.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is a warp operation of the lanes that are active, without a mask of members: `shfl`, `vote`, `activemask`.
    pub fn takes_active_lanes(self) -> bool {
        let row = self.row();
        row.class == Class::Warp && !row.has_members
    }
}

/// Names one shape of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FormId(u16);

impl FormId {
    /// The shape.
    pub fn get(self) -> &'static Form {
        &FORMS[usize::from(self.0)]
    }

    /// Its number in the table.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Debug for FormId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.get().opcode.name(), self.get().notation)
    }
}

/// One shape of an instruction.
#[derive(Debug)]
pub struct Form {
    /// The instruction.
    pub opcode: Opcode,
    /// Modifiers and operands as the table writes them.
    pub notation: &'static str,
    /// The version of PTX that brought it.
    pub isa: IsaVersion,
    /// The first target that has it.
    pub sm: u16,
    /// The targets that alone have it.
    pub only: Option<&'static str>,
    /// How exact its result is.
    pub exactness: Exactness,
    /// Its modifiers, in order.
    pub slots: &'static [Slot],
    /// Its operands, in order.
    pub operands: &'static [OperandSpec],
}

/// A place for a modifier.
#[derive(Debug)]
pub struct Slot {
    /// How operands refer to it.
    pub name: Option<char>,
    /// Whether it may be left out.
    pub optional: bool,
    /// What may stand there.
    pub choices: &'static [Modifier],
}

/// A place for an operand.
#[derive(Debug)]
pub struct OperandSpec {
    /// The manual's name.
    pub name: &'static str,
    /// Whether the instruction writes it.
    pub written: bool,
    /// What may stand there.
    pub kind: OperandKind,
    /// Of which type.
    pub ty: TypeRule,
    /// How many registers.
    pub length: Length,
    /// Whether the register may be wider than the type.
    pub wider: bool,
    /// Whether `_` may stand there.
    pub sink: bool,
    /// Whether the address of a symbol or a special register may stand there.
    pub symbol: bool,
    /// Whether it is joined to the one before with `|`.
    pub paired: bool,
    /// Whether it may be left out.
    pub presence: Presence,
}

impl OperandSpec {
    /// The type that the modifiers give it; `None` when it has none.
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

/// Kinds of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// A register or, when read, an immediate.
    Value,
    /// An immediate.
    Immediate,
    /// A predicate, perhaps behind `!`.
    Negatable,
    /// An address in brackets.
    Memory,
    /// A texture with coordinates, in brackets.
    Texture,
    /// A tensor map with coordinates, in brackets.
    Tensor,
    /// A label.
    Label,
    /// A list of labels.
    Targets,
    /// All operands of a `call`.
    Call,
}

/// How the type of an operand follows from the modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeRule {
    /// It has none.
    Untyped,
    /// The type in the slot with this index.
    Slot(u8),
    /// Twice as wide as what the slot says.
    Wide(u8),
    /// Always this one.
    Fixed(Type),
}

/// How many registers an operand has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// One.
    One,
    /// As many as the slot with this index says (`.v2`, `.v4`, …), one if it is empty.
    Slot(u8),
    /// This many, in braces.
    Exactly(u8),
    /// One, or any number in braces.
    Any,
    /// Two or more in braces that together are as wide as the type.
    Parts,
}

/// Whether an operand may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// Always there.
    Required,
    /// May be left out, with all that follow.
    Optional,
    /// There exactly when the one before is.
    WithPrevious,
}

/// How exact a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exactness {
    /// One result is right, and that one is given.
    Exact,
    /// The manual allows an error, in these words.
    Error(&'static str),
}

/// Effects of an instruction beside computing its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Effects(u16);

impl Effects {
    /// Reads memory.
    pub const READ: Effects = Effects(1);
    /// Writes memory.
    pub const WRITE: Effects = Effects(2);
    /// Reads and writes memory in one step.
    pub const ATOMIC: Effects = Effects(4);
    /// Waits for other threads of the CTA.
    pub const BARRIER: Effects = Effects(8);
    /// Exchanges with, or waits for, lanes of the warp.
    pub const WARP: Effects = Effects(16);
    /// Ends a block.
    pub const CONTROL: Effects = Effects(32);
    /// Calls a function.
    pub const CALL: Effects = Effects(64);
    /// Ends the kernel with an error.
    pub const TRAP: Effects = Effects(128);
    /// Orders memory accesses.
    pub const FENCE: Effects = Effects(256);
    /// Gives another result each time.
    pub const VARIES: Effects = Effects(512);
    /// Is seen from outside.
    pub const VISIBLE: Effects = Effects(1024);
    /// Tells whether others have come, and is asked until they have.
    pub const POLL: Effects = Effects(2048);

    /// Whether all of `other` are among these.
    pub const fn has(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether some of `other` are among these.
    pub const fn has_any(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether memory is read.
    pub const fn reads_memory(self) -> bool {
        self.has_any(Effects(Effects::READ.0 | Effects::ATOMIC.0))
    }

    /// Whether memory is written.
    pub const fn writes_memory(self) -> bool {
        self.has_any(Effects(Effects::WRITE.0 | Effects::ATOMIC.0))
    }

    /// Whether memory is read, or a function called that may read it.
    pub const fn may_read(self) -> bool {
        self.reads_memory() || self.has(Effects::CALL)
    }

    /// Whether memory is written, or a function called that may write it.
    pub const fn may_write(self) -> bool {
        self.writes_memory() || self.has(Effects::CALL)
    }

    /// Whether there are none: the instruction may be removed, repeated or moved.
    pub const fn is_pure(self) -> bool {
        self.0 == 0
    }
}

/// A special register.
#[derive(Debug)]
pub struct SpecialRow {
    /// The name as PTX writes it.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// What it holds.
    pub summary: &'static str,
    /// The version of PTX that brought it.
    pub isa: IsaVersion,
    /// The first target that has it.
    pub sm: u16,
    /// Who has the same value in it.
    pub scope: Scope,
    /// Whether it may hold another value the next time: clocks, counters, and where a thread runs.
    pub varies: bool,
}

/// Threads that have the same value in a special register.
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
    /// Whether all threads of a block read the same value from it, at any time.
    pub fn is_same_in_block(self) -> bool {
        self.row().scope >= Scope::Block && !self.row().varies
    }
}

impl Modifier {
    /// The type that it spells, if it is one.
    pub fn ty(self) -> Option<Type> {
        static TYPES: LazyLock<Vec<Option<Type>>> =
            LazyLock::new(|| Modifier::ALL.iter().map(|modifier| Type::from_name(modifier.text())).collect());
        TYPES[self as usize]
    }

    /// How many elements a vector modifier (`.v2`, `.v4`, `.v8`) asks for.
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
    /// How it is written: `add[.rn|.rz|.rm|.rp][.ftz][.sat].f32 d, a, b`. What may be left out stands in brackets.
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

    /// The operands as a person would write them: `d, a, [b]`; vectors as long as the modifiers say.
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
