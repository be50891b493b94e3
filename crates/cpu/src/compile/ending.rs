//! Threads that are inside of LLVM while another ends the process.
//!
//! LLVM keeps tables in static variables, and `exit` destroys them although other threads go on: one that is compiling then runs into what is no
//! more. So the main thread first waits for those that are inside, which is at most as long as their kernels compile, and none enters behind it.
//! It must do so before anything else that `exit` does, since tables are destroyed in the reverse order of their making and the last may have been
//! made a moment ago: first of all come the destructors of the thread's own variables.
//!
//! Where another thread than the first calls `exit`, nothing of the kind is told to us but by `atexit`: late for tables that are younger.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};
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
        }
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
    extern "C" fn at_exit() {
        PROCESS.close();
    }
    // Only the thread that forks is in the new process.
    extern "C" fn in_child() {
        PROCESS.inside.store(DEPTH.get(), SeqCst);
    }
    // SAFETY: both are functions of this library, which is never unloaded once it has started threads.
    ONCE.call_once(|| unsafe {
        libc::atexit(at_exit);
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

    /// Lets nobody else in, and waits until all others are out.
    fn close(&self) {
        self.closed_by.store(this_thread(), SeqCst);
        // Where LLVM itself gives up, this thread is inside.
        while self.inside.load(SeqCst) > DEPTH.get() {
            std::thread::sleep(Duration::from_millis(1));
        }
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
