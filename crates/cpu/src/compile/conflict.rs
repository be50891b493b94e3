//! Sums in shared memory by lanes whose addresses may conflict, mostly histograms.
//!
//! Lanes would run one after the other, each waiting for the value that the lane before left in memory. If
//! all lanes add the same number, the old value seen by a lane is the initial value plus that number times
//! the count of earlier lanes with the same address. Hosts with AVX-512 compute this count for sixteen lanes
//! at once. The last lane at an address writes the total.

use super::address::Reach;
use super::emitter::{Emitter, TranslationResult};
use super::llvm::Val;
use broadloom_ptx::{Address, Base};

/// Number of lanes that are compared with each other at once.
const HALF: u32 = 16;

impl Emitter<'_> {
    /// Adds a number to 32 bits in each active lane and returns the old value. Returns `None` if the host or
    /// the address does not allow it.
    pub(crate) fn add_same(&self, address: &Address, reach: &Reach, number: Val, active: Val) -> TranslationResult<Option<Val>> {
        let ir = self.ir;
        let (Base::Reg(reg), Some(lanes), true) = (address.base, self.lanes, self.host.conflicts) else { return Ok(None) };
        if matches!(reach, Reach::Uniform(_)) || ir.lanes(number).is_some() {
            return Ok(None);
        }
        let i32 = ir.int(32);
        let part = ir.vector(i32, HALF);
        let indices = ir.resize(self.all_lanes(reg)?, i32, false);
        let pointers = self.pointers(reach);
        let number = ir.splat(number, HALF);
        let mut olds = vec![];
        for start in (0..lanes).step_by(HALF as usize) {
            let picks: Vec<u32> = (start..start + HALF).collect();
            let [index, pointer, active] = [indices, pointers, active].map(|value| ir.pick(value, &picks));
            let equal = ir.intrinsic("llvm.x86.avx512.conflict.d.512", &[], &[index]);
            let bits = ir.zext(ir.bitcast_whole(active, ir.int(HALF)), i32);
            let before = ir.intrinsic("llvm.ctpop", &[part], &[ir.and(equal, ir.splat(bits, HALF))]);
            let (types, align) = ([part, ir.type_of(pointer)], ir.constant(i32, 4));
            let old = ir.intrinsic("llvm.masked.gather", &types, &[pointer, align, active, ir.zero(part)]);
            let seen = ir.add(old, ir.mul(number, before));
            ir.intrinsic("llvm.masked.scatter", &types, &[ir.add(seen, number), pointer, align, active]);
            olds.push(seen);
        }
        Ok(match olds.as_slice() {
            [low, high] => Some(ir.shuffle(*low, *high, &(0..lanes).collect::<Vec<u32>>())),
            _ => None,
        })
    }
}
