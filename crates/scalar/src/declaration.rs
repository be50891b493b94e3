//! Declarations of the parameters and accessors of a function or kernel.

use crate::types::{Element, Type};

/// How a parameter is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParameterKind {
    /// A number, passed by value.
    Value,
    /// The address of global memory with elements of this type.
    Pointer(Element),
}

/// Declaration of a parameter: its name, its type, its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParameterDecl {
    /// The name in texts; it need not be unique.
    pub name: String,
    /// Its type. `u64` for a pointer.
    pub ty: Type,
    /// Kind of the parameter.
    pub kind: ParameterKind,
}

/// How code uses an accessor: for reads at offsets, at indices, or for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessorKind {
    /// Read at a position.
    Input,
    /// Read at offsets from the position of the thread.
    Window,
    /// Written at a position.
    Output,
    /// A queue that is read: `pop` and `peek`.
    Source,
    /// A queue that is written: `push`.
    Sink,
}

/// An input or output of a function that is not a plain value. A binding gives it code when the function is
/// inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessorDecl {
    /// The name in texts; it need not be unique.
    pub name: String,
    /// Kind of the accessor.
    pub kind: AccessorKind,
    /// Type of its elements.
    pub ty: Type,
    /// Number of indices of a position.
    pub rank: u8,
}
