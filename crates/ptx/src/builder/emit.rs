//! Conversion of a method call to an instruction of the table.
//!
//! As in text, the first form that takes the modifiers, the sources and the requested results is selected. In
//! PTX, results come before sources. Here they are returned, or given first with [`FunctionBuilder::to`].

use super::codes;
use super::convert::{IntoModifiers, IntoOperands, ModifierList};
use super::function::FunctionBuilder;
use crate::ids::Reg;
use crate::inst::{Address, Base, Guard, InstData, Mnemonic, Modifiers, Operand};
use crate::select;
use crate::table::{FormId, Length, Modifier, Opcode, OperandKind, OperandSpec, Presence, Special};
use crate::types::Type;
use broadloom_diag::{Diagnostic, Span};
use smallvec::SmallVec;

/// Requested results of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RequestedResults {
    /// None; an existing result is discarded.
    Nothing,
    /// One, in a new register.
    One,
    /// Two, in new registers: `d|p`.
    Pair,
    /// One vector, in new registers.
    Vector(usize),
    /// All, in given operands.
    Given(SmallVec<[Operand; 4]>),
}

/// Types that can hold the results of an instruction.
pub trait Results: Sized {
    /// Returns the destination operands.
    fn destinations(&self) -> SmallVec<[Operand; 4]>;
    /// Builds the value from registers, in order, with `spare` in place of missing ones.
    fn collect(regs: &[Reg], spare: Reg) -> Self;
}

impl Results for () {
    fn destinations(&self) -> SmallVec<[Operand; 4]> {
        SmallVec::new()
    }
    fn collect(_: &[Reg], _: Reg) -> Self {}
}

impl Results for Reg {
    fn destinations(&self) -> SmallVec<[Operand; 4]> {
        SmallVec::from_iter([Operand::Reg(*self)])
    }
    fn collect(regs: &[Reg], spare: Reg) -> Self {
        regs.first().copied().unwrap_or(spare)
    }
}

impl Results for (Reg, Reg) {
    fn destinations(&self) -> SmallVec<[Operand; 4]> {
        SmallVec::from_iter([Operand::Reg(self.0), Operand::Reg(self.1)])
    }
    fn collect(regs: &[Reg], spare: Reg) -> Self {
        (regs.first().copied().unwrap_or(spare), regs.get(1).copied().unwrap_or(spare))
    }
}

impl<const N: usize> Results for [Reg; N] {
    fn destinations(&self) -> SmallVec<[Operand; 4]> {
        SmallVec::from_iter([Operand::from(*self)])
    }
    fn collect(regs: &[Reg], spare: Reg) -> Self {
        std::array::from_fn(|index| regs.get(index).copied().unwrap_or(spare))
    }
}

include!(concat!(env!("OUT_DIR"), "/methods.rs"));

impl Instructions for FunctionBuilder {
    type Result = Reg;

    fn instruction(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands) -> Reg {
        let regs = self.emit(opcode, modifiers.into_modifiers(), sources.into_operands(), None, &RequestedResults::One);
        self.collect(&regs)
    }

    fn effect(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands) {
        self.emit(opcode, modifiers.into_modifiers(), sources.into_operands(), None, &RequestedResults::Nothing);
    }
}

impl FunctionBuilder {
    /// Declares a parameter and loads its value.
    pub fn arg(&mut self, name: &str, ty: Type) -> Reg {
        let param = self.param(name, ty);
        self.ld((Modifier::Param, ty), param)
    }

    /// Copies a special register to a new register: `b.special(Special::TidX)`.
    pub fn special(&mut self, special: Special) -> Reg {
        self.mov(special.row().ty, special)
    }
}

/// Instruction to be emitted, with its guard and results.
#[must_use = "an instruction must follow"]
pub struct Emit<'b, R> {
    builder: &'b mut FunctionBuilder,
    guard: Option<Guard>,
    wanted: RequestedResults,
    result: std::marker::PhantomData<fn() -> R>,
}

