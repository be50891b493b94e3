//! Signals that ask a process to end (SIGINT, SIGTERM, SIGHUP), for programs with work to do before.
//!
//! The handler records the signal in [`STOP`] and writes a byte to a pipe, which a thread waits for
//! ([`Signals::wait`]). Both are allowed in a handler. A second signal ends the process at once. **A signal
//! that the process ignores stays ignored, one that the process handles still reaches its handler, and a
//! forked child ends as if there were no handler.**

use broadloom_device::Stop;
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Signal that asked this process to end, if there was one.
pub static STOP: Stop = Stop::new();

const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Writing end of the pipe, for the handler.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// Process that the handlers were installed for.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// True if the first signal came from the terminal, which sends it to every process of the group.
static FROM_TERMINAL: AtomicBool = AtomicBool::new(false);

/// Earlier actions, in the order of [`SIGNALS`].
struct PreviousSignalActions(UnsafeCell<[MaybeUninit<libc::sigaction>; SIGNALS.len()]>);
// SAFETY: written once before the handlers are installed, only read afterwards.
unsafe impl Sync for PreviousSignalActions {}
static PREVIOUS: PreviousSignalActions = PreviousSignalActions(UnsafeCell::new([const { MaybeUninit::uninit() }; SIGNALS.len()]));

fn previous(signal: c_int) -> Option<&'static libc::sigaction> {
    let index = SIGNALS.iter().position(|known| *known == signal)?;
    // SAFETY: every element is written before the first handler is installed, and only handlers and code
    // after them call this.
    Some(unsafe { (*PREVIOUS.0.get())[index].assume_init_ref() })
}

/// Caught signals of this process.
#[derive(Debug)]
pub struct Signals {
    pipe: File,
}

/// Signal that asked the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSignal {
    /// Its number.
    pub signal: i32,
    /// True if the terminal sent it, to every process of the group.
    pub from_terminal: bool,
    /// True if it would have ended the process. Otherwise the process has its own handler, which was called.
    pub ends: bool,
}

/// Catches the signals from now on. Returns `None` if that was done before or is impossible.
pub fn catch() -> Option<Signals> {
    static ONCE: Once = Once::new();
    let mut signals = None;
    ONCE.call_once(|| signals = install().ok());
    signals
}

fn install() -> io::Result<Signals> {
    let (reader, writer) = io::pipe()?;
    let writer = writer.into_raw_fd();
    // SAFETY: changing the flags of a descriptor that is ours. A full pipe must not block a handler.
    unsafe { libc::fcntl(writer, libc::F_SETFL, libc::O_NONBLOCK) };
    PIPE.store(writer, Ordering::SeqCst);
    PROCESS.store(std::process::id() as i32, Ordering::SeqCst);
    for (index, signal) in SIGNALS.into_iter().enumerate() {
        // SAFETY: reading the action of a signal into a place that nothing else uses yet.
        unsafe { libc::sigaction(signal, std::ptr::null(), (*PREVIOUS.0.get())[index].as_mut_ptr()) };
    }
    for signal in SIGNALS {
        let Some(before) = previous(signal).filter(|before| before.sa_sigaction != libc::SIG_IGN) else { continue };
        // SAFETY: the handler keeps to what handlers may do, and what it reads has been written.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO
                | if before.sa_sigaction == libc::SIG_DFL { libc::SA_RESTART } else { before.sa_flags & !libc::SA_RESETHAND };
            action.sa_mask = before.sa_mask;
            libc::sigaction(signal, &action, null_mut());
        }
    }
    Ok(Signals { pipe: File::from(std::os::fd::OwnedFd::from(reader)) })
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the place of `errno` of this thread; the interrupted code must find it unchanged.
    let errno = unsafe { *libc::__errno_location() };
    let Some(before) = previous(signal) else { return };
    let handled = before.sa_sigaction != libc::SIG_DFL;
    // SAFETY: `getpid` has no conditions.
    let ours = unsafe { libc::getpid() } == PROCESS.load(Ordering::Relaxed);
    let first = ours && STOP.request(signal);
    if first {
        // SAFETY: the system gives a valid description of a signal to its handler.
        FROM_TERMINAL.store(unsafe { (*info).si_code } == libc::SI_KERNEL, Ordering::SeqCst);
        let byte = [signal as u8];
        // SAFETY: one byte of a live array to a descriptor that is never closed.
        unsafe { libc::write(PIPE.load(Ordering::Relaxed), byte.as_ptr().cast(), 1) };
    } else if !handled {
        default_action(signal);
    }
    if handled {
        // SAFETY: the program installed a function of the type that its flags name.
        unsafe {
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = std::mem::transmute(before.sa_sigaction);
                handler(signal, info, context);
            } else {
                let handler: extern "C" fn(c_int) = std::mem::transmute(before.sa_sigaction);
                handler(signal);
            }
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Restores the default action of a signal and raises it.
fn default_action(signal: c_int) {
    // SAFETY: restoring the default action and raising a signal, both allowed in a handler; the signal comes
    // once it is not blocked.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &action, null_mut());
        libc::raise(signal);
    }
}

