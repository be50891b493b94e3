//! Execution of blocks: calls of generated code on separate stacks, in turns.
//!
//! A *strand* is one call: a whole block, a warp or a thread, depending on [`Kind`]. A block runs until all
//! of its strands have ended ([`TurnOutcome::Ended`]), until all runnable strands have yielded ([`TurnOutcome::Paused`]),
//! or until an error occurs. A waiting strand switches to the next one of its block, or to the scheduler.
//!
//! The blocks of a cluster are one [`Block`] here: their strands follow each other, ordered by rank.
//!
//! **Everything of a block happens on one thread. No reference to a block is held where a switch can happen:
//! strands, services and the scheduler access the block through a raw pointer, one of them at a time.**

mod failure;
mod gather;
mod windows;

use crate::abi::{AdmittedRange, Bounds, Exchange, ExchangeOperands, Kind, Services, Warp};
use crate::barrier::Barriers;
use crate::cluster;
use crate::compile::Checks;
use crate::exchange::{self, LaneInput};
use crate::faults::{CaughtEvent, Gate};
use crate::fiber::{Context, Stack, switch};
use crate::grid::{Failure, Grid};
use crate::map::{Mapping, Pages};
use crate::memory::Foreign;
use crate::memory::Memory;
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::ptr::null_mut;
use std::time::{Duration, Instant};
use windows::Windows;

/// Bytes of stack for the frames of services, besides those of the lanes.
const STACK_BASE: usize = 128 << 10;
/// Bytes of stack that a service may need.
const SERVICE_STACK: usize = 64 << 10;
/// Stack of the only strand of a block. Pages that are not used take no memory.
const SINGLE_STACK: usize = 1 << 20;
/// Bytes of local memory of a lane above which it is assumed to be mostly unused.
const SPARSE: usize = 64 << 10;
/// Number of exchanges between lanes of a warp before other warps get a turn.
const MEETINGS: u32 = 1024;
/// Turns in a row, and time, in which all strands only poll mbarriers: after that, a deadlock is reported.
const IDLE_TURNS: u32 = 1 << 12;
const IDLE_TIME: Duration = Duration::from_millis(100);

/// Receiver of the output of kernels.
pub type Output = std::sync::Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Condition that a strand waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: the strand can run.
    Nothing,
    /// A barrier of the block.
    Barrier(u8),
    /// The barrier for all threads, with only whole warps and no exited thread: see [`Block::gathered`].
    All,
    /// The other lanes of a mask.
    Lanes(u32),
    /// Any lanes that reach the same instruction.
    Convergence,
    /// The barrier of the cluster.
    Cluster,
    /// The strand has ended.
    Ended,
}

/// One call of generated code.
#[derive(Debug)]
pub(crate) struct Strand {
    /// State that the code sees.
    pub(crate) warp: Warp,
    pub(crate) block: *mut Block,
    pub(crate) number: u32,
    /// Lowest address of its stack at which services may still be called.
    pub(crate) floor: usize,
    stack: Stack,
    context: Context,
    pub(crate) wait: Wait,
    /// True if it has yielded in this round.
    paused: bool,
    /// True if it yields because an mbarrier's phase is not complete.
    pub(crate) asks: bool,
    /// Phase of the cluster barrier at which some lanes arrived without waiting since, and their mask.
    pub(crate) arrived: Option<(u64, u32)>,
    /// Lanes whose exit has been counted.
    pub(crate) counted: u32,
    /// Result of a barrier: threads with a true predicate, and all threads.
    pub(crate) reduced: (u32, u32),
    /// Exchange that it takes part in.
    exchanges: Option<Exchange>,
    exchanged: *mut ExchangeOperands,
    /// Hash of the calls by which it reached the exchange.
    calls: u64,
}

/// State that workers share with the code that they run.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) memory: std::sync::Arc<Memory>,
    /// Memory beyond the device's own that kernels may access.
    pub(crate) foreign: Option<Foreign>,
    /// Check of addresses before accesses.
    pub(crate) checks: Checks,
    pub(crate) output: OutputSink,
    pub(crate) services: Services,
}

/// [`Output`] with a `Debug` implementation.
pub(crate) struct OutputSink(pub(crate) Output);

impl std::fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutputSink")
    }
}

