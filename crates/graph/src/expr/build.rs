//! Construction of nodes. Each operation is checked when it is called, and simplified if that needs no plan.
//!
//! Simplifications: a view of a view becomes one view if the rules compose, a view that changes nothing
//! becomes its input, and a view of a single value becomes that value.

use crate::expr::amount::Amount;
use crate::expr::check::{check_value, index_shape, possible, same_context};
use crate::expr::elementwise::{Elementwise, check_size};
use crate::expr::error::{Error, Result};
use crate::expr::length::common;
use crate::expr::node::{Context, Expression, Inputs, Length, Node, State};
use crate::expr::op::{Op, Scalar};
use crate::expr::shape::Shape;
use crate::expr::view::{AxisMap, View};
use crate::limits::{MAX_ARGUMENTS, MAX_PARTS, MOST_OPERATIONS};
use broadloom_scalar::{BinaryOp, Builder, Element, Function, Literal, Type};
use broadloom_skeleton::{Boundary, Rule};
use smallvec::{SmallVec, smallvec};

/// Returns the result type of an elementwise operation, or `None` if it does not take such inputs. It asks
/// the builder of scalar code, so both always agree.
fn result_type(op: &Elementwise, inputs: &[Type]) -> Option<Type> {
    let builder = Builder::function("check");
    let values: Vec<_> = inputs.iter().map(|ty| builder.parameter("x", *ty)).collect();
    let result = crate::expr::elementwise::emit(&builder, op, &values);
    let ty = builder.type_of(result);
    builder.finish_function(&[result]).ok().map(|_| ty)
}

/// Returns the result type of common operations on equal types, which need no builder.
fn quick_type(op: &Elementwise, inputs: &[Type]) -> Option<Type> {
    use broadloom_scalar::BinaryOp::{Add, And, Div, Max, Min, Mul, Or, Sub, Xor};
    use broadloom_scalar::UnaryOp::{Abs, Ceil, Floor, Neg, Not, RoundEven, Sqrt, Trunc};
    match (op, inputs) {
        (Elementwise::Binary(Add | Sub | Mul | Div | Min | Max), [a, b]) if a == b && a.element() != Element::Bool => Some(*a),
        (Elementwise::Binary(And | Or | Xor), [a, b]) if a == b && !a.element().is_float() => Some(*a),
        (Elementwise::Unary(Neg | Abs), [a]) if a.element() != Element::Bool => Some(*a),
        (Elementwise::Unary(Floor | Ceil | Trunc | RoundEven | Sqrt), [a]) if a.element().is_float() => Some(*a),
        (Elementwise::Unary(Not), [a]) if !a.element().is_float() => Some(*a),
        (Elementwise::Convert(element), [a]) => Some(a.with(*element)),
        (Elementwise::Compare(_), [a, b]) if a == b && a.element() != Element::Bool => Some(a.with(Element::Bool)),
        (Elementwise::Select, [c, a, b]) if a == b && *c == a.with(Element::Bool) => Some(*a),
        (Elementwise::Math(function, _), args) if args.len() == function.arguments() => {
            let first = *args.first()?;
            (first.element().is_float() && args.iter().all(|ty| *ty == first)).then_some(first)
        }
        (Elementwise::Call(function, result), args) => {
            let fits = function.accessors().is_empty()
                && function.parameters().len() == args.len()
                && function.parameters().iter().zip(args).all(|(parameter, ty)| parameter.ty == *ty);
            function.result_types().get(usize::from(*result)).copied().filter(|_| fits)
        }
        _ => None,
    }
}

impl Node {
    /// Creates an array with these bytes as its elements.
    pub fn upload(context: &Context, ty: Type, shape: Shape, bytes: &[u8]) -> Result<Node> {
        possible("upload", &shape)?;
        let size = ty.bytes() as usize;
        if bytes.len() != shape.count() * size {
            return Err(Error::Count { operation: "upload".into(), count: bytes.len() / size, shape });
        }
        let buffer = context.device().upload(bytes)?;
        Ok(Node::ready(context, ty, shape, buffer))
    }

