//! Pairs of loads of adjacent words at computed addresses, emitted as one gather of twice the width.
//!
//! Interpolation in an image or a table reads an element and the next one, at a different index in each lane.
//! The time of a gather depends on its number of lanes, not on their width. The adjacency of the two loads is
//! checked at run time, because clamping at edges may break it.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{IntPred, Val};
use super::scattered::{HALF, Index, Sum};
use super::window::{IndexedWords, WordLoad};
use broadloom_ptx::{Block, Inst, InstData};

impl Emitter<'_> {
    /// Returns the instructions of a block, reordered so that a load stands next to another load that may be
    /// adjacent to it. Only pure instructions that do not use the first load stand between the two.
    pub(super) fn in_pairs(&self, block: Block) -> Vec<Inst> {
        let function = self.function;
        let mut order = self.in_groups(&function.blocks[block].insts);
        let mut index = 0;
        while index < order.len() {
            let first = &function.insts[order[index]];
            let Some(single) = self.single(first) else {
                index += 1;
                continue;
            };
            let results = first.writes();
            let may_move = |inst: &InstData| {
                let is_apart = !inst.reads().iter().any(|read| results.contains(read));
                inst.effects().is_pure() && !inst.is_control() && is_apart
            };
            let rest = &order[index + 1..];
            let between = rest.iter().take_while(|inst| may_move(&function.insts[**inst])).count();
            let second = rest.get(between).map(|inst| &function.insts[*inst]);
            if second.is_some_and(|second| self.is_pair(&single, first, second)) {
                order[index..=index + between].rotate_left(1);
                index += between + 2;
            } else {
                index += 1;
            }
        }
        order
    }

    /// Matches a load of one word per lane, at an address computed from floats.
    fn single(&self, inst: &InstData) -> Option<WordLoad> {
        self.word_load(inst).filter(|single| self.is_rounded(single.reg) && !self.is_loaded(single.reg))
    }

    fn is_pair(&self, single: &WordLoad, first: &InstData, second: &InstData) -> bool {
        let Some(other) = self.single(second) else { return false };
        let roots = self.roots(single.reg);
        let is_same = other.space == single.space && other.access.ty == single.access.ty && second.guard == first.guard;
        is_same
            && !roots.is_empty()
            && self.roots(other.reg) == roots
            && !second.reads().iter().any(|read| first.writes().contains(read))
    }

    /// Emits two loads whose addresses may be adjacent in every lane. Returns whether the loads are of this
    /// kind.
    pub(super) fn load_pair(&mut self, pair: [Inst; 2]) -> TranslationResult<bool> {
        let function = self.function;
        let [first, second] = pair.map(|id| &function.insts[id]);
        let (Some(a), Some(b)) = (self.single(first), self.single(second)) else { return Ok(false) };
        if !self.is_pair(&a, first, second) {
            return Ok(false);
        }
        let (Some(sum_a), Some(sum_b)) = (self.sum_of(a.space, a.reg)?, self.sum_of(b.space, b.reg)?) else { return Ok(false) };
        for id in pair {
            self.check_load(id)?;
        }
        let guard = self.guard(first)?;
        let Some((index, is_beside)) = self.are_beside(&sum_a, a.address.offset, &sum_b, b.address.offset, guard)? else {
            return Ok(false);
        };
        let ir = self.ir;
        let (beside, apart, after) = (ir.block("beside"), ir.block("apart"), ir.block("loaded"));
        ir.branch_if(is_beside, beside, apart);
        ir.go_on_in(apart);
        let alone = |single: &WordLoad, sum: &Sum| {
            let word = self.load_at_index(&single.access, sum, single.address.offset, guard)?;
            word.ok_or_else(|| TranslationError("words at indices that are not gathered".into()))
        };
        let (alone_a, alone_b) = (alone(&a, &sum_a)?, alone(&b, &sum_b)?);
        let apart = ir.here();
        ir.branch(after);
        ir.go_on_in(beside);
        let gathered = || self.gather_twice(&a, sum_a.base, index, guard).map(Vec::from);
        let values = if self.has_rows(index.reg) {
            gathered()?
        } else {
            let indices = vec![self.all_lanes(index.reg)?];
            let near = IndexedWords { base: sum_a.base, signed: index.signed, offset: a.address.offset, indices, words: 2 };
            self.load_window(&a.access, &near, None, guard, &gathered)?
        };
        let [low, high] = [values[0], values[1]];
        let beside = ir.here();
        ir.branch(after);
        ir.go_on_in(after);
        self.loads.scattered += 2;
        for (access, value, alone) in [(a.access, low, alone_a), (b.access, high, alone_b)] {
            let phi = ir.phi(ir.type_of(value));
            ir.incoming(phi, value, beside);
            ir.incoming(phi, alone, apart);
            self.assign(&access.operands[0], access.ty, phi)?;
        }
        Ok(true)
    }

    /// Returns the index of the first address, and whether the second one is the next word in all active
    /// lanes. Returns `None` if the addresses have another form.
    fn are_beside(&self, a: &Sum, from: i64, b: &Sum, to: i64, guard: Option<Val>) -> TranslationResult<Option<(Index, Val)>> {
        let ir = self.ir;
        let (Some(index_a), Some(index_b)) = (a.index, b.index) else { return Ok(None) };
        if (index_a.scale, index_b.scale) != (4, 4) || index_a.signed != index_b.signed {
            return Ok(None);
        }
        // Distance that remains for the indices.
        let apart = 4 - to.wrapping_sub(from);
        if apart % 4 != 0 || apart != 0 && index_a.reg == index_b.reg {
            return Ok(None);
        }
        let i32 = ir.int(32);
        let (all_a, all_b) = (self.all_lanes(index_a.reg)?, self.all_lanes(index_b.reg)?);
        let next = ir.add(all_a, ir.constant(ir.type_of(all_a), (apart / 4) as u64));
        let mut is_next = ir.icmp(IntPred::LLVMIntEQ, all_b, next);
        // An index that wraps is not after the one before.
        match (apart, index_a.signed) {
            (0, _) => {}
            (1.., true) => is_next = ir.and(is_next, ir.icmp(IntPred::LLVMIntSGT, all_b, all_a)),
            (1.., false) => is_next = ir.and(is_next, ir.icmp(IntPred::LLVMIntUGT, all_b, all_a)),
            (_, true) => is_next = ir.and(is_next, ir.icmp(IntPred::LLVMIntSLT, all_b, all_a)),
            (_, false) => is_next = ir.and(is_next, ir.icmp(IntPred::LLVMIntULT, all_b, all_a)),
        }
        let all = ir.constant(i32, u64::from(u32::MAX));
        let mask = guard.map_or(all, |guard| self.as_mask(self.broadcast(guard, 2 * HALF)));
        let lanes = ir.icmp(IntPred::LLVMIntEQ, ir.and(self.as_mask(is_next), mask), mask);
        Ok(Some((index_a, ir.and(lanes, ir.icmp(IntPred::LLVMIntEQ, a.base, b.base)))))
    }

    /// Gathers the words at some indices and the words after them, eight lanes at a time.
    fn gather_twice(&self, single: &WordLoad, base: Val, index: Index, guard: Option<Val>) -> TranslationResult<[Val; 2]> {
        let (ir, access) = (self.ir, &single.access);
        let (i32, i64) = (ir.int(32), ir.int(64));
        let all = self.all_lanes(index.reg)?;
        let base = ir.as_pointer(ir.add(base, ir.constant(i64, single.address.offset as u64)));
        let guard = guard.map(|guard| self.broadcast(guard, 2 * HALF));
        let pairs = ir.vector(i64, EIGHT);
        let words = ir.vector(self.register_type(access.ty), 2 * EIGHT);
        let gather = |start: u32| {
            let picks: Vec<u32> = (start..start + EIGHT).collect();
            let places = ir.elements_at(base, i32, ir.resize(ir.pick(all, &picks), i64, index.signed));
            let mask = guard.map_or_else(|| ir.constant(ir.vector(ir.int(1), EIGHT), 1), |guard| ir.pick(guard, &picks));
            let align = ir.constant(i32, access.bytes);
            let found = ir.intrinsic("llvm.masked.gather", &[pairs, ir.type_of(places)], &[places, align, mask, ir.zero(pairs)]);
            ir.bitcast_whole(found, words)
        };
        let quarters: Vec<Val> = (0..2 * HALF).step_by(EIGHT as usize).map(gather).collect();
        Ok([0, 1].map(|word| {
            let picks: Vec<u32> = (0..2 * EIGHT).map(|lane| 2 * lane + word).collect();
            let halves: Vec<Val> = quarters.chunks(2).map(|pair| ir.shuffle(pair[0], pair[1], &picks)).collect();
            ir.shuffle(halves[0], halves[1], &(0..2 * HALF).collect::<Vec<u32>>())
        }))
    }
}

/// Number of lanes whose pairs are gathered at once.
const EIGHT: u32 = 8;
