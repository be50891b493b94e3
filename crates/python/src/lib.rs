//! The extension module `broadloom._core` of the Python package: nodes, devices and front ends as plain functions.
//!
//! The package (`crates/python/broadloom`) is written in Python over these functions. It owns dtypes, promotion,
//! indexing and names; this crate passes checked values on. Rust objects are capsules in Python (see [`handle`]).
//!
//! Invariants:
//! - every failure is a Python exception with the message of the library; no panic reaches the interpreter;
//! - the interpreter's lock is released while the device works, and Ctrl-C ends the wait ([`wait`]);
//! - only `PyInit__core` is exported.
//!
//! PyO3 is used without its macros: they need other features of `syn` than the rest of the workspace, and all
//! crates would be compiled a second time.

mod arrays;
mod call;
mod complex;
mod device;
mod effect;
mod error;
mod function;
mod handle;
mod kernel;
mod memory;
mod nesl;
mod order;
mod segments;
mod stream;
mod template;
mod wait;
mod watch;

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// Adds all functions to the module.
fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let arrays = [arrays::FUNCTIONS, order::FUNCTIONS, device::FUNCTIONS, memory::FUNCTIONS, wait::FUNCTIONS];
    let lines = [segments::FUNCTIONS, template::FUNCTIONS, function::FUNCTIONS, watch::FUNCTIONS];
    let front_ends = [kernel::FUNCTIONS, nesl::FUNCTIONS, stream::FUNCTIONS, effect::FUNCTIONS];
    arrays.into_iter().chain(lines).chain(front_ends).try_for_each(|list| call::add(module, list))
}

/// Executes the module. Returns 0, or -1 with an exception.
#[allow(unsafe_code, reason = "Python passes a pointer")]
extern "C" fn execute(module: *mut ffi::PyObject) -> c_int {
    // SAFETY: Python calls this with a thread that is attached to the interpreter.
    let py = unsafe { Python::assume_attached() };
    let filled = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: Python passes the module that it made, and keeps it during the call.
        let module = unsafe { Bound::from_borrowed_ptr(py, module) };
        fill(module.cast::<PyModule>()?)
    }));
    match filled.unwrap_or_else(|_| Err(error::internal("the module could not be made"))) {
        Ok(()) => 0,
        Err(error) => {
            error.restore(py);
            -1
        }
    }
}

/// Describes the module. Python calls this at import.
#[unsafe(no_mangle)]
#[allow(non_snake_case, unsafe_code, reason = "Python prescribes the name")]
pub extern "C" fn PyInit__core() -> *mut ffi::PyObject {
    let code = execute as extern "C" fn(*mut ffi::PyObject) -> c_int as *mut c_void;
    let slots = Box::new([
        ffi::PyModuleDef_Slot { slot: ffi::Py_mod_exec, value: code },
        ffi::PyModuleDef_Slot { slot: 0, value: null_mut() },
    ]);
    let definition = Box::new(ffi::PyModuleDef {
        m_base: ffi::PyModuleDef_HEAD_INIT,
        m_name: c"broadloom._core".as_ptr(),
        m_doc: c"The functions of the library, for the package `broadloom`.".as_ptr(),
        m_size: 0,
        m_methods: null_mut(),
        m_slots: Box::leak(slots).as_mut_ptr(),
        m_traverse: None,
        m_clear: None,
        m_free: None,
    });
    // SAFETY: the definition and its slots live as long as the process, as Python demands.
    unsafe { ffi::PyModuleDef_Init(Box::leak(definition)) }
}
