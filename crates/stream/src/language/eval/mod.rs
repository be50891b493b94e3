//! The evaluator: the reference semantics of programs.
//!
//! [`run()`] executes a [`crate::language::graph::Graph`] on the host, one item at a time. Compiled code is compared
//! with it.
//!
//! Invariants:
//! - nothing here prints or opens a file: the [`Host`] does;
//! - steps, memory and the depth of calls are bounded by [`Limits`]. Reaching a limit is an error with a
//!   place.

mod arithmetic;
mod blocks;
mod budget;
mod checkpoint;
mod code;
mod element;
mod end_of_input;
mod files;
mod firing;
mod host;
mod machine;
mod mail;
mod messages;
mod place;
mod prefetch;
mod run;
mod scalar;
mod show;
mod stop;
mod write_behind;

pub(crate) use arithmetic::{binary, complex as complex_math, convert, math};
pub(crate) use budget::{Budget, with_stack};
pub(crate) use checkpoint::Snapshot;
pub(crate) use code::{Code, Weights, World};
pub(crate) use files::decode_scalars;
pub use files::file_item;
pub use host::{Host, Memory, System, amend_file, create_file, open_file};
pub(crate) use machine::{Machine, Record, random};
pub use machine::{Outcome, Settings};
pub(crate) use messages::{correspondents, has_upstream_messages};
pub use run::run;
pub use show::show_value;
pub(crate) use stop::{PATHS, Stop};

pub use crate::language::limits::Limits;
