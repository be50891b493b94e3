//! Error codes of launches.

use broadloom_diag::Code;

/// Malformed argument.
pub const BAD_ARGUMENT: Code = Code("L0001");
/// Value out of range for its type.
pub const BAD_VALUE: Code = Code("L0002");
/// Buffer larger than [`crate::MAX_BYTES`].
pub const TOO_LARGE: Code = Code("L0003");
/// Argument that does not match the kernel's parameter.
pub const MISFIT: Code = Code("L0004");
/// Missing or unknown kernel name.
pub const NO_KERNEL: Code = Code("L0005");
/// Unreadable file.
pub const BAD_FILE: Code = Code("L0006");
/// Malformed launch option.
pub const BAD_OPTION: Code = Code("L0007");
