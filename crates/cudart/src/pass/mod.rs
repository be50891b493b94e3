//! Binding of exported symbols to functions.
//!
//! With `BROADLOOM_DEVICE=cuda` a symbol leads to NVIDIA's function, found in the libraries that the program
//! would use without this one. Otherwise it leads to a function of this library. With a trace, calls of
//! NVIDIA's functions become spans, and events around launches time the kernels. **Calls that are not
//! recorded cost one jump. Without NVIDIA's libraries the machine appears to have no GPU.**

pub(crate) mod entry;
mod frame;
mod library;
mod record;
mod target;
mod timing;
