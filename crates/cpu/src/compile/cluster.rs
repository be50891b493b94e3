//! mbarriers and clusters (manual: "mbarrier", "barrier.cluster", "mapa", "getctarank", "st.async",
//! "red.async", "st.bulk").
//!
//! The runtime updates mbarriers and counts arrivals at the cluster barrier. The location of other blocks'
//! shared memory is known at compile time: see [`crate::abi::WINDOW`]. Asynchronous operations are done at
//! once; the manual gives no duration for them.

use super::emitter::{Emitter, TranslationError, TranslationResult};
use super::llvm::{IntPred, Val};
use super::runtime::Service;
use crate::abi::{Meeting, offset};
use broadloom_ptx::{Address, InstData, Modifier, Opcode, Operand, Type};

impl Emitter<'_> {
    /// Emits an instruction of the class `mbarrier`.
    pub(crate) fn mbarrier(&mut self, opcode: Opcode, inst: &InstData) -> TranslationResult<()> {
        let what = meeting(opcode, inst).ok_or_else(|| TranslationError(format!("`{}`", opcode.name())))?;
        let address = self.address_of(inst)?;
        let operand = match broadloom_eval::inputs(inst).nth(1) {
            Some((operand, ty)) if !matches!(operand, Operand::Absent | Operand::Sink) => {
                self.fetch(operand, ty, self.lanes.is_none())?
            }
            // One arrival.
            _ => self.constant(1, Type::U32, true),
        };
        let value = self.meet_at(inst, what, &address, operand)?;
        // Only the older layout exists here.
        let value =
            if what == Meeting::Look && !inst.has(Modifier::LayoutV0) { self.ir.zero(self.ir.type_of(value)) } else { value };
        self.give_met(inst, value)
    }

    /// Emits `barrier.cluster.arrive` and `barrier.cluster.wait`.
    pub(crate) fn cluster_barrier(&mut self, opcode: Opcode, inst: &InstData) -> TranslationResult<()> {
        let what = if opcode == Opcode::BarrierClusterArrive { Meeting::ArriveAtCluster } else { Meeting::WaitForCluster };
        let nothing = self.ir.constant(self.ir.int(64), 0);
        if self.lanes.is_some() {
            // Lanes that are not here have exited: see `linearise`.
            let mask = self.as_mask(self.arriving_lanes(inst)?);
            self.ir.store(self.ir.not(mask), self.ir.offset_by(self.warp, offset::EXITED), 4);
        }
        let arriving = self.arriving_lanes(inst)?;
        self.meet(inst, what, nothing, nothing, arriving).map(drop)
    }

    /// Emits `st.async` and `red.async`: the access itself, then the update of the mbarrier that waits for
    /// its bytes, if there is one.
    pub(crate) fn access_async(&mut self, opcode: Opcode, inst: &InstData) -> TranslationResult<()> {
        if opcode == Opcode::RedAsync {
            self.atomic(inst)?;
        } else {
            self.store(inst)?;
        }
        let mbarrier = inst.operands.iter().skip(2).find_map(|operand| match operand {
            Operand::Memory(address) => Some(*address),
            _ => None,
        });
        let Some(mbarrier) = mbarrier else { return Ok(()) };
        let count = inst.operands.get(1).map_or(1, |held| held.elements().len() as u64);
        let bytes = count * u64::from(inst.types().next().unwrap_or(Type::B32).bytes());
        let bytes = self.ir.constant(self.ir.int(64), bytes);
        self.meet_at(inst, Meeting::CompleteBytes, &mbarrier, bytes).map(drop)
    }

    /// Emits `st.bulk`, which stores zeros.
    pub(crate) fn store_bulk(&mut self, inst: &InstData) -> TranslationResult<()> {
        let address = self.address_of(inst)?;
        let Some((operand, ty)) = broadloom_eval::inputs(inst).nth(1) else {
            return Err(TranslationError("an `st.bulk` without a size".into()));
        };
        let bytes = self.fetch(operand, ty, self.lanes.is_none())?;
        self.meet_at(inst, Meeting::Zero, &address, bytes).map(drop)
    }

    fn meet_at(&mut self, inst: &InstData, what: Meeting, address: &Address, operand: Val) -> TranslationResult<Val> {
        let reach = self.reach(inst, address)?;
        let addresses = self.addresses(&reach);
        let active = self.active(inst)?;
        self.meet(inst, what, addresses, operand, active)
    }

    /// Calls the runtime for the active lanes. Returns its result, 64 bits per lane.
    fn meet(&mut self, inst: &InstData, what: Meeting, address: Val, operand: Val, active: Val) -> TranslationResult<Val> {
        let ir = self.ir;
        let (i32, i64) = (ir.int(32), ir.int(64));
        let lanes = self.lanes.unwrap_or(1);
        let row = ir.lanes_of(i64, self.lanes);
        let (from, to) = (ir.stack(ir.vector(i64, 2 * lanes), 64), ir.stack(row, 64));
        for (index, value) in [address, operand].into_iter().enumerate() {
            let wide = self.as_wide(ir.resize(value, i64, false), row);
            ir.store(wide, ir.offset_by(from, index as u64 * 8 * u64::from(lanes)), 8);
        }
        ir.store(ir.zero(row), to, 8);
        let site = self.site(inst);
        let mask = self.as_mask(active);
        let arguments = [self.warp, ir.constant(i32, what as u64), ir.constant(i32, site), mask, from, to];
        self.if_any(active, i32, |emitter| {
            emitter.serve(Service::Meet, ir.void(), &arguments);
            ir.constant(i32, 0)
        });
        Ok(ir.load(row, to, 8))
    }

    /// Assigns the result of the runtime to its register.
    fn give_met(&mut self, inst: &InstData, value: Val) -> TranslationResult<()> {
        let ir = self.ir;
        for (operand, ty) in self.written(inst) {
            let scalar = match &operand {
                Operand::Reg(reg) => self.is_kept_as_scalar(*reg),
                _ => true,
            };
            // All active lanes have the same value, and the first lane need not be active.
            let value = match (scalar, ir.lanes(value)) {
                (true, Some(_)) => {
                    let mask = self.as_mask(self.active(inst)?);
                    ir.extract(value, self.first_of(mask))
                }
                _ => value,
            };
            let value = match ty {
                Type::Pred => ir.icmp(IntPred::LLVMIntNE, value, ir.constant(ir.type_of(value), 0)),
                _ => value,
            };
            self.assign(&operand, ty, value)?;
        }
        Ok(())
    }
}

