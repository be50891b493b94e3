//! Error of preparing a launch.

use broadloom_device as device;
use broadloom_diag::{Diagnostic, Diagnostics};

/// Error of preparing a launch.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Wrong description of the launch.
    #[error("the launch cannot be understood: {} problem(s)", .0.error_count())]
    Wrong(Diagnostics),
    /// Device error.
    #[error(transparent)]
    Device(#[from] device::Error),
}

impl From<Diagnostic> for LaunchError {
    fn from(diagnostic: Diagnostic) -> Self {
        LaunchError::Wrong(diagnostic.into())
    }
}
