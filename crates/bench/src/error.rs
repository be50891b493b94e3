//! Errors that prevent a run. A failure of a single benchmark is reported, and the others continue.

use broadloom::{OpenError, UnknownDevice, device};

/// Reason why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unknown name of a benchmark or group.
    #[error("there is no benchmark and no group `{name}`")]
    UnknownName {
        /// The requested name.
        name: String,
        /// The available names: groups, then benchmarks.
        available: Vec<String>,
    },
    /// Missing device.
    #[error(transparent)]
    UnknownDevice(#[from] UnknownDevice),
    /// A call to the device failed.
    #[error(transparent)]
    Device(#[from] device::Error),
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Unknown(unknown) => Error::UnknownDevice(unknown),
            OpenError::Device(error) => Error::Device(error),
        }
    }
}

/// Reason why one benchmark gave no figure.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The result differs from the reference.
    #[error("wrong answer: {0}")]
    Wrong(String),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The planner of arrays and graphs failed.
    #[error(transparent)]
    Array(#[from] broadloom::array::Error),
    /// The planner of effects failed.
    #[error(transparent)]
    Effect(#[from] broadloom::effect::Error),
    /// This build of Broadloom does not accept the kernel's text.
    #[error("the kernel is not accepted:\n{0}")]
    Module(String),
    /// A failure outside of the device.
    #[error("{0}")]
    Outside(String),
}
