//! Call: a function at every position of a shape that reads arrays at computed positions, in windows around
//! its position, and in queues.
//!
//! The function is composed with the functions of its inputs and becomes a map, so its inputs need no memory
//! of their own. Reads are allowed in loops of the function. Every read has a boundary rule, so no computed
//! index is outside an array.

use crate::expr::apply::Typing;
use crate::expr::check::{check_value, possible, same_context};
use crate::expr::elementwise::check_size;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::length::common;
use crate::expr::node::Node;
use crate::expr::op::zeros;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel};
use crate::expr::shape::Shape;
use crate::expr::spelling::{Setting, Spelling};
use crate::expr::view::AxisMap;
use crate::limits::{MAX_ARGUMENTS, MOST_APPENDED, MOST_OPERATIONS};
use broadloom_scalar::{
    Accessor, AccessorKind, Array, Binding, Builder, Environment, Function, Lanes, Literal, Type, Value, Variable,
};
use broadloom_skeleton::kit::NestedSource;
use broadloom_skeleton::{Boundary, Rule};
use broadloom_skeleton::{Map, Sink, Source};
use smallvec::SmallVec;

/// Access of a function to an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reads {
    /// At a position, through an accessor of the array's rank.
    At(Boundary),
    /// At an index along an axis, through an accessor of one index. The other indices are those of the
    /// position of the call, whose shape must have the extents of the array there.
    Along(usize, Boundary),
    /// At offsets from the position of the call, through a window. Array and call have the same rank.
    Window(Boundary),
    /// As a queue: each position takes this number of elements. Reads after the last element return that
    /// element.
    Queue(usize),
}

/// Function that reads arrays. Its inputs are a marker of the shape, elements at the position, extents, and
/// arrays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) function: Function,
    /// The number of parameters after the position.
    pub(super) beside: usize,
    pub(super) reads: Vec<Reads>,
    /// The ranks of the arrays.
    ranks: Vec<usize>,
    /// Number of elements that each position appends to each queue.
    pub(super) appended: Vec<usize>,
    /// True if only the device knows the number of positions.
    pub(super) bounded: bool,
}

/// Values that a call reads along a line and that are not in memory.
#[derive(Clone, Copy)]
pub(super) enum Line<'a> {
    /// The last accessor reads them.
    Accessor,
    /// This function computes them.
    Source(&'a Source),
}

impl Node {
    /// Computes a function at every position of a shape. Returns its results as arrays of the shape, then its
    /// queues.
    ///
    /// The parameters of the function are the indices of the position, then an element of each array of
    /// `beside`, which is broadcast to the shape. Its accessors are those that read `inputs`, then those that
    /// write queues. Each position appends the number of elements in `appended`, with zeros if the function
    /// appends fewer. Calls with queues have one axis, the number of the firing.
    ///
    /// Arrays whose length only the device knows are read without a wait: boundary rules use the length. A
    /// queue with such a length causes a wait, as it must have enough elements for the shape; see
    /// [`Node::compute_like`].
    pub fn compute(
        function: &Function,
        shape: &Shape,
        beside: &[&Node],
        inputs: &[(&Node, Reads)],
        appended: &[usize],
    ) -> Result<Vec<Node>> {
        let given: Vec<&Node> = beside.iter().copied().chain(inputs.iter().map(|(node, _)| *node)).collect();
        let context = same_context(function.name(), &given)?;
        possible(function.name(), shape)?;
        let like = Node::fill(context, shape.clone(), &[Literal::from(false)])?;
        Node::compute_like(function, &like, beside, inputs, appended)
    }

    /// Returns an array with one element for each call that takes `rate` elements of this queue. Elements
    /// left over for an incomplete call are ignored. Does not wait.
    pub fn firings(&self, rate: usize) -> Result<Node> {
        self.check_line("firings")?;
        let rows = self.rows_of(rate)?;
        rows.affine_rows("firings", &[AxisMap::fixed(0)], &[0.into()], &[].into(), None)?.fill_like(&[Literal::from(false)])
    }

