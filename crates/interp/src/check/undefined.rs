//! Uninitialised reads: uses of undefined values.

use super::origins::Origin;
use super::value::{Doubt, OperandBits, undecided};
use super::{BlamedInst, Checker, FindingKind};
use crate::cta::{CodeSite, Cta};
use crate::op::{Arg, Handler, Machine, Op};
use crate::watch::{Access, ByteMemory, Kind};
use broadloom_ptx::{Modifier, Type};

/// Role of a register that an instruction reads.
enum Role {
    /// It decides the behaviour: a branch, an address, the operand of an atomic.
    Decides,
    /// The result depends on it.
    Computes,
    /// The result is a copy of it, or of parts.
    Copies,
    /// Handled elsewhere, or passed on unchanged.
    Passes,
}

fn role(op: &Op, slot_in_frame: usize) -> Role {
    let is_base = |arg: Option<&Arg>| match arg {
        Some(Arg::Memory { base, .. }) => matches!(**base, Arg::Reg { slot, .. } if slot as usize == slot_in_frame),
        _ => false,
    };
    if op.guard.is_some_and(|(slot, _)| slot as usize == slot_in_frame) {
        return Role::Decides;
    }
    match op.handler {
        Handler::Pure(_) | Handler::Pair(_) | Handler::Carry(_) => Role::Computes,
        Handler::Machine(
            Machine::Load | Machine::Store | Machine::StoreAsync | Machine::Fragment | Machine::Warp(crate::op::Exchange::Matrix),
        ) if is_base(op.reads.first()) => Role::Decides,
        Handler::Machine(
            Machine::Atomic | Machine::BranchIndexed | Machine::Barrier | Machine::Mbarrier(_) | Machine::ReduceAsync,
        ) => Role::Decides,
        Handler::Machine(Machine::Move) => Role::Copies,
        Handler::Machine(
            Machine::Load
            | Machine::Store
            | Machine::Convert
            | Machine::IsSpace
            | Machine::Branch
            | Machine::Call
            | Machine::Return
            | Machine::Exit
            | Machine::Trap
            | Machine::Warp(_)
            | Machine::Fragment
            | Machine::Copy(_)
            | Machine::Image
            | Machine::Fence
            | Machine::Sleep
            | Machine::ClusterArrive
            | Machine::ClusterWait
            | Machine::MapAddress
            | Machine::RankOfAddress
            | Machine::StoreAsync
            | Machine::StoreBulk
            | Machine::Nothing
            | Machine::Allocate
            | Machine::SaveStack
            | Machine::RestoreStack,
        )
        | Handler::Refused => Role::Passes,
    }
}

/// Returns the parts of an operand: a vector's, or itself.
fn parts(arg: &Arg) -> &[Arg] {
    match arg {
        Arg::Vector(parts) => parts,
        arg => std::slice::from_ref(arg),
    }
}

