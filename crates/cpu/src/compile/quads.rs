//! Accesses of four words by each lane, where the lanes lie apart.
//!
//! Threads that have a record each load and store four of its words at a time. A load or store of 16 bytes for each
//! lane and shuffles in registers take less time than a gather or scatter for each word. Four rows hold the quads of 16
//! lanes: the row *q* those of the lanes *q*, *q* + 4, *q* + 8 and *q* + 12. A transposition in every 128 bits of the
//! rows gives the words of all lanes in order, and the other way round.

use super::address::LaneAccess;
use super::emitter::{Emitter, TranslationResult};
use super::llvm::{IntPred, Val};

/// Lanes of a row.
const LANES: u32 = 16;

impl Emitter<'_> {
    /// Returns the lanes, where each accesses four words and rows are registers.
    fn has_quads(&self, access: &LaneAccess) -> Option<u32> {
        let fits = access.operands.len() == 4 && access.bytes == 4 && self.host.avx512;
        self.lanes.filter(|lanes| fits && *lanes == 2 * LANES)
    }

    /// Loads four words for each lane. Where they are other words, or lanes are masked off, it loads `otherwise`.
    pub(super) fn load_quads(
        &self,
        access: &LaneAccess,
        pointer_of: &dyn Fn(u32) -> Val,
        guard: Option<Val>,
        otherwise: &dyn Fn() -> Vec<Val>,
    ) -> Vec<Val> {
        let (ir, Some(lanes)) = (self.ir, self.has_quads(access)) else { return otherwise() };
        let quad = ir.vector(self.register_type(access.ty), 4);
        let load_all = || -> Vec<Val> {
            let load = |lane: u32| ir.load(quad, pointer_of(lane), access.bytes as u32);
            let mut words: [Vec<Val>; 4] = Default::default();
            for start in (0..lanes).step_by(LANES as usize) {
                let row = |q: u32| self.joined((0..4).map(|block| load(start + q + 4 * block)).collect());
                let turned = self.turned([row(0), row(1), row(2), row(3)]);
                words.iter_mut().zip(turned).for_each(|(words, row)| words.push(row));
            }
            words.into_iter().map(|pieces| self.joined(pieces)).collect()
        };
        let Some(guard) = guard else { return load_all() };
        let (whole, some, after) = (ir.block("whole"), ir.block("some"), ir.block("loaded"));
        ir.branch_if(self.are_all(guard, lanes), whole, some);
        let made = [(whole, &load_all as &dyn Fn() -> Vec<Val>), (some, otherwise)].map(|(label, load)| {
            ir.go_on_in(label);
            let values = load();
            let end = ir.here();
            ir.branch(after);
            (values, end)
        });
        ir.go_on_in(after);
        let merge = |word: usize| {
            let phi = ir.phi(ir.type_of(made[0].0[word]));
            made.iter().for_each(|(values, end)| ir.incoming(phi, values[word], *end));
            phi
        };
        (0..4).map(merge).collect()
    }

    /// Stores four words for each lane. Where they are other words, or lanes are masked off, it stores `otherwise`.
    pub(super) fn store_quads(
        &self,
        access: &LaneAccess,
        pointer_of: &dyn Fn(u32) -> Val,
        guard: Option<Val>,
        otherwise: &dyn Fn() -> TranslationResult<()>,
    ) -> TranslationResult<()> {
        let (ir, Some(lanes)) = (self.ir, self.has_quads(access)) else { return otherwise() };
        let values = self.stored(access)?;
        let after = guard.map(|guard| {
            let (whole, some, after) = (ir.block("whole"), ir.block("some"), ir.block("stored"));
            ir.branch_if(self.are_all(guard, lanes), whole, some);
            (whole, some, after)
        });
        if let Some((whole, some, after)) = after {
            ir.go_on_in(some);
            otherwise()?;
            ir.branch(after);
            ir.go_on_in(whole);
        }
        for start in (0..lanes).step_by(LANES as usize) {
            let row = |word: usize| self.slice(values[word], start, LANES);
            let turned = self.turned([row(0), row(1), row(2), row(3)]);
            for lane in 0..LANES {
                let (q, block) = (lane % 4, lane / 4);
                ir.store(self.slice(turned[q as usize], 4 * block, 4), pointer_of(start + lane), access.bytes as u32);
            }
        }
        if let Some((_, _, after)) = after {
            ir.branch(after);
            ir.go_on_in(after);
        }
        Ok(())
    }

    /// Returns whether no lane is masked off.
    fn are_all(&self, guard: Val, lanes: u32) -> Val {
        let mask = self.as_mask(self.broadcast(guard, lanes));
        let all = self.ir.constant(self.ir.int(32), u64::from(u32::MAX >> (32 - lanes)));
        self.ir.icmp(IntPred::LLVMIntEQ, mask, all)
    }

    /// Transposes the 4 × 4 words that 128 bits of four rows hold.
    fn turned(&self, rows: [Val; 4]) -> [Val; 4] {
        let ir = self.ir;
        let picks =
            |lanes: [u32; 4]| -> Vec<u32> { (0..LANES).step_by(4).flat_map(|block| lanes.map(|lane| lane + block)).collect() };
        let (low, high) = (picks([0, LANES, 1, LANES + 1]), picks([2, LANES + 2, 3, LANES + 3]));
        let (first, last) = (picks([0, 1, LANES, LANES + 1]), picks([2, 3, LANES + 2, LANES + 3]));
        let [a, b, c, d] = rows;
        let (ab, cd) = (ir.shuffle(a, b, &low), ir.shuffle(c, d, &low));
        let (ab_high, cd_high) = (ir.shuffle(a, b, &high), ir.shuffle(c, d, &high));
        [
            ir.shuffle(ab, cd, &first),
            ir.shuffle(ab, cd, &last),
            ir.shuffle(ab_high, cd_high, &first),
            ir.shuffle(ab_high, cd_high, &last),
        ]
    }
}
