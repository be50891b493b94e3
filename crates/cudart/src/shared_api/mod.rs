//! Code that `libcudart` and `libcuda` share, one file per area: functions with a
//! name in either library, and conversions of their parameters.

pub(crate) mod batches;
pub(crate) mod capture;
pub(crate) mod copies;
pub(crate) mod devices;
pub(crate) mod entry;
pub(crate) mod events;
pub(crate) mod functions;
pub(crate) mod graphs;
pub(crate) mod launches;
pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod node_attributes;
pub(crate) mod nodes;
pub(crate) mod objects;
pub(crate) mod occupancy;
pub(crate) mod partitions;
pub(crate) mod peers;
pub(crate) mod pools;
pub(crate) mod sharing;
pub(crate) mod streams;
pub(crate) mod textures;
pub(crate) mod words;
