//! A replacement for NVIDIA's `libcudart` and `libcuda`, so that compiled CUDA programs run on Broadloom's
//! devices.
//!
//! One shared library holds the functions of both. Programs load shim libraries with NVIDIA's names, which
//! `broadloom exec` writes; the first call of a function opens this library (`broadloom-shim`).
//! `docs/CUDA_PROGRAMS.md` is the user's guide.
//!
//! - [`functions`] lists all functions, each implemented or with the error that it returns.
//! - `runtime/` and `driver/` define the functions, one file per area; `shared_api/` defines those that both
//!   libraries have. They are thin: they dereference pointers and call the implementation.
//! - `objects/` has the types and tables of what a program holds: memory, streams, events, modules, kernels,
//!   graphs. `state` is the global state, with the device and these tables.
//! - The operations on them are methods of the global state, one file per subject: `memory`, `streams`,
//!   `events`, `kernels`, `pools`, `work`, `graphs`, `image`.
//! - `fatbin`, `mirror`, `check`, `exit` and others know neither the global state nor the objects.
//! - `pass` binds the exported symbols to these functions, or on a GPU to NVIDIA's libraries, and records the
//!   calls.
//! - `boundary` is the only place where C calls Rust. `pointer` is the only place that dereferences the
//!   program's pointers.

#![allow(unsafe_code, reason = "it is a library of C")]
#![allow(non_snake_case, reason = "the functions' names are NVIDIA's")]

mod advice;
#[cfg(test)]
mod allocations;
mod archive;
mod boundary;
mod check;
mod conditions;
mod contexts;
mod device;
mod device_runtime;
mod driver;
mod events;
mod exit;
mod fatbin;
pub mod functions;
mod graphs;
mod handles;
mod image;
mod jit;
mod kernels;
#[cfg(test)]
mod layouts;
mod link;
mod location;
mod log;
mod mapped;
mod memory;
mod mirror;
mod objects;
mod occupancy;
mod pass;
mod pointer;
mod pools;
mod prototype;
mod references;
mod registration;
mod reset;
mod runtime;
mod shared_api;
mod sharing;
mod state;
mod status;
mod streams;
mod tell;
mod textures;
mod tracing;
mod types;
mod version;
mod words;
mod work;

pub use status::Status;

/// File name of the shared library.
pub const LIBRARY: &str = "libbroadloom_cudart.so";
