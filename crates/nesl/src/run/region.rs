//! Templates of regions, as far as the device is concerned: inputs, results, and the numbers that the host reads at the end.
//!
//! The machine decides where a region begins and ends; see `vcode/machine/region.rs`. A vector is an input with the facts that
//! the host knows about it. Facts that only save work are left out, so that vectors with and without them share a template.

use super::facts::Facts;
use super::ledger::{Held, Ledger};
use super::template::Tested;
use super::vector::{Extent, Vector};
use super::{Accelerator, DeviceSegdes, DeviceVector, Pending, Unknown, device_error, on_device};
use crate::eval::{Fault, Run};
use crate::vcode::Type;
use broadloom_graph::{Amount, Context, Node, Segments, Shape, Total};
use broadloom_scalar::{Element, Literal};
use std::rc::{Rc, Weak};
use std::time::Instant;

/// A vector at the start of a region, as far as a template depends on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VectorPart {
    ty: Type,
    /// One element stands for all, and their number is another input.
    is_repeated: bool,
    nonzero: bool,
    distinct: bool,
    loose: bool,
    /// The sum of the elements is another input, or an upper bound of it.
    has_sum: bool,
    has_bound: bool,
    /// The value of all elements is another input.
    has_value: bool,
}

/// A segment descriptor at the start of a region.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SegdesPart {
    /// The offsets, which an earlier operation has needed, and the number of elements.
    Offsets {
        nonzero: bool,
    },
    Lengths(VectorPart),
}

/// Inputs of a template.
pub(crate) struct Inputs {
    context: Context,
    pub(crate) nodes: Vec<Node>,
    /// Inputs that are not in memory.
    generated: Vec<Node>,
}

/// Returns the number that an input stands for.
fn number_of(symbol: &Node) -> Amount {
    symbol.bound().amount(0).minus(&1.into())
}

fn missing() -> Box<Fault> {
    Fault::new(crate::codes::RUN_TIME, "internal error: a region has too few inputs; please report it")
}

/// Symbols of a template, in the order of its inputs.
pub(crate) struct Symbols<'a>(pub(crate) std::slice::Iter<'a, Node>);

impl Symbols<'_> {
    fn node(&mut self) -> Run<Node> {
        self.0.next().cloned().ok_or_else(missing)
    }

    /// Returns the next number of the host.
    pub(crate) fn number(&mut self) -> Run<Amount> {
        self.0.next().map(number_of).ok_or_else(missing)
    }

    /// Returns the next vector.
    pub(crate) fn vector(&mut self, part: &VectorPart) -> Run<Vector> {
        let node = self.node()?;
        let extent = if part.is_repeated { self.number()? } else { node.bound().size() };
        let sum = if part.has_sum { Some(self.number()?) } else { None };
        let bound = if part.has_bound { Some(self.number()?) } else { None };
        let value = if part.has_value { Some(self.number()?) } else { None };
        let (nonzero, distinct, loose) = (part.nonzero, part.distinct, part.loose);
        let facts = Facts { value, nonzero, distinct, loose, ..Facts::of_sum_or_bound(sum, bound) };
        Ok(Vector::new(node, Extent::Host(extent)).with_facts(facts))
    }

    /// Returns the next descriptor.
    pub(crate) fn segdes(&mut self, accelerator: &mut Accelerator, part: &SegdesPart) -> Run<Rc<DeviceSegdes>> {
        Ok(Rc::new(match part {
            SegdesPart::Lengths(part) => DeviceSegdes::of_lengths(self.vector(part)?),
            SegdesPart::Offsets { nonzero } => {
                let (offsets, total) = (self.node()?, self.number()?);
                let segments = on_device(Segments::from_offsets(&offsets, Total::Amount(total.clone())))?;
                let mut segdes = DeviceSegdes::of_segments(accelerator, segments, total)?;
                segdes.lengths.facts.nonzero = *nonzero;
                segdes
            }
        }))
    }
}

/// Makes an entry of a vector that is not charged to the run.
pub(crate) fn uncharged(ty: Type, vector: Vector) -> DeviceVector {
    let (kept, learned, value, host) = Default::default();
    DeviceVector { ty, vector, kept, learned, value, each: None, host, _charge: None }
}

impl Inputs {
    pub(crate) fn new(accelerator: &mut Accelerator) -> Run<Inputs> {
        Ok(Inputs { context: accelerator.context()?, nodes: vec![], generated: vec![] })
    }

