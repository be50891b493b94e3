//! Calls (manual: "Control Flow Instructions: call, ret", "Abstracting the ABI").

use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta, Frame};
use crate::op::{Arg, CallSite, CalleeArg, PassedValue};
use crate::watch::Watch;
use broadloom_device::FaultKind;
use broadloom_ptx::Func;

/// Bytes that a frame costs besides its registers and variables.
const FRAME_COST: u64 = 64;

impl<W: Watch> Engine<'_, W> {
    pub(super) fn call(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let Some(call) = &site.op.call else { return Ok(NextAction::Step) };
        let func = match &call.callee {
            CalleeArg::Direct(number) => Func::from_u32(*number),
            CalleeArg::Indirect(arg) => {
                let address = self.read(cta, site, registers, arg);
                match self.function_at(address) {
                    Some(func) => func,
                    None => {
                        let message = format!("{address:#x} is not the address of a function");
                        return Err(self.fault(cta, site, FaultKind::BadCall, Some(address), message));
                    }
                }
            }
        };
        let program = self.program;
        let routine = program.routine(func);
        if !routine.has_body {
            return self.builtin(cta, site, registers, func, call);
        }
        if routine.params.len() != call.arguments.len() || routine.results.len() < call.results.len() {
            let name = &program.module.functions[func].name;
            let message = format!(
                "`{name}` takes {} arguments and gives {} results, but is called with {} and {}",
                routine.params.len(),
                routine.results.len(),
                call.arguments.len(),
                call.results.len()
            );
            return Err(self.fault(cta, site, FaultKind::BadCall, None, message));
        }
        let arguments: Vec<Vec<u8>> = call.arguments.iter().map(|passed| self.take(cta, site, registers, passed)).collect();
        self.enter(cta, site, func)?;
        for (bytes, param) in arguments.iter().zip(&routine.params) {
            self.give(cta, site.thread, param, bytes);
        }
        Ok(NextAction::Jumped)
    }

    /// Pushes a new frame onto a thread's calls.
    pub(super) fn enter(&mut self, cta: &mut Cta, site: CodeSite<'_>, func: Func) -> Result<(), Stop> {
        let routine = self.program.routine(func);
        let thread = &mut cta.threads[site.thread];
        let base = (thread.local.len() as u64).next_multiple_of(16);
        let cost = base
            + routine.frame_bytes
            + 8 * (thread.registers.len() + routine.slots) as u64
            + FRAME_COST * (thread.frames.len() as u64 + 1);
        if cost > self.stack_limit {
            let message =
                format!("{} nested calls need more than the {} bytes that a thread has", thread.frames.len(), self.stack_limit);
            return Err(self.fault(cta, site, FaultKind::StackOverflow, None, message));
        }
        let first = thread.registers.len();
        thread.frames.push(Frame { func, pc: 0, registers: first, base });
        thread.registers.resize(first + routine.slots, 0);
        thread.local.resize((base + routine.frame_bytes) as usize, 0);
        if W::ON {
            self.watch.fresh_registers(cta, site.thread, first, routine.slots);
            self.watch.fresh_local(cta, site.thread, base, routine.frame_bytes);
        }
        Ok(())
    }

    /// Returns from the innermost call. A return from the kernel itself ends the thread.
    pub(super) fn leave(&mut self, cta: &mut Cta, index: usize) {
        let program = self.program;
        let depth = cta.threads[index].frames.len();
        if depth <= 1 {
            self.finish(cta, index);
            return;
        }
        let frame = cta.threads[index].frames[depth - 1].clone();
        let caller = cta.threads[index].frames[depth - 2].clone();
        let routine = program.routine(frame.func);
        let Some(op) = program.routine(caller.func).ops.get(caller.pc) else { return };
        let callee_site = CodeSite { func: frame.func, op, thread: index };
        let mut results = vec![];
        if let Some(call) = &op.call {
            for passed in routine.results.iter().take(call.results.len()) {
                results.push(self.take(cta, callee_site, frame.registers, passed));
            }
        }
        let thread = &mut cta.threads[index];
        thread.frames.pop();
        thread.registers.truncate(frame.registers);
        thread.local.truncate(frame.base as usize);
        if let Some(CallSite { results: places, .. }) = op.call.as_deref() {
            for (bytes, place) in results.iter().zip(places.iter()) {
                self.give(cta, index, place, bytes);
            }
        }
        if let Some(frame) = cta.threads[index].frames.last_mut() {
            frame.pc += 1;
        }
    }

    /// Returns the bytes of an argument or result, read in the innermost frame.
    pub(super) fn take(&mut self, cta: &Cta, site: CodeSite<'_>, registers: usize, passed: &PassedValue) -> Vec<u8> {
        match passed {
            PassedValue::Memory { offset, bytes } => {
                let thread = &cta.threads[site.thread];
                let base = thread.frames.last().map_or(0, |frame| frame.base).wrapping_add_signed(*offset) as usize;
                thread.local.get(base..base + *bytes as usize).unwrap_or_default().to_vec()
            }
            PassedValue::Value(arg) => self.read_wide(cta, site, registers, arg).to_le_bytes().to_vec(),
        }
    }

    /// Stores bytes into an argument or result of the innermost frame.
    pub(super) fn give(&mut self, cta: &mut Cta, index: usize, passed: &PassedValue, bytes: &[u8]) {
        let Some(frame) = cta.threads[index].frames.last() else { return };
        let (base, registers) = (frame.base, frame.registers);
        match passed {
            PassedValue::Memory { offset, bytes: size } => {
                let start = base.wrapping_add_signed(*offset);
                let count = bytes.len().min(*size as usize);
                if let Some(place) = cta.threads[index].local.get_mut(start as usize..start as usize + count) {
                    place.copy_from_slice(&bytes[..count]);
                }
                if W::ON {
                    self.watch.define_local(cta, index, start, count as u64);
                }
            }
            PassedValue::Value(arg) => {
                let mut wide = [0u8; 16];
                let count = bytes.len().min(16);
                wide[..count].copy_from_slice(&bytes[..count]);
                let value = u128::from_le_bytes(wide);
                match arg {
                    Arg::Wide { slot } => self.write_wide(cta, index, registers, *slot, value),
                    arg => self.write(cta, index, registers, arg, value as u64),
                }
            }
        }
    }

    /// Runs `stackrestore`: local memory of the innermost frame shrinks to the saved top.
    pub(super) fn restore_stack(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let to = self.read(cta, site, registers, &site.op.reads[0]);
        let thread = &mut cta.threads[site.thread];
        let floor = thread.frames.last().map_or(0, |frame| frame.base + self.program.routine(frame.func).frame_bytes);
        if to < floor || to > thread.local.len() as u64 {
            let message = format!("{to:#x} is not a saved top of the stack");
            return Err(self.fault(cta, site, FaultKind::BadCall, Some(to), message));
        }
        thread.local.truncate(to as usize);
        Ok(NextAction::Step)
    }

    /// Runs `alloca`: local memory of the innermost frame grows.
    pub(super) fn allocate(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let index = site.thread;
        let bytes = self.read(cta, site, registers, &site.op.reads[0]);
        let align = site.op.reads.get(1).map_or(16, |arg| self.read(cta, site, registers, arg)).max(1).next_power_of_two();
        let start = (cta.threads[index].local.len() as u64).next_multiple_of(align.min(4096));
        if start.saturating_add(bytes) > self.stack_limit {
            let message = format!("{bytes} bytes more than the {} bytes that a thread has", self.stack_limit);
            return Err(self.fault(cta, site, FaultKind::StackOverflow, None, message));
        }
        cta.threads[index].local.resize((start + bytes) as usize, 0);
        if W::ON {
            self.watch.fresh_local(cta, index, start, bytes);
        }
        self.write(cta, index, registers, &site.op.writes[0], start);
        Ok(NextAction::Step)
    }
}
