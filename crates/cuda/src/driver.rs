//! The driver library, opened at run time, and its functions as calls that report which of them failed.
//!
//! **The driver is not needed to build or to start. An opened library stays open until the process ends,
//! since its contexts and threads live in it.** Every method is one driver call; [`crate::context`]
//! interprets failures. Handles passed in must come from the same driver and must not have been released. The
//! owner of a handle guarantees this.

use crate::ffi::{
    AttributeValue, Code, ContextHandle, CopyNode, DeviceAttribute, EventHandle, ExecHandle, FillNode, FunctionAttribute,
    FunctionHandle, Functions, GraphHandle, INPUT_PTX, JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, JIT_LEVEL, KernelNode, LaunchConfig,
    Limit, LinkHandle, ModuleHandle, NodeHandle, STREAM_NON_BLOCKING, StreamHandle, code,
};
use broadloom_device::{Error, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

/// Failed call of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedCall {
    /// Name of the function.
    pub(crate) call: &'static str,
    /// Result code.
    pub(crate) code: Code,
}

/// Result of a driver call.
pub(crate) type CallResult<T> = std::result::Result<T, FailedCall>;

/// Maximum size in bytes of the driver's compile log.
const LOG_BYTES: usize = 16 << 10;

/// Opened and initialised driver.
#[derive(Debug)]
pub(crate) struct Driver {
    functions: Functions,
    /// File name of the library.
    pub(crate) library: String,
    /// CUDA version of the driver, as `1000 * major + 10 * minor`.
    pub(crate) version: u32,
}

/// Default file name of the library.
pub(crate) const LIBRARY: &str = "libcuda.so.1";

