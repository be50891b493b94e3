//! Relay: a call that reads lines computed by another call. No kernel stores the lines in memory.
//!
//! The call that computes lines is an ordinary node until it is read: [`Node::relay`] looks into it. Any
//! other user computes it again.

use super::call::{Call, Line, Reads, read_words};
use crate::expr::apply::Typing;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::{Inputs, Node, State};
use crate::expr::op::Op;
use crate::expr::operation::{Application, Extent, Feed, Operation, OperationPattern, PatternParts, SharedKernel, Variants};
use crate::expr::shape::Shape;
use crate::expr::spelling::{Setting, Spelling};
use broadloom_device::Machine;
use broadloom_scalar::{Builder, Function, Type, Value};
use broadloom_skeleton::cost::{Costs, LANES};
use broadloom_skeleton::kit::NestedSource;
use broadloom_skeleton::{Generator, Map, Pattern, Program, Source};
use smallvec::SmallVec;

/// Call that reads lines, and the call that computes them. The inputs are those of the first without the
/// lines, then those of the second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Relay {
    call: Call,
    /// The number of the array that holds the lines.
    array: usize,
    line: Call,
    /// The number of the result that is the line's value.
    result: u8,
}

/// Returns the call behind a node that is not computed yet, the number of the node's result, and the inputs.
fn pending(node: &Node) -> Option<(Call, u8, Inputs)> {
    let state = node.lock();
    let State::Pending(expression) = &*state else { return None };
    let Op::Pattern(applied) = &expression.op else { return None };
    let call = applied.operation().as_any().downcast_ref::<Call>()?;
    let is_plain = call.appended.is_empty() && !call.bounded && node.ty().is_scalar();
    is_plain.then(|| (call.clone(), applied.result(), expression.inputs.clone()))
}

impl Node {
    /// Computes a function like [`Node::compute`]. If an array read [along](Reads::Along) the last axis is a
    /// call that is not computed yet, its lines are kept in the cache of a core while they are read, and not
    /// in memory. `None` if no array is such a call.
    pub fn relay(function: &Function, shape: &Shape, beside: &[&Node], inputs: &[(&Node, Reads)]) -> Result<Option<Vec<Node>>> {
        let last = shape.rank().saturating_sub(1);
        let is_line =
            |(node, reads): &(&Node, Reads)| matches!(reads, Reads::Along(axis, _) if *axis == last) && pending(node).is_some();
        let Some(array) = inputs.iter().position(is_line) else { return Ok(None) };
        let results = Node::compute(function, shape, beside, inputs, &[])?;
        let line = pending(inputs[array].0).zip(results.first().and_then(pending));
        let Some(((line, result, line_inputs), (call, _, mut all))) = line.filter(|_| shape.rank() > 1) else {
            return Ok(None);
        };
        all.remove(call.first_array() + array);
        all.extend(line_inputs);
        Node::apply(Relay { call, array, line, result }, &all.iter().collect::<Vec<&Node>>()).map(Some)
    }
}

/// Reads `relay(marker, beside, arrays, marker, beside, arrays, function: @f, reads: [along1_clamp], line:
/// @g, line_reads: [at_clamp], result: 0)`: the first inputs are those of the function without its lines, the
/// others those of the function that computes them.
pub(super) fn read(call: &crate::expr::parsed_call::ParsedCall<'_>) -> Result<Vec<Node>> {
    let (function, line) = (call.function("function")?, call.function("line")?);
    let reads = read_words(call, &function, ["reads", "fills"])?;
    let line_reads = read_words(call, &line, ["line_reads", "line_fills"])?;
    let inputs = call.inputs();
    let Some((marker, rest)) = inputs.split_first() else { return Err(call.error("expected an array of the shape")) };
    let is_line = |reads: &Reads| matches!(reads, Reads::Along(axis, _) if *axis + 1 == marker.bound().rank());
    let Some(array) = reads.iter().position(is_line) else { return Err(call.error("no array is read along lines")) };
    let beside_of = |function: &Function| function.parameters().len().checked_sub(marker.bound().rank());
    let (Some(beside), Some(line_beside)) = (beside_of(&function), beside_of(&line)) else {
        return Err(call.error("the functions do not take a position"));
    };
    if rest.len() != beside + reads.len() + line_beside + line_reads.len() {
        return Err(call.error(format!("{} arrays are given, which the functions do not take", inputs.len())));
    }
    let (beside, rest) = rest.split_at(beside);
    let (arrays, rest) = rest.split_at(reads.len() - 1);
    let (line_beside, line_arrays) = rest[1..].split_at(line_beside);
    let line_arrays: Vec<(&Node, Reads)> = line_arrays.iter().copied().zip(line_reads).collect();
    let lines = Node::compute_like(&line, rest[0], line_beside, &line_arrays, &[])?;
    let Some(lines) = lines.get(call.number("result")?) else { return Err(call.error("a result that no line has")) };
    let mut arrays = arrays.to_vec();
    arrays.insert(array, lines);
    let arrays: Vec<(&Node, Reads)> = arrays.into_iter().zip(reads).collect();
    Node::relay(&function, marker.bound(), beside, &arrays)?.ok_or_else(|| call.error("no array is lines"))
}

impl Relay {
    /// Returns the number of the first input of the line.
    fn first_of_line(&self) -> usize {
        self.call.first_array() + self.call.reads.len() - 1
    }
}

