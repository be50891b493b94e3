//! A stand-in for NVIDIA's `libcudart` and `libcuda`, so that compiled CUDA programs run on Broadloom's devices.
//!
//! One shared library holds the functions of both; small libraries with NVIDIA's names that depend on it (`broadloom exec` writes them) bring
//! programs here. `docs/CUDA_PROGRAMS.md` is the page for those who have a program.
//!
//! - [`functions`] is the list of all functions: done, or the error that each returns;
//! - `runtime/` and `driver/` have the functions, one file for each area, `both/` those that they have alike; thin: they follow pointers and call what does the work;
//! - what does the work is safe code beside them: `state`, `memory`, `streams`, `events`, `kernels`, `pools`, `work`, `graphs`, `image`, `fatbin`, `mirror`, `check`, `tracing`;
//! - `pass` leads the exported symbols there, or on a GPU to NVIDIA's libraries, and records what passes;
//! - `boundary` is the one place where C calls Rust, `pointer` the one place where pointers of the program are followed.

#![allow(unsafe_code, reason = "it is a library of C")]
#![allow(non_snake_case, reason = "the functions' names are NVIDIA's")]

mod advice;
#[cfg(test)]
mod allocations;
mod archive;
mod both;
mod boundary;
mod check;
mod conditions;
mod device;
mod device_runtime;
mod driver;
mod events;
mod explain;
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
mod log;
mod mapped;
mod memory;
mod mirror;
mod occupancy;
mod pass;
mod pointer;
mod pools;
mod prototype;
mod references;
mod registration;
mod reset;
mod runtime;
mod sharing;
mod state;
mod status;
mod streams;
mod tell;
mod textures;
mod tracing;
mod types;
mod user_objects;
mod words;
mod work;

pub use status::Status;

/// The file that this is built as.
pub const LIBRARY: &str = "libbroadloom_cudart.so";
