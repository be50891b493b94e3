//! Loads at indices that were loaded or rounded from floats, where the lanes lie close together.
//!
//! Pixels of an image that is resampled, and entries of a small table, are mostly within 64 words. Such a window is
//! loaded at once, and its words are distributed to the lanes in registers. That takes a quarter of the time of a
//! gather. The test whether all lanes lie in a window costs little beside a gather.
//!
//! Lanes that have rows of an array of their own are not examined: they lie far apart ([`Emitter::has_rows`]).
//!
//! A window is loaded only if it lies in one page: with one of its words all are readable then.

use super::address::LaneAccess;
use super::emitter::{Emitter, TranslationResult};
use super::llvm::{IntPred, Val};
use super::scattered::{HALF, Sum};
use broadloom_ptx::{Address, Base, InstData, Opcode, Operand, Reg, Space};

/// Words of a window.
const WORDS: u32 = 64;
/// Bytes of the smallest page of a host.
const PAGE: u64 = 4096;

/// Words of an array: `words` of them from each index of a list on.
pub(super) struct IndexedWords {
    pub(super) base: Val,
    /// True if indices have a sign.
    pub(super) signed: bool,
    pub(super) offset: i64,
    /// Indices of all lanes, one vector for each load.
    pub(super) indices: Vec<Val>,
    pub(super) words: u32,
}

/// Load of one word per lane that may become part of a larger one.
pub(super) struct WordLoad {
    pub(super) address: Address,
    pub(super) reg: Reg,
    pub(super) space: Space,
    pub(super) access: LaneAccess,
}