/// Block of a cluster, usually the only one.
#[derive(Debug)]
pub(crate) struct Cta {
    pub(crate) ctaid: [u32; 3],
    pub(crate) barriers: Barriers,
    /// Number of threads that have not exited.
    pub(crate) alive: u32,
    /// Shared memory of the block.
    pub(crate) shared: *mut u8,
}

/// Running block with the others of its cluster, or memory for one.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) gate: *const Gate,
    pub(crate) surroundings: *const Surroundings,
    pub(crate) grid: *const Grid,
    /// Execution mode of its code.
    pub(crate) kind: Kind,
    /// Blocks of the cluster, by rank.
    pub(crate) ctas: Vec<Cta>,
    /// Number of strands of each block.
    each: usize,
    pub(crate) strands: Vec<Box<Strand>>,
    /// Number of strands that belong to the grid. The others are kept for larger grids.
    pub(crate) count: usize,
    /// Number of following blocks that the same strand runs, one call after the other.
    following: u64,
    shared: Option<Mapping>,
    /// Shared memory of the blocks of a cluster.
    windows: Option<Windows>,
    local: Option<Mapping>,
    /// Memory that was last admitted, by site: see [`AdmittedRange`].
    pub(crate) admitted: Vec<AdmittedRange>,
    pub(crate) cluster: cluster::ClusterBarrier,
    /// Number of strands that wait at barrier 0 for all threads of the only block, which most kernels do.
    /// Whole warps are only counted while no thread has exited. Other events make them ordinary arrivals.
    pub(crate) gathered: usize,
    ended: usize,
    /// Strand that runs, or ran last.
    pub(crate) current: usize,
    /// True if control came back because a strand yielded.
    yielded: bool,
    /// Number of actions of strands other than polling mbarriers in vain.
    pub(crate) events: u64,
    idle: IdleTurns,
    /// Error reported by a service.
    pub(crate) failure: Option<Failure>,
}

/// Turns of a block without progress.
#[derive(Clone, Copy, Debug)]
struct IdleTurns {
    turns: u32,
    /// Value of `events` before the last one.
    events: u64,
    since: Instant,
}

/// State of a block after its turn.
#[derive(Debug)]
pub(crate) enum TurnOutcome {
    Ended,
    Paused,
    Failed(Failure),
    /// The launch has been stopped.
    Stopped,
}

impl Block {
    /// Creates memory for blocks of a worker.
    pub(crate) fn new(gate: &Gate, surroundings: &Surroundings) -> Box<Block> {
        Box::new(Block {
            gate,
            surroundings,
            grid: std::ptr::null(),
            kind: Kind::Block,
            ctas: vec![],
            each: 1,
            strands: vec![],
            count: 0,
            following: 0,
            shared: None,
            windows: None,
            local: None,
            admitted: vec![],
            cluster: cluster::ClusterBarrier::default(),
            gathered: 0,
            ended: 0,
            current: 0,
            yielded: false,
            events: 0,
            idle: IdleTurns { turns: 0, events: 0, since: Instant::now() },
            failure: None,
        })
    }

