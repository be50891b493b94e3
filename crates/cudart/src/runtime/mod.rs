//! Functions of `libcudart`, one file per area.

pub(crate) use crate::shared_api::{batches, logs, modules, node_attributes, objects, partitions, pools, sharing};

pub(crate) mod arrays;
pub(crate) mod capture;
pub(crate) mod copies;
pub(crate) mod devices;
pub(crate) mod entry;
pub(crate) mod errors;
pub(crate) mod events;
pub(crate) mod functions;
pub(crate) mod graphs;
pub(crate) mod launches;
pub(crate) mod memory;
pub(crate) mod nodes;
pub(crate) mod occupancy;
pub(crate) mod peers;
pub(crate) mod registration;
pub(crate) mod streams;
pub(crate) mod symbols;
pub(crate) mod textures;
