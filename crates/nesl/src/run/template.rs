//! Templates of calls: a function without branches on data is traced once and then launched.
//!
//! The second call with columns of the same types is traced: the machine executes its instructions on
//! symbols, and [`Context::template`] plans the resulting nodes. A later call binds the buffers of its
//! columns and launches, in the thread of the caller. No instruction is executed.
//!
//! - Sizes of columns are terms of the template. Numbers of elements, ints computed from them, and the memory
//!   of the run depend on them ([`Amount`](broadloom_graph::Amount)). A decision of the machine or the
//!   planner that depends on such a number is a condition of the template.
//! - A call whose sizes violate a condition is executed by the machine. It is also traced if there are few
//!   templates for its types, or if the same sizes occur again.
//! - A function that waits for the device while numbers are kept symbolic is traced for one size: the host
//!   computes with numbers.
//! - A call that waits for the device before its end has no template, nor has one with an effect.
//! - Conditions on elements are tested in the kernels, as in every run. The host reads one word when the
//!   results are requested. If a condition does not hold, the machine repeats the call and finds the error
//!   and its place.
//! - Lengths of results that only the device knows are read together with the conditions.
//! - A non-negative int of the host counts as a size. All other columns of the host are constants of the
//!   template, so it serves calls with equal ones.

use super::Column;
use super::{Accelerator, on_device};
use crate::eval::{Fault, Run};
use broadloom_graph::{Amount, Context, Length, Node, Shape, Template};
use broadloom_scalar::{Element, Literal, Type};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of elements of a host column that is a constant of a template.
const MAX_CONSTANT: usize = 64;

/// Maximum number of templates of a function. The oldest one is removed.
const MAX_TEMPLATES: usize = 8;

/// Maximum number of remembered calls, used to detect repeated ones.
const MAX_SEEN: usize = 8;

/// Maximum number of calls that could not be traced. Then none is traced any more.
const MAX_REFUSED: usize = 4;

/// Maximum number of templates of calls with columns of the same types. Beyond it, only repeated sizes are
/// traced.
const MAX_GENERAL: usize = 3;

/// Returns the only int of a column of the host, if it counts as a size.
fn size_of(column: &Column) -> Option<usize> {
    match column {
        Column::Ints(values) if values.len() == 1 => i32::try_from(values[0]).ok().and_then(|value| usize::try_from(value).ok()),
        Column::Ints(_) | Column::Floats(_) | Column::Bools(_) | Column::Device(_) => None,
    }
}

/// ArgumentPart of an argument, as far as templates depend on it.
#[derive(Clone, Debug, PartialEq)]
enum ArgumentPart {
    Constant(Column),
    Line(Type),
}

/// Columns of a call: the parts that templates depend on, and the sizes of lines.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    parts: Vec<ArgumentPart>,
    sizes: Vec<usize>,
}

/// Tests if one template may serve calls with these parts.
fn are_alike(own: &[ArgumentPart], other: &[ArgumentPart], is_general: bool) -> bool {
    let is_size = |part: &ArgumentPart| matches!(part, ArgumentPart::Constant(column) if size_of(column).is_some());
    let is_alike = |(own, other): (&ArgumentPart, &ArgumentPart)| own == other || is_general && is_size(own) && is_size(other);
    own.len() == other.len() && own.iter().zip(other).all(is_alike)
}

impl Key {
    /// Returns the key of a call; `None` if it has no template.
    fn of(columns: &[Column]) -> Option<Key> {
        let mut sizes = vec![];
        let part = |column: &Column| match column {
            Column::Device(node) if node.length().is_none() && node.bound().rank() == 1 => {
                sizes.push(node.bound().count());
                Some(ArgumentPart::Line(node.ty()))
            }
            Column::Device(_) => None,
            Column::Ints(values) if values.len() > MAX_CONSTANT => None,
            Column::Floats(values) if values.len() > MAX_CONSTANT => None,
            Column::Bools(values) if values.len() > MAX_CONSTANT => None,
            Column::Ints(_) | Column::Floats(_) | Column::Bools(_) => Some(ArgumentPart::Constant(column.clone())),
        };
        let parts = columns.iter().map(part).collect::<Option<Vec<ArgumentPart>>>()?;
        // A call without lines of the device does not justify a template.
        if sizes.is_empty() { None } else { Some(Key { parts, sizes }) }
    }
}

#[derive(Debug)]
enum ResultColumn {
    /// It does not depend on elements of the device.
    Constant(Column),
    /// A result of the template.
    Output(usize),
    /// An int that depends on the sizes of columns: one of the numbers for the host.
    Number(usize),
}

