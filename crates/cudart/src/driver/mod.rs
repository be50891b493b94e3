//! Functions of `libcuda`, one file per area. They share their implementation with the runtime.

pub(crate) use crate::shared_api::{batches, events, logs, node_attributes, objects, partitions, pools, sharing};

pub(crate) mod contexts;
pub(crate) mod copies;
pub(crate) mod devices;
pub(crate) mod entry;
pub(crate) mod graphs;
pub(crate) mod launches;
pub(crate) mod linking;
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod nodes;
pub(crate) mod occupancy;
pub(crate) mod parameters;
pub(crate) mod peers;
pub(crate) mod streams;
pub(crate) mod textures;
pub(crate) mod words;
