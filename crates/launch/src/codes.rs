//! The codes of what can be wrong with a launch.

use broadloom_diag::Code;

/// An argument that cannot be understood.
pub const BAD_ARGUMENT: Code = Code("L0001");
/// A value that its type cannot hold.
pub const BAD_VALUE: Code = Code("L0002");
/// A buffer beyond [`crate::MAX_BYTES`].
pub const TOO_LARGE: Code = Code("L0003");
/// An argument that does not fit the parameter of the kernel.
pub const MISFIT: Code = Code("L0004");
/// A kernel that has to be named, or does not exist.
pub const NO_KERNEL: Code = Code("L0005");
/// A file that cannot be read.
pub const BAD_FILE: Code = Code("L0006");
/// An option of the launch that cannot be understood.
pub const BAD_OPTION: Code = Code("L0007");
