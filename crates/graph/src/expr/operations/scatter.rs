//! Scatter: elements sent to indices and combined there.
//!
//! Sums, minima, maxima and truth values have patterns of their own. For products, vectors and user-defined
//! operators, the elements are sorted by index. Segments of equal indices are combined in their order, and
//! each index receives the last value of its segment. Results are deterministic in both cases, also for
//! floats.

use crate::expr::apply::Typing;
use crate::expr::arithmetic::combined;
use crate::expr::check::{index_shape, possible, same_context};
use crate::expr::elementwise::{Elementwise, combining};
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::length::{common, nowhere};
use crate::expr::node::Node;
use crate::expr::op::zeros;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, Variants};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::Spelling;
use crate::expr::view::AxisMap;
use broadloom_device::Machine;
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, Lanes, Literal, Type, Value};
use broadloom_skeleton::{Boundary, Combine, Pattern, Scatter as Kernel, ScatterTables, SortKey};
use smallvec::{SmallVec, smallvec};

/// Scatter of elements of the third input into the first, a line, at the indices in the second. They are
/// combined with the old elements. Without a combination they replace them, and the last one for an index
/// stays. Elements with an index outside are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Scatter {
    combine: Option<Combine>,
}

impl Scatter {
    /// Returns whether the pattern combines values of a type.
    fn has_pattern(&self, ty: Type) -> bool {
        match &self.combine {
            None => true,
            Some(Combine::Product | Combine::By(_)) => false,
            Some(_) => ty.is_scalar(),
        }
    }
}

impl Node {
    /// Scatters elements of another array into this one at the indices in index arrays, one for each axis.
    /// They are combined with the old elements. Without a combination they replace them, and the last one for
    /// an index stays. Elements with an index outside are dropped.
    pub fn scatter(&self, indices: &[&Node], values: &Node, combine: Option<Combine>) -> Result<Node> {
        let scatter = Scatter { combine };
        if self.length().is_some() && !scatter.has_pattern(self.ty()) {
            return self.hosted()?.scatter(indices, values, scatter.combine);
        }
        let operation = || scatter.name();
        let combine = scatter.combine.as_ref();
        if indices.len() != self.bound().rank() || indices.is_empty() {
            return Err(self.refused(&operation(), format!("{} index arrays are given", indices.len())));
        }
        let mut all: SmallVec<[&Node; 4]> = smallvec![self, values];
        all.extend(indices.iter().copied());
        same_context(&operation(), &all)?;
        values.check_type(&operation(), self.ty())?;
        self.check_taken(&operation(), combine.is_none_or(|combine| combine.takes(self.ty())))?;
        let mut sent: SmallVec<[&Node; 4]> = indices.iter().copied().collect();
        sent.extend((values.length().is_some() || values.bound().rank() > 0).then_some(values));
        let Ok(length) = common(&sent) else {
            let hosted = indices.iter().map(|index| index.hosted()).collect::<Result<Vec<Node>>>()?;
            return self.scatter(&hosted.iter().collect::<Vec<_>>(), &values.hosted()?, scatter.combine);
        };
        let shape = index_shape(&operation(), indices)?;
        possible(&operation(), &shape)?;
        // Values are broadcast to the shape of the indices, not the other way round.
        let refused = || Error::Shapes { operation: operation(), left: shape.clone(), right: values.bound().clone() };
        let values = values.stretched(&shape, length).map_err(|_| refused())?;
        if self.bound().is_empty() || shape.is_empty() {
            return Ok(self.clone());
        }
        let indices = indices.iter().map(|index| index.stretched(&shape, length)).collect::<Result<Vec<Node>>>()?;
        let places = self.places(&indices)?.signed_with_length()?;
        let line = self.flattened()?;
        let sent = match combine.filter(|_| !scatter.has_pattern(self.ty())) {
            Some(combine) => line.send_in_order(&places.hosted()?, &values.hosted()?, combine)?,
            None => Node::apply_one(scatter, &[&line, &places, &values])?,
        };
        sent.reshaped(self.bound().clone(), self.length())
    }

    /// Returns the linear index for each tuple of indices in memory order; -1 for indices outside.
    fn places(&self, indices: &[Node]) -> Result<Node> {
        if let [only] = indices {
            return Ok(only.clone());
        }
        let f = Builder::function("place");
        let at: Vec<Value> = indices.iter().map(|index| f.parameter("index", index.ty())).collect();
        let extents: Vec<Value> = indices.iter().map(|_| f.parameter("extent", Type::I64)).collect();
        let (mut place, mut inside) = (f.literal(0i64), f.literal(true));
        for (index, extent) in at.into_iter().zip(extents) {
            let index = f.convert(index, Type::I64);
            // As an unsigned number, a negative index is very large, so one comparison suffices.
            inside = f.and(inside, f.lt(f.bitcast(index, Type::U64), f.bitcast(extent, Type::U64)));
            place = f.add(f.mul(place, extent), index);
        }
        let function = f.finish_function(&[f.select(inside, place, -1i64)])?;
        let extents: Vec<Node> = self.bound().amounts().iter().map(|extent| Node::counting(self.context(), extent)).collect();
        let inputs: Vec<&Node> = indices.iter().chain(&extents).collect();
        Node::elementwise(Elementwise::Call(function, 0), &inputs)
    }

    /// Returns a number as an `i64` in the context of this array.
    pub(crate) fn number(&self, value: usize) -> Result<Node> {
        Node::fill(self.context(), Shape::from([]), &[Literal::from(value as i64)])
    }