    /// Computes a function like [`Node::compute`], at every position of an array. The values of its elements
    /// are not used.
    ///
    /// If only the device knows the length of the array, the results have that length. Nothing waits if the
    /// array has one element for each firing of a queue ([`Node::firings`]), whatever the length.
    pub fn compute_like(
        function: &Function,
        like: &Node,
        beside: &[&Node],
        inputs: &[(&Node, Reads)],
        appended: &[usize],
    ) -> Result<Vec<Node>> {
        let name = function.name().to_owned();
        let shape = like.bound();
        let bad = |reason: String| Err(Error::Range { operation: name.clone(), shape: shape.clone(), reason });
        let given: Vec<&Node> = beside.iter().copied().chain(inputs.iter().map(|(node, _)| *node)).collect();
        let context = same_context(&name, &[&[like], &given[..]].concat())?;
        check_size(function, MOST_OPERATIONS)?;
        let suffices = |queue: &Node, rate: usize| match (queue.length(), like.length()) {
            (Some(own), Some(calls)) => calls.counts_parts(own, rate),
            (Some(_), None) => shape.is_empty(),
            (None, calls) => calls.is_none() || !queue.bound().size().is_less(&shape.size().times(&rate.into())),
        };
        // Reads along an axis compare extents with those of the positions.
        let is_enough = inputs.iter().all(|(node, reads)| match reads {
            Reads::Queue(rate) => suffices(node, *rate),
            Reads::Along(..) => node.length().is_none() && like.length().is_none(),
            Reads::At(_) | Reads::Window(_) => true,
        });
        let together: Vec<&Node> = std::iter::once(like).chain(beside.iter().copied()).collect();
        let length = match common(&together) {
            Ok(length) if is_enough && length.is_some() == like.length().is_some() => length,
            _ => {
                let hosted = |(node, reads): &(&Node, Reads)| match reads {
                    Reads::Queue(_) | Reads::Along(..) => node.hosted(),
                    Reads::At(_) | Reads::Window(_) => Ok((*node).clone()),
                };
                let nodes = inputs.iter().map(hosted).collect::<Result<Vec<Node>>>()?;
                let inputs: Vec<(&Node, Reads)> =
                    nodes.iter().zip(inputs).map(|(node, (_, reads))| (node, reads.clone())).collect();
                let beside = beside.iter().map(|node| node.hosted()).collect::<Result<Vec<Node>>>()?;
                return Node::compute_like(function, &like.hosted()?, &beside.iter().collect::<Vec<_>>(), &inputs, appended);
            }
        };
        let ranks: Vec<usize> = inputs.iter().map(|(node, _)| node.bound().rank()).collect();
        if given.len() + ranks.iter().sum::<usize>() + 1 > MAX_ARGUMENTS {
            return bad(format!("it is of {} arrays, and at most {MAX_ARGUMENTS} arrays and axes are possible", given.len()));
        }
        let parameters = function.parameters();
        if parameters.len() != shape.rank() + beside.len() {
            return bad(format!(
                "the function has {} parameters, and is given {}",
                parameters.len(),
                shape.rank() + beside.len()
            ));
        }
        let is_index = |ty: Type| matches!(ty, Type::I32 | Type::U32 | Type::I64 | Type::U64);
        if let Some(index) = parameters[..shape.rank()].iter().find(|parameter| !is_index(parameter.ty)) {
            return Err(Error::Type { operation: name, ty: index.ty });
        }
        for (parameter, node) in parameters[shape.rank()..].iter().zip(beside) {
            if parameter.ty != node.ty() {
                return Err(Error::Types { operation: name, left: parameter.ty, right: node.ty() });
            }
        }
        let accessors = function.accessors();
        if accessors.len() != inputs.len() + appended.len() {
            let given = inputs.len() + appended.len();
            return bad(format!("the function has {} accessors, and is given {given}", accessors.len()));
        }
        for (accessor, (node, reads)) in accessors.iter().zip(inputs) {
            if accessor.ty != node.ty() {
                return Err(Error::Types { operation: name, left: accessor.ty, right: node.ty() });
            }
            let (rank, count) = (node.bound().rank(), node.bound().size());
            let boundary = match (reads, accessor.kind) {
                (Reads::At(boundary), AccessorKind::Input) if usize::from(accessor.rank) == rank => boundary,
                (Reads::Along(axis, boundary), AccessorKind::Input) if accessor.rank == 1 && has_lines(node, like, *axis) => {
                    boundary
                }
                (Reads::Window(boundary), AccessorKind::Window) if usize::from(accessor.rank) == rank && rank == shape.rank() => {
                    boundary
                }
                (Reads::Queue(rate), AccessorKind::Source) if rank == 1 && shape.rank() == 1 => {
                    if count.is_less(&shape.size().times(&(*rate).into())) {
                        let count = count.get();
                        return bad(format!("`{}` has {count} elements, and {rate} are taken each time", accessor.name));
                    }
                    &Boundary::Clamp
                }
                _ => return bad(format!("`{}` cannot read an array of shape {} like this", accessor.name, node.bound())),
            };
            if let Some(lanes) = boundary.constant() {
                check_value(&name, lanes, node.ty())?;
            } else if node.bound().is_empty() && !shape.is_empty() {
                return bad(format!("`{}` has no elements to read", accessor.name));
            }
        }
        for (accessor, rate) in accessors[inputs.len()..].iter().zip(appended) {
            if accessor.kind != AccessorKind::Sink || shape.rank() != 1 || *rate == 0 {
                return bad(format!("`{}` is no queue to append {rate} elements to", accessor.name));
            }
        }
        if appended.iter().sum::<usize>() > MOST_APPENDED {
            return bad(format!("at most {MOST_APPENDED} elements can be appended each time"));
        }
        if function.results().len() + appended.len() > usize::from(u8::MAX) || function.results().len() + appended.len() == 0 {
            return bad("a function with no results or too many".into());
        }
        let mut nodes = vec![like.fill_like(&[Literal::from(false)])?];
        for node in beside {
            nodes.push(node.stretched(shape, length)?);
        }
        for (node, _) in inputs {
            for (axis, extent) in node.bound().amounts().iter().enumerate() {
                nodes.push(match axis {
                    0 if node.length().is_some() => node.first_extent()?.stretched(shape, length)?,
                    _ => Node::counting_in(context, shape.clone(), extent).with_length(length.cloned()),
                });
            }
        }
        nodes.extend(inputs.iter().map(|(node, _)| (*node).clone()));
        let reads = inputs.iter().map(|(_, reads)| reads.clone()).collect();
        let (beside, appended_to, bounded) = (beside.len(), appended.to_vec(), length.is_some());
        let call = Call { function: function.clone(), beside, reads, ranks, appended: appended_to, bounded };
        let mut results = Node::apply(call, &nodes.iter().collect::<Vec<&Node>>())?;
        if let Some(length) = length {
            // Each position appends the same number of elements.
            let queues = results.split_off(function.results().len());
            for (queue, rate) in queues.into_iter().zip(appended) {
                let too_long = || Error::Range {
                    operation: name.clone(),
                    shape: shape.clone(),
                    reason: format!("a queue of {rate} elements for each position may have 2^32 or more"),
                };
                let length = length.times(&(*rate).into())?.ok_or_else(too_long)?;
                results.push(queue.with_length(Some(length)));
            }
        }
        Ok(results)
    }
}