    /// Resizes the memory for the blocks of a grid. The grid must live until the last turn of the last block.
    pub(crate) fn fit(&mut self, grid: &Grid) -> io::Result<()> {
        let (each, lanes) = (grid.strands(), grid.lanes());
        let blocks = grid.cluster.blocks() as usize;
        let count = each.saturating_mul(blocks);
        let base = if each == 1 { SINGLE_STACK } else { STACK_BASE };
        let stack_bytes = grid.stack_bytes.saturating_mul(lanes as usize).saturating_add(base);
        let local_bytes = usize::try_from(grid.ready.code.local_bytes).unwrap_or(usize::MAX);
        let kept_bytes = usize::try_from(grid.ready.code.kept_bytes).unwrap_or(usize::MAX);
        let local_each = local_bytes
            .saturating_mul(lanes as usize)
            .checked_next_multiple_of(64)
            .and_then(|bytes| bytes.checked_add(kept_bytes)?.checked_next_multiple_of(64))
            .ok_or(io::ErrorKind::OutOfMemory)?;
        self.ctas.truncate(blocks);
        while self.ctas.len() < blocks {
            self.ctas.push(Cta { ctaid: [0; 3], barriers: Barriers::default(), alive: 0, shared: null_mut() });
        }
        if blocks == 1 {
            self.ctas[0].shared = room(&mut self.shared, grid.shared_bytes as usize, Pages::Private)?;
        } else {
            let windows = match self.windows.take() {
                Some(windows) => windows,
                None => Windows::new()?,
            };
            let windows = self.windows.insert(windows);
            windows.fit(blocks, grid.shared_bytes as usize)?;
            self.ctas.iter_mut().enumerate().for_each(|(rank, cta)| cta.shared = windows.start(rank));
        }
        // A thread uses little of a large window: huge pages would take more memory than all threads need.
        let pages = if local_bytes > SPARSE { Pages::Sparse } else { Pages::Private };
        let local = room(&mut self.local, local_each.saturating_mul(count), pages)?;
        let block = std::ptr::from_mut(self);
        // Kernels run thread by thread have many small stacks, vectorised ones a few large ones before them.
        for (number, strand) in (0..).zip(self.strands.iter_mut().take(count)) {
            if strand.stack.bytes() < stack_bytes {
                **strand = Strand::new(block, number, Stack::new(stack_bytes)?);
            }
        }
        while self.strands.len() < count {
            let stack = Stack::new(stack_bytes)?;
            self.strands.push(Box::new(Strand::new(block, self.strands.len() as u32, stack)));
        }
        (self.grid, self.kind) = (grid, grid.ready.code.kind);
        (self.count, self.each) = (count, each);
        // Buffers come and go between launches.
        self.admitted.clear();
        self.admitted.resize(grid.ready.code.sites.len(), AdmittedRange::default());
        let admitted = self.admitted.as_mut_ptr();
        let bounds = Bounds::of_arena();
        // SAFETY: the surroundings outlive the worker, which owns this block.
        let services = unsafe { &raw const (*self.surroundings).services };
        for (index, strand) in self.strands[..count].iter_mut().enumerate() {
            let owner = std::ptr::from_mut::<Strand>(strand).cast::<c_void>();
            strand.warp = Warp {
                services,
                params: grid.params.as_ptr().cast(),
                shared: self.ctas[index / each].shared,
                local: match grid.ready.code.kind {
                    // Address inside the mapping, which has space for all strands.
                    Kind::Block | Kind::Warps => local.wrapping_add(index * local_each),
                    Kind::Threads => (strand.stack.top() - strand.stack.bytes()) as *mut u8,
                },
                local_bytes: match grid.ready.code.kind {
                    Kind::Block | Kind::Warps => local_each as u64,
                    Kind::Threads => strand.stack.bytes() as u64,
                },
                variables: grid.variables.as_ptr(),
                owner,
                workspace: grid.workspace_address(),
                ctaid: [0; 3],
                nctaid: grid.grid,
                first: (index % each) as u32 * lanes,
                dynamic_shared_bytes: grid.dynamic_shared_bytes,
                dynamic_shared_offset: grid.dynamic_shared_offset,
                grid: grid.number,
                exited: 0,
                streams: u32::from(grid.streams()),
                admitted,
                bounds,
            };
        }
        Ok(())
    }

    /// Resets all strands to the first instruction of a block, or of the blocks of a cluster, given by
    /// number. If [`Grid::runs_in_rows`] is true, one strand runs several blocks, one after the other.
    ///
    /// # Safety
    ///
    /// `fit` was called, for a grid that is alive; the block before has ended or is abandoned.
    pub(crate) unsafe fn start(&mut self, numbers: Range<u64>) -> io::Result<()> {
        // SAFETY: the grid is alive, as the caller promises.
        let grid = unsafe { &*self.grid };
        let number = numbers.start;
        self.following = numbers.end.saturating_sub(number + 1);
        debug_assert!(self.following == 0 || grid.runs_in_rows());
        (self.ended, self.current, self.failure, self.gathered) = (0, 0, None, 0);
        (self.events, self.idle.turns) = (0, 0);
        self.cluster = cluster::ClusterBarrier::new(grid.threads.saturating_mul(self.ctas.len() as u32));
        if let Some(windows) = &mut self.windows {
            windows.open()?;
        }
        for (rank, cta) in (0..).zip(&mut self.ctas) {
            cta.ctaid = grid.cluster.ctaid(grid.grid, number, rank);
            cta.alive = grid.threads;
            cta.barriers.reset();
            if grid.shared_bytes > 0 {
                // SAFETY: `fit` made the memory at least this large; no strand runs.
                unsafe { std::ptr::write_bytes(cta.shared, 0, grid.shared_bytes as usize) };
            }
        }
        let (lanes, each) = (grid.lanes(), self.each);
        for (index, strand) in self.strands[..self.count].iter_mut().enumerate() {
            let argument = std::ptr::from_mut::<Strand>(strand).cast();
            strand.context = strand.stack.prepare(run_strand, argument);
            strand.warp.ctaid = self.ctas[index / each].ctaid;
            strand.warp.first = (index % each) as u32 * lanes;
            strand.warp.exited = 0;
            (strand.wait, strand.paused, strand.counted) = (Wait::Nothing, false, 0);
            (strand.asks, strand.arrived) = (false, None);
        }
        Ok(())
    }

