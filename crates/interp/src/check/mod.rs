//! Checking mode: finds faults of a kernel while it runs.
//!
//! - **Stray accesses** are reported by the engine, which never performs one.
//! - **Uninitialised reads**: a load of global or shared memory is a fault if none of the bytes it reads has
//!   been written. A register, or a load of local memory, is a fault if its value matters: if it decides a
//!   branch or an address, takes part in an atomic, or leaves the thread through global or shared memory
//!   ([`value`] tracks it). Copies alone are not faults: structs have padding, and compilers copy it.
//! - **Races**: two accesses to the same bytes by different threads, at least one a write, not both strong
//!   (atomic, volatile, relaxed or stronger, in a common scope), neither ordered before the other by
//!   barriers, warp barriers, fences with strong accesses, release and acquire, or mbarriers and barriers of
//!   clusters (manual: "Memory Consistency Model"). Real programs rely on two more rules. A barrier of the
//!   block also completes the acquire of a strong read before it. Writes that its threads fenced before the
//!   barrier are released by a strong write of any of them after it. [`history`] defines which accesses are
//!   recorded, [`lanes`] what lanes of one warp may rely on.
//! - **Mbarriers** used while not alive, or against their rules; their memory accessed by other instructions.
//! - **Non-coherent reads**: loads and texture fetches through caches that do not see writes of the launch.
//! - **Barriers**: an aligned barrier that threads of the block reach at different instructions or, on
//!   request, that some have left out by ending.
//! - **Instructions of the warp** that read from inactive lanes, or whose mask names exited lanes.
//! - **Leaks** of the device heap.
//!
//! Findings are kept once per place, with a count, and reported with causes before their consequences
//! ([`order`]).

mod blocks;
#[doc(hidden)]
pub mod clock;
mod copies;
#[doc(hidden)]
pub mod defined;
mod finding;
#[doc(hidden)]
pub mod history;
mod lanes;
mod meetings;
#[doc(hidden)]
pub mod order;
mod origins;
mod races;
#[doc(hidden)]
pub mod shadow;
mod undefined;
mod unwritten;
mod unwritten_reads;
#[doc(hidden)]
pub mod value;

pub(crate) use defined::DeviceBytes;
pub use finding::{Finding, FindingKind, Location};
pub(crate) use order::Rank;

use crate::cta::{CodeSite, Cta};
use crate::exec::lane_names;
use crate::names::Names;
use crate::op::{Handler, Machine};
use crate::program::Program;
use crate::watch::{Access, ByteMemory, Kind, Meeting, Order, Scope, Watch};
use blocks::{BlockShadow, Blocks, ThreadShadow};
use broadloom_device::FaultKind;
use broadloom_device::place::SourcePlace;
use broadloom_ptx::{Func, Inst, Lines, Modifier, Module, Opcode, Printer, Space};
use clock::{Clock, PublishedClock, Vector, join_foreign};
use history::{AccessEffect, Record};
use lanes::VolatileLoads;
use meetings::Meetings;
use origins::Origins;
use shadow::{Area, Shadow};
use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use unwritten_reads::UnwrittenReads;
use value::Doubt;

/// Maximum number of findings that are kept; the rest is counted.
const MOST_FINDINGS: usize = 1000;

/// Key of a finding: kind, kernel and instruction, for races also the other party's instruction. Kept once.
type PlaceOfFinding = (FindingKind, String, Func, Inst, Option<(Func, Inst)>);

/// Release by a strong write: its scope, the writing block, and the knowledge of the writing thread.
type Release = (Scope, u32, PublishedClock);

/// Findings, kept over all launches of a device.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) list: Vec<Finding>,
    /// Class of each finding, and the finding that it follows from.
    ranks: Vec<(Rank, Option<usize>)>,
    places: HashMap<PlaceOfFinding, usize>,
    /// Findings of the running launch that another one explains, to be removed at its end.
    explained: HashMap<usize, usize>,
    /// Allocation sites of heap memory that is not freed.
    pub(crate) heap: HashMap<u64, Finding>,
}

