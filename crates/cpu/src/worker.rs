//! Worker threads: one per core, each taking parts of the running work.
//!
//! Blocks of a lot are taken in order, a few at a time: as many as take about ten microseconds, so that the
//! overhead is negligible and a long block delays nothing. A block that yields stays resident, and the worker
//! starts another one when all its resident blocks only yield.

use crate::execute::{Block, Surroundings, TurnOutcome};
use crate::faults::{Gate, guard};
use crate::fiber::default_floats;
use crate::grid::{Failure, Grid};
use crate::host::settle;
use crate::lanes;
use crate::stream::{COPY_PART, CompletionListener, Job, Streams, Work, stop};
use crate::watchdog::Watchdog;
use broadloom_device::{Error, FaultKind, trace};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Number of blocks of a launch that a worker has resident as soon as they wait for each other. It exceeds
/// this only if all blocks only wait for a while.
const MANY_RESIDENT: usize = 64;
/// Time that all of many blocks must only wait before one more is started.
const LONG_WAIT: Duration = Duration::from_millis(1);
/// Maximum strands of blocks that wait for each other, of all workers, unless the launch is cooperative. Each
/// has a stack.
const MOST_STRANDS: usize = 1 << 14;
/// Number of yields in a row before a worker starts another block.
const PATIENCE: u32 = 4;
/// Target duration of parts taken at once.
const TAKEN_TIME: Duration = Duration::from_micros(10);
/// Maximum number of parts taken at once.
const MOST_TAKEN: u64 = 4096;
/// Maximum number of strands whose stacks a worker keeps for the next launch.
const KEPT_STRANDS: usize = 2048;

/// State that all workers share.
pub(crate) struct WorkerShared {
    pub(crate) streams: Streams,
    pub(crate) surroundings: Surroundings,
    pub(crate) watchdog: Watchdog,
    pub(crate) finished: Box<dyn CompletionListener>,
    pub(crate) workers: usize,
    /// Number of launches that are ahead of their code.
    pub(crate) ahead: AtomicUsize,
}

/// Runs a worker: its main function.
pub(crate) fn work(shared: &Arc<WorkerShared>, index: usize) {
    default_floats();
    settle(index, shared.workers);
    let gate = Gate::new();
    let guard = guard(&gate);
    shared.streams.enter(index);
    let mut worker = Worker { shared, index, gate: &gate, spare: vec![] };
    let started = |job: &Arc<Job>, now: Instant| {
        if let Some(limit) = job.limit {
            let workers = Arc::downgrade(shared);
            let interrupt = move |job: &Arc<Job>| workers.upgrade().into_iter().for_each(|shared| shared.streams.interrupt(job));
            shared.watchdog.watch(job, now + limit.left(), interrupt);
        }
    };
    while let Some(job) = shared.streams.join(index, &started) {
        let started = trace::is_on().then(Instant::now);
        let activity = lanes::activity(&job);
        worker.run(&job);
        drop(activity);
        if let Some(started) = started {
            lanes::worked(index, &job, started);
        }
        shared.streams.leave(index, &job, shared.finished.as_ref());
        worker.tidy();
    }
    shared.streams.exit(index);
    drop(worker);
    drop(guard);
}

struct Worker<'a> {
    shared: &'a Arc<WorkerShared>,
    index: usize,
    gate: &'a Gate,
    /// Memory for blocks that is not in use.
    spare: Vec<Box<Block>>,
}

/// Parts that a worker has taken, and the state to take more.
struct TakenParts<'a> {
    job: &'a Job,
    worker: usize,
    range: Range<u64>,
    chunk: u64,
    since: Instant,
    count: u64,
    done: u64,
    time: Duration,
    workers: u64,
}

