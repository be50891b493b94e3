//! Vector accesses: rows of adjacent lanes, groups of lanes, and one address for all lanes.

use super::address::LaneAccess;
use super::emitter::{Emitter, TranslationResult};
use super::llvm::{IntPred, Val};
use super::operand::bits_type;
use super::pattern::LINE;
use crate::abi::offset;
use broadloom_ptx::{Address, InstData, Operand, Type};

/// Minimum bytes of a non-temporal store.
const AROUND: u64 = 16;

impl Emitter<'_> {
    /// Loads with one access for all lanes.
    pub(super) fn load_one(
        &self,
        access: &LaneAccess,
        pointer: Val,
        guard: Option<Val>,
        invariant: bool,
        undivided: bool,
    ) -> Vec<Val> {
        let ir = self.ir;
        let pointer = match guard {
            Some(guard) => ir.select(self.any(guard), pointer, self.warp),
            None => pointer,
        };
        let ty = self.register_type(access.ty);
        let count = access.operands.len() as u32;
        let whole = if count == 1 { ty } else { ir.vector(ty, count) };
        let align = access.bytes as u32;
        let value = if undivided { ir.load_as_is(whole, pointer, align) } else { ir.load(whole, pointer, align) };
        if invariant && guard.is_none() {
            ir.mark_invariant(value);
        }
        if count == 1 { vec![value] } else { (0..count).map(|index| ir.extract_at(value, index)).collect() }
    }

    /// Loads a row of `lanes` lanes side by side.
    pub(super) fn load_row(
        &self,
        access: &LaneAccess,
        pointer: Val,
        lanes: u32,
        guard: Option<Val>,
        invariant: bool,
    ) -> Vec<Val> {
        let ir = self.ir;
        let count = access.operands.len();
        let element = self.register_type(access.ty);
        let ty = ir.vector(element, lanes * count as u32);
        let align = access.bytes as u32;
        let all = match guard {
            None => ir.load(ty, pointer, align),
            Some(guard) => {
                let mask = self.widened_mask(self.broadcast(guard, lanes), count);
                ir.intrinsic(
                    "llvm.masked.load",
                    &[ty, ir.pointer()],
                    &[pointer, ir.constant(ir.int(32), u64::from(align)), mask, ir.zero(ty)],
                )
            }
        };
        if invariant {
            ir.mark_invariant(all);
        }
        self.apart(all, lanes, count)
    }

    /// Loads in groups of lanes: `load` gives the elements of a group, from its pointer and its part of the guard.
    fn in_groups_of(
        &self,
        group: u32,
        pointer_of: &dyn Fn(u32) -> Val,
        guard: Option<Val>,
        load: &dyn Fn(Val, Option<Val>) -> Vec<Val>,
    ) -> Vec<Val> {
        let lanes = self.lanes.unwrap_or(1);
        let mut pieces: Vec<Vec<Val>> = vec![];
        for start in (0..lanes).step_by(group as usize) {
            let pointer = pointer_of(start);
            let guard = guard.map(|guard| self.slice(self.broadcast(guard, lanes), start, group));
            let values = load(pointer, guard);
            pieces.resize(values.len(), vec![]);
            pieces.iter_mut().zip(values).for_each(|(pieces, value)| pieces.push(value));
        }
        pieces.into_iter().map(|pieces| self.joined(pieces)).collect()
    }

    /// Loads in groups of lanes. The lanes of a group are a row, or have one address, which the flag says.
    pub(super) fn load_groups(
        &self,
        access: &LaneAccess,
        group: u32,
        is_broadcast: bool,
        pointer_of: &dyn Fn(u32) -> Val,
        guard: Option<Val>,
        invariant: bool,
    ) -> Vec<Val> {
        let ir = self.ir;
        self.in_groups_of(group, pointer_of, guard, &|pointer, guard| {
            if !is_broadcast {
                return self.load_row(access, pointer, group, guard, invariant);
            }
            let guard = guard.map(|piece| ir.intrinsic("llvm.vector.reduce.or", &[ir.type_of(piece)], &[piece]));
            let values = self.load_one(access, pointer, guard, invariant, false);
            values.into_iter().map(|value| ir.splat(value, group)).collect()
        })
    }

    /// Returns the values that a store writes, in all lanes.
    pub(super) fn stored(&self, access: &LaneAccess) -> TranslationResult<Vec<Val>> {
        access.operands.iter().map(|element| self.fetch(element, bits_type(access.ty), false)).collect()
    }

    /// Stores with one access for all lanes. The last active lane wins, as if they had stored one after the
    /// other. With `around`, the store is non-temporal.
    pub(super) fn store_one(
        &mut self,
        access: &LaneAccess,
        pointer: Val,
        guard: Option<Val>,
        around: bool,
    ) -> TranslationResult<()> {
        let ir = self.ir;
        let is_uniform = |element: &Operand| match element {
            Operand::Reg(reg) => self.shapes.shape(*reg).is_uniform(),
            _ => true,
        };
        let scalar = self.lanes.is_none() || access.operands.iter().all(is_uniform);
        let (condition, last) = match (guard, self.lanes) {
            (Some(guard), Some(_)) if ir.lanes(guard).is_some() => {
                let mask = self.as_mask(guard);
                let zeros = ir.intrinsic("llvm.ctlz", &[ir.int(32)], &[mask, ir.constant(ir.int(1), 0)]);
                (Some(self.any(guard)), Some(ir.sub(ir.constant(ir.int(32), 31), zeros)))
            }
            (Some(guard), _) => (Some(guard), None),
            (None, _) => (None, None),
        };
        let after = condition.map(|condition| {
            let (store, after) = (ir.block("store"), ir.block("stored"));
            ir.branch_if(condition, store, after);
            ir.go_on_in(store);
            after
        });
        let mut values = vec![];
        for element in &access.operands {
            // Fetched as bits, so that NaNs are canonical.
            let value = self.fetch(element, bits_type(access.ty), scalar)?;
            values.push(match (ir.lanes(value), last) {
                (None, _) => value,
                (Some(lanes), None) => ir.extract_at(value, lanes - 1),
                (Some(_), Some(last)) => ir.extract(value, last),
            });
        }
        let value = match values[..] {
            [one] => one,
            _ => {
                let empty = ir.poison(ir.vector(ir.type_of(values[0]), values.len() as u32));
                (0..).zip(&values).fold(empty, |all, (index, value)| ir.insert(all, *value, ir.constant(ir.int(32), index)))
            }
        };
        if around && access.total() >= AROUND {
            ir.store_around(value, pointer, access.total() as u32);
        } else {
            ir.store(value, pointer, access.bytes as u32);
        }
        if let Some(after) = after {
            ir.branch(after);
            ir.go_on_in(after);
        }
        Ok(())
    }

    pub(super) fn store_row(&self, access: &LaneAccess, pointer: Val, lanes: u32, values: &[Val], guard: Option<Val>) {
        let ir = self.ir;
        let count = values.len();
        let all = self.together(values, lanes);
        let align = access.bytes as u32;
        match guard {
            None => ir.store(all, pointer, align),
            Some(guard) => {
                let mask = self.widened_mask(self.broadcast(guard, lanes), count);
                let align = ir.constant(ir.int(32), u64::from(align));
                ir.intrinsic("llvm.masked.store", &[ir.type_of(all), ir.pointer()], &[all, pointer, align, mask]);
            }
        }
    }

    /// Stores a row that is not read soon. If it fills whole cache lines, the stores are non-temporal.
    pub(super) fn stream_row(&self, access: &LaneAccess, pointer: Val, lanes: u32, values: &[Val], guard: Option<Val>) {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let bytes = u64::from(lanes) * access.total();
        if !bytes.is_multiple_of(LINE) {
            return self.store_row(access, pointer, lanes, values, guard);
        }
        let (around, through, after) = (ir.block("around"), ir.block("through"), ir.block("stored"));
        let wanted = ir.icmp(IntPred::LLVMIntNE, self.field(i32, offset::STREAMS), ir.constant(i32, 0));
        let low = ir.and(ir.ptrtoint(pointer, i64), ir.constant(i64, LINE - 1));
        let mut whole = ir.and(wanted, ir.icmp(IntPred::LLVMIntEQ, low, ir.constant(i64, 0)));
        if let Some(guard) = guard {
            let all = ir.constant(i32, u64::from(u32::MAX));
            whole = ir.and(whole, ir.icmp(IntPred::LLVMIntEQ, self.as_mask(self.broadcast(guard, lanes)), all));
        }
        ir.branch_if(whole, around, through);
        ir.go_on_in(around);
        ir.store_around(self.together(values, lanes), pointer, LINE as u32);
        ir.branch(after);
        ir.go_on_in(through);
        self.store_row(access, pointer, lanes, values, guard);
        ir.branch(after);
        ir.go_on_in(after);
    }

    pub(super) fn store_groups(
        &self,
        access: &LaneAccess,
        pointer_of: &dyn Fn(u32) -> Val,
        group: u32,
        guard: Option<Val>,
    ) -> TranslationResult<()> {
        let lanes = self.lanes.unwrap_or(1);
        let values = self.stored(access)?;
        for start in (0..lanes).step_by(group as usize) {
            let guard = guard.map(|guard| self.slice(self.broadcast(guard, lanes), start, group));
            let values: Vec<Val> = values.iter().map(|value| self.slice(*value, start, group)).collect();
            self.store_row(access, pointer_of(start), group, &values, guard);
        }
        Ok(())
    }

    /// Returns the lane of each element of a span, and a mask of the elements that are touched. If several
    /// lanes have the same element, the last one is taken. The length is padded to a power of two with
    /// untouched elements.
    fn spread_over(&self, elements: u32, picks: &[u32], guard: Option<Val>) -> (Vec<u32>, Option<Val>) {
        let ir = self.ir;
        // Elements outside the mask are not accessed, and LLVM compiles vectors of odd lengths slowly.
        let mut sources: Vec<Option<u32>> = vec![None; elements.next_power_of_two() as usize];
        for (lane, pick) in (0..).zip(picks) {
            sources[*pick as usize] = Some(lane);
        }
        let lanes: Vec<u32> = sources.iter().map(|source| source.unwrap_or(0)).collect();
        let i1 = ir.int(1);
        let taken: Vec<Val> = sources.iter().map(|source| ir.constant(i1, u64::from(source.is_some()))).collect();
        let all = sources.iter().all(Option::is_some);
        let mask = match guard {
            Some(guard) => {
                let guard = self.broadcast(guard, picks.len() as u32);
                Some(ir.and(ir.pick(guard, &lanes), ir.constants(&taken)))
            }
            None if all => None,
            None => Some(ir.constants(&taken)),
        };
        (lanes, mask)
    }

    /// Loads lanes that lie apart, with the elements between them, in one access.
    pub(super) fn load_spread(&self, access: &LaneAccess, place: Val, elements: u32, picks: &[u32], guard: Option<Val>) -> Val {
        let ir = self.ir;
        let element = self.register_type(access.ty);
        let all = match guard {
            None => ir.load(ir.vector(element, elements), place, access.bytes as u32),
            Some(_) => {
                let (lanes, mask) = self.spread_over(elements, picks, guard);
                let ty = ir.vector(element, lanes.len() as u32);
                let mask = mask.unwrap_or_else(|| ir.constant(ir.like(ty, ir.int(1)), 1));
                let align = ir.constant(ir.int(32), access.bytes);
                ir.intrinsic("llvm.masked.load", &[ty, ir.pointer()], &[place, align, mask, ir.zero(ty)])
            }
        };
        ir.pick(all, picks)
    }

    /// Stores lanes that lie apart, without the elements between them. Of lanes with one address the last
    /// wins.
    pub(super) fn store_spread(
        &self,
        access: &LaneAccess,
        place: Val,
        elements: u32,
        picks: &[u32],
        value: Val,
        guard: Option<Val>,
    ) {
        let ir = self.ir;
        let (lanes, mask) = self.spread_over(elements, picks, guard);
        let spread = ir.pick(value, &lanes);
        match mask {
            None => ir.store(spread, place, access.bytes as u32),
            Some(mask) => {
                let align = ir.constant(ir.int(32), access.bytes);
                ir.intrinsic("llvm.masked.store", &[ir.type_of(spread), ir.pointer()], &[spread, place, align, mask]);
            }
        }
    }

    /// Stores one element per lane into the row of an argument or result of a call, if it fills the row. Returns `false` if it does not.
    pub(crate) fn store_row_whole(
        &mut self,
        inst: &InstData,
        address: &Address,
        value: &Operand,
        ty: Type,
    ) -> TranslationResult<bool> {
        let ir = self.ir;
        let Some((row, bytes)) = self.row_of(address.base) else { return Ok(false) };
        if address.offset != 0 || bytes != u64::from(ty.bytes()) || matches!(value, Operand::Vector(_)) {
            return Ok(false);
        }
        let value = self.fetch(value, bits_type(ty), false)?;
        let value = match self.own_guard(inst)? {
            None => value,
            Some(guard) => ir.select(guard, value, ir.load(ir.type_of(value), row, bytes as u32)),
        };
        self.stores.contiguous += 1;
        ir.store(value, row, bytes as u32);
        Ok(true)
    }
}
