//! Operands: sources and destinations of values.
//!
//! An operand is fetched in the type that the instruction gives it, truncated if the register is wider. A
//! result is converted to the type of its register; a wider register is filled by extension as the
//! instruction's type says.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::layout::{SymbolPlace, row_bytes};
use super::llvm::{Ty, Val};
use super::nans::sees_nan_bits;
use crate::abi::offset;

use broadloom_eval::immediate;
use broadloom_ptx::{Address, Base, Guard, InstData, Mnemonic, Modifier, Operand, Reg, Space, Symbol, Type};

/// Canonical NaN of `f32`.
const CANONICAL_NAN: u64 = 0x7fff_ffff;

impl Emitter<'_> {
    /// Returns the LLVM type of a value in one lane, as instructions of a type compute with it.
    pub(crate) fn value_type(&self, ty: Type) -> Ty {
        match ty {
            Type::F16 => self.ir.half(),
            ty => self.register_type(ty),
        }
    }

    /// Returns the operands that an instruction writes, each with its type in the instruction.
    pub(crate) fn written(&self, inst: &InstData) -> Vec<(Operand, Type)> {
        let Mnemonic::Known { form, modifiers } = &inst.mnemonic else { return vec![] };
        let specs = form.get().operands.iter().zip(&inst.operands).filter(|(spec, _)| spec.written);
        specs.map(|(spec, operand)| (operand.clone(), spec.type_in(modifiers).unwrap_or(Type::B32))).collect()
    }

    /// Returns the values that an instruction reads, in order, each in its own type: of lane 0, or of all
    /// lanes. NaNs are canonical.
    pub(crate) fn inputs(&self, inst: &InstData, scalar: bool) -> TranslationResult<Vec<Val>> {
        broadloom_eval::inputs(inst).map(|(operand, ty)| self.fetch(operand, ty, scalar)).collect()
    }

    /// Returns the inputs of an instruction for vector code, which computes with the NaNs that the host
    /// produced unless its result depends on their bits.
    pub(crate) fn vector_inputs(&self, inst: &InstData, scalar: bool) -> TranslationResult<Vec<Val>> {
        let sees_bits = sees_nan_bits(inst);
        let input = |(operand, ty)| match ty {
            Type::F32 if !sees_bits => self.fetch_as_is(operand, ty, scalar),
            ty => self.fetch(operand, ty, scalar),
        };
        broadloom_eval::inputs(inst).map(input).collect()
    }

    /// Fetches an operand in a type: of lane 0, or of all lanes. NaNs are made canonical.
    pub(crate) fn fetch(&self, operand: &Operand, ty: Type, scalar: bool) -> TranslationResult<Val> {
        let ir = self.ir;
        let value = self.fetch_as_is(operand, ty, scalar)?;
        let (Operand::Reg(reg) | Operand::Part { reg, .. }) = operand else { return Ok(value) };
        if ty == Type::Pred || ty.bits() > 32 || !self.is_noisy(*reg) {
            return Ok(value);
        }
        let whole = if scalar { self.lane0(*reg)? } else { self.all_lanes(*reg)? };
        Ok(self.retype(self.canonical(ir.bitcast(whole, ir.float())), ty))
    }

    /// Fetches an operand in a type, with the NaNs that the host produced.
    pub(crate) fn fetch_as_is(&self, operand: &Operand, ty: Type, scalar: bool) -> TranslationResult<Val> {
        let ir = self.ir;
        match operand {
            Operand::Reg(reg) | Operand::Part { reg, .. } => {
                let value = if scalar { self.lane0(*reg)? } else { self.all_lanes(*reg)? };
                Ok(self.retype(value, ty))
            }
            Operand::Not(reg) => {
                let value = if scalar { self.lane0(*reg)? } else { self.all_lanes(*reg)? };
                Ok(ir.not(value))
            }
            Operand::Imm(imm) => Ok(self.constant(immediate(*imm, ty), ty, scalar)),
            Operand::Special(special) => {
                let value = self.special(*special, scalar)?;
                Ok(self.retype(value, ty))
            }
            Operand::Symbol(symbol, offset) => {
                let value = self.symbol_address(*symbol, scalar)?;
                let value = ir.add(value, ir.constant(ir.type_of(value), *offset as u64));
                Ok(self.retype(value, ty))
            }
            Operand::Absent | Operand::Sink => Ok(self.constant(0, ty, scalar)),
            Operand::Memory(_)
            | Operand::Texture(_)
            | Operand::Vector(_)
            | Operand::Label(_)
            | Operand::Targets(_)
            | Operand::Pair(_)
            | Operand::Call(_) => Err(TranslationError("an operand that is no value".into())),
        }
    }

    /// Returns a constant of a PTX type.
    pub(crate) fn constant(&self, bits: u64, ty: Type, scalar: bool) -> Val {
        let ir = self.ir;
        let lanes = if scalar { None } else { self.lanes };
        let int = ir.lanes_of(ir.int(if ty == Type::Pred { 1 } else { ty.bits() }), lanes);
        ir.bitcast(ir.constant(int, bits), self.value_type(ty))
    }

    /// Converts a value to a type of the same or smaller width.
    pub(crate) fn retype(&self, value: Val, ty: Type) -> Val {
        let ir = self.ir;
        let wanted = self.value_type(ty);
        let have = ir.type_of(value);
        if ir.element(have) == wanted {
            return value;
        }
        let (from, to) = (ir.bits(have), ir.bits(wanted));
        let bits = ir.bitcast(value, ir.int(from));
        let bits = ir.resize(bits, ir.int(to), false);
        ir.bitcast(bits, wanted)
    }

    /// Makes NaNs of `f32` canonical.
    pub(crate) fn canonical(&self, value: Val) -> Val {
        let ir = self.ir;
        let ty = ir.type_of(value);
        let nan = ir.bitcast(ir.constant(ir.like(ty, ir.int(32)), CANONICAL_NAN), ir.float());
        let unordered = ir.fcmp(super::llvm::RealPred::LLVMRealUNO, value, value);
        ir.select(unordered, nan, value)
    }

    /// Makes NaNs of `f32` canonical in the value of a 32-bit register.
    pub(crate) fn canonical_bits(&self, value: Val) -> Val {
        let ir = self.ir;
        let ty = ir.element(ir.type_of(value));
        if ir.bits(ty) != 32 {
            return value;
        }
        ir.bitcast(self.canonical(ir.bitcast(value, ir.float())), ty)
    }

    /// Assigns a result of a type to an operand.
    pub(crate) fn assign(&mut self, operand: &Operand, ty: Type, value: Val) -> TranslationResult<()> {
        match operand {
            Operand::Reg(reg) | Operand::Part { reg, .. } => {
                let register = self.function.regs[*reg].ty;
                let value = self.widen(value, ty, register);
                self.define(*reg, value);
                Ok(())
            }
            Operand::Sink | Operand::Absent => Ok(()),
            _ => Err(TranslationError("a result that goes nowhere".into())),
        }
    }

    /// Extends a value of a type to a register of the same or greater width.
    fn widen(&self, value: Val, ty: Type, register: Type) -> Val {
        let ir = self.ir;
        let wanted = self.register_type(register);
        let have = ir.type_of(value);
        if ir.element(have) == wanted {
            return value;
        }
        let bits = ir.bitcast(value, ir.int(ir.bits(have)));
        let bits = ir.resize(bits, ir.int(ir.bits(wanted)), ty.is_signed());
        ir.bitcast(bits, wanted)
    }

    /// Returns the instruction's own guard: in all lanes, or in lane 0 if it is uniform. Returns `None` if it
    /// has none.
    pub(crate) fn own_guard(&self, inst: &InstData) -> TranslationResult<Option<Val>> {
        let Some(Guard { reg, negated }) = inst.guard else { return Ok(None) };
        let value = if self.is_kept_as_scalar(reg) { self.lane0(reg)? } else { self.all_lanes(reg)? };
        Ok(Some(if negated { self.ir.not(value) } else { value }))
    }

    /// Returns the lanes that run an instruction: those whose guard holds, among the lanes that exist.
    /// Returns `None` if all do.
    pub(crate) fn guard(&self, inst: &InstData) -> TranslationResult<Option<Val>> {
        self.guard_among(inst, self.exists)
    }

    fn guard_among(&self, inst: &InstData, exists: Option<Val>) -> TranslationResult<Option<Val>> {
        let own = self.own_guard(inst)?;
        Ok(match (own, exists) {
            (own, None) => own,
            (None, exists) => exists,
            (Some(own), Some(exists)) => match (self.ir.lanes(own), self.lanes) {
                (None, Some(lanes)) => Some(self.ir.and(self.ir.splat(own, lanes), exists)),
                _ => Some(self.ir.and(own, exists)),
            },
        })
    }

    /// Returns the lanes that run an instruction, as a predicate for each lane.
    pub(crate) fn active(&self, inst: &InstData) -> TranslationResult<Val> {
        self.active_among(inst, self.exists)
    }

    /// Returns the lanes that run an instruction, among those in `exists`.
    pub(crate) fn active_among(&self, inst: &InstData, exists: Option<Val>) -> TranslationResult<Val> {
        let i1 = self.ir.int(1);
        let guard = self.guard_among(inst, exists)?;
        Ok(match (guard, self.lanes) {
            (None, lanes) => self.ir.constant(self.ir.lanes_of(i1, lanes), 1),
            (Some(guard), Some(lanes)) if self.ir.lanes(guard).is_none() => self.ir.splat(guard, lanes),
            (Some(guard), _) => guard,
        })
    }

    /// Returns the address of a name, as `mov` gives it: an offset in shared, local and parameter memory, a
    /// pointer elsewhere.
    pub(crate) fn symbol_address(&self, symbol: Symbol, scalar: bool) -> TranslationResult<Val> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let value = match self.layout.place(symbol) {
            Some(SymbolPlace::Shared(offset)) => ir.constant(i64, offset),
            Some(SymbolPlace::Frame(offset)) => match self.frame {
                None => ir.add(self.frame_start, ir.constant(i64, offset)),
                // On the slow path, the frame of a call lies on the stack, at any address.
                Some(frame) => {
                    let start = ir.ptrtoint(self.pointer_field(offset::LOCAL), i64);
                    ir.sub(ir.ptrtoint(ir.offset_by(frame, offset), i64), start)
                }
            },
            Some(place @ (SymbolPlace::Argument(_) | SymbolPlace::Result(_))) => match self.frame_pointer(place) {
                Some(pointer) => ir.ptrtoint(pointer, i64),
                None => return Err(TranslationError("a parameter of no call".into())),
            },
            Some(SymbolPlace::Dynamic) => {
                let offset = self.field(ir.int(32), offset::DYNAMIC_SHARED_OFFSET);
                ir.zext(offset, i64)
            }
            Some(SymbolPlace::Param(offset)) => {
                let base = ir.ptrtoint(self.pointer_field(offset::PARAMS), i64);
                ir.add(base, ir.constant(i64, offset))
            }
            Some(SymbolPlace::Table(index)) => {
                let table = self.pointer_field(offset::VARIABLES);
                ir.load_invariant(i64, ir.offset_by(table, 8 * u64::from(index)), 8)
            }
            Some(SymbolPlace::Row(_)) | None => return Err(TranslationError("a name without a place".into())),
        };
        Ok(match (scalar, self.lanes) {
            (false, Some(lanes)) => ir.splat(value, lanes),
            _ => value,
        })
    }

    /// Returns the state space of an access: that of the instruction, or that of the variable it names.
    pub(crate) fn space_of(&self, inst: &InstData, address: &Address) -> Space {
        match (inst.space(), address.base) {
            (Space::Generic, Base::Symbol(symbol)) => self.layout.space(self.module, self.function, symbol),
            (space, _) => space,
        }
    }

    /// Returns the value of a register as a block parameter keeps it.
    pub(crate) fn handed_on(&self, arg: Reg, param: Reg) -> TranslationResult<Val> {
        let value = if self.is_kept_as_scalar(param) { self.lane0(arg)? } else { self.all_lanes(arg)? };
        Ok(if self.is_noisy(arg) && !self.is_noisy(param) { self.canonical_bits(value) } else { value })
    }

    /// Returns a pointer to a variable that is passed to this function or lies in its frame.
    pub(crate) fn frame_pointer(&self, place: SymbolPlace) -> Option<Val> {
        let (args, results) = self.passed?;
        match place {
            SymbolPlace::Argument(offset) => Some(self.ir.offset_by(args, offset)),
            SymbolPlace::Result(offset) => Some(self.ir.offset_by(results, offset)),
            SymbolPlace::Shared(_)
            | SymbolPlace::Frame(_)
            | SymbolPlace::Dynamic
            | SymbolPlace::Param(_)
            | SymbolPlace::Table(_)
            | SymbolPlace::Row(_) => None,
        }
    }

    /// Returns the row of a variable and the bytes of one lane; `None` if the variable lies elsewhere.
    pub(crate) fn row_of(&self, base: Base) -> Option<(Val, u64)> {
        let (Base::Symbol(symbol @ Symbol::Local(var)), Some(_)) = (base, self.lanes) else { return None };
        match self.layout.place(symbol)? {
            SymbolPlace::Row(index) => Some((self.rows[index], self.layout.rows[index])),
            place @ (SymbolPlace::Argument(_) | SymbolPlace::Result(_)) => {
                Some((self.frame_pointer(place)?, row_bytes(&self.function.variables[var])))
            }
            SymbolPlace::Shared(_)
            | SymbolPlace::Frame(_)
            | SymbolPlace::Dynamic
            | SymbolPlace::Param(_)
            | SymbolPlace::Table(_) => None,
        }
    }

    /// Returns the lanes that reach a barrier: those whose guard holds, among all threads of the warp. Lanes
    /// outside the call have no barrier ahead of them.
    pub(crate) fn arriving_lanes(&self, inst: &InstData) -> TranslationResult<Val> {
        self.active_among(inst, self.threads)
    }

    /// Returns the input of a reduction at a barrier. Lanes outside the call contribute the neutral element.
    pub(crate) fn brought_by_callers(&self, inst: &InstData, brought: Val) -> Val {
        let ir = self.ir;
        match self.exists.filter(|_| self.passed.is_some()) {
            None => brought,
            Some(callers) if inst.has(Modifier::And) => ir.or(brought, ir.not(callers)),
            Some(callers) => ir.and(brought, callers),
        }
    }
}

/// Returns the untyped bits type of the same width.
pub(crate) fn bits_type(ty: Type) -> Type {
    Type::bits_of(ty.bits()).unwrap_or(Type::B64)
}
