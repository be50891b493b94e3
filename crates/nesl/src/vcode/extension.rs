//! Instructions beyond the original's set. `CHECK name` ends a run with an error. `HOST name argument result`
//! calls a function of the implementation for every element. The original compiles checks and conversions
//! from its library; Broadloom's library has primitives for them, which need these instructions.

use super::Type;
use broadloom_scalar::{Builder, Value};
use std::fmt;

macro_rules! checks {
    ($($(#[$meta:meta])* $variant:ident $name:literal ($($operand:ident)*),)*) => {
        /// Condition on operands. A run ends with an error if it does not hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Check { $($(#[$meta])* $variant,)* }

        impl Check {
            /// All checks.
            pub const ALL: &'static [Check] = &[$(Check::$variant,)*];

            /// Returns the name in program text.
            pub fn name(self) -> &'static str {
                match self { $(Check::$variant => $name,)* }
            }

            /// Returns the types of the operands, the top of the stack last.
            pub fn operands(self) -> &'static [Type] {
                match self { $(Check::$variant => &[$(Type::$operand,)*],)* }
            }
        }
    };
}

checks! {
    /// Indices and the lengths that they must be below, element by element.
    Index "index" (Int Int),
    /// Indices per segment: indices, their segments, the lengths of the indexed sequences.
    Indices "indices" (Int Segdes Int),
    /// The lengths of the sequences of an apply-to-each agree.
    Each "each" (Int Int),
    /// The lengths of the values and the indices of `put` agree.
    Put "put" (Int Int),
    /// The number of values of `unpack` is the number of true flags.
    Unpack "unpack" (Int Int),
    /// The number of elements is not negative.
    Count "count" (Int),
    /// Sums of two lengths are within the range of ints: none is negative.
    Length "length" (Int),
    /// Lengths and their segments: the sum of each segment is within the range of ints.
    Total "total" (Int Segdes),
    /// Start, step and end of a range: the step is positive, the end is not below the start.
    Range "range" (Int Int Int),
    /// Start, end and length: the part is within the sequence.
    Part "part" (Int Int Int),
    /// Lengths of pieces, their segments, the lengths of the sequences that are cut.
    Partition "partition" (Int Segdes Int),
    /// Indices per segment are a permutation; the int is the length of each permuted sequence.
    Permutation "permutation" (Int Segdes Int),
    /// The codes are valid characters.
    Code "code" (Int),
    /// Conditions. If one does not hold, the error is a text of a pool, with a start and a length.
    Require "require" (Bool Int Int Int),
    /// Ends the run if there is an element: starts and lengths of messages in a pool.
    Fail "fail" (Int Int Int),
    /// Reports a function that was declared but not defined.
    Undefined "undefined" (Int Int Int),
}

/// Test of operands in a scalar function.
pub(crate) type Test = fn(&Builder, &[Value]) -> Value;

impl Check {
    /// Returns the test that finds operands for which the check fails, and its name. `None`: the check compares
    /// more than elements at one index.
    pub(crate) fn violation(self) -> Option<(&'static str, Test)> {
        Some(match self {
            Check::Index => ("outside", |f, x| f.or(f.lt(x[0], 0), f.ge(x[0], x[1]))),
            Check::Each | Check::Put | Check::Unpack => ("differ", |f, x| f.ne(x[0], x[1])),
            Check::Count | Check::Length => ("below", |f, x| f.lt(x[0], 0)),
            // A range longer than the largest int has a difference that is negative as an int.
            Check::Range => ("range", |f, x| f.or(f.or(f.lt(x[1], 1), f.gt(x[0], x[2])), f.lt(f.sub(x[2], x[0]), 0))),
            Check::Part => ("part", |f, x| f.or(f.or(f.lt(x[0], 0), f.gt(x[0], x[1])), f.gt(x[1], x[2]))),
            Check::Code => ("code", |f, x| f.or(f.lt(x[0], 0), f.gt(x[0], 255))),
            Check::Require => ("not", |f, x| f.not(x[0])),
            Check::Indices | Check::Total | Check::Partition | Check::Permutation | Check::Fail | Check::Undefined => {
                return None;
            }
        })
    }
}

/// A call of a function of the implementation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Foreign {
    /// The name, as the library declares it.
    pub name: String,
    /// The type of its argument.
    pub argument: Layout,
    /// The type of its result.
    pub result: Layout,
}

impl Foreign {
    /// Tells whether the result depends on the argument alone and the call cannot fail.
    pub fn is_pure(&self) -> bool {
        matches!(self.name.as_str(), "@" | "prim_hash" | "prim_digits" | "prim_decimal" | "float_to_any")
    }
}

/// Layout of a type: the entries of the stack that hold a value of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// One vector with an element for every value.
    Int,
    /// One vector.
    Float,
    /// One vector.
    Bool,
    /// One vector of ints.
    Char,
    /// No vector: a function without captured variables.
    Nothing,
    /// A segment descriptor with a length for every value, and the elements.
    Seq(Box<Layout>),
    /// The first part and the second.
    Pair(Box<Layout>, Box<Layout>),
}

impl Layout {
    /// Lists the types of the entries of the stack, the top last.
    pub fn types(&self, out: &mut Vec<Type>) {
        match self {
            Layout::Int | Layout::Char => out.push(Type::Int),
            Layout::Float => out.push(Type::Float),
            Layout::Bool => out.push(Type::Bool),
            Layout::Nothing => {}
            Layout::Seq(element) => {
                out.push(Type::Segdes);
                element.types(out);
            }
            Layout::Pair(first, rest) => {
                first.types(out);
                rest.types(out);
            }
        }
    }

    /// Returns the number of sequences.
    pub fn sequences(&self) -> usize {
        match self {
            Layout::Int | Layout::Char | Layout::Float | Layout::Bool | Layout::Nothing => 0,
            Layout::Seq(element) => 1 + element.sequences(),
            Layout::Pair(first, rest) => first.sequences() + rest.sequences(),
        }
    }

    /// Parses a layout.
    pub fn parse(text: &str) -> Option<Layout> {
        let mut rest = text;
        let layout = parse(&mut rest, 0)?;
        rest.is_empty().then_some(layout)
    }
}

/// Maximum depth of a parsed layout.
const MAX_DEPTH: u32 = 200;

fn parse(text: &mut &str, depth: u32) -> Option<Layout> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut take = |part: &str| text.strip_prefix(part).map(|rest| *text = rest).is_some();
    for (name, layout) in
        [("int", Layout::Int), ("float", Layout::Float), ("bool", Layout::Bool), ("char", Layout::Char), ("fn", Layout::Nothing)]
    {
        if take(name) {
            return Some(layout);
        }
    }
    if take("[") {
        let element = parse(text, depth + 1)?;
        *text = text.strip_prefix("]")?;
        return Some(Layout::Seq(Box::new(element)));
    }
    *text = text.strip_prefix("(")?;
    let first = parse(text, depth + 1)?;
    *text = text.strip_prefix(", ")?;
    let rest = parse(text, depth + 1)?;
    *text = text.strip_prefix(")")?;
    Some(Layout::Pair(Box::new(first), Box::new(rest)))
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Int => f.write_str("int"),
            Layout::Float => f.write_str("float"),
            Layout::Bool => f.write_str("bool"),
            Layout::Char => f.write_str("char"),
            Layout::Nothing => f.write_str("fn"),
            Layout::Seq(element) => write!(f, "[{element}]"),
            Layout::Pair(first, rest) => write!(f, "({first}, {rest})"),
        }
    }
}