/// Returns whether the terminal sent the first signal, to every process of the group.
pub(crate) fn from_terminal() -> bool {
    FROM_TERMINAL.load(Ordering::SeqCst)
}

/// Flag of a SIGINT that nobody has cleared; see [`catch_interrupts`].
static INTERRUPT: Stop = Stop::new();
/// Signals that came while the flag was set.
static UNSEEN: AtomicI32 = AtomicI32::new(0);

/// Lets SIGINT set a flag from now on, for commands that end a piece of work and go on. Whoever handles the interrupt
/// clears the flag. The third signal while it is set ends the process.
pub fn catch_interrupts() -> &'static Stop {
    // SAFETY: the handler keeps to what handlers may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_interrupt as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGINT, &action, null_mut());
    }
    &INTERRUPT
}

extern "C" fn on_interrupt(signal: c_int) {
    if INTERRUPT.request(signal) {
        UNSEEN.store(0, Ordering::SeqCst);
    } else if UNSEEN.fetch_add(1, Ordering::SeqCst) >= 1 {
        default_action(signal);
    }
}

/// True if this process ignores SIGXFSZ because of [`ignore_file_size`].
static IGNORES_FILE_SIZE: AtomicBool = AtomicBool::new(false);

/// Ignores SIGXFSZ, unless the process was started so. A write beyond the size limit of files (`ulimit -f`)
/// then fails with an error, instead of ending the process.
pub fn ignore_file_size() {
    // SAFETY: changing the action of a signal to one without a handler.
    unsafe {
        if libc::signal(libc::SIGXFSZ, libc::SIG_IGN) == libc::SIG_DFL {
            IGNORES_FILE_SIZE.store(true, Ordering::SeqCst);
        }
    }
}

/// Lets a program start with the action of SIGXFSZ that this process was started with.
pub fn restore_file_size(command: &mut Command) {
    if IGNORES_FILE_SIZE.load(Ordering::SeqCst) {
        let restore = || {
            // SAFETY: `signal` is allowed between `fork` and `exec`.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
            Ok(())
        };
        // SAFETY: the closure does nothing but the call above, and allocates nothing.
        unsafe { command.pre_exec(restore) };
    }
}

/// Runs code of a library that writes a file of its own. A write beyond the size limit of files fails with an
/// error there, and the program gets no SIGXFSZ for it.
pub fn without_file_size_signal<T>(work: impl FnOnce() -> T) -> T {
    let _blocked = BlockedFileSize::new();
    work()
}

/// SIGXFSZ, blocked in this thread until the value is dropped.
struct BlockedFileSize {
    only: libc::sigset_t,
    before: libc::sigset_t,
    /// True if the signal was pending before, so that it belongs to the program.
    was_pending: bool,
}

impl BlockedFileSize {
    fn new() -> BlockedFileSize {
        // SAFETY: the sets are initialised by the calls, and the mask is that of this thread.
        unsafe {
            let (mut only, mut before, mut pending): (libc::sigset_t, libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigemptyset(&mut only);
            libc::sigaddset(&mut only, libc::SIGXFSZ);
            libc::sigemptyset(&mut before);
            libc::pthread_sigmask(libc::SIG_BLOCK, &only, &mut before);
            libc::sigemptyset(&mut pending);
            libc::sigpending(&mut pending);
            BlockedFileSize { only, before, was_pending: libc::sigismember(&pending, libc::SIGXFSZ) == 1 }
        }
    }
}

impl Drop for BlockedFileSize {
    fn drop(&mut self) {
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the sets are initialised. The kernel sends the signal to the thread that writes, so this thread takes
        // its own.
        unsafe {
            if !self.was_pending {
                libc::sigtimedwait(&self.only, null_mut(), &none);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut());
        }
    }
}

/// Ends the process at once with an exit code, without waiting for threads and without destructors.
pub fn leave(code: u8) -> ! {
    // SAFETY: `_exit` has no conditions.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Ends the process by a signal, so that its parent sees the reason.
pub fn end_by(signal: i32) -> ! {
    default_action(signal);
    std::process::exit(128 + signal)
}

impl Signals {
    /// Waits for the first signal.
    pub fn wait(&mut self) -> Option<ReceivedSignal> {
        let mut byte = [0];
        self.pipe.read_exact(&mut byte).ok()?;
        let signal = c_int::from(byte[0]);
        let ends = previous(signal).is_some_and(|before| before.sa_sigaction == libc::SIG_DFL);
        Some(ReceivedSignal { signal, from_terminal: from_terminal(), ends })
    }
}