    /// Resets a strand to the first instruction of the next block. Returns whether there is one.
    ///
    /// # Safety
    ///
    /// As [`Block::start`].
    #[inline(always)]
    unsafe fn go_on(&mut self) -> bool {
        if self.following == 0 {
            return false;
        }
        self.following -= 1;
        // SAFETY: the grid is alive, as the caller promises.
        let grid = unsafe { &*self.grid };
        let ([cta], [strand, ..]) = (self.ctas.as_mut_slice(), self.strands.as_mut_slice()) else { return false };
        // Kept in registers until the end. Reading two numbers at once right after a store of one would stall
        // the host until all earlier stores of the block are done.
        let [mut x, mut y, mut z] = cta.ctaid;
        x += 1;
        if x == grid.grid[0] {
            (x, y) = (0, y + 1);
            if y == grid.grid[1] {
                (y, z) = (0, z + 1);
            }
        }
        cta.ctaid = [x, y, z];
        if grid.shared_bytes > 0 {
            // SAFETY: `fit` made the memory at least this large.
            unsafe { std::ptr::write_bytes(cta.shared, 0, grid.shared_bytes as usize) };
        }
        (strand.warp.ctaid, strand.warp.exited) = ([x, y, z], 0);
        true
    }

    /// Runs a block until it ends, yields or fails.
    ///
    /// # Safety
    ///
    /// `block` was started, for a grid that is alive; this is the thread of its gate.
    pub(crate) unsafe fn turn(block: *mut Block) -> TurnOutcome {
        // SAFETY: no strand runs.
        let kind = unsafe { (*block).kind };
        let turn = match kind {
            // SAFETY: passed on.
            Kind::Block | Kind::Warps => unsafe { turn_of_warps(block) },
            // SAFETY: passed on.
            Kind::Threads => unsafe { turn_of_threads(block) },
        };
        match turn {
            // SAFETY: no strand runs.
            TurnOutcome::Paused => unsafe { (*block).paused() },
            TurnOutcome::Ended | TurnOutcome::Failed(_) | TurnOutcome::Stopped => turn,
        }
    }

    /// Checks whether the strands that yielded can have anything to wait for.
    fn paused(&mut self) -> TurnOutcome {
        let strands = &self.strands[..self.count];
        let asks = |strand: &Strand| strand.wait != Wait::Nothing || strand.asks;
        if self.idle.events != self.events || !strands.iter().all(|strand| asks(strand)) {
            (self.idle.turns, self.idle.events) = (0, self.events);
            return TurnOutcome::Paused;
        }
        if self.idle.turns == 0 {
            self.idle.since = Instant::now();
        }
        self.idle.turns = self.idle.turns.saturating_add(1);
        if self.idle.turns > IDLE_TURNS && self.idle.since.elapsed() > IDLE_TIME {
            return TurnOutcome::Failed(self.deadlock());
        }
        TurnOutcome::Paused
    }

    /// Returns the rank of the block that a strand belongs to.
    pub(crate) fn rank(&self, index: usize) -> usize {
        index / self.each
    }

    /// Returns the index of the block whose strand runs, or ran last.
    pub(crate) fn ctaid(&self) -> [u32; 3] {
        self.ctas.get(self.rank(self.current)).map_or([0; 3], |cta| cta.ctaid)
    }

    /// Returns the number of warps of all blocks, on the slow path.
    fn warps(&self) -> usize {
        self.ctas.len() * self.each.div_ceil(32)
    }

    /// Returns the warp of a strand, on the slow path.
    fn warp_of(&self, index: usize) -> usize {
        self.rank(index) * self.each.div_ceil(32) + index % self.each / 32
    }

    /// Returns the lane of a strand in its warp, on the slow path.
    pub(crate) fn lane(&self, index: usize) -> usize {
        index % self.each % 32
    }

