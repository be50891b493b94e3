//! Threads inside LLVM while another thread ends the process.
//!
//! LLVM keeps tables in static variables. `exit` destroys them while other threads still run, so a thread
//! that is compiling would use destroyed tables. The main thread therefore first waits for the threads inside
//! LLVM, at most as long as their kernels compile, and no thread enters after that. It must wait before
//! everything else that `exit` does: tables are destroyed in the reverse order of their creation, and the
//! last may have been created a moment ago. The destructors of the thread's own variables come first of all.
//!
//! If another thread than the main thread calls `exit`, only `on_exit` reports it. That is too late for
//! tables that are younger.
//!
//! Functions that the program registered before it loaded LLVM run after LLVM's tables are destroyed. What they
//! launch is not compiled any more ([`is_over`]): it fails, as on a GPU whose driver is shutting down.
//!
//! The process does not wait for compilations that ran out of time. If one of them is inside LLVM, the
//! process leaves at once with its exit status. Buffered output is written and [`before_leaving`] is called;
//! everything else that `exit` would do is skipped.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time that a late thread waits for the process to end. The main thread may also end without the process,
/// and its last functions may wait for other threads.
pub const PATIENCE: Duration = Duration::from_secs(1);

static PROCESS: EntryGate = EntryGate::new();

/// Set when LLVM's tables are about to be destroyed.
static OVER: AtomicBool = AtomicBool::new(false);

/// Tests if LLVM can no longer be used, because `exit` destroys its tables.
pub fn is_over() -> bool {
    OVER.load(SeqCst)
}

/// Counter of the threads inside, until it is closed.
pub struct EntryGate {
    inside: AtomicUsize,
    /// Thread that closed the gate, or 0.
    closed_by: AtomicI32,
}

/// Presence of a thread inside a gate, while this value lives.
pub struct GatePresence<'g>(&'g EntryGate);

struct ThreadEnd;

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        thread_ends();
    }
}

/// Waits for the threads inside LLVM if the calling thread is the main thread, and keeps others out. It is
/// called when a thread ends, before everything else that `exit` does.
///
/// The main thread calls it by itself if it has loaded this library. A library that is opened later, by any
/// thread, is told by whoever the main thread has loaded.
pub fn thread_ends() {
    // SAFETY: only returns a number.
    if this_thread() == unsafe { libc::getpid() } {
        PROCESS.close();
        if PROCESS.has_others() {
            // Functions that are registered last are called first.
            // SAFETY: the function stays in place until the process ends.
            unsafe { on_exit(leave, null_mut()) };
        }
    }
}

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Number of compilations that no thread waits for any more.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Compilation that the waiting thread may abandon.
#[derive(Clone, Default)]
pub(crate) struct AbandonableCompilation(Arc<Mutex<AbandonState>>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum AbandonState {
    #[default]
    Awaited,
    Abandoned,
    Ended,
}

/// The compilation itself, while it runs.
pub(crate) struct RunningCompilation(AbandonableCompilation);

impl AbandonableCompilation {
    fn change(&self, change: impl FnOnce(&mut AbandonState)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Begins the compilation.
    pub(crate) fn enter(self) -> RunningCompilation {
        RunningCompilation(self)
    }

    /// Abandons the compilation.
    pub(crate) fn leave(&self) {
        self.change(|state| {
            if *state == AbandonState::Awaited {
                ABANDONED.fetch_add(1, SeqCst);
                *state = AbandonState::Abandoned;
            }
        });
    }
}

impl Drop for RunningCompilation {
    fn drop(&mut self) {
        self.0.change(|state| {
            if *state == AbandonState::Abandoned {
                ABANDONED.fetch_sub(1, SeqCst);
            }
            *state = AbandonState::Ended;
        });
    }
}

static BEFORE_LEAVING: OnceLock<fn(i32) -> i32> = OnceLock::new();

/// Sets the function that is called with the exit status when the process leaves without the functions that
/// `exit` would call, because a compilation that ran out of time still runs. It returns the status to leave
/// with.
pub fn before_leaving(function: fn(i32) -> i32) {
    let _ = BEFORE_LEAVING.set(function);
}

extern "C" fn leave(status: c_int, _: *mut c_void) {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if ONCE.swap(true, SeqCst) {
        return;
    }
    let status = BEFORE_LEAVING.get().map_or(status, |function| function(status));
    // SAFETY: every stream of the C library may be flushed, and the process is at its end.
    unsafe {
        libc::fflush(null_mut());
        libc::_exit(status);
    }
}

thread_local! {
    /// Number of times this thread has entered any gate.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static FAREWELL: ThreadEnd = const { ThreadEnd };
}

/// Runs when this library is loaded, by the thread that loads it.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn at_start() {
        FAREWELL.with(|_| ());
    }
    at_start
};

/// Enters LLVM.
pub(super) fn enter() -> GatePresence<'static> {
    static ONCE: Once = Once::new();
    extern "C" fn at_exit(status: c_int, argument: *mut c_void) {
        OVER.store(true, SeqCst);
        PROCESS.close();
        if PROCESS.has_others() {
            leave(status, argument);
        }
    }
    // After a fork, only the forking thread exists in the new process.
    extern "C" fn in_child() {
        PROCESS.inside.store(DEPTH.get(), SeqCst);
    }
    // SAFETY: both are functions of this library, which is never unloaded once it has started threads.
    ONCE.call_once(|| unsafe {
        on_exit(at_exit, null_mut());
        libc::pthread_atfork(None, None, Some(in_child));
    });
    PROCESS.enter()
}

fn this_thread() -> i32 {
    // SAFETY: only returns a number.
    unsafe { libc::gettid() }
}

impl EntryGate {
    #[expect(clippy::new_without_default, reason = "gates are static")]
    pub const fn new() -> EntryGate {
        EntryGate { inside: AtomicUsize::new(0), closed_by: AtomicI32::new(0) }
    }

    pub fn is_closed(&self) -> bool {
        let by = self.closed_by.load(SeqCst);
        by != 0 && by != this_thread()
    }

    pub fn enter(&self) -> GatePresence<'_> {
        // Counts first and checks then. `close` does it in the opposite order, so one of the two sees the
        // other.
        self.inside.fetch_add(1, SeqCst);
        if DEPTH.get() == 0 && self.is_closed() {
            self.inside.fetch_sub(1, SeqCst);
            let start = Instant::now();
            while self.is_closed() && start.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.closed_by.store(0, SeqCst);
            self.inside.fetch_add(1, SeqCst);
        }
        DEPTH.set(DEPTH.get() + 1);
        GatePresence(self)
    }

    /// Closes the gate, and waits until all other threads that are not abandoned are out.
    pub fn close(&self) {
        self.closed_by.store(this_thread(), SeqCst);
        // If LLVM itself aborts, this thread is inside.
        while self.inside.load(SeqCst) > DEPTH.get() + ABANDONED.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn has_others(&self) -> bool {
        self.inside.load(SeqCst) > DEPTH.get()
    }
}

impl Drop for GatePresence<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        self.0.inside.fetch_sub(1, SeqCst);
    }
}
