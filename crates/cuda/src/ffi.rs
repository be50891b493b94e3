//! Functions, types and constants of the driver interface ("CUDA Driver API").
//!
//! Handles are opaque words.

#![allow(non_snake_case, reason = "functions have the driver's names")]

use std::ffi::{c_char, c_int, c_uint, c_void};

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            #[repr(transparent)]
            pub(crate) struct $name(pub(crate) usize);
        )*
    };
}

handles! {
    /// `CUcontext`.
    ContextHandle;
    /// `CUmodule`.
    ModuleHandle;
    /// `CUfunction`.
    FunctionHandle;
    /// `CUstream`.
    StreamHandle;
    /// `CUevent`.
    EventHandle;
    /// `CUgraph`.
    GraphHandle;
    /// `CUgraphNode`.
    NodeHandle;
    /// `CUgraphExec`.
    ExecHandle;
    /// `CUlinkState`.
    LinkHandle;
}

/// `CUresult`.
pub(crate) type Code = c_uint;

/// Result codes with a meaning here.
pub(crate) mod code {
    use super::Code;
    pub(crate) const SUCCESS: Code = 0;
    pub(crate) const INVALID_VALUE: Code = 1;
    pub(crate) const OUT_OF_MEMORY: Code = 2;
    pub(crate) const NOT_INITIALIZED: Code = 3;
    pub(crate) const DEINITIALIZED: Code = 4;
    pub(crate) const NO_DEVICE: Code = 100;
    pub(crate) const INVALID_IMAGE: Code = 200;
    pub(crate) const NO_BINARY_FOR_GPU: Code = 209;
    pub(crate) const ECC_UNCORRECTABLE: Code = 214;
    pub(crate) const INVALID_PTX: Code = 218;
    pub(crate) const NVLINK_UNCORRECTABLE: Code = 220;
    pub(crate) const UNSUPPORTED_PTX_VERSION: Code = 222;
    pub(crate) const NOT_FOUND: Code = 500;
    pub(crate) const NOT_READY: Code = 600;
    pub(crate) const ILLEGAL_ADDRESS: Code = 700;
    pub(crate) const LAUNCH_OUT_OF_RESOURCES: Code = 701;
    pub(crate) const LAUNCH_TIMEOUT: Code = 702;
    pub(crate) const CONTEXT_IS_DESTROYED: Code = 709;
    pub(crate) const ASSERT: Code = 710;
    pub(crate) const HARDWARE_STACK_ERROR: Code = 714;
    pub(crate) const ILLEGAL_INSTRUCTION: Code = 715;
    pub(crate) const MISALIGNED_ADDRESS: Code = 716;
    pub(crate) const INVALID_ADDRESS_SPACE: Code = 717;
    pub(crate) const INVALID_PC: Code = 718;
    pub(crate) const LAUNCH_FAILED: Code = 719;
    pub(crate) const COOPERATIVE_LAUNCH_TOO_LARGE: Code = 720;
}

/// `CUdevice_attribute`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum DeviceAttribute {
    MaxThreadsPerBlock = 1,
    MaxBlockX = 2,
    MaxBlockY = 3,
    MaxBlockZ = 4,
    MaxGridX = 5,
    MaxGridY = 6,
    MaxGridZ = 7,
    WarpSize = 10,
    /// In kHz.
    ClockRate = 13,
    Multiprocessors = 16,
    /// In kHz.
    MemoryClockRate = 36,
    /// In bits.
    MemoryBusWidth = 37,
    CacheBytes = 38,
    ThreadsPerMultiprocessor = 39,
    CapabilityMajor = 75,
    CapabilityMinor = 76,
    RegistersPerMultiprocessor = 82,
    CooperativeLaunch = 95,
    MaxSharedPerBlockOptIn = 97,
}

/// `CUfunction_attribute`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum FunctionAttribute {
    MaxThreadsPerBlock = 0,
    SharedBytes = 1,
    LocalBytes = 3,
    Registers = 4,
    MaxDynamicSharedBytes = 8,
    NonPortableClusters = 14,
}

/// `CUlimit`.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum Limit {
    StackBytes = 0,
    HeapBytes = 2,
}