    /// Returns the numbers of the strands of a warp, on the slow path.
    fn lanes(&self, warp: usize) -> Range<usize> {
        let (rank, warp) = (warp / self.each.div_ceil(32), warp % self.each.div_ceil(32));
        let start = rank * self.each;
        start + warp * 32..start + (warp * 32 + 32).min(self.each)
    }

    /// Counts lanes of a strand that have exited.
    pub(crate) fn count_ended(&mut self, index: usize, lanes: u32) {
        if self.gathered > 0 {
            self.disperse();
        }
        let rank = self.rank(index);
        let strand = &mut self.strands[index];
        let fresh = lanes & !strand.counted;
        strand.counted |= lanes;
        if fresh == 0 {
            return;
        }
        self.events += 1;
        if let Some((phase, lanes)) = strand.arrived
            && phase == self.cluster.phase
        {
            self.cluster.arrived -= (lanes & fresh).count_ones().min(self.cluster.arrived);
        }
        self.leave_cluster(rank, fresh.count_ones());
        self.complete_barriers(rank);
    }

    /// Counts threads of a block that have exited.
    fn leave_cluster(&mut self, rank: usize, threads: u32) {
        let cta = &mut self.ctas[rank];
        let left = threads.min(cta.alive);
        cta.alive -= left;
        self.cluster.alive -= left.min(self.cluster.alive);
        if cta.alive == 0
            && self.cluster.alive > 0
            && let Some(windows) = &mut self.windows
        {
            windows.close(rank);
        }
        self.complete_cluster();
    }

    /// Releases the barrier of the cluster if it is complete.
    pub(crate) fn complete_cluster(&mut self) {
        if self.cluster.complete() {
            for strand in self.strands[..self.count].iter_mut().filter(|strand| strand.wait == Wait::Cluster) {
                (strand.wait, strand.arrived) = (Wait::Nothing, None);
            }
        }
    }

    /// Releases all barriers of a block that are complete.
    pub(crate) fn complete_barriers(&mut self, rank: usize) {
        // SAFETY: the grid is alive while its blocks run.
        let threads = unsafe { (*self.grid).threads };
        let cta = &mut self.ctas[rank];
        for (strands, reduced) in cta.barriers.take_complete(cta.alive, threads) {
            for index in strands {
                let strand = &mut self.strands[index as usize];
                (strand.wait, strand.reduced) = (Wait::Nothing, reduced);
            }
        }
    }

    /// Returns the lanes of a strand that are threads of the block.
    pub(crate) fn lane_mask(&self, index: usize) -> u32 {
        match self.kind {
            Kind::Threads => 1,
            Kind::Block | Kind::Warps => {
                // SAFETY: the grid is alive while its blocks run.
                let threads = unsafe { (*self.grid).threads };
                let lanes = threads.saturating_sub((index % self.each) as u32 * 32).min(32);
                u32::try_from((1u64 << lanes) - 1).unwrap_or(u32::MAX)
            }
        }
    }

    /// Releases the group of a lane that has reached an exchange, if the group is complete.
    pub(crate) fn meet(&mut self, first: usize) {
        let Wait::Lanes(mask) = self.strands[first].wait else { return };
        let kind = self.strands[first].exchanges;
        let warp = self.lanes(self.warp_of(first));
        let (mut members, mut count) = ([0; 32], 0);
        // Every lane checks on arrival, in order; checking the last ones first ends most checks at once.
        for index in warp.clone().rev() {
            let strand = &self.strands[index];
            if mask >> (index - warp.start) & 1 == 0 || strand.wait == Wait::Ended {
                continue;
            }
            if strand.wait != Wait::Lanes(mask) || strand.exchanges != kind {
                return;
            }
            members[count] = index;
            count += 1;
        }
        members[..count].reverse();
        self.exchange(&members[..count]);
    }

    /// Releases lanes of a warp that wait for any others at the same instruction. Returns whether it did.
    fn converge(&mut self, warp: usize) -> bool {
        let mut any = false;
        for first in self.lanes(warp) {
            if self.strands[first].wait != Wait::Convergence {
                continue;
            }
            let place = |strand: &Strand| {
                // SAFETY: a strand that waits at an exchange has its operands on its stack.
                let site = unsafe { (*strand.exchanged).site };
                (strand.exchanges, site, strand.calls)
            };
            let here = place(&self.strands[first]);
            let members = self.lanes(warp).filter(|index| self.strands[*index].wait == Wait::Convergence);
            let members: Vec<usize> = members.filter(|index| place(&self.strands[*index]) == here).collect();
            self.exchange(&members);
            any = true;
        }
        any
    }