impl<'b, R> Emit<'b, R> {
    fn wanting<S>(self, wanted: RequestedResults) -> Emit<'b, S> {
        Emit { builder: self.builder, guard: self.guard, wanted, result: std::marker::PhantomData }
    }

    /// Sets a guard: the instruction runs only where the predicate is true; with `!p`, where it is false.
    pub fn guard(mut self, guard: impl Into<Guard>) -> Self {
        self.guard = Some(guard.into());
        self
    }

    /// Sets existing registers as the results.
    pub fn to<S: Results>(self, results: S) -> Emit<'b, S> {
        let given = RequestedResults::Given(results.destinations());
        self.wanting(given)
    }

    /// Sets arbitrary operands as the results, including `_` and vectors.
    pub fn to_operands(self, results: impl IntoOperands) -> Emit<'b, ()> {
        self.wanting(RequestedResults::Given(results.into_operands()))
    }

    /// Requests a vector result: `let [x, y] = b.vector().ld((Global, V2, F32), p)`.
    pub fn vector<const N: usize>(self) -> Emit<'b, [Reg; N]> {
        self.wanting(RequestedResults::Vector(N))
    }

    /// Requests two results, `d|p`: `let (d, p) = b.pair().shfl_sync((Idx, B32), v, lane, 31, -1)`.
    pub fn pair(self) -> Emit<'b, (Reg, Reg)> {
        self.wanting(RequestedResults::Pair)
    }

    /// Discards the result.
    pub fn discard(self) -> Emit<'b, ()> {
        self.wanting(RequestedResults::Nothing)
    }
}

impl<R: Results> Instructions for Emit<'_, R> {
    type Result = R;

    fn instruction(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands) -> R {
        let regs = self.builder.emit(opcode, modifiers.into_modifiers(), sources.into_operands(), self.guard, &self.wanted);
        self.builder.collect(&regs)
    }

    fn effect(&mut self, opcode: Opcode, modifiers: impl IntoModifiers, sources: impl IntoOperands) {
        // A guard alone keeps the default of one result. Only explicitly given results are an error here.
        let wanted = match &self.wanted {
            RequestedResults::Given(list) => RequestedResults::Given(list.clone()),
            RequestedResults::Nothing | RequestedResults::One | RequestedResults::Pair | RequestedResults::Vector(_) => {
                RequestedResults::Nothing
            }
        };
        self.builder.emit(opcode, modifiers.into_modifiers(), sources.into_operands(), self.guard, &wanted);
    }
}

/// Candidate for one operand while a form is tried: an operand, or a new register.
enum OperandCandidate {
    Operand(Operand),
    Scalar(Type),
    Vector(Type, usize),
}