/// `CU_STREAM_NON_BLOCKING`: no implicit order with the legacy default stream.
pub(crate) const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
pub(crate) const EVENT_NO_TIMING: c_uint = 2;
/// `CU_LAUNCH_PARAM_*`: tags of the parameter list.
pub(crate) const PARAM_END: usize = 0;
pub(crate) const PARAM_POINTER: usize = 1;
pub(crate) const PARAM_SIZE: usize = 2;
/// `CU_JIT_ERROR_LOG_BUFFER` and its size.
pub(crate) const JIT_ERROR_LOG: c_int = 5;
pub(crate) const JIT_ERROR_LOG_BYTES: c_int = 6;
/// `CU_JIT_OPTIMIZATION_LEVEL`: 0 to 4.
pub(crate) const JIT_LEVEL: c_int = 7;
/// `CU_JIT_INPUT_PTX`.
pub(crate) const INPUT_PTX: c_int = 1;
/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
pub(crate) const ATTRIBUTE_COOPERATIVE: c_int = 2;
/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
pub(crate) const ATTRIBUTE_CLUSTER: c_int = 4;
/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
pub(crate) const ATTRIBUTE_OVERLAP: c_int = 6;
/// `CU_MEMORYTYPE_DEVICE`.
pub(crate) const MEMORY_DEVICE: c_uint = 2;

/// `CUlaunchAttributeValue`, of which only the first words are used.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct AttributeValue {
    pub(crate) words: [c_uint; 3],
    pub(crate) rest: [u8; 52],
}

impl AttributeValue {
    pub(crate) const fn new(words: [c_uint; 3]) -> AttributeValue {
        AttributeValue { words, rest: [0; 52] }
    }
}

/// `CUlaunchAttribute`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_int,
    pub(crate) pad: [u8; 4],
    pub(crate) value: AttributeValue,
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: StreamHandle,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub(crate) struct KernelNode {
    pub(crate) function: FunctionHandle,
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) params: *const *const c_void,
    pub(crate) extra: *const usize,
    pub(crate) kernel: usize,
    pub(crate) context: ContextHandle,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
pub(crate) struct FillNode {
    pub(crate) address: u64,
    pub(crate) pitch: usize,
    pub(crate) value: c_uint,
    pub(crate) element_bytes: c_uint,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// One side of a `CUDA_MEMCPY3D`.
#[derive(Default)]
#[repr(C)]
pub(crate) struct CopySide {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) level: usize,
    pub(crate) kind: c_uint,
    pub(crate) host: usize,
    pub(crate) device: u64,
    pub(crate) array: usize,
    pub(crate) reserved: usize,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

/// `CUDA_MEMCPY3D`.
#[derive(Default)]
#[repr(C)]
pub(crate) struct CopyNode {
    pub(crate) from: CopySide,
    pub(crate) to: CopySide,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

macro_rules! functions {
    (@names $name:ident) => { &[stringify!($name)] };
    (@names $name:ident $($symbol:literal),+) => { &[$($symbol),+] };
    ($($name:ident $([$($symbol:literal),+])? ($($argument:ident: $ty:ty),*);)*) => {
        /// Functions of the driver, found by name.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument: $ty),*) -> Code,)*
        }

        impl Functions {
            /// Looks up every function. Returns the name of the first missing one as an error.
            pub(crate) fn find(find: impl Fn(&str) -> Option<*mut c_void>) -> Result<Functions, &'static str> {
                Ok(Functions {
                    $($name: {
                        // A versioned function is only looked up by its versioned names: the plain name may
                        // be an older function.
                        let names: &[&str] = functions!(@names $name $($($symbol),+)?);
                        let symbol = names.iter().find_map(|name| find(name)).ok_or(stringify!($name))?;
                        // SAFETY: the symbol is the driver's function of this name, which has this documented
                        // type.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> Code>(symbol) }
                    },)*
                })
            }
        }
    };
}

functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(code: Code, name: *mut *const c_char);
    cuGetErrorString(code: Code, text: *mut *const c_char);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut c_int, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, bytes: c_int, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    cuDeviceTotalMem ["cuDeviceTotalMem_v2"] (bytes: *mut usize, device: c_int);
    cuDevicePrimaryCtxRetain(context: *mut ContextHandle, device: c_int);
    cuDevicePrimaryCtxRelease ["cuDevicePrimaryCtxRelease_v2"] (device: c_int);
    cuDevicePrimaryCtxReset ["cuDevicePrimaryCtxReset_v2"] (device: c_int);
    cuCtxSetCurrent(context: ContextHandle);
    cuCtxSetLimit(limit: c_int, value: usize);
    cuMemAlloc ["cuMemAlloc_v2"] (address: *mut u64, bytes: usize);
    cuMemFree ["cuMemFree_v2"] (address: u64);
    cuMemHostRegister ["cuMemHostRegister_v2"] (pointer: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(pointer: *mut c_void);
    cuMemcpyHtoDAsync ["cuMemcpyHtoDAsync_v2"] (to: u64, from: *const c_void, bytes: usize, stream: StreamHandle);
    cuMemcpyDtoHAsync ["cuMemcpyDtoHAsync_v2"] (to: *mut c_void, from: u64, bytes: usize, stream: StreamHandle);
    cuMemcpyDtoDAsync ["cuMemcpyDtoDAsync_v2"] (to: u64, from: u64, bytes: usize, stream: StreamHandle);
    cuMemsetD8Async(address: u64, value: u8, count: usize, stream: StreamHandle);
    cuStreamCreate(stream: *mut StreamHandle, flags: c_uint);
    cuStreamDestroy ["cuStreamDestroy_v2"] (stream: StreamHandle);
    cuStreamSynchronize(stream: StreamHandle);
    cuStreamQuery(stream: StreamHandle);
    cuStreamWaitEvent(stream: StreamHandle, event: EventHandle, flags: c_uint);
    cuEventCreate(event: *mut EventHandle, flags: c_uint);
    cuEventDestroy ["cuEventDestroy_v2"] (event: EventHandle);
    cuEventRecord(event: EventHandle, stream: StreamHandle);
    cuEventQuery(event: EventHandle);
    cuEventSynchronize(event: EventHandle);
    cuEventElapsedTime ["cuEventElapsedTime_v2", "cuEventElapsedTime"] (milliseconds: *mut f32, start: EventHandle, end: EventHandle);
    cuModuleLoadDataEx(
        module: *mut ModuleHandle,
        image: *const c_void,
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void
    );
    cuLinkCreate ["cuLinkCreate_v2"] (count: c_uint, options: *mut c_int, values: *mut *mut c_void, link: *mut LinkHandle);
    cuLinkAddData ["cuLinkAddData_v2"] (
        link: LinkHandle,
        kind: c_int,
        data: *const c_void,
        bytes: usize,
        name: *const c_char,
        count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void
    );
    cuLinkComplete(link: LinkHandle, image: *mut *mut c_void, bytes: *mut usize);
    cuLinkDestroy(link: LinkHandle);
    cuModuleUnload(module: ModuleHandle);
    cuModuleGetFunction(function: *mut FunctionHandle, module: ModuleHandle, name: *const c_char);
    cuModuleGetGlobal ["cuModuleGetGlobal_v2"] (address: *mut u64, bytes: *mut usize, module: ModuleHandle, name: *const c_char);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: FunctionHandle);
    cuFuncSetAttribute(function: FunctionHandle, attribute: c_int, value: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: FunctionHandle,
        threads: c_int,
        shared_bytes: usize
    );
    cuLaunchKernel(
        function: FunctionHandle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: StreamHandle,
        params: *const *const c_void,
        extra: *const usize
    );
    cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: FunctionHandle,
        params: *const *const c_void,
        extra: *const usize
    );
    cuGraphCreate(graph: *mut GraphHandle, flags: c_uint);
    cuGraphDestroy(graph: GraphHandle);
    cuGraphAddKernelNode ["cuGraphAddKernelNode_v2"] (
        node: *mut NodeHandle,
        graph: GraphHandle,
        after: *const NodeHandle,
        after_count: usize,
        kernel: *const KernelNode
    );
    cuGraphAddMemcpyNode(
        node: *mut NodeHandle,
        graph: GraphHandle,
        after: *const NodeHandle,
        after_count: usize,
        copy: *const CopyNode,
        context: ContextHandle
    );
    cuGraphAddMemsetNode(
        node: *mut NodeHandle,
        graph: GraphHandle,
        after: *const NodeHandle,
        after_count: usize,
        fill: *const FillNode,
        context: ContextHandle
    );
    cuGraphKernelNodeSetAttribute(node: NodeHandle, attribute: c_int, value: *const AttributeValue);
    cuGraphInstantiate ["cuGraphInstantiateWithFlags"] (exec: *mut ExecHandle, graph: GraphHandle, flags: u64);
    cuGraphExecDestroy(exec: ExecHandle);
    cuGraphLaunch(exec: ExecHandle, stream: StreamHandle);
}
