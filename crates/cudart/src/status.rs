//! Status codes of calls, with their names and texts. The runtime and the driver use the same numbers.
//!
//! Numbers and names are those of the CUDA 13 headers; programs compare and print them.

use broadloom_device::{Error, FaultKind};

/// Status returned by a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name().unwrap_or("an unknown status"), self.0)
    }
}

/// Result whose error is a status other than success.
pub(crate) type Outcome<T = ()> = Result<T, Status>;

/// Status as the headers list it.
struct Row {
    status: Status,
    runtime: Option<&'static str>,
    driver: Option<&'static str>,
    text: &'static str,
}

macro_rules! statuses {
    ($($name:ident = $number:literal, $runtime:expr, $driver:expr, $text:literal;)*) => {
        impl Status {
            $(#[doc = $text]
            pub const $name: Status = Status($number);)*
        }

        const ROWS: &[Row] = &[$(Row { status: Status::$name, runtime: $runtime, driver: $driver, text: $text },)*];
    };
}

statuses! {
    SUCCESS = 0, Some("cudaSuccess"), Some("CUDA_SUCCESS"), "no error";
    INVALID_VALUE = 1, Some("cudaErrorInvalidValue"), Some("CUDA_ERROR_INVALID_VALUE"), "invalid argument";
    OUT_OF_MEMORY = 2, Some("cudaErrorMemoryAllocation"), Some("CUDA_ERROR_OUT_OF_MEMORY"), "out of memory";
    NOT_INITIALIZED = 3, Some("cudaErrorInitializationError"), Some("CUDA_ERROR_NOT_INITIALIZED"), "initialization error";
    DEINITIALIZED = 4, Some("cudaErrorCudartUnloading"), Some("CUDA_ERROR_DEINITIALIZED"), "driver shutting down";
    PROFILER_DISABLED = 5, Some("cudaErrorProfilerDisabled"), Some("CUDA_ERROR_PROFILER_DISABLED"), "the profiler is disabled";
    PROFILER_NOT_INITIALIZED = 6, Some("cudaErrorProfilerNotInitialized"), Some("CUDA_ERROR_PROFILER_NOT_INITIALIZED"), "the profiler is not initialised";
    PROFILER_ALREADY_STARTED = 7, Some("cudaErrorProfilerAlreadyStarted"), Some("CUDA_ERROR_PROFILER_ALREADY_STARTED"), "profiler already started";
    PROFILER_ALREADY_STOPPED = 8, Some("cudaErrorProfilerAlreadyStopped"), Some("CUDA_ERROR_PROFILER_ALREADY_STOPPED"), "profiler already stopped";
    INVALID_CONFIGURATION = 9, Some("cudaErrorInvalidConfiguration"), None, "invalid configuration argument";
    VERSION_TRANSLATION = 10, Some("cudaErrorVersionTranslation"), None, "the driver answered what this runtime cannot read";
    INVALID_PITCH_VALUE = 12, Some("cudaErrorInvalidPitchValue"), None, "invalid pitch argument";
    INVALID_SYMBOL = 13, Some("cudaErrorInvalidSymbol"), None, "invalid device symbol";
    INVALID_HOST_POINTER = 16, Some("cudaErrorInvalidHostPointer"), None, "invalid host pointer";
    INVALID_DEVICE_POINTER = 17, Some("cudaErrorInvalidDevicePointer"), None, "invalid device pointer";
    INVALID_TEXTURE = 18, Some("cudaErrorInvalidTexture"), None, "invalid texture reference";
    INVALID_TEXTURE_BINDING = 19, Some("cudaErrorInvalidTextureBinding"), None, "texture is not bound to a pointer";
    INVALID_CHANNEL_DESCRIPTOR = 20, Some("cudaErrorInvalidChannelDescriptor"), None, "invalid channel descriptor";
    INVALID_MEMCPY_DIRECTION = 21, Some("cudaErrorInvalidMemcpyDirection"), None, "invalid copy direction for memcpy";
    ADDRESS_OF_CONSTANT = 22, Some("cudaErrorAddressOfConstant"), None, "invalid address of constant";
    TEXTURE_FETCH_FAILED = 23, Some("cudaErrorTextureFetchFailed"), None, "fetch from texture failed";
    TEXTURE_NOT_BOUND = 24, Some("cudaErrorTextureNotBound"), None, "cannot fetch from a texture that is not bound";
    SYNCHRONIZATION_ERROR = 25, Some("cudaErrorSynchronizationError"), None, "incorrect use of __syncthreads()";
    INVALID_FILTER_SETTING = 26, Some("cudaErrorInvalidFilterSetting"), None, "linear filtering not supported for non-float type";
    INVALID_NORM_SETTING = 27, Some("cudaErrorInvalidNormSetting"), None, "read as normalized float not supported for data type";
    MIXED_DEVICE_EXECUTION = 28, Some("cudaErrorMixedDeviceExecution"), None, "emulation and execution cannot be mixed";
    NOT_YET_IMPLEMENTED = 31, Some("cudaErrorNotYetImplemented"), None, "feature not yet implemented";
    MEMORY_VALUE_TOO_LARGE = 32, Some("cudaErrorMemoryValueTooLarge"), None, "a size or address does not fit into 32 bits";
    STUB_LIBRARY = 34, Some("cudaErrorStubLibrary"), Some("CUDA_ERROR_STUB_LIBRARY"), "CUDA driver is a stub library";
    INSUFFICIENT_DRIVER = 35, Some("cudaErrorInsufficientDriver"), None, "CUDA driver version is insufficient for CUDA runtime version";
    CALL_REQUIRES_NEWER_DRIVER = 36, Some("cudaErrorCallRequiresNewerDriver"), Some("CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"), "API call is not supported in the installed CUDA driver";
    INVALID_SURFACE = 37, Some("cudaErrorInvalidSurface"), None, "invalid surface reference";
    DUPLICATE_VARIABLE_NAME = 43, Some("cudaErrorDuplicateVariableName"), None, "duplicate global variable looked up by string name";
    DUPLICATE_TEXTURE_NAME = 44, Some("cudaErrorDuplicateTextureName"), None, "duplicate texture looked up by string name";
    DUPLICATE_SURFACE_NAME = 45, Some("cudaErrorDuplicateSurfaceName"), None, "duplicate surface looked up by string name";
    DEVICE_UNAVAILABLE = 46, Some("cudaErrorDevicesUnavailable"), Some("CUDA_ERROR_DEVICE_UNAVAILABLE"), "CUDA-capable device(s) is/are busy or unavailable";
    MULTICAST_RESOURCE_FULL = 47, None, Some("CUDA_ERROR_MULTICAST_RESOURCE_FULL"), "no room for another multicast";
    INCOMPATIBLE_DRIVER_CONTEXT = 49, Some("cudaErrorIncompatibleDriverContext"), None, "incompatible driver context";
    MISSING_CONFIGURATION = 52, Some("cudaErrorMissingConfiguration"), None, "__global__ function call is not configured";
    PRIOR_LAUNCH_FAILURE = 53, Some("cudaErrorPriorLaunchFailure"), None, "unspecified launch failure in prior launch";
    LAUNCH_MAX_DEPTH_EXCEEDED = 65, Some("cudaErrorLaunchMaxDepthExceeded"), None, "launch would exceed maximum depth of nested launches";
    LAUNCH_FILE_SCOPED_TEX = 66, Some("cudaErrorLaunchFileScopedTex"), None, "the kernel uses file-scoped textures";
    LAUNCH_FILE_SCOPED_SURF = 67, Some("cudaErrorLaunchFileScopedSurf"), None, "the kernel uses file-scoped surfaces";
    SYNC_DEPTH_EXCEEDED = 68, Some("cudaErrorSyncDepthExceeded"), None, "nested synchronisation is too deep";
    LAUNCH_PENDING_COUNT_EXCEEDED = 69, Some("cudaErrorLaunchPendingCountExceeded"), None, "too many nested launches are pending";
    INVALID_DEVICE_FUNCTION = 98, Some("cudaErrorInvalidDeviceFunction"), None, "invalid device function";
    NO_DEVICE = 100, Some("cudaErrorNoDevice"), Some("CUDA_ERROR_NO_DEVICE"), "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, Some("cudaErrorInvalidDevice"), Some("CUDA_ERROR_INVALID_DEVICE"), "invalid device ordinal";
    DEVICE_NOT_LICENSED = 102, Some("cudaErrorDeviceNotLicensed"), Some("CUDA_ERROR_DEVICE_NOT_LICENSED"), "device doesn't have valid Grid license";
    SOFTWARE_VALIDITY_NOT_ESTABLISHED = 103, Some("cudaErrorSoftwareValidityNotEstablished"), None, "the software is not valid";
    STARTUP_FAILURE = 127, Some("cudaErrorStartupFailure"), None, "startup failure in cuda runtime";
    INVALID_IMAGE = 200, Some("cudaErrorInvalidKernelImage"), Some("CUDA_ERROR_INVALID_IMAGE"), "device kernel image is invalid";
    INVALID_CONTEXT = 201, Some("cudaErrorDeviceUninitialized"), Some("CUDA_ERROR_INVALID_CONTEXT"), "invalid device context";
    CONTEXT_ALREADY_CURRENT = 202, None, Some("CUDA_ERROR_CONTEXT_ALREADY_CURRENT"), "the context is current already";
    MAP_FAILED = 205, Some("cudaErrorMapBufferObjectFailed"), Some("CUDA_ERROR_MAP_FAILED"), "mapping of buffer object failed";
    UNMAP_FAILED = 206, Some("cudaErrorUnmapBufferObjectFailed"), Some("CUDA_ERROR_UNMAP_FAILED"), "unmapping of buffer object failed";
    ARRAY_IS_MAPPED = 207, Some("cudaErrorArrayIsMapped"), Some("CUDA_ERROR_ARRAY_IS_MAPPED"), "array is mapped";
    ALREADY_MAPPED = 208, Some("cudaErrorAlreadyMapped"), Some("CUDA_ERROR_ALREADY_MAPPED"), "resource already mapped";
    NO_BINARY_FOR_GPU = 209, Some("cudaErrorNoKernelImageForDevice"), Some("CUDA_ERROR_NO_BINARY_FOR_GPU"), "no kernel image is available for execution on the device";
    ALREADY_ACQUIRED = 210, Some("cudaErrorAlreadyAcquired"), Some("CUDA_ERROR_ALREADY_ACQUIRED"), "resource already acquired";
    NOT_MAPPED = 211, Some("cudaErrorNotMapped"), Some("CUDA_ERROR_NOT_MAPPED"), "resource not mapped";
    NOT_MAPPED_AS_ARRAY = 212, Some("cudaErrorNotMappedAsArray"), Some("CUDA_ERROR_NOT_MAPPED_AS_ARRAY"), "resource not mapped as array";
    NOT_MAPPED_AS_POINTER = 213, Some("cudaErrorNotMappedAsPointer"), Some("CUDA_ERROR_NOT_MAPPED_AS_POINTER"), "resource not mapped as pointer";
    ECC_UNCORRECTABLE = 214, Some("cudaErrorECCUncorrectable"), Some("CUDA_ERROR_ECC_UNCORRECTABLE"), "uncorrectable ECC error encountered";
    UNSUPPORTED_LIMIT = 215, Some("cudaErrorUnsupportedLimit"), Some("CUDA_ERROR_UNSUPPORTED_LIMIT"), "limit is not supported on this architecture";
    CONTEXT_ALREADY_IN_USE = 216, Some("cudaErrorDeviceAlreadyInUse"), Some("CUDA_ERROR_CONTEXT_ALREADY_IN_USE"), "exclusive-thread device already in use by a different thread";
    PEER_ACCESS_UNSUPPORTED = 217, Some("cudaErrorPeerAccessUnsupported"), Some("CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"), "peer access is not supported between these two devices";
    INVALID_PTX = 218, Some("cudaErrorInvalidPtx"), Some("CUDA_ERROR_INVALID_PTX"), "a PTX JIT compilation failed";
    INVALID_GRAPHICS_CONTEXT = 219, Some("cudaErrorInvalidGraphicsContext"), Some("CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"), "invalid OpenGL or DirectX context";
    NVLINK_UNCORRECTABLE = 220, Some("cudaErrorNvlinkUncorrectable"), Some("CUDA_ERROR_NVLINK_UNCORRECTABLE"), "uncorrectable NVLink error";
    JIT_COMPILER_NOT_FOUND = 221, Some("cudaErrorJitCompilerNotFound"), Some("CUDA_ERROR_JIT_COMPILER_NOT_FOUND"), "PTX JIT compiler library not found";
    UNSUPPORTED_PTX_VERSION = 222, Some("cudaErrorUnsupportedPtxVersion"), Some("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"), "the PTX was compiled by an unsupported toolchain";
    JIT_COMPILATION_DISABLED = 223, Some("cudaErrorJitCompilationDisabled"), Some("CUDA_ERROR_JIT_COMPILATION_DISABLED"), "PTX JIT compilation was disabled";
    UNSUPPORTED_EXEC_AFFINITY = 224, Some("cudaErrorUnsupportedExecAffinity"), Some("CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"), "the provided execution affinity is not supported";
    UNSUPPORTED_DEVSIDE_SYNC = 225, Some("cudaErrorUnsupportedDevSideSync"), Some("CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"), "the PTX calls cudaDeviceSynchronize, which is not supported";
    CONTAINED = 226, Some("cudaErrorContained"), Some("CUDA_ERROR_CONTAINED"), "invalid access to the memory of a peer";
    INSUFFICIENT_LOADER_VERSION = 227, Some("cudaErrorInsufficientLoaderVersion"), Some("CUDA_ERROR_INSUFFICIENT_LOADER_VERSION"), "Loader version is insufficient for fatbin";
    INVALID_SOURCE = 300, Some("cudaErrorInvalidSource"), Some("CUDA_ERROR_INVALID_SOURCE"), "device kernel image is invalid";
    FILE_NOT_FOUND = 301, Some("cudaErrorFileNotFound"), Some("CUDA_ERROR_FILE_NOT_FOUND"), "file not found";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302, Some("cudaErrorSharedObjectSymbolNotFound"), Some("CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"), "shared object symbol not found";
    SHARED_OBJECT_INIT_FAILED = 303, Some("cudaErrorSharedObjectInitFailed"), Some("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"), "shared object initialization failed";
    OPERATING_SYSTEM = 304, Some("cudaErrorOperatingSystem"), Some("CUDA_ERROR_OPERATING_SYSTEM"), "OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400, Some("cudaErrorInvalidResourceHandle"), Some("CUDA_ERROR_INVALID_HANDLE"), "invalid resource handle";
    ILLEGAL_STATE = 401, Some("cudaErrorIllegalState"), Some("CUDA_ERROR_ILLEGAL_STATE"), "the operation cannot be performed in the present state";
    LOSSY_QUERY = 402, Some("cudaErrorLossyQuery"), Some("CUDA_ERROR_LOSSY_QUERY"), "attempted introspection would be semantically lossy";
    NOT_FOUND = 500, Some("cudaErrorSymbolNotFound"), Some("CUDA_ERROR_NOT_FOUND"), "named symbol not found";
    NOT_READY = 600, Some("cudaErrorNotReady"), Some("CUDA_ERROR_NOT_READY"), "device not ready";
    ILLEGAL_ADDRESS = 700, Some("cudaErrorIllegalAddress"), Some("CUDA_ERROR_ILLEGAL_ADDRESS"), "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, Some("cudaErrorLaunchOutOfResources"), Some("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"), "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, Some("cudaErrorLaunchTimeout"), Some("CUDA_ERROR_LAUNCH_TIMEOUT"), "the launch timed out and was terminated";
    LAUNCH_INCOMPATIBLE_TEXTURING = 703, Some("cudaErrorLaunchIncompatibleTexturing"), Some("CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"), "launch uses incompatible texturing mode";
    PEER_ACCESS_ALREADY_ENABLED = 704, Some("cudaErrorPeerAccessAlreadyEnabled"), Some("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"), "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, Some("cudaErrorPeerAccessNotEnabled"), Some("CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"), "peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, Some("cudaErrorSetOnActiveProcess"), Some("CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"), "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, Some("cudaErrorContextIsDestroyed"), Some("CUDA_ERROR_CONTEXT_IS_DESTROYED"), "context is destroyed";
    ASSERT = 710, Some("cudaErrorAssert"), Some("CUDA_ERROR_ASSERT"), "device-side assert triggered";
    TOO_MANY_PEERS = 711, Some("cudaErrorTooManyPeers"), Some("CUDA_ERROR_TOO_MANY_PEERS"), "peer mapping resources exhausted";
    HOST_MEMORY_ALREADY_REGISTERED = 712, Some("cudaErrorHostMemoryAlreadyRegistered"), Some("CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"), "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, Some("cudaErrorHostMemoryNotRegistered"), Some("CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"), "pointer does not correspond to a registered memory region";
    HARDWARE_STACK_ERROR = 714, Some("cudaErrorHardwareStackError"), Some("CUDA_ERROR_HARDWARE_STACK_ERROR"), "hardware stack error";
    ILLEGAL_INSTRUCTION = 715, Some("cudaErrorIllegalInstruction"), Some("CUDA_ERROR_ILLEGAL_INSTRUCTION"), "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716, Some("cudaErrorMisalignedAddress"), Some("CUDA_ERROR_MISALIGNED_ADDRESS"), "misaligned address";
    INVALID_ADDRESS_SPACE = 717, Some("cudaErrorInvalidAddressSpace"), Some("CUDA_ERROR_INVALID_ADDRESS_SPACE"), "operation not supported on global/shared address space";
    INVALID_PC = 718, Some("cudaErrorInvalidPc"), Some("CUDA_ERROR_INVALID_PC"), "invalid program counter";
    LAUNCH_FAILED = 719, Some("cudaErrorLaunchFailure"), Some("CUDA_ERROR_LAUNCH_FAILED"), "unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, Some("cudaErrorCooperativeLaunchTooLarge"), Some("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"), "too many blocks in cooperative launch";
    TENSOR_MEMORY_LEAK = 721, Some("cudaErrorTensorMemoryLeak"), Some("CUDA_ERROR_TENSOR_MEMORY_LEAK"), "tensor memory not completely freed";
    NOT_PERMITTED = 800, Some("cudaErrorNotPermitted"), Some("CUDA_ERROR_NOT_PERMITTED"), "operation not permitted";
    NOT_SUPPORTED = 801, Some("cudaErrorNotSupported"), Some("CUDA_ERROR_NOT_SUPPORTED"), "operation not supported";
    SYSTEM_NOT_READY = 802, Some("cudaErrorSystemNotReady"), Some("CUDA_ERROR_SYSTEM_NOT_READY"), "system not yet initialized";
    SYSTEM_DRIVER_MISMATCH = 803, Some("cudaErrorSystemDriverMismatch"), Some("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"), "display driver and CUDA driver do not fit";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804, Some("cudaErrorCompatNotSupportedOnDevice"), Some("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"), "forward compatibility was attempted on non supported HW";
    MPS_CONNECTION_FAILED = 805, Some("cudaErrorMpsConnectionFailed"), Some("CUDA_ERROR_MPS_CONNECTION_FAILED"), "no connection to the MPS server";
    MPS_RPC_FAILURE = 806, Some("cudaErrorMpsRpcFailure"), Some("CUDA_ERROR_MPS_RPC_FAILURE"), "the call to the MPS server failed";
    MPS_SERVER_NOT_READY = 807, Some("cudaErrorMpsServerNotReady"), Some("CUDA_ERROR_MPS_SERVER_NOT_READY"), "the MPS server is not ready";
    MPS_MAX_CLIENTS_REACHED = 808, Some("cudaErrorMpsMaxClientsReached"), Some("CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"), "too many MPS clients";
    MPS_MAX_CONNECTIONS_REACHED = 809, Some("cudaErrorMpsMaxConnectionsReached"), Some("CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"), "too many MPS connections";
    MPS_CLIENT_TERMINATED = 810, Some("cudaErrorMpsClientTerminated"), Some("CUDA_ERROR_MPS_CLIENT_TERMINATED"), "the MPS client was ended by its server";
    CDP_NOT_SUPPORTED = 811, Some("cudaErrorCdpNotSupported"), Some("CUDA_ERROR_CDP_NOT_SUPPORTED"), "dynamic parallelism is not supported in this configuration";
    CDP_VERSION_MISMATCH = 812, Some("cudaErrorCdpVersionMismatch"), Some("CUDA_ERROR_CDP_VERSION_MISMATCH"), "versions of dynamic parallelism do not fit";
    STREAM_CAPTURE_UNSUPPORTED = 900, Some("cudaErrorStreamCaptureUnsupported"), Some("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, Some("cudaErrorStreamCaptureInvalidated"), Some("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"), "operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902, Some("cudaErrorStreamCaptureMerge"), Some("CUDA_ERROR_STREAM_CAPTURE_MERGE"), "operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903, Some("cudaErrorStreamCaptureUnmatched"), Some("CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"), "capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED = 904, Some("cudaErrorStreamCaptureUnjoined"), Some("CUDA_ERROR_STREAM_CAPTURE_UNJOINED"), "capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION = 905, Some("cudaErrorStreamCaptureIsolation"), Some("CUDA_ERROR_STREAM_CAPTURE_ISOLATION"), "dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT = 906, Some("cudaErrorStreamCaptureImplicit"), Some("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"), "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907, Some("cudaErrorCapturedEvent"), Some("CUDA_ERROR_CAPTURED_EVENT"), "operation not permitted on an event last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD = 908, Some("cudaErrorStreamCaptureWrongThread"), Some("CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"), "attempt to terminate a thread-local capture sequence from another thread";
    TIMEOUT = 909, Some("cudaErrorTimeout"), Some("CUDA_ERROR_TIMEOUT"), "wait operation timed out";
    GRAPH_EXEC_UPDATE_FAILURE = 910, Some("cudaErrorGraphExecUpdateFailure"), Some("CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"), "the graph update violates what an update may change";
    EXTERNAL_DEVICE = 911, Some("cudaErrorExternalDevice"), Some("CUDA_ERROR_EXTERNAL_DEVICE"), "an external entity failed";
    INVALID_CLUSTER_SIZE = 912, Some("cudaErrorInvalidClusterSize"), Some("CUDA_ERROR_INVALID_CLUSTER_SIZE"), "the shape of clusters does not fit";
    FUNCTION_NOT_LOADED = 913, Some("cudaErrorFunctionNotLoaded"), Some("CUDA_ERROR_FUNCTION_NOT_LOADED"), "the function is not loaded";
    INVALID_RESOURCE_TYPE = 914, Some("cudaErrorInvalidResourceType"), Some("CUDA_ERROR_INVALID_RESOURCE_TYPE"), "a resource has the wrong type";
    INVALID_RESOURCE_CONFIGURATION = 915, Some("cudaErrorInvalidResourceConfiguration"), Some("CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"), "a resource does not suffice or apply";
    KEY_ROTATION = 916, None, Some("CUDA_ERROR_KEY_ROTATION"), "keys are being changed";
    STREAM_DETACHED = 917, Some("cudaErrorStreamDetached"), Some("CUDA_ERROR_STREAM_DETACHED"), "the green context of the stream was destroyed";
    GRAPH_RECAPTURE_FAILURE = 918, Some("cudaErrorGraphRecaptureFailure"), Some("CUDA_ERROR_GRAPH_RECAPTURE_FAILURE"), "recapturing to the source graph failed";
    FABRIC_NOT_READY = 919, Some("cudaErrorFabricNotReady"), Some("CUDA_ERROR_FABRIC_NOT_READY"), "the fabric of GPUs is not ready";
    UNKNOWN = 999, Some("cudaErrorUnknown"), Some("CUDA_ERROR_UNKNOWN"), "unknown error";
    API_FAILURE_BASE = 10000, Some("cudaErrorApiFailureBase"), None, "api failure base";
}

impl Status {
    /// Converts to the status that the driver returns, and the runtime since CUDA 13. They have a different
    /// code for invalid launch configurations and for invalid device functions.
    pub(crate) fn of_driver(self) -> Status {
        match self {
            Status::INVALID_CONFIGURATION => Status::INVALID_VALUE,
            Status::INVALID_DEVICE_FUNCTION => Status::INVALID_HANDLE,
            other => other,
        }
    }

    /// Converts a device error to a status of NVIDIA's runtime.
    pub(crate) fn of_error(error: &Error) -> Status {
        match error {
            Error::OutOfMemory { .. } => Status::OUT_OF_MEMORY,
            Error::BadAddress { .. } | Error::BadArgument { .. } | Error::BadTexture { .. } => Status::INVALID_VALUE,
            Error::UnknownKernel { .. } => Status::NOT_FOUND,
            Error::BadLaunch { .. } => Status::LAUNCH_OUT_OF_RESOURCES,
            Error::Unsupported(_) => Status::INVALID_PTX,
            Error::UnknownStream(_) | Error::UnknownEvent(_) => Status::INVALID_HANDLE,
            // NVIDIA's driver answers so while the process ends.
            Error::NotHere { .. } if broadloom_cpu::compile::is_over() => Status::DEINITIALIZED,
            Error::NotHere { .. } => Status::NO_DEVICE,
            Error::Lost { .. } => Status::LAUNCH_FAILED,
            Error::Driver { code, .. } => Status(*code),
            Error::Fault(fault) => match fault.kind {
                FaultKind::OutOfBounds | FaultKind::UseAfterFree | FaultKind::BadFree => Status::ILLEGAL_ADDRESS,
                FaultKind::Misaligned => Status::MISALIGNED_ADDRESS,
                FaultKind::WrongSpace => Status::INVALID_ADDRESS_SPACE,
                FaultKind::Assert => Status::ASSERT,
                FaultKind::BadCall => Status::INVALID_PC,
                FaultKind::StackOverflow => Status::HARDWARE_STACK_ERROR,
                FaultKind::Deadlock | FaultKind::TimeLimit | FaultKind::Interrupted => Status::LAUNCH_TIMEOUT,
                FaultKind::Unsupported => Status::ILLEGAL_INSTRUCTION,
                FaultKind::Trap | FaultKind::BadBarrier => Status::LAUNCH_FAILED,
            },
        }
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.status == self)
    }

    /// Returns the runtime's name of the status, or the driver's if the runtime has none.
    pub fn name(self) -> Option<&'static str> {
        self.row().and_then(|row| row.runtime.or(row.driver))
    }

    /// Returns the driver's name of the status.
    pub fn driver_name(self) -> Option<&'static str> {
        self.row().and_then(|row| row.driver)
    }

    /// Returns the name of the status in the library of the given function.
    pub(crate) fn name_for(self, function: &str) -> Option<&'static str> {
        if function.starts_with("cuda") || function.starts_with('_') { self.name() } else { self.driver_name().or(self.name()) }
    }

    /// Returns the description of the status.
    pub fn text(self) -> Option<&'static str> {
        self.row().map(|row| row.text)
    }

    /// Finds a status by its runtime or driver name.
    pub fn of_name(name: &str) -> Option<Status> {
        ROWS.iter().find(|row| row.runtime == Some(name) || row.driver == Some(name)).map(|row| row.status)
    }

    /// Tests if the error is sticky: a kernel failed, the memory contents are undefined, and every later call
    /// returns this error.
    pub fn is_sticky(self) -> bool {
        matches!(self.0, 700 | 702 | 710 | 714..=719)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_names_are_found() {
        assert!(ROWS.windows(2).all(|pair| pair[0].status.0 < pair[1].status.0));
        assert!(ROWS.iter().all(|row| row.runtime.is_some() || row.driver.is_some()));
        assert_eq!(Status::of_name("cudaErrorMemoryAllocation"), Some(Status::OUT_OF_MEMORY));
        assert_eq!(Status::of_name("CUDA_ERROR_OUT_OF_MEMORY"), Some(Status(2)));
        assert_eq!(Status(1).text(), Some("invalid argument"));
        assert_eq!((Status(4711).name(), Status(4711).text()), (None, None));
        assert!(Status::ILLEGAL_ADDRESS.is_sticky() && !Status::OUT_OF_MEMORY.is_sticky());
    }
}
