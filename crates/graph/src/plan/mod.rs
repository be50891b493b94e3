//! Plans: the kernels of a tape, their order, their patterns and the lifetimes of their results.

pub(crate) mod assemble;
pub(crate) mod chain;
pub(crate) mod chain_kernel;
pub(crate) mod cut;
pub(crate) mod group;
pub(crate) mod join;
pub(crate) mod kernel;
pub(crate) mod kernels;
pub(crate) mod kinds;
pub(crate) mod order;
pub(crate) mod patches;
pub(crate) mod pattern;
pub(crate) mod positions;
pub(crate) mod row_kernel;
pub(crate) mod rows;
pub(crate) mod strips;
pub(crate) mod summary;
pub(crate) mod transposed;
