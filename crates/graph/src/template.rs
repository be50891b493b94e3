//! Templates: expressions that are traced once and computed again for other inputs.
//!
//! [`Context::template`] calls a function with *symbols* in place of its inputs. The result is planned and
//! fitted to the sizes at once. A call binds buffers and scalars and launches; its cost does not depend on
//! the number of operations.
//!
//! A call with other sizes fits the plans to them without calling the function: extents, grids and temporary
//! memory depend on those of the inputs. This is valid as long as the function would do the same for these
//! sizes; [`amount`](crate::amount) describes the conditions. The last fits are cached.
//!
//! - An input that has one value everywhere is a scalar of the template; any other is memory.
//! - A node that does not depend on a symbol is an ordinary array: the template keeps it if it is in memory,
//!   else it is part of the kernels.
//! - An evaluation inside the function is a *stage*: the plan of the template is cut there. Elements cannot
//!   be read during tracing.
//!
//! Tracing is explicit: a node knows whether it depends on a symbol ([`Node::is_symbolic`]).

use crate::amount::{Amount, Conditions, TermId, TermList, Terms};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::fit::{FittedPlan, LaneOf, Scalars};
use crate::lane::Lane;
use crate::length::Length;
use crate::limits::MAX_FITS;
use crate::node::{Node, State};
use crate::op::{Op, Scalar};
use crate::plan::Plan;
use crate::shape::Shape;
use crate::tape::Bindings;
use broadloom_device::Buffer;
use broadloom_scalar::{Lanes, Literal, Type};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Value or array that is given when a function is called.
#[derive(Clone, Debug)]
pub struct Symbol {
    tracing: Arc<Tracing>,
    number: u32,
}

impl Symbol {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

/// Trace of a function under way. Both parts are taken when it ends.
#[derive(Debug)]
pub(crate) struct Tracing {
    /// The stages so far, and the number of symbols.
    steps: Mutex<Option<(Vec<Stage>, u32)>>,
    /// Terms of extents, and the conditions of the trace.
    terms: Mutex<Option<Terms>>,
}

impl Tracing {
    fn new(symbols: usize) -> Tracing {
        Tracing { steps: Mutex::new(Some((vec![], symbols as u32))), terms: Mutex::new(Some(Terms::default())) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Vec<Stage>, u32)>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn terms(&self) -> MutexGuard<'_, Option<Terms>> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error for reading a symbol: it has no elements until the function is called.
pub(crate) fn unknown(operation: &str) -> Error {
    Error::Symbolic { operation: operation.to_owned() }
}

/// Symbols of a tape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    tracing: Option<Arc<Tracing>>,
    /// Slots of buffers, each with the number of its symbol.
    pub(crate) buffers: Vec<(u32, u32)>,
    /// Symbols of values.
    pub(crate) values: Vec<(u32, u32)>,
    /// Shapes of the tape, with the terms of their extents.
    pub(crate) shapes: Vec<Shape>,
    /// Slots of integers that depend on extents of the inputs.
    pub(crate) integers: Vec<(u32, Amount)>,
    /// Slots of values that depend on extents of the inputs.
    pub(crate) amounts: Vec<(u32, Amount)>,
}

impl Symbols {
    /// Records the trace that a symbol belongs to. All symbols belong to one trace.
    pub(crate) fn join(&mut self, symbol: &Symbol) -> Result<()> {
        self.join_tracing(&symbol.tracing)
    }

    /// Records the trace that extents belong to.
    pub(crate) fn join_tracing(&mut self, tracing: &Arc<Tracing>) -> Result<()> {
        let own = self.tracing.get_or_insert_with(|| tracing.clone());
        if Arc::ptr_eq(own, tracing) { Ok(()) } else { Err(unknown("arrays of two functions")) }
    }

