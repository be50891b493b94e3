//! Why a part of a program does not run on the device.

use std::borrow::Cow;

/// The reason why a filter stays on the host, or why its kernel is not accepted. Its text follows the name of
/// the filter.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Reason {
    /// A property of the program that kernels do not have.
    #[error("{0}")]
    Program(Cow<'static, str>),
    /// Code of a firing that is not accepted.
    #[error(transparent)]
    Code(#[from] broadloom_scalar::Error),
    /// A kernel that is not accepted.
    #[error(transparent)]
    Kernel(#[from] broadloom_skeleton::Error),
}

impl From<&'static str> for Reason {
    fn from(reason: &'static str) -> Reason {
        Reason::Program(reason.into())
    }
}

impl From<String> for Reason {
    fn from(reason: String) -> Reason {
        Reason::Program(reason.into())
    }
}
