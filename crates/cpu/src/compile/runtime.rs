//! Calls of the runtime, and the state of a warp that it shares with generated code.

use super::emitter::Emitter;
use super::llvm::{IntPred, Ty, Val};
use crate::abi::{Reason, Services};
use crate::code::FaultSite;
use broadloom_device::place::SourcePlace;
use broadloom_ptx::{InstData, Lines, Printer};
use std::mem::offset_of;

/// Functions of the runtime that generated code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Barrier,
    Pause,
    Fault,
    Evaluate,
    Exchange,
    Builtin,
    Clock,
    Exit,
    Meet,
    Image,
    Admit,
}

impl Service {
    /// Returns the offset of its address in the table of services.
    fn offset(self) -> u64 {
        (match self {
            Service::Barrier => offset_of!(Services, barrier),
            Service::Pause => offset_of!(Services, pause),
            Service::Fault => offset_of!(Services, fault),
            Service::Evaluate => offset_of!(Services, evaluate),
            Service::Exchange => offset_of!(Services, exchange),
            Service::Builtin => offset_of!(Services, builtin),
            Service::Clock => offset_of!(Services, clock),
            Service::Exit => offset_of!(Services, exit),
            Service::Meet => offset_of!(Services, meet),
            Service::Image => offset_of!(Services, image),
            Service::Admit => offset_of!(Services, admit),
        }) as u64
    }
}

impl Emitter<'_> {
    /// Calls a function of the runtime.
    pub(crate) fn serve(&self, service: Service, result: super::llvm::Ty, arguments: &[Val]) -> Val {
        let place = self.ir.offset_by(self.services, service.offset());
        let function = self.ir.load_invariant(self.ir.pointer(), place, 8);
        self.ir.call(function, result, arguments)
    }

    /// Returns memory on the stack for inputs and outputs of one runtime call. Calls with the same type share
    /// it: a kernel with thousands of them would otherwise use megabytes that no cache holds.
    pub(crate) fn room(&mut self, ty: Ty) -> Val {
        if let Some((_, room)) = self.rooms.iter().find(|(other, _)| *other == ty) {
            return *room;
        }
        let room = self.ir.stack(ty, 64);
        self.rooms.push((ty, room));
        room
    }

    /// Loads a field of the warp's state.
    pub(crate) fn field(&self, ty: Ty, place: u64) -> Val {
        let align = self.ir.bits(ty).div_ceil(8);
        self.ir.load_invariant(ty, self.ir.offset_by(self.warp, place), align)
    }

    /// Loads a pointer of the warp's state.
    pub(crate) fn pointer_field(&self, place: u64) -> Val {
        self.ir.load_invariant(self.ir.pointer(), self.ir.offset_by(self.warp, place), 8)
    }

    /// Records an instruction that can fault and returns its number.
    pub(crate) fn site(&mut self, inst: &InstData) -> u64 {
        let function = self.function;
        let instruction = match self.at.filter(|id| std::ptr::eq(&function.insts[*id], inst)) {
            Some(id) => Printer::new(self.module).instruction(function, id),
            None => inst.mnemonic_text(),
        };
        let module = self.module;
        let lines = self.lines.get_or_insert_with(|| Lines::of(module));
        let source = inst.loc.and_then(|loc| SourcePlace::of(lines, function, loc));
        let span = (!inst.span.is_synthetic()).then_some(inst.span);
        self.sites.push(FaultSite { instruction, span, source });
        self.sites.len() as u64 - 1
    }

    /// Returns a number for an instruction at which lanes of the slow path meet.
    pub(crate) fn next_site(&mut self) -> u64 {
        self.exchanges += 1;
        u64::from(self.exchanges)
    }

    /// Emits a fault if any lane is active.
    pub(crate) fn fault(&mut self, inst: &InstData, reason: Reason, active: Val, address: Val) {
        let ir = self.ir;
        let i32 = ir.int(32);
        let site = self.site(inst);
        let (go, after) = (ir.block("fault"), ir.block("on"));
        ir.branch_if(self.any(active), go, after);
        ir.go_on_in(go);
        let arguments = [self.warp, ir.constant(i32, reason as u64), ir.constant(i32, site), self.as_mask(active), address];
        self.serve(Service::Fault, ir.void(), &arguments);
        ir.unreachable();
        ir.go_on_in(after);
    }

    /// Emits a yield to the other strands.
    pub(crate) fn pause(&self) {
        self.serve(Service::Pause, self.ir.void(), &[self.warp]);
    }

    /// Emits a yield on every sixteenth execution.
    pub(crate) fn pause_sometimes(&self) {
        const TIMES: u64 = 16;
        let ir = self.ir;
        let i32 = ir.int(32);
        let count = ir.stack_of_zeros(i32, 4);
        let next = ir.add(ir.load(i32, count, 4), ir.constant(i32, 1));
        ir.store(next, count, 4);
        let turn = ir.icmp(IntPred::LLVMIntEQ, ir.and(next, ir.constant(i32, TIMES - 1)), ir.constant(i32, 0));
        let (pause, on) = (ir.block("pause"), ir.block("on"));
        ir.branch_if(turn, pause, on);
        ir.go_on_in(pause);
        self.pause();
        ir.branch(on);
        ir.go_on_in(on);
    }
}