    /// Returns whether there are no symbols.
    pub(crate) fn is_empty(&self) -> bool {
        self.tracing.is_none()
    }
}

/// Plan of a template.
#[derive(Debug)]
struct Stage {
    plan: Arc<Plan>,
    /// Buffers that all calls share; the others are symbols.
    buffers: Vec<Option<Buffer<u8>>>,
    symbols: Vec<(u32, u32)>,
    /// Values, with those that are symbols and those that depend on extents.
    values: Vec<Lanes>,
    given: Vec<(u32, u32)>,
    amounts: Vec<(u32, TermId)>,
    shapes: Vec<TermList>,
    integers: Vec<TermId>,
    /// The sizes that the stage was fitted to last.
    sized: Mutex<Vec<Arc<SizedStage>>>,
    /// Number of the symbol of its first result.
    first: u32,
    results: u32,
    /// Symbols that are not used after the stage.
    dead: Vec<u32>,
}

/// Template fitted to known sizes.
#[derive(Debug)]
struct Fit {
    /// The identity of the template.
    of: Arc<()>,
    /// The shapes of the inputs.
    inputs: SmallVec<[Shape; 4]>,
    stages: Vec<FittedStage>,
    /// The shapes of the results.
    results: Vec<Shape>,
    /// The amounts that the function returned.
    amounts: Vec<i64>,
}

/// Stage fitted to known sizes, for any scalars.
#[derive(Debug)]
struct SizedStage {
    /// The extents and integers that it was fitted to.
    sizes: Vec<i64>,
    plan: Arc<FittedPlan>,
    /// Scalars, with those that are lanes of symbols and those that depend on extents.
    scalars: Scalars,
    lanes: Vec<(LaneOf, u32)>,
    amounts: Vec<(LaneOf, TermId)>,
}

#[derive(Debug)]
struct FittedStage {
    sized: Arc<SizedStage>,
    /// Scalars, if some of them depend on extents.
    scalars: Option<Scalars>,
}

impl FittedStage {
    /// Creates a stage for the values of terms; `None` if another plan is needed. A recent fit is reused if
    /// only scalars differ.
    fn new(stage: &Stage, terms: &[i64]) -> Result<Option<FittedStage>> {
        let lock = || stage.sized.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().iter().find(|sized| stage.sizes(terms).eq(sized.sizes.iter().copied())).cloned();
        let sized = match known {
            Some(sized) => sized,
            None => {
                let Some(sized) = SizedStage::new(stage, terms)? else { return Ok(None) };
                let (sized, mut known) = (Arc::new(sized), lock());
                if known.len() >= MAX_FITS {
                    known.remove(0);
                }
                known.push(sized.clone());
                sized
            }
        };
        let mut scalars = None;
        if !sized.amounts.is_empty() {
            let own = scalars.insert(sized.scalars.clone());
            for (lane, amount) in &sized.amounts {
                own[lane.kernel][lane.scalar] = Literal::from(terms[*amount as usize]);
            }
        }
        Ok(Some(FittedStage { sized, scalars }))
    }

