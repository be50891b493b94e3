//! Errors of the libraries as Python exceptions. The message is kept.

use broadloom::graph::Error;
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::fmt::Display;

/// Converts an error of a graph to the exception that NumPy raises for the same mistake.
pub(crate) fn of_graph(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Types { .. } | Error::Type { .. } => PyTypeError::new_err(text),
        Error::Shapes { .. } | Error::Axis { .. } | Error::Range { .. } | Error::Count { .. } | Error::Devices { .. } => {
            PyValueError::new_err(text)
        }
        Error::Host { .. } => PyMemoryError::new_err(text),
        // `bl.jit` runs a function that asks for elements while it is traced as it stands.
        Error::Symbolic { .. } => PyNotImplementedError::new_err(text),
        _ => PyRuntimeError::new_err(text),
    }
}

/// Converts a failure of a device or a front end.
pub(crate) fn failed(error: impl Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Returns the exception for a wrong argument.
pub(crate) fn refused(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

/// Returns the exception for a mistake of this package.
pub(crate) fn internal(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("an internal error of Broadloom, please report it: {what}"))
}