    /// Combines the elements of this line with those scattered to them, in the order of the values.
    fn send_in_order(&self, places: &Node, values: &Node, combine: &Combine) -> Result<Node> {
        let (count, sent) = (self.bound().count(), values.bound().count());
        let line = Shape::from(sent);
        // Elements with an index outside come last.
        let f = Builder::function("key");
        let (place, count_in) = (f.parameter("place", places.ty()), f.parameter("count", Type::I64));
        let place = f.bitcast(f.convert(place, Type::I64), Type::U64);
        let element = if count < 1 << 31 { Element::U32 } else { Element::U64 };
        let key = f.convert(f.min(place, f.bitcast(count_in, Type::U64)), element);
        let key = Elementwise::Call(f.finish_function(&[key])?, 0);
        let key = Node::elementwise(key, &[&places.reshape(line.clone())?, &self.number(count)?])?;
        // Each round of the sort handles eight bits.
        let bits = (usize::BITS - count.leading_zeros()).next_multiple_of(8).min(element.bits());
        let sorted = Node::sort(&[(&key, SortKey { descending: false, bits: Some(bits) })], &[&values.reshape(line.clone())?])?;
        let [keys, values] = &sorted[..] else {
            return Err(Error::Plan { what: "a scatter".into(), reason: "a sort without its values".into() });
        };
        let before = AxisMap { offset: -1, ..AxisMap::same(0) };
        let before = keys.affine("scatter", &[before], line.clone(), Some(&Boundary::Clamp))?;
        let other = Node::elementwise(Elementwise::Compare(CompareOp::Ne), &[keys, &before])?;
        let position = Node::position(self.context(), line, 0, Element::I64)?;
        let first = Node::elementwise(Elementwise::Compare(CompareOp::Eq), &[&position, &self.number(0)?])?;
        let starts = Node::elementwise(Elementwise::Binary(BinaryOp::Or), &[&other, &first])?;
        let combined = values.segmented_scan(&starts, combine.clone(), 0)?;
        let nothing = Node::fill(self.context(), self.bound().clone(), &combine.identity(self.ty()))?;
        let sums = nothing.scatter(&[keys], &combined, None)?;
        Node::elementwise(combining(combine), &[self, &sums])
    }
}

/// Reads `scatter(x, places, values)`, with one index array for each axis of `x`; and `combine: sum`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let inputs = call.inputs();
    let [base, places @ .., values] = &inputs[..] else { return Err(call.error("expected an array, places and values")) };
    let combine = if call.has("combine") { Some(call.combine(base.ty())?) } else { None };
    Ok(vec![base.scatter(places, values, combine)?])
}

impl Typing for Scatter {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        Ok(vec![(inputs[0].ty(), inputs[0].bound().clone())])
    }
}

impl Operation for Scatter {
    fn name(&self) -> String {
        self.combine.as_ref().map_or("scatter".into(), |combine| format!("scatter {}", combine.name()))
    }

    fn spelling(&self) -> Option<Spelling> {
        let spelling = Spelling::new("scatter");
        Some(self.combine.iter().fold(spelling, |spelling, combine| spelling.combine(combine)))
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(0, rank)
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        smallvec![1, 2]
    }

    fn absent(&self, types: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(zeros(types[0])), nowhere(types[1]), Some(zeros(types[2]))]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], _: Type, shape: &Shape) -> Result<HostArray> {
        let mut result = inputs[0].clone();
        for (sent, place) in inputs[1].lanes.iter().enumerate() {
            let place = place.as_i128().and_then(|place| usize::try_from(place).ok());
            let Some(place) = place.filter(|place| *place < shape.count()) else { continue };
            match &self.combine {
                Some(combine) => {
                    let sum = combined(combine, result.at(place), inputs[2].at(sent))?;
                    result.set(place, &sum);
                }
                None => result.set(place, inputs[2].at(sent)),
            }
        }
        Ok(result)
    }

    /// Returns two feeds: the indices with the values, then the old elements.
    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([1, 2], true), Feed::new([0], true)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let combine = self.combine.clone();
        let (domain, source, base) = (parts.domain, parts.source()?, parts.source()?);
        let kernel = Kernel { domain, source, base, combine, sink: parts.sink, tables: ScatterTables::Common };
        Ok(OperationPattern::Several(Box::new(Tables(kernel))))
    }

    /// Returns the number of scattered values, and of elements of the result.
    fn sizes(&self, domain: &[u64], _: &[&Shape], result: &Shape) -> Vec<u64> {
        domain.iter().copied().chain([result.count() as u64]).collect()
    }
}

/// Scatter whose blocks combine in tables of their own, if the sizes allow it.
#[derive(Debug)]
struct Tables(Kernel);

impl Variants for Tables {
    fn best(&self, machine: &Machine, sizes: &[u64], _: bool) -> u64 {
        match self.0.tables(machine, sizes) {
            ScatterTables::Common => 0,
            ScatterTables::Own => 1,
            ScatterTables::Shared(room) => u64::from(room) << 1,
        }
    }

    fn pattern(&self, variant: u64) -> Pattern {
        let tables = match variant {
            0 => ScatterTables::Common,
            1 => ScatterTables::Own,
            room => ScatterTables::Shared((room >> 1) as u32),
        };
        Kernel { tables, ..self.0.clone() }.into()
    }
}
