//! Launches described as text.
//!
//! The text names the kernel, the grid and the arguments. This crate parses it, allocates the buffers,
//! launches, and converts the results to text or `.npy` files.
//!
//! ```text
//! --kernel scale --grid 4 --block 256 --arg f32[1024]:iota =out.npy --arg f32:0.5 --arg i32:1024
//! ```
//!
//! # Arguments
//!
//! | syntax | meaning |
//! | --- | --- |
//! | `i32:7`, `f32:0.5`, `b64:0xFF` | a scalar |
//! | `f32[1024]:zero` | a buffer of zeros |
//! | `f32[1024]:iota` | 0, 1, 2, … |
//! | `f32[1024]:random`, `f32[1024]:random(7)` | floats from 0 to below 1, integers of any bits; reproducible, or another sequence by number |
//! | `f32[1024]:uninit` | uninitialised |
//! | `u32[4]:1,2,3,4`, `u32[]:1,2,3`, `f32[8]:0*4,1*4` | these values; `v*n` is `v` n times |
//! | `f32[32,32]:zero` | a buffer of two dimensions, which a `.npy` file keeps |
//! | `@in.npy`, `b16[8]:@in.npy` | the contents of a file; with a type: its bytes as that type |
//! | `{i32:1; f32[4]:zero; f64:2}` | a struct of scalars and buffer addresses with C layout |
//! | `…=out.npy`, or a separate word `=out.npy` | the preceding buffer is written to a file after the launch |
//! | `…=`, or a separate word `=` | the preceding buffer is printed |
//!
//! Types are `i8` to `i64` (or `s8` to `s64`), `u8` to `u64`, `b8` to `b64` (bits, printed in hexadecimal),
//! `f16`, `bf16`, `f32`, `f64`. Floats are written as `0.5`, `1e-3`, `inf`, `nan`, `nan(0x7fc00001)`, or as
//! bits, `0x3f800000`.
//!
//! # Invariants
//!
//! - Any user input or file content that is invalid ends as a diagnostic that points at the word, never as a
//!   panic.
//! - A size is checked before memory is allocated: a buffer has at most [`MAX_BYTES`].
//! - Printed values are exact: as arguments, they give the same bits.

mod argument;
mod array;
mod codes;
mod contents;
mod element;
mod error;
mod image;
mod npy;
mod prepare;
mod spec;
mod words;

pub use argument::{ArgumentSpec, ArgumentValue, BufferSpec, Contents, Destination, parse_arguments};
pub use array::{HostArray, SHOWN_WHOLE};
pub use codes::*;
pub use element::{Element, ElementError};
pub use error::LaunchError;
pub use image::ImageSpec;
pub use npy::{NpyError, read_npy, write_npy, write_npy_bool};
pub use prepare::{Output, PreparedLaunch, prepare};
pub use spec::{InvalidExtent, LaunchSpec, parse_extent};
pub use words::split_words;

/// Maximum size of a buffer in bytes.
pub const MAX_BYTES: u64 = 1 << 33;
