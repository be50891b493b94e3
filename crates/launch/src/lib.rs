//! A launch described in text.
//!
//! A person says which kernel to run, over which grid, with which arguments, in a few words; this crate understands the words,
//! makes the buffers, launches, and turns what the buffers hold into text or `.npy` files.
//!
//! ```text
//! --kernel scale --grid 4 --block 256 --arg f32[1024]:iota =out.npy --arg f32:0.5 --arg i32:1024
//! ```
//!
//! # Arguments
//!
//! | written | what it is |
//! | --- | --- |
//! | `i32:7`, `f32:0.5`, `b64:0xFF` | a scalar |
//! | `f32[1024]:zero` | a buffer of zeros |
//! | `f32[1024]:iota` | 0, 1, 2, … |
//! | `f32[1024]:random`, `f32[1024]:random(7)` | floats from 0 to below 1, integers of any bits; always the same, or another row by number |
//! | `f32[1024]:uninit` | never written |
//! | `u32[4]:1,2,3,4`, `u32[]:1,2,3`, `f32[8]:0*4,1*4` | these values; `v*n` is `v` n times |
//! | `f32[32,32]:zero` | a buffer of two dimensions, which a `.npy` file keeps |
//! | `@in.npy`, `b16[8]:@in.npy` | the contents of a file; with a type: its bytes seen as that type |
//! | `{i32:1; f32[4]:zero; f64:2}` | a struct of scalars and of addresses of buffers, laid out as C does |
//! | `…=out.npy`, or `=out.npy` as a word of its own | the buffer before it is written to a file after the launch |
//! | `…=`, or `=` as a word of its own | the buffer before it is shown |
//!
//! Types are `i8` to `i64` (or `s8` to `s64`), `u8` to `u64`, `b8` to `b64` (bits, shown in hexadecimal), `f16`, `bf16`, `f32`, `f64`. Floats are written as
//! `0.5`, `1e-3`, `inf`, `nan`, `nan(0x7fc00001)`, or as bits, `0x3f800000`.
//!
//! # Invariants
//!
//! - whatever a person writes or a file holds ends as a diagnostic that points at the word, never as a panic;
//! - a size is checked before memory is asked for: a buffer has at most [`MAX_BYTES`];
//! - values shown are exact: what is shown, written as an argument, gives the same bits.

mod argument;
mod array;
mod codes;
mod contents;
mod element;
mod image;
mod npy;
mod prepare;
mod spec;
mod words;

pub use argument::{ArgumentSpec, ArgumentValue, BufferSpec, Contents, Destination, parse_arguments};
pub use array::{HostArray, SHOWN_WHOLE};
pub use codes::*;
pub use element::Element;
pub use image::ImageSpec;
pub use npy::{NpyError, read_npy, write_npy, write_npy_bool};
pub use prepare::{LaunchError, Output, Prepared, prepare};
pub use spec::{LaunchSpec, parse_extent};
pub use words::split_words;

/// The largest buffer, in bytes.
pub const MAX_BYTES: u64 = 1 << 33;
