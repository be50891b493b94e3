//! PTX on the host's CPU: warps as vectors, blocks on every core.
//!
//! A kernel is compiled on its first launch with a block shape. A warp of 32 threads runs as vector code.
//! Kernels that cannot be vectorised run one thread at a time, slower but with the same results.
//!
//! Hidden modules are public for the tests of this crate alone.
//!
//! ```
//! use broadloom_cpu::{CacheFolder, Cpu, Options};
//! use broadloom_device::{Device, Launch};
//! use broadloom_diag::Sources;
//! use std::sync::Arc;
//!
//! let mut sources = Sources::new();
//! let id = sources.add("scale.ptx", "
//!     .version 7.0 .target sm_70 .address_size 64
//!     .visible .entry scale(.param .u64 data, .param .f32 factor) {
//!         .reg .b32 %i; .reg .f32 %v, %f; .reg .b64 %p, %o;
//!         ld.param.u64 %p, [data];
//!         ld.param.f32 %f, [factor];
//!         mov.u32 %i, %tid.x;
//!         mul.wide.u32 %o, %i, 4;
//!         add.u64 %p, %p, %o;
//!         ld.global.f32 %v, [%p];
//!         mul.f32 %v, %v, %f;
//!         st.global.f32 [%p], %v;
//!         ret;
//!     }");
//! let module = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).unwrap();
//!
//! let cpu = Cpu::new(Options { threads: 1, cache: CacheFolder::Nowhere, ..Options::default() })?;
//! let device = Device::new(cpu.clone());
//! let data = device.upload(&[1.0f32; 64])?;
//! let kernel = device.load(&Arc::new(module))?.kernel("scale")?;
//! kernel.launch(&Launch::linear(1, 64), &[(&data).into(), 1.5f32.into()])?;
//! assert_eq!(data.read()?, [1.5; 64]);
//!
//! // Neighbouring lanes read and wrote neighbouring floats: vector accesses, no gathers.
//! let statistics = &cpu.statistics()[0];
//! assert_eq!(statistics.not_vectorised, None);
//! assert_eq!((statistics.stores.contiguous, statistics.stores.scattered), (1, 0));
//! # Ok::<(), broadloom_device::Error>(())
//! ```

#![allow(unsafe_code, reason = "generated code is called, and it reads and writes raw memory")]
#![allow(clippy::vec_box, reason = "generated code points to what is in those boxes")]

pub mod abi;
mod admit;
mod ahead;
#[doc(hidden)]
pub mod arena;
#[doc(hidden)]
pub mod background;
#[doc(hidden)]
pub mod barrier;
mod builtin;
#[doc(hidden)]
pub mod cache;
#[doc(hidden)]
pub mod cluster;
pub mod code;
pub mod compile;
mod device;
#[doc(hidden)]
pub mod exchange;
mod execute;
#[doc(hidden)]
pub mod externs;
#[doc(hidden)]
pub mod faults;
#[doc(hidden)]
pub mod fiber;
#[doc(hidden)]
pub mod grid;
mod handle;
#[doc(hidden)]
pub mod host;
mod image;
mod kernel;
mod lanes;
#[doc(hidden)]
pub mod map;
mod meet;
#[doc(hidden)]
pub mod memory;
mod module;
#[doc(hidden)]
pub mod object;
mod options;
#[doc(hidden)]
pub mod probe;
mod registers;
mod service;
mod services;
pub mod signals;
mod state;
mod statistics;
mod stream;
pub mod supervise;
#[doc(hidden)]
pub mod texels;
mod variables;
mod watchdog;
mod worker;

pub use background::{Compiling, Notice};
pub use broadloom_device::CacheFolder;
pub use device::Cpu;
pub use execute::Output;
pub use memory::Foreign;
pub use module::refused;
pub use options::{Options, STRICT};
pub use statistics::KernelStatistics;
