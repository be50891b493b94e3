//! A driver library for tests: the functions of the CUDA driver that Broadloom uses, implemented with the CPU
//! device.
//!
//! It is opened in place of `libcuda.so.1` (`BROADLOOM_CUDA_DRIVER`), counts every call, and can make any of
//! them fail: the n-th call of a function returns a chosen code. It is stricter than a real driver: the use
//! of a released handle or of unpinned memory, or a copy outside of an allocation, counts as a *violation*.
//! It tracks all live objects, so that leaks show.
//!
//! - A call that fails on request has no effect, except for calls that release something: they release it and
//!   report the failure, like a driver that reports an earlier one.
//! - A failure from which a GPU does not recover poisons the context: every call returns it until the context
//!   is reset.
//! - A module with a kernel named `refused` is not compiled, and the log says so.
//!
//! It also has the cuBLAS functions that Broadloom uses (`BROADLOOM_CUBLAS`).
//!
//! The control consists of a few exported functions, see [`control`], or of `BROADLOOM_FAKE_CUDA=NAME:N:CODE`
//! in the environment.

#![allow(unsafe_code, reason = "it is a library of C")]
#![allow(clippy::missing_safety_doc, reason = "the functions are the driver's, and documented there")]

mod blas;
mod code;
pub mod control;
mod device;
mod exports;
mod faults;
mod graph;
mod launch;
mod link;
mod memory;
mod state;
mod stream;
mod text;

/// File name of the library.
pub const LIBRARY: &str = "libbroadloom_fakecuda.so";
