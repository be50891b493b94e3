//! Conversion of signals that generated code causes to errors of its launch.
//!
//! Each worker has a [`Gate`]. While it is open, the thread runs generated code and nothing else. A stray
//! access, an illegal instruction or an interruption then makes the thread continue in its scheduler, as if
//! the fiber had switched there. The code is abandoned and never continued. Everywhere else signals go to the
//! previous handlers.
//!
//! **The gate is open only between a service's return and the next call of one, on a fiber's stack, with the
//! scheduler's context saved. After opening it, the stop flag is checked, so that an interruption is never
//! lost.**

use crate::fiber::{Context, land};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, compiler_fence};

/// Signals that faulty code raises.
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// Bytes of the stack of signal handlers. The frame of a signal holds all vector registers.
const HANDLER_STACK: usize = 64 << 10;

/// Returns the signal that interrupts workers.
fn interruption() -> c_int {
    libc::SIGRTMIN() + 7
}

/// Event that stopped generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaughtEvent {
    /// Signal at an address; `known` is true if the host reported the address.
    Signal { number: c_int, address: usize, known: bool },
    /// Stop flag of the launch.
    Interruption,
}

/// Border between generated code and the runtime, one for each worker.
#[derive(Debug)]
pub struct Gate {
    open: AtomicBool,
    /// Flag that tells code to stop; null if there is none.
    stop: AtomicPtr<AtomicU32>,
    /// Context of the scheduler while a fiber runs.
    pub(crate) scheduler: UnsafeCell<Context>,
    caught: UnsafeCell<Option<CaughtEvent>>,
}

thread_local! {
    /// Gate of this thread, if it is a worker.
    static GATE: Cell<*const Gate> = const { Cell::new(std::ptr::null()) };
}

impl Gate {
    pub fn new() -> Box<Gate> {
        Box::new(Gate {
            open: AtomicBool::new(false),
            stop: AtomicPtr::new(null_mut()),
            scheduler: UnsafeCell::new(null_mut()),
            caught: UnsafeCell::new(None),
        })
    }

    /// Opens the gate: generated code runs from here on.
    #[inline(always)]
    pub(crate) fn open(&self) {
        compiler_fence(Ordering::SeqCst);
        self.open.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Closes the gate: code of the runtime runs from here on.
    #[inline(always)]
    pub(crate) fn close(&self) {
        compiler_fence(Ordering::SeqCst);
        self.open.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Sets the stop flag. It must stay alive until the next call.
    pub(crate) fn watch(&self, stop: Option<&AtomicU32>) {
        self.stop.store(stop.map_or(null_mut(), |flag| std::ptr::from_ref(flag).cast_mut()), Ordering::Relaxed);
    }

    /// Returns whether code must stop.
    #[inline(always)]
    pub(crate) fn must_stop(&self) -> bool {
        let stop = self.stop.load(Ordering::Relaxed);
        // SAFETY: the caller of `watch` keeps the flag alive until it is replaced, on this same thread.
        !stop.is_null() && unsafe { (*stop).load(Ordering::Relaxed) } != 0
    }

    /// Takes the event that stopped the code that ran last.
    pub(crate) fn take_caught(&self) -> Option<CaughtEvent> {
        // SAFETY: written by this thread's handler, which has returned, or by `note`.
        unsafe { (*self.caught.get()).take() }
    }

    /// Records that code stops by itself.
    pub(crate) fn note(&self, caught: CaughtEvent) {
        // SAFETY: the gate is closed, so that no handler of this thread writes it.
        unsafe { *self.caught.get() = Some(caught) };
    }
}

/// Previous handlers, in the order of [`FAULTS`], followed by that of interruptions.
struct PreviousFaultHandlers(UnsafeCell<[MaybeUninit<libc::sigaction>; 5]>);
// SAFETY: written once before the handlers are installed, only read afterwards.
unsafe impl Sync for PreviousFaultHandlers {}
static PREVIOUS: PreviousFaultHandlers = PreviousFaultHandlers(UnsafeCell::new([const { MaybeUninit::uninit() }; 5]));

/// Registration of a thread as a worker: its faults go to its gate. Undone when dropped.
#[derive(Debug)]
pub struct Guard {
    stack: Vec<u8>,
    before: libc::stack_t,
}

/// Installs the handlers, once for the process, and the gate of this thread. The gate must live until the
/// guard is dropped.
pub fn guard(gate: &Gate) -> Guard {
    install();
    let mut stack = vec![0u8; HANDLER_STACK];
    let ours = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    let mut before = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: the stack lives in the guard, which restores the previous one before it frees it.
    unsafe { libc::sigaltstack(&ours, &mut before) };
    GATE.set(gate);
    let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised before it is used; unblocking the interruption touches this thread
    // alone.
    unsafe {
        libc::sigemptyset(mask.as_mut_ptr());
        libc::sigaddset(mask.as_mut_ptr(), interruption());
        for signal in FAULTS {
            libc::sigaddset(mask.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, mask.as_ptr(), null_mut());
    }
    Guard { stack, before }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GATE.set(std::ptr::null());
        // SAFETY: the previous stack is what the thread had; ours is not in use, since no handler runs.
        unsafe { libc::sigaltstack(&self.before, null_mut()) };
        self.stack.clear();
    }
}

/// Interrupts a worker: it checks its stop flag.
///
/// # Safety
///
/// The thread has not ended.
pub(crate) unsafe fn interrupt(thread: libc::pthread_t) {
    // SAFETY: the thread is alive, as the caller promises; the signal has a handler, or does nothing.
    unsafe { libc::pthread_kill(thread, interruption()) };
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (index, signal) in FAULTS.into_iter().chain([interruption()]).enumerate() {
            // SAFETY: `PREVIOUS` is written here, once, before the handler that reads it is installed; the
            // handler keeps to what handlers may do.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_signal as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
                // One signal at a time: a thread that is interrupted while it leaves generated code would
                // leave it twice.
                libc::sigemptyset(&mut action.sa_mask);
                for other in FAULTS.into_iter().chain([interruption()]) {
                    libc::sigaddset(&mut action.sa_mask, other);
                }
                let previous = (*PREVIOUS.0.get())[index].as_mut_ptr();
                libc::sigaction(signal, std::ptr::null(), previous);
                libc::sigaction(signal, &action, null_mut());
            }
        }
    });
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the third argument of a handler is the context that is restored when it returns.
    let pc = program_counter(unsafe { &mut *context.cast::<libc::ucontext_t>() });
    if signal != interruption()
        && let Some(recovery) = crate::probe::recovery(*pc as usize)
    {
        *pc = recovery as _;
        return;
    }
    let gate = GATE.get();
    // SAFETY: the gate of a worker lives as long as it is set.
    if let Some(gate) = unsafe { gate.as_ref() } {
        let interrupts = signal == interruption();
        if gate.open.load(Ordering::Relaxed) && (!interrupts || gate.must_stop()) {
            gate.close();
            // SAFETY: the kernel gives a valid description of a signal to its handler.
            let info = unsafe { &*info };
            gate.note(if interrupts {
                CaughtEvent::Interruption
            } else {
                // SAFETY: these signals carry an address.
                let address = unsafe { info.si_addr() } as usize;
                CaughtEvent::Signal { number: signal, address, known: info.si_code > 0 && info.si_code != libc::SI_KERNEL }
            });
            // SAFETY: the gate was open: the scheduler's context is saved and nothing else runs on it.
            unsafe { go_on_at(context, *gate.scheduler.get()) };
            return;
        }
        if interrupts {
            // The signal came too late; the stop flag is checked when the gate opens next.
            return;
        }
    }
    chain(signal, info, context);
}

