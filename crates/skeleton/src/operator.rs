//! Associative operators.

use crate::{Error, Result};
use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type, Value};

/// An associative operator on one or several values, with its identity.
///
/// Several values at once are several reductions in one pass, or parts of one thing, such as the least value and where it is.
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
    /// Lane by lane.
    identity: Vec<Literal>,
    commutative: bool,
    /// The operation that takes a value from the end of a combined one, if that is exact.
    inverse: Option<BinaryOp>,
    makeup: Makeup,
}

/// The operators that an operator is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Makeup {
    /// None.
    Single,
    /// One, within segments.
    Segmented(Box<Operator>),
    /// Several, their values one behind the other.
    All(Vec<Operator>),
}

/// A part of an operator that works within segments.
#[derive(Clone, Debug)]
pub(crate) struct InSegments<'o> {
    /// The number of the value that says where segments start.
    pub(crate) head: usize,
    /// The values.
    pub(crate) values: std::ops::Range<usize>,
    /// The operator within a segment.
    pub(crate) operator: &'o Operator,
}

impl Operator {
    /// A function of two equal lists of values, the left one first, that gives such a list. Where it is also commutative, elements are taken
    /// in an order that suits the machine; the order is always the same for the same sizes. The identity has a literal for each value, which is in all lanes of a
    /// vector, or one for each lane.
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
        Ok(Operator { function, identity, commutative, inverse: None, makeup: Makeup::Single })
    }

    /// A binary operation on one value of any type that has it.
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

    /// Returns the operation `-` for which `(a + b) - a` is always `b`, `+` being this operator; `None` if there is none.
    pub(crate) fn inverse(&self) -> Option<BinaryOp> {
        self.inverse
    }

    /// The sum; of truth values, whether the number of true ones is odd.
    pub fn sum(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::Xor } else { BinaryOp::Add };
        Operator::plain("sum", op, ty, Literal::zero(ty.element()))
    }

    /// The product; of truth values, whether all are true.
    pub fn product(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::And } else { BinaryOp::Mul };
        Operator::plain("product", op, ty, Literal::from_i128(ty.element(), 1))
    }

    /// The least value: numbers before NaN, -0 before +0. Of nothing, the greatest there is.
    pub fn min(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::And } else { BinaryOp::Min };
        Operator::plain("min", op, ty, greatest(ty.element()))
    }

    /// The greatest value: numbers before NaN, +0 before -0. Of nothing, the least there is.
    pub fn max(ty: impl Into<Type>) -> Result<Operator> {
        let ty = ty.into();
        let op = if ty.element() == Element::Bool { BinaryOp::Or } else { BinaryOp::Max };
        Operator::plain("max", op, ty, least(ty.element()))
    }

    /// The least value and where it is first: values of type `ty` with positions of an integer type. NaN counts as greater than all
    /// numbers. Of nothing, NaN or the greatest value there is, and the greatest position.
    pub fn arg_min(ty: impl Into<Type>, position: Element) -> Result<Operator> {
        Operator::arg("arg_min", ty.into(), position, false)
    }

    /// The greatest value and where it is first: values of type `ty` with positions of an integer type. NaN counts as less than all
    /// numbers. Of nothing, NaN or the least value there is, and the greatest position.
    pub fn arg_max(ty: impl Into<Type>, position: Element) -> Result<Operator> {
        Operator::arg("arg_max", ty.into(), position, true)
    }

    fn arg(name: &str, ty: Type, position: Element, greater: bool) -> Result<Operator> {
        let f = Builder::function(name);
        let (a, i) = (f.parameter("a", ty), f.parameter("i", position));
        let (b, j) = (f.parameter("b", ty), f.parameter("j", position));
        let number = |x: Value| if ty.element() == Element::Bool { f.convert(x, Type::U32) } else { x };
        let (x, y) = (number(a), number(b));
        // A NaN is neither before nor behind: a number beats it, and it beats nothing.
        let beats = |x: Value, y: Value| {
            let stays = if greater { f.ge(y, x) } else { f.le(y, x) };
            if ty.element().is_float() { f.and(f.eq(x, x), f.not(stays)) } else { f.not(stays) }
        };
        let first = f.or(beats(x, y), f.and(f.lt(i, j), f.not(beats(y, x))));
        let results = [f.select(first, a, b), f.select(first, i, j)];
        let worst = match (ty.element().is_float(), greater) {
            // So that even a NaN comes before it.
            (true, _) => nan(ty.element()),
            (false, true) => least(ty.element()),
            (false, false) => greatest(ty.element()),
        };
        Operator::new(f.finish_function(&results)?, &[worst, greatest(position)], true)
    }

    /// [`Operator::arg_min`] for elements that are combined in the order of their positions: the first of equal ones is the one that was there before.
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
        // A NaN is neither before nor behind: a number beats it, and it beats nothing.
        let stays = if greater { f.ge(x, y) } else { f.le(x, y) };
        let comes = if ty.element().is_float() { f.and(f.not(stays), f.eq(y, y)) } else { f.not(stays) };
        let comes = f.or(comes, f.eq(i, f.literal(greatest(position))));
        let results = [f.select(comes, b, a), f.select(comes, j, i)];
        Operator::new(f.finish_function(&results)?, any.identity(), false)
    }

    /// Several operators at once, their values one behind the other.
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
        Ok(Operator { makeup: Makeup::All(operators.to_vec()), ..all })
    }

    /// The parts of an operator all of whose values are combined within segments; `None` if some are not.
    pub(crate) fn in_segments(&self) -> Option<Vec<InSegments<'_>>> {
        let parts = match &self.makeup {
            Makeup::Single => return None,
            Makeup::Segmented(_) => std::slice::from_ref(self),
            Makeup::All(parts) => parts,
        };
        let mut first = 0;
        let each = parts.iter().map(|part| {
            let Makeup::Segmented(operator) = &part.makeup else { return None };
            let head = first;
            first += part.types().len();
            Some(InSegments { head, values: head + 1..first, operator })
        });
        each.collect()
    }

    /// Returns the operator within segments: one more value in front, a `bool` that is true where a segment starts. A [`Scan`](crate::Scan) by
    /// it starts anew at each segment, and its work is spread evenly however long segments are. The value at the last position of a segment is the segment's
    /// reduction; a [`Sink`](crate::Sink) that stores it there only makes a reduction of segments.
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
        Ok(Operator { makeup: Makeup::Segmented(Box::new(self.clone())), ..segmented })
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The identity, lane by lane.
    pub fn identity(&self) -> &[Literal] {
        &self.identity
    }

    /// Returns whether elements may be taken in another order.
    pub fn is_commutative(&self) -> bool {
        self.commutative
    }

    /// The types of its values.
    pub fn types(&self) -> Vec<Type> {
        self.function.result_types()
    }

    /// Writes the code that combines two lists of values.
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

/// The greatest value of a type: of floats, infinity.
fn greatest(element: Element) -> Literal {
    match element.range() {
        Some((_, high)) => Literal::from_i128(element, high),
        None => Literal::from_f64(element, f64::INFINITY).unwrap_or(Literal::zero(element)),
    }
}

/// The least value of a type: of floats, minus infinity.
fn least(element: Element) -> Literal {
    match element.range() {
        Some((low, _)) => Literal::from_i128(element, low),
        None => Literal::from_f64(element, f64::NEG_INFINITY).unwrap_or(Literal::zero(element)),
    }
}
