//! Calls on their way to NVIDIA's functions, as spans of a trace.
//!
//! Of calls inside of calls, which the runtime makes of the driver where it is linked into the program, only the outermost is recorded. Some are looked at
//! more closely: launches are timed; what waits for the GPU is when times are collected; what names a kernel is remembered; and a function of
//! the driver that is asked for by its name is given as the symbol of this library, so that calls of it come here.

use super::timing::{self, Timed};
use super::{Frame, library, missing};
use crate::functions::{FUNCTIONS, exported_at};
use crate::pointer::{In, Out, Text};
use crate::tell::tell;
use crate::types::LaunchConfig;
use broadloom_device::trace::{Span, shape, span};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

/// What is looked at more closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Plain,
    /// A launch; where its parts are.
    Launch(Parts),
    /// Waits for the GPU.
    Wait,
    /// After it events are gone.
    Reset,
    /// Says the name of the kernel that a function of the host stands for.
    Register,
    /// Gives a handle for the kernel of a name.
    Named,
    /// Gives a handle for a kernel that is known otherwise.
    Renamed,
    /// Gives a function of the driver by its name.
    ByName,
}

/// Where the parts of a launch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    /// The kernel, two `dim3`, arguments, shared memory, the stream.
    Runtime,
    /// The kernel, six numbers, shared memory, the stream.
    Driver,
    /// A configuration, the kernel.
    Config,
    /// A graph, the stream.
    Graph,
}

fn role(name: &str) -> Role {
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    match name {
        "cudaLaunchKernel" | "__cudaLaunchKernel" | "cudaLaunchCooperativeKernel" => Role::Launch(Parts::Runtime),
        "cuLaunchKernel" | "cuLaunchCooperativeKernel" => Role::Launch(Parts::Driver),
        "cudaLaunchKernelExC" | "cuLaunchKernelEx" => Role::Launch(Parts::Config),
        "cudaGraphLaunch" | "cuGraphLaunch" => Role::Launch(Parts::Graph),
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

/// What is known of a call that is under way.
pub(crate) struct Open {
    span: Span,
    timed: Option<Timed>,
}

/// Names of kernels, by what programs hold in their place.
fn names() -> MutexGuard<'static, HashMap<usize, String>> {
    static NAMES: OnceLock<Mutex<HashMap<usize, String>>> = OnceLock::new();
    NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Calls of this thread that are under way.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// A panic of ours is told once; the program's call goes on.
fn guarded(work: impl FnOnce()) {
    static TOLD: Once = Once::new();
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        TOLD.call_once(|| {
            tell("what happens on the GPU is not recorded as a whole; this is a fault of Broadloom, please report it")
        });
    }
}

/// A call begins; the function that it goes to.
pub(super) extern "C" fn enter(frame: &mut Frame) -> *const () {
    let function = library::of(FUNCTIONS[frame.index].library).and_then(|library| library.find(frame.index));
    let depth = DEPTH.replace(DEPTH.get() + 1);
    if depth == 0 {
        guarded(|| begin(frame));
    }
    function.unwrap_or(missing as *const ())
}

/// A call is over.
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
    frame.open = Some(Box::new(Open { span, timed }));
}

/// Begins to time a launch.
fn launch(frame: &Frame, parts: Parts, library: &'static str, per_thread: bool, span: &mut Span) -> Option<Timed> {
    let dim3 = |place: usize| [frame.word(place) as u32, (frame.word(place) >> 32) as u32, frame.word(place + 1) as u32];
    let three = |place: usize| [0, 1, 2].map(|axis| frame.word(place + axis) as u32);
    let (kernel, shapes, stream) = match parts {
        Parts::Runtime => (frame.word(0), Some((dim3(1), dim3(3))), frame.word(7)),
        Parts::Driver => (frame.word(0), Some((three(1), three(4))), frame.word(8)),
        Parts::Config => {
            let config = In::<LaunchConfig>::at(frame.word(0)).get().ok()?;
            (frame.word(1), Some((config.grid.list(), config.block.list())), config.stream)
        }
        Parts::Graph => (0, None, frame.word(1)),
    };
    let name = match parts {
        Parts::Graph => "graph".to_owned(),
        Parts::Runtime | Parts::Driver | Parts::Config => names().get(&kernel).cloned().unwrap_or_else(|| "kernel".to_owned()),
    };
    span.note("kernel", name.as_str());
    let mut notes = vec![];
    if let Some((grid, block)) = shapes {
        notes = vec![("grid", shape(grid)), ("block", shape(block))];
    }
    // Stream 0 is the calling thread's to who was compiled so.
    let stream = if stream == 0 && per_thread { 2 } else { stream };
    timing::begin(library, stream, name, notes)
}

fn end(frame: &mut Frame, open: Open) {
    static AT_FIRST_CALL: Once = Once::new();
    static AT_FIRST_LAUNCH: Once = Once::new();
    let Open { span, timed } = open;
    drop(span);
    let name = FUNCTIONS[frame.index].name;
    let good = frame.result[0] as u32 == 0;
    // NVIDIA's library may have registered its own end during these calls, and ours has to come before it.
    if !name.starts_with("__cudaRegister") {
        AT_FIRST_CALL.call_once(crate::tracing::write_at_exit);
    }
    if let Some(timed) = timed {
        timing::end(timed, good);
        AT_FIRST_LAUNCH.call_once(crate::tracing::write_at_exit);
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
