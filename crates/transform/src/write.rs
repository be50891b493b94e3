//! Instructions that passes create: copies, constants and selections, for every register type.
//!
//! A [`Writer`] collects a run of instructions at one source position. Not every type has every instruction.
//! A byte is copied by `cvt`, since `mov` has no 8-bit form. Predicates are selected by logic, and 128 bits
//! in two halves.

use broadloom_diag::Span;
use broadloom_eval::sign_extend;
use broadloom_ptx::{Function, Guard, Imm, Inst, InstData, Loc, Mnemonic, Operand, Reg, RegData, Type, TypeKind};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;

thread_local! {
    /// Cache of parsed mnemonics, which are slow to parse: by their text, then by the operands in braces.
    static MEANINGS: RefCell<HashMap<Box<str>, Vec<Meaning>>> = RefCell::new(HashMap::new());
}

/// Bit mask of the operands in braces, and the parsed mnemonic.
type Meaning = (u32, Mnemonic);

/// Creates the instruction of a mnemonic that passes spell themselves. All operands of its form must be
/// present, none joined by `|`.
pub(crate) fn made(mnemonic: &str, operands: impl IntoIterator<Item = Operand>) -> InstData {
    let operands: SmallVec<[Operand; 4]> = operands.into_iter().collect();
    let braces = |(index, operand): (usize, &Operand)| u32::from(matches!(operand, Operand::Vector(_))) << index;
    let shape = operands.iter().enumerate().map(braces).sum();
    let meaning = MEANINGS.with_borrow(|meanings| {
        let found = meanings.get(mnemonic)?.iter().find(|(other, _)| *other == shape);
        found.map(|(_, meaning)| meaning.clone())
    });
    if let Some(mnemonic) = meaning {
        return InstData { guard: None, mnemonic, operands, loc: None, span: Span::default() };
    }
    let count = operands.len();
    match InstData::of(mnemonic, operands) {
        Some(data) => {
            if data.operands.len() == count {
                let meaning = (shape, data.mnemonic.clone());
                MEANINGS.with_borrow_mut(|meanings| meanings.entry(mnemonic.into()).or_default().push(meaning));
            }
            data
        }
        None => unreachable!("the table has a `{mnemonic}` that passes write"),
    }
}

/// Returns the mnemonics of `mov` and, if there is one, of `selp` for registers of a type.
fn word(ty: Type) -> Word {
    match (ty, ty.bits()) {
        (Type::Pred, _) => Word::Predicate,
        (_, 8) => Word::Byte,
        (_, 16) => Word::Plain("mov.b16", "selp.b16"),
        (_, 32) => Word::Plain("mov.b32", "selp.b32"),
        (_, 64) => Word::Plain("mov.b64", "selp.b64"),
        // No register has another width.
        (_, _) => Word::Wide,
    }
}

enum Word {
    Predicate,
    Byte,
    Plain(&'static str, &'static str),
    Wide,
}

/// Creates a copy of a register into another of the same type.
pub(crate) fn copy(ty: Type, to: Reg, from: Reg) -> InstData {
    let operands = [Operand::Reg(to), Operand::Reg(from)];
    match word(ty) {
        Word::Predicate => made("mov.pred", operands),
        Word::Byte => made("cvt.u8.u8", operands),
        Word::Plain(mov, _) => made(mov, operands),
        Word::Wide => made("mov.b128", operands),
    }
}

/// Writer of instructions at one source position.
pub struct Writer<'f> {
    /// Function that gets them.
    pub(crate) function: &'f mut Function,
    /// Written instructions, in order.
    pub(crate) insts: Vec<Inst>,
    loc: Option<Loc>,
    span: Span,
}

impl<'f> Writer<'f> {
    /// Creates a writer whose instructions have no position yet.
    pub fn new(function: &'f mut Function) -> Self {
        Writer { function, insts: vec![], loc: None, span: Span::default() }
    }

    /// Sets the position of following instructions to that of an instruction.
    pub(crate) fn at(&mut self, inst: Inst) {
        let data = &self.function.insts[inst];
        (self.loc, self.span) = (data.loc, data.span);
    }

    /// Takes all instructions written so far.
    pub fn take(&mut self) -> Vec<Inst> {
        std::mem::take(&mut self.insts)
    }

    /// Adds a register with a name, which must be free.
    pub fn reg(&mut self, name: String, ty: Type) -> Reg {
        self.function.regs.push(RegData { name, ty })
    }

    /// Writes an instruction.
    pub(crate) fn push(&mut self, data: InstData) -> Inst {
        let inst = self.function.insts.push(InstData { loc: self.loc, span: self.span, ..data });
        self.insts.push(inst);
        inst
    }

    /// Writes the instruction of a mnemonic.
    pub(crate) fn emit<const N: usize>(&mut self, mnemonic: &str, operands: [Operand; N]) {
        self.push(made(mnemonic, operands));
    }

