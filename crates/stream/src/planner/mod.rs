//! The planner: from a graph and its schedule to kernels, and the runs of these kernels.

pub mod classify;
pub mod compiled;
pub(crate) mod disjoint_sets;
pub(crate) mod recurrence;
pub mod restructure;
pub mod translate;