    /// Runs the exchange of a complete group.
    fn exchange(&mut self, members: &[usize]) {
        let Some(kind) = members.first().and_then(|first| self.strands[*first].exchanges) else { return };
        let mut lanes = [LaneInput::default(); 32];
        for (lane, index) in lanes.iter_mut().zip(members) {
            // SAFETY: a strand that waits at an exchange has its operands on its stack.
            *lane = LaneInput { number: self.lane(*index) as u32, brings: unsafe { *self.strands[*index].exchanged } };
        }
        let lanes = &lanes[..members.len().min(32)];
        if kind == Exchange::Product {
            // SAFETY: the grid is alive while its blocks run; waiting lanes keep registers on their stacks.
            unsafe { exchange::multiply(&(*self.grid).ready, lanes) };
        }
        for (index, lane) in members.iter().zip(lanes) {
            let (value, flag) = exchange::result(kind, lanes, lane);
            let strand = &mut self.strands[*index];
            // SAFETY: as above; the strand does not run.
            unsafe {
                (*strand.exchanged).value = value;
                (*strand.exchanged).flag = u32::from(flag);
            }
            (strand.wait, strand.exchanges, strand.exchanged) = (Wait::Nothing, None, null_mut());
        }
    }

    /// Releases groups that waited for a lane that has exited.
    fn meet_without(&mut self, ended: usize) {
        for index in self.lanes(self.warp_of(ended)) {
            if matches!(self.strands[index].wait, Wait::Lanes(mask) if mask >> self.lane(ended) & 1 == 1) {
                self.meet(index);
            }
        }
    }
}

/// Returns memory of at least `bytes` bytes.
fn room(place: &mut Option<Mapping>, bytes: usize, pages: Pages) -> io::Result<*mut u8> {
    match place {
        Some(mapping) if mapping.bytes() >= bytes => Ok(mapping.start()),
        // Code that uses none gets a null pointer, which faults.
        _ if bytes == 0 => Ok(null_mut()),
        _ => {
            *place = None;
            Ok(place.insert(Mapping::new(bytes, pages)?).start())
        }
    }
}

impl Strand {
    fn new(block: *mut Block, number: u32, stack: Stack) -> Strand {
        let warp = Warp {
            services: std::ptr::null(),
            params: std::ptr::null(),
            shared: null_mut(),
            local: null_mut(),
            local_bytes: 0,
            variables: std::ptr::null(),
            owner: null_mut(),
            workspace: 0,
            ctaid: [0; 3],
            nctaid: [0; 3],
            first: 0,
            dynamic_shared_bytes: 0,
            dynamic_shared_offset: 0,
            grid: 0,
            exited: 0,
            streams: 0,
            admitted: null_mut(),
            bounds: Bounds::default(),
        };
        Strand {
            warp,
            block,
            number,
            floor: stack.top() - stack.bytes() + SERVICE_STACK,
            stack,
            context: null_mut(),
            wait: Wait::Ended,
            paused: false,
            asks: false,
            arrived: None,
            counted: 0,
            reduced: (0, 0),
            exchanges: None,
            exchanged: null_mut(),
            calls: 0,
        }
    }

    /// Records the operands of an exchange. Their place must not move until the strand continues.
    pub(crate) fn bring(&mut self, kind: Exchange, exchanged: *mut ExchangeOperands, wait: Wait) {
        (self.exchanges, self.exchanged, self.wait) = (Some(kind), exchanged, wait);
    }

