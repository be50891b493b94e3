//! Addresses of the variables and functions of a module.

use crate::memory::FUNCTION_BASE;
use broadloom_ptx::{Func, Var};
use std::collections::HashMap;

/// Shared variable; its offset is decided per kernel.
#[derive(Clone, Debug)]
pub(crate) struct SharedVariable {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    /// True for `.extern`: its size comes from the launch.
    pub(crate) dynamic: bool,
}

/// Addresses of the variables of the module.
#[derive(Debug, Default)]
pub(crate) struct VariableAddresses {
    /// Addresses of global and constant variables of the module.
    pub(crate) addresses: HashMap<Var, u64>,
    /// Addresses of variables declared inside functions.
    pub(crate) local_addresses: HashMap<(Func, Var), u64>,
    /// Numbers of shared variables.
    pub(crate) shared: HashMap<Var, u32>,
    pub(crate) local_shared: HashMap<(Func, Var), u32>,
    pub(crate) shared_variables: Vec<SharedVariable>,
}

pub(crate) fn function_address(func: Func) -> u64 {
    FUNCTION_BASE + 16 * u64::from(func.as_u32())
}
