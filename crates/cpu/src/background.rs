//! Compilation on a separate thread. A launch waits for it no longer than its time limit.
//!
//! LLVM cannot be stopped. A launch that gives up leaves the thread running, and a later launch of the same
//! kernel finds the result. A process that ends meanwhile does not wait for it: see `compile::ending`.
//!
//! The thread has a large stack, because some of LLVM's passes recurse for each level of nesting.

use crate::compile::{AbandonableCompilation, Progress};
use broadloom_device::trace;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Stack sizes in bytes, tried in this order. Only the part that is used becomes memory.
const STACKS: [usize; 2] = [512 << 20, 8 << 20];
/// Time after which a running compilation is reported.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time after which it is reported again.
const AGAIN: Duration = Duration::from_secs(10);

/// Report of a compilation that takes long.
#[derive(Clone, Copy, Debug)]
pub struct Compiling<'a> {
    /// Name of the kernel that is compiled.
    pub kernel: &'a str,
    /// Current stage.
    pub stage: &'static str,
    /// Time elapsed.
    pub time: Duration,
    /// Number of kernels that this process has already compiled.
    pub before: usize,
}

/// Receiver of reports of long compilations.
pub type Notice = Arc<dyn Fn(Compiling<'_>) + Send + Sync>;

impl fmt::Display for Compiling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Compiling { kernel, stage, time, before } = *self;
        write!(f, "compiling kernel `{kernel}` for the CPU, {} s so far: {stage}", time.as_secs())?;
        if before > 0 {
            write!(f, "; {before} compiled before")?;
        }
        Ok(())
    }
}

/// Number of kernels compiled in this process.
static COMPILED: AtomicUsize = AtomicUsize::new(0);

/// Counts a compiled kernel.
pub(crate) fn count() {
    COMPILED.fetch_add(1, Ordering::Relaxed);
}

/// Compilation that did not end in time.
pub struct LateCompilation {
    /// Stage that it had reached.
    pub(crate) stage: &'static str,
}

/// Runs a function on a separate thread and waits for it, at most until a deadline.
pub fn wait_for<T: Send + 'static>(
    kernel: &str,
    until: Option<Instant>,
    notice: Option<&Notice>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LateCompilation> {
    let progress = Progress::default();
    let abandoned = AbandonableCompilation::default();
    let (tell, told) = channel();
    let (stage, lane, mark) = (progress.clone(), trace::Lane::current(), abandoned.clone());
    let job: BackgroundJob = Box::new(move || {
        stage.enter();
        lane.enter();
        let _inside = mark.enter();
        // The receiver may be gone.
        let _ = tell.send(catch_unwind(AssertUnwindSafe(body)));
    });
    start(job);
    let started = Instant::now();
    let mut next = started + PATIENCE;
    loop {
        let now = Instant::now();
        let wait = until.map_or(next, |until| until.min(next)).saturating_duration_since(now);
        match told.recv_timeout(wait) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(panic)) => resume_unwind(panic),
            // The thread sends something before it ends.
            Err(RecvTimeoutError::Disconnected) => return Err(LateCompilation { stage: progress.stage() }),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if until.is_some_and(|until| until <= now) {
            abandoned.leave();
            return Err(LateCompilation { stage: progress.stage() });
        }
        if now >= next {
            next = now + AGAIN;
            if let Some(notice) = notice {
                let before = COMPILED.load(Ordering::Relaxed);
                notice(Compiling { kernel, stage: progress.stage(), time: now - started, before });
            }
        }
    }
}

type BackgroundJob = Box<dyn FnOnce() + Send>;

/// Runs a job on a new thread, or on this one if no thread can be started.
fn start(job: BackgroundJob) {
    // A failed spawn does not return the closure.
    let job = Arc::new(Mutex::new(Some(job)));
    let take = |job: &Mutex<Option<BackgroundJob>>| job.lock().unwrap_or_else(PoisonError::into_inner).take();
    let is_started = STACKS.iter().any(|bytes| {
        let job = job.clone();
        let thread = std::thread::Builder::new().name("broadloom-compile".into()).stack_size(*bytes);
        thread.spawn(move || take(&job).into_iter().for_each(|job| job())).is_ok()
    });
    if !is_started {
        take(&job).into_iter().for_each(|job| job());
    }
}
