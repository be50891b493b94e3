//! Tests of functors and effect graphs, on the interpreter and on the CPU.

mod basics;
mod devices;
mod effects;
mod graphs;
mod limits;
mod memory;
mod optimiser;
mod same;
