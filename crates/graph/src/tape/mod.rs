//! Tapes: the canonical form of expressions, their recording, and what a tape leaves out.

pub(crate) mod bindings;
pub(crate) mod entries;
pub(crate) mod number;
pub(crate) mod record;
pub(crate) mod sizes;
