//! The reference executor of PTX.

mod op;
mod pure;