impl Call {
    /// Returns the input number of the first array.
    pub(super) fn first_array(&self) -> usize {
        1 + self.beside + self.ranks.iter().sum::<usize>()
    }

    /// Returns the input number of the first extent of an array.
    fn first_extent(&self, array: usize) -> usize {
        1 + self.beside + self.ranks[..array].iter().sum::<usize>()
    }

    /// Composes the function with its sources, on a domain with `rank` axes. A domain or an array without
    /// axes is treated as a line of one element. One of its arrays may be lines, which have no source among
    /// these.
    pub(super) fn composed(&self, sources: &[Source], rank: usize, lines: Option<(usize, Line<'_>)>) -> Result<Source> {
        let (Some(first), own) = (sources.first(), &self.function) else {
            return Err(Error::Plan { what: own_name(&self.function), reason: "it reads nothing".into() });
        };
        let axes = first.axes();
        let f = Builder::function(own.name());
        let position: Vec<Value> = (0..axes).map(|_| f.parameter("i", first.index())).collect();
        let mut nested: Vec<NestedSource<'_>> = sources.iter().map(|source| NestedSource::new(&f, source)).collect();
        let mut line = None;
        match lines {
            Some((array, Line::Source(source))) => nested.insert(1 + array, NestedSource::new(&f, source)),
            Some((array, Line::Accessor)) => {
                line = Some((array, f.accessor("line", AccessorKind::Input, own.accessors()[array].ty, 1)));
            }
            None => {}
        }
        let mut arrays = nested.iter().skip(1);
        let given = nested[0].at(&f, &position);
        let mut arguments: Vec<Value> =
            position.iter().take(rank).zip(own.parameters()).map(|(index, parameter)| f.convert(*index, parameter.ty)).collect();
        arguments.extend(&given[1..=self.beside]);
        if self.bounded {
            // The marker is true beyond the length.
            f.begin_if(f.not(given[0]));
        }
        let mut bound: Vec<AccessorMemory<'_>> = vec![];
        for (array, reads) in self.reads.iter().enumerate() {
            let from = self.first_extent(array);
            let queue = match reads {
                Reads::Queue(rate) => {
                    let first = f.mul(f.convert(position[0], Type::I64), *rate as i64);
                    Some((first, f.variable_with(f.literal(0i64))))
                }
                Reads::At(_) | Reads::Along(..) | Reads::Window(_) => None,
            };
            let extents = given[from..from + self.ranks[array]].to_vec();
            let ty = own.accessors()[array].ty;
            let memory = match line.filter(|(own, _)| *own == array) {
                Some((_, accessor)) => AccessorSource::Line(accessor),
                None => arrays.next().map_or(AccessorSource::Nowhere, AccessorSource::Nested),
            };
            bound.push(AccessorMemory::Read { memory, position: &position, extents, reads, ty, queue });
        }
        for (accessor, rate) in own.accessors()[self.reads.len()..].iter().zip(&self.appended) {
            let array = f.array(accessor.ty, *rate as u32);
            let zero = f.vector(&vec![f.literal(Literal::zero(accessor.ty.element())); accessor.ty.lanes()]);
            (0..*rate).for_each(|index| f.set_element(array, index as i32, zero));
            bound.push(AccessorMemory::Append { array, rate: *rate, count: f.variable_with(f.literal(0i32)) });
        }
        let mut bindings: Vec<&mut dyn Binding> = bound.iter_mut().map(|bound| bound as &mut dyn Binding).collect();
        let mut results = f.inline(own, &arguments, &mut bindings);
        for bound in &bound {
            if let AccessorMemory::Append { array, rate, .. } = bound {
                results.extend((0..*rate).map(|index| f.element(*array, index as i32)));
            }
        }
        if self.bounded {
            let variables: Vec<Variable> = results.iter().map(|value| f.variable(f.type_of(*value))).collect();
            variables.iter().zip(&results).for_each(|(variable, value)| f.set(*variable, *value));
            f.begin_else();
            for (variable, value) in variables.iter().zip(&results) {
                let ty = f.type_of(*value);
                f.set(*variable, f.vector(&vec![f.literal(Literal::zero(ty.element())); ty.lanes()]));
            }
            f.end_if();
            results = variables.iter().map(|variable| f.get(*variable)).collect();
        }
        Ok(Source::new(f.finish_function(&results)?, axes)?)
    }

    /// Adds its function and its reads to a spelling, under these names.
    pub(super) fn spelled(&self, spelling: Spelling, names: [&'static str; 3]) -> Spelling {
        let boundary = |kind: &str, boundary: &Boundary| match boundary.rule() {
            Rule::Inside => kind.to_owned(),
            Rule::Clamp => format!("{kind}_clamp"),
            Rule::Wrap => format!("{kind}_wrap"),
            Rule::Mirror => format!("{kind}_mirror"),
            Rule::Constant => format!("{kind}_constant"),
        };
        let word = |reads: &Reads| match reads {
            Reads::At(outside) => boundary("at", outside),
            Reads::Along(axis, outside) => boundary(&format!("along{axis}"), outside),
            Reads::Window(outside) => boundary("window", outside),
            Reads::Queue(rate) => format!("queue_{rate}"),
        };
        let constant = |reads: &Reads| match reads {
            Reads::At(outside) | Reads::Along(_, outside) | Reads::Window(outside) => outside.constant().cloned(),
            Reads::Queue(_) => None,
        };
        let fills: Vec<Lanes> = self.reads.iter().filter_map(constant).collect();
        let spelling = spelling.with(names[0], Setting::Function(self.function.clone()));
        let spelling = spelling.with(names[1], Setting::Words(self.reads.iter().map(word).collect()));
        if fills.is_empty() { spelling } else { spelling.with(names[2], Setting::Values(fills)) }
    }

    /// Returns whether elementwise work can be fused to it: it writes no queues, and its shape has axes.
    fn is_fused(&self, application: &Application) -> bool {
        self.appended.is_empty() && application.ranks[0] > 0
    }

    /// Creates the sink that stores the used results, and the queues at the indices of a position.
    fn sink(&self, index: Type, wanted: &[u8]) -> Result<Sink> {
        let f = Builder::function("append");
        let firing = f.parameter("i", index);
        let types = self.function.result_types();
        let results: Vec<Value> = types.iter().map(|ty| f.parameter("x", *ty)).collect();
        let is_wanted = |number: usize| wanted.contains(&(number as u8));
        let stored: Vec<Value> = (0..).zip(&results).filter(|(number, _)| is_wanted(*number)).map(|(_, value)| *value).collect();
        let queues = self.function.accessors()[self.reads.len()..].iter().zip(&self.appended);
        let mut values = results.len();
        for (number, (queue, rate)) in (types.len()..).zip(queues) {
            let appended: Vec<Value> = (0..*rate).map(|_| f.parameter("x", queue.ty)).collect();
            values += rate;
            if is_wanted(number) {
                let out = f.accessor(&queue.name, AccessorKind::Output, queue.ty, 1);
                let first = f.mul(f.convert(firing, Type::I64), *rate as i64);
                (0i64..).zip(appended).for_each(|(place, value)| f.write(out, &[f.add(first, place).into()], value));
            }
        }
        Ok(Sink::new(f.finish_function(&stored)?, 1, values)?)
    }
}

fn own_name(function: &Function) -> String {
    function.name().to_owned()
}

/// Returns whether an array has a line along an axis for each line of positions.
fn has_lines(array: &Node, like: &Node, axis: usize) -> bool {
    let (own, of) = (array.bound(), like.bound());
    let is_known = array.length().is_none() && like.length().is_none();
    let rank = own.rank();
    let is_same = |other: usize| other == axis || own.amount(other).equals(&of.amount(other));
    is_known && axis < rank && rank == of.rank() && (0..rank).all(is_same)
}

/// Source of the elements that an accessor reads.
#[derive(Clone, Copy)]
enum AccessorSource<'a> {
    /// Function that computes them.
    Nested(&'a NestedSource<'a>),
    Line(Accessor),
    /// No source.
    Nowhere,
}

enum AccessorMemory<'a> {
    Read {
        memory: AccessorSource<'a>,
        position: &'a [Value],
        extents: Vec<Value>,
        reads: &'a Reads,
        ty: Type,
        /// First element of a firing, and the number of elements taken.
        queue: Option<(Value, Variable)>,
    },
    Append {
        array: Array,
        rate: usize,
        count: Variable,
    },
}

