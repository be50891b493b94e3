//! Tests of the command: its output and its exit code.

mod attacks;
mod bad_input;
mod bench;
mod check;
mod cuda;
mod demo;
mod effect;
mod exec;
mod explain;
mod graph;
mod harness;
mod nesl;
mod programs;
mod repl;
mod run;
mod signals;
mod stream;
