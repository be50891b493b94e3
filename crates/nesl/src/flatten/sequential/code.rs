//! The text of a PTX function: registers, labels, memory.

use crate::infer::Widths;
use crate::vcode::Shape;
use broadloom_ptx::builder::{Instructions, IntoModifiers, IntoOperands};
use broadloom_ptx::{Address, Base, Block, Imm, Modifier as M, Opcode, Operand, Special, Type};
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

/// Bits of the number of a register in the id that operands have; the class is above them.
const NUMBER_BITS: u32 = 28;

impl Reg {
    fn of_id(id: broadloom_ptx::Reg) -> Reg {
        let class = Class::ALL[(id.as_u32() >> NUMBER_BITS) as usize % Class::ALL.len()];
        Reg { class, number: id.as_u32() & ((1 << NUMBER_BITS) - 1) }
    }

    fn id(self) -> broadloom_ptx::Reg {
        broadloom_ptx::Reg::from_u32((self.class as u32) << NUMBER_BITS | self.number)
    }

    /// Returns the memory at a number of bytes behind the address in the register.
    pub(super) fn at(self, bytes: impl Into<i64>) -> Address {
        self.id().offset(bytes.into())
    }

    fn write_to(self, out: &mut String) {
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
        out.push_str(self.class.name().1);
        out.push_str(std::str::from_utf8(&text[at..]).unwrap_or_default());
    }
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Operand {
        Operand::Reg(reg.id())
    }
}

impl From<&Reg> for Operand {
    fn from(reg: &Reg) -> Operand {
        Operand::Reg(reg.id())
    }
}

/// Returns the two halves of a register of 64 bits as an operand.
fn halves(low: Reg, high: Reg) -> Operand {
    Operand::Vector([low, high].map(Operand::from).into())
}

impl From<Label> for Operand {
    fn from(label: Label) -> Operand {
        Operand::Label(Block::from_u32(label.0))
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

/// An instruction under construction: its guard and its results. The methods of [`Instructions`] write it.
#[must_use = "an instruction must follow"]
pub(super) struct Line<'c> {
    code: &'c mut Code,
    /// The predicate that lets it run, and its value for that.
    guard: Option<(Reg, bool)>,
    result: Option<Operand>,
}

impl Line<'_> {
    /// Lets the instruction run only where a predicate has a value.
    pub(super) fn guard(mut self, pred: Reg, value: bool) -> Self {
        self.guard = Some((pred, value));
        self
    }
}

impl Instructions for Line<'_> {
    type Result = ();

    fn instruction(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands) {
        let text = &mut self.code.text;
        text.push('\t');
        if let Some((pred, value)) = self.guard {
            text.push_str(if value { "@" } else { "@!" });
            pred.write_to(text);
            text.push(' ');
        }
        text.push_str(opcode.name());
        for modifier in modifiers.into_modifiers().modifiers() {
            text.push('.');
            text.push_str(modifier.text());
        }
        let mut before = " ";
        for operand in self.result.iter().chain(&sources.into_operands()) {
            text.push_str(before);
            write_operand(operand, text);
            before = ", ";
        }
        text.push_str(";\n");
    }

    fn effect(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands) {
        self.instruction(opcode, modifiers, sources);
    }
}

/// Writes an operand that this module makes. The parser refuses all others.
fn write_operand(operand: &Operand, text: &mut String) {
    match operand {
        Operand::Reg(reg) => Reg::of_id(*reg).write_to(text),
        Operand::Label(block) => {
            let _ = write!(text, "{}", Label(block.as_u32()));
        }
        Operand::Special(special) => text.push_str(special.text()),
        Operand::Imm(Imm::F32(bits)) => {
            let _ = write!(text, "0f{bits:08X}");
        }
        Operand::Imm(Imm::F64(bits)) => {
            let _ = write!(text, "0d{bits:016X}");
        }
        Operand::Imm(Imm::Int(value)) => {
            let _ = write!(text, "{value}");
        }
        Operand::Memory(Address { base: Base::Reg(reg), offset }) => {
            text.push('[');
            Reg::of_id(*reg).write_to(text);
            if *offset != 0 {
                let _ = write!(text, "+{offset}");
            }
            text.push(']');
        }
        Operand::Vector(list) => {
            let mut before = '{';
            for operand in list {
                text.push(before);
                write_operand(operand, text);
                before = ',';
            }
            text.push('}');
        }
        other => {
            let _ = write!(text, "{other:?}");
        }
    }
}

