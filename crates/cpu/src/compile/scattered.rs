//! Lanes that each go to a place of their own.
//!
//! Hosts with AVX-512 gather and scatter 32 and 64 bits. Bytes and halves are gathered as the aligned words that they lie in, which
//! can be read wherever the byte can. What no host instruction does is done lane by lane without a branch: lanes that are masked off go to a place that
//! nobody looks at. LLVM itself would branch around every lane, which makes dozens of blocks of one access, slow to compile and to run.

use super::emit::{Emitted, Emitter};
use super::llvm::{IntPred, Val};
use super::memory::Parts;
use broadloom_ptx::{InstData, Modifier, Opcode, Operand, Reg, Space, Type};

impl Emitter<'_> {
    /// What lanes read, one vector for each part. Nothing is said of lanes whose guard does not hold.
    pub(super) fn gather(&self, parts: &Parts, pointers: Val, guard: Option<Val>) -> Vec<Val> {
        let lanes = self.lanes.unwrap_or(1);
        let mask = guard.map(|guard| self.whole_guard(guard, lanes));
        (0..parts.elements.len() as u64)
            .map(|index| {
                let places = self.behind(pointers, index * parts.bytes);
                match parts.bytes {
                    4 | 8 if self.host.avx512 => self.gather_whole(parts, places, mask),
                    1 | 2 if self.host.avx512 => self.gather_in_words(parts, places, mask),
                    _ => self.gather_one_by_one(parts, places, mask),
                }
            })
            .collect()
    }

    /// Lanes that may lie anywhere, but do not depend on what was loaded: most often side by side, but for a border.
    /// `address` is the register that holds it, where that is a pointer.
    pub(super) fn load_perhaps_row(
        &self,
        parts: &Parts,
        address: Option<Reg>,
        offset: i64,
        pointers: Val,
        guard: Option<Val>,
        invariant: bool,
    ) -> Emitted<Vec<Val>> {
        let ir = self.ir;
        let i32 = ir.int(32);
        let lanes = self.lanes.unwrap_or(1);
        let sum = address.map(|address| self.sum(address, STEPS)).transpose()?.flatten();
        let (first, fits, more) = match sum {
            Some(Sum { base, index: Some(index) }) if index.scale == parts.total() as i64 => {
                let all = self.all_lanes(index.reg)?;
                let start = ir.extract_at(all, 0);
                let fits = ir.icmp(IntPred::LLVMIntEQ, all, self.spread(start, 1, lanes));
                // Behind the largest number indices would go on elsewhere.
                let (compare, most) = match index.signed {
                    true => (IntPred::LLVMIntSLE, i32::MAX as u32 - 31),
                    false => (IntPred::LLVMIntULE, u32::MAX - 31),
                };
                let more = ir.icmp(compare, start, ir.constant(i32, u64::from(most)));
                let wide = ir.resize(start, ir.int(64), index.signed);
                let first = ir.add(base, ir.mul(wide, ir.constant(ir.int(64), index.scale as u64)));
                (ir.add(first, ir.constant(ir.int(64), offset as u64)), fits, Some(more))
            }
            _ => {
                let places = ir.ptrtoint(pointers, ir.int(64));
                let first = ir.extract_at(places, 0);
                let row = ir.add(ir.splat(first, lanes), ir.steps(ir.int(64), lanes, parts.total()));
                (first, ir.icmp(IntPred::LLVMIntEQ, places, row), None)
            }
        };
        let fits = match guard {
            Some(guard) => ir.or(fits, ir.not(self.whole_guard(guard, lanes))),
            None => fits,
        };
        let mut all = ir.icmp(IntPred::LLVMIntEQ, self.as_mask(fits), ir.constant(i32, u64::from(u32::MAX)));
        if let Some(more) = more {
            all = ir.and(all, more);
        }
        let (in_row, apart, after) = (ir.block("row"), ir.block("apart"), ir.block("loaded"));
        ir.branch_if(all, in_row, apart);
        ir.go_on_in(in_row);
        let values = self.load_row(parts, ir.as_pointer(first), lanes, guard, invariant);
        let in_row = ir.here();
        ir.branch(after);
        ir.go_on_in(apart);
        let others = self.gather(parts, pointers, guard);
        let apart = ir.here();
        ir.branch(after);
        ir.go_on_in(after);
        let merged = |(value, other): (Val, Val)| {
            let phi = ir.phi(ir.type_of(value));
            ir.incoming(phi, value, in_row);
            ir.incoming(phi, other, apart);
            phi
        };
        Ok(values.into_iter().zip(others).map(merged).collect())
    }

    /// Words at indices of 32 bits, sixteen lanes at a time: what hosts gather at once. Where the upper half of a warp may have
    /// nothing to do, as at the end of a list, it is passed over. `None` when the address is of another kind.
    pub(super) fn gather_by_index(&self, parts: &Parts, address: Reg, offset: i64, guard: Option<Val>) -> Emitted<Option<Val>> {
        let ir = self.ir;
        let (Some(lanes), true, 4, [_]) = (self.lanes, self.host.avx512, parts.bytes, parts.elements.as_slice()) else {
            return Ok(None);
        };
        let Some(Sum { base, index: Some(index) }) = self.sum(address, STEPS)? else { return Ok(None) };
        let i64 = ir.int(64);
        let all = self.all_lanes(index.reg)?;
        let base = ir.as_pointer(ir.add(base, ir.constant(i64, offset as u64)));
        let guard = guard.map(|guard| self.whole_guard(guard, lanes));
        let part = ir.vector(self.register_type(parts.ty), HALF);
        let gather = |start: u32| {
            let picks: Vec<u32> = (start..start + HALF).collect();
            let wide = ir.resize(ir.pick(all, &picks), i64, index.signed);
            let places = if index.scale == parts.bytes as i64 {
                ir.elements_at(base, ir.int(32), wide)
            } else {
                ir.offset(base, ir.mul(wide, ir.constant(ir.vector(i64, HALF), index.scale as u64)))
            };
            let mask = match guard {
                Some(guard) => ir.pick(guard, &picks),
                None => ir.constant(ir.vector(ir.int(1), HALF), 1),
            };
            let align = ir.constant(ir.int(32), parts.bytes);
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

    fn gather_whole(&self, parts: &Parts, places: Val, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let ty = ir.vector(self.register_type(parts.ty), lanes);
        let align = ir.constant(ir.int(32), parts.bytes);
        let mask = mask.unwrap_or_else(|| ir.constant(ir.vector(ir.int(1), lanes), 1));
        ir.intrinsic("llvm.masked.gather", &[ty, ir.type_of(places)], &[places, align, mask, ir.zero(ty)])
    }

    /// Bytes or halves out of the aligned words around them. A half is at an even address, so it lies in one word.
    fn gather_in_words(&self, parts: &Parts, places: Val, mask: Option<Val>) -> Val {
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
        let bits = ir.trunc(moved, ir.int(8 * parts.bytes as u32));
        ir.bitcast(bits, self.register_type(parts.ty))
    }

    fn gather_one_by_one(&self, parts: &Parts, places: Val, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let element = self.register_type(parts.ty);
        // The state of the warp can always be read.
        let places = self.or_elsewhere(places, mask, self.warp);
        (0..lanes).fold(ir.poison(ir.vector(element, lanes)), |all, lane| {
            let value = ir.load(element, ir.extract_at(places, lane), parts.bytes as u32);
            ir.insert(all, value, ir.constant(ir.int(32), u64::from(lane)))
        })
    }

    /// Writes what lanes have; of lanes that go to one place the last wins.
    pub(super) fn scatter(&self, parts: &Parts, pointers: Val, guard: Option<Val>) -> Emitted<()> {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        let mask = guard.map(|guard| self.whole_guard(guard, lanes));
        for (index, value) in self.stored(parts)?.into_iter().enumerate() {
            let places = self.behind(pointers, index as u64 * parts.bytes);
            if self.host.avx512 && matches!(parts.bytes, 4 | 8) {
                let align = ir.constant(ir.int(32), parts.bytes);
                let mask = mask.unwrap_or_else(|| ir.constant(ir.vector(ir.int(1), lanes), 1));
                ir.intrinsic("llvm.masked.scatter", &[ir.type_of(value), ir.type_of(places)], &[value, places, align, mask]);
                continue;
            }
            let places = match mask {
                Some(_) => self.or_elsewhere(places, mask, self.sink()),
                None => places,
            };
            for lane in 0..lanes {
                ir.store(ir.extract_at(value, lane), ir.extract_at(places, lane), parts.bytes as u32);
            }
        }
        Ok(())
    }

    /// Places of lanes in a mask, and one place for all others.
    fn or_elsewhere(&self, places: Val, mask: Option<Val>, elsewhere: Val) -> Val {
        let lanes = self.lanes.unwrap_or(1);
        mask.map_or(places, |mask| self.ir.select(mask, places, self.ir.splat(elsewhere, lanes)))
    }

    /// Room for what nobody reads.
    fn sink(&self) -> Val {
        let made = self.sink.get().unwrap_or_else(|| self.ir.stack(self.ir.int(128), 16));
        self.sink.set(Some(made));
        made
    }

    fn behind(&self, pointers: Val, bytes: u64) -> Val {
        if bytes == 0 { pointers } else { self.ir.offset(pointers, self.ir.constant(self.ir.int(64), bytes)) }
    }

    /// An address as something uniform and an index of 32 bits times a number, when it is that. The value of `base` is that of lane 0.
    fn sum(&self, reg: Reg, steps: u32) -> Emitted<Option<Sum>> {
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
        } else {
            None
        })
    }
}

/// Lanes that are gathered at once.
const HALF: u32 = 16;
/// Instructions that an address is followed through.
const STEPS: u32 = 8;

/// A part of an address that differs between lanes.
#[derive(Clone, Copy)]
struct Index {
    reg: Reg,
    scale: i64,
    signed: bool,
}

/// An address taken apart.
struct Sum {
    base: Val,
    index: Option<Index>,
}
