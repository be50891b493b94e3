//! Errors, returned by the call that caused them.

use crate::expr::shape::Shape;
use broadloom_scalar::Type;

/// Reason why an operation on arrays was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Shapes that do not fit together.
    #[error("`{operation}`: the shapes {left} and {right} do not fit together")]
    Shapes {
        /// The name of the operation that was called.
        operation: String,
        /// One shape.
        left: Shape,
        /// The other.
        right: Shape,
    },
    /// Types that do not fit together.
    #[error("`{operation}`: the types `{left}` and `{right}` do not fit together")]
    Types {
        /// The name of the operation that was called.
        operation: String,
        /// One type.
        left: Type,
        /// The other.
        right: Type,
    },
    /// Element type that the operation does not support.
    #[error("`{operation}` does not take `{ty}`")]
    Type {
        /// The name of the operation that was called.
        operation: String,
        /// The type.
        ty: Type,
    },
    /// Axis that does not exist in the array, or is named twice.
    #[error("`{operation}`: axis {axis} of an array of shape {shape}, {}", not_an_axis(*axis, .shape))]
    Axis {
        /// The name of the operation that was called.
        operation: String,
        /// The axis that does not exist, from 0.
        axis: usize,
        /// The shape of the array.
        shape: Shape,
    },
    /// Numbers that the operation does not support.
    #[error("`{operation}` of an array of shape {shape}: {reason}")]
    Range {
        /// The name of the operation that was called.
        operation: String,
        /// The shape of the array.
        shape: Shape,
        /// The mistake.
        reason: String,
    },
    /// Number of values that differs from the number of elements of the shape.
    #[error("`{operation}`: {count} values for the shape {shape}, which has {}", .shape.count())]
    Count {
        /// The name of the operation that was called.
        operation: String,
        /// Number of values.
        count: usize,
        /// The shape of the array that was passed.
        shape: Shape,
    },
    /// Arrays of two contexts.
    #[error("`{operation}`: {}; `to_context` copies one of them", apart(.left, .right))]
    Devices {
        /// The name of the operation that was called.
        operation: String,
        /// One device.
        left: String,
        /// The other.
        right: String,
    },
    /// Read of elements inside a traced function.
    #[error("`{operation}`: inside of a function that is traced arrays have no elements yet; they come when it is called")]
    Symbolic {
        /// The operation that reads them.
        operation: String,
    },
    /// Memory that the host does not have.
    #[error("the host has no room for {bytes} bytes")]
    Host {
        /// Bytes requested.
        bytes: u64,
    },
    /// Invalid code of one thread.
    #[error(transparent)]
    Scalar(#[from] broadloom_scalar::Error),
    /// Pattern that could not be made.
    #[error(transparent)]
    Skeleton(#[from] broadloom_skeleton::Error),
    /// Failure or refusal of the device.
    #[error(transparent)]
    Device(#[from] broadloom_device::Error),
    /// Text with a wrong operation, or operation without a textual form.
    #[error("`{operation}`: {reason}")]
    Text {
        /// The name of the operation that was called.
        operation: String,
        /// The mistake.
        reason: String,
    },
    /// Inconsistent plan.
    #[error("the plan of {what} does not hold together, please report this: {reason}")]
    Plan {
        /// The thing that could not be planned.
        what: String,
        /// The mistake.
        reason: String,
    },
}

impl Error {
    /// Returns the error of an operation that reads a symbol: it has no elements until the function is
    /// called.
    pub(crate) fn symbolic(operation: &str) -> Error {
        Error::Symbolic { operation: operation.to_owned() }
    }

    /// Returns the error of an operation that removes an axis of extent 1, for another extent.
    pub fn not_single(operation: &str, axis: usize, shape: &Shape, extent: i64) -> Error {
        let reason = format!("axis {axis} has extent {extent}, and only an axis of extent 1 can be removed without an index");
        Error::Range { operation: operation.to_owned(), shape: shape.clone(), reason }
    }
}

/// Returns the reason why an axis is refused.
fn not_an_axis(axis: usize, shape: &Shape) -> String {
    match shape.rank() {
        0 => "which has no axes".to_owned(),
        rank if axis < rank => "which is named twice".to_owned(),
        rank => format!("whose last axis is {}", rank - 1),
    }
}

/// Names the devices of two arrays that cannot be used together.
fn apart(left: &str, right: &str) -> String {
    if left == right {
        return format!("the arrays belong to two contexts, both on `{left}`");
    }
    format!("one array is on `{left}`, the other on `{right}`")
}

/// Result with the error of this crate.
pub type Result<T> = std::result::Result<T, Error>;
