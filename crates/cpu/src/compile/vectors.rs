//! Vectors with one element per lane: masks, broadcasts, slices and permutations.

use super::emitter::Emitter;
use super::llvm::{IntPred, Ty, Val};

impl Emitter<'_> {
    /// Converts predicates of all lanes to bits of an integer, lane 0 lowest.
    pub(crate) fn as_mask(&self, predicate: Val) -> Val {
        let ir = self.ir;
        let i32 = ir.int(32);
        match ir.lanes(predicate) {
            Some(_) => ir.bitcast_whole(predicate, i32),
            None => ir.zext(predicate, i32),
        }
    }

    /// Converts bits of an integer to predicates of all lanes.
    pub(crate) fn as_predicates(&self, mask: Val) -> Val {
        let ir = self.ir;
        match self.lanes {
            Some(lanes) => ir.bitcast_whole(mask, ir.vector(ir.int(1), lanes)),
            None => ir.trunc(mask, ir.int(1)),
        }
    }

    /// Returns whether a predicate holds in any lane.
    pub(crate) fn any(&self, predicate: Val) -> Val {
        let ir = self.ir;
        match ir.lanes(predicate) {
            Some(_) => {
                let mask = self.as_mask(predicate);
                ir.icmp(IntPred::LLVMIntNE, mask, ir.constant(ir.int(32), 0))
            }
            None => predicate,
        }
    }

    /// Broadcasts a scalar to the number of lanes of a type.
    pub(crate) fn as_wide(&self, value: Val, like: Ty) -> Val {
        match (self.ir.lanes(value), self.ir.lanes_in(like)) {
            (None, Some(lanes)) => self.ir.splat(value, lanes),
            _ => value,
        }
    }

    /// Broadcasts a scalar to a number of lanes; a vector is unchanged.
    pub(super) fn broadcast(&self, value: Val, lanes: u32) -> Val {
        if self.ir.lanes(value).is_some() { value } else { self.ir.splat(value, lanes) }
    }

    /// Repeats each lane of a mask for each element of a vector access.
    pub(super) fn widened_mask(&self, mask: Val, count: usize) -> Val {
        if count == 1 {
            return mask;
        }
        let lanes = self.ir.lanes(mask).unwrap_or(1);
        let picks: Vec<u32> = (0..lanes).flat_map(|lane| std::iter::repeat_n(lane, count)).collect();
        self.ir.pick(mask, &picks)
    }

    pub(super) fn slice(&self, value: Val, start: u32, lanes: u32) -> Val {
        self.ir.pick(value, &(start..start + lanes).collect::<Vec<u32>>())
    }

    /// Concatenates vectors of fewer lanes.
    pub(super) fn joined(&self, mut pieces: Vec<Val>) -> Val {
        while pieces.len() > 1 {
            pieces = pieces
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => {
                        let lanes = self.ir.lanes(*a).unwrap_or(1);
                        self.ir.shuffle(*a, *b, &(0..2 * lanes).collect::<Vec<u32>>())
                    }
                    one => one[0],
                })
                .collect();
        }
        pieces[0]
    }

    /// Splits interleaved elements of lanes into one vector per element.
    pub(super) fn apart(&self, all: Val, lanes: u32, count: usize) -> Vec<Val> {
        if count == 1 {
            return vec![all];
        }
        let count = count as u32;
        let part = |index: u32| -> Vec<u32> { (0..lanes).map(|lane| lane * count + index).collect() };
        (0..count).map(|index| self.ir.pick(all, &part(index))).collect()
    }

    /// Interleaves the elements of lanes.
    pub(super) fn together(&self, values: &[Val], lanes: u32) -> Val {
        match values {
            [one] => *one,
            values => {
                let count = values.len() as u32;
                let joined = self.joined(self.padded(values));
                let picks: Vec<u32> = (0..lanes).flat_map(|lane| (0..count).map(move |index| index * lanes + lane)).collect();
                self.ir.pick(joined, &picks)
            }
        }
    }

    /// Pads a list of vectors to a power of two.
    fn padded(&self, values: &[Val]) -> Vec<Val> {
        let mut all = values.to_vec();
        while !all.len().is_power_of_two() {
            all.push(self.ir.poison(self.ir.type_of(values[0])));
        }
        all
    }

    /// Emits an action that runs once if any lane is active.
    pub(crate) fn if_any(&self, active: Val, result: super::llvm::Ty, act: impl FnOnce(&Self) -> Val) -> Val {
        let ir = self.ir;
        let (start, go, after) = (ir.here(), ir.block("some"), ir.block("after"));
        ir.branch_if(self.any(active), go, after);
        ir.go_on_in(go);
        let value = act(self);
        let end = ir.here();
        ir.branch(after);
        ir.go_on_in(after);
        let phi = ir.phi(result);
        ir.incoming(phi, ir.zero(result), start);
        ir.incoming(phi, value, end);
        phi
    }

    /// Permutes 32-bit lanes by indices below 32.
    pub(super) fn permute(&self, value: Val, source: Val) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        if let Some(picks) = self.constant_lanes(source, lanes) {
            return ir.pick(value, &picks);
        }
        if self.host.avx512 && lanes == 32 {
            let halves = |vector: Val| {
                let half = |start: u32| ir.pick(vector, &(start..start + 16).collect::<Vec<u32>>());
                (half(0), half(16))
            };
            let bits = ir.bitcast(value, ir.int(32));
            let ((low, high), (first, second)) = (halves(bits), halves(source));
            let pick = |index: Val| ir.intrinsic("llvm.x86.avx512.vpermi2var.d.512", &[], &[low, index, high]);
            let joined = ir.shuffle(pick(first), pick(second), &(0..32).collect::<Vec<u32>>());
            return ir.bitcast(joined, ir.element(ir.type_of(value)));
        }
        let ty = ir.type_of(value);
        let place = ir.stack(ty, 64);
        ir.store(value, place, 4);
        let bytes = ir.shl(ir.zext(source, ir.int(64)), ir.constant(ir.vector(ir.int(64), lanes), 2));
        let pointers = ir.offset(place, bytes);
        let all = ir.constant(ir.vector(ir.int(1), lanes), 1);
        let align = ir.constant(ir.int(32), 4);
        ir.intrinsic("llvm.masked.gather", &[ty, ir.type_of(pointers)], &[pointers, align, all, ir.zero(ty)])
    }

    /// Permutes predicates by lane.
    pub(super) fn permute_mask(&self, mask: Val, source: Val) -> Val {
        let ir = self.ir;
        let lanes = self.lanes.unwrap_or(1);
        if let Some(picks) = self.constant_lanes(source, lanes) {
            return ir.pick(mask, &picks);
        }
        let ty = ir.type_of(source);
        let bits = ir.splat(self.as_mask(mask), lanes);
        let bit = ir.and(ir.lshr(bits, source), ir.constant(ty, 1));
        ir.icmp(IntPred::LLVMIntNE, bit, ir.constant(ty, 0))
    }

    /// Returns the lanes that a constant vector names.
    fn constant_lanes(&self, source: Val, lanes: u32) -> Option<Vec<u32>> {
        if !self.ir.is_constant(source) {
            return None;
        }
        (0..lanes).map(|lane| self.ir.as_constant(self.ir.extract_at(source, lane)).map(|number| number as u32 & 31)).collect()
    }

    /// Returns the lowest lane of a mask, or any lane if the mask is empty.
    pub(super) fn first_of(&self, mask: Val) -> Val {
        let ir = self.ir;
        let i32 = ir.int(32);
        let lane = ir.intrinsic("llvm.cttz", &[i32], &[mask, ir.constant(ir.int(1), 0)]);
        ir.and(lane, ir.constant(i32, 31))
    }
}
