//! Functions that `libcudart` and `libcuda` share, one file per area. Each has one definition and a name in
//! either library.

pub(crate) mod batches;
pub(crate) mod logs;
pub(crate) mod node_attributes;
pub(crate) mod objects;
pub(crate) mod partitions;
pub(crate) mod pools;
pub(crate) mod sharing;
