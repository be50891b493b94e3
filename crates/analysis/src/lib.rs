//! Facts about PTX functions, found without changing them and kept beside the code.
//!
//! Every analysis is a value made from a function; it is right for that function until the function is changed. Each is
//! tested against a naive definition on random graphs.

pub mod cfg;

pub use cfg::Cfg;
