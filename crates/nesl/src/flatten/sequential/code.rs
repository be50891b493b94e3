//! The text of a PTX function: registers, labels, memory.

use crate::infer::Widths;
use crate::vcode::Shape;
use std::fmt::{self, Write};

/// Kind of a value in a register or an element of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Float,
    Bool,
    /// The length of a sequence, 32 bits.
    Length,
    /// An address of global memory.
    Pointer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Pred,
    B32,
    B64,
    F32,
    F64,
}

impl Class {
    const ALL: [Class; 5] = [Class::Pred, Class::B32, Class::B64, Class::F32, Class::F64];

    fn name(self) -> (&'static str, &'static str) {
        match self {
            Class::Pred => ("pred", "%p"),
            Class::B32 => ("b32", "%r"),
            Class::B64 => ("b64", "%d"),
            Class::F32 => ("f32", "%f"),
            Class::F64 => ("f64", "%g"),
        }
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reg {
    pub(super) class: Class,
    number: u32,
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // This is called millions of times, so digits are made without the formatting machinery.
        let (mut text, mut at, mut rest) = ([0u8; 12], 12, self.number);
        loop {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        f.write_str(self.class.name().1)?;
        f.write_str(std::str::from_utf8(&text[at..]).unwrap_or_default())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(u32);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$l{}", self.0)
    }
}

/// Code of a function under construction.
pub(super) struct Code {
    pub(super) widths: Widths,
    pub(super) text: String,
    /// The number of the lane if a warp or a team runs a call; `None` if a thread does.
    pub(super) lane: Option<Reg>,
    /// The team that runs a call, if one does.
    pub(super) team: Option<Team>,
    /// True if loops do not end with a barrier of the team: another one follows before their results are
    /// read.
    pub(super) is_held: bool,
    registers: [u32; 5],
    labels: u32,
}

/// Registers of a team: warps with consecutive numbers.
#[derive(Clone, Copy)]
pub(super) struct Team {
    /// The number of its first warp in the grid, and the number of its warps.
    pub(super) first: Reg,
    pub(super) warps: Reg,
    /// The address of the memory for barriers.
    pub(super) sync: Reg,
    /// The warp number that names its barrier in memory, and the one that names its barrier in the own block.
    pub(super) point: Reg,
    pub(super) inner: Reg,
    /// The number of the own warp within the team.
    pub(super) own: Reg,
}

/// State of the code that it can be reset to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    text: usize,
    registers: [u32; 5],
    labels: u32,
}

macro_rules! emit {
    ($code:expr, $($part:tt)*) => { $code.line(format_args!($($part)*)) };
}
pub(super) use emit;

impl Code {
    pub(super) fn new(widths: Widths, in_warps: bool) -> Code {
        let mut code = Code { widths, text: String::new(), lane: None, team: None, is_held: false, registers: [0; 5], labels: 0 };
        if in_warps {
            let lane = code.reg(Class::B32);
            emit!(code, "mov.u32 {lane}, %laneid;");
            code.lane = Some(lane);
        }
        code
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { text: self.text.len(), registers: self.registers, labels: self.labels }
    }

    /// Drops all code after a mark.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.text.truncate(mark.text);
        (self.registers, self.labels) = (mark.registers, mark.labels);
    }

    /// Tells whether code after a mark jumps to a label.
    pub(super) fn goes_to(&self, label: Label, mark: Mark) -> bool {
        self.text[mark.text..].contains(&format!("bra {label};"))
    }

    /// Makes lanes wait for each other, and see the memory written by the others. In a team this includes all
    /// of its warps.
    pub(super) fn sync(&mut self) {
        match self.team {
            Some(team) if !self.is_held => self.sync_team(&team),
            _ => self.meet(),
        }
    }

    /// Makes the lanes of a warp wait for each other.
    pub(super) fn meet(&mut self) {
        if self.lane.is_some() {
            emit!(self, "bar.warp.sync 0xffffffff;");
        }
    }

