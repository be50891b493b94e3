//! Associative operators.

use crate::{Error, Result};
use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type, Value};

/// An associative operator on one or several values, with its identity.
///
/// Several values are several reductions in one pass, or parts of one result, such as the minimum and its
/// position.
///
/// ```
/// use broadloom_scalar::{Builder, Type};
/// use broadloom_skeleton::Operator;
/// // Linear functions x ↦ a·x + b, one applied behind the other.
/// let f = Builder::function("compose");
/// let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| f.parameter(name, Type::F64));
/// let composed = [f.mul(a, c), f.add(f.mul(b, c), d)];
/// let compose = Operator::new(f.finish_function(&composed).unwrap(), &[1.0f64.into(), 0.0f64.into()], false).unwrap();
/// assert_eq!(compose.types(), [Type::F64, Type::F64]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operator {
    function: Function,
    /// The identity, lane by lane.
    identity: Vec<Literal>,
    commutative: bool,
    /// Operation that removes a value from the front of a combined one, if that is exact.
    inverse: Option<BinaryOp>,
    makeup: Composition,
}

/// The composition of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Composition {
    /// No parts.
    Single,
    /// One operator, applied within segments.
    Segmented(Box<Operator>),
    /// Several operators. Their values follow each other.
    All(Vec<Operator>),
}

/// A part of an operator that is applied within segments.
#[derive(Clone, Debug)]
pub(crate) struct InSegments<'o> {
    /// Number of the value that marks the starts of segments.
    pub(crate) head: usize,
    /// Numbers of the combined values.
    pub(crate) values: std::ops::Range<usize>,
    /// The operator within a segment.
    pub(crate) operator: &'o Operator,
}

impl Operator {
    /// Makes an operator from a function of two equal lists of values, the left one first, that returns such
    /// a list. If the operator is also commutative, elements are taken in an order that suits the machine.
    /// The order is the same for the same sizes. The identity has one literal for each value, used for all
    /// lanes of a vector, or one for each lane.
    pub fn new(function: Function, identity: &[Literal], commutative: bool) -> Result<Operator> {
        let bad = |reason: &str| Err(Error::Function { function: function.name().to_owned(), reason: reason.to_owned() });
        let types = function.result_types();
        let takes: Vec<Type> = function.parameters().iter().map(|parameter| parameter.ty).collect();
        if types.is_empty() || takes.len() != 2 * types.len() || takes.chunks(types.len()).any(|half| half != types) {
            return bad("an operator takes two equal lists of values and gives one more");
        }
        if !function.accessors().is_empty() {
            return bad("an operator has no inputs or outputs");
        }
        let elements: Vec<Element> = types.iter().flat_map(|ty| vec![ty.element(); ty.lanes()]).collect();
        let identity = if identity.len() == types.len() {
            identity.iter().zip(&types).flat_map(|(own, ty)| vec![*own; ty.lanes()]).collect()
        } else {
            identity.to_vec()
        };
        if identity.len() != elements.len() || identity.iter().zip(&elements).any(|(own, element)| own.element() != *element) {
            return bad("the identity of an operator has the types of its values");
        }
        Ok(Operator { function, identity, commutative, inverse: None, makeup: Composition::Single })
    }

    /// Makes an operator from a binary operation on one value of any type that supports it.
    pub(crate) fn plain(name: &str, op: BinaryOp, ty: Type, identity: Literal) -> Result<Operator> {
        let f = Builder::function(name);
        let (a, b) = (f.parameter("a", ty), f.parameter("b", ty));
        let inverse = match op {
            _ if !ty.is_scalar() => None,
            BinaryOp::Add if ty.element().is_integer() => Some(BinaryOp::Sub),
            BinaryOp::Xor => Some(BinaryOp::Xor),
            _ => None,
        };
        let operator = Operator::new(f.finish_function(&[f.binary(op, a, b)])?, &[identity], true)?;
        Ok(Operator { inverse, ..operator })
    }

    /// Returns the operation `-` with `(a + b) - a = b` for all values, where `+` is this operator. Returns
    /// `None` if there is none.
    pub(crate) fn inverse(&self) -> Option<BinaryOp> {
        self.inverse
    }

