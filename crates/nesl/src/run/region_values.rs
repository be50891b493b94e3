//! Templates of regions, the device part: inputs, results, and the numbers that the host reads at the end.
//!
//! The machine decides where a region begins and ends; see `machine/region.rs`. A vector is an input
//! with the facts that the host knows about it. Facts that only save work are left out, so vectors with and
//! without them share a template.

use super::Entry;
use super::extent::Extent;
use super::ledger::{Ledger, VectorCharge};
use super::template::TraceConditions;
use super::vector::{Facts, Vector};
use super::{Accelerator, DeviceSegdes, DeviceVector, Pending, Unknown, device_error, on_device};
use crate::eval::{Fault, Run};
use crate::vcode::Type;
use broadloom_graph::{Amount, Context, FittedTemplate, Node, Segments, Shape, StoredForms, Template};
use broadloom_scalar::Literal;
use std::rc::{Rc, Weak};
use std::time::Instant;

/// Vector at the start of a region, as far as a template depends on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VectorPart {
    ty: Type,
    /// True if the elements are in memory, or are one value.
    is_stored: bool,
    /// True if one element represents all; their number is then another input.
    is_repeated: bool,
    nonzero: bool,
    distinct: bool,
    loose: bool,
    /// True if the sum of the elements, or an upper bound of it, is another input.
    has_sum: bool,
    has_bound: bool,
    /// True if the value of all elements is another input.
    has_value: bool,
}

/// Segment descriptor at the start of a region.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SegdesPart {
    /// The offsets, from which the lengths are derived, and the number of elements.
    Offsets { is_stored: bool, has_numbers: HasNumbers, nonzero: bool },
    /// The lengths. Other forms, with the number of elements, if an earlier operation has stored them in
    /// memory.
    Lengths { part: VectorPart, forms: Option<HasNumbers> },
}

/// Forms in memory besides the offsets: segment numbers, and head flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HasNumbers {
    ids: bool,
    heads: bool,
}

/// Inputs of a template.
pub(crate) struct Inputs {
    context: Context,
    pub(crate) nodes: Vec<Node>,
    /// Inputs that are not in memory.
    generated: Vec<usize>,
}

/// Returns the number that an input represents.
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

    /// Returns the next forms of a descriptor as segments, and the number of their elements.
    fn segments(&mut self, has_numbers: HasNumbers) -> Run<(Segments, Amount)> {
        let offsets = self.node()?;
        let ids = if has_numbers.ids { Some(self.node()?) } else { None };
        let heads = if has_numbers.heads { Some(self.node()?) } else { None };
        let total = self.number()?;
        Ok((on_device(Segments::from_stored_forms(&StoredForms { offsets, ids, heads }, total.clone()))?, total))
    }

    /// Returns the next descriptor.
    pub(crate) fn segdes(&mut self, accelerator: &mut Accelerator, part: &SegdesPart) -> Run<Rc<DeviceSegdes>> {
        Ok(Rc::new(match part {
            SegdesPart::Lengths { part, forms } => {
                let segdes = DeviceSegdes::of_lengths(self.vector(part)?);
                if let Some(has_numbers) = forms {
                    segdes.set_segments(self.segments(*has_numbers)?.0);
                }
                segdes
            }
            SegdesPart::Offsets { nonzero, has_numbers, .. } => {
                let (segments, total) = self.segments(*has_numbers)?;
                let mut segdes = DeviceSegdes::of_segments(accelerator, segments, total)?;
                segdes.lengths.facts.nonzero = *nonzero;
                segdes
            }
        }))
    }
}

/// Makes an entry from a vector that is not charged to the run.
pub(crate) fn uncharged(ty: Type, vector: Vector) -> DeviceVector {
    let (kept, learned, value, host, wide) = Default::default();
    DeviceVector { ty, vector, kept, learned, value, each: None, host, wide, _charge: None }
}

impl Inputs {
    pub(crate) fn new(accelerator: &mut Accelerator) -> Run<Inputs> {
        Ok(Inputs { context: accelerator.context()?, nodes: vec![], generated: vec![] })
    }

