//! File tests: source files whose leading comment holds commands and whose trailing comment holds the
//! expected output. The extension determines the language: `.ptx`, `.graph`, `.nesl`, `.str` ([`LANGUAGES`]).
//!
//! ```text
//! // Sums of two registers print as they were written.     prose, free
//! // test: print                                           what to do: print, verify, run, …      one line each
//! .version 8.0
//! .target sm_90
//! .address_size 64
//! .entry k() { .reg .b32 %r<3>; add.s32 %r1,%r2 , 7; ret; }
//! // expect print:                                         what must come out, one section per command
//! // .version 8.0
//! // …
//! ```
//!
//! `BLESS=1 cargo test -p broadloom-filetest` rewrites every expectation with the current output; review the
//! difference like code. Files are found under `tests/filetests` at the root of the workspace. The whole
//! format is described in `docs/TESTING.md`.
//!
//! Invariants:
//! - a file that cannot be understood is a failing test, never a skipped one;
//! - rewriting changes nothing but the expectations;
//! - tests of a missing device are ignored, never passed.
//!
//! Hidden modules are public for the tests of this crate alone.

#[doc(hidden)]
pub mod device_differences;
mod devices;
mod discover;
mod expand;
mod failure;
mod file;
mod graph;
mod language;
mod languages;
mod launches;
mod nesl;
mod ptx;
mod stream;
mod tolerance;
#[doc(hidden)]
pub mod trials;

pub use device_differences::left_out_on_gpus;
pub use devices::{DEVICES, DeviceEntry, PrintedText};
pub use discover::{find_files, root};
pub use expand::{MAX_TEXT, Replacement, expand};
pub use failure::Failure;
pub use file::{Case, FileError, Settings, TestFile};
pub use language::{ArgumentCheck, Command, Devices, Language, Request};
pub use languages::{LANGUAGES, language_of};
pub use ptx::LANGUAGE as PTX;
pub use tolerance::Tolerance;
pub use trials::{bless, judge, source_name, trials};
