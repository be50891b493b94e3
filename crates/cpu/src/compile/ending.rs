//! Threads that are inside of LLVM while another ends the process.
//!
//! LLVM keeps tables in static variables, and `exit` destroys them although other threads go on: one that is compiling then runs into what is no
//! more. So the main thread first waits for those that are inside, which is at most as long as their kernels compile, and none enters behind it.
//! It must do so before anything else that `exit` does, since tables are destroyed in the reverse order of their making and the last may have been
//! made a moment ago: first of all come the destructors of the thread's own variables.
//!
//! Where another thread than the first calls `exit`, nothing of the kind is told to us but by `on_exit`: late for tables that are younger.
//!
//! Compilations that ran out of time are not waited for. When one of them is inside, the process leaves at once with its exit status:
//! buffered output is written and [`before_leaving`] is called, and everything else that `exit` would do is left out.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long whoever comes late waits to be gone with the process. The main thread may also end without it, and its last functions may wait for
/// other threads.
const PATIENCE: Duration = Duration::from_secs(1);

static PROCESS: Gate = Gate::new();

/// Counts who is inside, until it is closed.
struct Gate {
    inside: AtomicUsize,
    /// The thread that closed it, or 0.
    closed_by: AtomicI32,
}

/// A thread that is inside for as long as this lives.
pub(super) struct Inside<'g>(&'g Gate);

struct Farewell;

impl Drop for Farewell {
    fn drop(&mut self) {
        // SAFETY: asks for a number.
        if this_thread() == unsafe { libc::getpid() } {
            PROCESS.close();
            if PROCESS.has_others() {
                // Functions that are registered now are called before all others.
                // SAFETY: the function stays where it is until the process ends.
                unsafe { on_exit(leave, null_mut()) };
            }
        }
    }
}

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Compilations that nobody waits for any more.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// A compilation that whoever waits for it may give up.
#[derive(Clone, Default)]
pub(crate) struct Abandoned(Arc<Mutex<State>>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Awaited,
    Abandoned,
    Ended,
}

/// The compilation itself, for as long as it goes on.
pub(crate) struct Ongoing(Abandoned);

impl Abandoned {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Begins it.
    pub(crate) fn enter(self) -> Ongoing {
        Ongoing(self)
    }

    /// Gives it up.
    pub(crate) fn leave(&self) {
        self.change(|state| {
            if *state == State::Awaited {
                ABANDONED.fetch_add(1, SeqCst);
                *state = State::Abandoned;
            }
        });
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.change(|state| {
            if *state == State::Abandoned {
                ABANDONED.fetch_sub(1, SeqCst);
            }
            *state = State::Ended;
        });
    }
}

static BEFORE_LEAVING: OnceLock<fn(i32) -> i32> = OnceLock::new();

/// Sets the function that is called with the exit status of a process that leaves without the functions that `exit` would call, because
/// a compilation that ran out of time still goes on. It returns the status to leave with.
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
    /// How often this thread is inside of any gate.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static FAREWELL: Farewell = const { Farewell };
}

/// Runs when this is loaded, which the main thread does unless a program opens it as a library.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = {
    extern "C" fn at_start() {
        FAREWELL.with(|_| ());
    }
    at_start
};

/// Enters LLVM.
pub(super) fn enter() -> Inside<'static> {
    static ONCE: Once = Once::new();
    extern "C" fn at_exit(status: c_int, argument: *mut c_void) {
        PROCESS.close();
        if PROCESS.has_others() {
            leave(status, argument);
        }
    }
    // Only the thread that forks is in the new process.
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
    // SAFETY: asks for a number.
    unsafe { libc::gettid() }
}

impl Gate {
    const fn new() -> Gate {
        Gate { inside: AtomicUsize::new(0), closed_by: AtomicI32::new(0) }
    }

    fn is_closed(&self) -> bool {
        let by = self.closed_by.load(SeqCst);
        by != 0 && by != this_thread()
    }

    fn enter(&self) -> Inside<'_> {
        // Counted first and looked at then, where `close` does it the other way round: one of the two sees the other.
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
        Inside(self)
    }

    /// Lets nobody else in, and waits until all others are out whom somebody waits for.
    fn close(&self) {
        self.closed_by.store(this_thread(), SeqCst);
        // Where LLVM itself gives up, this thread is inside.
        while self.inside.load(SeqCst) > DEPTH.get() + ABANDONED.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_others(&self) -> bool {
        self.inside.load(SeqCst) > DEPTH.get()
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        self.0.inside.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    #[test]
    fn whoever_ends_the_process_waits_for_those_inside_and_lets_in_no_other() {
        static GATE: Gate = Gate::new();
        static IS_DONE: AtomicBool = AtomicBool::new(false);
        let (tell, told) = channel();
        let worker = std::thread::spawn(move || {
            let _outer = GATE.enter();
            tell.send(()).unwrap();
            while !GATE.is_closed() {
                std::thread::yield_now();
            }
            // What was begun may still enter deeper.
            let _inner = GATE.enter();
            std::thread::sleep(Duration::from_millis(50));
            IS_DONE.store(true, SeqCst);
        });
        told.recv().unwrap();
        GATE.close();
        assert!(IS_DONE.load(SeqCst), "the gate closed while somebody was inside");
        worker.join().unwrap();
        // The thread that ends the process may enter; others may not, or not before it is clear that the process goes on.
        drop(GATE.enter());
        let (tell, told) = channel();
        let late = std::thread::spawn(move || {
            let _inside = GATE.enter();
            tell.send(()).unwrap();
        });
        assert!(told.recv_timeout(PATIENCE / 4).is_err(), "somebody came in behind the end");
        told.recv().unwrap();
        late.join().unwrap();
        assert!(!GATE.is_closed() && GATE.inside.load(SeqCst) == 0);
    }
}