    /// Adds a number of the host: a line with one more element, which is not in memory. Returns false if the
    /// number is too large.
    pub(crate) fn number(&mut self, number: i64) -> Run<bool> {
        let Some(size) = i32::try_from(number).ok().and_then(|number| usize::try_from(number).ok()) else { return Ok(false) };
        self.nodes.push(on_device(Node::fill(&self.context, Shape::from(size + 1), &[Literal::from(0u32)]))?);
        Ok(true)
    }

    /// Adds an array. Returns whether it is in memory, or is one value.
    fn array(&mut self, node: &Node) -> bool {
        let is_stored = node.buffer().is_some() || node.is_one_value();
        if !is_stored {
            self.generated.push(self.nodes.len());
        }
        self.nodes.push(node.clone());
        is_stored
    }

    /// Adds a vector. Returns `None` if no template can contain it.
    pub(crate) fn vector(&mut self, ty: Type, vector: &Vector) -> Run<Option<VectorPart>> {
        let Extent::Host(count) = &vector.extent else { return Ok(None) };
        let is_repeated = vector.is_uniform() && count.value() != 1;
        let is_stored = self.array(&vector.node);
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
        Ok(Some(VectorPart { ty, is_stored, is_repeated, nonzero, distinct, loose, has_sum, has_bound, has_value }))
    }

    /// Adds a segment descriptor. Returns `None` if no template can contain it.
    pub(crate) fn segdes(&mut self, segdes: &DeviceSegdes) -> Run<Option<SegdesPart>> {
        let (forms, lengths) = (segdes.known_forms()?, segdes.lengths());
        match forms {
            Some((forms, total)) if lengths.generated => {
                let (is_stored, nonzero) = (forms.offsets.buffer().is_some(), lengths.facts.nonzero);
                let has_numbers = self.forms(&forms, &total)?;
                Ok(has_numbers.map(|has_numbers| SegdesPart::Offsets { is_stored, has_numbers, nonzero }))
            }
            forms => {
                let Some(part) = self.vector(Type::Segdes, &lengths)? else { return Ok(None) };
                let Some((forms, total)) = forms else { return Ok(Some(SegdesPart::Lengths { part, forms: None })) };
                let has_numbers = self.forms(&forms, &total)?;
                Ok(has_numbers.map(|has_numbers| SegdesPart::Lengths { part, forms: Some(has_numbers) }))
            }
        }
    }

    /// Adds forms of a descriptor and the number of elements. Returns `None` if that number is too large.
    fn forms(&mut self, forms: &StoredForms, total: &Amount) -> Run<Option<HasNumbers>> {
        let StoredForms { offsets, ids, heads } = forms;
        for form in std::iter::once(offsets).chain(ids).chain(heads) {
            self.array(form);
        }
        Ok(self.number(total.value())?.then_some(HasNumbers { ids: ids.is_some(), heads: heads.is_some() }))
    }

    /// Lists inputs that a template reads and that are not in memory yet.
    fn missing(&self, template: &Template) -> Vec<Node> {
        self.generated.iter().filter(|input| template.needs(**input)).map(|input| self.nodes[*input].clone()).collect()
    }

    /// Returns the number of kernels that compute the inputs of a template, in addition to its own kernels.
    pub(crate) fn launches(&self, template: &Template) -> Run<u64> {
        on_device(self.context.launches(&self.missing(template)))
    }

