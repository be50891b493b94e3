//! Scalar functions of loop forms.

use crate::vcode::TailLoop;
use broadloom_scalar::Function;
use std::sync::Arc;

/// Part of the execution of a loop that a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopStage {
    /// From the start; without the parameters of unfinished elements.
    Attempt,
    /// From the start.
    Start,
    /// From the parameters of an earlier launch.
    Resume,
}

/// Scalar functions of loop forms, with the forms and stages that they are for.
pub(super) type LoopFunctions = Vec<(Arc<TailLoop>, LoopStage, Function)>;