    /// Creates an array from a buffer on the device. Its elements are contiguous, the last axis fastest.
    pub fn from_buffer(context: &Context, ty: Type, shape: Shape, buffer: broadloom_device::Buffer<u8>) -> Result<Node> {
        possible("from_buffer", &shape)?;
        let size = ty.bytes() as usize;
        if buffer.len() != shape.count() * size {
            return Err(Error::Count { operation: "from_buffer".into(), count: buffer.len() / size, shape });
        }
        Ok(Node::ready(context, ty, shape, buffer))
    }

    /// Creates an array that has one value at every position.
    pub fn fill(context: &Context, shape: Shape, value: &[Literal]) -> Result<Node> {
        possible("fill", &shape)?;
        let ty = value.first().and_then(|first| Type::vector(first.element(), value.len()));
        let uniform = value.iter().all(|lane| Some(lane.element()) == value.first().map(|first| first.element()));
        match ty.filter(|_| uniform) {
            Some(ty) => Ok(Node::pending(context, ty, shape, Op::Fill(Scalar::new(value)), smallvec![])),
            None => Err(Error::Range { operation: "fill".into(), shape, reason: "this is no value".into() }),
        }
    }

    /// Returns an array of another shape with the same value everywhere.
    pub(crate) fn filled(&self, shape: Shape, fill: &Op) -> Node {
        Node::pending(self.context(), self.ty(), shape, fill.clone(), smallvec![])
    }

    /// Creates an array of the positions along an axis.
    pub fn position(context: &Context, shape: Shape, axis: usize, element: Element) -> Result<Node> {
        possible("position", &shape)?;
        if axis >= shape.rank() {
            return Err(Error::Axis { operation: "position".into(), axis, shape });
        }
        if !element.is_integer() {
            return Err(Error::Type { operation: "position".into(), ty: element.into() });
        }
        Ok(Node::pending(context, element.into(), shape, Op::Position(axis as u8), smallvec![]))
    }

    /// Creates an elementwise operation. Shapes are broadcast as in NumPy: axes of extent 1 are repeated,
    /// missing leading axes are added.
    pub fn elementwise(op: Elementwise, inputs: &[&Node]) -> Result<Node> {
        let name = || op.to_string();
        let context = same_context("elementwise", inputs).map_err(|error| match error {
            Error::Devices { left, right, .. } => Error::Devices { operation: name(), left, right },
            other => other,
        })?;
        if inputs.len() > MAX_ARGUMENTS {
            return Err(inputs[0].refused(
                &name(),
                format!("it is of {} arrays or places, and at most {MAX_ARGUMENTS} are possible", inputs.len()),
            ));
        }
        let Ok(length) = common(inputs) else {
            let hosted = inputs.iter().map(|input| input.hosted()).collect::<Result<Inputs>>()?;
            return Node::elementwise(op, &hosted.iter().collect::<SmallVec<[&Node; 4]>>());
        };
        let types: SmallVec<[Type; 3]> = inputs.iter().map(|input| input.ty()).collect();
        let ty = match quick_type(&op, &types) {
            Some(ty) => ty,
            None => result_type(&op, &types).ok_or_else(|| match types.as_slice() {
                [_, a, b] if matches!(op, Elementwise::Select) && a != b => {
                    Error::Types { operation: name(), left: *a, right: *b }
                }
                [a, b, ..] if a != b => Error::Types { operation: name(), left: *a, right: *b },
                [a, ..] => Error::Type { operation: name(), ty: *a },
                [] => Error::Plan { what: name(), reason: "an operation without inputs".into() },
            })?,
        };
        let first = inputs[0].bound();
        // An extent of one differs from a length of at most one: that array may be empty.
        let is_alike = |input: &&Node| input.bound() == first && input.length().is_some() == length.is_some();
        if inputs.iter().all(is_alike) {
            let inputs = inputs.iter().map(|input| (*input).clone()).collect();
            return Ok(Node::pending(context, ty, first.clone(), Op::Elementwise(op), inputs).with_length(length.cloned()));
        }
        let mut shape = first.clone();
        for input in &inputs[1..] {
            shape = shape.broadcast(input.bound()).ok_or_else(|| Error::Shapes {
                operation: name(),
                left: shape.clone(),
                right: input.bound().clone(),
            })?;
        }
        if !shape.is_possible() {
            possible(&name(), &shape)?;
        }
        let stretched = inputs.iter().map(|input| input.stretched(&shape, length)).collect::<Result<Inputs>>()?;
        Ok(Node::pending(context, ty, shape, Op::Elementwise(op), stretched).with_length(length.cloned()))
    }

