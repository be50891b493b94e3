//! The functions that `libcudart` and `libcuda` have alike, one file for each area: one text, and a name in either library.

pub(crate) mod batches;
pub(crate) mod logs;
pub(crate) mod node_attributes;
pub(crate) mod objects;
pub(crate) mod partitions;
pub(crate) mod pools;
pub(crate) mod sharing;
