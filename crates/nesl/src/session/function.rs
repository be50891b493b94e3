//! Functions compiled for calls from Rust.

use crate::machine::{Constants, Regions};
use crate::vcode::{self, Layout};

/// Compiled function with its state between calls.
pub(super) struct CompiledFunction {
    pub(super) program: vcode::Program,
    pub(super) argument: Layout,
    pub(super) result: Layout,
    /// Constants, including values of top-level variables, with their copies on the device.
    pub(super) constants: Constants,
    /// Templates of its regions.
    pub(super) regions: Regions,
}