impl AccessorMemory<'_> {
    /// Returns the element at indices that may be outside.
    fn at(&self, f: &Builder, indices: &[Value]) -> Value {
        let AccessorMemory::Read { memory, position, extents, reads, ty, .. } = self else {
            return f.fail("a queue that is written is read");
        };
        let boundary = match reads {
            Reads::At(boundary) | Reads::Along(_, boundary) | Reads::Window(boundary) => boundary,
            Reads::Queue(_) => &Boundary::Clamp,
        };
        let (mut places, mut inside) = (vec![], f.literal(true));
        // The other indices are those of the position.
        let along = if let Reads::Along(axis, _) = reads { Some(*axis) } else { None };
        for (axis, extent) in extents.iter().enumerate() {
            let index = match along {
                Some(along) if along != axis => {
                    places.push(position[axis]);
                    continue;
                }
                Some(_) => &indices[0],
                None => &indices[axis],
            };
            let (place, holds) = match boundary.rule() {
                Rule::Clamp | Rule::Constant if f.type_of(*index) == Type::I32 => narrow(f, boundary.rule(), *index, *extent),
                rule => rule.place(f, f.convert(*index, Type::I64), *extent),
            };
            places.push(place);
            inside = holds.map_or(inside, |holds| f.and(inside, holds));
        }
        if places.is_empty() {
            places.push(f.literal(0i64));
        }
        let read = || match memory {
            AccessorSource::Nested(nested) => nested.at(f, &places)[0],
            AccessorSource::Line(accessor) => f.read(*accessor, &[places[along.unwrap_or(0)].into()]),
            AccessorSource::Nowhere => f.fail("an array that nothing gives"),
        };
        match boundary.constant() {
            Some(lanes) => f.choose(inside, read, || literal(f, lanes, *ty)),
            None => read(),
        }
    }

    fn next(&self, f: &Builder, offset: Option<Value>) -> Value {
        let AccessorMemory::Read { queue: Some((first, taken)), .. } = self else { return f.fail("no queue is read") };
        let so_far = f.get(*taken);
        if offset.is_none() {
            f.set(*taken, f.add(so_far, 1));
        }
        let next = f.add(*first, so_far);
        let place = offset.map_or(next, |offset| f.add(next, f.convert(offset, Type::I64)));
        self.at(f, &[place])
    }
}