    /// Adds a number of the host: a line of one more element, which is in no memory. Returns false for one that is too large.
    pub(crate) fn number(&mut self, number: i64) -> Run<bool> {
        let Some(size) = i32::try_from(number).ok().and_then(|number| usize::try_from(number).ok()) else { return Ok(false) };
        self.nodes.push(on_device(Node::fill(&self.context, Shape::from(size + 1), &[Literal::from(0u32)]))?);
        Ok(true)
    }

    /// Adds a vector. Returns nothing for one that no template can have.
    pub(crate) fn vector(&mut self, ty: Type, vector: &Vector) -> Run<Option<VectorPart>> {
        let Extent::Host(count) = &vector.extent else { return Ok(None) };
        let is_repeated = vector.is_uniform() && count.value() != 1;
        if vector.node.buffer().is_none() && !vector.node.is_one_value() {
            self.generated.push(vector.node.clone());
        }
        self.nodes.push(vector.node.clone());
        if is_repeated && !self.number(count.value())? {
            return Ok(None);
        }
        let sum = match ty {
            Type::Int | Type::Segdes => vector.sum().and_then(|sum| sum.number()),
            Type::Float | Type::Bool | Type::Char => None,
        };
        let has_sum = match &sum {
            Some(sum) => self.number(sum.value())?,
            None => false,
        };
        let has_bound = match vector.sum_bound().filter(|_| !has_sum) {
            Some(bound) => self.number(bound.value())?,
            None => false,
        };
        let has_value = match &vector.facts.value {
            Some(value) => self.number(value.value())?,
            None => false,
        };
        let Facts { nonzero, distinct, loose, .. } = vector.facts;
        Ok(Some(VectorPart { ty, is_repeated, nonzero, distinct, loose, has_sum, has_bound, has_value }))
    }

    /// Adds a segment descriptor. Returns nothing for one that no template can have.
    pub(crate) fn segdes(&mut self, segdes: &DeviceSegdes) -> Run<Option<SegdesPart>> {
        let Some((offsets, total)) = segdes.known_offsets()? else {
            return Ok(self.vector(Type::Segdes, &segdes.lengths())?.map(SegdesPart::Lengths));
        };
        if offsets.buffer().is_none() && !offsets.is_one_value() {
            self.generated.push(offsets.clone());
        }
        self.nodes.push(offsets);
        let nonzero = segdes.lengths.facts.nonzero;
        Ok(self.number(total)?.then_some(SegdesPart::Offsets { nonzero }))
    }

    /// Computes inputs that are in no memory yet.
    pub(crate) fn store(&self) -> Run<()> {
        if self.generated.is_empty() { Ok(()) } else { on_device(self.context.evaluate(&self.generated)) }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

/// The work of a run while a region is traced.
pub(crate) struct Aside {
    vectors: Vec<Weak<DeviceVector>>,
    segdes: Vec<Weak<DeviceSegdes>>,
    unknown: Vec<Weak<DeviceVector>>,
    made: usize,
    largest: Vec<Amount>,
    word: Option<Node>,
    pending: Vec<Pending>,
}

/// A number that a call of a template gives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// An amount that follows from the inputs.
    Amount(usize),
    /// A number that the host reads.
    Read(usize),
}

/// A vector at the end of a region.
#[derive(Debug)]
pub(crate) struct VectorAnswer {
    ty: Type,
    result: usize,
    is_uniform: bool,
    count: Count,
    /// The amount of elements that are charged to the run, and the bytes of each.
    held: (usize, usize),
    nonzero: bool,
    distinct: bool,
    loose: bool,
    sum: Option<Count>,
    bound: Option<usize>,
    value: Option<usize>,
}

/// The end of a region while it is traced.
pub(crate) struct Ending {
    unknown: Vec<Unknown>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) amounts: Vec<Amount>,
}

impl Ending {
    /// Adds an amount that the host needs.
    pub(crate) fn amount(&mut self, amount: &Amount) -> usize {
        match self.amounts.iter().position(|own| own.is_identical(amount)) {
            Some(known) => known,
            None => {
                self.amounts.push(amount.clone());
                self.amounts.len() - 1
            }
        }
    }

