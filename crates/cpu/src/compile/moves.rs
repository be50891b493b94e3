//! Instructions that compute registers from registers: functions of their inputs, copies, and conversions of
//! addresses.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{IntPred, Val};
use super::operand::bits_type;
use crate::abi::{FAR, Reason, WINDOW, offset};
use broadloom_eval::Operation;
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Space, Type};

impl Emitter<'_> {
    /// Emits an instruction that [`is_computed`].
    pub(super) fn compute(&mut self, inst: &InstData) -> TranslationResult<()> {
        let is = |opcode: Opcode| inst.opcode() == Some(opcode);
        if is(Opcode::Mov) {
            self.mov(inst)
        } else if is(Opcode::Cvta) || is(Opcode::CvtaTo) {
            self.convert_address(inst)
        } else if is(Opcode::Isspacep) {
            self.is_space(inst)
        } else if is(Opcode::Mapa) {
            self.map_address(inst)
        } else if is(Opcode::Getctarank) {
            self.rank_of_address(inst)
        } else {
            self.pure(inst)
        }
    }

    /// Emits `mov`: copies, packs and unpacks.
    fn mov(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ty = inst.types().next().unwrap_or(Type::B32);
        let [to, from] = inst.operands.as_slice() else { return Err(TranslationError("a `mov` without operands".into())) };
        let scalar = inst.writes().iter().all(|reg| self.is_kept_as_scalar(*reg));
        match (to, from) {
            (Operand::Vector(to), Operand::Vector(from)) => {
                for (to, from) in to.iter().zip(from) {
                    let value = self.fetch(from, ty, scalar)?;
                    self.assign(to, ty, value)?;
                }
                Ok(())
            }
            (to, Operand::Vector(from)) => {
                let value = self.pack(ty, from, scalar)?;
                self.assign(to, ty, value)
            }
            (Operand::Vector(to), from) => {
                let value = self.fetch(from, bits_type(ty), scalar)?;
                self.unpack(ty, value, to)
            }
            (to, from) => {
                let value = if inst.writes().iter().any(|reg| self.is_noisy(*reg)) {
                    self.fetch_as_is(from, ty, scalar)?
                } else {
                    self.fetch(from, ty, scalar)?
                };
                self.assign(to, ty, value)
            }
        }
    }

    fn pack(&self, ty: Type, from: &[Operand], scalar: bool) -> TranslationResult<Val> {
        let ir = self.ir;
        let bits = ty.bits();
        let each = bits / from.len().max(1) as u32;
        let part = Type::bits_of(each).ok_or_else(|| TranslationError("parts of no width".into()))?;
        let mut all = None;
        for (index, operand) in from.iter().enumerate() {
            let value = ir.resize(self.fetch(operand, part, scalar)?, ir.int(bits), false);
            let moved = self.shifted(value, u64::from(each) * index as u64);
            all = Some(all.map_or(moved, |all| ir.or(all, moved)));
        }
        all.ok_or_else(|| TranslationError("nothing to pack".into()))
    }

    fn shifted(&self, value: Val, by: u64) -> Val {
        if by == 0 { value } else { self.ir.shl(value, self.ir.constant(self.ir.type_of(value), by)) }
    }

    fn unpack(&mut self, ty: Type, value: Val, to: &[Operand]) -> TranslationResult<()> {
        let ir = self.ir;
        let each = ty.bits() / to.len().max(1) as u32;
        let part = Type::bits_of(each).ok_or_else(|| TranslationError("parts of no width".into()))?;
        for (index, operand) in to.iter().enumerate() {
            let down = ir.constant(ir.type_of(value), u64::from(each) * index as u64);
            let piece = ir.resize(ir.lshr(value, down), ir.int(each), false);
            self.assign(operand, part, piece)?;
        }
        Ok(())
    }

    /// Emits `cvta` and `cvta.to`. Generic addresses are pointers; those of shared and local memory are
    /// offsets from their window.
    fn convert_address(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let to = inst.opcode() == Some(Opcode::CvtaTo);
        let [result, from] = inst.operands.as_slice() else { return Err(TranslationError("a `cvta` without operands".into())) };
        let ty = inst.types().next().unwrap_or(Type::U64);
        let scalar = inst.writes().iter().all(|reg| self.is_kept_as_scalar(*reg));
        let value = self.fetch(from, ty, scalar)?;
        let value = ir.resize(value, ir.int(64), false);
        let lanes = ir.lanes(value);
        let spread = |base: Val| match lanes {
            Some(lanes) => ir.splat(base, lanes),
            None => base,
        };
        let i64 = ir.int(64);
        if inst.space() == Space::Shared && self.cluster.has_others() {
            let value = if to { self.find_in_shared(value) } else { self.follow_shared(value) };
            let value = ir.resize(value, ir.int(ty.bits()), false);
            return self.assign(result, ty, value);
        }
        let base = match inst.space() {
            Space::Shared => Some(spread(ir.ptrtoint(self.pointer_field(offset::SHARED), i64))),
            Space::Local => {
                let base = spread(self.local_memory());
                Some(match lanes {
                    Some(lanes) => ir.add(base, ir.steps(i64, lanes, self.layout.local_bytes)),
                    None => base,
                })
            }
            Space::Global | Space::Const | Space::Param | Space::Generic | Space::Reg | Space::Tex => None,
        };
        let value = match (base, to) {
            (None, _) => value,
            (Some(base), true) => ir.sub(value, base),
            (Some(base), false) => ir.add(value, base),
        };
        let value = ir.resize(value, ir.int(ty.bits()), false);
        self.assign(result, ty, value)
    }

    /// Emits `isspacep`: tests whether a generic address lies in a window of the warp.
    fn is_space(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let [result, from] = inst.operands.as_slice() else {
            return Err(TranslationError("an `isspacep` without operands".into()));
        };
        let scalar = inst.writes().iter().all(|reg| self.is_kept_as_scalar(*reg));
        let address = ir.resize(self.fetch(from, self.operand_type(from), scalar)?, i64, false);
        let ty = ir.type_of(address);
        let inside = |start: Val, bytes: Val| {
            let (start, bytes) = (self.as_wide(start, ty), self.as_wide(bytes, ty));
            ir.icmp(IntPred::LLVMIntULT, ir.sub(address, start), bytes)
        };
        let whole_cluster = inst.space() != Space::Shared || inst.has(Modifier::SharedCluster);
        let window = |space: Space| -> Val {
            match space {
                Space::Shared if whole_cluster && self.cluster.has_others() => {
                    let (start, bytes) = self.cluster_windows();
                    inside(start, bytes)
                }
                Space::Shared => {
                    let start = ir.ptrtoint(self.pointer_field(offset::SHARED), i64);
                    let fixed = ir.zext(self.field(ir.int(32), offset::DYNAMIC_SHARED_OFFSET), i64);
                    let more = ir.zext(self.field(ir.int(32), offset::DYNAMIC_SHARED_BYTES), i64);
                    inside(start, ir.add(fixed, more))
                }
                Space::Local => {
                    let start = ir.ptrtoint(self.pointer_field(offset::LOCAL), i64);
                    inside(start, self.field(i64, offset::LOCAL_BYTES))
                }
                _ => {
                    let start = ir.ptrtoint(self.pointer_field(offset::PARAMS), i64);
                    inside(start, ir.constant(i64, self.layout.param_bytes))
                }
            }
        };
        let space = inst.space();
        let value = match space {
            Space::Shared | Space::Local | Space::Param => window(space),
            Space::Const => self.is_constant_memory(address),
            Space::Global | Space::Generic | Space::Reg | Space::Tex => {
                let elsewhere = ir.or(ir.or(window(Space::Shared), window(Space::Local)), window(Space::Param));
                ir.not(ir.or(elsewhere, self.is_constant_memory(address)))
            }
        };
        self.assign(result, Type::Pred, value)
    }

    /// Tests whether an address lies in a constant variable. Constant variables are tested one by one.
    fn is_constant_memory(&self, address: Val) -> Val {
        let ir = self.ir;
        let i64 = ir.int(64);
        let ty = ir.type_of(address);
        let mut found = ir.constant(ir.like(ty, ir.int(1)), 0);
        for (index, bytes) in self.layout.constants() {
            let table = self.pointer_field(offset::VARIABLES);
            let start = ir.load_invariant(i64, ir.offset_by(table, 8 * u64::from(index)), 8);
            let start = self.as_wide(start, ty);
            let inside = ir.icmp(IntPred::LLVMIntULT, ir.sub(address, start), ir.constant(ty, bytes));
            found = ir.or(found, inside);
        }
        found
    }

    /// Returns the type of an operand if the instruction form does not specify it.
    fn operand_type(&self, operand: &Operand) -> Type {
        match operand {
            Operand::Reg(reg) => bits_type(self.function.regs[*reg].ty),
            _ => Type::B64,
        }
    }

    /// Emits `mapa`. In a cluster of one block, the address does not change.
    fn map_address(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let [result, from, rank] = inst.operands.as_slice() else {
            return Err(TranslationError("a `mapa` without operands".into()));
        };
        let ty = inst.types().next().unwrap_or(Type::U64);
        let scalar = self.lanes.is_none();
        let address = self.mapped(inst, from, ty, scalar)?;
        let rank = ir.zext(self.fetch(rank, Type::U32, scalar)?, i64);
        let wide = ir.type_of(address);
        let blocks = self.cluster.blocks();
        let none = ir.and(self.active(inst)?, ir.icmp(IntPred::LLVMIntUGE, rank, ir.constant(wide, blocks)));
        let asked = match ir.lanes(rank) {
            Some(_) => ir.extract(rank, self.first_of(self.as_mask(none))),
            None => rank,
        };
        self.fault(inst, Reason::BadRank, none, asked);
        let value = if blocks == 1 {
            address
        } else if inst.space() == Space::Shared {
            let place = ir.and(address, ir.constant(wide, WINDOW - 1));
            let own = self.as_wide(ir.zext(self.cluster_rank(), i64), wide);
            let far = ir.mul(ir.add(rank, ir.constant(wide, FAR)), ir.constant(wide, WINDOW));
            ir.select(ir.icmp(IntPred::LLVMIntEQ, rank, own), place, ir.add(far, place))
        } else {
            let start = self.as_wide(self.cluster_start(), wide);
            let place = ir.and(ir.sub(address, start), ir.constant(wide, WINDOW - 1));
            ir.add(ir.add(start, ir.mul(rank, ir.constant(wide, WINDOW))), place)
        };
        let value = ir.resize(value, ir.int(ty.bits()), false);
        self.assign(result, ty, value)
    }

    /// Emits `getctarank`.
    fn rank_of_address(&mut self, inst: &InstData) -> TranslationResult<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let [result, from] = inst.operands.as_slice() else {
            return Err(TranslationError("a `getctarank` without operands".into()));
        };
        let ty = inst.types().next().unwrap_or(Type::U64);
        let address = self.mapped(inst, from, ty, self.lanes.is_none())?;
        let wide = ir.type_of(address);
        let window = |value: Val| ir.udiv(value, ir.constant(wide, WINDOW));
        let value = if !self.cluster.has_others() {
            ir.constant(wide, 0)
        } else if inst.space() == Space::Shared {
            let own = self.as_wide(ir.zext(self.cluster_rank(), i64), wide);
            let other = ir.sub(window(address), ir.constant(wide, FAR));
            ir.select(ir.icmp(IntPred::LLVMIntULT, address, ir.constant(wide, FAR * WINDOW)), own, other)
        } else {
            window(ir.sub(address, self.as_wide(self.cluster_start(), wide)))
        };
        let value = ir.trunc(value, ir.int(32));
        self.assign(result, Type::U32, value)
    }

    /// Returns the address operand of `mapa` and `getctarank` in 64 bits. The name of a variable becomes an
    /// address of the kind that the instruction expects.
    fn mapped(&self, inst: &InstData, from: &Operand, ty: Type, scalar: bool) -> TranslationResult<Val> {
        let ir = self.ir;
        let value = ir.resize(self.fetch(from, ty, scalar)?, ir.int(64), false);
        Ok(match from {
            Operand::Symbol(..) if inst.space() != Space::Shared => {
                let own = ir.ptrtoint(self.pointer_field(offset::SHARED), ir.int(64));
                ir.add(self.as_wide(own, ir.type_of(value)), value)
            }
            _ => value,
        })
    }
}

/// Returns whether an instruction only reads and writes registers.
pub(super) fn is_computed(inst: &InstData) -> bool {
    use Opcode::{Cvta, CvtaTo, Getctarank, Isspacep, Mapa, Mov};
    let is_function = || Operation::of(inst).is_some_and(|operation| operation.function().is_some());
    matches!(inst.opcode(), Some(Mov | Cvta | CvtaTo | Isspacep | Mapa | Getctarank)) || is_function()
}