/// Returns the program counter of an interrupted thread.
#[cfg(target_arch = "x86_64")]
fn program_counter(machine: &mut libc::ucontext_t) -> &mut libc::greg_t {
    &mut machine.uc_mcontext.gregs[libc::REG_RIP as usize]
}

#[cfg(target_arch = "aarch64")]
fn program_counter(machine: &mut libc::ucontext_t) -> &mut u64 {
    &mut machine.uc_mcontext.pc
}

/// Makes the interrupted thread continue in another context when the handler returns.
///
/// # Safety
///
/// `machine` is the handler's argument, `to` a saved context.
unsafe fn go_on_at(machine: *mut c_void, to: Context) {
    let landing = land as unsafe extern "C" fn() as usize;
    // SAFETY: the third argument of a handler is the context that is restored when it returns.
    unsafe {
        let machine = &mut *machine.cast::<libc::ucontext_t>();
        #[cfg(target_arch = "x86_64")]
        {
            machine.uc_mcontext.gregs[libc::REG_RSP as usize] = to as i64;
            machine.uc_mcontext.gregs[libc::REG_RIP as usize] = landing as i64;
        }
        #[cfg(target_arch = "aarch64")]
        {
            machine.uc_mcontext.sp = to as u64;
            machine.uc_mcontext.pc = landing as u64;
        }
    }
}

/// Passes a foreign signal to the previous handler.
fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = FAULTS.iter().position(|fault| *fault == signal).unwrap_or(FAULTS.len());
    // SAFETY: `PREVIOUS` was filled before this handler was installed.
    let previous = unsafe { (*PREVIOUS.0.get())[index].assume_init_ref() };
    match previous.sa_sigaction {
        libc::SIG_IGN if index == FAULTS.len() => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction is retried and ends the process as it would have without us. A foreign
            // interruption ends it as the default says.
            // SAFETY: restoring the default action of a signal.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, null_mut());
                if index == FAULTS.len() {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the installer used `SA_SIGINFO`, so it is a function of this type.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the installer did not use `SA_SIGINFO`, so it is a function of this type.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}