/// A traced call.
#[derive(Debug)]
pub(crate) struct CallTemplate {
    template: Template,
    context: Context,
    /// True if the call was traced for all sizes.
    is_general: bool,
    outcome: Arc<Outcome>,
}

/// Launched call of a template whose conditions are not checked yet.
#[derive(Debug)]
pub(crate) struct LaunchedCall {
    outcome: Arc<Outcome>,
    results: Vec<Node>,
}

/// Conversion of the results of a template to those of a call.
#[derive(Debug)]
struct Outcome {
    answers: Vec<ResultColumn>,
    /// The word that traps write, if the host reads it directly.
    word: Option<Node>,
    /// The lines whose lengths the host reads, if the last result of the template has numbers for the host.
    /// The first number is 1 if a condition does not hold. The lengths of these results follow, then ints
    /// that depend on sizes.
    numbers: Option<Vec<usize>>,
}

pub(super) struct TraceConditions {
    /// Results of the template that write the word.
    pub(super) traps: Vec<Node>,
    /// A bool without axes: true if a condition does not hold.
    pub(super) status: Option<Node>,
    /// The word, if the host reads it directly.
    pub(super) word: Option<Node>,
}

impl CallTemplate {
    /// Returns the inputs of a template: the lines of the device, and for each size a line with one more
    /// element, which is not in memory.
    fn inputs(context: &Context, columns: &[Column], is_general: bool) -> broadloom_graph::Result<Vec<Node>> {
        let input = |column: &Column| match (column, size_of(column)) {
            (Column::Device(node), _) => Some(Ok(node.clone())),
            (_, Some(size)) if is_general => Some(Node::fill(context, Shape::from(size + 1), &[Literal::from(0u32)])),
            _ => None,
        };
        columns.iter().filter_map(input).collect()
    }

    /// Tests if the template serves a call.
    fn fits(&self, own: &[ArgumentPart], key: &Key, columns: &[Column]) -> bool {
        let is_fitting = |inputs: Vec<Node>| self.template.fits(&inputs);
        are_alike(own, &key.parts, self.is_general)
            && CallTemplate::inputs(&self.context, columns, self.is_general).is_ok_and(is_fitting)
    }

    /// Launches the kernels of a call.
    fn launch(&self, columns: &[Column]) -> broadloom_graph::Result<LaunchedCall> {
        let results = self.template.call(&CallTemplate::inputs(&self.context, columns, self.is_general)?)?;
        Ok(LaunchedCall { outcome: self.outcome.clone(), results })
    }
}

impl LaunchedCall {
    /// Tests if the host waits to check the conditions or to learn lengths.
    fn waits(&self) -> bool {
        self.outcome.word.is_some() || self.outcome.numbers.is_some()
    }

    /// Checks the conditions and returns the results; `None` if a condition does not hold.
    fn finish(&self) -> broadloom_graph::Result<Option<Vec<Column>>> {
        let Outcome { answers, word, numbers } = &*self.outcome;
        let mut read: Vec<i64> = vec![];
        if let Some(word) = word
            && word.evaluate()?.read()?.iter().any(|byte| *byte != 0)
        {
            return Ok(None);
        }
        if let (Some(lengths), Some(numbers)) = (numbers, self.results.last()) {
            let bytes = numbers.evaluate()?.read()?;
            let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
            if numbers.next() != Some(0) {
                return Ok(None);
            }
            read.extend(numbers.clone().skip(lengths.len()));
            for (result, count) in lengths.iter().zip(numbers) {
                if let Some(length) = self.results[*result].length() {
                    length.learn(usize::try_from(count).unwrap_or(0));
                }
            }
        }
        let column = |answer: &ResultColumn| match answer {
            ResultColumn::Constant(column) => Ok(column.clone()),
            ResultColumn::Output(number) => self.results[*number].hosted().map(Column::Device),
            ResultColumn::Number(number) => Ok(Column::Ints(read.get(*number).copied().into_iter().collect())),
        };
        answers.iter().map(column).collect::<broadloom_graph::Result<Vec<Column>>>().map(Some)
    }
}

/// The templates of a function.
#[derive(Debug)]
pub(crate) struct Templates {
    known: Vec<(Vec<ArgumentPart>, CallTemplate)>,
    /// True if calls are traced for all sizes.
    is_general: bool,
    /// Calls executed by the machine.
    seen: Vec<Key>,
    /// Calls that could not be traced.
    refused: Vec<Key>,
    /// Calls of templates.
    pub(crate) calls: u64,
    /// Waits of the host in calls of templates.
    pub(crate) waits: u64,
}

