//! The command as a person meets it: what it writes, where, and the exit code.

mod attacks;
mod bad_input;
mod bench;
mod check;
mod cuda;
mod effect;
mod exec;
mod explain;
mod graph;
mod harness;
mod nesl;
mod programs;
mod readme;
mod run;
mod signals;
mod stream;