    /// Returns a number of elements; nothing where the host does not read it.
    pub(crate) fn count(&mut self, extent: &Extent) -> Option<Count> {
        match extent.learned() {
            Extent::Host(amount) => Some(Count::Amount(self.amount(&amount))),
            Extent::Device(length) => {
                let is_own = |unknown: &Unknown| matches!(unknown, Unknown::Length(own) if own.is_same(&length));
                self.unknown.iter().position(is_own).map(Count::Read)
            }
        }
    }

    /// Returns which of the numbers that the host reads is the only element of a vector.
    pub(crate) fn value(&self, vector: &Rc<DeviceVector>) -> Option<usize> {
        self.unknown.iter().position(|unknown| matches!(unknown, Unknown::Value(own) if Rc::ptr_eq(own, vector)))
    }

    /// Adds a vector of the end.
    pub(crate) fn vector(&mut self, ty: Type, vector: &Vector, bytes: usize) -> Option<VectorAnswer> {
        let count = self.count(&vector.extent)?;
        let held = (self.amount(vector.extent.bound()), bytes);
        let has_sum = |unknown: &Unknown| matches!(unknown, Unknown::Sum(sum, _) if Rc::ptr_eq(sum, &vector.facts.sum));
        let sum = match ty {
            Type::Int | Type::Segdes => match vector.sum() {
                Some(sum) => self.count(&sum),
                None => self.unknown.iter().position(has_sum).map(Count::Read),
            },
            Type::Float | Type::Bool | Type::Char => None,
        };
        let bound = vector.sum_bound().map(|bound| self.amount(&bound)).filter(|_| sum.is_none());
        let value = vector.facts.value.as_ref().map(|value| self.amount(value));
        self.nodes.push(if vector.is_uniform() { &vector.node } else { vector.stored() }.clone());
        let (result, is_uniform) = (self.nodes.len() - 1, vector.is_uniform());
        let Facts { nonzero, distinct, loose, .. } = vector.facts;
        Some(VectorAnswer { ty, result, is_uniform, count, held, nonzero, distinct, loose, sum, bound, value })
    }
}

/// The last results of a template: conditions and numbers.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The word that traps write, where the host reads it itself.
    pub(crate) word: Option<Node>,
    /// The last result has numbers: 1 where a condition does not hold, then those that the host learns.
    has_numbers: bool,
}

/// Results of a call of a template.
pub(crate) struct Results {
    pub(crate) nodes: Vec<Node>,
    pub(crate) amounts: Vec<i64>,
    pub(crate) numbers: Vec<i64>,
}

impl Results {
    /// Returns a number that is not negative.
    pub(crate) fn count(&self, count: Count) -> usize {
        let number = match count {
            Count::Amount(index) => self.amounts.get(index),
            Count::Read(index) => self.numbers.get(index),
        };
        number.and_then(|number| usize::try_from(*number).ok()).unwrap_or(0)
    }

    /// Returns the vector of an answer.
    pub(crate) fn vector(&self, answer: &VectorAnswer) -> Run<Vector> {
        let Some(result) = self.nodes.get(answer.result) else { return Err(missing()) };
        let count = self.count(answer.count);
        let node = match result.length() {
            _ if answer.is_uniform => result.clone(),
            Some(length) => {
                length.learn(count);
                on_device(result.hosted())?
            }
            None => on_device(result.first_elements(None, count))?,
        };
        let (sum, bound) = (answer.sum.map(|sum| self.count(sum).into()), answer.bound.map(|bound| self.amounts[bound].into()));
        let value = answer.value.map(|value| self.amounts[value].into());
        let (nonzero, distinct, loose) = (answer.nonzero, answer.distinct, answer.loose);
        let facts = Facts { value, nonzero, distinct, loose, ..Facts::of_sum_or_bound(sum, bound) };
        Ok(Vector::new(node, Extent::host(count)).with_facts(facts))
    }
}

impl VectorAnswer {
    pub(crate) fn ty(&self) -> Type {
        self.ty
    }

    /// Returns the elements that are charged to the run, and the bytes of each.
    pub(crate) fn held(&self, results: &Results) -> (usize, usize) {
        (results.count(Count::Amount(self.held.0)), self.held.1)
    }
}

impl Accelerator {
    /// Tells whether a region may begin: the host knows that all conditions hold.
    pub(crate) fn may_begin_region(&self) -> bool {
        let is_clear = self.pending.is_empty() && self.failed.is_empty() && !self.is_trapped && !self.has_failed;
        self.target.templates && self.trusted && !self.tracing && self.context.is_some() && is_clear
    }