    fn scalars(&self) -> &Scalars {
        self.scalars.as_ref().unwrap_or(&self.sized.scalars)
    }
}

impl Stage {
    /// Returns the extents and integers for the values of terms.
    fn sizes<'a>(&'a self, terms: &'a [i64]) -> impl Iterator<Item = i64> + 'a {
        self.shapes.iter().flatten().chain(&self.integers).map(|term| terms[*term as usize])
    }
}

impl SizedStage {
    /// Creates a stage for the values of terms; `None` if another plan is needed.
    fn new(stage: &Stage, terms: &[i64]) -> Result<Option<SizedStage>> {
        let Some(shapes) = stage.shapes.iter().map(|shape| shape_of(shape, terms)).collect::<Option<Vec<Shape>>>() else {
            return Ok(None);
        };
        let integers = stage.integers.iter().map(|integer| terms[*integer as usize]).collect();
        let mut values = stage.values.clone();
        for (slot, amount) in &stage.amounts {
            values[*slot as usize] = smallvec![Literal::from(terms[*amount as usize])];
        }
        let bindings = Bindings { shapes, integers, values, ..Bindings::default() };
        if !stage.plan.key.accepts(&bindings) {
            return Ok(None);
        }
        let plan = stage.plan.fitted(&bindings)?;
        let of = |own: &[(u32, u32)]| -> Vec<(LaneOf, u32)> {
            let found = |lane: &LaneOf| own.iter().find(|(slot, _)| *slot == lane.slot).map(|found| found.1);
            plan.lanes().filter_map(|lane| found(&lane).map(|number| (lane, number))).collect()
        };
        let (lanes, amounts, scalars) = (of(&stage.given), of(&stage.amounts), plan.scalars(&bindings.values));
        Ok(Some(SizedStage { sizes: stage.sizes(terms).collect(), plan, scalars, lanes, amounts }))
    }
}

/// Returns the shape with terms as its extents; `None` if it exceeds the limits of arrays.
fn shape_of(list: &TermList, terms: &[i64]) -> Option<Shape> {
    let extents = list.iter().map(|term| usize::try_from(terms[*term as usize]).ok()).collect::<Option<Vec<usize>>>()?;
    Some(Shape::from(extents)).filter(Shape::is_possible)
}

/// Input of a template.
#[derive(Debug)]
struct Input {
    ty: Type,
    shape: Shape,
    is_scalar: bool,
    /// Index of its length among the lengths that only the device knows.
    length: Option<usize>,
    /// True if a call reads or returns its elements.
    is_needed: bool,
}

#[derive(Debug)]
enum Outcome {
    Symbol(u32),
    /// Buffer that all calls share.
    Known(Buffer<u8>),
}

/// An expression that was traced, ready to be computed for inputs of the same types and ranks, and of all
/// shapes for which the function would do the same.
///
/// ```
/// use broadloom_graph::{Context, Elementwise, Node, Shape};
/// use broadloom_device::Device;
/// use broadloom_interp::Interp;
/// use broadloom_scalar::{BinaryOp, Type};
///
/// let context = Context::new(&Device::new(Interp::new(Default::default())));
/// let line = |bytes: &[u8]| Node::upload(&context, Type::U8, Shape::from(bytes.len()), bytes);
/// let square = context.template(&[line(&[1, 2, 3])?], |x| {
///     Ok(vec![Node::elementwise(Elementwise::Binary(BinaryOp::Mul), &[&x[0], &x[0]])?])
/// })?;
/// assert_eq!(square.call(&[line(&[4, 5, 6])?])?[0].read()?.to_bytes(), [16, 25, 36]);
/// // The function is not called again for another length.
/// assert_eq!(square.call(&[line(&[7, 8])?])?[0].read()?.to_bytes(), [49, 64]);
/// assert_eq!(context.statistics().traces, 1);
/// # Ok::<(), broadloom_graph::Error>(())
/// ```
#[derive(Debug)]
pub struct Template {
    context: Context,
    /// Identity of the template.
    own: Arc<()>,
    inputs: Vec<Input>,
    /// True if the template is valid only for the sizes of its trace.
    is_sized: bool,
    stages: Vec<Stage>,
    /// Conditions of the trace.
    conditions: Conditions,
    /// The most recent fits.
    fits: Mutex<Vec<Arc<Fit>>>,
    symbols: usize,
    /// Number of lengths of the inputs that only the device knows. Their symbols follow those of the inputs.
    lengths: usize,
    results: Vec<Returned>,
    /// Amounts returned by the function.
    amounts: TermList,
}

/// Template fitted to inputs.
#[derive(Clone, Debug)]
pub struct FittedTemplate(Arc<Fit>);

impl FittedTemplate {
    /// Returns the amounts of the function for these inputs.
    pub fn amounts(&self) -> &[i64] {
        &self.0.amounts
    }
}

/// Result of a template.
#[derive(Debug)]
struct Returned {
    ty: Type,
    shape: TermList,
    outcome: Outcome,
    /// Index of the first result with the same length that only the device knows, and the location of the
    /// length.
    length: Option<(usize, Outcome)>,
}

/// Returns the distinct lengths of arrays that only the device knows, and the index of the length of each
/// array.
fn lengths(nodes: &[Node]) -> (Vec<Length>, SmallVec<[Option<usize>; 8]>) {
    let mut known: Vec<Length> = vec![];
    let of = |node: &Node| {
        node.length().map(|length| {
            known.iter().position(|own| own.is_same(length)).unwrap_or_else(|| {
                known.push(length.clone());
                known.len() - 1
            })
        })
    };
    let each = nodes.iter().map(of).collect();
    (known, each)
}

impl Node {
    /// Returns whether it has one known value everywhere: a scalar of a template.
    pub fn is_one_value(&self) -> bool {
        let is_value = |op: &Op| matches!(op, Op::Fill(scalar) if scalar.symbol().is_none() && scalar.amount().is_none());
        matches!(&*self.lock(), State::Pending(expression) if is_value(&expression.op))
    }