/// Applies a rule in 32 bits, of which a vector holds twice as many. A 32-bit index never exceeds 2³¹ − 1,
/// however long the axis is.
fn narrow(f: &Builder, rule: Rule, index: Value, extent: Value) -> (Value, Option<Value>) {
    let last = f.convert(f.min(f.sub(extent, 1i64), i64::from(i32::MAX)), Type::I32);
    let place = f.convert(f.max(f.min(index, last), 0), Type::I64);
    let inside = (rule == Rule::Constant).then(|| f.and(f.ge(index, 0), f.le(index, last)));
    (place, inside)
}

fn literal(f: &Builder, lanes: &Lanes, ty: Type) -> Value {
    let values: Vec<Value> = lanes.iter().map(|lane| f.literal(*lane)).collect();
    if ty.is_scalar() { values[0] } else { f.vector(&values) }
}

impl Binding for AccessorMemory<'_> {
    fn read(&mut self, f: &Builder, position: &[Value]) -> Value {
        self.at(f, position)
    }

    fn window(&mut self, f: &Builder, offsets: &[Value]) -> Value {
        let AccessorMemory::Read { position, .. } = self else { return f.fail("a queue that is written is read") };
        let wide = |value: &Value| f.convert(*value, Type::I64);
        let indices: Vec<Value> = position.iter().zip(offsets).map(|(index, offset)| f.add(wide(index), wide(offset))).collect();
        self.at(f, &indices)
    }

    fn pop(&mut self, f: &Builder) -> Value {
        self.next(f, None)
    }

    fn peek(&mut self, f: &Builder, offset: Value) -> Value {
        self.next(f, Some(offset))
    }

    fn push(&mut self, f: &Builder, value: Value) {
        let AccessorMemory::Append { array, rate, count } = self else {
            f.fail("a queue that is read is written");
            return;
        };
        let so_far = f.get(*count);
        f.if_then(f.lt(so_far, *rate as i32), || f.set_element(*array, so_far, value));
        f.set(*count, f.add(so_far, 1));
    }
}

