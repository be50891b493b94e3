//! NVIDIA GPUs as devices.
//!
//! The driver's library is opened at run time. Nothing of CUDA is needed to build, and a missing driver or
//! GPU is reported. Modules are passed to the driver as printed PTX, with a version and target that it
//! accepts. Streams, events and graphs are the driver's own. Memory comes from a pool, because the driver's
//! calls are slow and may wait.
//!
//! Invariants:
//! - A failing call leaves everything unchanged, except for a lost context.
//!   [`broadloom_device::Error::Fault`] or [`broadloom_device::Error::Lost`] reports the cause once; every
//!   later call reports the loss, and nothing of the context is passed to the driver any more.
//! - A handle of the driver has one owner, which releases it once, when all work that uses it is known to be
//!   done.
//! - No answer of the driver causes a panic.

#![allow(unsafe_code, reason = "the driver is a library of C")]

mod blas;
mod capture;
mod chunks;
mod context;
mod device;
mod driver;
mod ffi;
mod fit;
mod graph;
mod host;
mod image;
mod images;
mod inner;
mod journal;
mod machine;
mod measure;
mod memory;
mod module;
mod options;
mod pinned;
mod pool;
mod product;
mod queue;
mod staging;
mod statistics;
mod timing;

pub use device::{Cuda, machines};
pub use options::{Options, Output};
pub use statistics::KernelStatistics;
