//! NESL: a language of nested data parallelism.
//!
//! ```text
//! text → syntax → infer → core → eval
//!                           └──→ flatten → flat → vcode → machine
//! ```
//!
//! [`syntax`] parses and prints. [`infer`] resolves names and infers types; its output is [`core`], the typed
//! program of all later stages. [`eval`] evaluates that program over nested values by plain recursion: it is
//! the reference for compiled code. Flattening turns it into [`flat`] code over vectors, which becomes
//! [`vcode`]. The [`machine`] executes that, with large vectors on a device ([`run`]). [`session`] is the top level: definitions, expressions,
//! commands, the library.
//!
//! Invariants:
//! - no program causes a panic, an endless run or a stack overflow: limits end in errors;
//! - every error has a code and, if it belongs to a text, its place;
//! - nothing here prints or opens a file: the [`eval::Host`] of a session does.
//!
//! ```
//! use broadloom_nesl::eval::SealedHost;
//! use broadloom_nesl::session::{Session, Settings};
//!
//! let mut session = Session::new(Settings::default(), Box::new(SealedHost))?;
//! let program = "function fact(n) = if n < 2 then 1 else n * fact(n - 1); {fact(i) : i in [3, 0, 7]};";
//! let outputs = session.eval("example", program);
//! assert_eq!(outputs[0].to_string(), "fact = fn : int -> int\n");
//! assert_eq!(outputs[1].to_string(), "it = [6, 1, 5040] : [int]\n");
//! # std::io::Result::Ok(())
//! ```

pub mod codes;
pub mod core;
pub(crate) mod data;
pub mod eval;
pub mod flat;
pub(crate) mod flatten;
pub(crate) mod hash;
pub mod infer;
pub(crate) mod invariant;
pub mod machine;
pub mod primitives;
pub mod program;
pub mod run;
pub mod session;
pub mod syntax;
pub mod types;
pub mod vcode;

pub use program::{Column, Pending, Program};
