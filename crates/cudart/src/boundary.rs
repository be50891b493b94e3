//! Boundary between C and Rust.
//!
//! Every exported function goes through [`runtime`] or [`driver`]. **No panic unwinds into C**: failures
//! become statuses. The runtime keeps the last error of each thread. [`exported!`] defines the exported
//! functions.

use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::tell::tell;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Meaning of stream 0 for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// The legacy default stream, which synchronises with all other streams.
    Legacy,
    /// The default stream of the calling thread.
    PerThread,
}

/// One API call of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Meaning of stream 0.
    pub(crate) default: DefaultStream,
    /// Global state.
    pub(crate) runtime: &'static Runtime,
}

thread_local! {
    static LAST: Cell<Status> = const { Cell::new(Status::SUCCESS) };
}

/// Returns the last error of this thread.
pub(crate) fn last_error() -> Status {
    LAST.try_with(Cell::get).unwrap_or(Status::SUCCESS)
}

/// Sets the last error of this thread.
pub(crate) fn set_last_error(status: Status) {
    let _ = LAST.try_with(|last| last.set(status));
}

/// Runs the body of a call. A panic is an internal error: it is reported and becomes a status.
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

/// Tests if a runtime function works without a context: queries and error functions do. All other runtime
/// functions bind the primary context to a calling thread that has none, as NVIDIA's runtime does.
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
    /// Set once this thread has called a runtime function that needs a context.
    static RUNTIME_USED: Cell<bool> = const { Cell::new(false) };
}

/// Set once any thread has called a runtime function that needs a context.
static RUNTIME_USED_ANYWHERE: AtomicBool = AtomicBool::new(false);

/// Tests if this thread has a context because it called the runtime.
pub(crate) fn has_runtime_context() -> bool {
    RUNTIME_USED.try_with(Cell::get).unwrap_or(false)
}

/// Tests if any thread has a context because it called the runtime.
pub(crate) fn is_runtime_used() -> bool {
    RUNTIME_USED_ANYWHERE.load(Ordering::Relaxed)
}

/// Runs a runtime function and records its error as the thread's last error.
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

/// Runs a driver function.
pub(crate) fn driver(name: &'static str, default: DefaultStream, body: impl FnOnce(&Call) -> Outcome) -> u32 {
    guarded(name, default, body).0
}

/// Reports once that a function is not implemented, and returns the error that the list of functions gives
/// for it.
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

/// Defines exported functions. `through` is [`runtime`] or [`driver`].
///
/// A function is a block, or a row `=> result;`, with checks before the result. A comment states only what its name and NVIDIA's manual do not.
///
/// Aliases are part of the definition. After `/` comes the name for programs with a per-thread default
/// stream, after `=` another name, and after `|` the driver's names for the function.
macro_rules! exported {
    ($through:ident $(
        $(#[$meta:meta])*
        fn $name:ident $(/ $twin:ident)? $(= $same:ident $(/ $same_twin:ident)?)* $(| $other:ident $(/ $other_twin:ident)? $(= $third:ident $(/ $third_twin:ident)?)*)?
        ($($args:tt)*) $(=> $($row:expr),+;)? $($body:block)?
    )*) => {
        $($crate::boundary::exported!(
            @each $through [$(#[$meta])*] {($($args)*) {$($($row);+)? $($body)?}}
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

/// Defines pairs of functions that copy or fill: one that waits, and one in the order of the stream that is its last
/// parameter. The value of a row is a [`Transfer`](crate::work::Transfer).
macro_rules! transfers {
    ($through:ident $(
        $(#[$meta:meta])*
        fn $now:ident $(/ $now_twin:ident)? $(= $same:ident / $same_twin:ident)?, $later:ident $(/ $later_twin:ident)?
        ($call:ident $(, $arg:ident : $ty:ty)*) => $transfer:expr;
    )*) => {
        $crate::boundary::exported! { $through $(
            $(#[$meta])*
            fn $now $(/ $now_twin)? $(= $same / $same_twin)?($call $(, $arg: $ty)*) => {
                let stream = $call.stream(0)?;
                $call.runtime.transfer(&stream, $transfer, true)
            };
            $(#[$meta])*
            fn $later $(/ $later_twin)?($call $(, $arg: $ty)*, stream: usize) => {
                let stream = $call.stream(stream)?;
                $call.runtime.transfer(&stream, $transfer, false)
            };
        )* }
    };
}
pub(crate) use transfers;