    /// Returns all results of a function of elements, each as an array. The function has no accessors.
    pub fn call(function: &Function, inputs: &[&Node]) -> Result<Vec<Node>> {
        if function.results().len() > usize::from(u8::MAX) {
            return Err(Error::Plan { what: function.name().to_owned(), reason: "a function with too many results".into() });
        }
        check_size(function, MOST_OPERATIONS)?;
        (0..function.results().len())
            .map(|result| Node::elementwise(Elementwise::Call(function.clone(), result as u8), inputs))
            .collect()
    }

    /// Returns a view of this array. See [`View`].
    pub fn view(&self, view: View) -> Result<Node> {
        match self.length() {
            Some(_) => self.hosted()?.view_in(view, None),
            None => self.view_in(view, None),
        }
    }

    /// Returns a view of this array. If a length is given, it is the extent of the first axis.
    pub(crate) fn view_in(&self, view: View, length: Option<&Length>) -> Result<Node> {
        if view.axes.len() != self.bound().rank() {
            return Err(self.refused("view", format!("a view of {} axes", view.axes.len())));
        }
        if let Some(fill) = &view.fill {
            check_value("boundary", fill, self.ty())?;
        }
        let is_as_long = match (self.length(), length) {
            (None, None) => true,
            (Some(own), Some(length)) => own.is_same(length),
            _ => false,
        };
        if is_as_long && view.is_identity(self.bound()) {
            return Ok(self.clone());
        }
        if let Some(fill) = view.fill.as_ref().filter(|_| view.is_constant(self.bound())) {
            return Ok(Node::fill(self.context(), view.shape, fill)?.with_length(length.cloned()));
        }
        if let Some(count) = view.first_elements().filter(|_| length.is_none()) {
            let sorted = match &*self.lock() {
                State::Pending(Expression { op: Op::Pattern(applied), inputs }) => {
                    applied.operation().sorted_by().map(|key| (key, usize::from(applied.result()), inputs.clone()))
                }
                State::Pending(_) | State::Ready(_) | State::Symbolic(_) => None,
            };
            if let Some((key, result, lines)) = sorted
                && let Some(first) = Node::first_sorted(&lines, key, result, count)?
            {
                return Ok(first);
            }
        }
        let simpler = match &*self.lock() {
            State::Pending(Expression { op: fill @ Op::Fill(_), .. }) if view.fill.is_none() => {
                return Ok(self.filled(view.shape, fill).with_length(length.cloned()));
            }
            // The rules assume the extents of the inner view. They are those of its input if both have the
            // same length.
            State::Pending(Expression { op: Op::View(inner), inputs })
                if self.length().is_none_or(|own| inputs[0].length().is_some_and(|inner| inner.is_same(own))) =>
            {
                view.after(inner, inputs[0].bound()).map(|both| (inputs[0].clone(), both))
            }
            State::Pending(_) | State::Ready(_) | State::Symbolic(_) => None,
        };
        if let Some((input, both)) = simpler {
            return input.view_in(both, length);
        }
        Ok(self.seen(view).with_length(length.cloned()))
    }

    /// Creates a view that is known to be valid.
    pub(crate) fn seen(&self, view: View) -> Node {
        let shape = view.shape.clone();
        Node::pending(self.context(), self.ty(), shape, Op::View(Box::new(view)), smallvec![self.clone()])
    }

