//! Where C ends and Rust begins.
//!
//! Every exported function goes through [`runtime`] or [`driver`]: **nothing unwinds into C**, what fails becomes a status, and the runtime
//! remembers the last one of each thread. [`exported!`] writes the functions.

use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::tell::tell;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// What stream 0 means to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// The one stream that waits for all others.
    Legacy,
    /// A stream of the calling thread.
    PerThread,
}

/// One call of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// What stream 0 means.
    pub(crate) default: DefaultStream,
    /// Everything that there is.
    pub(crate) runtime: &'static Runtime,
}

thread_local! {
    static LAST: Cell<Status> = const { Cell::new(Status::SUCCESS) };
}

/// The last error of this thread.
pub(crate) fn last_error() -> Status {
    LAST.try_with(Cell::get).unwrap_or(Status::SUCCESS)
}

/// Notes an error of this thread.
pub(crate) fn set_last_error(status: Status) {
    let _ = LAST.try_with(|last| last.set(status));
}

/// Does what a call asks for; a panic is a fault of ours, told and turned into a status.
fn guarded(name: &'static str, default: DefaultStream, body: impl FnOnce(&Call) -> Outcome) -> Status {
    let _span = crate::tracing::call(name);
    crate::check::begin(name);
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&Call { default, runtime: Runtime::get() })));
    match outcome {
        Ok(Ok(())) => Status::SUCCESS,
        Ok(Err(status)) => {
            if status != Status::NOT_READY {
                crate::log::failed(name, status);
            }
            crate::check::call_failed(name, status);
            status
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            tell(&format!("{name}: this is a fault of Broadloom, please report it: {}", text.unwrap_or("a panic")));
            Status::UNKNOWN
        }
    }
}

/// Whether a function of the runtime does its work without a context: it asks what there is, or is about errors. All others give the calling
/// thread the primary context when it has none, as NVIDIA's runtime does.
fn without_context(name: &str) -> bool {
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    matches!(
        name,
        "cudaChooseDevice"
            | "cudaCreateChannelDesc"
            | "cudaDeviceCanAccessPeer"
            | "cudaDeviceGetAttribute"
            | "cudaDeviceGetByPCIBusId"
            | "cudaDeviceGetPCIBusId"
            | "cudaDeviceGetP2PAttribute"
            | "cudaDriverGetVersion"
            | "cudaGetDevice"
            | "cudaGetDeviceCount"
            | "cudaGetDeviceProperties"
            | "cudaGetDeviceProperties_v2"
            | "cudaGetDriverEntryPoint"
            | "cudaGetDriverEntryPointByVersion"
            | "cudaGetErrorName"
            | "cudaGetErrorString"
            | "cudaGetExportTable"
            | "cudaGetLastError"
            | "cudaPeekAtLastError"
            | "cudaProfilerStart"
            | "cudaProfilerStop"
            | "cudaRuntimeGetVersion"
            | "cudaSetValidDevices"
    ) || name.starts_with('_')
        || name.starts_with("cudaLogs")
}

thread_local! {
    /// Whether this thread has called a function of the runtime that needs a context.
    static RUNTIME_USED: Cell<bool> = const { Cell::new(false) };
}

/// Whether any thread has.
static RUNTIME_USED_ANYWHERE: AtomicBool = AtomicBool::new(false);

/// Whether this thread has a context because it called the runtime.
pub(crate) fn has_runtime_context() -> bool {
    RUNTIME_USED.try_with(Cell::get).unwrap_or(false)
}

/// Whether some thread has.
pub(crate) fn is_runtime_used() -> bool {
    RUNTIME_USED_ANYWHERE.load(Ordering::Relaxed)
}

/// A function of the runtime: its error is remembered.
pub(crate) fn runtime(name: &'static str, default: DefaultStream, body: impl FnOnce(&Call) -> Outcome) -> u32 {
    if !has_runtime_context() && !without_context(name) {
        let _ = RUNTIME_USED.try_with(|used| used.set(true));
        RUNTIME_USED_ANYWHERE.store(true, Ordering::Relaxed);
    }
    let status = guarded(name, default, body);
    if status != Status::SUCCESS && status != Status::NOT_READY {
        set_last_error(status);
    }
    status.0
}

/// A function of the driver.
pub(crate) fn driver(name: &'static str, default: DefaultStream, body: impl FnOnce(&Call) -> Outcome) -> u32 {
    guarded(name, default, body).0
}

/// A function that is not done: says so once, and returns the error that the list has for it.
pub(crate) fn refused(name: &'static str, status: Status, reason: &'static str) -> u32 {
    static TOLD: std::sync::Mutex<Vec<&'static str>> = std::sync::Mutex::new(vec![]);
    if let Ok(mut told) = TOLD.lock()
        && !told.contains(&name)
    {
        told.push(name);
        tell(&format!("{name} returns {}: {reason}", status.name_for(name).unwrap_or_default()));
    }
    if name.starts_with("cuda") {
        set_last_error(status);
    }
    status.0
}

/// Exported functions: `through` is [`runtime`] or [`driver`].
///
/// What is one function under several names is written once: behind `/` stands its name for programs with a default stream per thread, behind
/// `=` another name of it, and behind `|` the driver's names for what the runtime has as well.
macro_rules! exported {
    ($through:ident $(
        $(#[$meta:meta])*
        fn $name:ident $(/ $twin:ident)? $(= $same:ident $(/ $same_twin:ident)?)* $(| $other:ident $(/ $other_twin:ident)? $(= $third:ident $(/ $third_twin:ident)?)*)?
        ($($args:tt)*) $body:block
    )*) => {
        $($crate::boundary::exported!(
            @each $through [$(#[$meta])*] {($($args)*) $body}
            $name $(/ $twin)? $(= $same $(/ $same_twin)?)* $(| $other $(/ $other_twin)? $(= $third $(/ $third_twin)?)*)?
        );)*
    };
    (@each $through:ident $meta:tt $function:tt) => {};
    (@each $through:ident $meta:tt $function:tt / $twin:ident $($rest:tt)*) => {
        $crate::boundary::exported!(@one $through PerThread $meta $twin $function);
        $crate::boundary::exported!(@each $through $meta $function $($rest)*);
    };
    (@each $through:ident $meta:tt $function:tt = $($rest:tt)*) => {
        $crate::boundary::exported!(@each $through $meta $function $($rest)*);
    };
    (@each $through:ident $meta:tt $function:tt | $($rest:tt)*) => {
        $crate::boundary::exported!(@each driver $meta $function $($rest)*);
    };
    (@each $through:ident $meta:tt $function:tt $name:ident $($rest:tt)*) => {
        $crate::boundary::exported!(@one $through Legacy $meta $name $function);
        $crate::boundary::exported!(@each $through $meta $function $($rest)*);
    };
    (@one $through:ident $default:ident [$(#[$meta:meta])*] $name:ident {($call:ident $(, $arg:ident : $ty:ty)* $(,)?) $body:block}) => {
        $(#[$meta])*
        pub(crate) extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::boundary::$through(stringify!($name), $crate::boundary::DefaultStream::$default, |$call| {
                let _: &$crate::boundary::Call = $call;
                $body
            })
        }
    };
}
pub(crate) use exported;