impl Emitter<'_> {
    /// Loads words at 32-bit indices, in a window or by a gather. Returns `None` if the address has another form.
    pub(super) fn load_at_index(
        &self,
        access: &LaneAccess,
        sum: &Sum,
        offset: i64,
        guard: Option<Val>,
    ) -> TranslationResult<Option<Val>> {
        let is_word = access.bytes == 4 && access.operands.len() == 1;
        let has_windows = is_word && self.lanes == Some(2 * HALF) && self.host.avx512;
        let Some(index) = sum.index.filter(|index| has_windows && index.scale == 4 && !self.has_rows(index.reg)) else {
            return self.gather_by_index(access, sum, offset, guard);
        };
        let near =
            IndexedWords { base: sum.base, signed: index.signed, offset, indices: vec![self.all_lanes(index.reg)?], words: 1 };
        let gathered = || Ok(self.gather_by_index(access, sum, offset, guard)?.into_iter().collect());
        Ok(self.load_window(access, &near, None, guard, &gathered)?.first().copied())
    }

    /// Loads words of all lanes from one window, or `otherwise` if they lie in none, or a condition does not hold. The first lane of the
    /// first load determines the start of the window. If that does not fit, the lowest lane does.
    pub(super) fn load_window(
        &self,
        access: &LaneAccess,
        near: &IndexedWords,
        condition: Option<Val>,
        guard: Option<Val>,
        otherwise: &dyn Fn() -> TranslationResult<Vec<Val>>,
    ) -> TranslationResult<Vec<Val>> {
        let (ir, lanes) = (self.ir, 2 * HALF);
        let i32 = ir.int(32);
        let mask = guard.map(|guard| self.broadcast(guard, lanes));
        let also = |fits: Val| condition.map_or(fits, |condition| ir.and(fits, condition));
        let (in_window, apart, after) = (ir.block("window"), ir.block("apart"), ir.block("loaded"));
        let mut starts = vec![];
        // Lanes that lie anywhere are known by the distance of the first and the last one, mostly.
        let [start, last] = [0, lanes - 1].map(|lane| ir.extract_at(near.indices[0], lane));
        let far = ir.add(ir.sub(last, start), ir.constant(i32, u64::from(WORDS)));
        let perhaps = ir.block("perhaps");
        ir.branch_if(ir.icmp(IntPred::LLVMIntULE, far, ir.constant(i32, u64::from(2 * WORDS))), perhaps, apart);
        ir.go_on_in(perhaps);
        if mask.is_none() {
            let lowest = ir.block("lowest");
            // Indices after the largest number would wrap.
            let (compare, most) =
                if near.signed { (IntPred::LLVMIntSLE, i32::MAX as u32) } else { (IntPred::LLVMIntULE, u32::MAX) };
            let wraps_not = ir.icmp(compare, start, ir.constant(i32, u64::from(most - WORDS)));
            starts.push((ir.here(), start));
            ir.branch_if(also(ir.and(self.fits_window(start, near, mask), wraps_not)), in_window, lowest);
            ir.go_on_in(lowest);
        }
        let (less, name, most) = match near.signed {
            true => ("llvm.smin", "llvm.vector.reduce.smin", i32::MAX as u32),
            false => ("llvm.umin", "llvm.vector.reduce.umin", u32::MAX),
        };
        let ty = ir.type_of(near.indices[0]);
        let least = near.indices[1..].iter().fold(near.indices[0], |least, own| ir.intrinsic(less, &[ty], &[least, *own]));
        let own = mask.map_or(least, |mask| ir.select(mask, least, ir.constant(ty, most.into())));
        let start = ir.intrinsic(name, &[ty], &[own]);
        let fits = self.fits_window(start, near, mask);
        let any = mask.map_or(fits, |mask| ir.and(fits, ir.icmp(IntPred::LLVMIntNE, self.as_mask(mask), ir.constant(i32, 0))));
        starts.push((ir.here(), start));
        ir.branch_if(also(any), in_window, apart);
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
        let mut values = vec![];
        for index in &near.indices {
            let places = ir.sub(*index, ir.splat(start, lanes));
            values.extend((0..near.words).map(|number| {
                let places = ir.add(places, ir.constant(ty, number.into()));
                ir.bitcast(self.pick_of_window(rows, places), self.register_type(access.ty))
            }));
        }
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
    fn window_start(&self, near: &IndexedWords, start: Val) -> Val {
        let ir = self.ir;
        let i64 = ir.int(64);
        let first = ir.shl(ir.resize(start, i64, near.signed), ir.constant(i64, 2));
        ir.add(ir.add(near.base, first), ir.constant(i64, near.offset as u64))
    }

    /// Returns whether the words of all lanes of a mask lie in the window from an index on, and it lies in one page.
    fn fits_window(&self, start: Val, near: &IndexedWords, mask: Option<Val>) -> Val {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let fits = near.indices.iter().map(|index| {
            let places = ir.sub(*index, ir.splat(start, 2 * HALF));
            ir.icmp(IntPred::LLVMIntULE, places, ir.constant(ir.type_of(places), u64::from(WORDS - near.words)))
        });
        let fits = fits.reduce(|all, one| ir.and(all, one)).unwrap_or_else(|| ir.constant(ir.vector(ir.int(1), 2 * HALF), 1));
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

    /// Matches a load of one word per lane, at an address that is another in every lane.
    pub(super) fn word_load(&self, inst: &InstData) -> Option<WordLoad> {
        if inst.opcode() != Some(Opcode::Ld) || !self.host.avx512 || self.lanes != Some(32) || inst.is_ordered() {
            return None;
        }
        let address = self.address_of(inst).ok()?;
        let Base::Reg(reg) = address.base else { return None };
        let space = self.space_of(inst, &address);
        let access = LaneAccess::of(inst, inst.operands.first()?);
        let is_word = access.bytes == 4 && matches!(access.operands.as_slice(), [Operand::Reg(_)]);
        let is_global = matches!(space, Space::Global | Space::Generic);
        let is_apart = || !self.is_kept_as_scalar(reg) && self.row_of(address.base).is_none();
        (is_word && is_global && is_apart()).then_some(WordLoad { address, reg, space, access })
    }
}