    /// Broadcasts the array to a shape: axes of extent 1 are repeated, missing leading axes are added.
    pub fn broadcast_to(&self, shape: &Shape) -> Result<Node> {
        match self.length() {
            Some(_) => self.hosted()?.stretched(shape, None),
            None => self.stretched(shape, None),
        }
    }

    /// Broadcasts the array to a shape. If a length is given, it is the first extent of the result.
    pub(crate) fn stretched(&self, shape: &Shape, length: Option<&Length>) -> Result<Node> {
        if self.bound().numbers() == shape.numbers() && self.length().is_some() == length.is_some() && self.bound() == shape {
            return Ok(self.clone());
        }
        let refused = || Error::Shapes { operation: "broadcast".into(), left: self.bound().clone(), right: shape.clone() };
        let missing = shape.rank().checked_sub(self.bound().rank()).ok_or_else(refused)?;
        let mut axes: SmallVec<[AxisMap; 4]> = SmallVec::new();
        for axis in 0..self.bound().rank() {
            let (own, wanted) = (self.bound().amount(axis), shape.amount(missing + axis));
            axes.push(match own.equals(&wanted) {
                true => AxisMap::same(missing + axis),
                false if own.equals(&1.into()) => AxisMap::fixed(0),
                false => return Err(refused()),
            });
        }
        self.view_in(View::new("broadcast", self.bound(), &axes, shape.clone(), None)?, length)
    }

    /// Shifts each axis towards its end by the given distances and keeps the shape. Does not wait for the
    /// device.
    pub fn moved(&self, operation: &str, by: &[i64], boundary: &Boundary) -> Result<Node> {
        let axes = by.iter().enumerate().map(|(axis, by)| AxisMap { offset: by.saturating_neg(), ..AxisMap::same(axis) });
        let (axes, shape) = (axes.collect::<SmallVec<[AxisMap; 4]>>(), self.bound().clone());
        self.affine_in(operation, &axes, None, shape, Some(boundary), self.length())
    }

    /// Creates a view with one map for each axis and one boundary for all axes. Waits for the device if only
    /// the device knows the length of this array; see [`Node::affine_rows`].
    pub fn affine(&self, operation: &str, axes: &[AxisMap], shape: Shape, boundary: Option<&Boundary>) -> Result<Node> {
        match self.length() {
            Some(_) => self.hosted()?.affine_in(operation, axes, None, shape, boundary, None),
            None => self.affine_in(operation, axes, None, shape, boundary, None),
        }
    }

    /// Creates a view like [`Node::affine`] with separate offsets. The offsets may depend on the extents of a
    /// function's inputs.
    pub fn affine_at(
        &self,
        operation: &str,
        axes: &[AxisMap],
        offsets: &[Amount],
        shape: Shape,
        boundary: Option<&Boundary>,
    ) -> Result<Node> {
        match self.length() {
            Some(_) => self.hosted()?.affine_in(operation, axes, Some(offsets), shape, boundary, None),
            None => self.affine_in(operation, axes, Some(offsets), shape, boundary, None),
        }
    }

    /// Creates a view that keeps the first axis of this array as its first axis. The maps, offsets and shape
    /// are those of the other axes, beginning with axis 1. Does not wait for the device; the result has the
    /// length of this array.
    pub fn affine_rows(
        &self,
        operation: &str,
        axes: &[AxisMap],
        offsets: &[Amount],
        shape: &Shape,
        boundary: Option<&Boundary>,
    ) -> Result<Node> {
        let is_first = |map: &AxisMap| map.source == Some(0);
        if self.bound().rank() == 0 || axes.iter().any(is_first) {
            return Err(self.refused(operation, "the first axis is to stay as it is"));
        }
        let maps: SmallVec<[AxisMap; 4]> = std::iter::once(AxisMap::same(0)).chain(axes.iter().copied()).collect();
        let offsets: SmallVec<[Amount; 4]> = std::iter::once(Amount::from(0)).chain(offsets.iter().cloned()).collect();
        let shape: SmallVec<[Amount; 4]> = std::iter::once(self.bound().amount(0)).chain(shape.amounts()).collect();
        self.affine_in(operation, &maps, Some(&offsets), Shape::from_amounts(&shape), boundary, self.length())
    }

