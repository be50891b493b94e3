//! PTX on the host's CPU: warps as vectors, blocks on every core.
//!
//! A kernel is compiled for the shape of its blocks the first time it is launched with it. A warp of 32 threads runs as vector
//! code; kernels that cannot be run so run one thread at a time, slower and never wrong.

#![allow(unsafe_code, reason = "generated code is called, and it reads and writes raw memory")]
#![allow(clippy::vec_box, reason = "generated code points to what is in those boxes")]

pub mod abi;
mod barrier;
mod builtin;
mod cache;
pub mod code;
pub mod compile;
mod device;
mod exchange;
mod execute;
mod externs;
mod faults;
mod fiber;
mod grid;
mod map;
mod memory;
mod module;
mod object;
mod options;
mod probe;
mod services;
mod statistics;
mod stream;
#[cfg(test)]
mod testing;
mod variables;
mod watchdog;
mod worker;

pub use device::Cpu;
pub use execute::Output;
pub use options::{CacheFolder, Options};
pub use statistics::KernelStatistics;