impl Templates {
    /// Makes an empty set of templates.
    pub(crate) fn new() -> Templates {
        Templates { known: vec![], is_general: true, seen: vec![], refused: vec![], calls: 0, waits: 0 }
    }

    /// Launches a call with a template. `trace` makes one, for all sizes or for those of the call alone.
    /// Returns `None` if the machine must execute the call.
    pub(crate) fn launch(
        &mut self,
        columns: &[Column],
        trace: impl FnOnce(bool) -> Option<CallTemplate>,
    ) -> Option<LaunchedCall> {
        if self.refused.len() >= MAX_REFUSED && self.known.is_empty() {
            return None;
        }
        let key = Key::of(columns)?;
        let index = match self.known.iter().position(|(own, template)| template.fits(own, &key, columns)) {
            Some(index) => index,
            None => {
                if !self.is_traced(&key) {
                    self.see(key);
                    return None;
                }
                self.seen.retain(|own| *own != key);
                let Some(template) = trace(self.is_general) else {
                    self.refused.push(key);
                    return None;
                };
                self.is_general &= template.is_general;
                if self.known.len() >= MAX_TEMPLATES {
                    self.known.remove(0);
                }
                self.known.push((key.parts, template));
                self.known.len() - 1
            }
        };
        let launched = self.known[index].1.launch(columns);
        if launched.is_err() {
            self.known.remove(index);
        }
        launched.ok()
    }

    /// Tests if a call without a template is traced.
    fn is_traced(&self, key: &Key) -> bool {
        let is_alike = |parts: &[ArgumentPart]| are_alike(parts, &key.parts, self.is_general);
        let templates = self.known.iter().filter(|(parts, _)| is_alike(parts)).count();
        self.refused.len() < MAX_REFUSED
            && !self.refused.contains(key)
            && (self.seen.contains(key)
                || self.is_general
                    && templates < MAX_GENERAL
                    && (templates > 0 || self.seen.iter().any(|own| is_alike(&own.parts))))
    }

    /// Returns the results of a launched call. Returns `None` if a condition does not hold: the machine then
    /// executes the call and reports the error.
    pub(crate) fn finish(&mut self, launched: &LaunchedCall) -> Option<Vec<Column>> {
        let results = launched.finish().ok().flatten();
        match &results {
            Some(_) => {
                self.calls += 1;
                self.waits += u64::from(launched.waits());
            }
            // The word stays set, so the template cannot be used again.
            None => self.known.retain(|(_, template)| !Arc::ptr_eq(&template.outcome, &launched.outcome)),
        }
        results
    }

    fn see(&mut self, key: Key) {
        if self.seen.contains(&key) {
            return;
        }
        if self.seen.len() >= MAX_SEEN {
            self.seen.remove(0);
        }
        self.seen.push(key);
    }
}

impl Accelerator {
    /// Fails during the trace of a call: a template cannot repeat the following work.
    pub(crate) fn untraced(&self) -> Run<()> {
        if self.tracing { Fault::at_run_time("a template cannot wait for the device") } else { Ok(()) }
    }

    /// Returns the int that an input of a template represents.
    pub(crate) fn size_of(&self, column: &Node) -> Option<Amount> {
        let is_size = self.sizes.iter().any(|size| size.is_same(column));
        is_size.then(|| column.bound().amount(0).minus(&1.into()))
    }

    /// Returns an int that depends on the sizes of columns as a column of a traced call.
    pub(crate) fn count_as_column(&mut self, amount: &Amount) -> Run<Column> {
        let context = self.context()?;
        let count = self.as_vector(&Node::counting(&context, amount))?;
        self.counts.push(count.clone());
        Ok(Column::Device(count))
    }

