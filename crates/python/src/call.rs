//! Functions of the module, and their arguments.

use crate::handle::Handle;
use pyo3::conversion::{FromPyObjectOwned, IntoPyObjectExt};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::ffi::CStr;

/// Result of a function of the module.
pub(crate) type Answer = PyResult<Py<PyAny>>;

/// A function of the module: its name, what it does, its code.
pub(crate) type Entry = (&'static CStr, &'static CStr, fn(&Arguments<'_, '_>) -> Answer);

/// Positional arguments of a call.
pub(crate) struct Arguments<'a, 'py>(&'a Bound<'py, PyTuple>);

impl<'py> Arguments<'_, 'py> {
    /// Returns the interpreter.
    pub(crate) fn py(&self) -> Python<'py> {
        self.0.py()
    }

    /// Returns an argument as an object.
    pub(crate) fn any(&self, index: usize) -> PyResult<Bound<'py, PyAny>> {
        self.0.get_item(index).map_err(|_| PyTypeError::new_err(format!("argument {index} is missing")))
    }

    /// Returns an argument converted to a Rust type.
    pub(crate) fn get<T: FromPyObjectOwned<'py>>(&self, index: usize) -> PyResult<T> {
        self.any(index)?.extract::<T>().map_err(Into::into)
    }

    /// Returns a Rust object that a capsule holds.
    pub(crate) fn handle<T: Handle>(&self, index: usize) -> PyResult<T> {
        T::from_object(&self.any(index)?)
    }

    /// Returns the Rust objects of a sequence of capsules.
    pub(crate) fn handles<T: Handle>(&self, index: usize) -> PyResult<Vec<T>> {
        self.any(index)?.try_iter()?.map(|item| T::from_object(&item?)).collect()
    }

    /// Converts a result.
    pub(crate) fn answer<T: IntoPyObjectExt<'py>>(&self, value: T) -> Answer {
        value.into_py_any(self.py())
    }

    /// Wraps a Rust object as a result.
    pub(crate) fn wrap<T: Handle>(&self, value: T) -> Answer {
        value.into_object(self.py())
    }

    /// Wraps Rust objects as a list.
    pub(crate) fn wrap_all<T: Handle>(&self, values: Vec<T>) -> Answer {
        let objects: PyResult<Vec<Py<PyAny>>> = values.into_iter().map(|value| value.into_object(self.py())).collect();
        self.answer(objects?)
    }
}

/// Adds functions to a module.
pub(crate) fn add(module: &Bound<'_, PyModule>, entries: &'static [Entry]) -> PyResult<()> {
    for (name, doc, body) in entries {
        let call = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| body(&Arguments(arguments));
        module.add_function(PyCFunction::new_closure(module.py(), Some(name), Some(doc), call)?)?;
    }
    Ok(())
}
