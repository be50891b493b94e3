//! Broadloom as a library: what a program adds to its `Cargo.toml`.
//!
//! Re-exports the parts that users meet, under one name, and opens devices by theirs: `cpu`, vector code on every core of the host,
//! `cpu:strict`, the same with a check of every access of a kernel, `cuda`, an NVIDIA GPU (`cuda:1` is the second), `interp`, which
//! executes one thread at a time and judges the others, and `auto`, a GPU where there is one and else the CPU.
//!
//! The device `cpu` is a feature of this crate, `cpu`, which is on by default and needs LLVM 19 to be built. A program for GPUs alone
//! is built without LLVM: `broadloom = { …, default-features = false }`. Then `auto` is a GPU.
//!
//! Arrays are computed when they are needed, in as few passes over memory as pay:
//!
//! ```
//! use broadloom::{Array, context};
//!
//! let context = context("auto")?;
//! let x = Array::line(&context, &[3.0f32, 4.0])?;
//! assert_eq!((&x * &x).sum().sqrt().item()?, 5.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Kernels in PTX are loaded and launched:
//!
//! ```
//! use broadloom::{device::Launch, diag::Sources, open, ptx};
//! use std::sync::Arc;
//!
//! let mut sources = Sources::new();
//! let id = sources.add("double.ptx", "
//!     .version 7.0 .target sm_70 .address_size 64
//!     .visible .entry twice(.param .u64 data) {
//!         .reg .b32 %i, %v; .reg .b64 %p, %o;
//!         ld.param.u64 %p, [data];
//!         mov.u32 %i, %tid.x;
//!         mul.wide.u32 %o, %i, 4;
//!         add.u64 %p, %p, %o;
//!         ld.global.u32 %v, [%p];
//!         add.u32 %v, %v, %v;
//!         st.global.u32 [%p], %v;
//!         ret;
//!     }");
//! let module = ptx::parse(&sources, id).and_then(ptx::verify).unwrap();
//!
//! let device = open("cpu")?;
//! let kernel = device.load(&Arc::new(module))?.kernel("twice")?;
//! let data = device.upload(&[1u32, 2, 3, 4])?;
//! kernel.launch(&Launch::linear(1, 4), &[(&data).into()])?;
//! assert_eq!(data.read()?, [2, 4, 6, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod executor;

pub use broadloom_array as array;
pub use broadloom_array::{Array, Boundary, Context, F32x4, Function, Precision, Segments, Span, Traced, evaluate_all, span};
#[cfg(feature = "cpu")]
pub use broadloom_cpu as cpu;
pub use broadloom_cuda as cuda;
pub use broadloom_device as device;
pub use broadloom_diag as diag;
pub use broadloom_effect as effect;
pub use broadloom_graph as graph;
pub use broadloom_interp as interp;
pub use broadloom_launch as launch;
pub use broadloom_nesl as nesl;
pub use broadloom_ptx as ptx;
pub use broadloom_stream as stream;
pub use broadloom_transform as transform;
pub use executor::{OpenError, UnknownDevice, context, default_context, gpu_ordinal, gpus, machines, open};
