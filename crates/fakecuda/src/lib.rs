//! A driver library for tests: the functions of the CUDA driver that Broadloom uses, done by the CPU device.
//!
//! It is opened in place of `libcuda.so.1` (`BROADLOOM_CUDA_DRIVER`), counts every call, and makes any one of them fail: the n-th call of a
//! function gives a chosen result. It is strict where a real driver is forgiving: a handle that was given back, memory that was not pinned or
//! a copy outside of an allocation is counted as a *violation*. It keeps a list of everything that is alive, so that a leak shows.
//!
//! - A call that fails on request has no effect, but for those that give something back: they do it and report the failure, as a driver does
//!   that reports an earlier one.
//! - A failure that a GPU does not recover from poisons the context: every call gives it until the context is reset.
//!
//! - A module with a kernel called `refused` is not compiled, and the log says so.
//!
//! It also has the functions of cuBLAS that Broadloom uses (`BROADLOOM_CUBLAS`).
//!
//! The control is a handful of exported functions, see [`control`]; or `BROADLOOM_FAKE_CUDA=NAME:N:CODE` in the environment.

#![allow(unsafe_code, reason = "it is a library of C")]
#![allow(clippy::missing_safety_doc, reason = "the functions are the driver's, and documented there")]

mod blas;
pub mod control;
mod device;
mod exports;
mod graph;
mod launch;
mod link;
mod memory;
mod state;
mod stream;

/// The file that this is built as.
pub const LIBRARY: &str = "libbroadloom_fakecuda.so";