    /// Reverses the elements along some axes. Does not wait for the device.
    pub fn reversed(&self, operation: &str, axes: &[usize]) -> Result<Node> {
        if let Some(axis) = axes.iter().find(|axis| **axis >= self.bound().rank()) {
            return Err(Error::Axis { operation: operation.to_owned(), axis: *axis, shape: self.bound().clone() });
        }
        if self.length().is_some() && axes.contains(&0) {
            // Only the device knows the position of the last element.
            let others: SmallVec<[usize; 4]> = axes.iter().copied().filter(|axis| *axis != 0).collect();
            let array = self.reversed(operation, &others)?;
            let positions = (0..self.bound().rank()).map(|axis| self.position_like(axis, Element::I64));
            let mut positions = positions.collect::<Result<Vec<Node>>>()?;
            let sub = |a: &Node, b: &Node| Node::elementwise(Elementwise::Binary(BinaryOp::Sub), &[a, b]);
            positions[0] = sub(&sub(&self.first_extent()?, &self.number(1)?)?, &positions[0])?;
            return array.gather(&positions.iter().collect::<SmallVec<[&Node; 4]>>(), &Boundary::Clamp);
        }
        let array = self;
        let (mut maps, mut offsets) = (SmallVec::<[AxisMap; 4]>::new(), SmallVec::<[Amount; 4]>::new());
        for axis in 0..array.bound().rank() {
            let is_reversed = axes.contains(&axis) && array.bound().numbers()[axis] > 0;
            maps.push(if is_reversed { AxisMap { stride: -1, ..AxisMap::same(axis) } } else { AxisMap::same(axis) });
            offsets.push(if is_reversed { array.bound().amount(axis).minus(&1.into()) } else { Amount::from(0) });
            if axes.contains(&axis) {
                let _ = array.bound().amount(axis).equals(&0.into());
            }
        }
        array.affine_in(operation, &maps, Some(&offsets), array.bound().clone(), None, array.length())
    }

    pub(crate) fn affine_in(
        &self,
        operation: &str,
        axes: &[AxisMap],
        offsets: Option<&[Amount]>,
        shape: Shape,
        boundary: Option<&Boundary>,
        length: Option<&Length>,
    ) -> Result<Node> {
        let fill = boundary.and_then(Boundary::constant).cloned();
        if let Some(fill) = &fill {
            check_value(operation, fill, self.ty())?;
        }
        let rule = boundary.map_or(Rule::Inside, Boundary::rule);
        let axes: SmallVec<[AxisMap; 4]> = axes.iter().map(|map| AxisMap { rule, ..*map }).collect();
        let view = match offsets {
            Some(offsets) => View::with_offsets(operation, self.bound(), &axes, offsets, shape, fill)?,
            None => View::new(operation, self.bound(), &axes, shape, fill)?,
        };
        self.view_in(view, length)
    }

    /// Returns the elements in another shape. Does not wait for the device. If only the device knows the
    /// length of this array and the new shape has another number of elements, the next read returns the
    /// error. See [`Node::reshape_rows`], [`Node::flattened`] and [`Node::rows_of`].
    pub fn reshape(&self, shape: Shape) -> Result<Node> {
        possible("reshape", &shape)?;
        let mismatch = |left: Shape, right: Shape| Error::Shapes { operation: "reshape".into(), left, right };
        if let Some(length) = self.length() {
            let (own, each) = (self.bound().clone(), self.bound().without(&[0], false).count());
            if each == 0 {
                return self.hosted()?.reshape(shape);
            }
            let (rows, right) = (shape.count() / each, shape.clone());
            if rows * each != shape.count() || rows > length.bound() {
                return Err(mismatch(own, right));
            }
            let wrong = move |found: usize| (found != rows).then(|| mismatch(own.with(0, found.into()), right.clone()));
            return self.expected_rows(length, rows, wrong)?.reshape(shape);
        }
        if !shape.size().equals(&self.bound().size()) {
            return Err(mismatch(self.bound().clone(), shape));
        }
        self.reshaped(shape, None)
    }