    /// Returns its value if it has one known value everywhere.
    fn one_value(&self) -> Option<Lanes> {
        match &*self.lock() {
            State::Pending(expression) => match &expression.op {
                Op::Fill(scalar) if scalar.symbol().is_none() && scalar.amount().is_none() => Some(scalar.lanes().clone()),
                _ => None,
            },
            State::Ready(_) | State::Symbolic(_) => None,
        }
    }
}

impl Context {
    /// Traces a function for inputs of these types and ranks.
    pub fn template(&self, inputs: &[Node], function: impl FnOnce(&[Node]) -> Result<Vec<Node>>) -> Result<Template> {
        self.template_with(inputs, |symbols| Ok((function(symbols)?, vec![])))
    }

    /// Traces a function for inputs of these sizes only. The function may know the sizes from elsewhere. Its
    /// kernels are those of the expression without a template, in which equal extents can be one size.
    pub fn template_of_sizes(&self, inputs: &[Node], function: impl FnOnce(&[Node]) -> Result<Vec<Node>>) -> Result<Template> {
        self.traced_template(inputs, true, |symbols| Ok((function(symbols)?, vec![])))
    }

    /// Traces a function for inputs of these types and ranks. The function also returns amounts that depend
    /// on their extents; [`FittedTemplate::amounts`] has them for other inputs.
    pub fn template_with(
        &self,
        inputs: &[Node],
        function: impl FnOnce(&[Node]) -> Result<(Vec<Node>, Vec<Amount>)>,
    ) -> Result<Template> {
        self.traced_template(inputs, false, function)
    }

    fn traced_template(
        &self,
        inputs: &[Node],
        is_sized: bool,
        function: impl FnOnce(&[Node]) -> Result<(Vec<Node>, Vec<Amount>)>,
    ) -> Result<Template> {
        let (lengths, each) = lengths(inputs);
        let tracing = Arc::new(Tracing::new(inputs.len() + lengths.len()));
        let symbol = |number: usize| Symbol { tracing: tracing.clone(), number: number as u32 };
        let shape = |(number, node): (usize, &Node)| {
            let plain = node.bound().clone().plain();
            if is_sized { plain } else { plain.of_input(number, &tracing) }
        };
        let shapes: Vec<Shape> = inputs.iter().enumerate().map(shape).collect();
        let own = lengths.iter().enumerate().map(|(number, length)| {
            let count = Node::symbolic(self, Type::U32, Shape::from([]), symbol(inputs.len() + number));
            let has_it = each.iter().position(|own| *own == Some(number));
            Length::of(count, has_it.map_or(length.amount().clone(), |input| shapes[input].amount(0)))
        });
        let own: Vec<Length> = own.collect();
        let mut kinds = vec![];
        let mut symbols = vec![];
        for (number, node) in inputs.iter().enumerate() {
            self.owns("function", node)?;
            let symbol = symbol(number);
            let (ty, shape, is_scalar) = (node.ty(), shapes[number].clone(), node.one_value().is_some());
            let input = match is_scalar {
                true => Node::pending(self, ty, shape, Op::Fill(Scalar::symbolic(ty, symbol)), smallvec![]),
                false => Node::symbolic(self, ty, shape, symbol),
            };
            symbols.push(input.with_length(each[number].map(|length| own[length].clone())));
            kinds.push(Input { ty, shape: node.bound().clone().plain(), is_scalar, length: each[number], is_needed: false });
        }
        self.note_trace();
        let traced = function(&symbols).and_then(|(outputs, amounts)| {
            outputs.iter().try_for_each(|output| self.owns("function", output))?;
            self.evaluate_last(&outputs)?;
            Ok((outputs, amounts))
        });
        let steps = tracing.lock().take();
        let terms_of = |shape: &Shape| shape.amounts().iter().map(|amount| amount.term_in(&tracing)).collect::<TermList>();
        let nodes = traced.iter().flat_map(|(nodes, _)| nodes);
        let shapes: Vec<TermList> = nodes.map(|node| terms_of(node.bound())).collect();
        let amounts = traced.iter().flat_map(|(_, amounts)| amounts).map(|amount| amount.term_in(&tracing)).collect();
        let terms = tracing.terms().take();
        let ((outputs, _), (mut stages, symbols)) = (traced?, steps.unwrap_or_default());
        let outcome = |node: &Node| match node.state() {
            State::Ready(buffer) => Ok(Outcome::Known(buffer)),
            State::Symbolic(symbol) if Arc::ptr_eq(&symbol.tracing, &tracing) => Ok(Outcome::Symbol(symbol.number)),
            State::Symbolic(_) | State::Pending(_) => Err(unknown("function")),
        };
        let (_, each) = self::lengths(&outputs);
        let mut results = vec![];
        for ((node, which), shape) in outputs.iter().zip(&each).zip(shapes) {
            let first = each.iter().position(|other| other == which).unwrap_or(0);
            let length = match node.length() {
                Some(length) => Some((first, outcome(length.count())?)),
                None => None,
            };
            results.push(Returned { ty: node.ty(), shape, outcome: outcome(node)?, length });
        }
        let mut needed: Vec<bool> = vec![false; symbols as usize];
        for outcome in
            results.iter().flat_map(|result| std::iter::once(&result.outcome).chain(result.length.as_ref().map(|(_, own)| own)))
        {
            if let Outcome::Symbol(number) = outcome {
                needed[*number as usize] = true;
            }
        }
        for stage in stages.iter_mut().rev() {
            let own = stage.symbols.iter().map(|(_, symbol)| *symbol).chain(stage.first..stage.first + stage.results);
            for symbol in own {
                if !std::mem::replace(&mut needed[symbol as usize], true) {
                    stage.dead.push(symbol);
                }
            }
        }
        for (input, is_needed) in kinds.iter_mut().zip(needed) {
            input.is_needed = is_needed;
        }
        let (lengths, conditions) = (lengths.len(), terms.unwrap_or_default().finish());
        let template = Template {
            context: self.clone(),
            own: Arc::default(),
            inputs: kinds,
            is_sized,
            stages,
            conditions,
            fits: Mutex::default(),
            symbols: symbols as usize,
            lengths,
            results,
            amounts,
        };
        match template.fit(inputs)? {
            Some(_) => Ok(template),
            None => Err(Error::Plan { what: "a function".into(), reason: "its trace does not hold for its own inputs".into() }),
        }
    }

