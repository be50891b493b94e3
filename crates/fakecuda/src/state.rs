//! State of the fake driver: GPUs, contexts, and their objects by handle.
//!
//! A handle is never reused. **Nothing waits while the state is locked:** code that waits for work first
//! copies what it needs.

use crate::code::{self, Code, Outcome, code_of};
use crate::faults;
use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Backend, Device, Error, EventId, LoadedModule, Sequence, Step, Stream};
use broadloom_ptx::Func;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Number of GPUs of this driver.
pub(crate) const GPUS: usize = 2;

/// Object in a context.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Module(Arc<dyn LoadedModule>, Arc<broadloom_ptx::Verified>),
    /// Kernel of a module: the module's handle, and the dynamic shared memory that it may use.
    Function {
        module: usize,
        loaded: Arc<dyn LoadedModule>,
        kernel: Func,
        granted: u32,
    },
    /// Stream: number of pieces of work so far, and the event recorded after some of them.
    Stream {
        stream: Stream,
        given: u64,
        probe: Option<(EventId, u64)>,
    },
    /// Event, with a flag for having been recorded.
    Event {
        event: EventId,
        recorded: bool,
    },
    /// A graph under construction.
    Graph {
        steps: Vec<Step>,
        nodes: Vec<usize>,
    },
    /// Instantiated graph.
    Exec(Arc<dyn Sequence>),
    /// Linker with its image, if complete. The image stays in place as long as the linker lives.
    Link(Option<Arc<[u8]>>),
    /// cuBLAS handle, with its driver stream.
    Blas {
        stream: usize,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Gpu {
    /// CPU device, created on first use and kept: its compiled code serves every context.
    pub(crate) device: Option<Device>,
    /// Number of references to the primary context.
    pub(crate) retains: u64,
    /// Code that every call returns until the context is reset.
    pub(crate) poison: Option<Code>,
    pub(crate) objects: HashMap<usize, Object>,
    /// Allocations: address and size.
    pub(crate) memory: HashMap<u64, usize>,
    pub(crate) pinned: HashMap<usize, usize>,
}

impl Gpu {
    fn alive(&self) -> u64 {
        let objects = self.objects.values().filter(|object| !matches!(object, Object::Function { .. })).count();
        (objects + self.memory.len() + self.pinned.len()) as u64
    }

    /// Ends the context and releases everything in it.
    pub(crate) fn end(&mut self) {
        let Some(device) = &self.device else { return };
        let backend = device.backend();
        // Errors of remaining work are ignored.
        let _ = backend.synchronise();
        for object in std::mem::take(&mut self.objects).into_values() {
            release(backend.as_ref(), object);
        }
        for address in std::mem::take(&mut self.memory).into_keys() {
            let _ = backend.free(address);
        }
        self.pinned.clear();
        self.poison = None;
    }

    /// Ends the context after its last release. Objects that a healthy context still holds are leaks.
    pub(crate) fn end_released(&mut self) {
        if self.poison.is_none() {
            faults::leaked(self.alive());
        }
        self.end();
    }
}

/// Releases an object's resources of the CPU device.
pub(crate) fn release(backend: &dyn Backend, object: Object) {
    match object {
        Object::Stream { stream, probe, .. } => {
            let _ = backend.destroy_stream(stream);
            if let Some((event, _)) = probe {
                let _ = backend.destroy_event(event);
            }
        }
        Object::Event { event, .. } => {
            let _ = backend.destroy_event(event);
        }
        Object::Module(..)
        | Object::Function { .. }
        | Object::Graph { .. }
        | Object::Exec(_)
        | Object::Link(_)
        | Object::Blas { .. } => {}
    }
}

/// Global state.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) initialised: bool,
    pub(crate) gpus: [Gpu; GPUS],
    next: usize,
}

/// Locks and returns the state.
pub(crate) fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Returns a new handle.
    pub(crate) fn handle(&mut self) -> usize {
        self.next += 1;
        0xfa_0000 + 16 * self.next
    }

    pub(crate) fn alive(&self) -> u64 {
        self.gpus.iter().map(|gpu| gpu.alive() + gpu.retains).sum()
    }

    pub(crate) fn describe(&self) -> String {
        let count =
            |is: fn(&Object) -> bool| self.gpus.iter().flat_map(|gpu| gpu.objects.values()).filter(|object| is(object)).count();
        let gpus = &self.gpus;
        format!(
            "{} contexts, {} allocations, {} pinned, {} streams, {} events, {} modules, {} graphs, {} linkers alive",
            gpus.iter().map(|gpu| gpu.retains).sum::<u64>(),
            gpus.iter().map(|gpu| gpu.memory.len()).sum::<usize>(),
            gpus.iter().map(|gpu| gpu.pinned.len()).sum::<usize>(),
            count(|object| matches!(object, Object::Stream { .. })),
            count(|object| matches!(object, Object::Event { .. })),
            count(|object| matches!(object, Object::Module(..))),
            count(|object| matches!(object, Object::Graph { .. } | Object::Exec(_))),
            count(|object| matches!(object, Object::Link(_))),
        )
    }
}

