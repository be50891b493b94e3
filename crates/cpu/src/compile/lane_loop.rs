//! Actions that the lanes do one after the other, lowest first.

use super::emitter::Emitter;
use super::llvm::{IntPred, Ty, Val};
use broadloom_ptx::Type;

/// Lane number: known at compile time or at run time.
#[derive(Clone, Copy)]
pub(crate) enum LaneNumber {
    Fixed(u32),
    Number(Val),
}

/// Value whose lanes can be selected one by one.
#[derive(Clone, Copy)]
pub(crate) enum SpilledValue {
    /// Equal in all lanes.
    Same(Val),
    /// On the stack.
    Stack { place: Val, element: Ty },
}

impl Emitter<'_> {
    /// Spills the lanes of a value, so that a lane can be selected by number.
    pub(crate) fn spill(&self, value: Val) -> SpilledValue {
        let ir = self.ir;
        match ir.lanes(value) {
            None => SpilledValue::Same(value),
            Some(_) => {
                let ty = ir.type_of(value);
                let place = ir.stack(ty, 64);
                ir.store(value, place, 64);
                SpilledValue::Stack { place, element: ir.element(ty) }
            }
        }
    }

    /// Returns the value of a lane.
    pub(crate) fn lane_of(&self, value: SpilledValue, lane: LaneNumber) -> Val {
        let ir = self.ir;
        match (value, lane) {
            (SpilledValue::Same(value), _) => value,
            (SpilledValue::Stack { place, element }, LaneNumber::Number(lane)) => {
                let bytes = u64::from(ir.bits(element).div_ceil(8));
                let offset = ir.mul(ir.zext(lane, ir.int(64)), ir.constant(ir.int(64), bytes));
                ir.load(element, ir.offset(place, offset), bytes as u32)
            }
            (SpilledValue::Stack { place, element }, LaneNumber::Fixed(lane)) => {
                // Loads from memory on purpose: hosts extract single lanes from vectors slowly.
                let bytes = u64::from(ir.bits(element).div_ceil(8));
                ir.load_as_is(element, ir.offset_by(place, u64::from(lane) * bytes), bytes as u32)
            }
        }
    }

    /// Emits an action for each active lane, lowest first. The results, if wanted, are integers of the type's
    /// width.
    pub(crate) fn each_lane(&self, active: Val, ty: Type, wanted: bool, act: impl Fn(&Self, LaneNumber) -> Val) -> Option<Val> {
        let ir = self.ir;
        let i32 = ir.int(32);
        let element = ir.int(ty.bits());
        let Some(lanes) = self.lanes else {
            // One lane: a branch around the action, if it has a guard.
            if ir.as_constant(active) == Some(1) {
                let value = act(self, LaneNumber::Fixed(0));
                return wanted.then_some(value);
            }
            let (start, act_in, after) = (ir.here(), ir.block("act"), ir.block("acted"));
            ir.branch_if(active, act_in, after);
            ir.go_on_in(act_in);
            let value = act(self, LaneNumber::Fixed(0));
            let end = ir.here();
            ir.branch(after);
            ir.go_on_in(after);
            return wanted.then(|| {
                let phi = ir.phi(element);
                ir.incoming(phi, ir.zero(element), start);
                ir.incoming(phi, value, end);
                phi
            });
        };
        let all = ir.vector(element, lanes);
        let bytes = u64::from(ty.bytes());
        let results = wanted.then(|| {
            let place = ir.stack(all, 64);
            ir.store(ir.zero(all), place, 64);
            place
        });
        let mask = self.as_mask(active);
        let (start, head, body, after) = (ir.here(), ir.block("lanes"), ir.block("lane"), ir.block("after"));
        ir.branch(head);
        ir.go_on_in(head);
        let left = ir.phi(i32);
        ir.incoming(left, mask, start);
        let more = ir.icmp(IntPred::LLVMIntNE, left, ir.constant(i32, 0));
        ir.branch_if(more, body, after);
        ir.go_on_in(body);
        let lane = ir.intrinsic("llvm.cttz", &[i32], &[left, ir.constant(ir.int(1), 1)]);
        let value = act(self, LaneNumber::Number(lane));
        if let Some(place) = results {
            let offset = ir.mul(ir.zext(lane, ir.int(64)), ir.constant(ir.int(64), bytes));
            ir.store(value, ir.offset(place, offset), bytes as u32);
        }
        let rest = ir.and(left, ir.sub(left, ir.constant(i32, 1)));
        ir.incoming(left, rest, ir.here());
        ir.branch(head);
        ir.go_on_in(after);
        results.map(|place| ir.load(all, place, 64))
    }

    /// Emits an action for each active lane, lowest first. If all lanes are active, it runs as straight code
    /// without a loop.
    pub(super) fn each_lane_in_a_row(&self, active: Val, ty: Type, act: impl Fn(&Self, LaneNumber) -> Val) {
        let ir = self.ir;
        let Some(lanes) = self.lanes else {
            self.each_lane(active, ty, false, act);
            return;
        };
        let i32 = ir.int(32);
        let mask = self.as_mask(active);
        let full = ir.icmp(IntPred::LLVMIntEQ, mask, ir.constant(i32, 0xffff_ffff));
        let (row, some, done) = (ir.block("row"), ir.block("some"), ir.block("done"));
        ir.branch_if(full, row, some);
        ir.go_on_in(row);
        for lane in 0..lanes {
            act(self, LaneNumber::Fixed(lane));
        }
        ir.branch(done);
        ir.go_on_in(some);
        self.each_lane(active, ty, false, act);
        ir.branch(done);
        ir.go_on_in(done);
    }
}