    /// Records the calls by which the strand reached an exchange, as a hash of the return addresses on its
    /// stack, found by frame pointers. An instruction in another call is another place: callers diverged.
    pub(crate) fn note_calls(&mut self, frame: usize) {
        let (mut frame, mut calls) = (frame, 0u64);
        let top = self.stack.top();
        let mut lowest = top - self.stack.bytes();
        while frame.is_multiple_of(8) && frame >= lowest && frame.saturating_add(16) <= top {
            // SAFETY: both words lie on the stack of this strand, which runs and changes nothing meanwhile.
            let (next, from) = unsafe { (*(frame as *const usize), *((frame + 8) as *const usize)) };
            calls = (calls.rotate_left(5) ^ from as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // Callers have higher addresses.
            (frame, lowest) = (next, frame + 16);
        }
        self.calls = calls;
    }
}

/// Runs a strand: its first function.
unsafe extern "C" fn run_strand(argument: *mut c_void) -> ! {
    let strand = argument.cast::<Strand>();
    // SAFETY: strand, block, gate and grid are alive while a block runs; the scheduler waits for a switch.
    unsafe {
        let block = (*strand).block;
        let entry = (*(*block).grid).entry();
        let gate = &*(*block).gate;
        gate.open();
        if gate.must_stop() {
            stop(strand);
        }
        entry(&raw mut (*strand).warp);
        while (*block).kind == Kind::Block && (*block).go_on() {
            if gate.must_stop() {
                stop(strand);
            }
            entry(&raw mut (*strand).warp);
        }
        if (*block).kind == Kind::Block {
            finish_streams();
        }
        gate.close();
        end(strand)
    }
}

/// Makes non-temporal stores visible before anything that follows.
fn finish_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 machine has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Ends a strand: all of its threads have exited.
///
/// # Safety
///
/// Called on the stack of the strand, gate closed, with nothing on it that must be dropped.
pub(crate) unsafe fn end(strand: *mut Strand) -> ! {
    // SAFETY: as in `run_strand`.
    unsafe {
        let block = (*strand).block;
        let index = (*strand).number as usize;
        (*strand).wait = Wait::Ended;
        (*block).ended += 1;
        let kind = (*block).kind;
        match kind {
            Kind::Block => {
                let rank = (*block).rank(index);
                let alive = (&(*block).ctas)[rank].alive;
                (*block).leave_cluster(rank, alive);
            }
            Kind::Warps | Kind::Threads => {
                let lanes = (*block).lane_mask(index);
                (*block).count_ended(index, lanes);
            }
        }
        if kind == Kind::Threads {
            (*block).meet_without(index);
        }
        hand_over(strand, kind != Kind::Threads);
    }
    // An ended strand is never switched to.
    std::process::abort()
}

/// Leaves a strand for good: the launch is over.
///
/// # Safety
///
/// Called on the stack of the strand, with nothing on it that must be dropped.
pub(crate) unsafe fn stop(strand: *mut Strand) -> ! {
    // SAFETY: as in `run_strand`.
    unsafe {
        let gate = &*(*(*strand).block).gate;
        gate.close();
        gate.note(CaughtEvent::Interruption);
        switch(&raw mut (*strand).context, *gate.scheduler.get());
    }
    std::process::abort()
}

/// Leaves a strand for good: it failed, and the block holds the reason.
///
/// # Safety
///
/// As [`stop`].
pub(crate) unsafe fn fail(strand: *mut Strand, failure: Failure) -> ! {
    // SAFETY: as in `run_strand`.
    unsafe {
        let block = (*strand).block;
        (*block).failure = Some(failure);
        switch(&raw mut (*strand).context, *(*(*block).gate).scheduler.get());
    }
    std::process::abort()
}

/// Switches to the next runnable strand of the block, else to the scheduler. Returns when it may continue.
///
/// # Safety
///
/// Called on the stack of the strand, gate closed.
pub(crate) unsafe fn hand_over(strand: *mut Strand, direct: bool) {
    // SAFETY: as in `run_strand`; the next strand can run, so its context is prepared or saved.
    unsafe {
        let block = (*strand).block;
        let next = if direct { (&(*block)).next_ready((*strand).number as usize) } else { None };
        match next {
            Some(next) if next == (*strand).number as usize => {}
            Some(next) => {
                (*block).current = next;
                let to = (&(*block).strands)[next].context;
                switch(&raw mut (*strand).context, to);
            }
            None => switch(&raw mut (*strand).context, *(*(*block).gate).scheduler.get()),
        }
    }
}

/// Yields: first to the strands after this one, then to those of the scheduler.
///
/// # Safety
///
/// As [`hand_over`].
pub(crate) unsafe fn pause(strand: *mut Strand) {
    // SAFETY: as in `hand_over`.
    unsafe {
        let block = (*strand).block;
        (*strand).paused = true;
        let own = (*strand).number as usize;
        let threads = (*block).kind == Kind::Threads;
        let next = if threads { None } else { (&(*block)).ready_in(own + 1..(*block).count) };
        match next {
            Some(next) => {
                (*block).current = next;
                let to = (&(*block).strands)[next].context;
                switch(&raw mut (*strand).context, to);
            }
            None => {
                (*block).yielded = true;
                switch(&raw mut (*strand).context, *(*(*block).gate).scheduler.get());
            }
        }
    }
}

impl Block {
    fn ready_in(&self, mut range: Range<usize>) -> Option<usize> {
        range.find(|index| self.strands[*index].wait == Wait::Nothing)
    }