impl FunctionBuilder {
    fn start<R>(&mut self, wanted: RequestedResults) -> Emit<'_, R> {
        Emit { builder: self, guard: None, wanted, result: std::marker::PhantomData }
    }

    /// Sets a guard: the next instruction runs only where the predicate is true; with `!p`, where it is
    /// false.
    pub fn guard(&mut self, guard: impl Into<Guard>) -> Emit<'_, Reg> {
        self.start(RequestedResults::One).guard(guard)
    }

    /// Sets existing registers as the results of the next instruction: `b.to(i).add(S32, i, 1)`.
    pub fn to<R: Results>(&mut self, results: R) -> Emit<'_, R> {
        self.start(RequestedResults::Given(results.destinations()))
    }

    /// Sets arbitrary operands as the results of the next instruction, including `_` and vectors.
    pub fn to_operands(&mut self, results: impl IntoOperands) -> Emit<'_, ()> {
        self.start(RequestedResults::Given(results.into_operands()))
    }

    /// Requests a vector result of the next instruction: `let [x, y] = b.vector().ld((Global, V2, F32), p)`.
    pub fn vector<const N: usize>(&mut self) -> Emit<'_, [Reg; N]> {
        self.start(RequestedResults::Vector(N))
    }

    /// Requests two results, `d|p`, of the next instruction: `let (d, p) = b.pair().shfl_sync((Idx, B32), v,
    /// lane, 31, -1)`.
    pub fn pair(&mut self) -> Emit<'_, (Reg, Reg)> {
        self.start(RequestedResults::Pair)
    }

    /// Discards the result of the next instruction.
    pub fn discard(&mut self) -> Emit<'_, ()> {
        self.start(RequestedResults::Nothing)
    }

    fn collect<R: Results>(&mut self, regs: &[Reg]) -> R {
        let spare = regs.first().copied().unwrap_or_else(|| self.spare());
        R::collect(regs, spare)
    }

    fn emit(
        &mut self,
        opcode: Opcode,
        list: ModifierList,
        sources: SmallVec<[Operand; 4]>,
        guard: Option<Guard>,
        wanted: &RequestedResults,
    ) -> SmallVec<[Reg; 4]> {
        let mut found: SmallVec<[(FormId, Modifiers); 4]> = SmallVec::new();
        if list.unknown.is_none() {
            for form in opcode.row().forms() {
                found.extend(select::fill_slots(form.get().slots, &list.modifiers).map(|modifiers| (form, modifiers)));
            }
        }
        for (form, modifiers) in &found {
            let Some(places) = fit(*form, modifiers, &sources, wanted) else { continue };
            let mut regs: SmallVec<[Reg; 4]> = SmallVec::new();
            let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
            for place in places {
                operands.push(match place {
                    OperandCandidate::Operand(operand) => operand,
                    OperandCandidate::Scalar(ty) => {
                        let reg = self.reg(ty.register());
                        regs.push(reg);
                        Operand::Reg(reg)
                    }
                    OperandCandidate::Vector(ty, count) => {
                        let vector: Vec<Operand> = (0..count)
                            .map(|_| {
                                let reg = self.reg(ty.register());
                                regs.push(reg);
                                Operand::Reg(reg)
                            })
                            .collect();
                        Operand::Vector(vector.into_boxed_slice())
                    }
                });
            }
            if let RequestedResults::Given(list) = wanted {
                regs.extend(list.iter().flat_map(registers));
            }
            let mnemonic = Mnemonic::Known { form: *form, modifiers: modifiers.clone() };
            self.push(InstData { guard, mnemonic, operands, loc: None, span: Span::default() });
            return regs;
        }
        self.misfit(opcode, &list, &found, sources.len(), wanted);
        SmallVec::new()
    }

    fn misfit(
        &mut self,
        opcode: Opcode,
        list: &ModifierList,
        found: &[(FormId, Modifiers)],
        sources: usize,
        wanted: &RequestedResults,
    ) {
        let mut name = opcode.name().to_owned();
        for word in list.modifiers.iter().map(|modifier| modifier.text()).chain(list.unknown) {
            name.push('.');
            name.push_str(word);
        }
        let function = self.name().to_owned();
        if found.is_empty() {
            let mut diagnostic =
                Diagnostic::error(codes::BAD_MODIFIERS, format!("in `{function}`: `{name}` is no form of `{}`", opcode.name()));
            for form in opcode.row().forms().take(6) {
                diagnostic = diagnostic.note(format!("a form is `{}{}`", opcode.name(), form.get().notation));
            }
            return self.report(diagnostic);
        }
        let results = match wanted {
            RequestedResults::Nothing => "no result".to_owned(),
            RequestedResults::One => "one result".to_owned(),
            RequestedResults::Pair => "two results".to_owned(),
            RequestedResults::Vector(count) => format!("a vector of {count}"),
            RequestedResults::Given(list) => match list.as_slice() {
                [Operand::Vector(elements)] => format!("a vector of {}", elements.len()),
                list => format!("{} result{}", list.len(), if list.len() == 1 { "" } else { "s" }),
            },
        };
        let message = format!("in `{function}`: `{name}` does not take {sources} such sources with {results}");
        let mut diagnostic = Diagnostic::error(codes::BAD_OPERANDS, message);
        for (form, _) in found.iter().take(3) {
            diagnostic = diagnostic.note(format!("it is written `{name} {}`", form.get().operand_notation(&[])));
        }
        self.report(diagnostic);
    }
}