    /// Writes the instruction of a mnemonic with a guard.
    pub(crate) fn emit_guarded<const N: usize>(&mut self, guard: Option<Guard>, mnemonic: &str, operands: [Operand; N]) {
        self.push(InstData { guard, ..made(mnemonic, operands) });
    }

    /// Copies a register into another of the same type.
    pub fn copy(&mut self, to: Reg, from: Reg) {
        let ty = self.function.regs[to].ty;
        self.push(copy(ty, to, from));
    }

    /// Sets a register to zero. `temporary` creates registers.
    pub fn zero(&mut self, to: Reg, temporary: &mut dyn FnMut(&mut Function, Type) -> Reg) {
        match word(self.function.regs[to].ty) {
            Word::Predicate => self.emit("mov.pred", [to.into(), 0.into()]),
            Word::Byte => self.emit("cvt.u8.u16", [to.into(), 0.into()]),
            Word::Plain(mov, _) => self.emit(mov, [to.into(), 0.into()]),
            Word::Wide => {
                let half = temporary(self.function, Type::B64);
                self.emit("mov.b64", [half.into(), 0.into()]);
                self.emit("mov.b128", [to.into(), vector([half, half])]);
            }
        }
    }

    /// Sets a register to one of two others, by a predicate.
    pub fn select(
        &mut self,
        to: Reg,
        guard: Guard,
        [held, other]: [Reg; 2],
        temporary: &mut dyn FnMut(&mut Function, Type) -> Reg,
    ) {
        let (held, other) = if guard.negated { (other, held) } else { (held, other) };
        let predicate = guard.reg;
        let choose = |writer: &mut Self, selp: &str, to: Reg, held: Reg, other: Reg| {
            writer.emit(selp, [to.into(), held.into(), other.into(), predicate.into()]);
        };
        match word(self.function.regs[to].ty) {
            Word::Plain(_, selp) => choose(self, selp, to, held, other),
            Word::Predicate => {
                let [mine, theirs] = [temporary(self.function, Type::Pred), temporary(self.function, Type::Pred)];
                self.emit("and.pred", [mine.into(), held.into(), predicate.into()]);
                self.emit("and.pred", [theirs.into(), other.into(), Operand::Not(predicate)]);
                self.emit("or.pred", [to.into(), mine.into(), theirs.into()]);
            }
            Word::Byte => {
                let [mine, theirs, chosen] = std::array::from_fn(|_| temporary(self.function, Type::B16));
                self.emit("cvt.u16.u8", [mine.into(), held.into()]);
                self.emit("cvt.u16.u8", [theirs.into(), other.into()]);
                choose(self, "selp.b16", chosen, mine, theirs);
                self.emit("cvt.u8.u16", [to.into(), chosen.into()]);
            }
            Word::Wide => {
                let [mine, mine_high, theirs, theirs_high, low, high] =
                    std::array::from_fn(|_| temporary(self.function, Type::B64));
                self.emit("mov.b128", [vector([mine, mine_high]), held.into()]);
                self.emit("mov.b128", [vector([theirs, theirs_high]), other.into()]);
                choose(self, "selp.b64", low, mine, theirs);
                choose(self, "selp.b64", high, mine_high, theirs_high);
                self.emit("mov.b128", [to.into(), vector([low, high])]);
            }
        }
    }
}

/// Sets a register of at most 64 bits to a value, or a wider one to zero.
pub(crate) fn constant(writer: &mut Writer<'_>, to: Reg, value: u64) {
    let number = |value: u64| Operand::Imm(Imm::from_u64(value));
    match word(writer.function.regs[to].ty) {
        Word::Predicate => writer.emit("mov.pred", [to.into(), number(value)]),
        Word::Byte => writer.emit("cvt.u8.u16", [to.into(), number(value)]),
        Word::Plain(..) => {
            let ty = writer.function.regs[to].ty;
            let (mov, imm) = match (ty.kind(), ty.bits()) {
                (TypeKind::Signed, 16) => ("mov.s16", Imm::Int(sign_extend(value, 16))),
                (TypeKind::Signed, 32) => ("mov.s32", Imm::Int(sign_extend(value, 32))),
                (TypeKind::Signed, _) => ("mov.s64", Imm::Int(value as i64)),
                (TypeKind::Float, 32) => ("mov.f32", Imm::F32(value as u32)),
                (TypeKind::Float, 64) => ("mov.f64", Imm::F64(value)),
                (_, 16) => ("mov.b16", Imm::from_u64(value)),
                (_, 32) => ("mov.b32", Imm::from_u64(value)),
                (_, _) => ("mov.b64", Imm::from_u64(value)),
            };
            writer.emit(mov, [to.into(), imm.into()]);
        }
        Word::Wide => {
            let name = format!("{}$half", writer.function.regs[to].name);
            writer.zero(to, &mut |function, ty| function.regs.push(RegData { name: name.clone(), ty }));
        }
    }
}

/// Returns a vector operand of registers.
fn vector<const N: usize>(regs: [Reg; N]) -> Operand {
    Operand::Vector(regs.into_iter().map(Operand::Reg).collect())
}
