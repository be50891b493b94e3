//! Execution engine: runs one thread at a time, until it ends, waits, or has used up its turn.
//!
//! Threads are independent: each has its own position, and a thread that spins on another's flag uses up its
//! turn and lets the other run. Threads synchronise only where the manual says so: at barriers, at warp
//! instructions, in memory.

mod access;
mod atomic;
mod barrier;
mod builtin;
mod call;
mod cluster;
mod copy;
mod image;
mod matrix;
mod mbarrier;
mod ordering;
mod special;
mod warp;

pub(crate) use warp::lane_names;

use crate::cluster::Common;
use crate::cta::{CodeSite, Cta, Wait};
use crate::memory::{FUNCTION_BASE, LOCAL_BASE, Memory};
use crate::names::Names;
use crate::op::{Arg, Handler, Machine, Op};
use crate::program::Program;
use crate::watch::Watch;
use broadloom_device::place::SourcePlace;
use broadloom_device::texture::OpaqueTable;
use broadloom_device::{Fault, FaultKind, Launch};
use broadloom_eval::{Inputs, truncate};
use broadloom_ptx::{Func, Lines, Opcode, Printer, Space};
use std::time::Instant;

/// Number of instructions that a thread runs before others get their turn.
pub(crate) const TURN: u32 = 1 << 14;

/// Reason why a run ends early.
pub(crate) type Stop = Box<Fault>;

/// Receiver of the output of `printf`.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&[u8]);

/// Running grid, without its blocks.
pub(crate) struct Engine<'a, W> {
    pub(crate) program: &'a Program,
    pub(crate) memory: &'a mut Memory,
    pub(crate) watch: &'a mut W,
    pub(crate) output: Sink<'a>,
    pub(crate) launch: &'a Launch,
    pub(crate) kernel: Func,
    /// Parameter block.
    pub(crate) params: &'a [u8],
    /// Offset of each shared variable in the block's shared memory, by number.
    pub(crate) shared_offsets: &'a [u64],
    /// Bytes of shared memory of a block.
    pub(crate) shared_bytes: u64,
    /// Names of memory, for messages.
    pub(crate) names: Names,
    /// Number of instructions run so far, for clocks and statistics.
    pub(crate) steps: u64,
    pub(crate) deadline: Option<Instant>,
    /// Maximum bytes of registers, frames and local memory of a thread.
    pub(crate) stack_limit: u64,
    /// Bytes that kernels may still allocate from the heap.
    pub(crate) heap_left: u64,
    /// Address of the state of grid-wide barriers, in a cooperative launch.
    pub(crate) workspace: u64,
    pub(crate) started: Instant,
    /// Cluster of the running block.
    pub(crate) cluster: Common,
    /// Textures and surfaces.
    pub(crate) opaques: OpaqueTable,
    /// Number of events that others may have waited for: exits of threads, changes of barriers.
    pub(crate) events: u64,
}

/// Next action of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextAction {
    /// Continue with the following instruction.
    Step,
    /// The position has been set.
    Jumped,
    /// The thread waits, or has exited.
    Stop,
}