    /// Returns the next runnable strand after one, wrapping around the end.
    fn next_ready(&self, from: usize) -> Option<usize> {
        self.ready_in(from + 1..self.count).or_else(|| self.ready_in(0..from + 1))
    }
}

/// Runs a strand until control comes back. Returns the error, if there is one.
///
/// # Safety
///
/// As [`Block::turn`]; the strand can run.
unsafe fn resume(block: *mut Block, index: usize) -> Result<(), TurnOutcome> {
    // SAFETY: the strand can run: its context is prepared or saved. The scheduler's context is this one.
    let caught = unsafe {
        (*block).current = index;
        (*block).yielded = false;
        let gate = &*(*block).gate;
        let to = (&(*block).strands)[index].context;
        switch(gate.scheduler.get(), to);
        gate.take_caught()
    };
    // SAFETY: no strand runs.
    let block = unsafe { &mut *block };
    if let Some(failure) = block.failure.take() {
        return Err(TurnOutcome::Failed(failure));
    }
    match caught {
        None => Ok(()),
        Some(CaughtEvent::Interruption) => Err(TurnOutcome::Stopped),
        Some(CaughtEvent::Signal { number, address, known }) => Err(TurnOutcome::Failed(block.signal(number, address, known))),
    }
}

/// # Safety
///
/// As [`Block::turn`].
unsafe fn turn_of_warps(block: *mut Block) -> TurnOutcome {
    loop {
        // SAFETY: no strand runs.
        let next = unsafe {
            let block = &*block;
            if block.ended == block.count {
                return TurnOutcome::Ended;
            }
            block.ready_in(0..block.count)
        };
        let Some(next) = next else {
            // SAFETY: no strand runs.
            return TurnOutcome::Failed(unsafe { (*block).deadlock() });
        };
        // SAFETY: the strand can run.
        if let Err(turn) = unsafe { resume(block, next) } {
            return turn;
        }
        // SAFETY: no strand runs.
        if unsafe { (*block).yielded } {
            return TurnOutcome::Paused;
        }
    }
}

/// # Safety
///
/// As [`Block::turn`].
unsafe fn turn_of_threads(block: *mut Block) -> TurnOutcome {
    // SAFETY: no strand runs.
    let warps = unsafe { (*block).warps() };
    loop {
        let (mut progress, mut paused) = (false, false);
        for warp in 0..warps {
            for _ in 0..MEETINGS {
                let mut ran = false;
                // SAFETY: no strand runs.
                let lanes = unsafe { (*block).lanes(warp) };
                for index in lanes.clone() {
                    // SAFETY: no strand runs.
                    let strand = unsafe { &mut *(&mut (*block).strands)[index] };
                    if strand.wait != Wait::Nothing {
                        continue;
                    }
                    strand.paused = false;
                    ran = true;
                    // SAFETY: the strand can run.
                    if let Err(turn) = unsafe { resume(block, index) } {
                        return turn;
                    }
                }
                // SAFETY: no strand runs.
                let block = unsafe { &mut *block };
                let sleeps = lanes.clone().any(|index| block.strands[index].wait == Wait::Nothing && block.strands[index].paused);
                let met = lanes.clone().any(|index| block.strands[index].wait == Wait::Nothing && !block.strands[index].paused);
                // Lanes that wait for others at the same instruction have them now: the rest wait elsewhere,
                // have exited, or have had their turn.
                let converged = !met && block.converge(warp);
                progress |= ran || converged;
                paused |= sleeps;
                if sleeps || !(met || converged) {
                    break;
                }
            }
        }
        // SAFETY: no strand runs.
        let block = unsafe { &*block };
        if block.ended == block.count {
            return TurnOutcome::Ended;
        }
        if paused {
            return TurnOutcome::Paused;
        }
        if !progress {
            return TurnOutcome::Failed(block.deadlock());
        }
    }
}