/// Instruction of a thread that a finding is about.
#[derive(Clone, Copy, Debug)]
struct BlamedInst {
    func: Func,
    inst: Inst,
    thread: usize,
}

impl BlamedInst {
    fn of(site: CodeSite<'_>) -> BlamedInst {
        BlamedInst { func: site.func, inst: site.op.inst, thread: site.thread }
    }
}

/// Watcher of one launch.
pub(crate) struct Checker<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: Func,
    pub(crate) block_size: [u32; 3],
    pub(crate) grid_size: [u32; 3],
    pub(crate) findings: &'a mut Findings,
    pub(crate) defined: &'a mut DeviceBytes,
    /// True if a barrier that threads of the block have left out by ending is a finding.
    strict_barriers: bool,
    blocks: Blocks,
    shadow: Shadow,
    /// Releases of strong writes, by address.
    released: HashMap<(Area, u64), Vec<Release>>,
    unwritten: UnwrittenReads,
    /// Knowledge at mbarriers and cluster barriers.
    meetings: Meetings,
    /// Undefined bits of the registers that the running instruction writes, in order; unlisted registers are
    /// defined.
    results: VecDeque<Doubt>,
    origins: Origins,
    /// Finding about each origin that was reported for a thread.
    said: HashMap<u32, usize>,
    /// Origin that decides the behaviour of the running instruction.
    decider: Option<u32>,
    /// Names of memory.
    names: Names,
    /// Line table of the high-level source, built when a finding needs it.
    lines: OnceCell<Lines<'a>>,
    volatile_loads: VolatileLoads,
    /// True if a lane has read from an inactive one in the running warp instruction.
    reads_absent: bool,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(
        program: &'a Program,
        kernel: Func,
        grid_size: [u32; 3],
        block_size: [u32; 3],
        findings: &'a mut Findings,
        defined: &'a mut DeviceBytes,
        strict_barriers: bool,
    ) -> Self {
        Checker {
            program,
            kernel,
            block_size,
            grid_size,
            findings,
            defined,
            strict_barriers,
            blocks: Blocks::default(),
            shadow: Shadow::default(),
            released: HashMap::new(),
            unwritten: UnwrittenReads::default(),
            meetings: Meetings::default(),
            results: VecDeque::new(),
            origins: Origins::default(),
            said: HashMap::new(),
            decider: None,
            names: Names::default(),
            lines: OnceCell::new(),
            volatile_loads: VolatileLoads::default(),
            reads_absent: false,
        }
    }

    fn location(&self, func: Func, inst: Inst, block: [u32; 3], thread: [u32; 3]) -> Location {
        let program = self.program;
        let module: &Module = &program.module;
        let function = &module.functions[func];
        let data = &function.insts[inst];
        let lines = self.lines.get_or_init(|| Lines::of(module));
        let source = data.loc.and_then(|loc| SourcePlace::of(lines, function, loc));
        Location {
            function: function.name.clone(),
            block,
            thread,
            instruction: Printer::new(module).instruction(function, inst),
            span: data.span,
            source,
        }
    }

    fn report(
        &mut self,
        cta: &Cta,
        site: CodeSite<'_>,
        kind: FindingKind,
        address: Option<u64>,
        message: String,
        other: Option<&Record>,
    ) {
        self.report_at(cta, BlamedInst::of(site), kind, address, message, other);
    }

    /// Records a finding about an earlier instruction. Returns the index of the finding.
    fn report_at(
        &mut self,
        cta: &Cta,
        BlamedInst { func, inst, thread }: BlamedInst,
        kind: FindingKind,
        address: Option<u64>,
        message: String,
        other: Option<&Record>,
    ) -> Option<usize> {
        let kernel = self.program.module.functions[self.kernel].name.clone();
        let key = (kind, kernel.clone(), func, inst, other.map(|record| (record.func, record.inst)));
        if let Some(&index) = self.findings.places.get(&key) {
            self.findings.list[index].count += 1;
            return Some(index);
        }
        // The same race seen from its other side is the same race.
        if let Some(record) = other {
            let turned = (kind, kernel.clone(), record.func, record.inst, Some((func, inst)));
            if let Some(&index) = self.findings.places.get(&turned) {
                self.findings.list[index].count += 1;
                return Some(index);
            }
        }
        if self.findings.list.len() >= MOST_FINDINGS {
            return None;
        }
        let location = self.location(func, inst, cta.id, cta.threads[thread].id);
        let other = other.map(|record| {
            self.location(record.func, record.inst, self.block_index(record.block), self.thread_index(record.thread))
        });
        let index = self.findings.list.len();
        self.findings.places.insert(key, index);
        let effects = self.program.module.functions[func].insts[inst].effects();
        let rank = Rank::of(kind, effects.writes_memory());
        let cause = self.decider.and_then(|origin| self.said.get(&origin)).copied();
        let finding = Finding { kind, kernel, message, location: Some(location), other, address, count: 1 };
        self.findings.add(finding, rank, cause);
        Some(index)
    }

    /// Names the first byte of an access, if it has a name: `` at byte 12 of `tile` ``.
    fn at(&self, access: Access) -> String {
        let name = match access.home {
            ByteMemory::Device(serial) => self.names.in_allocation(serial, access.offset),
            ByteMemory::Shared | ByteMemory::Peer(_) => self.names.in_shared(access.offset),
            ByteMemory::Local | ByteMemory::Param => None,
        };
        name.map(|name| format!(" at {name}")).unwrap_or_default()
    }

    fn block_index(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.grid_size;
        [number % x, number / x % y, number / x / y]
    }

    fn thread_index(&self, number: u16) -> [u32; 3] {
        let ([x, y, _], number) = (self.block_size, u32::from(number));
        [number % x, number / x % y, number / x / y]
    }

    fn block(&mut self, cta: &Cta) -> &mut BlockShadow {
        self.blocks.of(cta.number)
    }

    fn thread(&mut self, cta: &Cta, index: usize) -> &mut ThreadShadow {
        &mut self.block(cta).threads[index]
    }

    /// Returns whether an access happened before the current action of a thread.
    fn ordered(&mut self, cta: &Cta, index: usize, record: &Record) -> bool {
        let block = cta.number as u32;
        if record.block == block && usize::from(record.thread) == index {
            return true;
        }
        let clock = &self.thread(cta, index).clock;
        let known = if record.block == block { clock.of(record.thread) } else { clock.of_foreign(record.block, record.thread) };
        known >= record.time
    }

    /// Returns whether an instruction uses an mbarrier that an earlier one has initialised.
    fn is_use_of_mbarrier(&self, site: CodeSite<'_>, earlier: &Record) -> bool {
        let opcode = self.program.module.functions[earlier.func].insts[earlier.inst].opcode();
        let uses = matches!(site.op.handler, Handler::Machine(Machine::Mbarrier(_))) && site.op.opcode != Opcode::MbarrierInit;
        uses && opcode == Some(Opcode::MbarrierInit)
    }

    /// Applies the releases and acquires of strong accesses.
    fn synchronise(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        let order = if access.kind == Kind::Atomic && access.order == Order::Weak { Order::Relaxed } else { access.order };
        let block = cta.number as u32;
        let Some(area) = Area::of(access.home, block) else { return };
        if order == Order::Weak {
            return;
        }
        let (index, threads) = (site.thread, cta.threads.len());
        let key = (area, access.offset);
        if access.kind != Kind::Write
            && let Some(left) = self.released.get(&key).cloned()
        {
            let seen =
                left.iter().filter(|(scope, from, _)| *from == block || (*scope > Scope::Cta && access.scope > Scope::Cta));
            let thread = self.thread(cta, index);
            for (_, _, known) in seen {
                match order {
                    Order::Acquire | Order::AcquireRelease => thread.clock.acquire(block, known),
                    Order::Relaxed | Order::Release | Order::Weak => match &mut thread.pending {
                        Some(pending) => pending.merge(known),
                        None => thread.pending = Some(known.clone()),
                    },
                }
            }
        }
        if access.kind == Kind::Read {
            return;
        }
        let thread = self.thread(cta, index);
        let leaves = match order {
            Order::Release | Order::AcquireRelease => {
                let known = thread.clock.publish(block, threads, index as u16, thread.time);
                thread.time += 1;
                Some((known, access.scope))
            }
            Order::Relaxed | Order::Acquire | Order::Weak => {
                thread.fenced.clone().map(|(known, scope)| (known, scope.min(access.scope)))
            }
        };
        if let Some((known, scope)) = leaves {
            let left = self.released.entry(key).or_default();
            let same = left.iter_mut().find(|(other, from, _)| *other == scope && (scope > Scope::Cta || *from == block));
            match same {
                Some((_, _, before)) => before.merge(&known),
                None => left.push((scope, block, known)),
            }
        }
    }
}