impl Checker<'_> {
    /// Handles the read of a register with undefined bits.
    pub(super) fn read_undefined(&mut self, cta: &Cta, site: CodeSite<'_>, slot: usize, doubt: Doubt) {
        let first = cta.threads[site.thread].frames.last().map_or(0, |frame| frame.registers);
        match role(site.op, slot - first) {
            Role::Decides => {
                let origin = self.origin_of(cta, site, slot, doubt);
                self.blame(cta, site.thread, origin);
                // Reported once. Consequences are not reported again, but are known to follow.
                self.thread(cta, site.thread).registers[slot].origin = origin;
                self.decider = Some(origin);
            }
            Role::Computes if self.results.is_empty() => self.compute(cta, site, first),
            Role::Copies if self.results.is_empty() => self.copy(cta, site, first),
            Role::Computes | Role::Copies | Role::Passes => {}
        }
    }

    /// Reports an origin in a finding, once for each thread.
    fn blame(&mut self, cta: &Cta, thread: usize, origin: u32) {
        if !self.thread(cta, thread).said.insert(origin) {
            return;
        }
        let Some(Origin { func, inst, kind, message }) = self.origins.list.get(origin as usize - 1).cloned() else { return };
        if let Some(index) = self.report_at(cta, BlamedInst { func, inst, thread }, kind, None, message, None) {
            self.said.insert(origin, index);
        }
    }

    /// Returns the origin of a register's undefined bits. If it was never written, the origin is this use.
    fn origin_of(&mut self, cta: &Cta, site: CodeSite<'_>, slot: usize, doubt: Doubt) -> u32 {
        if doubt.origin != 0 {
            return doubt.origin;
        }
        let in_frame = slot - cta.threads[site.thread].frames.last().map_or(0, |frame| frame.registers);
        let function = &self.program.module.functions[site.func];
        let mut slots = 0usize;
        let name = function
            .regs
            .values()
            .find(|reg| {
                let here = slots == in_frame;
                slots += if reg.ty == Type::B128 { 2 } else { 1 };
                here
            })
            .map_or("?", |reg| reg.name.as_str());
        let message = format!("the register `{name}` is used, and nothing has written it");
        self.origins.add(site, FindingKind::UninitialisedRegister, message)
    }

    /// Returns the undefined bits of an operand, within its width.
    fn doubt_of(&mut self, cta: &Cta, thread: usize, first: usize, arg: &Arg) -> Doubt {
        let (slot, mask) = match arg {
            Arg::Reg { slot, mask } => (*slot, *mask),
            Arg::Part { slot } => (*slot, 0xffff_ffff),
            Arg::Not { slot } => (*slot, 1),
            Arg::Wide { slot } => (*slot, u64::MAX),
            _ => return Doubt::default(),
        };
        let registers = &self.thread(cta, thread).registers;
        registers.get(first + slot as usize).copied().unwrap_or_default().masked(mask)
    }

    /// Computes the undefined bits of the results of a pure instruction.
    fn compute(&mut self, cta: &Cta, site: CodeSite<'_>, first: usize) {
        let (op, thread) = (site.op, site.thread);
        let mut cause: Option<(usize, Doubt)> = None;
        let mut operands = Vec::with_capacity(op.reads.len());
        for arg in &op.reads {
            let doubt = self.doubt_of(cta, thread, first, arg);
            let value = match arg {
                Arg::Imm(value) => *value,
                Arg::Reg { slot, .. } | Arg::Part { slot } | Arg::Wide { slot } => {
                    cta.threads[thread].registers[first + *slot as usize]
                }
                Arg::Not { slot } => u64::from(cta.threads[thread].registers[first + *slot as usize] == 0),
                _ => 0,
            };
            if let (Arg::Reg { slot, .. } | Arg::Part { slot } | Arg::Not { slot } | Arg::Wide { slot }, false, None) =
                (arg, doubt.none(), cause)
            {
                cause = Some((first + *slot as usize, doubt));
            }
            operands.push(OperandBits { value, unknown: doubt.bits });
        }
        let Some((slot, doubt)) = cause else { return };
        let bits = undecided(op, &operands);
        let origin = self.origin_of(cta, site, slot, doubt);
        if bits == 0 {
            return;
        }
        for place in &op.writes {
            let mask = if let Arg::Reg { mask, .. } = place { *mask } else { u64::MAX };
            if !matches!(place, Arg::Sink) {
                self.results.push_back(Doubt { bits: bits & mask, origin, computed: true });
            }
        }
    }

    /// Computes the undefined bits of the results of a move, which may pack several registers into one or
    /// unpack one.
    fn copy(&mut self, cta: &Cta, site: CodeSite<'_>, first: usize) {
        let (op, thread) = (site.op, site.thread);
        let (sources, places) = (parts(&op.reads[0]), parts(&op.writes[0]));
        let doubts: Vec<Doubt> = sources.iter().map(|arg| self.doubt_of(cta, thread, first, arg)).collect();
        let Some(cause) = doubts.iter().find(|doubt| !doubt.none()).copied() else { return };
        let width = op.ty.bits();
        if width > 64 || sources.iter().chain(places).any(|arg| matches!(arg, Arg::Wide { .. })) {
            return;
        }
        let shift = |count: usize, place: usize| (place as u32 * width / count as u32).min(63);
        let whole = doubts.iter().enumerate().fold(0, |all, (place, doubt)| {
            let part = if sources.len() == 1 { u64::MAX } else { (1 << (width / sources.len() as u32)) - 1 };
            all | (doubt.bits & part) << shift(sources.len(), place)
        });
        for (place, arg) in places.iter().enumerate() {
            let Arg::Reg { mask, .. } = arg else { continue };
            self.results.push_back(Doubt { bits: whole >> shift(places.len(), place) & mask, ..cause });
        }
    }

    /// Marks local memory as written or not.
    pub(super) fn set_local(&mut self, cta: &Cta, thread: usize, from: u64, bytes: u64, defined: bool) {
        let thread = self.thread(cta, thread);
        thread.local.set(from, bytes, defined);
        if !thread.local_origins.is_empty() {
            thread.local_origins.retain(|offset, _| !(from..from + bytes).contains(offset));
        }
    }

    /// Checks an access to memory.
    pub(super) fn check_defined(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        let is_store = matches!(site.op.handler, Handler::Machine(Machine::Store | Machine::StoreAsync));
        match (access.home, access.kind) {
            (ByteMemory::Param, _) => {}
            (ByteMemory::Local, Kind::Read) => self.load_local(cta, site, access),
            (_, Kind::Read) => self.check_written(cta, site, access),
            (_, Kind::Write) if is_store => self.store(cta, site, access),
            (_, Kind::Write) => self.set(cta, site.thread, access.home, access.offset, access.bytes, true),
            (_, Kind::Atomic) => {
                self.check_written(cta, site, access);
                self.set(cta, site.thread, access.home, access.offset, access.bytes, true);
            }
        }
    }

    fn set(&mut self, cta: &Cta, thread: usize, home: ByteMemory, offset: u64, bytes: u64, defined: bool) {
        match home {
            ByteMemory::Device(serial) => self.defined.of(serial).set(offset, bytes, defined),
            ByteMemory::Shared => self.block(cta).shared.set(offset, bytes, defined),
            ByteMemory::Peer(number) => self.blocks.of(number).shared.set(offset, bytes, defined),
            ByteMemory::Local => self.set_local(cta, thread, offset, bytes, defined),
            ByteMemory::Param => {}
        }
    }

    /// Checks a read of memory that was never written.
    fn check_written(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        let (offset, bytes) = (access.offset, access.bytes);
        let any = match access.home {
            ByteMemory::Device(serial) => self.defined.of(serial).any(offset, bytes),
            ByteMemory::Shared => self.block(cta).shared.any(offset, bytes),
            ByteMemory::Peer(number) => self.blocks.of(number).shared.any(offset, bytes),
            ByteMemory::Local => self.thread(cta, site.thread).local.any(offset, bytes),
            ByteMemory::Param => return,
        };
        if !any && bytes > 0 {
            let message = self.unwritten_message(access);
            let (place, known) = (BlamedInst::of(site), self.findings.list.len());
            if let Some(index) = self.report_at(cta, place, FindingKind::UninitialisedMemory, None, message, None) {
                self.keep_unwritten(cta, site, access, index, index == known);
                self.taint(cta, site, index);
            }
        }
    }

    /// Marks the result of a load as the consequence of a finding.
    fn taint(&mut self, cta: &Cta, site: CodeSite<'_>, index: usize) {
        if !matches!(site.op.handler, Handler::Machine(Machine::Load)) {
            return;
        }
        let origin = self.origins.add(site, FindingKind::UninitialisedMemory, String::new());
        self.said.insert(origin, index);
        self.thread(cta, site.thread).said.insert(origin);
        for place in site.op.writes.first().map_or(&[] as &[Arg], parts) {
            let (count, bits) = match place {
                Arg::Sink => (0, 0),
                Arg::Wide { .. } => (2, u64::MAX),
                Arg::Reg { mask, .. } => (1, *mask),
                _ => (1, u64::MAX),
            };
            self.results.extend(std::iter::repeat_n(Doubt { bits, origin, computed: true }, count));
        }
    }

    /// Passes undefined bits of a load from local memory on to its registers. A value that only travels
    /// through a `.param` variable of a call has no origin there.
    fn load_local(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        let thread = self.thread(cta, site.thread);
        let undefined = |at: u64| !thread.local.has(at);
        if !(access.offset..access.offset + access.bytes).any(undefined) {
            return;
        }
        let size = u64::from(site.op.ty.bytes());
        let mut doubts = vec![];
        let places = site.op.writes.first().map_or(&[] as &[Arg], parts);
        for (place, start) in places.iter().zip((access.offset..).step_by(size.max(1) as usize)) {
            let halves = match place {
                Arg::Sink => continue,
                Arg::Wide { .. } => vec![(start, 8), (start + 8, 8)],
                _ => vec![(start, size.min(8))],
            };
            for (start, bytes) in halves {
                let missing: Vec<u64> = (0..bytes).filter(|at| undefined(start + at)).collect();
                let bits = missing.iter().fold(0, |bits, at| bits | 0xff << (8 * at));
                let stored = missing.iter().find_map(|at| thread.local_origins.get(&(start + at)).copied());
                doubts.push((bits, stored));
            }
        }
        let travels = site.op.has(Modifier::Param);
        let message = format!("{} bytes of local memory are read, and nothing has written them", access.bytes);
        for (bits, stored) in doubts {
            let (origin, computed) = match stored {
                Some(stored) => stored,
                None if travels || bits == 0 => (0, false),
                None => (self.origins.add(site, FindingKind::UninitialisedMemory, message.clone()), false),
            };
            self.results.push_back(Doubt { bits, origin, computed });
        }
    }

    /// Handles a store. It stores undefined bits to local memory. Memory outside the thread may get a plain
    /// copy of a register that was never written, as of padding, but no undefined value that was read or
    /// computed.
    fn store(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        let first = cta.threads[site.thread].frames.last().map_or(0, |frame| frame.registers);
        let size = u64::from(site.op.ty.bytes());
        let width = if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        let sources = site.op.reads.get(1).map_or(&[] as &[Arg], parts);
        for (source, start) in sources.iter().zip((access.offset..).step_by(size.max(1) as usize)) {
            let doubt = self.doubt_of(cta, site.thread, first, source).masked(width);
            self.set(cta, site.thread, access.home, start, size, true);
            if doubt.none() {
                continue;
            }
            if access.home == ByteMemory::Local {
                for at in (0..size.min(8)).filter(|at| doubt.bits >> (8 * at) & 0xff == 0xff) {
                    self.set(cta, site.thread, ByteMemory::Local, start + at, 1, false);
                    if doubt.origin != 0 {
                        self.thread(cta, site.thread).local_origins.insert(start + at, (doubt.origin, doubt.computed));
                    }
                }
            } else if doubt.computed || doubt.bits == width {
                match doubt.origin {
                    0 => self.set(cta, site.thread, access.home, start, size, false),
                    origin => self.blame(cta, site.thread, origin),
                }
            }
        }
    }
}