    /// Computes inputs that a template reads and that are not in memory yet.
    pub(crate) fn store(&self, template: &Template) -> Run<()> {
        let missing = self.missing(template);
        if missing.is_empty() { Ok(()) } else { on_device(self.context.evaluate(&missing)) }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

/// State of a run that is put aside during the trace of a region.
pub(crate) struct SavedState {
    vectors: Vec<Weak<DeviceVector>>,
    segdes: Vec<Weak<DeviceSegdes>>,
    unknown: Vec<Weak<DeviceVector>>,
    made: usize,
    largest: Vec<Amount>,
    word: Option<Node>,
    pending: Vec<Pending>,
}

/// Number that a call of a template returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// An amount that depends on the inputs.
    Amount(usize),
    /// A number that the host reads.
    Read(usize),
}

/// Elements of a vector at the end of a region.
#[derive(Debug)]
enum Source {
    /// A result of the template.
    Result(usize),
    /// Elements that do not depend on inputs. They are computed with the nodes that use them.
    Known(Node),
}

/// Vector at the end of a region.
#[derive(Debug)]
pub(crate) struct VectorResult {
    ty: Type,
    source: Source,
    is_uniform: bool,
    count: Count,
    /// The index of the amount of elements charged to the run, and the bytes of each.
    held: (usize, usize),
    nonzero: bool,
    distinct: bool,
    loose: bool,
    sum: Option<Count>,
    bound: Option<usize>,
    value: Option<usize>,
}

/// Offsets of a segment descriptor at the end of a region, and other forms.
#[derive(Debug)]
pub(crate) struct OffsetsResult {
    offsets: usize,
    ids: Option<usize>,
    heads: Option<usize>,
    segments: Count,
    total: Count,
    pub(crate) nonzero: bool,
}

impl OffsetsResult {
    /// Returns the number of segments.
    pub(crate) fn segments(&self, results: &Results) -> usize {
        results.count(self.segments)
    }

    /// Returns the number of elements.
    pub(crate) fn total(&self, results: &Results) -> usize {
        results.count(self.total)
    }
}

/// End of a region during its trace.
pub(crate) struct Ending {
    /// Numbers that the host reads. The first of them shares a word with the status.
    unknown: Vec<Unknown>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) amounts: Vec<Amount>,
}

impl Ending {
    /// Adds an amount that the host needs and returns its index.
    pub(crate) fn amount(&mut self, amount: &Amount) -> usize {
        match self.amounts.iter().position(|own| own.is_identical(amount)) {
            Some(known) => known,
            None => {
                self.amounts.push(amount.clone());
                self.amounts.len() - 1
            }
        }
    }

    /// Returns a number of elements; `None` if the host does not read it.
    pub(crate) fn count(&mut self, extent: &Extent) -> Option<Count> {
        match extent.learned() {
            Extent::Host(amount) => Some(Count::Amount(self.amount(&amount))),
            Extent::Device(length) => {
                let is_own = |unknown: &Unknown| matches!(unknown, Unknown::Length(own) if own.is_same(&length));
                self.unknown.iter().position(is_own).map(Count::Read)
            }
        }
    }

    /// Returns the index of the only element of a vector among the numbers that the host reads.
    pub(crate) fn value(&self, vector: &Rc<DeviceVector>) -> Option<usize> {
        self.unknown.iter().position(|unknown| matches!(unknown, Unknown::Value(own) if Rc::ptr_eq(own, vector)))
    }

    /// Adds the offsets of a descriptor if the region computes them. Returns `None` otherwise.
    pub(crate) fn offsets(&mut self, segdes: &DeviceSegdes) -> Option<OffsetsResult> {
        let forms = segdes.kept_forms(&self.nodes)?;
        let (segments, total) = (self.count(segdes.count())?, self.count(segdes.known_total()?)?);
        let mut result = |node: Node| {
            self.nodes.push(node);
            self.nodes.len() - 1
        };
        let (offsets, ids, heads) = (result(forms.offsets), forms.ids.map(&mut result), forms.heads.map(&mut result));
        Some(OffsetsResult { offsets, ids, heads, segments, total, nonzero: segdes.lengths.facts.nonzero })
    }

    /// Adds a vector of the end.
    pub(crate) fn vector(&mut self, ty: Type, vector: &Vector, bytes: usize) -> Option<VectorResult> {
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
        let node = if vector.is_uniform() { &vector.node } else { vector.stored() };
        let is_uniform = vector.is_uniform();
        let source = match node.is_symbolic() {
            true => {
                self.nodes.push(node.clone());
                Source::Result(self.nodes.len() - 1)
            }
            false => Source::Known(node.clone()),
        };
        let Facts { nonzero, distinct, loose, .. } = vector.facts;
        Some(VectorResult { ty, source, is_uniform, count, held, nonzero, distinct, loose, sum, bound, value })
    }
}

/// Results of a template that the host reads: conditions and numbers.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The word that traps write, if the host reads it directly.
    pub(crate) word: Option<Node>,
    /// The result with the numbers. Its first number is twice the first number that the host learns, plus one
    /// if a condition does not hold. The other numbers follow.
    numbers: Option<usize>,
    /// True if the host learns the first of these numbers.
    has_first: bool,
}