/// Position of a call on the host.
struct CallPosition<'a> {
    call: &'a Call,
    arrays: &'a [&'a HostArray],
    position: Vec<i64>,
    taken: Vec<i64>,
    appended: Vec<Vec<Literal>>,
}

impl CallPosition<'_> {
    fn at(&self, accessor: usize, indices: &[i64]) -> Option<Lanes> {
        let (array, reads) = (self.arrays.get(accessor)?, self.call.reads.get(accessor)?);
        let (rule, constant) = match reads {
            Reads::At(boundary) | Reads::Along(_, boundary) | Reads::Window(boundary) => (boundary.rule(), boundary.constant()),
            Reads::Queue(_) => (Rule::Clamp, None),
        };
        let mut places = indices.to_vec();
        if let Reads::Along(axis, _) = reads {
            places = self.position.clone();
            places[*axis] = indices[0];
        }
        let mut place = 0;
        for (index, extent) in places.iter().zip(array.shape.extents()) {
            match rule.index(*index, *extent as i64) {
                Some(index) => place = place * extent + index as usize,
                // If only the device knows the length, the array may be empty; the element is then arbitrary.
                None => return Some(constant.cloned().unwrap_or_else(|| zeros(array.ty))),
            }
        }
        Some(array.at(place).into())
    }

    fn next(&self, accessor: usize, offset: i64) -> Option<Lanes> {
        let Some(Reads::Queue(rate)) = self.call.reads.get(accessor) else { return None };
        self.at(accessor, &[self.position[0] * *rate as i64 + self.taken[accessor] + offset])
    }
}

