//! Why benchmarks could not be run at all. What goes wrong with a single one is told in the report, and the others go on.

use broadloom::{OpenError, UnknownDevice, device};

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that neither a group nor a benchmark has.
    #[error("there is no benchmark and no group `{name}`")]
    UnknownName {
        /// The name asked for.
        name: String,
        /// What there is: groups, then benchmarks.
        available: Vec<String>,
    },
    /// A device that is not here.
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

/// Why one benchmark gave no figure.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The result is not the reference's.
    #[error("wrong answer: {0}")]
    Wrong(String),
    /// The device could not.
    #[error(transparent)]
    Device(#[from] device::Error),
    /// The planner of arrays and graphs could not.
    #[error(transparent)]
    Array(#[from] broadloom::array::Error),
    /// The planner of effects could not.
    #[error(transparent)]
    Effect(#[from] broadloom::effect::Error),
    /// The kernel's text is not what this build of Broadloom takes.
    #[error("the kernel is not accepted:\n{0}")]
    Module(String),
    /// Something outside of the device.
    #[error("{0}")]
    Outside(String),
}