impl Reading {
    /// Tells whether the host waits.
    pub(crate) fn waits(&self) -> bool {
        self.numbers.is_some() || self.word.is_some()
    }
}

/// Results of a call of a template.
pub(crate) struct Results {
    fitted: FittedTemplate,
    nodes: Vec<Node>,
    numbers: Vec<i64>,
}

impl Results {
    /// Returns an amount that depends on the inputs.
    pub(crate) fn amount(&self, index: usize) -> i64 {
        self.fitted.amounts().get(index).copied().unwrap_or(0)
    }

    /// Returns a number that the host has read.
    pub(crate) fn number(&self, index: usize) -> i64 {
        self.numbers.get(index).copied().unwrap_or(0)
    }

    /// Returns a number that is not negative.
    pub(crate) fn count(&self, count: Count) -> usize {
        let number = match count {
            Count::Amount(index) => self.amount(index),
            Count::Read(index) => self.number(index),
        };
        usize::try_from(number).unwrap_or(0)
    }

    /// Returns the segments of an answer.
    pub(crate) fn segments(&self, answer: &OffsetsResult) -> Run<Segments> {
        let total = answer.total(self);
        let first =
            |result: usize, count: usize| on_device(self.nodes.get(result).ok_or_else(missing)?.first_elements(None, count));
        let forms = StoredForms {
            offsets: first(answer.offsets, answer.segments(self) + 1)?,
            ids: answer.ids.map(|ids| first(ids, total)).transpose()?,
            heads: answer.heads.map(|heads| first(heads, total)).transpose()?,
        };
        on_device(Segments::from_stored_forms(&forms, total))
    }

    /// Returns the vector of an answer.
    pub(crate) fn vector(&self, answer: &VectorResult) -> Run<Vector> {
        let result = match &answer.source {
            Source::Result(result) => self.nodes.get(*result).ok_or_else(missing)?,
            Source::Known(node) => node,
        };
        let count = self.count(answer.count);
        let node = match result.length() {
            _ if answer.is_uniform => result.clone(),
            Some(length) => {
                length.learn(count);
                on_device(result.hosted())?
            }
            None => on_device(result.first_elements(None, count))?,
        };
        let (sum, bound) = (answer.sum.map(|sum| self.count(sum).into()), answer.bound.map(|bound| self.amount(bound).into()));
        let value = answer.value.map(|value| self.amount(value).into());
        let (nonzero, distinct, loose) = (answer.nonzero, answer.distinct, answer.loose);
        let facts = Facts { value, nonzero, distinct, loose, ..Facts::of_sum_or_bound(sum, bound) };
        Ok(Vector::new(node, Extent::host(count)).with_facts(facts))
    }
}

impl VectorResult {
    pub(crate) fn ty(&self) -> Type {
        self.ty
    }

    /// Returns the elements that are charged to the run, and the bytes of each.
    pub(crate) fn held(&self, results: &Results) -> (usize, usize) {
        (results.count(Count::Amount(self.held.0)), self.held.1)
    }
}

impl Accelerator {
    /// Tells whether a region may begin: all conditions are known to hold.
    pub(crate) fn may_begin_region(&self) -> bool {
        let is_clear = self.pending.is_empty() && self.failed.is_empty() && !self.is_trapped && !self.has_failed;
        self.target.templates && self.trusted && !self.tracing && self.context.is_some() && is_clear
    }

    /// Returns the number of times that the start of a region is reached before it is traced.
    pub(crate) fn region_from(&self) -> u32 {
        self.target.region_from
    }

    /// Returns the number of kernels launched so far for plans.
    pub(crate) fn launches(&self) -> u64 {
        self.context.as_ref().map_or(0, |context| context.statistics().kernels)
    }

    /// Returns the number of waits so far.
    pub(crate) fn waits(&self) -> u64 {
        self.waits
    }