impl Environment for CallPosition<'_> {
    fn read(&mut self, accessor: usize, position: &[i128]) -> Option<Lanes> {
        self.at(accessor, &position.iter().map(|index| *index as i64).collect::<Vec<i64>>())
    }

    fn window(&mut self, accessor: usize, offsets: &[i128]) -> Option<Lanes> {
        let indices = self.position.iter().zip(offsets).map(|(index, offset)| index.wrapping_add(*offset as i64));
        self.at(accessor, &indices.collect::<Vec<i64>>())
    }

    fn pop(&mut self, accessor: usize) -> Option<Lanes> {
        let next = self.next(accessor, 0);
        self.taken[accessor] += 1;
        next
    }

    fn peek(&mut self, accessor: usize, offset: i128) -> Option<Lanes> {
        self.next(accessor, offset as i64)
    }

    fn push(&mut self, accessor: usize, value: &[Literal]) -> Option<()> {
        self.appended.get_mut(accessor.checked_sub(self.call.reads.len())?)?.extend(value);
        Some(())
    }
}

/// Reads `compute(marker, beside, arrays, function: @f, reads: [at_clamp, window_wrap, queue_2], appended:
/// [1])`. The marker is an array of the shape; the values of its elements are not used. A constant outside,
/// `at_constant`, has its value in `fills`.
pub(super) fn read(call: &crate::expr::parsed_call::ParsedCall<'_>) -> Result<Vec<Node>> {
    let (function, inputs) = (call.function("function")?, call.inputs());
    let reads = read_words(call, &function, ["reads", "fills"])?;
    let Some((marker, inputs)) = inputs.split_first() else { return Err(call.error("expected an array of the shape")) };
    let Some(beside) = inputs.len().checked_sub(reads.len()) else {
        return Err(call.error(format!("{} arrays are read, and there are {}", reads.len(), inputs.len())));
    };
    let (beside, arrays) = inputs.split_at(beside);
    let reads: Vec<(&Node, Reads)> = arrays.iter().copied().zip(reads).collect();
    Node::compute_like(&function, marker, beside, &reads, &call.numbers("appended")?)
}

/// Reads the words under these names that describe the reads of arrays.
pub(super) fn read_words(
    call: &crate::expr::parsed_call::ParsedCall<'_>,
    function: &Function,
    names: [&str; 2],
) -> Result<Vec<Reads>> {
    let (words, accessors) = (call.words(names[0])?, function.accessors());
    if words.len() > accessors.len() {
        return Err(call.error("expected an accessor for each array that is read"));
    }
    let constants = words.iter().zip(accessors).filter(|(word, _)| word.ends_with("_constant"));
    let types: Vec<Type> = constants.map(|(_, accessor)| accessor.ty).collect();
    let mut fills = if types.is_empty() { vec![] } else { call.values(names[1], &types)? }.into_iter();
    let mut reads = vec![];
    for word in words {
        let (kind, rule) = word.split_once('_').unwrap_or((word, ""));
        let along: Option<usize> = kind.strip_prefix("along").and_then(|axis| axis.parse().ok());
        let boundary = match rule {
            "clamp" => Some(Boundary::Clamp),
            "wrap" => Some(Boundary::Wrap),
            "mirror" => Some(Boundary::Mirror),
            "constant" => fills.next().map(Boundary::Constant),
            _ => None,
        };
        reads.push(match (kind, boundary, rule.parse()) {
            (_, Some(boundary), _) if let Some(axis) = along => Reads::Along(axis, boundary),
            ("at", Some(boundary), _) => Reads::At(boundary),
            ("window", Some(boundary), _) => Reads::Window(boundary),
            ("queue", _, Ok(rate)) => Reads::Queue(rate),
            _ => return Err(call.error(format!("`{word}` is not `at_clamp`, `window_wrap`, `queue_2` or the like"))),
        });
    }
    Ok(reads)
}