impl<W: Watch> Engine<'_, W> {
    /// Runs a thread until it waits, ends, or its turn is over.
    pub(crate) fn run(&mut self, cta: &mut Cta, index: usize) -> Result<(), Stop> {
        let program = self.program;
        let mut left = TURN;
        cta.threads[index].spent = false;
        'frames: while cta.threads[index].ready() {
            let thread = &cta.threads[index];
            let Some(frame) = thread.frames.last() else {
                self.finish(cta, index);
                break;
            };
            let (func, registers) = (frame.func, frame.registers);
            let mut pc = frame.pc;
            let ops = &program.routine(func).ops;
            loop {
                let Some(op) = ops.get(pc) else {
                    // Falling off the end of a function returns from it.
                    self.leave(cta, index);
                    continue 'frames;
                };
                if left == 0 {
                    self.set_pc(cta, index, pc);
                    cta.threads[index].spent = true;
                    break 'frames;
                }
                left -= 1;
                let site = CodeSite { func, op, thread: index };
                self.watch.instruction();
                if let Some((slot, negated)) = op.guard {
                    let slot = registers + slot as usize;
                    if W::ON {
                        self.watch.read_register(cta, site, slot);
                    }
                    if (cta.threads[index].registers[slot] != 0) == negated {
                        pc += 1;
                        continue;
                    }
                }
                match op.handler {
                    Handler::Pure(run) => {
                        let inputs = self.inputs(cta, site, registers);
                        let value = run(op, &inputs);
                        self.write(cta, index, registers, &op.writes[0], value);
                    }
                    Handler::Pair(run) => {
                        let inputs = self.inputs(cta, site, registers);
                        let values = run(op, &inputs);
                        for (place, value) in op.writes.iter().zip(values) {
                            self.write(cta, index, registers, place, value);
                        }
                    }
                    Handler::Carry(run) => {
                        let inputs = self.inputs(cta, site, registers);
                        let (value, carry) = run(op, &inputs, cta.threads[index].carry);
                        self.write(cta, index, registers, &op.writes[0], value);
                        if op.writes_carry() {
                            cta.threads[index].carry = carry;
                        }
                    }
                    // The most frequent ones. A branch needs only the position, and a move not even that.
                    Handler::Machine(Machine::Branch) => {
                        if let Some(Arg::Target(target)) = op.reads.first() {
                            pc = *target as usize;
                            continue;
                        }
                    }
                    Handler::Machine(Machine::Move) => self.move_value(cta, site, registers),
                    Handler::Machine(Machine::Load) => {
                        self.set_pc(cta, index, pc);
                        self.load(cta, site, registers)?;
                    }
                    Handler::Machine(Machine::Store) => {
                        self.set_pc(cta, index, pc);
                        self.store(cta, site, registers)?;
                    }
                    Handler::Machine(machine) => {
                        self.set_pc(cta, index, pc);
                        match self.machine(cta, site, registers, machine)? {
                            NextAction::Step => {}
                            NextAction::Jumped => continue 'frames,
                            NextAction::Stop => break 'frames,
                        }
                    }
                    Handler::Refused => {
                        self.set_pc(cta, index, pc);
                        let message = "this instruction is not run by the interpreter".to_owned();
                        return Err(self.fault(cta, site, FaultKind::Unsupported, None, message));
                    }
                }
                pc += 1;
            }
        }
        let ran = u64::from(TURN - left);
        self.steps += ran;
        cta.steps += ran;
        Ok(())
    }

    fn set_pc(&self, cta: &mut Cta, index: usize, pc: usize) {
        if let Some(frame) = cta.threads[index].frames.last_mut() {
            frame.pc = pc;
        }
    }

    /// Makes a waiting thread continue after the instruction that it waits at.
    pub(crate) fn resume(&self, cta: &mut Cta, index: usize) {
        let thread = &mut cta.threads[index];
        thread.wait = Wait::Nothing;
        if let Some(frame) = thread.frames.last_mut() {
            frame.pc += 1;
        }
    }

    #[inline(always)]
    fn inputs(&mut self, cta: &Cta, site: CodeSite<'_>, registers: usize) -> Inputs {
        let mut inputs = [0; 6];
        let own = &cta.threads[site.thread].registers[registers..];
        for (number, arg) in site.op.reads.iter().enumerate().take(inputs.len()) {
            inputs[number] = match arg {
                Arg::Imm(value) => *value,
                Arg::Reg { slot, .. } if !W::ON => own[*slot as usize],
                other => self.read_other(cta, site, registers, other),
            };
        }
        inputs
    }

    /// Returns the value of an operand. Registers and constants are the common case and are handled in place.
    #[inline(always)]
    fn read(&mut self, cta: &Cta, site: CodeSite<'_>, registers: usize, arg: &Arg) -> u64 {
        match arg {
            Arg::Imm(value) => *value,
            Arg::Reg { slot, .. } => {
                let slot = registers + *slot as usize;
                if W::ON {
                    self.watch.read_register(cta, site, slot);
                }
                cta.threads[site.thread].registers[slot]
            }
            other => self.read_other(cta, site, registers, other),
        }
    }

    #[inline(never)]
    fn read_other(&mut self, cta: &Cta, site: CodeSite<'_>, registers: usize, arg: &Arg) -> u64 {
        let thread = &cta.threads[site.thread];
        match arg {
            Arg::Imm(value) => *value,
            Arg::Reg { slot, .. } | Arg::Part { slot } | Arg::Wide { slot } => {
                let slot = registers + *slot as usize;
                if W::ON {
                    self.watch.read_register(cta, site, slot);
                }
                thread.registers[slot]
            }
            Arg::Not { slot } => {
                let slot = registers + *slot as usize;
                if W::ON {
                    self.watch.read_register(cta, site, slot);
                }
                u64::from(thread.registers[slot] == 0)
            }
            Arg::Special(special) => self.special(cta, site.thread, *special),
            Arg::Shared { variable, offset } => self.shared_offsets[*variable as usize].wrapping_add_signed(*offset),
            Arg::Frame { offset } => thread.frames.last().map_or(0, |frame| frame.base).wrapping_add_signed(*offset),
            Arg::FrameParam { offset } => {
                LOCAL_BASE.wrapping_add(thread.frames.last().map_or(0, |frame| frame.base)).wrapping_add_signed(*offset)
            }
            Arg::Memory { base, offset, mask } => self.read(cta, site, registers, base).wrapping_add_signed(*offset) & mask,
            Arg::Vector(_) | Arg::Target(_) | Arg::Targets(_) | Arg::Sink => 0,
        }
    }

    #[inline(always)]
    fn write(&mut self, cta: &mut Cta, index: usize, registers: usize, place: &Arg, value: u64) {
        match place {
            Arg::Reg { slot, mask } => {
                let slot = registers + *slot as usize;
                cta.threads[index].registers[slot] = value & mask;
                if W::ON {
                    self.watch.write_register(cta, index, slot);
                }
            }
            other => self.write_other(cta, index, registers, other, value),
        }
    }

    /// Writes everything but registers, which [`Engine::write`] does.
    #[inline(never)]
    fn write_other(&mut self, cta: &mut Cta, index: usize, registers: usize, place: &Arg, value: u64) {
        match place {
            // Video instructions return the whole register, even if they change only a part.
            Arg::Part { slot } => {
                self.write(cta, index, registers, &Arg::Reg { slot: *slot, mask: 0xffff_ffff }, value);
            }
            Arg::Wide { slot } => self.write_wide(cta, index, registers, *slot, u128::from(value)),
            Arg::Reg { .. }
            | Arg::Not { .. }
            | Arg::Imm(_)
            | Arg::Special(_)
            | Arg::Shared { .. }
            | Arg::Frame { .. }
            | Arg::FrameParam { .. }
            | Arg::Memory { .. }
            | Arg::Vector(_)
            | Arg::Target(_)
            | Arg::Targets(_)
            | Arg::Sink => {}
        }
    }

    fn read_wide(&mut self, cta: &Cta, site: CodeSite<'_>, registers: usize, arg: &Arg) -> u128 {
        let low = u128::from(self.read(cta, site, registers, arg));
        match arg {
            Arg::Wide { slot } => low | u128::from(cta.threads[site.thread].registers[registers + *slot as usize + 1]) << 64,
            _ => low,
        }
    }

    fn write_wide(&mut self, cta: &mut Cta, index: usize, registers: usize, slot: u32, value: u128) {
        let slot = registers + slot as usize;
        cta.threads[index].registers[slot] = value as u64;
        cta.threads[index].registers[slot + 1] = (value >> 64) as u64;
        if W::ON {
            self.watch.write_register(cta, index, slot);
            self.watch.write_register(cta, index, slot + 1);
        }
    }

    fn machine(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize, machine: Machine) -> Result<NextAction, Stop> {
        let (op, index) = (site.op, site.thread);
        match machine {
            Machine::Move => {
                self.move_value(cta, site, registers);
                Ok(NextAction::Step)
            }
            Machine::Load => self.load(cta, site, registers),
            Machine::Store => self.store(cta, site, registers),
            Machine::Atomic => self.atomic(cta, site, registers),
            Machine::Convert => {
                let value = self.read(cta, site, registers, &op.reads[0]);
                let value = self.convert_address(cta, index, op, value);
                self.write(cta, index, registers, &op.writes[0], value);
                Ok(NextAction::Step)
            }
            Machine::IsSpace => {
                let value = self.read(cta, site, registers, &op.reads[0]);
                let value = self.is_in_space(cta, index, op, value);
                self.write(cta, index, registers, &op.writes[0], u64::from(value));
                Ok(NextAction::Step)
            }
            Machine::Branch => {
                if let Some(Arg::Target(target)) = op.reads.first() {
                    self.set_pc(cta, index, *target as usize);
                }
                Ok(NextAction::Jumped)
            }
            Machine::BranchIndexed => {
                let value = self.read(cta, site, registers, &op.reads[0]) & 0xffff_ffff;
                let targets: &[u32] = match op.reads.get(1) {
                    Some(Arg::Targets(targets)) => targets,
                    _ => &[],
                };
                match targets.get(value as usize) {
                    Some(target) => {
                        self.set_pc(cta, index, *target as usize);
                        Ok(NextAction::Jumped)
                    }
                    None => {
                        let message = format!("the index {value} is outside of a list of {} targets", targets.len());
                        Err(self.fault(cta, site, FaultKind::BadCall, None, message))
                    }
                }
            }
            Machine::Call => self.call(cta, site, registers),
            Machine::Return => {
                self.leave(cta, index);
                Ok(NextAction::Jumped)
            }
            Machine::Exit => {
                self.finish(cta, index);
                Ok(NextAction::Stop)
            }
            Machine::Trap => Err(self.fault(cta, site, FaultKind::Trap, None, "the kernel ran into a `trap`".to_owned())),
            Machine::Barrier => self.barrier(cta, site, registers),
            Machine::Warp(_) => self.come_to_warp(cta, site, registers),
            Machine::Fragment => self.fragment(cta, site, registers),
            Machine::Mbarrier(what) => self.mbarrier(cta, site, registers, what),
            Machine::Image => self.image(cta, site, registers),
            Machine::Copy(what) => self.copy_async(cta, site, registers, what),
            Machine::ClusterArrive => self.arrive_at_cluster(cta, site),
            Machine::ClusterWait => self.wait_for_cluster(cta, site),
            Machine::MapAddress => self.map_address(cta, site, registers),
            Machine::RankOfAddress => self.rank_of_address(cta, site, registers),
            Machine::StoreAsync => self.access_async(cta, site, registers, false),
            Machine::ReduceAsync => self.access_async(cta, site, registers, true),
            Machine::StoreBulk => self.store_bulk(cta, site, registers),
            Machine::Fence => {
                self.watch.fence(cta, site, ordering::scope(op));
                Ok(NextAction::Step)
            }
            Machine::Sleep => {
                // A sleeping thread waits for something: the others get their turn now.
                self.resume(cta, index);
                cta.threads[index].spent = true;
                Ok(NextAction::Stop)
            }
            Machine::Nothing => {
                for place in &op.writes {
                    self.write(cta, index, registers, place, 0);
                }
                Ok(NextAction::Step)
            }
            Machine::SaveStack => {
                let top = cta.threads[index].local.len() as u64;
                self.write(cta, index, registers, &op.writes[0], top);
                Ok(NextAction::Step)
            }
            Machine::RestoreStack => self.restore_stack(cta, site, registers),
            Machine::Allocate => self.allocate(cta, site, registers),
        }
    }

    fn move_value(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) {
        let (op, index) = (site.op, site.thread);
        match (&op.writes[0], &op.reads[0]) {
            (Arg::Vector(places), source) => {
                let value = self.read_wide(cta, site, registers, source);
                let bits = op.ty.bits() / places.len().max(1) as u32;
                for (part, place) in places.iter().enumerate() {
                    let value = value >> (bits * part as u32);
                    match place {
                        Arg::Wide { slot } => self.write_wide(cta, index, registers, *slot, value),
                        place => {
                            let value = truncate(value as u64, bits);
                            self.write(cta, index, registers, place, value);
                        }
                    }
                }
            }
            (place, Arg::Vector(sources)) => {
                let bits = op.ty.bits() / sources.len().max(1) as u32;
                let mut value = 0u128;
                for (part, source) in sources.iter().enumerate() {
                    let part_value = truncate(self.read(cta, site, registers, source), bits);
                    value |= u128::from(part_value) << (bits * part as u32);
                }
                match place {
                    Arg::Wide { slot } => self.write_wide(cta, index, registers, *slot, value),
                    place => self.write(cta, index, registers, place, value as u64),
                }
            }
            (Arg::Wide { slot }, source) => {
                let value = self.read_wide(cta, site, registers, source);
                self.write_wide(cta, index, registers, *slot, value);
            }
            (place, source) => {
                let value = self.read(cta, site, registers, source);
                self.write(cta, index, registers, place, value);
            }
        }
    }

    /// Ends a thread.
    fn finish(&mut self, cta: &mut Cta, index: usize) {
        let thread = &mut cta.threads[index];
        if thread.exited() {
            return;
        }
        thread.wait = Wait::Exited;
        thread.frames.clear();
        thread.release();
        let arrived = thread.arrived;
        cta.alive -= 1;
        self.leave_cluster(arrived, cta.alive == 0);
        self.watch.exit(cta, index);
        self.complete_barriers(cta);
    }

    /// Builds a fault with its place.
    pub(crate) fn fault(&self, cta: &Cta, site: CodeSite<'_>, kind: FaultKind, address: Option<u64>, message: String) -> Stop {
        let module = &self.program.module;
        let function = &module.functions[site.func];
        let data = &function.insts[site.op.inst];
        let source = data.loc.and_then(|loc| SourcePlace::of(&Lines::of(module), function, loc));
        Box::new(Fault {
            kind,
            message,
            kernel: module.functions[self.kernel].name.clone(),
            function: (site.func != self.kernel).then(|| function.name.clone()),
            block: Some(cta.id),
            thread: Some(cta.threads[site.thread].id),
            instruction: Some(Printer::new(module).instruction(function, site.op.inst)),
            span: Some(data.span),
            source,
            address,
        })
    }

    /// Reports a fault. A watched run records it and continues; another one ends.
    pub(crate) fn complain(
        &mut self,
        cta: &Cta,
        site: CodeSite<'_>,
        kind: FaultKind,
        space: Space,
        address: Option<u64>,
        message: String,
    ) -> Result<(), Stop> {
        if W::ON {
            self.watch.fault(cta, site, kind, space, address, &message);
            return Ok(());
        }
        Err(self.fault(cta, site, kind, address, message))
    }

    /// Returns the function with an address.
    fn function_at(&self, address: u64) -> Option<Func> {
        let number = address.checked_sub(FUNCTION_BASE)?;
        let known = number % 16 == 0 && number / 16 < self.program.routines.len() as u64;
        known.then(|| Func::from_u32((number / 16) as u32))
    }

    /// Returns the instruction that a waiting thread is at.
    pub(crate) fn waiting_at(&self, cta: &Cta, index: usize) -> Option<CodeSite<'_>> {
        let frame = cta.threads[index].frames.last()?;
        let op: &Op = self.program.routine(frame.func).ops.get(frame.pc)?;
        Some(CodeSite { func: frame.func, op, thread: index })
    }
}

/// Returns whether an opcode is one of the old warp instructions without a mask.
pub(crate) fn converges(opcode: Opcode) -> bool {
    opcode.takes_active_lanes()
}
