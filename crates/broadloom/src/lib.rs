//! Broadloom as a library: what a program adds to its `Cargo.toml`.
//!
//! Re-exports the parts that users meet, under one name.

pub use broadloom_device as device;
pub use broadloom_diag as diag;
pub use broadloom_ptx as ptx;
