//! StreamIt: a language of filters that pop, peek and push items on tapes.
//!
//! ```text
//! text → syntax → lower → core → elaborate → graph → schedule → eval
//!                                              graph, schedule → classify → restructure → compiled
//! ```
//!
//! The first line is the room `language`, the second the room `planner`, which stands on it.
//!
//! [`syntax`] parses. [`lower()`](lower::lower) resolves names and types. Its result is [`core`], the typed
//! program that later stages work on. [`elaborate()`](elaborate::elaborate) runs the code that builds the
//! graph. Its result is [`graph`]: filter instances, splitters and joiners with evaluated rates. [`schedule`]
//! finds the steady state, the initial schedule and the bounds of tapes. [`eval`] executes the graph on the
//! host and defines the meaning of programs. [`translate`], [`classify()`](classify::classify) and
//! [`restructure`] make kernels of parts of the graph. A [`compiled::Compiled`] program runs them.
//!
//! Invariants:
//! - no program text causes a panic or a stack overflow: reaching a limit is an error;
//! - every error has a code and, if it is in a text, its place;
//! - nothing here prints or opens a file: the [`eval::Host`] does.
//!
//! ```
//! use broadloom_stream::{Program, eval::{Memory, Settings}};
//!
//! let text = "
//!     void->void pipeline Counter {
//!         add void->int filter { int n; work push 1 { push(n++); } }
//!         add int->void filter { work pop 1 { println(pop() * 2); } }
//!     }";
//! let mut host = Memory::default();
//! let program = Program::compile("counter.str", text, &mut host, &Default::default())?;
//! program.run(&mut host, &Settings { iterations: Some(3), ..Settings::default() })?;
//! assert_eq!(host.output, "0\n2\n4\n");
//! # Ok::<(), broadloom_stream::Failure>(())
//! ```

mod language;
mod planner;

pub use language::program::{Binding, Failure, Program};
pub use language::{blocks, codes, core, elaborate, eval, format, graph, lower, picture, schedule, syntax};
pub use planner::{classify, compiled, restructure, translate};