    /// Reshapes the elements at each index of the first axis. Does not wait for the device; the result has
    /// the length of this array.
    pub fn reshape_rows(&self, row: &Shape) -> Result<Node> {
        let first = self.bound().amounts().into_iter().take(1);
        let shape = Shape::from_amounts(&first.chain(row.amounts()).collect::<SmallVec<[Amount; 4]>>());
        possible("reshape", &shape)?;
        if self.bound().rank() == 0 || !row.size().equals(&self.bound().without(&[0], false).size()) {
            return Err(Error::Shapes { operation: "reshape".into(), left: self.bound().clone(), right: shape });
        }
        self.reshaped(shape, self.length())
    }

    /// Returns the elements along one axis. Does not wait for the device.
    pub fn flattened(&self) -> Result<Node> {
        let shape = Shape::from_amounts(&[self.bound().size()]);
        match self.length() {
            Some(_) if self.bound().rank() == 1 => Ok(self.clone()),
            Some(length) => {
                let each = (1..self.bound().rank()).fold(Amount::from(1), |each, axis| each.times(&self.bound().amount(axis)));
                match length.times(&each)? {
                    Some(length) => self.reshaped(shape, Some(&length)),
                    None => self.hosted()?.flattened(),
                }
            }
            None => self.reshape(shape),
        }
    }

    /// Returns the elements in another shape. If a length is given, it is the extent of the first axis.
    pub(crate) fn reshaped(&self, shape: Shape, length: Option<&Length>) -> Result<Node> {
        if shape.is_identical(self.bound()) {
            return Ok(self.clone());
        }
        let length = length.cloned();
        let reshaped = match &*self.lock() {
            State::Ready(buffer) => {
                return Ok(Node::ready(self.context(), self.ty(), shape, buffer.clone()).with_length(length));
            }
            State::Symbolic(symbol) => {
                return Ok(Node::symbolic(self.context(), self.ty(), shape, symbol.clone()).with_length(length));
            }
            State::Pending(Expression { op: fill @ Op::Fill(_), .. }) => return Ok(self.filled(shape, fill).with_length(length)),
            State::Pending(Expression { op: Op::Reshape, inputs }) if length.is_none() => Some(inputs[0].clone()),
            State::Pending(_) => None,
        };
        if let Some(input) = reshaped {
            return input.reshape(shape);
        }
        Ok(Node::pending(self.context(), self.ty(), shape, Op::Reshape, smallvec![self.clone()]).with_length(length))
    }

    /// Gathers the elements at the positions of the index arrays. There is one index array for each axis; the
    /// index arrays are broadcast to one shape.
    pub fn gather(&self, indices: &[&Node], boundary: &Boundary) -> Result<Node> {
        let operation = || "gather".to_owned();
        if indices.len() != self.bound().rank() || indices.is_empty() {
            return Err(self.refused(&operation(), format!("{} index arrays are given", indices.len())));
        }
        let mut all: SmallVec<[&Node; 4]> = smallvec![self];
        all.extend(indices.iter().copied());
        let context = same_context("gather", &all)?;
        let Ok(length) = common(indices) else {
            let hosted = indices.iter().map(|index| index.hosted()).collect::<Result<Inputs>>()?;
            return self.gather(&hosted.iter().collect::<SmallVec<[&Node; 4]>>(), boundary);
        };
        let shape = index_shape("gather", indices)?;
        possible("gather", &shape)?;
        let fill = match boundary {
            Boundary::Constant(fill) => {
                check_value("gather", fill, self.ty())?;
                if self.bound().is_empty() {
                    return Ok(Node::fill(context, shape, fill)?.with_length(length.cloned()));
                }
                Some(fill.clone())
            }
            Boundary::Clamp | Boundary::Wrap | Boundary::Mirror if self.bound().is_empty() && !shape.is_empty() => {
                return Err(self.refused(&operation(), "there are no elements to take"));
            }
            Boundary::Clamp | Boundary::Wrap | Boundary::Mirror => None,
        };
        let mut inputs: Inputs = smallvec![self.clone()];
        for index in indices {
            inputs.push(index.stretched(&shape, length)?);
        }
        let op = Op::Gather(boundary.rule(), fill);
        Ok(Node::pending(context, self.ty(), shape, op, inputs).with_length(length.cloned()))
    }