/// Records that lanes meet at a warp instruction, which does not order memory. From here on, each knows that
/// the earlier actions of the others are done.
fn meet(all: &mut [ThreadShadow], lanes: &[usize]) {
    let mut met = vec![0; 32];
    for &index in lanes {
        for (place, known) in met.iter_mut().zip(&all[index].met) {
            *place = (*place).max(*known);
        }
        met[index % 32] = met[index % 32].max(all[index].time);
    }
    for &index in lanes {
        all[index].met.clone_from(&met);
        all[index].time += 1;
    }
}

impl Watch for Checker<'_> {
    const ON: bool = true;

    fn define(&mut self, serial: u64, bytes: u64) {
        self.defined.of(serial).set(0, bytes, true);
    }

    fn named(&mut self, names: &Names) {
        self.names = names.clone();
    }

    fn start(&mut self, cta: &Cta) {
        let threads = cta.threads.iter().map(|_| ThreadShadow { time: 1, ..ThreadShadow::default() }).collect();
        self.blocks.insert(cta.number, BlockShadow { threads, ..BlockShadow::default() });
    }

    fn end(&mut self, cta: &Cta) {
        self.blocks.remove(cta.number);
        self.shadow.forget(cta.number as u32, cta.shared.len() as u64);
        self.meetings.end(cta.number);
    }

    fn instruction(&mut self) {
        self.results.clear();
        self.decider = None;
    }

    fn access(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        self.check_mbarriers(cta, site, access);
        self.check_copies(cta, site, access);
        self.check_defined(cta, site, access);
        self.check_race(cta, site, access);
        self.synchronise(cta, site, access);
    }

    fn read_register(&mut self, cta: &Cta, site: CodeSite<'_>, slot: usize) {
        let doubt = self.thread(cta, site.thread).registers.get(slot).copied().unwrap_or_default();
        if !doubt.none() {
            self.read_undefined(cta, site, slot, doubt);
        }
    }

    fn write_register(&mut self, cta: &Cta, thread: usize, slot: usize) {
        let doubt = self.results.pop_front().unwrap_or_default();
        if let Some(place) = self.thread(cta, thread).registers.get_mut(slot) {
            *place = doubt;
        }
    }

    fn fresh_registers(&mut self, cta: &Cta, thread: usize, from: usize, count: usize) {
        let registers = &mut self.thread(cta, thread).registers;
        registers.truncate(from);
        registers.resize(from + count, Doubt::UNWRITTEN);
    }

    fn fresh_local(&mut self, cta: &Cta, thread: usize, from: u64, bytes: u64) {
        self.set_local(cta, thread, from, bytes, false);
    }

    fn define_local(&mut self, cta: &Cta, thread: usize, from: u64, bytes: u64) {
        self.set_local(cta, thread, from, bytes, true);
    }

    fn malloc(&mut self, cta: &Cta, site: CodeSite<'_>, serial: u64, bytes: u64) {
        let location = self.location(site.func, site.op.inst, cta.id, cta.threads[site.thread].id);
        let finding = Finding {
            kind: FindingKind::Leak,
            kernel: self.program.module.functions[self.kernel].name.clone(),
            message: format!("{bytes} bytes from malloc are never freed"),
            location: Some(location),
            other: None,
            address: None,
            count: 1,
        };
        self.findings.heap.insert(serial, finding);
        self.names.add_heap(serial, bytes);
    }

    fn free(&mut self, _cta: &Cta, _site: CodeSite<'_>, serial: u64) {
        self.findings.heap.remove(&serial);
        self.defined.forget(serial);
    }

    fn barrier(&mut self, cta: &Cta, number: u8, waiting: &[u32], arrived: &[u32]) {
        self.check_barrier(cta, number, waiting, arrived);
        let block = cta.number;
        let Some(shadow) = self.blocks.get_mut(block) else { return };
        let all: Vec<usize> = waiting.iter().chain(arrived).map(|index| *index as usize).collect();
        for &index in &all {
            let thread = &mut shadow.threads[index];
            if let Some(pending) = thread.pending.take() {
                thread.clock.acquire(block as u32, &pending);
            }
        }
        let mut fenced: Option<PublishedClock> = None;
        for (known, _) in
            all.iter().filter_map(|index| shadow.threads[*index].fenced.as_ref()).filter(|(_, scope)| *scope > Scope::Cta)
        {
            match &mut fenced {
                Some(sum) => sum.merge(known),
                None => fenced = Some(known.clone()),
            }
        }
        if let Some(known) = fenced {
            for &index in &all {
                shadow.threads[index].fenced = Some((known.clone(), Scope::Gpu));
            }
        }
        let foreign = join_foreign(all.iter().map(|index| &shadow.threads[*index].clock));
        if arrived.is_empty() && waiting.len() as u32 == cta.alive {
            let times: Vec<u32> = (0..shadow.threads.len())
                .map(|index| match all.contains(&index) {
                    true => shadow.threads[index].time,
                    // An exited thread: the knowledge of the threads at the barrier about it.
                    false => all.iter().map(|other| shadow.threads[*other].clock.of(index as u16)).max().unwrap_or(0),
                })
                .collect();
            let base = Arc::new(Vector::new(times));
            for &index in &all {
                shadow.threads[index].clock.rebase(&base, &foreign);
                shadow.threads[index].time += 1;
            }
            return;
        }
        let mut sum = Clock::default();
        for &index in &all {
            let known =
                shadow.threads[index].clock.publish(block as u32, shadow.threads.len(), index as u16, shadow.threads[index].time);
            sum.acquire(block as u32, &known);
        }
        let known = sum.publish(block as u32, shadow.threads.len(), all[0] as u16, 0);
        for index in waiting {
            shadow.threads[*index as usize].clock.acquire(block as u32, &known);
        }
        for &index in &all {
            shadow.threads[index].time += 1;
        }
    }

    fn warp(&mut self, cta: &Cta, site: CodeSite<'_>, threads: &[usize], _mask: u32) {
        let block = cta.number;
        self.reads_absent = false;
        let Some(shadow) = self.blocks.get_mut(block) else { return };
        // `activemask` does not synchronise lanes.
        if shadow.is_volatile && site.op.opcode != Opcode::Activemask {
            meet(&mut shadow.threads, threads);
        }
        // Only the barrier orders memory; shuffles and votes exchange registers.
        if site.op.opcode != Opcode::BarWarpSync {
            return;
        }
        let mut sum = Clock::default();
        for &index in threads {
            let thread = &mut shadow.threads[index];
            if let Some(pending) = thread.pending.take() {
                thread.clock.acquire(block as u32, &pending);
            }
            let known = thread.clock.publish(block as u32, cta.threads.len(), index as u16, thread.time);
            sum.acquire(block as u32, &known);
        }
        let known = sum.publish(block as u32, cta.threads.len(), threads[0] as u16, 0);
        for &index in threads {
            shadow.threads[index].clock.acquire(block as u32, &known);
            shadow.threads[index].time += 1;
        }
    }

    fn inactive_lane(&mut self, cta: &Cta, site: CodeSite<'_>, lane: u32) {
        let message =
            format!("lane {} reads a value from lane {lane}, which does not take part in the shuffle", site.thread % 32);
        self.reads_absent = true;
        self.report(cta, site, FindingKind::InactiveLane, None, message, None);
    }

    fn absent_lanes(&mut self, cta: &Cta, site: CodeSite<'_>, mask: u32, absent: u32) {
        // A warp barrier is for all lanes that have not exited, and has no result that could be wrong.
        if site.op.opcode == Opcode::BarWarpSync {
            return;
        }
        // A lane that reads from one of them has been reported.
        if self.reads_absent {
            return;
        }
        let lanes = lane_names(absent);
        let ended = if absent.is_power_of_two() { "has ended and never comes" } else { "have ended and never come" };
        let message = format!("the mask {mask:#010x} names {lanes}, which {ended} to this instruction");
        self.report(cta, site, FindingKind::InactiveLane, None, message, None);
    }

    fn fence(&mut self, cta: &Cta, site: CodeSite<'_>, scope: Scope) {
        let (block, threads, index) = (cta.number as u32, cta.threads.len(), site.thread);
        let thread = self.thread(cta, index);
        if let Some(pending) = thread.pending.take() {
            thread.clock.acquire(block, &pending);
        }
        thread.fenced = Some((thread.clock.publish(block, threads, index as u16, thread.time), scope));
        thread.time += 1;
    }

    fn arrive_at(&mut self, cta: &Cta, index: usize, meeting: Meeting) {
        let (block, threads) = (cta.number as u32, cta.threads.len());
        let thread = self.thread(cta, index);
        let known = thread.clock.publish(block, threads, index as u16, thread.time);
        thread.time += 1;
        self.meetings.arrive(meeting, known);
    }

    fn complete(&mut self, meeting: Meeting) {
        self.meetings.complete(meeting);
    }

    fn learn_from(&mut self, cta: &Cta, index: usize, meeting: Meeting) {
        if let Some(known) = self.meetings.known(meeting).cloned() {
            self.thread(cta, index).clock.acquire(cta.number as u32, &known);
        }
    }

    fn renew(&mut self, cta: &Cta, site: CodeSite<'_>, meeting: Meeting) {
        let time = self.thread(cta, site.thread).time;
        let (block, thread) = (cta.number as u32, site.thread as u16);
        let record = Record { block, thread, time, func: site.func, inst: site.op.inst, manner: AccessEffect::PLAIN_WRITE };
        self.meetings.renew(meeting, record, site.op.opcode != Opcode::MbarrierInval);
    }

    fn visit(&mut self, cta: &Cta, site: CodeSite<'_>, meeting: Meeting) {
        let Some(made) = self.meetings.made(meeting) else { return };
        if !self.ordered(cta, site.thread, &made) {
            let message =
                "a race at an mbarrier: one thread uses what another initialises, with nothing to order them".to_owned();
            self.report(cta, site, FindingKind::Race, None, message, Some(&made));
        }
    }

    fn copy(&mut self, cta: &Cta, site: CodeSite<'_>, offset: u64, bytes: u64) {
        let issued = Record {
            block: cta.number as u32,
            thread: site.thread as u16,
            time: self.thread(cta, site.thread).time,
            func: site.func,
            inst: site.op.inst,
            manner: AccessEffect::PLAIN_WRITE,
        };
        self.block(cta).copies.add(site.thread, offset, bytes, issued);
    }

    fn commit_copies(&mut self, cta: &Cta, thread: usize) {
        self.block(cta).copies.commit(thread);
    }

    fn wait_for_copies(&mut self, cta: &Cta, thread: usize, left: Option<u64>) {
        self.block(cta).copies.wait(thread, left);
    }

    fn fault(&mut self, cta: &Cta, site: CodeSite<'_>, kind: FaultKind, _space: Space, address: Option<u64>, message: &str) {
        self.report(cta, site, kind.into(), address, message.to_owned(), None);
    }
}

