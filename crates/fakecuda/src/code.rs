//! Result codes.

use broadloom_device::{Error, FaultKind};

/// `CUresult`.
pub(crate) type Code = u32;

/// Result of a call.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

pub(crate) const INVALID_VALUE: Code = 1;
pub(crate) const OUT_OF_MEMORY: Code = 2;
pub(crate) const NOT_INITIALIZED: Code = 3;
pub(crate) const INVALID_IMAGE: Code = 200;
pub(crate) const INVALID_DEVICE: Code = 101;
pub(crate) const INVALID_CONTEXT: Code = 201;
pub(crate) const ECC_UNCORRECTABLE: Code = 214;
pub(crate) const INVALID_PTX: Code = 218;
pub(crate) const INVALID_HANDLE: Code = 400;
pub(crate) const NOT_FOUND: Code = 500;
pub(crate) const NOT_READY: Code = 600;
pub(crate) const ILLEGAL_ADDRESS: Code = 700;
pub(crate) const LAUNCH_TIMEOUT: Code = 702;
pub(crate) const ASSERT: Code = 710;
pub(crate) const MISALIGNED_ADDRESS: Code = 716;
pub(crate) const INVALID_PC: Code = 718;
pub(crate) const LAUNCH_FAILED: Code = 719;
pub(crate) const UNKNOWN: Code = 999;

/// Converts an error of the CPU device to a driver code.
pub(crate) fn code_of(error: &Error) -> Code {
    match error {
        Error::OutOfMemory { .. } => OUT_OF_MEMORY,
        Error::Unsupported(_) => INVALID_PTX,
        Error::Fault(fault) => match fault.kind {
            FaultKind::OutOfBounds | FaultKind::UseAfterFree | FaultKind::WrongSpace => ILLEGAL_ADDRESS,
            FaultKind::Misaligned => MISALIGNED_ADDRESS,
            FaultKind::Assert => ASSERT,
            FaultKind::BadCall => INVALID_PC,
            FaultKind::TimeLimit | FaultKind::Interrupted => LAUNCH_TIMEOUT,
            FaultKind::Trap | FaultKind::BadFree | FaultKind::Deadlock | FaultKind::StackOverflow => LAUNCH_FAILED,
            FaultKind::BadBarrier | FaultKind::Unsupported => LAUNCH_FAILED,
        },
        Error::BadAddress { .. } | Error::BadArgument { .. } | Error::BadLaunch { .. } | Error::BadTexture { .. } => {
            INVALID_VALUE
        }
        Error::UnknownKernel { .. } => NOT_FOUND,
        Error::UnknownStream(_) | Error::UnknownEvent(_) => INVALID_HANDLE,
        Error::NotHere { .. } | Error::Lost { .. } | Error::Driver { .. } => UNKNOWN,
    }
}

/// Tests if a GPU does not recover from a result code.
pub(crate) fn is_fatal(code: Code) -> bool {
    matches!(code, ECC_UNCORRECTABLE | ILLEGAL_ADDRESS | LAUNCH_TIMEOUT | 709..=719)
}
