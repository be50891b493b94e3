//! Objects of a program, and the tables that hold them: memory, streams, events, modules, kernels, graphs.
//!
//! They know neither the device nor each other's tables. The operations on them are those of
//! [`crate::state::Runtime`], one file per subject beside this folder.

pub(crate) mod advice;
pub(crate) mod boxes;
pub(crate) mod image;
pub(crate) mod kernels;
pub(crate) mod linking;
pub(crate) mod memory;
pub(crate) mod physical;
pub(crate) mod pools;
pub(crate) mod references;
pub(crate) mod shared_files;
pub(crate) mod streams;
pub(crate) mod textures;
pub(crate) mod user_objects;
pub(crate) mod words;
pub(crate) mod work;