impl Checker<'_> {
    /// Checks an aligned barrier: every thread of the block (or the given number, in whole warps) must be at
    /// the same instruction.
    fn check_barrier(&mut self, cta: &Cta, number: u8, waiting: &[u32], arrived: &[u32]) {
        let program = self.program;
        let place = |index: u32| cta.threads[index as usize].frames.last().map(|frame| (frame.func, frame.pc));
        let Some(&first) = waiting.first() else { return };
        let Some((func, pc)) = place(first) else { return };
        let op = &program.routine(func).ops[pc];
        let site = CodeSite { func, op, thread: first as usize };
        let aligned = op.opcode == Opcode::Bar || op.has(Modifier::Aligned);
        if !aligned {
            return;
        }
        let counted = op.reads.len() > if op.has(Modifier::Red) { 2 } else { 1 };
        if !counted {
            if let Some(&other) = waiting.iter().find(|index| place(**index) != Some((func, pc)))
                && let Some((other_func, other_pc)) = place(other)
            {
                let record = self.record_at(cta, other, other_func, other_pc);
                let message = format!("threads of one block wait at different instructions for barrier {number}");
                self.report(cta, site, FindingKind::DivergentBarrier, None, message, Some(&record));
                return;
            }
            // Since Volta, hardware waits only for threads that have not ended.
            let missing = cta.threads.len() - waiting.len() - arrived.len();
            if missing > 0 && self.strict_barriers {
                let message = format!(
                    "{missing} of {} threads of the block have ended and never come to barrier {number}",
                    cta.threads.len()
                );
                self.report(cta, site, FindingKind::DivergentBarrier, None, message, None);
            }
            return;
        }
        // With a count, whole warps arrive together.
        for warp in 0..cta.warps() {
            let here: Vec<u32> = cta.lanes(warp).map(|index| index as u32).filter(|index| waiting.contains(index)).collect();
            let Some(&lane) = here.first() else { continue };
            let apart = here.iter().find(|index| place(**index) != place(lane));
            if here.len() < cta.lanes(warp).len() || apart.is_some() {
                let message = format!("only a part of a warp comes to barrier {number}, which is for whole warps");
                self.report(cta, site, FindingKind::DivergentBarrier, None, message, None);
                return;
            }
        }
    }

    /// Checks accesses to shared memory that a pending copy may still change.
    fn check_copies(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        if access.home != ByteMemory::Shared {
            return;
        }
        let Some(issued) = self.block(cta).copies.at(access.offset, access.bytes) else { return };
        let does = if access.kind == Kind::Read { "read" } else { "written" };
        let message = format!("shared memory{} is {does} while an asynchronous copy into it is not waited for", self.at(access));
        self.report(cta, site, FindingKind::Race, None, message, Some(&issued));
    }

    /// Checks accesses to the memory of a live mbarrier, which belongs to its own instructions.
    fn check_mbarriers(&mut self, cta: &Cta, site: CodeSite<'_>, access: Access) {
        let block = match access.home {
            ByteMemory::Shared => cta.number,
            ByteMemory::Peer(number) => number,
            ByteMemory::Device(_) | ByteMemory::Local | ByteMemory::Param => return,
        };
        let own = matches!(site.op.handler, Handler::Machine(Machine::Mbarrier(_) | Machine::StoreAsync | Machine::ReduceAsync));
        if own || !self.meetings.touches_mbarrier(block, access.offset, access.bytes) {
            return;
        }
        let does = if access.kind == Kind::Read { "read" } else { "written" };
        let message = format!("memory of an mbarrier is {does} by an instruction that is none of its own");
        self.report(cta, site, FindingKind::BadBarrier, None, message, None);
    }

    fn record_at(&self, cta: &Cta, thread: u32, func: Func, pc: usize) -> Record {
        let op = &self.program.routine(func).ops[pc];
        let block = cta.number as u32;
        Record { block, thread: thread as u16, time: 0, func, inst: op.inst, manner: AccessEffect::PLAIN_READ }
    }
}