    /// Begins the trace of a region. `live` is the number of live bytes.
    pub(crate) fn begin_region(&mut self, live: usize) -> SavedState {
        self.tracing = true;
        self.ledger = Some(Rc::new(Ledger::of_region(live)));
        SavedState {
            vectors: std::mem::take(&mut self.vectors),
            segdes: std::mem::take(&mut self.segdes),
            unknown: std::mem::take(&mut self.unknown),
            made: std::mem::take(&mut self.made),
            largest: self.largest.clone(),
            word: self.word.take(),
            pending: std::mem::take(&mut self.pending),
        }
    }

    /// Ends the trace of a region. Its nodes are invalid outside the trace.
    pub(crate) fn end_region(&mut self, aside: SavedState) {
        let SavedState { vectors, segdes, unknown, made, largest, word, pending } = aside;
        (self.vectors, self.segdes, self.unknown, self.made) = (vectors, segdes, unknown, made);
        (self.largest, self.word, self.pending) = (largest, word, pending);
        (self.tracing, self.is_trapped, self.has_failed) = (false, false, false);
        self.failed.clear();
        self.ledger = None;
    }

    /// Begins the list of results of a traced region. The next instruction may wait for the last entry of the
    /// stack.
    pub(crate) fn ending(&mut self, last: Option<&Entry>) -> Run<Ending> {
        let mut unknown = self.unknown(None)?;
        let is_asked = |unknown: &Unknown| last.is_some_and(|last| unknown.is_value_of(last));
        let first = unknown.iter().position(|unknown| unknown.is_narrow() && is_asked(unknown));
        if let Some(first) = first.or_else(|| unknown.iter().position(Unknown::is_narrow)) {
            unknown.swap(0, first);
        }
        Ok(Ending { unknown, nodes: vec![], amounts: vec![] })
    }

    /// Adds the conditions of a traced region, and the numbers that the host reads, to its results.
    pub(crate) fn reading(&mut self, ending: &mut Ending) -> Run<Reading> {
        let is_read = !ending.unknown.is_empty();
        let TraceConditions { traps, status, word } = self.tested(is_read)?;
        ending.nodes.extend(traps);
        if !is_read && status.is_none() {
            return Ok(Reading { word, numbers: None, has_first: false });
        }
        // The status shares one number with the first number that is read, as in a wait of the machine. A
        // separate status would cost a kernel.
        let (first, others) = match ending.unknown.split_first() {
            Some((first, others)) if first.is_narrow() => {
                let first = self.number_of(first)?;
                (Some(on_device(first.reshape(Shape::from([])))?), others)
            }
            _ => (None, &ending.unknown[..]),
        };
        let status = self.with_status(first.as_ref(), status.as_ref())?;
        let mut numbers = vec![on_device(status.reshape(Shape::from(1)))?];
        for number in others {
            let number = self.number_of(number)?;
            numbers.push(self.as_vector(&number)?);
        }
        ending.nodes.push(on_device(Node::concatenate(0, &numbers.iter().collect::<Vec<&Node>>()))?);
        Ok(Reading { word, numbers: Some(ending.nodes.len() - 1), has_first: first.is_some() })
    }

    /// Reads the numbers of a call of a template. Returns `None` if a condition does not hold.
    pub(crate) fn read_numbers(&mut self, reading: &Reading, nodes: Vec<Node>, fitted: FittedTemplate) -> Run<Option<Results>> {
        let start = Instant::now();
        let bytes = |node: &Node| on_device(node.evaluate())?.read().map_err(|error| device_error(error.into()));
        let mut numbers = vec![];
        if let Some(word) = &reading.word
            && bytes(word)?.iter().any(|byte| *byte != 0)
        {
            return Ok(None);
        }
        if let Some(node) = reading.numbers.and_then(|numbers| nodes.get(numbers)) {
            let bytes = bytes(node)?;
            let mut read = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            let status = read.next().unwrap_or(1);
            if status & 1 != 0 {
                return Ok(None);
            }
            numbers.extend(Some(status >> 1).filter(|_| reading.has_first));
            numbers.extend(read);
        }
        self.waits += u64::from(reading.waits());
        self.waited += start.elapsed();
        Ok(Some(Results { fitted, nodes, numbers }))
    }

    /// Makes a vector of the stack from a result. It is in memory, so it is listed only if the host may learn
    /// more about it.
    pub(crate) fn resulting(&mut self, ty: Type, vector: Vector, held: VectorCharge) -> Rc<DeviceVector> {
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