impl TakenParts<'_> {
    fn new(job: &Job, worker: usize, workers: usize, expected: Option<Duration>) -> TakenParts<'_> {
        let chunk = expected.map_or(1, |each| (TAKEN_TIME.as_nanos() / each.as_nanos().max(1)) as u64).clamp(1, MOST_TAKEN);
        let (since, time) = (Instant::now(), Duration::ZERO);
        TakenParts { job, worker, range: 0..0, chunk, since, count: 0, done: 0, time, workers: workers as u64 }
    }

    /// Returns the next part, or all taken parts. Takes more if they are used up.
    fn next(&mut self, all: bool) -> Option<Range<u64>> {
        if self.range.is_empty() {
            self.measure();
            // The last parts are shared evenly.
            let fair = (self.job.left() / (2 * self.workers)).max(1);
            self.range = self.job.take(self.worker, self.chunk.min(fair));
            self.count = self.range.end - self.range.start;
        }
        let start = self.range.start;
        self.range.start = if all { self.range.end } else { (start + 1).min(self.range.end) };
        Some(start..self.range.start).filter(|range| !range.is_empty())
    }

    /// Measures how long the last taken parts took.
    fn measure(&mut self) {
        let now = Instant::now();
        let time = now - self.since;
        self.since = now;
        if self.count == 0 {
            return;
        }
        self.time += time;
        self.done += self.count;
        if time < TAKEN_TIME / 2 {
            self.chunk = (self.chunk * 2).min(MOST_TAKEN);
        } else if time > TAKEN_TIME * 2 {
            self.chunk = (self.chunk / 2).max(1);
        }
        self.count = 0;
    }
}

