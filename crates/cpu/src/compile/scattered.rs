//! Lanes that each go to a place of their own.
//!
//! Hosts with AVX-512 gather and scatter 32 and 64 bits. Bytes and halves are gathered as the aligned words that they lie in, which
//! can be read wherever the byte can. What no host instruction does is done lane by lane without a branch: lanes that are masked off go to a place that
//! nobody looks at. LLVM itself would branch around every lane, which makes dozens of blocks of one access, slow to compile and to run.

use super::emit::{Emitted, Emitter};
use super::llvm::Val;
use super::memory::Parts;

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
}
