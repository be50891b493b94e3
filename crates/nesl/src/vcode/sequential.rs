//! Sequential forms of functions: kernels in which one thread, one warp or a team of warps runs one call.

use super::Type;
use crate::infer::Widths;

/// The shape of values of a type in a sequential form. Characters are ints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An int or a character.
    Int,
    /// A floating-point number of the width of the session.
    Float,
    /// A truth value.
    Bool,
    /// The parts of a pair, or the captured variables of a function.
    Tuple(Vec<Shape>),
    /// A sequence.
    Seq(Box<Shape>),
}

impl Shape {
    /// Tells whether values have no sequences in them.
    pub fn is_scalar(&self) -> bool {
        match self {
            Shape::Int | Shape::Float | Shape::Bool => true,
            Shape::Tuple(parts) => parts.iter().all(Shape::is_scalar),
            Shape::Seq(_) => false,
        }
    }

    /// Lists the types of the entries of the stack that hold results.
    pub fn results(&self, out: &mut Vec<Type>) {
        match self {
            Shape::Int => out.push(Type::Int),
            Shape::Float => out.push(Type::Float),
            Shape::Bool => out.push(Type::Bool),
            Shape::Tuple(parts) => parts.iter().for_each(|part| part.results(out)),
            Shape::Seq(element) => {
                out.push(Type::Segdes);
                element.results(out);
            }
        }
    }
}

/// Kernel that executes calls of a function, each in one thread, in one warp or in a team of warps.
///
/// Parameters, all of 8 bytes: the address of the state, the address and the size in bytes of the memory of a
/// worker, the number of calls, the limit on the depth of recursion, the fuel, the address of the queue of
/// tasks; the addresses of the arguments; the addresses of the results.
///
/// - State: a counter of calls (`u32`), the failure (`u32`: bit 0 a call failed, bit 1 memory for results is
///   short), then for each sequence of the result the number of its elements (`u64`).
/// - Arguments: a scalar has the address of one element for each call. A sequence has starts, lengths (ints)
///   and the columns of its elements; a nested sequence has offsets (`i64`).
/// - Results: a scalar has the address of one element for each call. A sequence has lengths for each call
///   (ints), starts (`i64`), the number of elements that fit into its memory, and the columns of its
///   elements. For a nested sequence, the lengths are numbers of elements of a call, and the lengths of the
///   sequences are a column before the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequential {
    /// The name of the kernel.
    pub name: String,
    /// The name of the function in the program.
    pub source: String,
    /// The PTX module in which a thread runs a call.
    pub text: String,
    /// The module in which a thread runs a call and others take parts of it, if the function has such parts.
    pub text_for_cores: Option<String>,
    /// The module in which a warp runs a call.
    pub text_for_warps: String,
    /// The module in which teams of warps run calls, if there is one.
    pub text_for_teams: Option<String>,
    /// The widths of ints and floats that it is compiled for.
    pub widths: Widths,
    /// The captured variables and the argument.
    pub argument: Shape,
    /// Shape of the value that a call returns. For a loop: whether it has ended, its result, and the argument
    /// of the next round.
    pub result: Shape,
    /// True if the function is a loop that one thread runs, and that pauses between rounds.
    pub is_loop: bool,
}

/// Fuel at which a loop pauses. It begins with twice as much.
pub const PAUSE_FUEL: u64 = 1 << 26;
