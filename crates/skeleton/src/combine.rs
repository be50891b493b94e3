//! Ways to combine elements, for all types that support them.

use crate::{Error, Operator, Result};
use broadloom_scalar::{BinaryOp, Element, Function, Lanes, Literal, Type};
use smallvec::SmallVec;
use std::sync::Arc;

/// A way to combine elements. Each is associative, or assumed to be.
/// It has a name and is independent of the type. [`Combine::operator`] returns the [`Operator`] for one type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The sum. Integers and floats.
    Sum,
    /// The product. Integers and floats.
    Product,
    /// The minimum. Integers and floats. Numbers are preferred to NaN.
    Min,
    /// The maximum. Integers and floats. Numbers are preferred to NaN.
    Max,
    /// True if all are true. `bool`, and integers bit by bit.
    All,
    /// True if one is true. `bool`, and integers bit by bit.
    Any,
    /// True if an odd number of values is true. `bool`, and integers bit by bit.
    Odd,
    /// An operator on one value, in the order of elements.
    By(Arc<Operator>),
}

/// Maximum number of operations of a function that combines two values. A kernel contains dozens of copies of
/// it.
const MOST_OPERATIONS: u64 = 512;

impl Combine {
    /// All named ways.
    pub const EVERY: [Combine; 7] =
        [Combine::Sum, Combine::Product, Combine::Min, Combine::Max, Combine::All, Combine::Any, Combine::Odd];

    /// Combines by a function of two values of one type. `identity` has a literal for each lane and is
    /// neutral for the function.
    pub fn by(function: Function, identity: &[Literal]) -> Result<Combine> {
        Combine::made(function, identity, false)
    }

    /// Combines by a commutative function. Elements are taken in an order that suits the machine.
    pub fn commutative(function: Function, identity: &[Literal]) -> Result<Combine> {
        Combine::made(function, identity, true)
    }

    fn made(function: Function, identity: &[Literal], commutative: bool) -> Result<Combine> {
        let (name, count, most) = (function.name().to_owned(), function.operations(), MOST_OPERATIONS);
        if count > most {
            return Err(Error::Operations { operation: name, count, most });
        }
        let operator = Operator::new(function, identity, commutative)?;
        match operator.types().len() {
            1 => Ok(Combine::By(Arc::new(operator))),
            count => Err(Error::Function { function: name, reason: format!("it combines {count} values, not one") }),
        }
    }

    /// Returns the word for it in messages and texts.
    pub fn name(&self) -> &str {
        match self {
            Combine::Sum => "sum",
            Combine::Product => "product",
            Combine::Min => "min",
            Combine::Max => "max",
            Combine::All => "all",
            Combine::Any => "any",
            Combine::Odd => "odd",
            Combine::By(operator) => operator.function().name(),
        }
    }

    /// Returns true if elements of the type can be combined in this way.
    pub fn takes(&self, ty: Type) -> bool {
        match self {
            Combine::Sum | Combine::Product | Combine::Min | Combine::Max => ty.element() != Element::Bool,
            Combine::All | Combine::Any | Combine::Odd => !ty.element().is_float(),
            Combine::By(operator) => operator.types() == [ty],
        }
    }

    /// Returns the operation on two values, or `None` for [`Combine::By`].
    pub fn binary(&self) -> Option<BinaryOp> {
        Some(match self {
            Combine::Sum => BinaryOp::Add,
            Combine::Product => BinaryOp::Mul,
            Combine::Min => BinaryOp::Min,
            Combine::Max => BinaryOp::Max,
            Combine::All => BinaryOp::And,
            Combine::Any => BinaryOp::Or,
            Combine::Odd => BinaryOp::Xor,
            Combine::By(_) => return None,
        })
    }

    /// Returns the operator for values of a type.
    pub fn operator(&self, ty: Type) -> Result<Operator> {
        match (self, self.binary()) {
            (Combine::By(operator), _) => Ok(Operator::clone(operator)),
            (_, Some(op)) => Operator::plain(self.name(), op, ty, self.one_identity(ty.element())),
            (_, None) => Err(Error::Function { function: self.name().to_owned(), reason: "it has no operation".to_owned() }),
        }
    }

    /// Returns the result for no elements of a type.
    pub fn identity(&self, ty: Type) -> Lanes {
        match self {
            Combine::By(operator) => Lanes::from_slice(operator.identity()),
            _ => SmallVec::from_elem(self.one_identity(ty.element()), ty.lanes()),
        }
    }

    fn one_identity(&self, element: Element) -> Literal {
        let float = |value: f64| Literal::from_f64(element, value).unwrap_or(Literal::zero(element));
        match self {
            Combine::Sum | Combine::Any | Combine::Odd | Combine::By(_) => Literal::zero(element),
            Combine::Product => Literal::from_i128(element, 1),
            Combine::All => Literal::from_bits(element, u64::MAX),
            Combine::Min => element.range().map_or(float(f64::INFINITY), |(_, high)| Literal::from_i128(element, high)),
            Combine::Max => element.range().map_or(float(f64::NEG_INFINITY), |(low, _)| Literal::from_i128(element, low)),
        }
    }
}