/// Returns the file name of the library: `BROADLOOM_CUDA_DRIVER` or the default.
pub(crate) fn library_name() -> String {
    std::env::var("BROADLOOM_CUDA_DRIVER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| LIBRARY.to_owned())
}

macro_rules! call {
    ($self:ident . $name:ident ( $($argument:expr),* $(,)? )) => {{
        // SAFETY: the function has the type that the driver documents. Pointers are to values of this frame
        // or of the caller that the call may access, and handles are alive, as required at the head of this
        // file.
        let code = unsafe { ($self.functions.$name)($($argument),*) };
        if code == code::SUCCESS { Ok(()) } else { Err(FailedCall { call: stringify!($name), code }) }
    }};
}

/// Driver that cannot be used. The first field is the library.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error("the driver `{0}` could not be opened: {1}")]
    Open(String, #[source] libloading::Error),
    #[error("the driver `{0}` has no `{1}`: it is too old")]
    Old(String, &'static str),
    #[error("the driver `{0}` was opened, but {1}")]
    Start(String, String),
}

/// Defines methods that pass their arguments to a function of the driver, and return what it writes to the place named
/// before `=>`.
macro_rules! calls {
    ($(fn $method:ident($($arg:ident: $ty:ty),*) $(-> $place:ident: $output:ty)? => $function:ident($($value:expr),*);)*) => {
        impl Driver {
            $(pub(crate) fn $method(&self, $($arg: $ty),*) -> CallResult<calls!(@output $($output)?)> {
                calls!(@place $($place)?);
                call!(self.$function($($value),*))?;
                Ok(calls!(@result $($place)?))
            })*
        }
    };
    (@output) => { () };
    (@output $output:ty) => { $output };
    (@place) => {};
    (@place $place:ident) => { let mut $place = Default::default(); };
    (@result) => { () };
    (@result $place:ident) => { $place };
}

calls! {
    fn release_context(device: c_int) => cuDevicePrimaryCtxRelease(device);
    fn reset_context(device: c_int) => cuDevicePrimaryCtxReset(device);
    fn set_current(context: ContextHandle) => cuCtxSetCurrent(context);
    fn set_limit(limit: Limit, value: usize) => cuCtxSetLimit(limit as c_int, value);
    fn free(address: u64) => cuMemFree(address);
    fn unpin(pointer: *mut u8) => cuMemHostUnregister(pointer.cast());
    fn copy(to: u64, from: u64, bytes: u64, stream: StreamHandle) => cuMemcpyDtoDAsync(to, from, bytes as usize, stream);
    fn fill(address: u64, byte: u8, bytes: u64, stream: StreamHandle) => cuMemsetD8Async(address, byte, bytes as usize, stream);
    fn destroy_stream(stream: StreamHandle) => cuStreamDestroy(stream);
    fn synchronise_stream(stream: StreamHandle) => cuStreamSynchronize(stream);
    fn hold_up(stream: StreamHandle, event: EventHandle) => cuStreamWaitEvent(stream, event, 0);
    fn destroy_event(event: EventHandle) => cuEventDestroy(event);
    fn record_event(event: EventHandle, stream: StreamHandle) => cuEventRecord(event, stream);
    fn synchronise_event(event: EventHandle) => cuEventSynchronize(event);
    fn unload_module(module: ModuleHandle) => cuModuleUnload(module);
    fn destroy_graph(graph: GraphHandle) => cuGraphDestroy(graph);
    fn set_node_attribute(node: NodeHandle, attribute: c_int, value: &AttributeValue) => cuGraphKernelNodeSetAttribute(node, attribute, value);
    fn destroy_exec(exec: ExecHandle) => cuGraphExecDestroy(exec);
    fn launch_graph(exec: ExecHandle, stream: StreamHandle) => cuGraphLaunch(exec, stream);
    fn device(ordinal: u32) -> device: c_int => cuDeviceGet(&mut device, c_int::try_from(ordinal).unwrap_or(c_int::MAX));
    fn retain_context(device: c_int) -> context: ContextHandle => cuDevicePrimaryCtxRetain(&mut context, device);
    fn create_stream() -> stream: StreamHandle => cuStreamCreate(&mut stream, STREAM_NON_BLOCKING);
    fn create_event(flags: c_uint) -> event: EventHandle => cuEventCreate(&mut event, flags);
    fn function(module: ModuleHandle, name: &CStr) -> function: FunctionHandle => cuModuleGetFunction(&mut function, module, name.as_ptr());
    fn create_graph() -> graph: GraphHandle => cuGraphCreate(&mut graph, 0);
    fn add_copy(graph: GraphHandle, after: &[NodeHandle], copy: &CopyNode, context: ContextHandle) -> node: NodeHandle => cuGraphAddMemcpyNode(&mut node, graph, after.as_ptr(), after.len(), copy, context);
    fn add_fill(graph: GraphHandle, after: &[NodeHandle], fill: &FillNode, context: ContextHandle) -> node: NodeHandle => cuGraphAddMemsetNode(&mut node, graph, after.as_ptr(), after.len(), fill, context);
    fn instantiate(graph: GraphHandle) -> exec: ExecHandle => cuGraphInstantiate(&mut exec, graph, 0);
}

impl Driver {
    /// Opens and initialises a library, once per process and name.
    pub(crate) fn open(library: &str) -> Result<Arc<Driver>> {
        static OPEN: Mutex<Option<HashMap<String, Arc<Driver>>>> = Mutex::new(None);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        if let Some(driver) = open.get(library) {
            return Ok(driver.clone());
        }
        let not_here = |error: LoadError| Error::NotHere { device: "cuda".to_owned(), reason: error.to_string() };
        let driver = Arc::new(Driver::load(library).map_err(not_here)?);
        open.insert(library.to_owned(), driver.clone());
        Ok(driver)
    }

    fn load(library: &str) -> std::result::Result<Driver, LoadError> {
        // SAFETY: a driver's initialisers are trusted as much as the driver.
        let opened = unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL) };
        let opened = opened.map_err(|source| LoadError::Open(library.to_owned(), source))?;
        // It stays open.
        let opened = ManuallyDrop::new(opened);
        // SAFETY: only the address of the symbol is used.
        let find = |symbol: &str| unsafe { opened.get::<*mut c_void>(symbol) }.ok().map(|found| *found);
        let functions = Functions::find(find).map_err(|missing| LoadError::Old(library.to_owned(), missing))?;
        let mut driver = Driver { functions, library: library.to_owned(), version: 0 };
        let told = |failed: FailedCall| LoadError::Start(library.to_owned(), driver.describe(failed));
        driver.init().map_err(told)?;
        driver.version = driver.driver_version().map_err(told)?;
        Ok(driver)
    }

    /// Describes a failed call: function, name of the error, and its text.
    pub(crate) fn describe(&self, failed: FailedCall) -> String {
        format!("{} gave {}", failed.call, self.code_text(failed.code))
    }

    /// Returns the driver's name and text of a result code.
    pub(crate) fn code_text(&self, code: Code) -> String {
        let text = |function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: the call writes the pointer, or leaves it null.
            let answer = unsafe { function(code, &mut text) };
            // SAFETY: the driver returns a C string that is never freed.
            (answer == code::SUCCESS && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        match (text(self.functions.cuGetErrorName), text(self.functions.cuGetErrorString)) {
            (Some(name), Some(sentence)) => format!("{name} ({sentence})"),
            (Some(name), None) => name,
            (None, _) => format!("error {code}"),
        }
    }

    fn init(&self) -> CallResult<()> {
        call!(self.cuInit(0))
    }

    fn driver_version(&self) -> CallResult<u32> {
        let mut version: c_int = 0;
        call!(self.cuDriverGetVersion(&mut version))?;
        Ok(u32::try_from(version).unwrap_or(0))
    }

    pub(crate) fn device_count(&self) -> CallResult<u32> {
        let mut count: c_int = 0;
        match call!(self.cuDeviceGetCount(&mut count)) {
            Err(FailedCall { code: code::NO_DEVICE, .. }) => Ok(0),
            outcome => outcome.map(|()| u32::try_from(count).unwrap_or(0)),
        }
    }

    pub(crate) fn device_name(&self, device: c_int) -> CallResult<String> {
        let mut name = [0u8; 256];
        // One byte less than the buffer: the last stays zero.
        call!(self.cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int - 1, device))?;
        Ok(CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
    }

    pub(crate) fn device_attribute(&self, device: c_int, attribute: DeviceAttribute) -> CallResult<u32> {
        let mut value: c_int = 0;
        call!(self.cuDeviceGetAttribute(&mut value, attribute as c_int, device))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    pub(crate) fn device_memory(&self, device: c_int) -> CallResult<u64> {
        let mut bytes = 0usize;
        call!(self.cuDeviceTotalMem(&mut bytes, device))?;
        Ok(bytes as u64)
    }

    pub(crate) fn allocate(&self, bytes: u64) -> CallResult<u64> {
        let mut address = 0u64;
        let bytes = usize::try_from(bytes).map_err(|_| FailedCall { call: "cuMemAlloc", code: code::OUT_OF_MEMORY })?;
        call!(self.cuMemAlloc(&mut address, bytes))?;
        Ok(address)
    }

    /// Pins host memory.
    ///
    /// # Safety
    ///
    /// The memory stays allocated until it is unpinned or the context is gone.
    pub(crate) unsafe fn pin(&self, pointer: *mut u8, bytes: usize) -> CallResult<()> {
        call!(self.cuMemHostRegister(pointer.cast(), bytes, 0))
    }

    /// Copies from pinned memory.
    ///
    /// # Safety
    ///
    /// The memory is pinned and is not written until the copy is done.
    pub(crate) unsafe fn copy_in(&self, to: u64, from: *const u8, bytes: usize, stream: StreamHandle) -> CallResult<()> {
        call!(self.cuMemcpyHtoDAsync(to, from.cast(), bytes, stream))
    }

    /// Copies to pinned memory.
    ///
    /// # Safety
    ///
    /// The memory is pinned and is neither read nor written until the copy is done.
    pub(crate) unsafe fn copy_out(&self, to: *mut u8, from: u64, bytes: usize, stream: StreamHandle) -> CallResult<()> {
        call!(self.cuMemcpyDtoHAsync(to.cast(), from, bytes, stream))
    }

    /// Tests if all work of a stream is done.
    pub(crate) fn query_stream(&self, stream: StreamHandle) -> CallResult<bool> {
        done(call!(self.cuStreamQuery(stream)))
    }

    /// Tests if an event has completed.
    pub(crate) fn query_event(&self, event: EventHandle) -> CallResult<bool> {
        done(call!(self.cuEventQuery(event)))
    }

    /// Returns the milliseconds between two completed events.
    pub(crate) fn elapsed(&self, start: EventHandle, end: EventHandle) -> CallResult<f32> {
        let mut milliseconds = 0f32;
        call!(self.cuEventElapsedTime(&mut milliseconds, start, end))?;
        Ok(milliseconds)
    }

    /// Compiles PTX for the GPU of the current context, to an image for [`Driver::load_image`].
    pub(crate) fn compile(&self, text: &CStr) -> CallResult<Vec<u8>> {
        let mut link = LinkHandle::default();
        call!(self.cuLinkCreate(0, std::ptr::null_mut(), std::ptr::null_mut(), &mut link))?;
        let image = self.linked(link, text);
        let destroyed = call!(self.cuLinkDestroy(link));
        image.and_then(|image| destroyed.map(|()| image))
    }

    fn linked(&self, link: LinkHandle, text: &CStr) -> CallResult<Vec<u8>> {
        let (none, bytes) = (std::ptr::null_mut(), text.to_bytes_with_nul());
        let name = c"module.ptx".as_ptr();
        call!(self.cuLinkAddData(link, INPUT_PTX, bytes.as_ptr().cast(), bytes.len(), name, 0, none, std::ptr::null_mut()))?;
        let (mut image, mut count) = (std::ptr::null_mut(), 0usize);
        call!(self.cuLinkComplete(link, &mut image, &mut count))?;
        if image.is_null() || count == 0 {
            return Err(FailedCall { call: "cuLinkComplete", code: code::INVALID_IMAGE });
        }
        // SAFETY: the link owns this many bytes, and only the caller destroys it.
        Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), count) }.to_vec())
    }

    /// Loads a module from an image of [`Driver::compile`].
    ///
    /// # Safety
    ///
    /// The image was produced by the driver and is complete: it states its own length.
    pub(crate) unsafe fn load_image(&self, image: &[u8]) -> CallResult<ModuleHandle> {
        let mut module = ModuleHandle::default();
        call!(self.cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), 0, std::ptr::null_mut(), std::ptr::null_mut()))?;
        Ok(module)
    }

    /// Loads a module from PTX, at a given or the default optimisation level. A failure includes the driver's
    /// log.
    pub(crate) fn load_module(&self, text: &CStr, level: Option<u8>) -> std::result::Result<ModuleHandle, (FailedCall, String)> {
        let mut module = ModuleHandle::default();
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, JIT_LEVEL];
        // Numbers are passed as pointers. The log size is one byte less than the buffer, so that the last
        // byte stays zero.
        let level_value = usize::from(level.unwrap_or_default()) as *mut c_void;
        let mut values = [log.as_mut_ptr().cast::<c_void>(), (LOG_BYTES - 1) as *mut c_void, level_value];
        let (image, count) = (text.as_ptr().cast(), if level.is_some() { 3 } else { 2 });
        let outcome = call!(self.cuModuleLoadDataEx(&mut module, image, count, options.as_mut_ptr(), values.as_mut_ptr()));
        match outcome {
            Ok(()) => Ok(module),
            Err(failed) => {
                let log = CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().into_owned());
                Err((failed, log.unwrap_or_default()))
            }
        }
    }

    /// Returns address and size of a variable.
    pub(crate) fn variable(&self, module: ModuleHandle, name: &CStr) -> CallResult<(u64, u64)> {
        let (mut address, mut bytes) = (0u64, 0usize);
        call!(self.cuModuleGetGlobal(&mut address, &mut bytes, module, name.as_ptr()))?;
        Ok((address, bytes as u64))
    }

    pub(crate) fn function_attribute(&self, function: FunctionHandle, attribute: FunctionAttribute) -> CallResult<u32> {
        let mut value: c_int = 0;
        call!(self.cuFuncGetAttribute(&mut value, attribute as c_int, function))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    pub(crate) fn set_function_attribute(
        &self,
        function: FunctionHandle,
        attribute: FunctionAttribute,
        value: u32,
    ) -> CallResult<()> {
        call!(self.cuFuncSetAttribute(function, attribute as c_int, c_int::try_from(value).unwrap_or(c_int::MAX)))
    }

    /// Returns the number of resident blocks of a kernel per multiprocessor.
    pub(crate) fn occupancy(&self, function: FunctionHandle, threads: u32, shared_bytes: u32) -> CallResult<u32> {
        let mut blocks: c_int = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        call!(self.cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, function, threads, shared_bytes as usize))?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Launches a kernel.
    ///
    /// # Safety
    ///
    /// `extra` is null or a terminated list of the driver with as many parameter bytes as the kernel has.
    #[inline]
    pub(crate) unsafe fn launch(
        &self,
        function: FunctionHandle,
        [grid_x, grid_y, grid_z]: [u32; 3],
        [block_x, block_y, block_z]: [u32; 3],
        shared_bytes: u32,
        stream: StreamHandle,
        extra: *const usize,
    ) -> CallResult<()> {
        let params = std::ptr::null();
        call!(self.cuLaunchKernel(
            function,
            grid_x,
            grid_y,
            grid_z,
            block_x,
            block_y,
            block_z,
            shared_bytes,
            stream,
            params,
            extra
        ))
    }

    /// Launches a kernel with attributes.
    ///
    /// # Safety
    ///
    /// As for [`Driver::launch`]; `config` states the number of its attributes correctly.
    pub(crate) unsafe fn launch_with(
        &self,
        config: &LaunchConfig,
        function: FunctionHandle,
        extra: *const usize,
    ) -> CallResult<()> {
        call!(self.cuLaunchKernelEx(config, function, std::ptr::null(), extra))
    }

    /// Adds a kernel node with its dependencies.
    ///
    /// # Safety
    ///
    /// As for [`Driver::launch`].
    pub(crate) unsafe fn add_kernel(
        &self,
        graph: GraphHandle,
        after: &[NodeHandle],
        kernel: &KernelNode,
    ) -> CallResult<NodeHandle> {
        let mut node = NodeHandle::default();
        call!(self.cuGraphAddKernelNode(&mut node, graph, after.as_ptr(), after.len(), kernel))?;
        Ok(node)
    }
}

/// Converts the result of a query: true if the work is done.
fn done(outcome: CallResult<()>) -> CallResult<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(FailedCall { code: code::NOT_READY, .. }) => Ok(false),
        Err(failed) => Err(failed),
    }
}
