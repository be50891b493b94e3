//! Plans: the kernels of a tape, their order, their patterns and the lifetimes of their results.

pub(crate) mod assemble;
pub(crate) mod chain;
pub(crate) mod cut;
pub(crate) mod group;
pub(crate) mod join;
pub(crate) mod kernels;
pub(crate) mod patches;
pub(crate) mod pattern;