    /// Returns the value of a register in another lane: `behind` lanes later, or in the first one. A thread
    /// has one lane.
    pub(super) fn lane_value(&mut self, kind: Kind, value: Reg, behind: Option<u32>) -> Reg {
        if self.lane.is_none() {
            return self.copy(kind, value);
        }
        let way = behind.map_or_else(|| "idx".to_owned(), |_| "down".to_owned());
        let by = behind.unwrap_or(0);
        let moved = |code: &mut Code, from: Reg| {
            let to = code.reg(Class::B32);
            emit!(code, "shfl.sync.{way}.b32 {to}, {from}, {by}, 31, 0xffffffff;");
            to
        };
        let to = self.of(kind);
        match value.class {
            Class::Pred => {
                let number = self.number(value);
                let number = moved(self, number);
                emit!(self, "setp.ne.u32 {to}, {number}, 0;");
            }
            Class::B32 | Class::F32 => {
                let bits = self.reg(Class::B32);
                emit!(self, "mov.b32 {bits}, {value};");
                let bits = moved(self, bits);
                emit!(self, "mov.b32 {to}, {bits};");
            }
            Class::B64 | Class::F64 => {
                let (low, high) = (self.reg(Class::B32), self.reg(Class::B32));
                emit!(self, "mov.b64 {{{low}, {high}}}, {value};");
                let (low, high) = (moved(self, low), moved(self, high));
                emit!(self, "mov.b64 {to}, {{{low}, {high}}};");
            }
        }
        to
    }

    /// Writes code that only the first lane, or the thread, executes. A team has one first lane.
    pub(super) fn in_first_lane(&mut self, write: impl FnOnce(&mut Code)) {
        let Some(lane) = self.lane else { return write(self) };
        let (other, end) = (self.reg(Class::Pred), self.label());
        match self.team {
            Some(team) => {
                let both = self.reg(Class::B32);
                emit!(self, "or.b32 {both}, {lane}, {};", team.own);
                emit!(self, "setp.ne.u32 {other}, {both}, 0;");
            }
            None => emit!(self, "setp.ne.u32 {other}, {lane}, 0;"),
        }
        self.go_if(other, end);
        write(self);
        self.place(end);
    }