impl Code {
    pub(super) fn new(widths: Widths, in_warps: bool) -> Code {
        let mut code = Code { widths, text: String::new(), lane: None, team: None, is_held: false, registers: [0; 5], labels: 0 };
        if in_warps {
            let lane = code.reg(Class::B32);
            code.to(lane).mov(M::U32, Special::Laneid);
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
            self.run().bar_warp_sync((), 0xffffffffu32);
        }
    }

    /// Returns the value of a register in another lane: `behind` lanes later, or in the first one. A thread
    /// has one lane.
    pub(super) fn lane_value(&mut self, kind: Kind, value: Reg, behind: Option<u32>) -> Reg {
        if self.lane.is_none() {
            return self.copy(kind, value);
        }
        let way = if behind.is_some() { M::Down } else { M::Idx };
        let by = behind.unwrap_or(0);
        let moved = |code: &mut Code, from: Reg| {
            let to = code.reg(Class::B32);
            code.to(to).shfl_sync((way, M::B32), from, by, 31, 0xffffffffu32);
            to
        };
        let to = self.of(kind);
        match value.class {
            Class::Pred => {
                let number = self.number(value);
                let number = moved(self, number);
                self.to(to).setp((M::Ne, M::U32), number, 0);
            }
            Class::B32 | Class::F32 => {
                let bits = self.reg(Class::B32);
                self.to(bits).mov(M::B32, value);
                let bits = moved(self, bits);
                self.to(to).mov(M::B32, bits);
            }
            Class::B64 | Class::F64 => {
                let (low, high) = (self.reg(Class::B32), self.reg(Class::B32));
                self.to(halves(low, high)).mov(M::B64, value);
                let (low, high) = (moved(self, low), moved(self, high));
                self.to(to).mov(M::B64, halves(low, high));
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
                self.to(both).or(M::B32, lane, team.own);
                self.to(other).setp((M::Ne, M::U32), both, 0);
            }
            None => self.to(other).setp((M::Ne, M::U32), lane, 0),
        }
        self.go_if(other, end);
        write(self);
        self.place(end);
    }

