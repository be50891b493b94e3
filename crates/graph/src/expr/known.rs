//! Functions of elements that the graph itself uses. Each is made once.

use crate::expr::error::Result;
use broadloom_scalar::{Function, Type};
use std::sync::{Mutex, PoisonError};

/// Functions, keyed by their names and the types that they are made for. There are a few dozen at most.
static KNOWN: Mutex<Vec<(&'static str, Type, Function)>> = Mutex::new(vec![]);

/// Returns the function with a name for a type. Makes it on first use.
pub(crate) fn known(name: &'static str, ty: Type, make: impl FnOnce() -> Result<Function>) -> Result<Function> {
    let find = |known: &[(&'static str, Type, Function)]| {
        known.iter().find(|(own, of, _)| *own == name && *of == ty).map(|(_, _, function)| function.clone())
    };
    if let Some(function) = find(&KNOWN.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(function);
    }
    let function = make()?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if find(&known).is_none() {
        known.push((name, ty, function.clone()));
    }
    Ok(function)
}
