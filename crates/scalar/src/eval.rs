//! The evaluator: runs a function on values of the host, statement by statement.
//!
//! It is the simple implementation to which lowered code is compared. It knows no schedule and no
//! simplification. It computes a node when a statement needs it, and forgets it after any placed operation.
//! It reports operations that the language leaves undefined: indices outside of arrays, elements that were
//! never set, broken promises, endless loops.

use crate::body::{Body, Statement};
use crate::error::{Error, Result};
use crate::forms::{Form, LinearForm, Tape};
use crate::function::Function;
use crate::id::{BlockId, Id};
use crate::op::{BinaryOp, Op, UnaryOp, placed_op};
use crate::semantics;
use crate::types::{Literal, Type};
use smallvec::{SmallVec, smallvec};

/// The lanes of a value.
pub type Lanes = SmallVec<[Literal; 1]>;

/// The arrays of the accessors of a function during evaluation. Accessors are numbered in order of
/// declaration. `None` is an error.
#[allow(unused_variables, reason = "the defaults give nothing")]
pub trait Environment {
    /// Returns the element of an input at a position.
    fn read(&mut self, accessor: usize, position: &[i128]) -> Option<Lanes> {
        None
    }
    /// Returns the element of a window at offsets.
    fn window(&mut self, accessor: usize, offsets: &[i128]) -> Option<Lanes> {
        None
    }
    /// Stores a value in an output at a position.
    fn write(&mut self, accessor: usize, position: &[i128], value: &[Literal]) -> Option<()> {
        None
    }
    /// Takes the next element of a queue.
    fn pop(&mut self, accessor: usize) -> Option<Lanes> {
        None
    }
    /// Returns an element of a queue, counted from the next one.
    fn peek(&mut self, accessor: usize, offset: i128) -> Option<Lanes> {
        None
    }
    /// Appends an element to a queue.
    fn push(&mut self, accessor: usize, value: &[Literal]) -> Option<()> {
        None
    }
}

/// An environment without accessors.
impl Environment for () {}

/// Maximum number of executed statements. More count as an endless loop.
const FUEL: u64 = 5_000_000;

impl Function {
    /// Evaluates the function for these arguments, one literal for each lane of each parameter. Results have
    /// the same form.
    pub fn evaluate(&self, arguments: &[Literal]) -> Result<Vec<Literal>> {
        self.evaluate_in(arguments, &mut ())
    }

    /// Evaluates the function with accessors.
    pub fn evaluate_in(&self, arguments: &[Literal], environment: &mut dyn Environment) -> Result<Vec<Literal>> {
        Ok(self.run(arguments, environment, None)?.0)
    }

    /// Evaluates the function once for all values of its inputs. Each written value must be a constant plus a
    /// sum of inputs with constant factors. Accessors have one axis.
    pub fn linear_forms(&self, arguments: &[Literal]) -> Result<Vec<LinearForm>> {
        let tape = self.run(arguments, &mut (), Some(Tape::default()))?.1;
        Ok(tape.map(Tape::finish).unwrap_or_default())
    }

    fn run(
        &self,
        arguments: &[Literal],
        environment: &mut dyn Environment,
        tape: Option<Tape>,
    ) -> Result<(Vec<Literal>, Option<Tape>)> {
        // The expansions of elementary functions are evaluated, not those of a library.
        let plain = crate::simplify::expand_math(self)?;
        let body = plain.body();
        let mut parameters = vec![];
        let mut rest = arguments.iter().copied();
        for parameter in plain.parameters() {
            let lanes: Lanes = rest.by_ref().take(parameter.ty.lanes()).collect();
            let fits = lanes.len() == parameter.ty.lanes() && lanes.iter().all(|lane| lane.element() == parameter.ty.element());
            if !fits {
                return Err(evaluation(self.name(), format!("the argument for `{}` is no `{}`", parameter.name, parameter.ty)));
            }
            parameters.push(lanes);
        }
        if rest.next().is_some() {
            return Err(evaluation(self.name(), "there are more arguments than parameters".into()));
        }
        let mut thread = Thread {
            name: self.name(),
            body,
            parameters,
            environment,
            placed: vec![None; body.nodes.len()],
            cache: vec![None; body.nodes.len()],
            time: 0,
            vars: body.vars.iter().map(|element| Literal::zero(*element)).collect(),
            arrays: body.arrays.iter().map(|array| vec![None; array.length as usize]).collect(),
            fuel: FUEL,
            tape,
            node_forms: vec![None; body.nodes.len()],
            var_forms: vec![None; body.vars.len()],
            array_forms: body.arrays.iter().map(|array| vec![None; array.length as usize]).collect(),
        };
        thread.block(Body::ENTRY)?;
        let mut results = vec![];
        for result in plain.results() {
            results.extend(thread.value(*result)?);
        }
        Ok((results, thread.tape))
    }
}

