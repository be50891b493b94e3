//! mbarriers and clusters (manual: "mbarrier", "barrier.cluster", "mapa", "getctarank", "st.async",
//! "red.async", "st.bulk").
//!
//! The runtime updates mbarriers and counts arrivals at the cluster barrier. The location of other blocks'
//! shared memory is known at compile time: see [`WINDOW`]. Asynchronous operations are done at once; the
//! manual gives no duration for them.

use super::Service;
use super::emit::{Emitted, Emitter, Untranslated};
use super::llvm::{IntPred, Val};
use super::memory::Reach;
use crate::abi::{FAR, Meeting, Reason, WINDOW, offset};
use broadloom_ptx::{Address, InstData, Modifier, Opcode, Operand, Space, Type};

impl Emitter<'_> {
    /// Emits an instruction of the class `mbarrier`.
    pub(crate) fn mbarrier(&mut self, opcode: Opcode, inst: &InstData) -> Emitted<()> {
        let what = meeting(opcode, inst).ok_or_else(|| Untranslated(format!("`{}`", opcode.name())))?;
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
    pub(crate) fn cluster_barrier(&mut self, opcode: Opcode, inst: &InstData) -> Emitted<()> {
        let what = if opcode == Opcode::BarrierClusterArrive { Meeting::ArriveAtCluster } else { Meeting::WaitForCluster };
        let nothing = self.ir.constant(self.ir.int(64), 0);
        if self.lanes.is_some() {
            // Lanes that are not here have exited: see `linearise`.
            let mask = self.as_mask(self.comers(inst)?);
            self.ir.store(self.ir.not(mask), self.ir.offset_by(self.warp, offset::EXITED), 4);
        }
        let comers = self.comers(inst)?;
        self.meet(inst, what, nothing, nothing, comers).map(drop)
    }

    /// Emits `st.async` and `red.async`: the access itself, then the update of the mbarrier that waits for
    /// its bytes, if there is one.
    pub(crate) fn access_async(&mut self, opcode: Opcode, inst: &InstData) -> Emitted<()> {
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
    pub(crate) fn store_bulk(&mut self, inst: &InstData) -> Emitted<()> {
        let address = self.address_of(inst)?;
        let Some((operand, ty)) = broadloom_eval::inputs(inst).nth(1) else {
            return Err(Untranslated("an `st.bulk` without a size".into()));
        };
        let bytes = self.fetch(operand, ty, self.lanes.is_none())?;
        self.meet_at(inst, Meeting::Zero, &address, bytes).map(drop)
    }

    fn meet_at(&mut self, inst: &InstData, what: Meeting, address: &Address, operand: Val) -> Emitted<Val> {
        let reach = self.reach(inst, address)?;
        let addresses = self.addresses(&reach);
        let active = self.active(inst)?;
        self.meet(inst, what, addresses, operand, active)
    }

    /// Calls the runtime for the active lanes. Returns its result, 64 bits per lane.
    fn meet(&mut self, inst: &InstData, what: Meeting, address: Val, operand: Val, active: Val) -> Emitted<Val> {
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
    fn give_met(&mut self, inst: &InstData, value: Val) -> Emitted<()> {
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

    /// Returns the lowest lane of a mask, or any lane if the mask is empty.
    fn first_of(&self, mask: Val) -> Val {
        let ir = self.ir;
        let i32 = ir.int(32);
        let lane = ir.intrinsic("llvm.cttz", &[i32], &[mask, ir.constant(ir.int(1), 0)]);
        ir.and(lane, ir.constant(i32, 31))
    }

    // Addresses of other blocks.

    /// Returns the index of the block in its cluster.
    pub(crate) fn cluster_ctaid(&self, axis: usize) -> Val {
        let i32 = self.ir.int(32);
        let ctaid = self.field(i32, offset::CTAID + 4 * axis as u64);
        self.ir.urem(ctaid, self.ir.constant(i32, u64::from(self.cluster.size[axis])))
    }

    /// Returns the index of the cluster, or the number of clusters. `place` is the offset of the block's
    /// index or of the number of blocks.
    pub(crate) fn in_clusters(&self, place: u64, axis: usize) -> Val {
        let i32 = self.ir.int(32);
        let number = self.field(i32, place + 4 * axis as u64);
        self.ir.udiv(number, self.ir.constant(i32, u64::from(self.cluster.size[axis])))
    }

    /// Returns the rank of the block in its cluster.
    pub(crate) fn cluster_rank(&self) -> Val {
        let ir = self.ir;
        let times = |value: Val, axis: usize| ir.mul(value, ir.constant(ir.int(32), u64::from(self.cluster.size[axis])));
        let rows = ir.add(self.cluster_ctaid(1), times(self.cluster_ctaid(2), 1));
        ir.add(self.cluster_ctaid(0), times(rows, 0))
    }

    /// Returns the address of the shared memory of the cluster's first block, as a number.
    fn cluster_start(&self) -> Val {
        let ir = self.ir;
        let i64 = ir.int(64);
        let own = ir.ptrtoint(self.pointer_field(offset::SHARED), i64);
        ir.sub(own, ir.mul(ir.zext(self.cluster_rank(), i64), ir.constant(i64, WINDOW)))
    }

    /// Translates an address of the shared window that may belong to another block to a host address, as a
    /// number.
    pub(crate) fn follow_shared(&self, value: Val) -> Val {
        let ir = self.ir;
        let (i64, ty) = (ir.int(64), ir.type_of(value));
        let own = ir.add(self.as_wide(ir.ptrtoint(self.pointer_field(offset::SHARED), i64), ty), value);
        if !self.cluster.has_others() {
            return own;
        }
        let start = ir.sub(self.cluster_start(), ir.constant(i64, FAR * WINDOW));
        let other = ir.add(self.as_wide(start, ty), value);
        ir.select(ir.icmp(IntPred::LLVMIntUGE, value, ir.constant(ty, FAR * WINDOW)), other, own)
    }

    /// Translates a host address to an address in the shared window.
    pub(crate) fn find_in_shared(&self, value: Val) -> Val {
        let ir = self.ir;
        let (i64, ty) = (ir.int(64), ir.type_of(value));
        let own = ir.sub(value, self.as_wide(ir.ptrtoint(self.pointer_field(offset::SHARED), i64), ty));
        if !self.cluster.has_others() {
            return own;
        }
        let start = ir.sub(self.cluster_start(), ir.constant(i64, FAR * WINDOW));
        let other = ir.sub(value, self.as_wide(start, ty));
        ir.select(ir.icmp(IntPred::LLVMIntULT, own, ir.constant(ty, WINDOW)), own, other)
    }

    /// Returns the target of an access that may go to shared memory of another block.
    pub(crate) fn reach_cluster(&self, reg: broadloom_ptx::Reg, more: i64) -> Emitted<Reach> {
        let ir = self.ir;
        let uniform = self.lanes.is_none() || self.shapes.shape(reg).is_uniform();
        let value = if uniform { self.lane0(reg)? } else { self.all_lanes(reg)? };
        let value = ir.resize(value, ir.int(64), true);
        let value = ir.add(value, ir.constant(ir.type_of(value), more as u64));
        let pointer = ir.as_pointer(self.follow_shared(value));
        Ok(if uniform { Reach::Uniform(pointer) } else { Reach::Any(pointer) })
    }

    /// Returns the start and the bytes of the shared windows of all blocks of the cluster.
    pub(crate) fn cluster_windows(&self) -> (Val, Val) {
        (self.cluster_start(), self.ir.constant(self.ir.int(64), self.cluster.blocks() * WINDOW))
    }

    /// Emits `mapa`. In a cluster of one block, the address does not change.
    pub(crate) fn map_address(&mut self, inst: &InstData) -> Emitted<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let [result, from, rank] = inst.operands.as_slice() else { return Err(Untranslated("a `mapa` without operands".into())) };
        let ty = inst.types().next().unwrap_or(Type::U64);
        let scalar = self.lanes.is_none();
        let address = self.mapped(inst, from, ty, scalar)?;
        let rank = ir.zext(self.fetch(rank, Type::U32, scalar)?, i64);
        let wide = ir.type_of(address);
        let blocks = self.cluster.blocks();
        let none = ir.and(self.active(inst)?, ir.icmp(IntPred::LLVMIntUGE, rank, ir.constant(wide, blocks)));
        let asked = match ir.lanes(rank) {
            Some(_) => ir.extract(rank, self.first_of(self.as_mask(none))),
            None => rank,
        };
        self.fault(inst, Reason::BadRank, none, asked);
        let value = if blocks == 1 {
            address
        } else if inst.space() == Space::Shared {
            let place = ir.and(address, ir.constant(wide, WINDOW - 1));
            let own = self.as_wide(ir.zext(self.cluster_rank(), i64), wide);
            let far = ir.mul(ir.add(rank, ir.constant(wide, FAR)), ir.constant(wide, WINDOW));
            ir.select(ir.icmp(IntPred::LLVMIntEQ, rank, own), place, ir.add(far, place))
        } else {
            let start = self.as_wide(self.cluster_start(), wide);
            let place = ir.and(ir.sub(address, start), ir.constant(wide, WINDOW - 1));
            ir.add(ir.add(start, ir.mul(rank, ir.constant(wide, WINDOW))), place)
        };
        let value = ir.resize(value, ir.int(ty.bits()), false);
        self.assign(result, ty, value)
    }

    /// Emits `getctarank`.
    pub(crate) fn rank_of_address(&mut self, inst: &InstData) -> Emitted<()> {
        let ir = self.ir;
        let i64 = ir.int(64);
        let [result, from] = inst.operands.as_slice() else { return Err(Untranslated("a `getctarank` without operands".into())) };
        let ty = inst.types().next().unwrap_or(Type::U64);
        let address = self.mapped(inst, from, ty, self.lanes.is_none())?;
        let wide = ir.type_of(address);
        let window = |value: Val| ir.udiv(value, ir.constant(wide, WINDOW));
        let value = if !self.cluster.has_others() {
            ir.constant(wide, 0)
        } else if inst.space() == Space::Shared {
            let own = self.as_wide(ir.zext(self.cluster_rank(), i64), wide);
            let other = ir.sub(window(address), ir.constant(wide, FAR));
            ir.select(ir.icmp(IntPred::LLVMIntULT, address, ir.constant(wide, FAR * WINDOW)), own, other)
        } else {
            window(ir.sub(address, self.as_wide(self.cluster_start(), wide)))
        };
        let value = ir.trunc(value, ir.int(32));
        self.assign(result, Type::U32, value)
    }

    /// Returns the address operand of `mapa` and `getctarank` in 64 bits. The name of a variable becomes an
    /// address of the kind that the instruction expects.
    fn mapped(&self, inst: &InstData, from: &Operand, ty: Type, scalar: bool) -> Emitted<Val> {
        let ir = self.ir;
        let value = ir.resize(self.fetch(from, ty, scalar)?, ir.int(64), false);
        Ok(match from {
            Operand::Symbol(..) if inst.space() != Space::Shared => {
                let own = ir.ptrtoint(self.pointer_field(offset::SHARED), ir.int(64));
                ir.add(self.as_wide(own, ir.type_of(value)), value)
            }
            _ => value,
        })
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