/// Map that is also called with the length of lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LineMap(Map);

impl Generator for LineMap {
    fn program(&self, machine: &Machine) -> broadloom_skeleton::Result<Program> {
        let program = self.0.program(machine)?;
        Ok(Program { sizes: program.sizes + 1, ..program })
    }
}

/// Returns the function with one of its results.
fn with_result(source: Source, result: usize) -> Result<Source> {
    if source.results().len() == 1 {
        return Ok(source);
    }
    let f = Builder::function(source.function().name());
    let position: Vec<Value> = (0..source.axes()).map(|_| f.parameter("i", source.index())).collect();
    let values = NestedSource::new(&f, &source).at(&f, &position);
    Ok(Source::new(f.finish_function(&values[result..=result])?, source.axes())?)
}

/// Variants: lines kept in the cache, or, for long and short lines, values computed at each read.
#[derive(Debug)]
struct RelayVariants {
    /// Size of a line's value in bytes.
    bytes: u64,
    lines: Option<broadloom_skeleton::Relay>,
    computed: LineMap,
}

impl Variants for RelayVariants {
    fn best(&self, machine: &Machine, sizes: &[u64], _: bool) -> u64 {
        let is_long = |size: &u64| *size >= LANES.into();
        let fits = sizes.iter().rev().take(2).all(is_long)
            && sizes.last().is_some_and(|length| Costs::of(machine).relays(length.saturating_mul(self.bytes)));
        u64::from(!fits || self.lines.is_none())
    }

    fn pattern(&self, variant: u64) -> Pattern {
        match &self.lines {
            Some(lines) if variant == 0 => lines.clone().into(),
            _ => self.computed.clone().into(),
        }
    }
}

impl Typing for Relay {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let shape = inputs[0].bound();
        Ok(self.call.function.result_types().into_iter().map(|ty| (ty, shape.clone())).collect())
    }
}

impl Operation for Relay {
    fn name(&self) -> String {
        format!("{} of lines", self.call.name())
    }

    fn spelling(&self) -> Option<Spelling> {
        let spelling = self.call.spelled(Spelling::new("relay"), ["function", "reads", "fills"]);
        let spelling = self.line.spelled(spelling, ["line", "line_reads", "line_fills"]);
        let spelling = spelling.with("result", Setting::Number(self.result.into()));
        let (first, from) = (self.call.first_array(), self.first_of_line());
        let arrays = from + self.line.first_array()..from + self.line.first_array() + self.line.reads.len();
        let own = (0..=self.call.beside).chain(first..from);
        Some(spelling.inputs(own.chain(from..=from + self.line.beside).chain(arrays)))
    }

    fn extents(&self, _: u8, _: &[usize], rank: usize) -> SmallVec<[Extent; 4]> {
        Extent::all_of(0, rank)
    }

    fn alike(&self, _: usize) -> SmallVec<[usize; 4]> {
        (0..=self.call.beside).collect()
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let (own, line) = inputs.split_at(self.first_of_line());
        let types = self.line.function.result_types();
        let Some(line_ty) = types.get(usize::from(self.result)) else {
            return Err(Error::Plan { what: self.name(), reason: "a result that no line has".into() });
        };
        let lines = self.line.naive(self.result, line, *line_ty, &line[0].shape)?;
        let mut own = own.to_vec();
        own.insert(self.call.first_array() + self.array, &lines);
        self.call.naive(result, &own, ty, shape)
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        let of = |from: usize, first: usize, arrays: usize| {
            let arrays = (0..arrays).map(move |array| Feed::new([from + first + array], false));
            std::iter::once(Feed::new(from..from + first, false)).chain(arrays)
        };
        let own = of(0, self.call.first_array(), self.call.reads.len() - 1);
        own.chain(of(self.first_of_line(), self.line.first_array(), self.line.reads.len())).collect()
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let rank = parts.application.ranks[0];
        let of_line = parts.sources.split_off(self.call.reads.len().min(parts.sources.len()));
        let line = with_result(self.line.composed(&of_line, rank, None)?, self.result.into())?;
        let computed = self.call.composed(&parts.sources, rank, Some((self.array, Line::Source(&line))))?;
        let source = self.call.composed(&parts.sources, rank, Some((self.array, Line::Accessor)))?;
        let mut along = vec![false; source.inputs().len()];
        along.iter_mut().rev().take(1).for_each(|last| *last = true);
        let bytes = line.results().iter().map(|ty| u64::from(ty.bytes())).sum();
        let is_wide = |source: &Source| source.index().element().bits() == 64;
        let (domain, sink) = (parts.domain, parts.sink);
        let computed = LineMap(Map { domain, source: computed, sink: sink.clone() });
        let has_lines = !is_wide(&source) && !is_wide(&line) && domain.has_rows();
        let lines = has_lines.then(|| broadloom_skeleton::Relay { domain, source, along, line, sink });
        Ok(OperationPattern::Several(Box::new(RelayVariants { bytes, lines, computed })))
    }

    fn values(&self, _: &Application) -> Vec<Type> {
        self.call.function.result_types()
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }

    fn rereads(&self) -> bool {
        true
    }

    fn sizes(&self, domain: &[u64], inputs: &[&Shape], _: &Shape) -> Vec<u64> {
        let length = inputs.get(self.first_of_line()).and_then(|shape| shape.extents().last()).copied().unwrap_or(0);
        domain.iter().copied().chain([length as u64]).collect()
    }
}
