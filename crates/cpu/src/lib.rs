//! PTX on the host's CPU: warps as vectors, blocks on every core.
//!
//! A kernel is compiled for the shape of its blocks the first time it is launched with it. A warp of 32 threads runs as vector
//! code; kernels that cannot be run so run one thread at a time, slower and never wrong.

#![allow(unsafe_code, reason = "generated code is called, and it reads and writes raw memory")]

pub mod abi;
pub mod code;
pub mod compile;