    /// Traces a call, for all sizes or for those of the columns alone. `run` executes it on symbols and
    /// returns the columns of its results. Returns `None` for a call that has no template.
    pub(crate) fn traced(
        &mut self,
        columns: &[Column],
        is_general: bool,
        run: impl FnOnce(&mut Accelerator, Vec<Column>) -> Run<Vec<Column>>,
    ) -> Option<CallTemplate> {
        let context: Context = self.context().ok()?;
        let mut made = None;
        let inputs = CallTemplate::inputs(&context, columns, is_general).ok()?;
        let template = context.template(&inputs, |symbols| {
            let mut symbols = symbols.iter().cloned();
            let sizes = &mut self.sizes;
            let symbol = |column: &Column| match (column, size_of(column)) {
                (Column::Device(_), _) => symbols.next().map(Column::Device),
                (_, Some(_)) if is_general => {
                    sizes.extend(symbols.next());
                    sizes.last().cloned().map(Column::Device)
                }
                (other, _) => Some(other.clone()),
            };
            let columns = columns.iter().filter_map(symbol).collect();
            (self.tracing, self.word, self.is_trapped) = (true, None, false);
            self.ledger = is_general.then(Rc::default);
            let traced = run(self, columns).and_then(|results| self.outputs(results));
            self.tracing = false;
            match traced {
                Ok((nodes, outcome)) => {
                    made = Some(outcome);
                    Ok(nodes)
                }
                Err(_) => Err(broadloom_graph::Error::Symbolic { operation: "call".to_owned() }),
            }
        });
        // The word belongs to the template, and nodes of the trace are invalid outside it.
        (self.word, self.is_trapped) = (None, false);
        self.failed.clear();
        self.ledger = None;
        self.counts.clear();
        self.sizes.clear();
        Some(CallTemplate { template: template.ok()?, context, is_general, outcome: Arc::new(made?) })
    }

    /// Makes the results of a template from those of a traced call.
    fn outputs(&mut self, results: Vec<Column>) -> Run<(Vec<Node>, Outcome)> {
        let (mut nodes, mut answers, mut counts) = (vec![], vec![], vec![]);
        for result in results {
            match result {
                Column::Device(node) if self.counts.iter().any(|count| count.is_same(&node)) => {
                    answers.push(ResultColumn::Number(counts.len()));
                    counts.push(node);
                }
                Column::Device(node) => {
                    answers.push(ResultColumn::Output(nodes.len()));
                    nodes.push(node);
                }
                constant => answers.push(ResultColumn::Constant(constant)),
            }
        }
        let mut lengths: Vec<(usize, Length)> = vec![];
        for (number, length) in nodes.iter().enumerate().filter_map(|(number, node)| Some((number, node.length()?))) {
            if !lengths.iter().any(|(_, known)| known.is_same(length)) {
                lengths.push((number, length.clone()));
            }
        }
        let is_read = !lengths.is_empty() || !counts.is_empty();
        let TraceConditions { traps, status, word } = self.tested(is_read)?;
        nodes.extend(traps);
        if !is_read && status.is_none() {
            return Ok((nodes, Outcome { answers, word, numbers: None }));
        }
        let mut numbers = vec![self.as_number(status.as_ref())?];
        for (_, length) in &lengths {
            let count = self.convert(length.count(), Element::I64)?;
            numbers.push(self.as_vector(&count)?);
        }
        numbers.extend(counts);
        nodes.push(on_device(Node::concatenate(0, &numbers.iter().collect::<Vec<&Node>>()))?);
        let numbers = Some(lengths.into_iter().map(|(number, _)| number).collect());
        Ok((nodes, Outcome { answers, word, numbers }))
    }

    /// Ends the conditions of a trace. With `is_read`, the host reads other numbers at the end, and the
    /// status with them.
    pub(super) fn tested(&mut self, is_read: bool) -> Run<TraceConditions> {
        // Earlier stages may have written the word already, and a word in memory is not a symbol.
        let was_trapped = self.is_trapped;
        let (traps, failed) = self.traps()?;
        let word = self.word.clone().filter(|_| self.is_trapped);
        if was_trapped || word.is_none() || !is_read && failed.is_none() {
            return Ok(TraceConditions { traps, status: failed, word });
        }
        let status = match (self.trapped(&traps)?, failed) {
            (Some(word), Some(failed)) => Some(self.call("either", &[&word, &failed], |f, x| f.or(f.ne(x[0], 0), x[1]))?),
            (Some(word), None) => Some(self.call("written", &[&word], |f, x| f.ne(x[0], 0))?),
            (None, status) => status,
        };
        Ok(TraceConditions { traps: vec![], status, word: None })
    }

    /// Returns the status of a trace as a number for the host: 1 if a condition does not hold.
    pub(super) fn as_number(&mut self, status: Option<&Node>) -> Run<Node> {
        match status {
            Some(status) => {
                let status = self.convert(status, Element::I64)?;
                on_device(status.reshape(Shape::from(1)))
            }
            None => self.one(Literal::from(0i64)),
        }
    }
}
