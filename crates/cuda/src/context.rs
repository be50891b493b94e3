//! Context of a GPU. The process has one per GPU, shared by all users, and it can be lost.
//!
//! A kernel with an invalid access destroys the whole context: the driver then answers every call with the
//! same error. The first failing call reports the cause and, if known, the kernel. From then on the context
//! is *lost*: every call reports only that, and **no handle of it is passed to the driver any more**, because
//! its handles are invalid. Opening the GPU again resets it and creates a new context, or reports that the
//! driver refuses one to this process, as current drivers do.

use crate::driver::{CallResult, Driver, FailedCall};
use crate::ffi::{Code, ContextHandle, StreamHandle, code};
use crate::journal::Journal;
use broadloom_device::{Error, Fault, FaultKind, Result};
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Maximum number of suspected kernels in a message.
const MOST_NAMED: usize = 8;

/// Reason for the loss of a context.
#[derive(Debug)]
struct Loss {
    reason: String,
    /// True if a kernel still runs and cannot be stopped.
    stuck: bool,
}

/// Context of a GPU.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) driver: Arc<Driver>,
    pub(crate) device: c_int,
    /// Name of the device, such as `cuda:0`.
    pub(crate) name: String,
    pub(crate) handle: ContextHandle,
    loss: OnceLock<Loss>,
    /// True once it is lost. The next opening of the GPU reads it after this context is gone.
    was_lost: Arc<AtomicBool>,
    /// Records of the launches of each stream.
    journals: Mutex<Vec<Weak<Journal>>>,
    /// True once the heap of kernels, or the stack for deep calls, has been set up.
    pub(crate) heap_is_set: AtomicBool,
    pub(crate) stack_is_set: AtomicBool,
}

/// State of a GPU in this process.
#[derive(Debug, Default)]
struct Slot {
    context: Weak<Context>,
    /// Stream of the kernel that cannot be stopped, if any. It is never destroyed.
    stuck: Option<StreamHandle>,
    was_lost: Arc<AtomicBool>,
}

type Slots = HashMap<(String, u32), Slot>;

