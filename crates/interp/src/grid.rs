//! Launches: layout of shared memory, and execution of blocks to their end.
//!
//! Blocks run one after the other. A block that uses up its turn (because it is long, or because it waits for
//! a later one) stays resident and lets the next ones start, up to [`MOST_RESIDENT`] at a time, as a real
//! machine would. A cooperative launch has all of them resident at once. The blocks of a cluster start, stay
//! and end together.

use crate::cluster::{Cluster, Common, MOST_BLOCKS};
use crate::cta::{Barrier, CodeSite, Cta, Thread, Wait};
use crate::exec::{Engine, Sink, Stop, lane_names};
use crate::memory::{Memory, Owner};
use crate::names::Names;
use crate::op::Op;
use crate::program::Program;
use crate::watch::Watch;
use broadloom_device::texture::OpaqueTable;
use broadloom_device::{Error, Fault, FaultKind, Launch, Machine, Stop as StopFlag, StopReason};
use broadloom_ptx::Func;
use std::collections::VecDeque;
use std::time::Instant;

/// Maximum number of resident clusters.
const MOST_RESIDENT: usize = 64;
/// Bytes of the state of grid-wide barriers.
const WORKSPACE: u64 = 64;
/// Number of instructions that a warp whose threads keep meeting runs before the next warp may.
const WARP_TURN: u64 = 1 << 16;
/// Number of instructions that a block runs before the next one may start.
const BLOCK_TURN: u64 = 4 << 20;
/// Turn of a block in a cooperative launch, whose blocks often wait for each other.
const TOGETHER_TURN: u64 = 1 << 14;

/// Number of rounds, and of instructions in them, after which threads that only poll an mbarrier phase are
/// considered to wait forever.
const IDLE_ROUNDS: u64 = 1 << 12;
const IDLE_STEPS: u64 = 1 << 20;

/// Input of a launch besides the engine's parts.
pub(crate) struct Grid<'a> {
    pub(crate) program: &'a Program,
    pub(crate) machine: &'a Machine,
    pub(crate) launch: &'a Launch,
    pub(crate) kernel: Func,
    pub(crate) params: &'a [u8],
    pub(crate) stack_limit: u64,
    pub(crate) heap_left: u64,
    pub(crate) stop: Option<&'static StopFlag>,
    pub(crate) opaques: OpaqueTable,
}

/// Memory and clusters of a launch.
struct GridLayout<'a> {
    /// Offset of each variable in the shared memory of a block.
    shared_offsets: &'a [u64],
    shared_bytes: u64,
    /// Address of the memory for barriers of the grid; 0 if there is none.
    workspace: u64,
    cluster_size: Option<[u32; 3]>,
}

/// Outcome of a launch.
pub(crate) struct Outcome {
    pub(crate) steps: u64,
    pub(crate) heap_left: u64,
}

/// State of a block after its turn.
enum TurnOutcome {
    Done,
    Goes,
}

