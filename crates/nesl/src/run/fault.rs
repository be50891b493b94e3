//! Errors of a device as faults of the program.

use crate::codes;
use crate::eval::{Fault, Run};
use broadloom_graph::Error;

/// Converts an error of the graph into one of the program.
pub(crate) fn device_error(error: Error) -> Box<Fault> {
    let code = match &error {
        Error::Device(broadloom_device::Error::OutOfMemory { .. }) => codes::MEMORY,
        _ => codes::DEVICE,
    };
    Fault::new(code, format!("the device failed: {error}"))
}

pub(crate) fn on_device<T>(result: broadloom_graph::Result<T>) -> Run<T> {
    result.map_err(device_error)
}
