//! Translation of a filter's firing into scalar code.
//!
//! The result is a [`Function`] of the number of the firing. It reads input words through one accessor and
//! writes the pushed words through another. Both count words from the start of the firing's window. Where
//! words are stored in memory is not its concern.
//!
//! The function returns whether the firing failed: an index outside of an array, a division by zero, a broken
//! rate, or a variable that is read before it is set. The evaluator then repeats the firing and reports the
//! exact error.
//!
//! Parameters, fields that no firing writes and `static` variables are constants of the code. Everything that
//! depends on constants alone is computed here, by the evaluator's own arithmetic.
//!
//! Invariant: a translated firing gives the evaluator's items bit for bit, except for elementary functions,
//! which are computed in double precision and rounded once.
//!
//! [`fire`] writes the same code directly into a kernel. There, the fields that firings write are stored in
//! variables, local arrays or device memory.
//!
//! Filters that print, send messages, draw random numbers or recurse are refused with the reason. `translate`
//! also refuses filters that write fields, except inductions.

mod cooperate;
mod cooperation;
mod count;
mod expr;
mod fire;
mod items;
mod math;
mod position;
mod reason;
mod rounds;
mod state;
mod stmt;
mod store;
mod totals;
mod translated;
mod translator;
mod value;
mod words;

pub(crate) use cooperation::{Cooperation, Fold, LoopShare, PartSize, Rows};
pub(crate) use fire::{fire, translate};
pub use reason::Reason;
pub(crate) use state::{CLASSES, check_in_order, class_of, written_fields};
pub use translated::{FilterCode, Induction, Rounds, Window};
pub(crate) use translator::{KernelSite, Reads, Subject, Writes};
pub(crate) use value::{Leaf, element, leaves, scalars};
pub use words::Words;
