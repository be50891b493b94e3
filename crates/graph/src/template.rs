//! Templates: expressions that were traced once, to be computed again for other inputs.
//!
//! [`Context::template`] calls a function with *symbols* in place of its inputs. What it makes of them is planned and fitted to the sizes there and then; a call
//! takes buffers and scalars and launches, whatever the number of operations.
//!
//! - An input that is one value everywhere is a scalar of the template, any other is memory.
//! - What does not depend on a symbol is an ordinary array: what is in memory already is kept by the template, what is not is part of its kernels.
//! - Evaluating inside of the function is a *stage*: the plan of the template is cut there. Elements cannot be read, as there are none.
//!
//! Nothing is traced in secret: a node knows whether it depends on a symbol ([`Node::is_symbolic`]).

use crate::context::Context;
use crate::error::{Error, Result};
use crate::fit::{FittedPlan, LaneOf, Scalars};
use crate::lane::Lane;
use crate::length::Length;
use crate::node::{Node, State};
use crate::op::{Op, Scalar};
use crate::shape::Shape;
use crate::tape::Bindings;
use broadloom_device::Buffer;
use broadloom_scalar::{Lanes, Type};
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something that comes when a function is called.
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

/// A function while it is traced: the stages so far, and how many symbols there are. Nothing when that is over.
#[derive(Debug)]
struct Tracing(Mutex<Option<(Vec<Stage>, u32)>>);

impl Tracing {
    fn lock(&self) -> MutexGuard<'_, Option<(Vec<Stage>, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is told where elements are wanted of a symbol.
pub(crate) fn unknown(operation: &str) -> Error {
    Error::Symbolic { operation: operation.to_owned() }
}

/// The symbols of a tape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    tracing: Option<Arc<Tracing>>,
    /// Slots of buffers, each with the number of its symbol.
    pub(crate) buffers: Vec<(u32, u32)>,
    /// The same for values.
    pub(crate) values: Vec<(u32, u32)>,
}

impl Symbols {
    /// Notes which function a symbol belongs to. It is one for all.
    pub(crate) fn join(&mut self, symbol: &Symbol) -> Result<()> {
        let own = self.tracing.get_or_insert_with(|| symbol.tracing.clone());
        if Arc::ptr_eq(own, &symbol.tracing) { Ok(()) } else { Err(unknown("arrays of two functions")) }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.tracing.is_none()
    }
}

/// A plan of a template.
#[derive(Debug)]
struct Stage {
    fitted: Arc<FittedPlan>,
    /// What is given in all calls; the rest are symbols.
    buffers: Vec<Option<Buffer<u8>>>,
    symbols: Vec<(u32, u32)>,
    scalars: Scalars,
    /// Scalars that are lanes of symbols.
    lanes: Vec<(LaneOf, u32)>,
    /// The number of the symbol that its first result is.
    first: u32,
    results: u32,
    /// Symbols that nobody needs after it.
    dead: Vec<u32>,
}

/// An input of a template.
#[derive(Debug)]
struct Input {
    ty: Type,
    shape: Shape,
    is_scalar: bool,
    /// Which of the lengths that only the device knows it has.
    length: Option<usize>,
}

#[derive(Debug)]
enum Outcome {
    Symbol(u32),
    /// The same in all calls.
    Known(Buffer<u8>),
}

/// An expression that was traced, ready to be computed for inputs of the same types and shapes.
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
/// # Ok::<(), broadloom_graph::Error>(())
/// ```
#[derive(Debug)]
pub struct Template {
    context: Context,
    inputs: Vec<Input>,
    stages: Vec<Stage>,
    symbols: usize,
    /// How many lengths the inputs have that only the device knows. Their symbols follow those of the inputs.
    lengths: usize,
    results: Vec<Returned>,
}

/// A result of a template.
#[derive(Debug)]
struct Returned {
    ty: Type,
    shape: Shape,
    outcome: Outcome,
    /// The number of the first result with the same length that only the device knows, and where the length is.
    length: Option<(usize, Outcome)>,
}

/// The different lengths of arrays that only the device knows, and which of them each has.
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
    /// Its value, if it is one everywhere that is known.
    fn one_value(&self) -> Option<Lanes> {
        match &*self.lock() {
            State::Pending(expression) => match &expression.op {
                Op::Fill(scalar) if scalar.symbol().is_none() => Some(scalar.lanes().clone()),
                _ => None,
            },
            State::Ready(_) | State::Symbolic(_) => None,
        }
    }
}

