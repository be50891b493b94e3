//! Recording of calls of NVIDIA's functions as spans of a trace.
//!
//! Of nested calls only the outermost is recorded: a statically linked runtime calls the driver. Some calls
//! get special treatment. Launches are timed. Calls that wait for the GPU also collect times. Calls that name
//! a kernel store the name. A lookup of a driver function by name returns this library's symbol, so that
//! later calls come here.

use super::frame::{Frame, RecordedCall};
use super::library;
use super::timing::{self, TimedLaunch};
use crate::functions::{FUNCTIONS, exported_at};
use crate::pointer::{In, Out, Text};
use crate::tell::tell;
use crate::types::LaunchConfig;
use broadloom_device::trace::{Span, shape, span};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

/// Special treatment of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Plain,
    /// Launch, with the positions of its parameters.
    Launch(ParameterPositions),
    /// Waits for the GPU.
    Wait,
    /// Invalidates events.
    Reset,
    /// Registers the kernel name of a host function.
    Register,
    /// Returns a handle of a kernel by name.
    Named,
    /// Returns another handle of a known kernel.
    Renamed,
    /// Returns a driver function by name.
    ByName,
}

/// Positions of a launch's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParameterPositions {
    /// Kernel, two `dim3`, arguments, shared memory, stream.
    Runtime,
    /// Kernel, six sizes, shared memory, stream.
    Driver,
    /// Configuration, kernel.
    Config,
    /// Graph, stream.
    Graph,
}

fn role(name: &str) -> Role {
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    match name {
        "cudaLaunchKernel" | "__cudaLaunchKernel" | "cudaLaunchCooperativeKernel" => Role::Launch(ParameterPositions::Runtime),
        "cuLaunchKernel" | "cuLaunchCooperativeKernel" => Role::Launch(ParameterPositions::Driver),
        "cudaLaunchKernelExC" | "cuLaunchKernelEx" => Role::Launch(ParameterPositions::Config),
        "cudaGraphLaunch" | "cuGraphLaunch" => Role::Launch(ParameterPositions::Graph),
        "cudaDeviceSynchronize"
        | "cudaThreadSynchronize"
        | "cudaStreamSynchronize"
        | "cudaEventSynchronize"
        | "cudaMemcpy"
        | "cuCtxSynchronize"
        | "cuStreamSynchronize"
        | "cuEventSynchronize"
        | "cuMemcpyDtoH_v2" => Role::Wait,
        "cudaDeviceReset"
        | "cudaThreadExit"
        | "cuCtxDestroy"
        | "cuCtxDestroy_v2"
        | "cuDevicePrimaryCtxReset"
        | "cuDevicePrimaryCtxReset_v2"
        | "cuDevicePrimaryCtxRelease"
        | "cuDevicePrimaryCtxRelease_v2" => Role::Reset,
        "__cudaRegisterFunction" => Role::Register,
        "cuModuleGetFunction" | "cuLibraryGetKernel" | "cudaLibraryGetKernel" => Role::Named,
        "__cudaGetKernel" | "cudaGetKernel" | "cudaGetFuncBySymbol" | "cuKernelGetFunction" => Role::Renamed,
        "cuGetProcAddress" | "cuGetProcAddress_v2" | "cudaGetDriverEntryPoint" | "cudaGetDriverEntryPointByVersion" => {
            Role::ByName
        }
        _ => Role::Plain,
    }
}

fn role_at(index: usize) -> Role {
    static ROLES: OnceLock<Vec<Role>> = OnceLock::new();
    ROLES.get_or_init(|| FUNCTIONS.iter().map(|function| role(function.name)).collect())[index]
}