impl Worker<'_> {
    fn run(&mut self, job: &Arc<Job>) {
        match &job.work {
            Work::Launch(grid) => self.launch(job, grid),
            Work::Copy { to, from, bytes } => {
                if job.parts == 1 {
                    if !job.take(0, 1).is_empty() {
                        // SAFETY: the ranges were checked against live allocations, which stay while the job
                        // has a number.
                        unsafe { std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes as usize) };
                    }
                    return;
                }
                parts(job, *bytes, |at, count| {
                    // SAFETY: as above; ranges that overlap have one part.
                    unsafe { std::ptr::copy_nonoverlapping((from + at) as *const u8, (to + at) as *mut u8, count) };
                });
            }
            Work::Call(called) => {
                if !job.take(0, 1).is_empty() {
                    called.call();
                }
            }
            Work::Mark(mark) => {
                if !job.take(0, 1).is_empty() {
                    mark.set();
                }
            }
            // A waiting stream has nothing for workers.
            Work::Pending(_) | Work::Await(_) => {}
            Work::Fill { address, byte, bytes } => parts(job, *bytes, |at, count| {
                // SAFETY: as above.
                unsafe { std::ptr::write_bytes((address + at) as *mut u8, *byte, count) };
            }),
            Work::Write { address, bytes } => parts(job, bytes.len() as u64, |at, count| {
                // SAFETY: as above; `parts` stays within the bytes.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().add(at as usize), (address + at) as *mut u8, count) };
            }),
        }
    }

    fn launch(&mut self, job: &Arc<Job>, grid: &Grid) {
        self.gate.watch(Some(&job.stop));
        let mut taken = TakenParts::new(job, self.index, self.shared.workers, grid.ready.block_time());
        let mut resident: VecDeque<Box<Block>> = VecDeque::new();
        let mut fitted: Vec<Box<Block>> = vec![];
        let share = MOST_STRANDS / self.shared.workers.max(1) / grid.strands().max(1);
        let most = if grid.cooperative { usize::MAX } else { share.max(MANY_RESIDENT) };
        let in_rows = grid.runs_in_rows();
        let mut pauses = 0u32;
        // Time when a block was last started or ended.
        let mut since = Instant::now();
        while !job.must_stop() {
            // Blocks may wait for one that has not started.
            let waits_long = || {
                let few = grid.cooperative || resident.len() < MANY_RESIDENT;
                few || pauses >= PATIENCE * resident.len() as u32 && since.elapsed() > LONG_WAIT
            };
            let starts = resident.is_empty() || (pauses >= PATIENCE && resident.len() < most && waits_long());
            let mut block = match if starts { taken.next(in_rows) } else { None } {
                Some(numbers) => {
                    if !resident.is_empty() {
                        since = Instant::now();
                    }
                    pauses = 0;
                    let Some(mut block) = self.room(job, grid, &mut fitted) else { break };
                    // SAFETY: the block was fitted to this grid, which the job keeps alive; nothing of it
                    // runs.
                    if let Err(error) = unsafe { block.start(numbers) } {
                        self.lacks_memory(job, grid, &error);
                        fitted.push(block);
                        break;
                    }
                    block
                }
                None => match resident.pop_front() {
                    Some(block) => block,
                    None => break,
                },
            };
            // SAFETY: the block was started; its gate is that of this thread.
            match unsafe { Block::turn(&raw mut *block) } {
                TurnOutcome::Ended => {
                    if !resident.is_empty() {
                        since = Instant::now();
                    }
                    pauses = 0;
                    fitted.push(block);
                }
                TurnOutcome::Paused => {
                    resident.push_back(block);
                    pauses = pauses.saturating_add(1);
                    if pauses > 64 && (resident.len() >= most.min(MANY_RESIDENT) || job.left() == 0) && pauses.is_multiple_of(64)
                    {
                        // The thread that is waited for may need this core.
                        std::thread::yield_now();
                    }
                }
                TurnOutcome::Failed(failure) => {
                    self.fail(job, grid, &failure, Some(block.ctaid()));
                    fitted.push(block);
                }
                TurnOutcome::Stopped => {
                    self.stopped(job, grid, block.ctaid());
                    fitted.push(block);
                }
            }
        }
        taken.measure();
        if taken.done > 0 && !job.must_stop() {
            grid.ready.note_time(taken.done, taken.time);
        }
        // A time limit that ran out between two blocks.
        if job.stop.load(Ordering::SeqCst) == stop::LATE && !job.has_failed() {
            self.stopped(job, grid, grid.ctaid(0));
        }
        self.gate.watch(None);
        self.spare.extend(fitted);
        self.spare.extend(resident);
    }

    /// Returns memory for a block of a grid.
    fn room(&mut self, job: &Arc<Job>, grid: &Grid, fitted: &mut Vec<Box<Block>>) -> Option<Box<Block>> {
        if let Some(block) = fitted.pop() {
            return Some(block);
        }
        let mut block = self.spare.pop().unwrap_or_else(|| Block::new(self.gate, &self.shared.surroundings));
        match block.fit(grid) {
            Ok(()) => Some(block),
            Err(error) => {
                self.lacks_memory(job, grid, &error);
                None
            }
        }
    }

    fn lacks_memory(&self, job: &Arc<Job>, grid: &Grid, error: &std::io::Error) {
        let reason = format!("its blocks need more memory than there is: {error}");
        job.fail(Error::BadLaunch { kernel: grid.ready.name.clone(), reason });
        self.shared.streams.interrupt(job);
    }

    fn fail(&self, job: &Arc<Job>, grid: &Grid, failure: &Failure, ctaid: Option<[u32; 3]>) {
        job.fail(grid.fault(failure, ctaid).into());
        self.shared.streams.interrupt(job);
    }

    /// Handles an interruption: by the time limit, or because another block failed.
    fn stopped(&self, job: &Arc<Job>, grid: &Grid, ctaid: [u32; 3]) {
        if job.stop.load(Ordering::SeqCst) == stop::LATE {
            let limit = job.limit.map_or(Duration::ZERO, |limit| limit.total);
            let failure = Failure::new(FaultKind::TimeLimit, format!("it did not end within {limit:?}"));
            job.fail(grid.fault(&failure, Some(ctaid)).into());
        }
    }

    /// Keeps memory for the next launch, up to a limit.
    fn tidy(&mut self) {
        let mut strands = 0;
        self.spare.retain(|block| {
            strands += block.strands.len();
            strands <= KEPT_STRANDS
        });
    }
}

/// Does the parts of a copy that others have not taken.
fn parts(job: &Job, bytes: u64, mut each: impl FnMut(u64, usize)) {
    loop {
        let range = job.take(0, 1);
        if range.is_empty() {
            return;
        }
        let at = range.start * COPY_PART;
        each(at, (bytes - at).min(COPY_PART) as usize);
    }
}