impl Typing for Call {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let shape = inputs[0].bound();
        let results = self.function.result_types().into_iter().map(|ty| (ty, shape.clone()));
        let queues = self.function.accessors()[self.reads.len()..].iter().zip(&self.appended);
        Ok(results
            .chain(queues.map(|(queue, rate)| (queue.ty, Shape::from_amounts(&[shape.size().times(&(*rate).into())]))))
            .collect())
    }
}

impl Operation for Call {
    fn name(&self) -> String {
        own_name(&self.function)
    }

    fn spelling(&self) -> Option<Spelling> {
        let mut spelling = self.spelled(Spelling::new("compute"), ["function", "reads", "fills"]);
        if !self.appended.is_empty() {
            spelling = spelling.with("appended", Setting::Numbers(self.appended.iter().map(|rate| *rate as i64).collect()));
        }
        let arrays = self.first_array()..self.first_array() + self.reads.len();
        // The marker gives the shape; extents are derived from the arrays.
        Some(spelling.inputs((0..=self.beside).chain(arrays)))
    }

    fn extents(&self, result: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        match usize::from(result) < self.function.result_types().len() {
            true => Extent::all_of(0, rank),
            false => (0..rank).map(|axis| Extent::New(u16::from(result) << 8 | axis as u16)).collect(),
        }
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        (0..=self.beside).collect()
    }

    /// Returns true for the marker: beyond the length of the call, the function is not called. Returns zeros
    /// for arrays, which are read within their extents only.
    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        let marker = std::iter::once(SmallVec::from_elem(Literal::from(true), 1));
        marker.chain(types[1..].iter().map(|ty| zeros(*ty))).map(Some).collect()
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let domain = &inputs[0].shape;
        let types = self.function.result_types();
        let start: usize = types.iter().take(usize::from(result)).map(|ty| ty.lanes()).sum();
        let (strides, mut lanes) = (domain.strides(), vec![]);
        for number in 0..domain.count() {
            let position = strides.iter().zip(domain.extents()).map(|(stride, extent)| (number / stride % extent) as i64);
            let position: Vec<i64> = position.collect();
            let indices = position.iter().zip(self.function.parameters());
            let indices = indices.map(|(index, parameter)| Literal::from_i128(parameter.ty.element(), (*index).into()));
            let beside = inputs[1..=self.beside].iter().flat_map(|input| input.at(number).iter().copied());
            let arguments: Vec<Literal> = indices.chain(beside).collect();
            let arrays = &inputs[self.first_array()..];
            let (taken, appended) = (vec![0; arrays.len()], vec![vec![]; self.appended.len()]);
            let mut host = CallPosition { call: self, arrays, position, taken, appended };
            let results = self.function.evaluate_in(&arguments, &mut host).map_err(Error::from)?;
            match usize::from(result).checked_sub(types.len()) {
                None => lanes.extend(&results[start..start + ty.lanes()]),
                Some(queue) => {
                    let mut own = std::mem::take(&mut host.appended[queue]);
                    own.resize(self.appended[queue] * ty.lanes(), Literal::zero(ty.element()));
                    lanes.extend(own);
                }
            }
        }
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        let arrays = (0..self.reads.len()).map(|array| Feed::new([self.first_array() + array], false));
        std::iter::once(Feed::new(0..self.first_array(), false)).chain(arrays).collect()
    }

    fn pattern(&self, parts: PatternParts) -> Result<OperationPattern> {
        let source = self.composed(&parts.sources, parts.application.ranks[0], None)?;
        let sink =
            if self.is_fused(&parts.application) { parts.sink } else { self.sink(source.index(), &parts.application.wanted)? };
        Ok(OperationPattern::One(Map { domain: parts.domain, source, sink }.into()))
    }

    /// Returns the types of the results if elementwise work can be fused. Otherwise it returns none: queues
    /// are longer than the domain, so the pattern stores all results.
    fn values(&self, application: &Application) -> Vec<Type> {
        if self.is_fused(application) { self.function.result_types() } else { vec![] }
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    fn rereads(&self) -> bool {
        true
    }

    fn counted(&self, inputs: &[&Shape]) -> usize {
        let most = self.appended.iter().copied().max().unwrap_or(0);
        inputs.first().map_or(0, |shape| shape.count().saturating_mul(most))
    }
}