    /// Returns the sum. For `bool` it is exclusive or.
    pub fn sum(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::Xor } else { BinaryOp::Add };
        Operator::plain("sum", op, ty, Literal::zero(ty.element()))
    }

    /// Returns the product. For `bool` it is logical and.
    pub fn product(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::And } else { BinaryOp::Mul };
        Operator::plain("product", op, ty, Literal::from_i128(ty.element(), 1))
    }

    /// Returns the minimum. Numbers are preferred to NaN, and -0 is less than +0. The identity is the
    /// greatest value of the type.
    pub fn min(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::And } else { BinaryOp::Min };
        Operator::plain("min", op, ty, greatest(ty.element()))
    }

    /// Returns the maximum. Numbers are preferred to NaN, and +0 is greater than -0. The identity is the
    /// least value of the type.
    pub fn max(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::Or } else { BinaryOp::Max };
        Operator::plain("max", op, ty, least(ty.element()))
    }

    /// Returns the minimum and its first position: values of type `ty` with positions of an integer type. NaN
    /// counts as greater than all numbers. The identity is NaN for floats, otherwise the greatest value of
    /// the type, with the greatest position.
    pub fn arg_min(ty: impl Into<Type>, position: Element) -> Result<Operator> {
        Operator::arg("arg_min", ty.into(), position, false)
    }

    /// Returns the maximum and its first position: values of type `ty` with positions of an integer type. NaN
    /// counts as less than all numbers. The identity is NaN for floats, otherwise the least value of the
    /// type, with the greatest position.
    pub fn arg_max(ty: impl Into<Type>, position: Element) -> Result<Operator> {
        Operator::arg("arg_max", ty.into(), position, true)
    }

    fn arg(name: &str, ty: Type, position: Element, greater: bool) -> Result<Operator> {
        let f = Builder::function(name);
        let (a, i) = (f.parameter("a", ty), f.parameter("i", position));
        let (b, j) = (f.parameter("b", ty), f.parameter("j", position));
        let number = |x: Value| if ty.element() == Element::Bool { f.convert(x, Type::U32) } else { x };
        let (x, y) = (number(a), number(b));
        // A NaN is unordered: a number beats it, and it beats nothing.
        let beats = |x: Value, y: Value| {
            let stays = if greater { f.ge(y, x) } else { f.le(y, x) };
            if ty.element().is_float() { f.and(f.eq(x, x), f.not(stays)) } else { f.not(stays) }
        };
        let first = f.or(beats(x, y), f.and(f.lt(i, j), f.not(beats(y, x))));
        let results = [f.select(first, a, b), f.select(first, i, j)];
        let worst = match (ty.element().is_float(), greater) {
            // Even a NaN at a position comes before this identity.
            (true, _) => nan(ty.element()),
            (false, true) => least(ty.element()),
            (false, false) => greatest(ty.element()),
        };
        Operator::new(f.finish_function(&results)?, &[worst, greatest(position)], true)
    }

    /// [`Operator::arg_min`] for elements that are combined in the order of their positions. Of equal values,
    /// the left one is kept.
    pub fn arg_min_in_order(ty: impl Into<Type>, position: Element) -> Result<Operator> {
        Operator::arg_in_order("arg_min", ty.into(), position, false)
    }

    /// [`Operator::arg_max`] for elements that are combined in the order of their positions.
    pub fn arg_max_in_order(ty: impl Into<Type>, position: Element) -> Result<Operator> {
        Operator::arg_in_order("arg_max", ty.into(), position, true)
    }

    fn arg_in_order(name: &str, ty: Type, position: Element, greater: bool) -> Result<Operator> {
        let any = Operator::arg(name, ty, position, greater)?;
        let f = Builder::function(name);
        let (a, i) = (f.parameter("a", ty), f.parameter("i", position));
        let (b, j) = (f.parameter("b", ty), f.parameter("j", position));
        let number = |x: Value| if ty.element() == Element::Bool { f.convert(x, Type::U32) } else { x };
        let (x, y) = (number(a), number(b));
        // A NaN is unordered: a number beats it, and it beats nothing.
        let stays = if greater { f.ge(x, y) } else { f.le(x, y) };
        let comes = if ty.element().is_float() { f.and(f.not(stays), f.eq(y, y)) } else { f.not(stays) };
        let comes = f.or(comes, f.eq(i, f.literal(greatest(position))));
        let results = [f.select(comes, b, a), f.select(comes, j, i)];
        Operator::new(f.finish_function(&results)?, any.identity(), false)
    }

    /// Combines several operators into one. Their values follow each other.
    pub fn all(operators: &[Operator]) -> Result<Operator> {
        let f = Builder::function("together");
        let declare = || -> Vec<Vec<Value>> {
            let each = |operator: &Operator| operator.types().into_iter().map(|ty| f.parameter("x", ty)).collect();
            operators.iter().map(each).collect()
        };
        let (left, right) = (declare(), declare());
        let results: Vec<Value> = operators
            .iter()
            .zip(left.iter().zip(&right))
            .flat_map(|(operator, (a, b))| f.inline(&operator.function, &[&a[..], &b[..]].concat(), &mut []))
            .collect();
        let identity: Vec<Literal> = operators.iter().flat_map(|operator| operator.identity.clone()).collect();
        let commutative = operators.iter().all(|operator| operator.commutative);
        let all = Operator::new(f.finish_function(&results)?, &identity, commutative)?;
        Ok(Operator { makeup: Composition::All(operators.to_vec()), ..all })
    }

    /// Returns the parts of an operator that combines all its values within segments. Returns `None` if it
    /// combines some across segments.
    pub(crate) fn in_segments(&self) -> Option<Vec<InSegments<'_>>> {
        let parts = match &self.makeup {
            Composition::Single => return None,
            Composition::Segmented(_) => std::slice::from_ref(self),
            Composition::All(parts) => parts,
        };
        let mut first = 0;
        let each = parts.iter().map(|part| {
            let Composition::Segmented(operator) = &part.makeup else { return None };
            let head = first;
            first += part.types().len();
            Some(InSegments { head, values: head + 1..first, operator })
        });
        each.collect()
    }

    /// Returns the operator applied within segments. It has one more value in front: a `bool` that is true at
    /// the start of a segment. A [`Scan`](crate::Scan) with it restarts at each segment, and its work is
    /// spread evenly for segments of any length. The value at the last position of a segment is the reduction
    /// of the segment. A [`Sink`](crate::Sink) that stores only this value makes a reduction of segments.
    ///
    /// ```
    /// use broadloom_scalar::{Element, Type};
    /// use broadloom_skeleton::Operator;
    /// let sums = Operator::sum(Element::I32).unwrap().segmented().unwrap();
    /// assert_eq!(sums.types(), [Type::BOOL, Type::I32]);
    /// let combine = |a: (bool, i32), b: (bool, i32)| sums.function().evaluate(&[a.0.into(), a.1.into(), b.0.into(), b.1.into()]).unwrap();
    /// assert_eq!(combine((false, 1), (false, 2)), [false.into(), 3.into()]);
    /// assert_eq!(combine((false, 1), (true, 2)), [true.into(), 2.into()]);
    /// ```
    pub fn segmented(&self) -> Result<Operator> {
        let f = Builder::function("segmented");
        let declare = || {
            let starts = f.parameter("starts", Type::BOOL);
            (starts, self.types().into_iter().map(|ty| f.parameter("x", ty)).collect::<Vec<Value>>())
        };
        let ((starts_left, left), (starts, right)) = (declare(), declare());
        let both = f.inline(&self.function, &[&left[..], &right[..]].concat(), &mut []);
        let mut results = vec![f.or(starts_left, starts)];
        for (both, right) in both.into_iter().zip(&right) {
            let lanes = f.type_of(*right).lanes();
            let starts = if lanes == 1 { starts } else { f.vector(&vec![starts; lanes]) };
            results.push(f.select(starts, *right, both));
        }
        let identity: Vec<Literal> = std::iter::once(Literal::from(false)).chain(self.identity.iter().copied()).collect();
        let segmented = Operator::new(f.finish_function(&results)?, &identity, false)?;
        Ok(Operator { makeup: Composition::Segmented(Box::new(self.clone())), ..segmented })
    }

    /// Returns the code that combines two lists of values.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Returns the identity, lane by lane.
    pub fn identity(&self) -> &[Literal] {
        &self.identity
    }

    /// Returns true if elements may be combined in any order.
    pub fn is_commutative(&self) -> bool {
        self.commutative
    }

    /// Returns the types of its values.
    pub fn types(&self) -> Vec<Type> {
        self.function.result_types()
    }

    /// Emits the code that combines two lists of values.
    pub fn combine(&self, k: &Builder, left: &[Value], right: &[Value]) -> Vec<Value> {
        k.inline(&self.function, &[left, right].concat(), &mut [])
    }

    /// Returns the identity as values.
    pub fn nothing(&self, k: &Builder) -> Vec<Value> {
        let mut lanes = self.identity.iter().map(|lane| k.literal(*lane));
        let mut value = |ty: Type| k.vector(&lanes.by_ref().take(ty.lanes()).collect::<Vec<Value>>());
        self.types().into_iter().map(&mut value).collect()
    }
}

fn nan(element: Element) -> Literal {
    Literal::from_f64(element, f64::NAN).unwrap_or(Literal::zero(element))
}

/// Returns the greatest value of a type: infinity for floats.
fn greatest(element: Element) -> Literal {
    match element.range() {
        Some((_, high)) => Literal::from_i128(element, high),
        None => Literal::from_f64(element, f64::INFINITY).unwrap_or(Literal::zero(element)),
    }
}

/// Returns the least value of a type: minus infinity for floats.
fn least(element: Element) -> Literal {
    match element.range() {
        Some((low, _)) => Literal::from_i128(element, low),
        None => Literal::from_f64(element, f64::NEG_INFINITY).unwrap_or(Literal::zero(element)),
    }
}
