//! Operations of nodes.

use crate::amount::Amount;
use crate::error::{Error, Result};
use crate::operation::Applied;
use crate::template::Symbol;
use crate::view::{Rule, View};
use broadloom_scalar::{BinaryOp, CompareOp, Element, Function, Lanes, Literal, MathFunction, Precision, Type, UnaryOp};
pub use broadloom_skeleton::Combine;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// An operation on single elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Elementwise {
    /// Of one value.
    Unary(UnaryOp),
    /// Of two values of one type.
    Binary(BinaryOp),
    /// A comparison; vectors compare lane by lane.
    Compare(CompareOp),
    /// The second where the first is true, else the third.
    Select,
    /// The product of the first two and the third, rounded once.
    Fma,
    /// To another element type.
    Convert(Element),
    /// An elementary function.
    Math(MathFunction, Precision),
    /// A vector of as many lanes as there are inputs.
    Vector,
    /// One lane of a vector.
    Lane(u8),
    /// A result, by its number, of a function of the inputs. It has no accessors.
    Call(Function, u8),
}

impl fmt::Display for Elementwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elementwise::Unary(op) => f.write_str(op.name()),
            Elementwise::Binary(op) => f.write_str(op.name()),
            Elementwise::Compare(op) => f.write_str(op.name()),
            Elementwise::Select => f.write_str("select"),
            Elementwise::Fma => f.write_str("fma"),
            Elementwise::Convert(element) => write!(f, "as {element}"),
            Elementwise::Math(function, Precision::Accurate) => write!(f, "{function}"),
            Elementwise::Math(function, Precision::Fast) => write!(f, "fast {function}"),
            Elementwise::Vector => f.write_str("vector"),
            Elementwise::Lane(lane) => write!(f, "lane {lane}"),
            Elementwise::Call(function, 0) => f.write_str(function.name()),
            Elementwise::Call(function, result) => write!(f, "{} ({result})", function.name()),
        }
    }
}

/// Returns whether a function has so many operations at most.
pub(crate) fn check_size(function: &Function, most: u64) -> Result<()> {
    match function.operations() {
        count if count <= most => Ok(()),
        count => Err(Error::Operations { operation: function.name().to_owned(), count, most }),
    }
}

/// Returns the operation that combines two elements.
pub(crate) fn combining(combine: &Combine) -> Elementwise {
    match (combine, combine.binary()) {
        (Combine::By(operator), _) => Elementwise::Call(operator.function().clone(), 0),
        (_, op) => Elementwise::Binary(op.unwrap_or(BinaryOp::Add)),
    }
}

/// Which element is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extreme {
    /// The least; NaN counts as greater than all numbers.
    Least,
    /// The greatest; NaN counts as less than all numbers.
    Greatest,
}

impl Extreme {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Extreme::Least => "argmin",
            Extreme::Greatest => "argmax",
        }
    }
}

/// Some axes of an array, in order.
pub type Axes = SmallVec<[u8; 4]>;

/// A value that is given when a plan runs. Two of them are the same only if one is a clone of the other, whatever their values: so the
/// structure of an expression does not depend on what its scalars happen to be.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// No other has it.
    number: u64,
    lanes: Lanes,
    symbol: Option<Box<Symbol>>,
    /// The number that it is, where that follows from the extents of a function's inputs.
    amount: Option<Box<Amount>>,
}

impl Scalar {
    /// A scalar with this value.
    pub fn new(value: &[Literal]) -> Scalar {
        Scalar::of(Lanes::from_slice(value), None, None)
    }

    /// A number, an `i64`, that may follow from the extents of a function's inputs.
    pub(crate) fn counting(amount: &Amount) -> Scalar {
        let traced = amount.is_traced().then(|| Box::new(amount.clone()));
        Scalar::of(smallvec![Literal::from(amount.value())], None, traced)
    }

    /// A scalar whose value comes when a function is called.
    pub(crate) fn symbolic(ty: Type, symbol: Symbol) -> Scalar {
        Scalar::of(zeros(ty), Some(Box::new(symbol)), None)
    }

    fn of(lanes: Lanes, symbol: Option<Box<Symbol>>, amount: Option<Box<Amount>>) -> Scalar {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Scalar { number: NEXT.fetch_add(1, Ordering::Relaxed), lanes, symbol, amount }
    }

    /// Its value; without one, zero. A function that is traced relies on it.
    pub fn lanes(&self) -> &Lanes {
        if let Some(amount) = &self.amount {
            amount.get();
        }
        &self.lanes
    }

    /// Its value in this trace.
    pub(crate) fn traced_lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The number that it is, where that follows from the extents of a function's inputs.
    pub(crate) fn amount(&self) -> Option<&Amount> {
        self.amount.as_deref()
    }

    /// Which argument of a function it is.
    pub(crate) fn symbol(&self) -> Option<&Symbol> {
        self.symbol.as_deref()
    }

    /// A number that no other scalar has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.number == other.number
    }
}

impl Eq for Scalar {}

/// The operation that computes a node from its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// One value everywhere. It is a parameter of what is compiled, not a part of it.
    Fill(Scalar),
    /// An operation on elements at the same position. All inputs have the shape of the result.
    Elementwise(Elementwise),
    /// Other places of the one input.
    View(Box<View>),
    /// The elements of the one input, in order, in another shape.
    Reshape,
    /// The position along an axis, as an integer.
    Position(u8),
    /// The first input at the places that the others say, one for each of its axes. Rules hold for all axes.
    Gather(Rule, Option<Lanes>),
    /// The inputs one behind the other along an axis.
    Concatenate(u8),
    /// A result of an operation that combines elements of several positions.
    Pattern(Applied),
}

impl Op {
    /// Its name in plans and errors.
    pub fn name(&self) -> String {
        match self {
            Op::Fill(value) => format!("fill {}", shown(value.lanes())),
            Op::Elementwise(op) => op.to_string(),
            Op::View(_) => "view".into(),
            Op::Reshape => "reshape".into(),
            Op::Position(axis) => format!("position {axis}"),
            Op::Gather(..) => "gather".into(),
            Op::Concatenate(axis) => format!("concatenate {axis}"),
            Op::Pattern(applied) => applied.operation().name(),
        }
    }
}

/// Returns zero in all lanes of a type.
pub(crate) fn zeros(ty: Type) -> Lanes {
    SmallVec::from_elem(Literal::zero(ty.element()), ty.lanes())
}

/// A value as text.
pub(crate) fn shown(lanes: &Lanes) -> String {
    match lanes.as_slice() {
        [one] => one.to_string(),
        several => format!("({})", several.iter().map(Literal::to_string).collect::<Vec<_>>().join(", ")),
    }
}