    /// Begins an instruction without a result.
    pub(super) fn run(&mut self) -> Line<'_> {
        Line { code: self, guard: None, result: None }
    }

    /// Begins an instruction with a result: a register, or the two halves of one.
    pub(super) fn to(&mut self, result: impl Into<Operand>) -> Line<'_> {
        Line { code: self, guard: None, result: Some(result.into()) }
    }

    /// Loads a parameter of the function, or a part of the result of a call, by its name.
    pub(super) fn load_param(&mut self, to: Reg, ty: Type, name: impl fmt::Display) {
        let _ = write!(self.text, "\tld.param{ty} ");
        to.write_to(&mut self.text);
        let _ = writeln!(self.text, ", [{name}];");
    }

    /// Stores a part of the result of the function, or an argument of a call, by its name.
    pub(super) fn store_param(&mut self, ty: Type, name: impl fmt::Display, value: impl Into<Operand>) {
        let _ = write!(self.text, "\tst.param{ty} [{name}], ");
        write_operand(&value.into(), &mut self.text);
        self.text.push_str(";\n");
    }

    /// Sets a register to the address of an array of the module.
    pub(super) fn address_of(&mut self, to: Reg, array: &str) {
        self.text.push_str("\tmov.u64 ");
        to.write_to(&mut self.text);
        let _ = writeln!(self.text, ", {array};");
    }

    /// Calls a function. Its result, if it has one, is memory of `bytes`, of which parts are loaded from
    /// offsets.
    pub(super) fn call(&mut self, function: &str, arguments: &[(Type, Reg)], bytes: usize, results: &[(Type, usize, Reg)]) {
        self.text.push_str("\t{\n");
        let mut names = String::new();
        for (number, (ty, reg)) in arguments.iter().enumerate() {
            let _ = writeln!(self.text, "\t.param {ty} x{number};");
            self.store_param(*ty, format_args!("x{number}"), reg);
            let _ = write!(names, "{}x{number}", if number == 0 { "" } else { ", " });
        }
        if results.is_empty() {
            let _ = writeln!(self.text, "\tcall {function}, ({names});");
        } else {
            let _ = writeln!(self.text, "\t.param .align 8 .b8 y[{bytes}];\n\tcall (y), {function}, ({names});");
        }
        for (ty, offset, to) in results {
            self.load_param(*to, *ty, format_args!("y+{offset}"));
        }
        self.text.push_str("\t}\n");
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
    pub(super) fn ty(&self, kind: Kind) -> Type {
        match kind {
            Kind::Int if self.widths.wide_int => Type::S64,
            Kind::Int => Type::S32,
            Kind::Float if self.widths.narrow_float => Type::F32,
            Kind::Float => Type::F64,
            Kind::Bool => Type::Pred,
            Kind::Length => Type::U32,
            Kind::Pointer => Type::U64,
        }
    }

    /// Returns the PTX type of ints as unsigned numbers.
    pub(super) fn unsigned(&self) -> Type {
        if self.widths.wide_int { Type::U64 } else { Type::U32 }
    }

    /// Returns the PTX type for untyped operations.
    pub(super) fn bits(&self, kind: Kind) -> Type {
        match self.class(kind) {
            Class::Pred => Type::Pred,
            Class::B32 => Type::B32,
            Class::B64 => Type::B64,
            Class::F32 => Type::F32,
            Class::F64 => Type::F64,
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
        self.to(to).mov(bits, from);
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
            self.to(address).mad((M::Lo, M::S64), index, bytes, base);
        } else {
            self.to(address).mad((M::Wide, M::U32), index, bytes, base);
        }
        address
    }

    pub(super) fn load(&mut self, kind: Kind, address: Reg) -> Reg {
        let to = self.of(kind);
        if kind == Kind::Bool {
            let byte = self.reg(Class::B32);
            self.to(byte).ld((M::Global, M::U8), address.at(0));
            self.to(to).setp((M::Ne, M::U32), byte, 0);
        } else {
            let bits = self.bits(kind);
            self.to(to).ld((M::Global, bits), address.at(0));
        }
        to
    }

    pub(super) fn store(&mut self, kind: Kind, address: Reg, value: Reg) {
        if kind == Kind::Bool {
            let byte = self.number(value);
            self.run().st((M::Global, M::U8), address.at(0), byte);
        } else {
            let bits = self.bits(kind);
            self.run().st((M::Global, bits), address.at(0), value);
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
        self.to(number).selp(M::U32, 1, 0, pred);
        number
    }

    pub(super) fn int(&mut self, value: i64) -> Reg {
        let to = self.of(Kind::Int);
        let value = if self.widths.wide_int { value } else { i64::from(value as i32) };
        let ty = self.ty(Kind::Int);
        self.to(to).mov(ty, value);
        to
    }

    pub(super) fn float(&mut self, value: f64) -> Reg {
        let to = self.of(Kind::Float);
        if self.widths.narrow_float {
            self.to(to).mov(M::F32, value as f32);
        } else {
            self.to(to).mov(M::F64, value);
        }
        to
    }

    pub(super) fn bool(&mut self, value: bool) -> Reg {
        let to = self.reg(Class::Pred);
        self.to(to).setp((M::Eq, M::U32), u32::from(value), 1);
        to
    }

    pub(super) fn length(&mut self, value: u32) -> Reg {
        let to = self.reg(Class::B32);
        self.to(to).mov(M::U32, value);
        to
    }

    /// Converts a length to an int.
    pub(super) fn as_int(&mut self, length: Reg) -> Reg {
        if !self.widths.wide_int {
            return length;
        }
        let to = self.reg(Class::B64);
        self.to(to).cvt((M::U64, M::U32), length);
        to
    }

    /// Converts an int that is known to be a valid length.
    pub(super) fn as_length(&mut self, int: Reg) -> Reg {
        if !self.widths.wide_int {
            return int;
        }
        let to = self.reg(Class::B32);
        self.to(to).cvt((M::U32, M::U64), int);
        to
    }

    /// Jumps to a label if a predicate holds.
    pub(super) fn go_if(&mut self, pred: Reg, label: Label) {
        self.run().guard(pred, true).bra((), label);
    }

    pub(super) fn go_unless(&mut self, pred: Reg, label: Label) {
        self.run().guard(pred, false).bra((), label);
    }

    pub(super) fn go(&mut self, label: Label) {
        self.run().bra((), label);
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
