//! What executors may rely on.

use crate::module::Module;
use broadloom_diag::Diagnostics;
use std::ops::Deref;

/// A module that passed [`verify`]. Executors take nothing else.
#[derive(Clone, Debug)]
pub struct Verified(Module);

impl Deref for Verified {
    type Target = Module;
    fn deref(&self) -> &Module {
        &self.0
    }
}

impl Verified {
    /// The module, free to be changed again.
    pub fn into_module(self) -> Module {
        self.0
    }
}

/// Checks a module.
pub fn verify(module: Module) -> Result<Verified, Diagnostics> {
    Ok(Verified(module))
}