    /// Returns how often the start of a region comes before it is traced.
    pub(crate) fn region_from(&self) -> u32 {
        self.target.region_from
    }

    /// Returns the number of kernels that were launched so far for plans.
    pub(crate) fn launches(&self) -> u64 {
        self.context.as_ref().map_or(0, |context| context.statistics().kernels)
    }

    /// Returns the number of waits so far.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }

    /// Begins to trace a region. So many bytes are alive.
    pub(crate) fn begin_region(&mut self, live: usize) -> Aside {
        self.tracing = true;
        self.ledger = Some(Rc::new(Ledger::of_region(live)));
        Aside {
            vectors: std::mem::take(&mut self.vectors),
            segdes: std::mem::take(&mut self.segdes),
            unknown: std::mem::take(&mut self.unknown),
            made: std::mem::take(&mut self.made),
            largest: self.largest.clone(),
            word: self.word.take(),
            pending: std::mem::take(&mut self.pending),
        }
    }

    /// Ends the trace of a region. Its nodes mean nothing outside of it.
    pub(crate) fn end_region(&mut self, aside: Aside) {
        let Aside { vectors, segdes, unknown, made, largest, word, pending } = aside;
        (self.vectors, self.segdes, self.unknown, self.made) = (vectors, segdes, unknown, made);
        (self.largest, self.word, self.pending) = (largest, word, pending);
        (self.tracing, self.is_trapped, self.has_failed) = (false, false, false);
        self.failed.clear();
        self.ledger = None;
    }

    /// Begins to list the results of a region that is traced.
    pub(crate) fn ending(&mut self) -> Run<Ending> {
        Ok(Ending { unknown: self.unknown(None)?, nodes: vec![], amounts: vec![] })
    }

    /// Adds the conditions of a region that is traced to its results, and the numbers that the host reads.
    pub(crate) fn reading(&mut self, ending: &mut Ending) -> Run<Reading> {
        let is_read = !ending.unknown.is_empty();
        let Tested { traps, status, word } = self.tested(is_read)?;
        ending.nodes.extend(traps);
        if !is_read && status.is_none() {
            return Ok(Reading { word, has_numbers: false });
        }
        let mut numbers = vec![self.as_number(status.as_ref())?];
        for number in &ending.unknown {
            let number = match number {
                Unknown::Length(length) => self.convert(length.count(), Element::I64)?,
                Unknown::Sum(_, sum) => sum.clone(),
                Unknown::Value(vector) => self.convert(&vector.vector.node, Element::I64)?,
            };
            numbers.push(self.as_vector(&number)?);
        }
        ending.nodes.push(on_device(Node::concatenate(0, &numbers.iter().collect::<Vec<&Node>>()))?);
        Ok(Reading { word, has_numbers: true })
    }

    /// Reads the numbers of a call of a template. Returns nothing where a condition does not hold.
    pub(crate) fn read_numbers(&mut self, reading: &Reading, nodes: Vec<Node>, amounts: Vec<i64>) -> Run<Option<Results>> {
        let start = Instant::now();
        let bytes = |node: &Node| on_device(node.evaluate())?.read().map_err(|error| device_error(error.into()));
        let mut numbers = vec![];
        if let Some(word) = &reading.word
            && bytes(word)?.iter().any(|byte| *byte != 0)
        {
            return Ok(None);
        }
        if let (true, Some(node)) = (reading.has_numbers, nodes.last()) {
            let bytes = bytes(node)?;
            let mut read = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            if read.next() != Some(0) {
                return Ok(None);
            }
            numbers.extend(read);
        }
        self.waits += u64::from(reading.has_numbers || reading.word.is_some());
        self.waited += start.elapsed();
        Ok(Some(Results { nodes, amounts, numbers }))
    }

    /// Makes a vector of the stack of a result. It is in memory, so it is listed only where the host may learn more of it.
    pub(crate) fn resulting(&mut self, ty: Type, vector: Vector, held: Held) -> Rc<DeviceVector> {
        if let Extent::Host(count) = &vector.extent {
            self.note_largest(count);
        }
        let vector = Rc::new(DeviceVector { _charge: Some(held), ..uncharged(ty, vector) });
        let is_loose = vector.vector.facts.loose && vector.vector.facts.sum.get().is_none();
        if is_loose || vector.is_number() {
            self.unknown.retain(|known| known.strong_count() > 0);
            self.unknown.push(Rc::downgrade(&vector));
        }
        vector
    }
}
