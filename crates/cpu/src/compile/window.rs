//! Loads at indices that were loaded or rounded from floats, where the lanes lie close together.
//!
//! Pixels of an image that is resampled, and entries of a small table, are mostly within 64 words. Such a window is
//! loaded at once, and its words are distributed to the lanes in registers. That takes a quarter of the time of a
//! gather. The test whether all lanes lie in a window costs little beside a gather.
//!
//! A window is loaded only if it lies in one page: with one of its words all are readable then.

use super::emit::{Emitted, Emitter};
use super::llvm::{IntPred, Val};
use super::memory::Parts;
use super::scattered::{HALF, Index, Sum};

/// Words of a window.
const WORDS: u32 = 64;
/// Bytes of the smallest page of a host.
const PAGE: u64 = 4096;

/// Words at an index in each lane: `words` of them from the index on.
pub(super) struct Near {
    pub(super) base: Val,
    pub(super) index: Index,
    pub(super) offset: i64,
    pub(super) words: u32,
}

impl Emitter<'_> {
    /// Loads words at 32-bit indices, in a window or by a gather. Returns `None` if the address has another form.
    pub(super) fn load_at_index(&self, parts: &Parts, sum: &Sum, offset: i64, guard: Option<Val>) -> Emitted<Option<Val>> {
        let is_word = parts.bytes == 4 && parts.elements.len() == 1;
        let has_windows = is_word && self.lanes == Some(2 * HALF) && self.host.avx512;
        let Some(index) = sum.index.filter(|index| has_windows && index.scale == 4) else {
            return self.gather_by_index(parts, sum, offset, guard);
        };
        let near = Near { base: sum.base, index, offset, words: 1 };
        let gathered = || Ok(self.gather_by_index(parts, sum, offset, guard)?.into_iter().collect());
        Ok(self.load_window(parts, &near, guard, &gathered)?.first().copied())
    }

    /// Loads words of all lanes from one window, or `otherwise` if they lie in none. The first lane determines the
    /// start of the window. If that does not fit, the lowest lane does.
    pub(super) fn load_window(
        &self,
        parts: &Parts,
        near: &Near,
        guard: Option<Val>,
        otherwise: &dyn Fn() -> Emitted<Vec<Val>>,
    ) -> Emitted<Vec<Val>> {
        let (ir, lanes, index) = (self.ir, 2 * HALF, near.index);
        let i32 = ir.int(32);
        let all = self.all_lanes(index.reg)?;
        let mask = guard.map(|guard| self.whole_guard(guard, lanes));
        let (in_window, apart, after) = (ir.block("window"), ir.block("apart"), ir.block("loaded"));
        let mut starts = vec![];
        if mask.is_none() {
            let (start, lowest) = (ir.extract_at(all, 0), ir.block("lowest"));
            // Indices after the largest number would wrap.
            let (compare, most) =
                if index.signed { (IntPred::LLVMIntSLE, i32::MAX as u32) } else { (IntPred::LLVMIntULE, u32::MAX) };
            let wraps_not = ir.icmp(compare, start, ir.constant(i32, u64::from(most - WORDS)));
            starts.push((ir.here(), start));
            ir.branch_if(ir.and(self.fits_window(all, start, near, mask), wraps_not), in_window, lowest);
            ir.go_on_in(lowest);
        }
        let (name, most) =
            if index.signed { ("llvm.vector.reduce.smin", i32::MAX as u32) } else { ("llvm.vector.reduce.umin", u32::MAX) };
        let own = mask.map_or(all, |mask| ir.select(mask, all, ir.constant(ir.type_of(all), most.into())));
        let start = ir.intrinsic(name, &[ir.type_of(own)], &[own]);
        let fits = self.fits_window(all, start, near, mask);
        let any = mask.map_or(fits, |mask| ir.and(fits, ir.icmp(IntPred::LLVMIntNE, self.as_mask(mask), ir.constant(i32, 0))));
        starts.push((ir.here(), start));
        ir.branch_if(any, in_window, apart);
        ir.go_on_in(apart);
        let others = otherwise()?;
        let apart = ir.here();
        ir.branch(after);
        ir.go_on_in(in_window);
        let start = ir.phi(i32);
        starts.into_iter().for_each(|(from, value)| ir.incoming(start, value, from));
        let first = ir.as_pointer(self.window_start(near, start));
        let row = |number: u64| ir.load(ir.vector(i32, HALF), ir.offset_by(first, number * 4 * u64::from(HALF)), 4);
        let rows = [row(0), row(1), row(2), row(3)];
        let places = ir.sub(all, ir.splat(start, lanes));
        let word = |number: u32| {
            let places = ir.add(places, ir.constant(ir.type_of(places), number.into()));
            ir.bitcast(self.pick_of_window(rows, places), self.register_type(parts.ty))
        };
        let values: Vec<Val> = (0..near.words).map(word).collect();
        let in_window = ir.here();
        ir.branch(after);
        ir.go_on_in(after);
        let merged = |(value, other): (Val, Val)| {
            let phi = ir.phi(ir.type_of(value));
            ir.incoming(phi, value, in_window);
            ir.incoming(phi, other, apart);
            phi
        };
        Ok(values.into_iter().zip(others).map(merged).collect())
    }

    /// Returns the address of the word at an index.
    fn window_start(&self, near: &Near, start: Val) -> Val {
        let ir = self.ir;
        let i64 = ir.int(64);
        let first = ir.shl(ir.resize(start, i64, near.index.signed), ir.constant(i64, 2));
        ir.add(ir.add(near.base, first), ir.constant(i64, near.offset as u64))
    }

    /// Returns whether the words of all lanes of a mask lie in the window from an index on, and it lies in one page.
    fn fits_window(&self, all: Val, start: Val, near: &Near, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let places = ir.sub(all, ir.splat(start, 2 * HALF));
        let fits = ir.icmp(IntPred::LLVMIntULE, places, ir.constant(ir.type_of(places), u64::from(WORDS - near.words)));
        let fits = mask.map_or(fits, |mask| ir.or(fits, ir.not(mask)));
        let all = ir.icmp(IntPred::LLVMIntEQ, self.as_mask(fits), ir.constant(i32, u64::from(u32::MAX)));
        let in_page = ir.and(self.window_start(near, start), ir.constant(i64, PAGE - 1));
        ir.and(all, ir.icmp(IntPred::LLVMIntULE, in_page, ir.constant(i64, PAGE - 4 * u64::from(WORDS))))
    }

    /// Distributes the words of a window to the lanes.
    fn pick_of_window(&self, rows: [Val; 4], places: Val) -> Val {
        let ir = self.ir;
        let half = |start: u32| {
            let places = ir.pick(places, &(start..start + HALF).collect::<Vec<u32>>());
            let of = |low: Val, high: Val| ir.intrinsic("llvm.x86.avx512.vpermi2var.d.512", &[], &[low, places, high]);
            let ty = ir.type_of(places);
            let is_upper = ir.icmp(IntPred::LLVMIntNE, ir.and(places, ir.constant(ty, 32)), ir.constant(ty, 0));
            ir.select(is_upper, of(rows[2], rows[3]), of(rows[0], rows[1]))
        };
        ir.shuffle(half(0), half(HALF), &(0..2 * HALF).collect::<Vec<u32>>())
    }
}
