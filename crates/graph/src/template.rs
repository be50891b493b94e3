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
    results: Vec<(Type, Shape, Outcome)>,
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
        let tracing = Arc::new(Tracing(Mutex::new(Some((vec![], inputs.len() as u32)))));
        let mut kinds = vec![];
        let mut symbols = vec![];
        for (number, node) in inputs.iter().enumerate() {
            self.owns("function", node)?;
            let symbol = Symbol { tracing: tracing.clone(), number: number as u32 };
            let (ty, shape, is_scalar) = (node.ty(), node.shape().clone(), node.one_value().is_some());
            symbols.push(match is_scalar {
                true => Node::pending(self, ty, shape.clone(), Op::Fill(Scalar::symbolic(ty, symbol)), smallvec![]),
                false => Node::symbolic(self, ty, shape.clone(), symbol),
            });
            kinds.push(Input { ty, shape, is_scalar });
        }
        let traced = function(&symbols).and_then(|outputs| {
            outputs.iter().try_for_each(|output| self.owns("function", output))?;
            self.evaluate(&outputs)?;
            Ok(outputs)
        });
        let steps = tracing.lock().take();
        let (outputs, (mut stages, symbols)) = (traced?, steps.unwrap_or_default());
        let outcome = |node: &Node| match node.state() {
            State::Ready(buffer) => Ok((node.ty(), node.shape().clone(), Outcome::Known(buffer))),
            State::Symbolic(symbol) if Arc::ptr_eq(&symbol.tracing, &tracing) => {
                Ok((node.ty(), node.shape().clone(), Outcome::Symbol(symbol.number)))
            }
            State::Symbolic(_) | State::Pending(_) => Err(unknown("function")),
        };
        let results = outputs.iter().map(outcome).collect::<Result<Vec<_>>>()?;
        let mut needed: Vec<bool> = vec![false; symbols as usize];
        for (_, _, outcome) in &results {
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
        Ok(Template { context: self.clone(), inputs: kinds, stages, symbols: symbols as usize, results })
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
                own.ty == node.ty() && own.shape == *node.shape() && own.is_scalar == node.one_value().is_some()
            })
    }

    /// Computes it for these inputs. Returns before the work is done.
    pub fn call(&self, inputs: &[Node]) -> Result<Vec<Node>> {
        if inputs.len() != self.inputs.len() {
            let reason = format!("a template of {} inputs is called with {}", self.inputs.len(), inputs.len());
            return Err(Error::Plan { what: "a call".into(), reason });
        }
        let mut memory: SmallVec<[Option<Buffer<u8>>; 8]> = SmallVec::from_elem(None, self.symbols);
        let mut values: SmallVec<[Lanes; 4]> = SmallVec::from_elem(Lanes::new(), inputs.len());
        for (number, (own, node)) in self.inputs.iter().zip(inputs).enumerate() {
            self.context.owns("function", node)?;
            if node.ty() != own.ty {
                return Err(Error::Types { operation: "function".into(), left: own.ty, right: node.ty() });
            }
            if *node.shape() != own.shape {
                let (left, right) = (own.shape.clone(), node.shape().clone());
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
            let results = self.context.run(&stage.fitted, &buffers, scalars)?;
            for (number, buffer) in (stage.first as usize..).zip(results) {
                memory[number] = Some(buffer);
            }
            for dead in &stage.dead {
                memory[*dead as usize] = None;
            }
        }
        let node = |(ty, shape, outcome): &(Type, Shape, Outcome)| {
            let buffer = match outcome {
                Outcome::Known(buffer) => Some(buffer.clone()),
                Outcome::Symbol(number) => memory[*number as usize].clone(),
            };
            let buffer = buffer.ok_or_else(|| unknown("function"))?;
            Ok(Node::ready(&self.context, *ty, shape.clone(), buffer))
        };
        self.results.iter().map(node).collect()
    }

    /// How many kernels a call launches.
    pub fn kernels(&self) -> u64 {
        self.stages.iter().map(|stage| stage.fitted.launches()).sum()
    }
}