    /// Adds a plan to the traced function, and makes its results symbols.
    pub(crate) fn stage(&self, nodes: &[Node], plan: Arc<Plan>, bindings: Bindings) -> Result<()> {
        let Bindings { buffers, values, integers, symbols: own, .. } = bindings;
        let tracing = own.tracing.ok_or_else(|| unknown("evaluate"))?;
        let shapes = own.shapes.iter().map(|shape| shape.amounts().iter().map(|amount| amount.term_in(&tracing)).collect());
        let shapes = shapes.collect();
        let amount = |(slot, value): (usize, &i64)| {
            let traced = own.integers.iter().find(|(own, _)| *own as usize == slot);
            traced.map_or(Amount::from(*value), |(_, amount)| amount.clone()).term_in(&tracing)
        };
        let integers = integers.iter().enumerate().map(amount).collect();
        let amounts = own.amounts.iter().map(|(slot, amount)| (*slot, amount.term_in(&tracing))).collect();
        let mut state = tracing.lock();
        let (stages, symbols) = state.as_mut().ok_or_else(|| unknown("evaluate"))?;
        let (first, results) = (*symbols, nodes.len() as u32);
        *symbols += results;
        let (given, symbols, dead) = (own.values, own.buffers, vec![]);
        stages.push(Stage {
            plan,
            buffers,
            symbols,
            values,
            given,
            amounts,
            shapes,
            integers,
            sized: Mutex::default(),
            first,
            results,
            dead,
        });
        drop(state);
        for (number, node) in (first..).zip(nodes) {
            node.settle(State::Symbolic(Symbol { tracing: tracing.clone(), number }));
        }
        Ok(())
    }
}

impl Fit {
    fn is_for(&self, inputs: &[Node]) -> bool {
        self.inputs.len() == inputs.len() && self.inputs.iter().zip(inputs).all(|(own, node)| own == node.bound())
    }
}

impl Template {
    /// Returns whether it can be called with these inputs: their types and ranks are those of the trace, and
    /// its conditions hold for their shapes. Fits the plans to the shapes unless a recent fit exists.
    pub fn fits(&self, inputs: &[Node]) -> bool {
        self.fitted(inputs).is_some()
    }