/// Returns the mbarrier operation of an instruction.
fn meeting(opcode: Opcode, inst: &InstData) -> Option<Meeting> {
    // Columns: plain; with expected bytes, or with a parity; with `.noComplete`.
    let table = [
        (Opcode::MbarrierInit, [Meeting::Init; 3]),
        (Opcode::MbarrierInval, [Meeting::Invalidate; 3]),
        (Opcode::MbarrierExpectTx, [Meeting::ExpectBytes; 3]),
        (Opcode::MbarrierCompleteTx, [Meeting::CompleteBytes; 3]),
        (Opcode::MbarrierArrive, [Meeting::Arrive, Meeting::ArriveExpecting, Meeting::ArriveBefore]),
        (Opcode::MbarrierArriveDrop, [Meeting::Drop, Meeting::DropExpecting, Meeting::DropBefore]),
        (Opcode::MbarrierTestWait, [Meeting::Ask, Meeting::AskParity, Meeting::Ask]),
        (Opcode::MbarrierTryWait, [Meeting::Ask, Meeting::AskParity, Meeting::Ask]),
        (Opcode::MbarrierCheckLayout, [Meeting::Look; 3]),
    ];
    let column =
        if inst.has(Modifier::NoComplete) { 2 } else { usize::from(inst.has(Modifier::ExpectTx) || inst.has(Modifier::Parity)) };
    table.iter().find(|(row, _)| *row == opcode).map(|(_, columns)| columns[column])
}
