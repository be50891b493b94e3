//! Link operations in progress.

use crate::jit::Logs;
use std::ffi::CString;
use std::sync::Mutex;

/// Inputs and result of one link operation.
#[derive(Debug, Default)]
pub(crate) struct Linking {
    pub(crate) texts: Mutex<Vec<String>>,
    /// PTX of library members. A member is linked if it defines a missing symbol.
    pub(crate) members: Mutex<Vec<String>>,
    pub(crate) linked: Mutex<Option<CString>>,
    pub(crate) logs: Logs,
    pub(crate) most_registers: Option<u32>,
}