/// Returns the kernel names by handle or host function.
fn names() -> MutexGuard<'static, HashMap<usize, String>> {
    static NAMES: OnceLock<Mutex<HashMap<usize, String>>> = OnceLock::new();
    NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Nesting depth of the calls of this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work`. A panic is reported once, and the program's call continues.
fn guarded(work: impl FnOnce()) {
    static TOLD: Once = Once::new();
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        TOLD.call_once(|| {
            tell("what happens on the GPU is not recorded as a whole; this is a fault of Broadloom, please report it")
        });
    }
}

/// Starts a call. Returns its target.
pub(super) extern "C" fn enter(frame: &mut Frame) -> *const () {
    let function = library::of(FUNCTIONS[frame.index].library).and_then(|library| library.find(frame.index));
    let depth = DEPTH.replace(DEPTH.get() + 1);
    if depth == 0 {
        guarded(|| begin(frame));
    }
    function.unwrap_or(library::missing as *const ())
}

/// Ends a call.
pub(super) extern "C" fn leave(frame: &mut Frame) {
    if let Some(open) = frame.open.take() {
        guarded(|| end(frame, *open));
    }
    DEPTH.set(DEPTH.get().saturating_sub(1));
}

fn begin(frame: &mut Frame) {
    let function = &FUNCTIONS[frame.index];
    let mut span = span(function.name);
    let timed = match role_at(frame.index) {
        Role::Launch(parts) => launch(frame, parts, function.library, function.name.ends_with("_ptsz"), &mut span),
        Role::Reset => {
            timing::reset();
            None
        }
        Role::Plain | Role::Wait | Role::Register | Role::Named | Role::Renamed | Role::ByName => None,
    };
    frame.open = Some(Box::new(RecordedCall { span, timed }));
}

/// Starts timing a launch.
fn launch(
    frame: &Frame,
    parts: ParameterPositions,
    library: &'static str,
    per_thread: bool,
    span: &mut Span,
) -> Option<TimedLaunch> {
    let dim3 = |place: usize| [frame.word(place) as u32, (frame.word(place) >> 32) as u32, frame.word(place + 1) as u32];
    let three = |place: usize| [0, 1, 2].map(|axis| frame.word(place + axis) as u32);
    let (kernel, shapes, stream) = match parts {
        ParameterPositions::Runtime => (frame.word(0), Some((dim3(1), dim3(3))), frame.word(7)),
        ParameterPositions::Driver => (frame.word(0), Some((three(1), three(4))), frame.word(8)),
        ParameterPositions::Config => {
            let config = In::<LaunchConfig>::at(frame.word(0)).get().ok()?;
            (frame.word(1), Some((config.grid.list(), config.block.list())), config.stream)
        }
        ParameterPositions::Graph => (0, None, frame.word(1)),
    };
    let name = match parts {
        ParameterPositions::Graph => "graph".to_owned(),
        ParameterPositions::Runtime | ParameterPositions::Driver | ParameterPositions::Config => {
            names().get(&kernel).cloned().unwrap_or_else(|| "kernel".to_owned())
        }
    };
    span.note("kernel", name.as_str());
    let mut notes = vec![];
    if let Some((grid, block)) = shapes {
        notes = vec![("grid", shape(grid)), ("block", shape(block))];
    }
    // For programs with a per-thread default stream, stream 0 is the thread's own.
    let stream = if stream == 0 && per_thread { 2 } else { stream };
    timing::begin(library, stream, name, notes)
}

fn end(frame: &mut Frame, open: RecordedCall) {
    static AT_FIRST_CALL: Once = Once::new();
    static AT_FIRST_LAUNCH: Once = Once::new();
    let RecordedCall { span, timed } = open;
    drop(span);
    let name = FUNCTIONS[frame.index].name;
    let good = frame.result[0] as u32 == 0;
    // NVIDIA's library may have registered an exit handler during these calls, and ours must run before it.
    if !name.starts_with("__cudaRegister") {
        AT_FIRST_CALL.call_once(crate::tracing::write_first);
    }
    if let Some(timed) = timed {
        timing::end(timed, good);
        AT_FIRST_LAUNCH.call_once(crate::tracing::write_first);
    }
    let known = |place: usize| names().get(&place).cloned();
    let given = || Out::<usize>::at(frame.word(0)).get().ok();
    match role_at(frame.index) {
        Role::Plain | Role::Launch(_) | Role::Reset => {}
        Role::Wait if good => timing::collect(),
        Role::Register => {
            if let Ok(name) = Text::at(frame.word(3)).get() {
                names().insert(frame.word(1), name);
            }
        }
        Role::Named if good => {
            if let (Some(handle), Ok(name)) = (given(), Text::at(frame.word(2)).get()) {
                names().insert(handle, name);
            }
        }
        Role::Renamed if good => {
            if let (Some(handle), Some(name)) = (given(), known(frame.word(1))) {
                names().insert(handle, name);
            }
        }
        Role::ByName if good => {
            let place = Out::<usize>::at(frame.word(1));
            let found = place.get().ok().and_then(|address| library::of("driver")?.place_of(address));
            if let Some(index) = found {
                place.set_if_wanted(exported_at(index) as usize);
            }
        }
        Role::Wait | Role::Named | Role::Renamed | Role::ByName => {}
    }
}