    pub(super) fn line(&mut self, text: fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "\t{text}");
    }

    pub(super) fn reg(&mut self, class: Class) -> Reg {
        let number = self.registers[class as usize];
        self.registers[class as usize] += 1;
        Reg { class, number }
    }

    /// Returns a register for a kind of values.
    pub(super) fn of(&mut self, kind: Kind) -> Reg {
        let class = self.class(kind);
        self.reg(class)
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    pub(super) fn place(&mut self, label: Label) {
        let _ = writeln!(self.text, "{label}:");
    }

    /// Returns the declarations of all registers.
    pub(super) fn declarations(&self) -> String {
        let mut out = String::new();
        for (class, count) in Class::ALL.into_iter().zip(self.registers) {
            if count > 0 {
                let (ty, name) = class.name();
                let _ = writeln!(out, "\t.reg .{ty} {name}<{count}>;");
            }
        }
        out
    }

    pub(super) fn class(&self, kind: Kind) -> Class {
        match kind {
            Kind::Int if self.widths.wide_int => Class::B64,
            Kind::Int | Kind::Length => Class::B32,
            Kind::Float if self.widths.narrow_float => Class::F32,
            Kind::Float => Class::F64,
            Kind::Bool => Class::Pred,
            Kind::Pointer => Class::B64,
        }
    }

    /// Returns the PTX type for arithmetic.
    pub(super) fn ty(&self, kind: Kind) -> &'static str {
        match kind {
            Kind::Int if self.widths.wide_int => "s64",
            Kind::Int => "s32",
            Kind::Float if self.widths.narrow_float => "f32",
            Kind::Float => "f64",
            Kind::Bool => "pred",
            Kind::Length => "u32",
            Kind::Pointer => "u64",
        }
    }

    /// Returns the PTX type for untyped operations.
    pub(super) fn bits(&self, kind: Kind) -> &'static str {
        match self.class(kind) {
            Class::Pred => "pred",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::F32 => "f32",
            Class::F64 => "f64",
        }
    }

    /// Returns the size of an element in memory in bytes.
    pub(super) fn bytes(&self, kind: Kind) -> u32 {
        match self.class(kind) {
            Class::Pred => 1,
            Class::B32 | Class::F32 => 4,
            Class::B64 | Class::F64 => 8,
        }
    }

    /// Copies a register.
    pub(super) fn set(&mut self, kind: Kind, to: Reg, from: Reg) {
        let bits = self.bits(kind);
        emit!(self, "mov.{bits} {to}, {from};");
    }

    /// Returns a copy that is independent of later changes of the register.
    pub(super) fn copy(&mut self, kind: Kind, from: Reg) -> Reg {
        let to = self.of(kind);
        self.set(kind, to, from);
        to
    }

    /// Returns the address of an element.
    pub(super) fn address(&mut self, base: Reg, index: Reg, bytes: u32) -> Reg {
        let address = self.reg(Class::B64);
        if index.class == Class::B64 {
            emit!(self, "mad.lo.s64 {address}, {index}, {bytes}, {base};");
        } else {
            emit!(self, "mad.wide.u32 {address}, {index}, {bytes}, {base};");
        }
        address
    }

    pub(super) fn load(&mut self, kind: Kind, address: Reg) -> Reg {
        let to = self.of(kind);
        if kind == Kind::Bool {
            let byte = self.reg(Class::B32);
            emit!(self, "ld.global.u8 {byte}, [{address}];");
            emit!(self, "setp.ne.u32 {to}, {byte}, 0;");
        } else {
            let bits = self.bits(kind);
            emit!(self, "ld.global.{bits} {to}, [{address}];");
        }
        to
    }

    pub(super) fn store(&mut self, kind: Kind, address: Reg, value: Reg) {
        if kind == Kind::Bool {
            let byte = self.number(value);
            emit!(self, "st.global.u8 [{address}], {byte};");
        } else {
            let bits = self.bits(kind);
            emit!(self, "st.global.{bits} [{address}], {value};");
        }
    }

    pub(super) fn load_at(&mut self, kind: Kind, base: Reg, index: Reg) -> Reg {
        let bytes = self.bytes(kind);
        let address = self.address(base, index, bytes);
        self.load(kind, address)
    }

    pub(super) fn store_at(&mut self, kind: Kind, base: Reg, index: Reg, value: Reg) {
        let bytes = self.bytes(kind);
        let address = self.address(base, index, bytes);
        self.store(kind, address, value);
    }

    /// Returns a predicate as 0 or 1.
    pub(super) fn number(&mut self, pred: Reg) -> Reg {
        let number = self.reg(Class::B32);
        emit!(self, "selp.u32 {number}, 1, 0, {pred};");
        number
    }

    pub(super) fn int(&mut self, value: i64) -> Reg {
        let to = self.of(Kind::Int);
        let (bits, value) = match self.widths.wide_int {
            true => ("s64", value),
            false => ("s32", i64::from(value as i32)),
        };
        emit!(self, "mov.{bits} {to}, {value};");
        to
    }

    pub(super) fn float(&mut self, value: f64) -> Reg {
        let to = self.of(Kind::Float);
        if self.widths.narrow_float {
            emit!(self, "mov.f32 {to}, 0f{:08X};", (value as f32).to_bits());
        } else {
            emit!(self, "mov.f64 {to}, 0d{:016X};", value.to_bits());
        }
        to
    }

    pub(super) fn bool(&mut self, value: bool) -> Reg {
        let to = self.reg(Class::Pred);
        emit!(self, "setp.eq.u32 {to}, {}, 1;", u32::from(value));
        to
    }

    pub(super) fn length(&mut self, value: u32) -> Reg {
        let to = self.reg(Class::B32);
        emit!(self, "mov.u32 {to}, {value};");
        to
    }

    /// Converts a length to an int.
    pub(super) fn as_int(&mut self, length: Reg) -> Reg {
        if !self.widths.wide_int {
            return length;
        }
        let to = self.reg(Class::B64);
        emit!(self, "cvt.u64.u32 {to}, {length};");
        to
    }

    /// Converts an int that is known to be a valid length.
    pub(super) fn as_length(&mut self, int: Reg) -> Reg {
        if !self.widths.wide_int {
            return int;
        }
        let to = self.reg(Class::B32);
        emit!(self, "cvt.u32.u64 {to}, {int};");
        to
    }

    /// Jumps to a label if a predicate holds.
    pub(super) fn go_if(&mut self, pred: Reg, label: Label) {
        emit!(self, "@{pred} bra {label};");
    }

    pub(super) fn go_unless(&mut self, pred: Reg, label: Label) {
        emit!(self, "@!{pred} bra {label};");
    }

    pub(super) fn go(&mut self, label: Label) {
        emit!(self, "bra {label};");
    }
}

/// Lists the slots of values of a shape: registers, or arrays in memory for a sequence of such values.
pub(super) fn slots(shape: &Shape, out: &mut Vec<Kind>) {
    match shape {
        Shape::Int => out.push(Kind::Int),
        Shape::Float => out.push(Kind::Float),
        Shape::Bool => out.push(Kind::Bool),
        Shape::Tuple(parts) => parts.iter().for_each(|part| slots(part, out)),
        Shape::Seq(element) => {
            out.push(Kind::Length);
            let mut inner = vec![];
            slots(element, &mut inner);
            out.extend(inner.iter().map(|_| Kind::Pointer));
        }
    }
}