/// Returns the registers of a destination.
fn registers(operand: &Operand) -> SmallVec<[Reg; 4]> {
    match operand {
        Operand::Reg(reg) => SmallVec::from_iter([*reg]),
        Operand::Vector(list) => list.iter().flat_map(registers).collect(),
        _ => SmallVec::new(),
    }
}

/// Assigns sources and results to the operands of a form. Returns `None` if they do not fit.
fn fit(form: FormId, modifiers: &Modifiers, sources: &[Operand], wanted: &RequestedResults) -> Option<Vec<OperandCandidate>> {
    let specs = form.get().operands;
    let mut places = Vec::with_capacity(specs.len());
    let (mut source, mut result) = (0, 0);
    for spec in specs {
        if spec.written {
            places.push(destination(spec, modifiers, wanted, result)?);
            result += 1;
            continue;
        }
        match sources.get(source) {
            Some(operand) => {
                let operand = coerce(spec, modifiers, operand.clone());
                if !select::shape_fits(spec, modifiers, &operand) {
                    return None;
                }
                places.push(OperandCandidate::Operand(operand));
                source += 1;
            }
            None if spec.presence == Presence::Optional => break,
            None => return None,
        }
    }
    let results_used = match wanted {
        RequestedResults::Nothing => true,
        RequestedResults::One | RequestedResults::Vector(_) => result >= 1,
        RequestedResults::Pair => result >= 2,
        RequestedResults::Given(list) => result >= list.len(),
    };
    (source == sources.len() && results_used).then_some(places)
}

/// Returns the place of the result with an index.
fn destination(spec: &OperandSpec, modifiers: &Modifiers, wanted: &RequestedResults, index: usize) -> Option<OperandCandidate> {
    let ty = || spec.type_in(modifiers);
    let elements = match spec.length {
        Length::One => None,
        Length::Slot(slot) => modifiers[usize::from(slot)].and_then(Modifier::vector_length).map(usize::from),
        Length::Exactly(count) => Some(usize::from(count)),
        Length::Any | Length::Parts => None,
    };
    match wanted {
        RequestedResults::One if index == 0 => match spec.length {
            Length::Parts => None,
            _ if elements.is_some() => None,
            _ => Some(OperandCandidate::Scalar(ty()?)),
        },
        RequestedResults::Pair if index < 2 => (spec.length == Length::One).then_some(OperandCandidate::Scalar(ty()?)),
        RequestedResults::Vector(count) if index == 0 => match spec.length {
            Length::One => None,
            Length::Any => Some(OperandCandidate::Vector(ty()?, *count)),
            Length::Parts => {
                let bits = ty()?.bits();
                let whole = *count >= 2 && (bits as usize).is_multiple_of(*count);
                let part = Type::bits_of(bits / *count as u32).filter(|_| whole)?;
                Some(OperandCandidate::Vector(part, *count))
            }
            Length::Slot(_) | Length::Exactly(_) => (elements == Some(*count)).then_some(OperandCandidate::Vector(ty()?, *count)),
        },
        RequestedResults::Given(list) if index < list.len() => {
            let operand = &list[index];
            select::shape_fits(spec, modifiers, operand).then(|| OperandCandidate::Operand(operand.clone()))
        }
        RequestedResults::Nothing
        | RequestedResults::One
        | RequestedResults::Pair
        | RequestedResults::Vector(_)
        | RequestedResults::Given(_) => {
            if spec.paired && spec.presence == Presence::Optional {
                Some(OperandCandidate::Operand(Operand::Absent))
            } else {
                spec.sink.then_some(OperandCandidate::Operand(Operand::Sink))
            }
        }
    }
}

/// Converts a source to its operand's kind: a register or symbol to an address, a decimal number to a float
/// of the right width.
fn coerce(spec: &OperandSpec, modifiers: &Modifiers, operand: Operand) -> Operand {
    match (spec.kind, operand) {
        (OperandKind::Memory, Operand::Reg(reg)) => Operand::Memory(reg.offset(0)),
        (OperandKind::Memory, Operand::Symbol(symbol, offset)) => Operand::Memory(Address { base: Base::Symbol(symbol), offset }),
        (_, operand) => select::fit_floats(spec, modifiers, operand),
    }
}