impl Context {
    /// Traces a function of arrays like these.
    pub fn template(&self, inputs: &[Node], function: impl FnOnce(&[Node]) -> Result<Vec<Node>>) -> Result<Template> {
        let (lengths, each) = lengths(inputs);
        let tracing = Arc::new(Tracing(Mutex::new(Some((vec![], (inputs.len() + lengths.len()) as u32)))));
        let symbol = |number: usize| Symbol { tracing: tracing.clone(), number: number as u32 };
        let own = lengths.iter().enumerate().map(|(number, length)| {
            let count = Node::symbolic(self, Type::U32, Shape::from([]), symbol(inputs.len() + number));
            Length::of(count, length.bound())
        });
        let own: Vec<Length> = own.collect();
        let mut kinds = vec![];
        let mut symbols = vec![];
        for (number, node) in inputs.iter().enumerate() {
            self.owns("function", node)?;
            let symbol = symbol(number);
            let (ty, shape, is_scalar) = (node.ty(), node.bound().clone(), node.one_value().is_some());
            let input = match is_scalar {
                true => Node::pending(self, ty, shape.clone(), Op::Fill(Scalar::symbolic(ty, symbol)), smallvec![]),
                false => Node::symbolic(self, ty, shape.clone(), symbol),
            };
            symbols.push(input.with_length(each[number].map(|length| own[length].clone())));
            kinds.push(Input { ty, shape, is_scalar, length: each[number] });
        }
        let traced = function(&symbols).and_then(|outputs| {
            outputs.iter().try_for_each(|output| self.owns("function", output))?;
            self.evaluate(&outputs)?;
            Ok(outputs)
        });
        let steps = tracing.lock().take();
        let (outputs, (mut stages, symbols)) = (traced?, steps.unwrap_or_default());
        let outcome = |node: &Node| match node.state() {
            State::Ready(buffer) => Ok(Outcome::Known(buffer)),
            State::Symbolic(symbol) if Arc::ptr_eq(&symbol.tracing, &tracing) => Ok(Outcome::Symbol(symbol.number)),
            State::Symbolic(_) | State::Pending(_) => Err(unknown("function")),
        };
        let (_, each) = self::lengths(&outputs);
        let mut results = vec![];
        for (node, which) in outputs.iter().zip(&each) {
            let first = each.iter().position(|other| other == which).unwrap_or(0);
            let length = match node.length() {
                Some(length) => Some((first, outcome(length.count())?)),
                None => None,
            };
            results.push(Returned { ty: node.ty(), shape: node.bound().clone(), outcome: outcome(node)?, length });
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
        let lengths = lengths.len();
        Ok(Template { context: self.clone(), inputs: kinds, stages, symbols: symbols as usize, lengths, results })
    }

    /// Adds a plan to the function that is traced, and makes its results symbols.
    pub(crate) fn stage(&self, nodes: &[Node], fitted: Arc<FittedPlan>, bindings: Bindings) -> Result<()> {
        let tracing = bindings.symbols.tracing.ok_or_else(|| unknown("evaluate"))?;
        let mut state = tracing.lock();
        let (stages, symbols) = state.as_mut().ok_or_else(|| unknown("evaluate"))?;
        let is_symbol = |lane: &LaneOf| bindings.symbols.values.iter().find(|(slot, _)| *slot == lane.slot).map(|found| found.1);
        let lanes = fitted.lanes().filter_map(|lane| is_symbol(&lane).map(|symbol| (lane, symbol))).collect();
        let (first, results) = (*symbols, nodes.len() as u32);
        *symbols += results;
        let scalars = fitted.scalars(&bindings.values);
        let (buffers, given) = (bindings.buffers, bindings.symbols.buffers);
        stages.push(Stage { fitted, buffers, symbols: given, scalars, lanes, first, results, dead: vec![] });
        drop(state);
        for (number, node) in (first..).zip(nodes) {
            node.settle(State::Symbolic(Symbol { tracing: tracing.clone(), number }));
        }
        Ok(())
    }
}

impl Template {
    /// Whether it was traced for inputs of these types and shapes.
    pub fn fits(&self, inputs: &[Node]) -> bool {
        self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(own, node)| {
                own.ty == node.ty() && own.shape == *node.bound() && own.is_scalar == node.one_value().is_some()
            })
            && self.are_as_long(&lengths(inputs).1)
    }

    /// Returns whether the same inputs have the same lengths as when it was traced.
    fn are_as_long(&self, each: &[Option<usize>]) -> bool {
        self.inputs.iter().zip(each).all(|(own, length)| own.length == *length)
    }

    /// Computes it for these inputs. Returns before the work is done.
    pub fn call(&self, inputs: &[Node]) -> Result<Vec<Node>> {
        self.call_in(inputs, None)
    }

    pub(crate) fn call_in(&self, inputs: &[Node], lane: Option<&Lane>) -> Result<Vec<Node>> {
        if inputs.len() != self.inputs.len() {
            let reason = format!("a template of {} inputs is called with {}", self.inputs.len(), inputs.len());
            return Err(Error::Plan { what: "a call".into(), reason });
        }
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
            // An array and its length come from one kernel.
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
            if *node.bound() != own.shape {
                let (left, right) = (own.shape.clone(), node.bound().clone());
                return Err(Error::Shapes { operation: "function".into(), left, right });
            }
            match own.is_scalar {
                true => {
                    let reason = "it was traced for one value everywhere".to_owned();
                    let range = || Error::Range { operation: "function".into(), shape: own.shape.clone(), reason };
                    values[number] = node.one_value().ok_or_else(range)?;
                }
                false => memory[number] = Some(node.evaluate()?),
            }
        }
        for stage in &self.stages {
            let mut buffers: SmallVec<[Option<Buffer<u8>>; 8]> = stage.buffers.iter().cloned().collect();
            for (slot, symbol) in &stage.symbols {
                buffers[*slot as usize] = memory[*symbol as usize].clone();
            }
            let given;
            let scalars = if stage.lanes.is_empty() {
                &stage.scalars
            } else {
                let mut own = stage.scalars.clone();
                for (lane, symbol) in &stage.lanes {
                    own[lane.kernel][lane.scalar] = values[*symbol as usize][usize::from(lane.lane)];
                }
                given = own;
                &given
            };
            let results = self.context.run(&stage.fitted, &buffers, scalars, lane)?;
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
        for (number, result) in self.results.iter().enumerate() {
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
                    Some(Length::of(count, result.shape.extents()[0]))
                }
            };
            let node = Node::ready(&self.context, result.ty, result.shape.clone(), buffer(&result.outcome)?);
            nodes.push(node.with_length(length));
        }
        Ok(nodes)
    }

    /// How many kernels a call launches.
    pub fn kernels(&self) -> u64 {
        self.stages.iter().map(|stage| stage.fitted.launches()).sum()
    }
}