thread_local! {
    /// GPU of the current context.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Makes the context of a GPU current.
pub(crate) fn set_current(gpu: Option<usize>) {
    CURRENT.set(gpu);
}

/// Returns the GPU of the current context, or the poison code of a poisoned one.
pub(crate) fn current() -> Outcome<usize> {
    let index = CURRENT.get().ok_or(code::INVALID_CONTEXT)?;
    let state = state();
    let gpu = state.gpus.get(index).filter(|gpu| gpu.retains > 0).ok_or(code::INVALID_CONTEXT)?;
    gpu.poison.map_or(Ok(index), Err)
}

/// Returns the CPU device of a GPU.
pub(crate) fn device(index: usize) -> Outcome<Device> {
    let mut state = state();
    let gpu = state.gpus.get_mut(index).ok_or(code::INVALID_DEVICE)?;
    if let Some(device) = &gpu.device {
        return Ok(device.clone());
    }
    let options = Options {
        threads: 2,
        memory_bytes: 1 << 30,
        cache: CacheFolder::Nowhere,
        output: Arc::new(|text| printed().extend_from_slice(text)),
        ..Options::default()
    };
    let device = Device::new(Cpu::new(options).map_err(|_| code::OUT_OF_MEMORY)?);
    gpu.device = Some(device.clone());
    Ok(device)
}

/// Returns the pending output of kernels.
fn printed() -> MutexGuard<'static, Vec<u8>> {
    static PRINTED: Mutex<Vec<u8>> = Mutex::new(vec![]);
    PRINTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the output of kernels to standard output, as the driver does when it is synchronised.
pub(crate) fn show_printed() {
    let text = std::mem::take(&mut *printed());
    // SAFETY: writes the bytes of a slice.
    unsafe { libc::write(libc::STDOUT_FILENO, text.as_ptr().cast(), text.len()) };
}

/// Converts the result of work. A fault poisons the context.
pub(crate) fn judged<T>(gpu: usize, outcome: Result<T, Error>) -> Outcome<T> {
    outcome.map_err(|error| {
        let code = code_of(&error);
        poison(gpu, code);
        code
    })
}

/// Poisons a context if a GPU does not recover from the code.
pub(crate) fn poison(gpu: usize, code: Code) {
    if code::is_fatal(code)
        && let Some(gpu) = state().gpus.get_mut(gpu)
        && gpu.retains > 0
    {
        gpu.poison.get_or_insert(code);
    }
}

/// Runs one call: counts it, makes it fail on request, and converts panics to a code.
pub(crate) fn call(name: &'static str, act: impl FnOnce() -> Outcome) -> Code {
    if let Some(code) = faults::enter(name) {
        if let Some(gpu) = CURRENT.get() {
            poison(gpu, code);
        }
        return code;
    }
    run(act)
}

/// Runs a call that releases something, which it does even if it is to fail.
pub(crate) fn giving_back(name: &'static str, act: impl FnOnce() -> Outcome) -> Code {
    let fails = faults::enter(name);
    let outcome = run(act);
    if let (Some(code), Some(gpu)) = (fails, CURRENT.get()) {
        poison(gpu, code);
    }
    fails.unwrap_or(outcome)
}

fn run(act: impl FnOnce() -> Outcome) -> Code {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code,
        Err(_) => {
            faults::violation("a call panicked".to_owned());
            code::UNKNOWN
        }
    }
}

/// Returns an object of the current context. A missing object is a violation.
pub(crate) fn object(handle: usize, what: &str) -> Outcome<(usize, Object)> {
    let gpu = current()?;
    match state().gpus[gpu].objects.get(&handle) {
        Some(object) => Ok((gpu, object.clone())),
        None => {
            faults::violation(format!("{what} {handle:#x} is not there"));
            Err(code::INVALID_HANDLE)
        }
    }
}

/// Adds an object and returns its handle.
pub(crate) fn enter(gpu: usize, object: Object) -> usize {
    let mut state = state();
    let handle = state.handle();
    state.gpus[gpu].objects.insert(handle, object);
    handle
}

/// Removes an object. A missing object is a violation.
pub(crate) fn remove(handle: usize, what: &str) -> Outcome {
    let (gpu, object) = object(handle, what)?;
    state().gpus[gpu].objects.remove(&handle);
    release(device(gpu)?.backend().as_ref(), object);
    Ok(())
}

/// Returns the stream of a handle and counts one more piece of work.
pub(crate) fn stream(handle: usize) -> Outcome<(usize, Stream)> {
    let (gpu, object) = object(handle, "stream")?;
    let Object::Stream { stream, .. } = object else { return Err(code::INVALID_HANDLE) };
    if let Some(Object::Stream { given, .. }) = state().gpus[gpu].objects.get_mut(&handle) {
        *given += 1;
    }
    Ok((gpu, stream))
}