    /// Returns whether inputs have the types and ranks of the trace.
    fn is_for(&self, inputs: &[Node]) -> bool {
        let has_lengths = || inputs.iter().any(|input| input.length().is_some());
        self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(own, node)| {
                own.ty == node.ty() && own.shape.rank() == node.bound().rank() && own.is_scalar == node.is_one_value()
            })
            && (self.lengths == 0 && !has_lengths() || self.are_as_long(&lengths(inputs).1))
    }

    /// Returns the template fitted to these inputs; `None` if it cannot be called with them.
    pub fn fitted(&self, inputs: &[Node]) -> Option<FittedTemplate> {
        if self.is_for(inputs) { self.fit(inputs).ok().flatten().map(FittedTemplate) } else { None }
    }

    /// Computes the template for inputs that it was fitted to. Returns before the work is done.
    pub fn call_fitted(&self, fitted: &FittedTemplate, inputs: &[Node]) -> Result<Vec<Node>> {
        if !Arc::ptr_eq(&fitted.0.of, &self.own) || !fitted.0.is_for(inputs) {
            return Err(Error::Plan { what: "a call".into(), reason: "it was fitted to other inputs".into() });
        }
        self.run(&fitted.0, inputs, None)
    }

    /// Returns the plans for the shapes of these inputs; `None` if the conditions of the trace do not hold.
    /// The ranks must match.
    fn fit(&self, inputs: &[Node]) -> Result<Option<Arc<Fit>>> {
        let lock = || self.fits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().iter().find(|fit| fit.is_for(inputs)) {
            return Ok(Some(known.clone()));
        }
        if self.is_sized && self.inputs.iter().zip(inputs).any(|(own, node)| own.shape != *node.bound()) {
            return Ok(None);
        }
        let Some(terms) = self.conditions.values(|number| inputs[number].bound()) else { return Ok(None) };
        let mut stages = Vec::with_capacity(self.stages.len());
        for stage in &self.stages {
            let Some(stage) = FittedStage::new(stage, &terms)? else { return Ok(None) };
            stages.push(stage);
        }
        let results = self.results.iter().map(|result| shape_of(&result.shape, &terms)).collect::<Option<Vec<Shape>>>();
        let Some(results) = results else { return Ok(None) };
        let inputs = inputs.iter().map(|node| node.bound().clone().plain()).collect();
        let amounts = self.amounts.iter().map(|amount| terms[*amount as usize]).collect();
        let fit = Arc::new(Fit { of: self.own.clone(), inputs, stages, results, amounts });
        self.context.note_fit();
        let mut known = lock();
        if known.len() >= MAX_FITS {
            known.remove(0);
        }
        known.push(fit.clone());
        Ok(Some(fit))
    }

    /// Returns whether the same inputs share lengths as in the trace.
    fn are_as_long(&self, each: &[Option<usize>]) -> bool {
        self.inputs.iter().zip(each).all(|(own, length)| own.length == *length)
    }

    /// Computes the template for these inputs. Returns before the work is done.
    pub fn call(&self, inputs: &[Node]) -> Result<Vec<Node>> {
        self.call_in(inputs, None)
    }

    pub(crate) fn call_in(&self, inputs: &[Node], lane: Option<&Lane>) -> Result<Vec<Node>> {
        if inputs.len() != self.inputs.len() {
            let reason = format!("a template of {} inputs is called with {}", self.inputs.len(), inputs.len());
            return Err(Error::Plan { what: "a call".into(), reason });
        }
        let refused = |number: usize| {
            let (left, right) = (self.inputs[number].shape.clone(), inputs[number].bound().clone());
            Error::Shapes { operation: "function".into(), left, right }
        };
        let mut pairs = self.inputs.iter().zip(inputs);
        if let Some(number) = pairs.position(|(own, node)| own.shape.rank() != node.bound().rank()) {
            return Err(refused(number));
        }
        let Some(fit) = self.fit(inputs)? else {
            let mut pairs = self.inputs.iter().zip(inputs);
            return Err(refused(pairs.position(|(own, node)| own.shape != *node.bound()).unwrap_or(0)));
        };
        self.run(&fit, inputs, lane)
    }