    /// Gathers the elements of a one-dimensional array at indices that are known to be within its bound.
    pub(crate) fn gather_inside(&self, index: &Node) -> Result<Node> {
        let context = same_context("gather", &[self, index])?;
        let (op, inputs) = (Op::Gather(Rule::Inside, None), smallvec![self.clone(), index.clone()]);
        Ok(Node::pending(context, self.ty(), index.bound().clone(), op, inputs).with_length(index.length().cloned()))
    }

    /// Concatenates arrays along an axis; their other extents are equal. Too many parts for one kernel are
    /// first concatenated in groups.
    pub fn concatenate(axis: usize, parts: &[&Node]) -> Result<Node> {
        let operation = || "concatenate".to_owned();
        let context = same_context("concatenate", parts)?;
        let first = parts[0];
        let is_long = |part: &&&Node| part.length().is_some();
        let is_known = axis == 0
            || common(parts).is_ok_and(|length| parts.iter().filter(is_long).count() == parts.len() || length.is_none());
        if !is_known {
            let hosted = parts.iter().map(|part| part.hosted()).collect::<Result<Inputs>>()?;
            return Node::concatenate(axis, &hosted.iter().collect::<Vec<&Node>>());
        }
        if axis >= first.bound().rank() {
            return Err(Error::Axis { operation: operation(), axis, shape: first.bound().clone() });
        }
        let mut extents = first.bound().amounts();
        extents[axis] = Amount::from(0);
        for part in parts {
            if part.ty() != first.ty() {
                return Err(Error::Types { operation: operation(), left: first.ty(), right: part.ty() });
            }
            let same_rank = part.bound().rank() == extents.len();
            let fits = same_rank && (0..extents.len()).all(|a| a == axis || part.bound().amount(a).equals(&extents[a]));
            if !fits {
                return Err(Error::Shapes { operation: operation(), left: first.bound().clone(), right: part.bound().clone() });
            }
            extents[axis] = extents[axis].plus(&part.bound().amount(axis));
        }
        let shape = Shape::from_amounts(&extents);
        possible("concatenate", &shape)?;
        let has_some = |part: &&&Node| !part.bound().amount(axis).equals(&0.into());
        let mut inputs: Inputs = parts.iter().filter(has_some).map(|part| (*part).clone()).collect();
        match inputs.len() {
            0 => Ok(first.clone()),
            1 => Ok(inputs.swap_remove(0)),
            count if count > MAX_PARTS => {
                let size = count.div_ceil(MAX_PARTS).max(MAX_PARTS);
                let joined = inputs.chunks(size).map(|part| Node::concatenate(axis, &part.iter().collect::<Vec<_>>()));
                let joined = joined.collect::<Result<Vec<Node>>>()?;
                Node::concatenate(axis, &joined.iter().collect::<Vec<_>>())
            }
            _ => {
                let length = match parts.iter().find_map(|part| part.length()) {
                    Some(_) if axis == 0 => Some(Length::sum(context, parts)?),
                    length => length.cloned(),
                };
                let op = Op::Concatenate(axis as u8);
                Ok(Node::pending(context, first.ty(), shape, op, inputs).with_length(length))
            }
        }
    }

    /// Returns the parts of a concatenation along the first axis that has not been computed yet.
    pub fn concatenated(&self) -> Option<Vec<Node>> {
        match &*self.lock() {
            State::Pending(expression) if matches!(expression.op, Op::Concatenate(0)) => Some(expression.inputs.to_vec()),
            _ => None,
        }
    }
}