fn evaluation(name: &str, reason: String) -> Error {
    Error::Evaluation { name: name.to_owned(), reason }
}

/// The ways in which a block ends.
#[derive(Clone, Copy, PartialEq)]
enum BlockEnd {
    On,
    Break,
    Continue,
}

struct Thread<'a> {
    name: &'a str,
    body: &'a Body,
    parameters: Vec<Lanes>,
    environment: &'a mut dyn Environment,
    placed: Vec<Option<Lanes>>,
    /// Pure values, with the time at which they were computed.
    cache: Vec<Option<(u64, Lanes)>>,
    /// Number of placed operations so far.
    time: u64,
    vars: Vec<Literal>,
    arrays: Vec<Vec<Option<Literal>>>,
    fuel: u64,
    /// Sums and products of inputs, if inputs are symbolic. Literals then are the values for inputs of zero.
    tape: Option<Tape>,
    node_forms: Vec<Option<Form>>,
    var_forms: Vec<Option<Form>>,
    array_forms: Vec<Vec<Option<Form>>>,
}

impl Thread<'_> {
    fn fail<T>(&self, reason: impl Into<String>) -> Result<T> {
        Err(evaluation(self.name, reason.into()))
    }

    fn burn(&mut self) -> Result<()> {
        self.fuel = self.fuel.saturating_sub(1);
        if self.fuel == 0 { self.fail("it does not come to an end") } else { Ok(()) }
    }

    fn known(&self, id: Id) -> Option<&Lanes> {
        if !self.body.node(id).op.is_pure() {
            return self.placed[id.index()].as_ref();
        }
        self.cache[id.index()].as_ref().filter(|(time, _)| *time == self.time).map(|(_, lanes)| lanes)
    }

    /// Returns the value of a node. Computes operands first, without recursion.
    fn value(&mut self, id: Id) -> Result<Lanes> {
        let mut stack = vec![id];
        while let Some(top) = stack.last().copied() {
            if self.known(top).is_some() {
                stack.pop();
                continue;
            }
            if !self.body.node(top).op.is_pure() {
                return self.fail("a value is used before it is there");
            }
            let before = stack.len();
            self.body.node(top).op.each_operand(|operand| {
                if self.known(operand).is_none() {
                    stack.push(operand);
                }
            });
            if stack.len() == before {
                let lanes = self.pure(top)?;
                self.node_forms[top.index()] = self.form(top)?;
                self.cache[top.index()] = Some((self.time, lanes));
                stack.pop();
            }
        }
        Ok(self.known(id).cloned().unwrap_or_default())
    }

    fn scalar(&mut self, id: Id) -> Result<Literal> {
        match self.value(id)?.first() {
            Some(literal) => Ok(*literal),
            None => self.fail("a value without lanes"),
        }
    }

    fn integer(&mut self, id: Id) -> Result<i128> {
        match self.scalar(id)?.as_i128() {
            Some(value) => Ok(value),
            None => self.fail("expected an integer"),
        }
    }

    fn integers(&mut self, ids: &[Id]) -> Result<Vec<i128>> {
        ids.iter().map(|id| self.integer(*id)).collect()
    }

    /// Computes a pure node whose operands are known.
    fn pure(&mut self, id: Id) -> Result<Lanes> {
        let node = self.body.node(id);
        let element = node.ty.element();
        let one =
            |this: &Self, id: &Id| this.known(*id).and_then(|lanes| lanes.first()).copied().unwrap_or(Literal::zero(element));
        Ok(match &node.op {
            Op::Literal(literal) => smallvec![*literal],
            Op::Parameter(index) => self.parameters[*index as usize].clone(),
            Op::Unary(op, x) => smallvec![semantics::unary(*op, one(self, x))],
            Op::Binary(op, x, y) => smallvec![semantics::binary(*op, one(self, x), one(self, y))],
            Op::Compare(op, x, y) => smallvec![semantics::compare(*op, one(self, x), one(self, y)).into()],
            Op::Fma(x, y, z) => smallvec![semantics::fma(one(self, x), one(self, y), one(self, z))],
            Op::Select(c, x, y) => {
                let chosen = if one(self, c).bits() != 0 { x } else { y };
                smallvec![one(self, chosen)]
            }
            Op::Convert(x) => smallvec![semantics::convert(one(self, x), element)],
            Op::Bitcast(x) => smallvec![semantics::bitcast(one(self, x), element)],
            Op::Vector(lanes) => lanes.iter().map(|lane| one(self, lane)).collect(),
            Op::Lane(vector, lane) => {
                let lanes = self.known(*vector).cloned().unwrap_or_default();
                lanes.get(usize::from(*lane)).copied().into_iter().collect()
            }
            Op::Table(table, index) => {
                let entries = &self.body.table(*table).entries;
                let index = (one(self, index).bits() as usize).min(entries.len() - 1);
                smallvec![entries[index]]
            }
            Op::Assume(x, low, high) => {
                let value = one(self, x);
                if !value.as_i128().is_some_and(|value| (*low..=*high).contains(&value)) {
                    return self.fail(format!("{value} is not between {low} and {high}, as was promised"));
                }
                smallvec![value]
            }
            Op::Math(function, ..) => {
                return Err(Error::NoSuchMath { function: function.name(), element: element.name() });
            }
            Op::Special(_) | Op::SharedAddress(_) | Op::LocalAddress(_) => {
                return self.fail("only kernels on a device have this");
            }
            placed_op!() => return self.fail("a placed value without a place"),
        })
    }

    /// Returns the part of a pure node that depends on inputs.
    fn form(&mut self, id: Id) -> Result<Option<Form>> {
        if self.tape.is_none() {
            return Ok(None);
        }
        let (node, mut depends) = (self.body.node(id), false);
        node.op.each_operand(|operand| depends |= self.node_forms[operand.index()].is_some());
        if !depends {
            return Ok(None);
        }
        let of = |id: &Id| self.node_forms[id.index()];
        let number = |id: &Id| self.known(*id).and_then(|lanes| lanes.first()?.as_f64());
        let is_float = |id: &Id| self.body.type_of(*id).element().is_float();
        let factor = |x: &Id, y: &Id| match (of(x), of(y)) {
            (Some(form), None) => Some((form, number(y)?)),
            (None, Some(form)) => Some((form, number(x)?)),
            _ => None,
        };
        let (scaled, added) = match &node.op {
            Op::Unary(UnaryOp::Neg, x) => (of(x).map(|form| (form, -1.0)), None),
            Op::Binary(BinaryOp::Add, x, y) => (of(x).map(|form| (form, 1.0)), of(y)),
            Op::Binary(BinaryOp::Sub, x, y) => (of(y).map(|form| (form, -1.0)), of(x)),
            Op::Binary(BinaryOp::Mul, x, y) if of(x).is_some() != of(y).is_some() => (factor(x, y), None),
            Op::Binary(BinaryOp::Div, x, y) if of(y).is_none() => (of(x).and_then(|form| Some((form, number(y)?.recip()))), None),
            Op::Fma(x, y, z) if of(x).is_none() || of(y).is_none() => (factor(x, y), of(z)),
            Op::Select(condition, x, y) if of(condition).is_none() => {
                let holds = self.known(*condition).is_some_and(|lanes| lanes.first().is_some_and(|lane| lane.bits() != 0));
                let chosen = if holds { x } else { y };
                (of(chosen).map(|form| (form, 1.0)), None)
            }
            Op::Convert(x) if node.ty.element().is_float() && is_float(x) => (of(x).map(|form| (form, 1.0)), None),
            _ => return self.fail("a value is not linear in what is read"),
        };
        let Some(tape) = &mut self.tape else { return Ok(None) };
        let scaled = scaled.map(|(form, factor)| tape.scale(form, factor));
        Ok(match (scaled, added) {
            (Some(one), Some(other)) => Some(tape.add(one, other)),
            (one, other) => one.or(other),
        })
    }

    /// Returns the part of a placed node that depends on inputs.
    fn accessed_form(&mut self, op: &Op) -> Result<Option<Form>> {
        Ok(match op {
            Op::Get(var) => self.var_forms[var.index()],
            Op::Element(array, index) => {
                let index = usize::try_from(self.integer(*index)?).ok();
                index.and_then(|index| self.array_forms[array.index()].get(index).copied().flatten())
            }
            Op::Read(accessor, position) => {
                let position = self.integers(position)?;
                match (&position[..], &mut self.tape) {
                    ([position], Some(tape)) => Some(tape.input(accessor.index(), *position)),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// Executes a placed node.
    fn define(&mut self, id: Id) -> Result<()> {
        let node = self.body.node(id);
        if self.tape.is_some() {
            self.node_forms[id.index()] = self.accessed_form(&node.op)?;
        }
        let accessed = match &node.op {
            Op::Get(var) => Some(smallvec![self.vars[var.index()]]),
            Op::Element(array, index) => {
                let index = self.integer(*index)?;
                let found = usize::try_from(index).ok().and_then(|index| self.arrays[array.index()].get(index).copied());
                match found {
                    Some(Some(literal)) => Some(smallvec![literal]),
                    Some(None) => return self.fail(format!("element {index} of a local array is read before it is set")),
                    None => return self.fail(format!("index {index} of a local array")),
                }
            }
            Op::Read(accessor, position) => {
                let position = self.integers(position)?;
                match self.node_forms[id.index()] {
                    Some(_) => Some(smallvec![Literal::zero(node.ty.element())]),
                    None => self.environment.read(accessor.index(), &position),
                }
            }
            Op::Window(accessor, offsets) => {
                let offsets = self.integers(offsets)?;
                self.environment.window(accessor.index(), &offsets)
            }
            Op::Pop(accessor) => self.environment.pop(accessor.index()),
            Op::Peek(accessor, offset) => {
                let offset = self.integer(*offset)?;
                self.environment.peek(accessor.index(), offset)
            }
            _ => return self.fail("only kernels on a device have this"),
        };
        match accessed {
            Some(lanes) if fits(&lanes, node.ty) => {
                self.placed[id.index()] = Some(lanes);
                self.time += 1;
                Ok(())
            }
            _ => self.fail("an accessor gives no such value"),
        }
    }

    fn block(&mut self, block: BlockId) -> Result<BlockEnd> {
        let body = self.body;
        for statement in &body.block(block).statements {
            self.burn()?;
            match statement {
                Statement::Define(id) => self.define(*id)?,
                Statement::Set(var, value) => {
                    self.vars[var.index()] = self.scalar(*value)?;
                    self.var_forms[var.index()] = self.node_forms[value.index()];
                }
                Statement::SetElement { array, index, value } => {
                    let (index, new) = (self.integer(*index)?, self.scalar(*value)?);
                    let place = usize::try_from(index).ok().filter(|index| *index < self.arrays[array.index()].len());
                    match place {
                        Some(place) => {
                            self.arrays[array.index()][place] = Some(new);
                            self.array_forms[array.index()][place] = self.node_forms[value.index()];
                        }
                        None => return self.fail(format!("index {index} of a local array")),
                    }
                }
                Statement::Write { accessor, indices, value } => {
                    let form = value.index();
                    let (position, value) = (self.integers(indices)?, self.value(*value)?);
                    if let Some(tape) = &mut self.tape {
                        let [position] = position[..] else { return self.fail("an output with several axes") };
                        let constant = value.first().and_then(|lane| lane.as_f64()).unwrap_or(f64::NAN);
                        tape.write(accessor.index(), position, constant, self.node_forms[form]);
                        continue;
                    }
                    if self.environment.write(accessor.index(), &position, &value).is_none() {
                        return self.fail(format!("position {position:?} cannot be written"));
                    }
                }
                Statement::Push { accessor, value } => {
                    let value = self.value(*value)?;
                    if self.environment.push(accessor.index(), &value).is_none() {
                        return self.fail("a queue takes nothing");
                    }
                }
                Statement::If { condition, then, otherwise } => {
                    let chosen = if self.scalar(*condition)?.bits() != 0 { *then } else { *otherwise };
                    let flow = self.block(chosen)?;
                    if flow != BlockEnd::On {
                        return Ok(flow);
                    }
                }
                Statement::For { counter, start, end, step, body, .. } => self.count(*counter, [*start, *end, *step], *body)?,
                Statement::While { head, condition, body } => loop {
                    self.burn()?;
                    self.block(*head)?;
                    if self.scalar(*condition)?.bits() == 0 || self.block(*body)? == BlockEnd::Break {
                        break;
                    }
                },
                Statement::Break => return Ok(BlockEnd::Break),
                Statement::Continue => return Ok(BlockEnd::Continue),
                Statement::Store { .. }
                | Statement::Prefetch { .. }
                | Statement::Barrier
                | Statement::WarpBarrier(_)
                | Statement::Fence(_) => {
                    return self.fail("only kernels on a device have this");
                }
            }
        }
        Ok(BlockEnd::On)
    }

    fn count(&mut self, counter: Id, [start, end, step]: [Id; 3], block: BlockId) -> Result<()> {
        let downwards = self.body.literal(step).and_then(Literal::as_i128).is_some_and(|step| step < 0);
        let element = self.body.type_of(counter).element();
        let (mut value, end, step) = (self.integer(start)?, self.integer(end)?, self.integer(step)?);
        while if downwards { value > end } else { value < end } {
            self.burn()?;
            self.placed[counter.index()] = Some(smallvec![Literal::from_i128(element, value)]);
            self.time += 1;
            if self.block(block)? == BlockEnd::Break {
                break;
            }
            value = Literal::from_i128(element, value + step).as_i128().unwrap_or(0);
        }
        Ok(())
    }
}

fn fits(lanes: &Lanes, ty: Type) -> bool {
    lanes.len() == ty.lanes() && lanes.iter().all(|lane| lane.element() == ty.element())
}
