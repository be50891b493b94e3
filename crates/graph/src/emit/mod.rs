//! Emission: the traces of nodes in a kernel, what they cost, and their scalar code.

pub(crate) mod code;
pub(crate) mod emitter;
pub(crate) mod function;
pub(crate) mod fused;
pub(crate) mod index;
pub(crate) mod patch;
pub(crate) mod price;
pub(crate) mod shared;
pub(crate) mod trace;
