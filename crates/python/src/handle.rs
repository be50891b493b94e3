//! Rust objects as Python capsules.
//!
//! A capsule carries the name of its type. Only [`Handle::into_object`] makes capsules with these names, so a
//! capsule with the name holds the type.

use broadloom::Context;
use broadloom::graph::Node;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::ffi::CStr;

/// A Rust type that Python holds; cheap to clone.
pub(crate) trait Handle: Clone + Send + Sync + 'static {
    /// Name of its capsules, which no other type has.
    const NAME: &'static CStr;

    /// Wraps the value as a Python object.
    fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(PyCapsule::new_with_value(py, self, Self::NAME)?.into_any().unbind())
    }

    /// Returns the value of a Python object.
    #[allow(unsafe_code, reason = "a capsule has only a pointer")]
    fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = object.cast::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(Self::NAME))?.cast::<Self>();
        // SAFETY: a capsule of this name holds this type, and `object` keeps it alive.
        Ok(unsafe { pointer.as_ref() }.clone())
    }
}

impl Handle for Node {
    const NAME: &'static CStr = c"broadloom.node";
}

impl Handle for Context {
    const NAME: &'static CStr = c"broadloom.context";
}