    /// Launches the plans for the right number of inputs.
    fn run(&self, fit: &Fit, inputs: &[Node], lane: Option<&Lane>) -> Result<Vec<Node>> {
        let mut memory: SmallVec<[Option<Buffer<u8>>; 8]> = SmallVec::from_elem(None, self.symbols);
        let mut values: SmallVec<[Lanes; 4]> = SmallVec::from_elem(Lanes::new(), inputs.len());
        let mut known = vec![];
        if self.lengths > 0 || inputs.iter().any(|input| input.length().is_some()) {
            let each;
            (known, each) = lengths(inputs);
            if !self.are_as_long(&each) {
                let reason = "it was traced for other lengths that only the device knows".to_owned();
                return Err(Error::Plan { what: "a call".into(), reason });
            }
            // One kernel computes an array and its length.
            let given: SmallVec<[Node; 8]> = inputs.iter().filter(|input| input.one_value().is_none()).cloned().collect();
            self.context.evaluate_in(&given, lane)?;
            for (number, length) in known.iter().enumerate() {
                memory[inputs.len() + number] = Some(length.count().evaluate()?);
            }
        }
        for (number, (own, node)) in self.inputs.iter().zip(inputs).enumerate() {
            self.context.owns("function", node)?;
            if node.ty() != own.ty {
                return Err(Error::Types { operation: "function".into(), left: own.ty, right: node.ty() });
            }
            match own.is_scalar {
                true => {
                    let reason = "it was traced for one value everywhere".to_owned();
                    let range = || Error::Range { operation: "function".into(), shape: own.shape.clone(), reason };
                    values[number] = node.one_value().ok_or_else(range)?;
                }
                false if own.is_needed => memory[number] = Some(node.evaluate()?),
                false => {}
            }
        }
        for (stage, fitted) in self.stages.iter().zip(&fit.stages) {
            let mut buffers: SmallVec<[Option<Buffer<u8>>; 8]> = stage.buffers.iter().cloned().collect();
            for (slot, symbol) in &stage.symbols {
                buffers[*slot as usize] = memory[*symbol as usize].clone();
            }
            let given;
            let scalars = if fitted.sized.lanes.is_empty() {
                fitted.scalars()
            } else {
                let mut own = fitted.scalars().clone();
                for (lane, symbol) in &fitted.sized.lanes {
                    own[lane.kernel][lane.scalar] = values[*symbol as usize][usize::from(lane.lane)];
                }
                given = own;
                &given
            };
            let results = self.context.run(&fitted.sized.plan, &buffers, scalars, lane)?;
            for (number, buffer) in (stage.first as usize..).zip(results) {
                memory[number] = Some(buffer);
            }
            for dead in &stage.dead {
                memory[*dead as usize] = None;
            }
        }
        let buffer = |outcome: &Outcome| {
            let buffer = match outcome {
                Outcome::Known(buffer) => Some(buffer.clone()),
                Outcome::Symbol(number) => memory[*number as usize].clone(),
            };
            buffer.ok_or_else(|| unknown("function"))
        };
        let mut nodes: Vec<Node> = Vec::with_capacity(self.results.len());
        for (number, (result, shape)) in self.results.iter().zip(&fit.results).enumerate() {
            let length = match &result.length {
                None => None,
                Some((first, _)) if *first < number => nodes[*first].length().cloned(),
                Some((_, Outcome::Symbol(symbol)))
                    if (inputs.len()..inputs.len() + known.len()).contains(&(*symbol as usize)) =>
                {
                    Some(known[*symbol as usize - inputs.len()].clone())
                }
                Some((_, count)) => {
                    let count = Node::ready(&self.context, Type::U32, Shape::from([]), buffer(count)?);
                    Some(Length::of(count, shape.amount(0)))
                }
            };
            let node = Node::ready(&self.context, result.ty, shape.clone(), buffer(&result.outcome)?);
            nodes.push(node.with_length(length));
        }
        Ok(nodes)
    }

    /// Returns whether a call needs the elements of an input, not only its shape.
    pub fn needs(&self, input: usize) -> bool {
        self.inputs.get(input).is_some_and(|input| input.is_needed)
    }

    /// Returns the number of kernels that a call launches for the sizes of the last fit.
    pub fn kernels(&self) -> u64 {
        let fits = self.fits.lock().unwrap_or_else(PoisonError::into_inner);
        fits.last().map_or(0, |fit| fit.stages.iter().map(|stage| stage.sized.plan.launches()).sum())
    }
}
