//! Vector accesses that must be single-copy atomic.
//!
//! The manual allows a vector access to be split into accesses to its elements in any order. GPUs do it at
//! once, and programs rely on it: a scan with look-back reads a sum and its status by one `ld.relaxed.v2`. If
//! the lanes' addresses are scattered, each lane therefore does one host access. A gather or scatter per
//! element would allow another core to write in between. Hosts do aligned accesses of up to 16 bytes at once,
//! and these are aligned.

use super::address::{LaneAccess, Reach};
use super::emitter::{Emitter, TranslationResult};
use super::llvm::Val;
use super::operand::bits_type;
use broadloom_ptx::{InstData, Space, Type};

impl Emitter<'_> {
    /// Returns whether an access must not be split.
    pub(super) fn is_undivided(&self, inst: &InstData, space: Space, access: &LaneAccess) -> bool {
        let seen = matches!(space, Space::Global | Space::Generic);
        seen && access.operands.len() > 1 && access.total() <= 16 && inst.is_ordered()
    }

    /// Loads the values of the lanes, one vector for each part, with one access per lane.
    pub(super) fn load_undivided(&self, inst: &InstData, access: &LaneAccess, reach: &Reach) -> TranslationResult<Vec<Val>> {
        let ir = self.ir;
        let count = access.operands.len() as u32;
        let lanes = self.lanes.unwrap_or(1);
        let bits = ir.int(8 * access.bytes as u32);
        let all = Type::bits_of(8 * access.total() as u32).unwrap_or(Type::B128);
        let pointers = self.spill(self.addresses(reach));
        let read = self.each_lane(self.active(inst)?, all, true, |emitter, lane| {
            let pointer = ir.as_pointer(emitter.lane_of(pointers, lane));
            let value = ir.load_as_is(ir.vector(bits, count), pointer, access.bytes as u32);
            ir.bitcast_whole(value, ir.int(all.bits()))
        });
        let Some(read) = read else { return Ok(vec![]) };
        let elements = ir.bitcast_whole(read, ir.vector(bits, lanes * count));
        let element = |index: u32| {
            let value = match self.lanes {
                Some(_) => ir.pick(elements, &(0..lanes).map(|lane| lane * count + index).collect::<Vec<u32>>()),
                None => ir.extract_at(elements, index),
            };
            ir.bitcast(value, self.register_type(access.ty))
        };
        Ok((0..count).map(element).collect())
    }

    /// Stores the values of the lanes, with one access per lane. Of lanes with one address the last wins.
    pub(super) fn store_undivided(&self, inst: &InstData, access: &LaneAccess, reach: &Reach) -> TranslationResult<()> {
        let ir = self.ir;
        let pointers = self.spill(self.addresses(reach));
        let fetched = |element| self.fetch(element, bits_type(access.ty), self.lanes.is_none());
        let values =
            access.operands.iter().map(|element| Ok(self.spill(fetched(element)?))).collect::<TranslationResult<Vec<_>>>()?;
        let vector = ir.vector(ir.int(8 * access.bytes as u32), values.len() as u32);
        self.each_lane(self.active(inst)?, access.ty, false, |emitter, lane| {
            let pointer = ir.as_pointer(emitter.lane_of(pointers, lane));
            let whole = (0..).zip(&values).fold(ir.poison(vector), |whole, (index, value)| {
                ir.insert(whole, emitter.lane_of(*value, lane), ir.constant(ir.int(32), index))
            });
            ir.store_as_is(whole, pointer, access.bytes as u32);
            whole
        });
        Ok(())
    }
}
