//! Templates: expressions that are traced once and computed again for other inputs.
//!
//! [`Context::template`] calls a function with *symbols* in place of its inputs. The result is planned and
//! fitted to the sizes at once. A call binds buffers and scalars and launches; its cost does not depend on
//! the number of operations.
//!
//! A call with other sizes fits the plans to them without calling the function: extents, grids and temporary
//! memory depend on those of the inputs. This is valid as long as the function would do the same for these
//! sizes; [`amount`](crate::expr::amount) describes the conditions. The last fits are cached.
//!
//! - An input that has one value everywhere is a scalar of the template; any other is memory.
//! - A node that does not depend on a symbol is an ordinary array: the template keeps it if it is in memory,
//!   else it is part of the kernels.
//! - An evaluation inside the function is a *stage*: the plan of the template is cut there. Elements cannot
//!   be read during tracing.
//!
//! Tracing is explicit: a node knows whether it depends on a symbol ([`Node::is_symbolic`]).

use crate::expr::amount::Amount;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Length, Node, State};
use crate::expr::op::{Op, Scalar};
use crate::expr::shape::Shape;
use crate::expr::terms::{Conditions, TermList};
use crate::expr::tracing::Symbol;
use crate::limits::MAX_FITS;
use crate::run::stage::{FittedStage, Stage, shape_of};
use broadloom_device::{Buffer, Stream};
use broadloom_scalar::{Lanes, Type};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, Mutex, PoisonError};

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
enum ResultMemory {
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
    results: Vec<TemplateResult>,
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

#[derive(Debug)]
struct TemplateResult {
    ty: Type,
    shape: TermList,
    outcome: ResultMemory,
    /// Index of the first result with the same length that only the device knows, and the location of the
    /// length.
    length: Option<(usize, ResultMemory)>,
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
        let executor = self.executor()?;
        let mut trace = executor.stages.begin(inputs.len() + lengths.len());
        let tracing = trace.tracing.clone();
        let symbol = |number: usize| Symbol::new(&tracing, number as u32);
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
        executor.note_trace();
        let traced = function(&symbols).and_then(|(outputs, amounts)| {
            outputs.iter().try_for_each(|output| self.owns("function", output))?;
            self.evaluate_last(&outputs)?;
            Ok((outputs, amounts))
        });
        let (mut stages, symbols) = trace.take();
        let terms_of = |shape: &Shape| shape.amounts().iter().map(|amount| amount.term_in(&tracing)).collect::<TermList>();
        let nodes = traced.iter().flat_map(|(nodes, _)| nodes);
        let shapes: Vec<TermList> = nodes.map(|node| terms_of(node.bound())).collect();
        let amounts = traced.iter().flat_map(|(_, amounts)| amounts).map(|amount| amount.term_in(&tracing)).collect();
        let conditions = tracing.finish();
        let (outputs, _) = traced?;
        let outcome = |node: &Node| match node.state() {
            State::Ready(buffer) => Ok(ResultMemory::Known(buffer)),
            State::Symbolic(symbol) if Arc::ptr_eq(symbol.tracing(), &tracing) => Ok(ResultMemory::Symbol(symbol.number())),
            State::Symbolic(_) | State::Pending(_) => Err(Error::symbolic("function")),
        };
        let (_, each) = self::lengths(&outputs);
        let mut results = vec![];
        for ((node, which), shape) in outputs.iter().zip(&each).zip(shapes) {
            let first = each.iter().position(|other| other == which).unwrap_or(0);
            let length = match node.length() {
                Some(length) => Some((first, outcome(length.count())?)),
                None => None,
            };
            results.push(TemplateResult { ty: node.ty(), shape, outcome: outcome(node)?, length });
        }
        let mut needed: Vec<bool> = vec![false; symbols as usize];
        for outcome in
            results.iter().flat_map(|result| std::iter::once(&result.outcome).chain(result.length.as_ref().map(|(_, own)| own)))
        {
            if let ResultMemory::Symbol(number) = outcome {
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
        let lengths = lengths.len();
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
        let Some(terms) = self.conditions.values(|number| inputs[number].bound().numbers()) else { return Ok(None) };
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
        self.context.executor()?.note_fit();
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

    pub(crate) fn call_in(&self, inputs: &[Node], lane: Option<Stream>) -> Result<Vec<Node>> {
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
    fn run(&self, fit: &Fit, inputs: &[Node], lane: Option<Stream>) -> Result<Vec<Node>> {
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
            let results = self.context.executor()?.run(&fitted.sized.plan, &buffers, scalars, lane)?;
            for (number, buffer) in (stage.first as usize..).zip(results) {
                memory[number] = Some(buffer);
            }
            for dead in &stage.dead {
                memory[*dead as usize] = None;
            }
        }
        let buffer = |outcome: &ResultMemory| {
            let buffer = match outcome {
                ResultMemory::Known(buffer) => Some(buffer.clone()),
                ResultMemory::Symbol(number) => memory[*number as usize].clone(),
            };
            buffer.ok_or_else(|| Error::symbolic("function"))
        };
        let mut nodes: Vec<Node> = Vec::with_capacity(self.results.len());
        for (number, (result, shape)) in self.results.iter().zip(&fit.results).enumerate() {
            let length = match &result.length {
                None => None,
                Some((first, _)) if *first < number => nodes[*first].length().cloned(),
                Some((_, ResultMemory::Symbol(symbol)))
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