impl Grid<'_> {
    fn bad_launch(&self, reason: String) -> Error {
        Error::BadLaunch { kernel: self.program.module.functions[self.kernel].name.clone(), reason }
    }

    /// Returns the offsets of the shared variables that the kernel can reach, total bytes, and names.
    fn lay_out_shared(&self, reachable: &[Func]) -> Result<(Vec<u64>, u64, Names), Error> {
        let variables = &self.program.places.shared_variables;
        let mut used: Vec<u32> = reachable.iter().flat_map(|func| self.program.routine(*func).shared.iter().copied()).collect();
        used.sort_unstable();
        used.dedup();
        let mut offsets = vec![0u64; variables.len()];
        let mut end = 0u64;
        for number in used.iter().map(|number| *number as usize).filter(|number| !variables[*number].dynamic) {
            let start = end.next_multiple_of(variables[number].align.max(1));
            offsets[number] = start;
            end = start.saturating_add(variables[number].bytes);
        }
        // All dynamic variables start at the same offset, after the static ones.
        let dynamic = || used.iter().map(|number| *number as usize).filter(|number| variables[*number].dynamic);
        let start = end.next_multiple_of(dynamic().map(|number| variables[number].align).max().unwrap_or(16).max(16));
        for number in dynamic() {
            offsets[number] = start;
        }
        let total = if self.launch.shared_bytes > 0 { start + u64::from(self.launch.shared_bytes) } else { end };
        if total > u64::from(self.machine.max_shared_bytes) {
            let names: Vec<&str> = used.iter().map(|number| variables[*number as usize].name.as_str()).collect();
            return Err(self.bad_launch(format!(
                "it needs {total} bytes of shared memory, a block has at most {} (variables: {})",
                self.machine.max_shared_bytes,
                names.join(", ")
            )));
        }
        let names = Names::of(self.program, self.kernel, self.params, &used, &offsets, self.launch.shared_bytes);
        Ok((offsets, total, names))
    }

    /// Runs the launch.
    pub(crate) fn run<W: Watch>(&self, memory: &mut Memory, watch: &mut W, output: Sink<'_>) -> Result<Outcome, Error> {
        let reachable = self.program.reachable(self.kernel);
        let refused = self.program.refused(reachable.iter().copied());
        if refused.has_errors() {
            return Err(Error::Unsupported(refused));
        }
        let (shared_offsets, shared_bytes, names) = self.lay_out_shared(&reachable)?;
        let threads = self.launch.threads_per_block();
        let slots = self.program.routine(self.kernel).slots as u64;
        let frame = self.program.routine(self.kernel).frame_bytes;
        if frame + 8 * slots > self.stack_limit {
            return Err(self
                .bad_launch(format!("a thread needs {frame} bytes of local memory, more than the {} it has", self.stack_limit)));
        }
        let block_bytes = threads * (slots * 8 + frame + 256) + shared_bytes;
        let cluster_size = self.cluster_size()?;
        let together = cluster_size.map_or(1, |size| size.map(u64::from).iter().product());
        let most = if self.launch.cooperative { self.launch.blocks() } else { together };
        if block_bytes.saturating_mul(most) > memory.limit() {
            return Err(self.bad_launch("its blocks need more memory than there is".into()));
        }
        let workspace = if self.launch.cooperative { memory.allocate(WORKSPACE, Owner::Workspace)? } else { 0 };
        let layout = GridLayout { shared_offsets: &shared_offsets, shared_bytes, workspace, cluster_size };
        let outcome = self.run_with(memory, watch, output, layout, names);
        if workspace != 0 {
            let _ = memory.free(workspace);
        }
        outcome
    }

    fn run_with<W: Watch>(
        &self,
        memory: &mut Memory,
        watch: &mut W,
        output: Sink<'_>,
        layout: GridLayout<'_>,
        mut names: Names,
    ) -> Result<Outcome, Error> {
        let GridLayout { shared_offsets, shared_bytes, workspace, cluster_size } = layout;
        if let Some((serial, _)) = memory.serial_of(workspace) {
            watch.define(serial, WORKSPACE);
        }
        if W::ON {
            names.find_allocations(self.program, memory);
            watch.named(&names);
        }
        let started = Instant::now();
        let mut engine = Engine {
            program: self.program,
            memory,
            watch,
            output,
            launch: self.launch,
            kernel: self.kernel,
            params: self.params,
            shared_offsets,
            shared_bytes,
            names,
            steps: 0,
            deadline: self.launch.time_limit.map(|limit| started + limit),
            stack_limit: self.stack_limit,
            heap_left: self.heap_left,
            workspace,
            started,
            cluster: Common::default(),
            opaques: self.opaques.clone(),
            events: 0,
        };
        self.run_blocks(&mut engine, cluster_size).map_err(Error::Fault)?;
        Ok(Outcome { steps: engine.steps, heap_left: engine.heap_left })
    }

    /// Returns the blocks of a cluster in each direction.
    fn cluster_size(&self) -> Result<Option<[u32; 3]>, Error> {
        let kernel = &self.program.module.functions[self.kernel];
        let Some(size) = self.launch.cluster_of(kernel) else {
            if kernel.directive("explicitcluster").is_some() {
                return Err(
                    self.bad_launch("it asks for clusters (`.explicitcluster`) without a size, and a launch names none".into())
                );
            }
            return Ok(None);
        };
        let blocks = size.iter().fold(1u64, |product, &n| product.saturating_mul(u64::from(n)));
        if blocks == 0 || blocks > MOST_BLOCKS {
            return Err(self.bad_launch(format!("it asks for clusters of {blocks} blocks, and a cluster has 1 to {MOST_BLOCKS}")));
        }
        let grid = self.launch.grid;
        if !grid.iter().zip(size).all(|(blocks, size)| blocks.is_multiple_of(size)) {
            return Err(self.bad_launch(format!("its clusters of {size:?} blocks do not divide the grid of {grid:?}")));
        }
        Ok(Some(size))
    }

    fn run_blocks<W: Watch>(&self, engine: &mut Engine<'_, W>, size: Option<[u32; 3]>) -> Result<(), Stop> {
        let total = self.launch.blocks() / size.map_or(1, |size| size.map(u64::from).iter().product());
        let limit = if self.launch.cooperative { usize::try_from(total).unwrap_or(usize::MAX) } else { MOST_RESIDENT };
        let mut resident: VecDeque<Cluster> = VecDeque::new();
        // Memory of ended blocks is reused for the next ones.
        let mut ended: Vec<Cta> = engine.memory.spare.take().into_iter().collect();
        let mut next = 0u64;
        loop {
            if next < total && (resident.is_empty() || self.launch.cooperative && resident.len() < limit) {
                while next < total && (resident.is_empty() || self.launch.cooperative) {
                    resident.push_back(self.start_cluster(engine, next, size, &mut ended));
                    next += 1;
                }
            }
            let Some(mut cluster) = resident.pop_front() else {
                engine.memory.spare = ended.pop();
                return Ok(());
            };
            std::mem::swap(&mut engine.cluster, &mut cluster.common);
            let turn = self.turn(engine, &mut cluster)?;
            std::mem::swap(&mut engine.cluster, &mut cluster.common);
            match turn {
                TurnOutcome::Done => {
                    cluster.blocks.iter().for_each(|cta| engine.watch.end(cta));
                    ended = cluster.blocks;
                }
                TurnOutcome::Goes => {
                    resident.push_back(cluster);
                    if next < total && resident.len() < limit {
                        resident.push_back(self.start_cluster(engine, next, size, &mut ended));
                        next += 1;
                        // The new one runs first: the others may wait for it.
                        resident.rotate_right(1);
                    }
                }
            }
        }
    }

    /// Starts the blocks of a cluster, by rank.
    fn start_cluster<W: Watch>(
        &self,
        engine: &mut Engine<'_, W>,
        number: u64,
        size: Option<[u32; 3]>,
        ended: &mut Vec<Cta>,
    ) -> Cluster {
        let explicit = size.is_some();
        let size = size.unwrap_or([1; 3]);
        let grid = self.launch.grid.map(u64::from);
        let [sx, sy, sz] = size.map(u64::from);
        let [cx, cy] = [grid[0] / sx, grid[1] / sy];
        let first = [number % cx * sx, number / cx % cy * sy, number / (cx * cy) * sz];
        let mut blocks = vec![];
        for rank in 0..sx * sy * sz {
            let at = [first[0] + rank % sx, first[1] + rank / sx % sy, first[2] + rank / (sx * sy)];
            let number = at[0] + grid[0] * (at[1] + grid[1] * at[2]);
            blocks.push(self.start(engine, number, ended.pop()));
        }
        Cluster::new(blocks, size, explicit)
    }

    fn start<W: Watch>(&self, engine: &mut Engine<'_, W>, number: u64, ended: Option<Cta>) -> Cta {
        let [gx, gy, _] = self.launch.grid.map(u64::from);
        let [bx, by, _] = self.launch.block;
        let id = [(number % gx) as u32, (number / gx % gy) as u32, (number / (gx * gy)) as u32];
        let routine = self.program.routine(self.kernel);
        let (mut threads, mut shared) = ended.map_or_else(Default::default, |ended| (ended.threads, ended.shared));
        threads.resize_with(self.launch.threads_per_block() as usize, Thread::default);
        for (index, thread) in threads.iter_mut().enumerate() {
            let index = index as u32;
            let id = [index % bx, index / bx % by, index / (bx * by)];
            thread.start(id, self.kernel, routine.slots, routine.frame_bytes as usize);
        }
        shared.clear();
        shared.resize(engine.shared_bytes as usize, 0);
        let alive = threads.len() as u32;
        let cta = Cta {
            id,
            number,
            threads,
            shared,
            barriers: std::array::from_fn(|_| Barrier::default()),
            alive,
            parked: 0,
            steps: 0,
        };
        engine.watch.start(&cta);
        if W::ON {
            for index in 0..cta.threads.len() {
                engine.watch.fresh_registers(&cta, index, 0, routine.slots);
                engine.watch.fresh_local(&cta, index, 0, routine.frame_bytes);
            }
        }
        cta
    }

    /// Runs the blocks of a cluster until they end or their turn is over.
    fn turn<W: Watch>(&self, engine: &mut Engine<'_, W>, cluster: &mut Cluster) -> Result<TurnOutcome, Stop> {
        let until = engine.steps + if self.launch.cooperative { TOGETHER_TURN } else { BLOCK_TURN };
        loop {
            let (events, steps) = (engine.events, engine.steps);
            let mut progress = false;
            for rank in 0..cluster.blocks.len() {
                Cluster::exchange(&mut cluster.blocks, &mut engine.cluster, rank);
                let cta = &mut cluster.blocks[rank];
                engine.wake(cta);
                for warp in 0..cta.warps() {
                    progress |= self.run_warp(engine, cta, warp)?;
                }
                Cluster::exchange(&mut cluster.blocks, &mut engine.cluster, rank);
            }
            if engine.cluster.alive == 0 {
                return Ok(TurnOutcome::Done);
            }
            let asks_in_vain = engine.events == events && cluster.blocks.iter().all(|cta| !cta.threads.iter().any(Thread::ready));
            if asks_in_vain {
                cluster.idle_rounds += 1;
                cluster.idle_steps += engine.steps - steps;
            } else {
                (cluster.idle_rounds, cluster.idle_steps) = (0, 0);
            }
            if !progress || cluster.idle_rounds > IDLE_ROUNDS && cluster.idle_steps > IDLE_STEPS {
                let stuck = cluster.blocks.iter().position(|cta| cta.alive > 0).unwrap_or(0);
                return Err(self.deadlock(engine, &cluster.blocks[stuck]));
            }
            if engine.deadline.is_some_and(|deadline| Instant::now() > deadline) {
                let late = cluster.blocks.iter().position(|cta| cta.alive > 0).unwrap_or(0);
                return Err(self.time_out(engine, &cluster.blocks[late]));
            }
            if engine.steps > until {
                return Ok(TurnOutcome::Goes);
            }
        }
    }

    /// Runs the threads of a warp until each of them waits, has exited, or has used up a turn. Returns
    /// whether anything happened. Threads that only meet each other in a loop share one turn: they may wait
    /// for another warp.
    fn run_warp<W: Watch>(&self, engine: &mut Engine<'_, W>, cta: &mut Cta, warp: usize) -> Result<bool, Stop> {
        let until = engine.steps + WARP_TURN;
        let mut progress = false;
        loop {
            let mut ran = false;
            let mut spent = false;
            for index in cta.lanes(warp) {
                if cta.threads[index].ready() {
                    if let Some(reason) = self.stop.and_then(StopFlag::reason) {
                        let kind = match reason {
                            StopReason::Signal(_) => FaultKind::Interrupted,
                            StopReason::TimeLimit => FaultKind::TimeLimit,
                        };
                        let message = format!("it was stopped by {reason} before its end");
                        return Err(self.fault_at(engine, cta, index, kind, message));
                    }
                    engine.run(cta, index)?;
                    ran = true;
                    spent |= cta.threads[index].spent;
                }
            }
            let met = engine.meet(cta, warp)?;
            // Threads that wait for others at the same instruction have them now: the rest wait elsewhere,
            // have exited, or have had their turn.
            let converged = !met && engine.converge(cta, warp)?;
            progress |= ran || met || converged;
            if spent || !(met || converged) || engine.steps > until {
                return Ok(progress);
            }
        }
    }

    fn deadlock<W: Watch>(&self, engine: &Engine<'_, W>, cta: &Cta) -> Stop {
        let waiting: Vec<usize> = (0..cta.threads.len()).filter(|index| !cta.threads[*index].exited()).collect();
        let describe = |index: usize| match cta.threads[index].wait {
            Wait::Barrier(number) => format!("barrier {number}"),
            // A watched run names the missing lanes.
            Wait::Lanes(mask) if W::ON => {
                let missing = engine.missing_lanes(cta, index, mask);
                let (lanes, come) = (lane_names(missing), if missing.is_power_of_two() { "comes" } else { "come" });
                format!("the lanes of the mask {mask:#010x}, of which {lanes} never {come}")
            }
            Wait::Lanes(mask) => format!("the lanes of the mask {mask:#010x}"),
            Wait::Mbarrier => "a phase of an mbarrier".to_owned(),
            Wait::Cluster => "the barrier of its cluster".to_owned(),
            Wait::Convergence | Wait::Nothing | Wait::Exited => "other lanes of its warp".to_owned(),
        };
        let first = waiting.first().copied().unwrap_or(0);
        let other = waiting.iter().copied().find(|index| cta.threads[*index].wait != cta.threads[first].wait);
        let mut message = format!(
            "no thread of the block can go on: {} of {} have ended, {} wait; the first one waits for {}",
            cta.threads.len() - waiting.len(),
            cta.threads.len(),
            waiting.len(),
            describe(first)
        );
        if let Some(other) = other {
            let [x, y, z] = cta.threads[other].id;
            message.push_str(&format!(", thread ({x}, {y}, {z}) for {}", describe(other)));
        }
        self.fault_at(engine, cta, first, FaultKind::Deadlock, message)
    }

    fn time_out<W: Watch>(&self, engine: &Engine<'_, W>, cta: &Cta) -> Stop {
        let index = (0..cta.threads.len()).find(|index| !cta.threads[*index].exited()).unwrap_or(0);
        let limit = self.launch.time_limit.unwrap_or_default();
        self.fault_at(engine, cta, index, FaultKind::TimeLimit, format!("it did not end within {limit:?}"))
    }

    fn fault_at<W: Watch>(&self, engine: &Engine<'_, W>, cta: &Cta, index: usize, kind: FaultKind, message: String) -> Stop {
        match engine.waiting_at(cta, index) {
            Some(CodeSite { func, op, thread }) => engine.fault(cta, CodeSite { func, op, thread }, kind, None, message),
            None => Box::new(Fault {
                kind,
                message,
                kernel: self.program.module.functions[self.kernel].name.clone(),
                function: None,
                block: Some(cta.id),
                thread: Some(cta.threads[index].id),
                instruction: None,
                span: None,
                source: None,
                address: None,
            }),
        }
    }
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.opcode.name())
    }
}