fn slots() -> MutexGuard<'static, Slots> {
    static SLOTS: OnceLock<Mutex<Slots>> = OnceLock::new();
    SLOTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// Returns the context of a GPU, and creates one if there is none or it was lost.
    pub(crate) fn open(driver: &Arc<Driver>, ordinal: u32) -> Result<Arc<Context>> {
        let name = format!("cuda:{ordinal}");
        let not_here = |reason: String| Error::NotHere { device: name.clone(), reason };
        let told = |failed: FailedCall| not_here(driver.describe(failed));
        let count = driver.device_count().map_err(told)?;
        if ordinal >= count {
            let reason = match count {
                0 => format!("the driver `{}` sees no GPU", driver.library),
                1 => format!("the driver `{}` sees one GPU, `cuda:0`", driver.library),
                count => format!("the driver `{}` sees {count} GPUs, `cuda:0` to `cuda:{}`", driver.library, count - 1),
            };
            return Err(not_here(reason));
        }
        let mut slots = slots();
        let slot = slots.entry((driver.library.clone(), ordinal)).or_default();
        let before = slot.context.upgrade();
        if let Some(context) = &before
            && !context.is_lost()
        {
            return Ok(context.clone());
        }
        let device = driver.device(ordinal).map_err(told)?;
        // A reset would wait for the kernel, possibly forever.
        if slot.stuck.is_some_and(|stream| driver.query_stream(stream) == Ok(false)) {
            return Err(not_here("a kernel that did not end in time still runs on it".to_owned()));
        }
        if slot.was_lost.load(Ordering::SeqCst) {
            driver.reset_context(device).map_err(told)?;
        }
        let handle = driver.retain_context(device).map_err(|failed| {
            // Some drivers refuse a process a new context once one was lost.
            let again = if is_fatal(failed.code) {
                "; the driver gives this process no new context, start the program again"
            } else {
                ""
            };
            not_here(format!("{}{again}", driver.describe(failed)))
        })?;
        let context = Arc::new(Context {
            driver: driver.clone(),
            device,
            name: name.clone(),
            handle,
            loss: OnceLock::new(),
            was_lost: Arc::default(),
            journals: Mutex::default(),
            heap_is_set: AtomicBool::new(false),
            stack_is_set: AtomicBool::new(false),
        });
        *slot = Slot { context: Arc::downgrade(&context), stuck: None, was_lost: context.was_lost.clone() };
        Ok(context)
    }

    /// Tests if the context is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.loss.get().is_some()
    }

    /// Tests if a kernel runs that cannot be stopped. Memory that it may access must stay allocated.
    pub(crate) fn is_stuck(&self) -> bool {
        self.loss.get().is_some_and(|loss| loss.stuck)
    }

    /// Returns an error if the context is lost.
    pub(crate) fn alive(&self) -> Result<()> {
        match self.loss.get() {
            None => Ok(()),
            Some(loss) => Err(self.lost(loss)),
        }
    }

    fn lost(&self, loss: &Loss) -> Error {
        Error::Lost { device: self.name.clone(), reason: loss.reason.clone() }
    }

    /// Makes the context current in this thread.
    #[inline]
    pub(crate) fn enter(&self) -> Result<()> {
        self.alive()?;
        self.checked(self.driver.set_current(self.handle))
    }

    /// Makes the context current in order to release resources. Returns false if the context is lost. A
    /// resource that is not released now never will be, so a failing call is repeated once.
    pub(crate) fn enter_to_release(&self) -> bool {
        !self.is_lost() && (0..2).any(|_| self.driver.set_current(self.handle).is_ok())
    }

    /// Converts a driver result to a device error.
    #[inline]
    pub(crate) fn checked<T>(&self, called: CallResult<T>) -> Result<T> {
        called.map_err(|failed| self.error(failed))
    }

    /// Returns the value of a call, or `None` if it failed without losing the context.
    pub(crate) fn unless_lost<T>(&self, called: CallResult<T>) -> Result<Option<T>> {
        match called {
            Ok(value) => Ok(Some(value)),
            Err(failed) => {
                let error = self.error(failed);
                if self.is_lost() { Err(error) } else { Ok(None) }
            }
        }
    }

    /// Converts a failed call to an error, and marks the context as lost if the error is fatal.
    #[cold]
    pub(crate) fn error(&self, failed: FailedCall) -> Error {
        if is_fatal(failed.code) {
            return self.lose(failed);
        }
        if let Some(loss) = self.loss.get() {
            return self.lost(loss);
        }
        Error::Driver { call: failed.call, code: failed.code, message: self.driver.code_text(failed.code) }
    }

    /// Adds the record of launches of a new stream.
    pub(crate) fn add_journal(&self, journal: &Arc<Journal>) {
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        journals.retain(|journal| journal.strong_count() > 0);
        journals.push(Arc::downgrade(journal));
    }

    /// Returns the kernels that may have been running, newest last, without duplicates.
    fn suspects(&self) -> Vec<Arc<str>> {
        let journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut suspects: Vec<Arc<str>> = vec![];
        for journal in journals.iter().filter_map(Weak::upgrade) {
            for kernel in journal.suspects() {
                if !suspects.contains(&kernel) {
                    suspects.push(kernel);
                }
            }
        }
        suspects
    }

    #[cold]
    fn lose(&self, failed: FailedCall) -> Error {
        let (code, suspects) = (failed.code, self.suspects());
        let text = self.driver.code_text(code);
        let (kernel, reason) = match suspects.as_slice() {
            [] => (None, format!("{} gave {text}", failed.call)),
            [kernel] => (Some(kernel.to_string()), format!("kernel `{kernel}`: {text}")),
            several => {
                let named: Vec<String> = several.iter().rev().take(MOST_NAMED).map(|kernel| format!("`{kernel}`")).collect();
                let more = if several.len() > MOST_NAMED { " or another" } else { "" };
                let names = format!("{}{more}", named.join(" or "));
                (Some(names.replace('`', "")), format!("kernel {names}: {text}"))
            }
        };
        if let Err(lost) = self.set_lost(Loss { reason: reason.clone(), stuck: false }) {
            return lost;
        }
        match (kernel, fault_kind(code)) {
            (Some(kernel), Some(kind)) => {
                let several =
                    if suspects.len() > 1 { "; it is one of those under way, and BROADLOOM_CUDA_SYNC=1 tells which" } else { "" };
                let message = format!("{}: {text}; the device is lost{several}", sentence(kind));
                fault(kind, kernel, message)
            }
            (_, _) => Error::Lost { device: self.name.clone(), reason },
        }
    }

    /// Marks the context as lost. Returns an error if it was lost before.
    fn set_lost(&self, loss: Loss) -> std::result::Result<(), Error> {
        self.was_lost.store(true, Ordering::SeqCst);
        self.loss.set(loss).map_err(|loss| self.lost(self.loss.get().unwrap_or(&loss)))
    }

    /// Marks the context as lost by a kernel of a stream that did not end in time and cannot be stopped.
    pub(crate) fn give_up(&self, journal: &Journal, stream: StreamHandle, limit: Duration) -> Error {
        let kernel = journal.suspects().last().map_or_else(|| "?".to_owned(), |kernel| kernel.to_string());
        let reason = format!("kernel `{kernel}` did not end within {limit:?}, and a GPU cannot stop it");
        if let Err(lost) = self.set_lost(Loss { reason, stuck: true }) {
            return lost;
        }
        let mut slots = slots();
        let slot = slots.values_mut().find(|slot| std::ptr::eq(slot.context.as_ptr(), self));
        if let Some(slot) = slot {
            slot.stuck = Some(stream);
        }
        fault(FaultKind::TimeLimit, kernel, format!("it did not end within {limit:?}; the device is lost"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Releasing a context waits for its kernels.
        if !self.is_stuck() {
            let _ = self.driver.release_context(self.device);
        }
    }
}

fn fault(kind: FaultKind, kernel: String, message: String) -> Error {
    Fault {
        kind,
        message,
        kernel,
        function: None,
        block: None,
        thread: None,
        instruction: None,
        span: None,
        source: None,
        address: None,
    }
    .into()
}

/// Tests if a result means that the context is unusable.
fn is_fatal(code: Code) -> bool {
    let machine = [
        code::DEINITIALIZED,
        code::NOT_INITIALIZED,
        code::ECC_UNCORRECTABLE,
        code::NVLINK_UNCORRECTABLE,
        code::CONTEXT_IS_DESTROYED,
    ];
    fault_kind(code).is_some() || machine.contains(&code)
}

/// Returns the kind of fault that a driver result reports.
fn fault_kind(code: Code) -> Option<FaultKind> {
    match code {
        code::ILLEGAL_ADDRESS => Some(FaultKind::OutOfBounds),
        code::MISALIGNED_ADDRESS => Some(FaultKind::Misaligned),
        code::INVALID_ADDRESS_SPACE => Some(FaultKind::WrongSpace),
        code::ASSERT => Some(FaultKind::Assert),
        code::HARDWARE_STACK_ERROR => Some(FaultKind::StackOverflow),
        code::ILLEGAL_INSTRUCTION | code::LAUNCH_FAILED => Some(FaultKind::Trap),
        code::INVALID_PC => Some(FaultKind::BadCall),
        code::LAUNCH_TIMEOUT => Some(FaultKind::TimeLimit),
        _ => None,
    }
}

fn sentence(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::OutOfBounds => "an access outside of all memory",
        FaultKind::Misaligned => "an access whose address is not a multiple of its size",
        FaultKind::WrongSpace => "an access through an address of another state space",
        FaultKind::Assert => "a failed assertion",
        FaultKind::StackOverflow => "too deep a stack",
        FaultKind::Trap => "a trap",
        FaultKind::BadCall => "a call of something that is not a function",
        FaultKind::TimeLimit => "the driver's time limit",
        FaultKind::UseAfterFree | FaultKind::BadFree | FaultKind::Deadlock => "a fault",
        FaultKind::BadBarrier | FaultKind::Unsupported | FaultKind::Interrupted => "a fault",
    }
}
