//! Accesses with an arbitrary address in each lane.
//!
//! Hosts with AVX-512 gather and scatter 32 and 64 bits. Bytes and halves are gathered as the aligned words
//! that contain them, which are readable wherever the byte is. Other accesses are done lane by lane without a
//! branch: masked-off lanes access a dummy address. LLVM itself would branch around every lane. That makes
//! dozens of blocks out of one access, slow to compile and to run.

use super::address::LaneAccess;
use super::emitter::{Emitter, TranslationResult};
use super::llvm::{IntPred, Label, Val};
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Reg, Space, Type};

impl Emitter<'_> {
    /// Gathers the values of the lanes, one vector for each part. Lanes whose guard is false get unspecified
    /// values.
    pub(super) fn gather(&self, access: &LaneAccess, pointers: Val, guard: Option<Val>) -> Vec<Val> {
        let lanes = self.lanes.unwrap_or(1);
        let mask = guard.map(|guard| self.broadcast(guard, lanes));
        (0..access.operands.len() as u64)
            .map(|index| {
                let places = self.behind(pointers, index * access.bytes);
                match access.bytes {
                    4 | 8 if self.host.avx512 => self.gather_whole(access, places, mask),
                    1 | 2 if self.host.avx512 => self.gather_in_words(access, places, mask),
                    _ => self.gather_one_by_one(access, places, mask),
                }
            })
            .collect()
    }

    /// Loads lanes that may have any address, but do not depend on loaded values. They are mostly adjacent,
    /// except at a border.
    ///
    /// The first lane determines the start of the row. If that does not fit, the first active lane does: at a
    /// border, the inactive lanes are often clamped.
    pub(super) fn load_perhaps_row(
        &self,
        access: &LaneAccess,
        sum: Option<&Sum>,
        offset: i64,
        pointers: Val,
        guard: Option<Val>,
        invariant: bool,
    ) -> TranslationResult<Vec<Val>> {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let row = match sum.and_then(|sum| sum.row(access.total())) {
            Some((base, index, step)) => {
                LaneSteps { base: Some(base), all: self.all_lanes(index.reg)?, step, index: Some(index) }
            }
            None => LaneSteps { base: None, all: ir.ptrtoint(pointers, ir.int(64)), step: access.total(), index: None },
        };
        let mask = guard.map(|guard| self.broadcast(guard, lanes));
        let start = ir.extract_at(row.all, 0);
        let (in_row, apart, after) = (ir.block("row"), ir.block("apart"), ir.block("loaded"));
        let mut starts = vec![(ir.here(), start)];
        match mask {
            None => ir.branch_if(self.is_row_from(&row, start, mask), in_row, apart),
            Some(mask) => {
                let again = ir.block("again");
                ir.branch_if(self.is_row_from(&row, start, Some(mask)), in_row, again);
                ir.go_on_in(again);
                let (i1, i32) = (ir.int(1), ir.int(32));
                let first = ir.intrinsic("llvm.cttz", &[i32], &[self.as_mask(mask), ir.constant(i1, 0)]);
                let first = ir.and(first, ir.constant(i32, u64::from(lanes - 1)));
                let before = ir.mul(ir.resize(first, ir.element(ir.type_of(row.all)), false), self.as_step(&row, row.step));
                let start = ir.sub(ir.extract(row.all, first), before);
                starts.push((ir.here(), start));
                ir.branch_if(self.is_row_from(&row, start, Some(mask)), in_row, apart);
            }
        }
        ir.go_on_in(in_row);
        let start = ir.phi(ir.type_of(start));
        starts.into_iter().for_each(|(from, value)| ir.incoming(start, value, from));
        let first = self.row_start(&row, start, offset);
        let values = self.load_row(access, ir.as_pointer(first), lanes, guard, invariant);
        let in_row = ir.here();
        ir.branch(after);
        ir.go_on_in(apart);
        let near = self.load_near(access, &row, offset, mask, after);
        let by_index = sum.map(|sum| self.gather_by_index(access, sum, offset, guard)).transpose()?.flatten();
        let others = match by_index {
            Some(value) => vec![value],
            None => self.gather(access, pointers, guard),
        };
        let apart = ir.here();
        ir.branch(after);
        ir.go_on_in(after);
        let merged = |(number, (value, other)): (usize, (Val, Val))| {
            let phi = ir.phi(ir.type_of(value));
            ir.incoming(phi, value, in_row);
            ir.incoming(phi, other, apart);
            if let Some((value, block)) = near.filter(|_| number == 0) {
                ir.incoming(phi, value, block);
            }
            phi
        };
        Ok(values.into_iter().zip(others).enumerate().map(merged).collect())
    }

    /// Returns the address of the row with this start.
    fn row_start(&self, row: &LaneSteps, start: Val, offset: i64) -> Val {
        let ir = self.ir;
        let (Some(base), Some(index)) = (row.base, row.index) else { return start };
        let i64 = ir.int(64);
        let wide = ir.resize(start, i64, index.signed);
        let first = ir.add(base, ir.mul(wide, ir.constant(i64, index.scale as u64)));
        ir.add(first, ir.constant(i64, offset as u64))
    }

    /// Loads lanes near the edge of a row, where lanes beyond the edge read its last element again. All of
    /// them lie within 32 elements from the first lane's, which are loaded at once and distributed to the
    /// lanes. Returns the value and the block of the load, which branches to `after`; the builder continues
    /// in the case of lanes that are further apart. Elements between two readable elements are readable too:
    /// they are in the same pages.
    fn load_near(
        &self,
        access: &LaneAccess,
        row: &LaneSteps,
        offset: i64,
        guard: Option<Val>,
        after: Label,
    ) -> Option<(Val, Label)> {
        let ir = self.ir;
        let i32 = ir.int(32);
        let (Some(lanes @ 32), true, 4, [_]) = (self.lanes, self.host.avx512, access.bytes, access.operands.as_slice()) else {
            return None;
        };
        let start = ir.extract_at(row.all, 0);
        let apart = ir.sub(row.all, ir.splat(start, lanes));
        let apart = guard.map_or(apart, |guard| ir.select(guard, apart, ir.zero(ir.type_of(apart))));
        let limit = self.as_step(row, u64::from(lanes) * row.step);
        let is_near = |far: Val| ir.icmp(IntPred::LLVMIntULT, far, limit);
        let last = ir.extract_at(apart, lanes - 1);
        let mut perhaps = is_near(last);
        if let Some(index) = row.index {
            // Same bound as for a whole row.
            let (compare, most) =
                if index.signed { (IntPred::LLVMIntSLE, i32::MAX as u32) } else { (IntPred::LLVMIntULE, u32::MAX) };
            perhaps = ir.and(perhaps, ir.icmp(compare, start, ir.constant(i32, u64::from(most) - 31 * row.step)));
        }
        let (near, anywhere) = (ir.block("near"), ir.block("anywhere"));
        let most = match guard {
            // In a row and beyond its edges no lane reads further than the last lane. This check is the same
            // for all loads at an index.
            None => {
                let held = ir.icmp(IntPred::LLVMIntULE, apart, ir.splat(last, lanes));
                let all = ir.icmp(IntPred::LLVMIntEQ, self.as_mask(held), ir.constant(i32, u64::from(u32::MAX)));
                ir.branch_if(ir.and(perhaps, all), near, anywhere);
                last
            }
            Some(guard) => {
                let look = ir.block("look");
                ir.branch_if(ir.and(perhaps, ir.extract_at(guard, 0)), look, anywhere);
                ir.go_on_in(look);
                let most = ir.intrinsic("llvm.vector.reduce.umax", &[ir.type_of(apart)], &[apart]);
                ir.branch_if(is_near(most), near, anywhere);
                most
            }
        };
        ir.go_on_in(near);
        // In elements, which are `step` apart.
        let shift = u64::from(row.step.trailing_zeros());
        let elements = |far: Val| ir.resize(ir.lshr(far, ir.constant(ir.type_of(far), shift)), i32, false);
        let bits = ir.sub(ir.shl(ir.constant(i32, 2), elements(most)), ir.constant(i32, 1));
        let mask = ir.bitcast_whole(bits, ir.vector(ir.int(1), lanes));
        let ty = ir.vector(self.register_type(access.ty), lanes);
        let (align, first) = (ir.constant(i32, access.bytes), self.row_start(row, start, offset));
        let all = ir.intrinsic("llvm.masked.load", &[ty, ir.pointer()], &[ir.as_pointer(first), align, mask, ir.zero(ty)]);
        let value = self.permute(all, elements(apart));
        let near = ir.here();
        ir.branch(after);
        ir.go_on_in(anywhere);
        Some((value, near))
    }

    /// Returns whether all lanes of a mask lie in a row with this start.
    fn is_row_from(&self, row: &LaneSteps, start: Val, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let i32 = ir.int(32);
        let fits = ir.icmp(IntPred::LLVMIntEQ, row.all, self.spread(start, row.step as i64, lanes));
        let fits = match mask {
            Some(mask) => ir.or(fits, ir.not(mask)),
            None => fits,
        };
        let all = ir.icmp(IntPred::LLVMIntEQ, self.as_mask(fits), ir.constant(i32, u64::from(u32::MAX)));
        let Some(index) = row.index else { return all };
        // Indices after the largest number would wrap, and so would those before the smallest, which are
        // large.
        let (compare, most) = if index.signed { (IntPred::LLVMIntSLE, i32::MAX as u32) } else { (IntPred::LLVMIntULE, u32::MAX) };
        let more = ir.icmp(compare, start, ir.constant(i32, u64::from(most) - 31 * row.step));
        ir.and(all, more)
    }

    fn as_step(&self, row: &LaneSteps, number: u64) -> Val {
        self.ir.constant(self.ir.element(self.ir.type_of(row.all)), number)
    }

    /// Splits the addresses of an access into a uniform base and a 32-bit index, if they have this form.
    pub(super) fn sum_of(&self, space: Space, reg: Reg) -> TranslationResult<Option<Sum>> {
        match space {
            Space::Global | Space::Generic => self.sum(reg, STEPS),
            Space::Shared if self.function.regs[reg].ty.bits() == 32 => {
                let base = self.ir.ptrtoint(self.pointer_field(crate::abi::offset::SHARED), self.ir.int(64));
                Ok(Some(Sum { base, index: Some(Index { reg, scale: 1, signed: true }) }))
            }
            Space::Shared | Space::Local | Space::Const | Space::Param | Space::Reg | Space::Tex => Ok(None),
        }
    }

    /// Gathers words at 32-bit indices, sixteen lanes at a time, which is what hosts gather at once. If the
    /// upper half of a warp may be inactive, as at the end of a list, it is skipped. Returns `None` if the
    /// address has another form.
    pub(super) fn gather_by_index(
        &self,
        access: &LaneAccess,
        sum: &Sum,
        offset: i64,
        guard: Option<Val>,
    ) -> TranslationResult<Option<Val>> {
        let ir = self.ir;
        let (Some(lanes), true, 4, [_]) = (self.lanes, self.host.avx512, access.bytes, access.operands.as_slice()) else {
            return Ok(None);
        };
        let Sum { base, index: Some(index) } = *sum else { return Ok(None) };
        let i64 = ir.int(64);
        let all = self.all_lanes(index.reg)?;
        let base = ir.as_pointer(ir.add(base, ir.constant(i64, offset as u64)));
        let guard = guard.map(|guard| self.broadcast(guard, lanes));
        let part = ir.vector(self.register_type(access.ty), HALF);
        let gather = |start: u32| {
            let picks: Vec<u32> = (start..start + HALF).collect();
            let wide = ir.resize(ir.pick(all, &picks), i64, index.signed);
            let places = if index.scale == access.bytes as i64 {
                ir.elements_at(base, ir.int(32), wide)
            } else {
                ir.offset(base, ir.mul(wide, ir.constant(ir.vector(i64, HALF), index.scale as u64)))
            };
            let mask = match guard {
                Some(guard) => ir.pick(guard, &picks),
                None => ir.constant(ir.vector(ir.int(1), HALF), 1),
            };
            let align = ir.constant(ir.int(32), access.bytes);
            ir.intrinsic("llvm.masked.gather", &[part, ir.type_of(places)], &[places, align, mask, ir.zero(part)])
        };
        let low = gather(0);
        let high = match guard {
            None => gather(HALF),
            Some(guard) => {
                let upper = ir.lshr(self.as_mask(guard), ir.constant(ir.int(32), u64::from(HALF)));
                let any = ir.icmp(IntPred::LLVMIntNE, upper, ir.constant(ir.int(32), 0));
                let (before, some, after) = (ir.here(), ir.block("upper"), ir.block("gathered"));
                ir.branch_if(any, some, after);
                ir.go_on_in(some);
                let high = gather(HALF);
                ir.branch(after);
                ir.go_on_in(after);
                let phi = ir.phi(part);
                ir.incoming(phi, ir.zero(part), before);
                ir.incoming(phi, high, some);
                phi
            }
        };
        Ok(Some(ir.shuffle(low, high, &(0..lanes).collect::<Vec<u32>>())))
    }

    fn gather_whole(&self, access: &LaneAccess, places: Val, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let ty = ir.vector(self.register_type(access.ty), lanes);
        let align = ir.constant(ir.int(32), access.bytes);
        let mask = mask.unwrap_or_else(|| ir.constant(ir.vector(ir.int(1), lanes), 1));
        ir.intrinsic("llvm.masked.gather", &[ty, ir.type_of(places)], &[places, align, mask, ir.zero(ty)])
    }

    /// Extracts bytes or halves from the aligned words around them. A half has an even address, so it lies in
    /// one word.
    fn gather_in_words(&self, access: &LaneAccess, places: Val, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let (i32, i64) = (ir.int(32), ir.int(64));
        let addresses = ir.ptrtoint(places, i64);
        let wide = ir.type_of(addresses);
        let words = ir.as_pointer(ir.and(addresses, ir.constant(wide, !3)));
        let ty = ir.vector(i32, lanes);
        let mask = mask.unwrap_or_else(|| ir.constant(ir.vector(ir.int(1), lanes), 1));
        let gathered =
            ir.intrinsic("llvm.masked.gather", &[ty, ir.type_of(words)], &[words, ir.constant(i32, 4), mask, ir.zero(ty)]);
        let byte = ir.and(ir.trunc(addresses, i32), ir.constant(ty, 3));
        let moved = ir.lshr(gathered, ir.shl(byte, ir.constant(ty, 3)));
        let bits = ir.trunc(moved, ir.int(8 * access.bytes as u32));
        ir.bitcast(bits, self.register_type(access.ty))
    }

    fn gather_one_by_one(&self, access: &LaneAccess, places: Val, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let element = self.register_type(access.ty);
        // The state of the warp is always readable.
        let places = self.or_elsewhere(places, mask, self.warp);
        (0..lanes).fold(ir.poison(ir.vector(element, lanes)), |all, lane| {
            let value = ir.load(element, ir.extract_at(places, lane), access.bytes as u32);
            ir.insert(all, value, ir.constant(ir.int(32), u64::from(lane)))
        })
    }

    /// Scatters the values of the lanes. Of lanes with one address the last wins.
    pub(super) fn scatter(&self, access: &LaneAccess, pointers: Val, guard: Option<Val>) -> TranslationResult<()> {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let mask = guard.map(|guard| self.broadcast(guard, lanes));
        for (index, value) in self.stored(access)?.into_iter().enumerate() {
            let places = self.behind(pointers, index as u64 * access.bytes);
            if self.host.avx512 && matches!(access.bytes, 4 | 8) {
                let align = ir.constant(ir.int(32), access.bytes);
                let mask = mask.unwrap_or_else(|| ir.constant(ir.vector(ir.int(1), lanes), 1));
                ir.intrinsic("llvm.masked.scatter", &[ir.type_of(value), ir.type_of(places)], &[value, places, align, mask]);
                continue;
            }
            let places = match mask {
                Some(_) => self.or_elsewhere(places, mask, self.sink()),
                None => places,
            };
            for lane in 0..lanes {
                ir.store(ir.extract_at(value, lane), ir.extract_at(places, lane), access.bytes as u32);
            }
        }
        Ok(())
    }

    /// Returns the addresses of lanes in a mask, and `elsewhere` for all other lanes.
    fn or_elsewhere(&self, places: Val, mask: Option<Val>, elsewhere: Val) -> Val {
        let lanes = self.lanes.unwrap_or(1);
        mask.map_or(places, |mask| self.ir.select(mask, places, self.ir.splat(elsewhere, lanes)))
    }

    /// Returns dummy memory that is never read.
    fn sink(&self) -> Val {
        let made = self.sink.get().unwrap_or_else(|| self.ir.stack(self.ir.int(128), 16));
        self.sink.set(Some(made));
        made
    }

    fn behind(&self, pointers: Val, bytes: u64) -> Val {
        if bytes == 0 { pointers } else { self.ir.offset(pointers, self.ir.constant(self.ir.int(64), bytes)) }
    }

    /// Multiplies an address by a number.
    fn times(&self, sum: Sum, by: i64) -> Option<Sum> {
        let base = self.ir.mul(sum.base, self.ir.constant(self.ir.int(64), by as u64));
        let index = match sum.index {
            Some(index) => Some(Index { scale: index.scale.checked_mul(by)?, ..index }),
            None => None,
        };
        Some(Sum { base, index })
    }

    /// Splits an address into a uniform base and a scaled 32-bit index, if it has this form. `base` is the
    /// value of lane 0.
    fn sum(&self, reg: Reg, steps: u32) -> TranslationResult<Option<Sum>> {
        let ir = self.ir;
        let i64 = ir.int(64);
        if self.is_kept_as_scalar(reg) {
            let uniform = self.offsets(reg).is_none() && ir.type_of(self.lane0(reg)?) == i64;
            return Ok(if uniform { Some(Sum { base: self.lane0(reg)?, index: None }) } else { None });
        }
        let shown = |inst: &&InstData| steps > 0 && inst.guard.is_none() && self.shows(reg);
        let Some(inst) = self.definition(reg).filter(shown) else { return Ok(None) };
        let part = |index: usize| match inst.operands.get(index) {
            Some(Operand::Reg(reg)) => self.sum(*reg, steps - 1),
            Some(Operand::Imm(imm)) => Ok(imm.integer_bits().map(|bits| Sum { base: ir.constant(i64, bits), index: None })),
            _ => Ok(None),
        };
        let number = |index: usize| match inst.operands.get(index) {
            Some(Operand::Imm(imm)) => imm.integer_bits().map(|bits| bits as i64),
            _ => None,
        };
        let index = |at: usize, scale: i64, signed: bool| match inst.operands.get(at) {
            Some(Operand::Reg(reg)) if self.function.regs[*reg].ty.bits() == 32 => {
                Some(Sum { base: ir.constant(i64, 0), index: Some(Index { reg: *reg, scale, signed }) })
            }
            _ => None,
        };
        let types: Vec<Type> = inst.types().collect();
        let signed = types.last().is_some_and(|ty| ty.is_signed());
        let opcode = inst.opcode();
        let by = number(2).filter(|by| (0..32).contains(by));
        let is_wide = types.last().is_some_and(|ty| ty.bits() == 64 && ty.is_integer()) && inst.has(Modifier::Lo);
        Ok(if opcode == Some(Opcode::Add) {
            match (part(1)?, part(2)?) {
                (Some(a), Some(b)) => match (a.index, b.index) {
                    (Some(_), Some(_)) => None,
                    (a_index, b_index) => Some(Sum { base: ir.add(a.base, b.base), index: a_index.or(b_index) }),
                },
                (None, _) | (_, None) => None,
            }
        } else if let (Some(Opcode::Shl), Some(by)) = (opcode, by) {
            part(1)?.map(|sum| Sum {
                base: ir.shl(sum.base, ir.constant(i64, by as u64)),
                index: sum.index.map(|index| Index { scale: index.scale << by, ..index }),
            })
        } else if matches!(opcode, Some(Opcode::Cvta | Opcode::CvtaTo)) && inst.space() == Space::Global {
            part(1)?
        } else if opcode == Some(Opcode::Cvt) && types.iter().map(|ty| ty.bits()).eq([64, 32]) {
            index(1, 1, signed)
        } else if opcode == Some(Opcode::Mul) && inst.has(Modifier::Wide) {
            number(2).and_then(|scale| index(1, scale, signed))
        } else if let (Some(Opcode::Mul), Some(by)) = (opcode, number(2).filter(|_| is_wide)) {
            part(1)?.and_then(|sum| self.times(sum, by))
        } else if let (Some(Opcode::Mad), Some(by)) = (opcode, number(2)) {
            let product = match inst.has(Modifier::Wide) {
                true => index(1, by, signed),
                false if is_wide => part(1)?.and_then(|sum| self.times(sum, by)),
                false => None,
            };
            match (product, part(3)?) {
                (Some(a), Some(b)) => match (a.index, b.index) {
                    (Some(_), Some(_)) => None,
                    (a_index, b_index) => Some(Sum { base: ir.add(a.base, b.base), index: a_index.or(b_index) }),
                },
                (None, _) | (_, None) => None,
            }
        } else {
            None
        })
    }
}

/// Number of lanes that are gathered at once.
pub(super) const HALF: u32 = 16;
/// Maximum number of instructions traced back from an address.
const STEPS: u32 = 8;

/// Part of an address that differs between lanes.
#[derive(Clone, Copy)]
pub(super) struct Index {
    pub(super) reg: Reg,
    pub(super) scale: i64,
    pub(super) signed: bool,
}

/// Address split into base and index.
pub(super) struct Sum {
    pub(super) base: Val,
    pub(super) index: Option<Index>,
}

impl Sum {
    /// Returns base, index and the index step between neighbouring lanes, for lanes of `bytes` bytes side by
    /// side.
    fn row(&self, bytes: u64) -> Option<(Val, Index, u64)> {
        let index = self.index?;
        let scale = u64::try_from(index.scale).ok().filter(|scale| *scale > 0 && bytes.is_multiple_of(*scale))?;
        Some((self.base, index, bytes / scale))
    }
}

/// Values that decide whether lanes are adjacent: addresses, or indices from a base.
struct LaneSteps {
    base: Option<Val>,
    all: Val,
    /// Step from one lane to the next.
    step: u64,
    index: Option<Index>,
}
