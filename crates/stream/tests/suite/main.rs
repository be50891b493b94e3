//! Tests of the library: graphs, schedules, hostile texts, and compiled programs.

mod compiled;
mod formats;
mod graph;
mod graphs;
mod hostile;
mod items;
mod random;
mod steps;
