//! NVIDIA GPUs as devices.
//!
//! The driver's library is opened at run time: nothing of CUDA is needed to build, and where there is no driver or no GPU, that is
//! said. Modules go to the driver as printed PTX, whose version and target it accepts; everything else is the driver's own: streams,
//! events, graphs. Memory comes from a pool in front of it, because the driver's calls wait and cost.
//!
//! Invariants:
//! - a call that fails leaves everything as it was, but for a context that is lost: [`broadloom_device::Error::Fault`] or
//!   [`broadloom_device::Error::Lost`] says so once with what it was lost to, every later call says that it is lost, and nothing of it is given
//!   to the driver any more;
//! - a handle of the driver has one owner, which gives it back once, when all work that uses it is known to be done;
//! - nothing that the driver says causes a panic.

#![allow(unsafe_code, reason = "the driver is a library of C")]

mod blas;
mod capture;
mod context;
mod device;
mod driver;
mod ffi;
mod fit;
mod graph;
mod host;
mod image;
mod machine;
mod measure;
mod memory;
mod module;
mod pool;
mod queue;
mod staging;
mod statistics;
mod timing;

pub use device::{Cuda, Options, Output, machines};
pub use statistics::KernelStatistics;
