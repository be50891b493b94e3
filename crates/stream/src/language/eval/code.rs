//! Evaluation of functions: statements and expressions of core.

use super::budget::Budget;
use super::show::{show_value, write_value};
use super::stop::Stop;
use super::{arithmetic, element};
use crate::language::codes;
use crate::language::core::{
    Access, Binary, Create, Created, DeclaredType, Distribution, Expr, ExprKind, Function, FunctionId, Layout, Place, Program,
    Role, Stmt, StmtKind, Type, Value,
};
use broadloom_diag::Span;
use std::sync::Arc;

/// The environment of the code: the tapes of a firing, or the graph under construction.
pub(crate) trait World {
    fn pop(&mut self, span: Span) -> Result<Value, Stop>;
    fn peek(&mut self, index: i32, span: Span) -> Result<Value, Stop>;
    fn push(&mut self, value: Value, span: Span) -> Result<(), Stop>;
    /// Prints what a function appends to a text.
    fn print(&mut self, append: &dyn Fn(&mut String)) -> Result<(), Stop>;
    fn iterations(&self) -> i32;
    fn random(&mut self) -> f64;
    fn send(&mut self, portal: u32, handler: &Arc<str>, args: Vec<Value>, latency: i32, span: Span) -> Result<(), Stop>;
    fn portal(&mut self) -> u32;
    fn create(
        &mut self,
        role: Role,
        create: &Create,
        args: Vec<Value>,
        portals: Vec<u32>,
        item: Option<Layout>,
    ) -> Result<(), Stop>;
    fn split(&mut self, weights: Weights, span: Span) -> Result<(), Stop>;
    fn join(&mut self, weights: Weights, span: Span) -> Result<(), Stop>;
    fn enqueue(&mut self, value: Value, span: Span) -> Result<(), Stop>;
    fn read_numbers(&mut self, file: &str, count: u32, span: Span) -> Result<Vec<f64>, Stop>;
    fn budget(&mut self) -> &mut Budget;
}

/// Evaluated weights of a splitter or a joiner.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    Duplicate,
    Even(u32),
    Each(Vec<u32>),
}

/// The control flow after a statement.
enum Flow {
    Next,
    Break,
    Continue,
    /// The value is in [`Code::returned`].
    Return,
}

/// Steps that are counted before they are charged to the budget.
const CHUNK: u64 = 1024;

/// An evaluation with the variables visible to its code.
pub(crate) struct Code<'a, W> {
    pub(crate) program: &'a Program,
    pub(crate) params: &'a [Value],
    pub(crate) fields: Vec<Value>,
    pub(crate) statics: Arc<Vec<Value>>,
    pub(crate) world: &'a mut W,
    pub(super) stack: Vec<Value>,
    pub(super) base: usize,
    /// The value of the last `return`.
    returned: Value,
    steps: u64,
}

impl<'a, W: World> Code<'a, W> {
    pub(crate) fn new(
        program: &'a Program,
        params: &'a [Value],
        fields: Vec<Value>,
        statics: Arc<Vec<Value>>,
        world: &'a mut W,
    ) -> Self {
        Code { program, params, fields, statics, world, stack: vec![], base: 0, returned: Value::Unset, steps: 0 }
    }

    /// Counts a step. Fails at the limit.
    fn step(&mut self, span: Span) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps >= CHUNK {
            self.charge(span)?;
        }
        Ok(())
    }

    fn charge(&mut self, span: Span) -> Result<(), Stop> {
        let steps = std::mem::take(&mut self.steps);
        let budget = self.world.budget();
        budget.steps = budget.steps.saturating_add(steps);
        budget.limits.check_stop(span)?;
        if budget.steps > budget.limits.steps {
            let message = format!("the program was stopped after {} steps", budget.limits.steps);
            return Err(Stop::error(codes::STEPS, message, span).help("end the loop or the recursion, or do less"));
        }
        if budget.steps > budget.firing_end {
            let message = format!("a firing was stopped after {} steps", budget.limits.firing);
            return Err(Stop::error(codes::STEPS, message, span).help("end the loop or the recursion, or do less in one firing"));
        }
        Ok(())
    }

    fn allocate(&mut self, cells: u64, span: Span) -> Result<(), Stop> {
        let budget = self.world.budget();
        budget.cells = budget.cells.saturating_add(cells);
        if budget.cells > budget.limits.cells {
            let message = format!("the program needs more memory than the limit of {} scalars", budget.limits.cells);
            return Err(Stop::error(codes::MEMORY, message, span).help("make arrays smaller, or calls fewer"));
        }
        Ok(())
    }

    /// Calls a function from outside of an evaluation.
    pub(crate) fn enter(&mut self, id: FunctionId, args: Vec<Value>) -> Result<Value, Stop> {
        let function = &self.program.functions[id];
        let base = self.stack.len();
        self.stack.extend(args);
        let result = self.invoke(function, base, function.span)?;
        self.stack.truncate(base);
        self.charge(function.span)?;
        Ok(result)
    }

    /// Calls a function whose arguments are on the stack, from `base` on. They stay there so that written
    /// arguments can be copied back.
    fn invoke(&mut self, function: &'a Function, base: usize, span: Span) -> Result<Value, Stop> {
        let Some(body) = &function.body else {
            let message = format!("the function `{}` is native and has no definition here", function.name);
            return Err(Stop::error(codes::RUN_TIME, message, span).help("write it as a function of a `helper` package"));
        };
        self.step(span)?;
        let budget = self.world.budget();
        budget.depth += 1;
        if budget.depth > budget.limits.depth || !budget.has_stack() {
            let message = format!("calls are nested deeper than the limit of {}", budget.limits.depth);
            return Err(Stop::error(codes::DEPTH, message, span).help("end the recursion, or write it as a loop"));
        }
        let caller = std::mem::replace(&mut self.base, base);
        self.stack.resize(base + function.locals.len(), Value::Unset);
        let flow = self.block(body);
        self.base = caller;
        let freed: u64 = self.stack[base..].iter().skip(function.params).map(aggregate_cells).sum();
        let budget = self.world.budget();
        budget.depth -= 1;
        budget.cells = budget.cells.saturating_sub(freed);
        Ok(match flow? {
            Flow::Return => std::mem::replace(&mut self.returned, Value::Unset),
            Flow::Next | Flow::Break | Flow::Continue => Value::Unset,
        })
    }

    fn block(&mut self, statements: &'a [Stmt]) -> Result<Flow, Stop> {
        for stmt in statements {
            match self.stmt(stmt)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &'a Stmt) -> Result<Flow, Stop> {
        match &stmt.kind {
            StmtKind::Block(inner) => return self.block(inner),
            StmtKind::Declare(local, declared, value) => self.declare(*local, declared, value.as_ref())?,
            StmtKind::Assign(place, operator, value) => self.assign(place, *operator, value, stmt.span)?,
            StmtKind::Expr(expr) => drop(self.eval(expr)?),
            StmtKind::Push(value) => {
                let value = self.eval(value)?;
                self.world.push(value, stmt.span)?;
            }
            StmtKind::Print(value, newline) => {
                let value = self.eval(value)?;
                self.world.print(&|text| {
                    write_value(&value, text);
                    if *newline {
                        text.push('\n');
                    }
                })?;
            }
            StmtKind::If(condition, then, otherwise) => {
                if self.truth(condition)? {
                    return self.stmt(then);
                }
                if let Some(otherwise) = otherwise {
                    return self.stmt(otherwise);
                }
            }
            StmtKind::Loop(condition, step, body, tested_first) => {
                let mut test = *tested_first;
                loop {
                    self.step(stmt.span)?;
                    if test
                        && let Some(condition) = condition
                        && !self.truth(condition)?
                    {
                        break;
                    }
                    test = true;
                    match self.stmt(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                    }
                    if let Some(step) = step {
                        self.stmt(step)?;
                    }
                }
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Return(value) => {
                self.returned = value.as_ref().map_or(Ok(Value::Unset), |value| self.eval(value))?;
                return Ok(Flow::Return);
            }
            StmtKind::Send(send) => {
                let portal = self.eval(&send.portal)?;
                let args = self.all(&send.args)?;
                let latency = send.latency.as_ref().map_or(Ok(0), |latency| self.int(latency))?;
                if let Value::Portal(portal) = portal {
                    self.world.send(portal, &send.handler, args, latency, stmt.span)?;
                }
            }
            StmtKind::Create(role, create) => {
                let args = self.all(&create.args)?;
                let mut portals = vec![];
                for portal in &create.portals {
                    if let Value::Portal(portal) = self.eval(portal)? {
                        portals.push(portal);
                    }
                }
                let item = match &create.stream {
                    Created::Stream(_) => None,
                    Created::Identity(item) | Created::FileReader(item, _) | Created::FileWriter(item, _) => {
                        Some(self.layout(item)?)
                    }
                };
                self.world.create(*role, create, args, portals, item)?;
            }
            StmtKind::Split(distribution) => {
                let weights = self.weights(distribution)?;
                self.world.split(weights, stmt.span)?;
            }
            StmtKind::Join(distribution) => {
                let weights = self.weights(distribution)?;
                self.world.join(weights, stmt.span)?;
            }
            StmtKind::Enqueue(value) => {
                let value = self.eval(value)?;
                self.world.enqueue(value, stmt.span)?;
            }
        }
        Ok(Flow::Next)
    }

    fn weights(&mut self, distribution: &'a Distribution) -> Result<Weights, Stop> {
        Ok(match distribution {
            Distribution::Duplicate => Weights::Duplicate,
            Distribution::Even(weight) => Weights::Even(self.weight(weight)?),
            Distribution::Weights(weights) => {
                Weights::Each(weights.iter().map(|weight| self.weight(weight)).collect::<Result<_, _>>()?)
            }
        })
    }

    fn weight(&mut self, weight: &'a Expr) -> Result<u32, Stop> {
        let value = self.int(weight)?;
        u32::try_from(value).map_err(|_| {
            let message = format!("the weight is {value}, which is negative");
            Stop::error(codes::BAD_RATE, message, weight.span).help("a weight is 0 or greater")
        })
    }

    fn declare(&mut self, local: usize, declared: &'a DeclaredType, value: Option<&'a Expr>) -> Result<(), Stop> {
        let slot = self.base + local;
        let old = aggregate_cells(&self.stack[slot]);
        let budget = self.world.budget();
        budget.cells = budget.cells.saturating_sub(old);
        self.stack[slot] = Value::Unset;
        let fresh = match (&declared.ty, value) {
            (Type::Array(_) | Type::Struct(_), None) => {
                // The memory is counted before it is taken.
                let layout = self.layout(declared)?;
                self.allocate(layout.cells(), declared.span)?;
                self.stack[slot] = layout.zero();
                return Ok(());
            }
            (Type::Array(_), Some(value)) => self.initial(declared, value)?,
            (Type::Portal(_), None) => Value::Portal(self.world.portal()),
            (_, Some(value)) => self.eval(value)?,
            (_, None) => Value::Unset,
        };
        self.allocate(aggregate_cells(&fresh), declared.span)?;
        self.stack[slot] = fresh;
        Ok(())
    }

    /// Evaluates the initialiser of an array. A list may have fewer elements than the array.
    pub(crate) fn initial(&mut self, declared: &'a DeclaredType, value: &'a Expr) -> Result<Value, Stop> {
        let layout = self.layout(declared)?;
        let given = self.eval(value)?;
        if !matches!(value.kind, ExprKind::List(_)) && !layout.holds(&given) {
            let message = format!("the array has the type {}, but another length is given", layout.show(&self.program.structs));
            return Err(Stop::error(codes::RUN_TIME, message, value.span).help("give both the same length"));
        }
        let advice = "make the array longer, or the list shorter";
        fill(&layout, given).map_err(|error| Stop::error(codes::RUN_TIME, error.to_string(), value.span).help(advice))
    }

    /// Evaluates the lengths of a declared type.
    pub(crate) fn layout(&mut self, declared: &'a DeclaredType) -> Result<Layout, Stop> {
        let mut inner = &declared.ty;
        while let Type::Array(element) = inner {
            inner = element;
        }
        let mut layout = match inner {
            Type::Struct(id) => {
                let members = &self.program.structs[*id].members;
                let members = members.iter().map(|(_, member)| self.layout(member)).collect::<Result<Vec<_>, _>>()?;
                Layout::Struct(*id, members.into())
            }
            other => Layout::Scalar(other.clone()),
        };
        let lengths = declared.lengths.iter().map(|length| self.int(length)).collect::<Result<Vec<_>, _>>()?;
        for length in lengths.into_iter().rev() {
            let length = u32::try_from(length).map_err(|_| {
                let message = format!("the array has the length {length}, which is negative");
                Stop::error(codes::RUN_TIME, message, declared.span).help("check the values that the length is computed from")
            })?;
            layout = Layout::Array(Arc::new(layout), length);
            let budget = self.world.budget();
            if layout.cells() > budget.limits.cells {
                let message = format!("the array is larger than the limit of {} scalars", budget.limits.cells);
                return Err(Stop::error(codes::MEMORY, message, declared.span).help("make it smaller"));
            }
        }
        Ok(layout)
    }

    fn all(&mut self, exprs: &'a [Expr]) -> Result<Vec<Value>, Stop> {
        exprs.iter().map(|expr| self.eval(expr)).collect()
    }

    fn binary(&mut self, operator: Binary, left: &Value, right: &Value, span: Span) -> Result<Value, Stop> {
        arithmetic::binary(operator, left, right).map_err(|message| refused(operator, message, span))
    }

    /// Stores into a place, through an operator if one is given.
    pub(super) fn assign_any(
        &mut self,
        place: &'a Place,
        operator: Option<Binary>,
        value: &'a Expr,
        span: Span,
    ) -> Result<(), Stop> {
        let path = self.resolve(place)?;
        let value = match operator {
            None => self.eval(value)?,
            Some(operator) => {
                let old = self.read_at(place, &path)?;
                let value = self.eval(value)?;
                self.binary(operator, &old, &value, span)?
            }
        };
        self.write_at(place, &path, value)
    }

    /// Evaluates an expression of any type.
    pub(super) fn eval_any(&mut self, expr: &'a Expr) -> Result<Value, Stop> {
        Ok(match &expr.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Read(place) => return self.read(place),
            ExprKind::Part(inner, access) => {
                let value = self.eval(inner)?;
                let index = match &**access {
                    Access::Index(index) => self.int(index)?,
                    Access::Member(_) | Access::Real | Access::Imaginary => 0,
                };
                return element::part(&value, access, index, expr.span);
            }
            ExprKind::Step(place, step, first) => {
                let path = self.resolve(place)?;
                if place.ty == Type::Int
                    && let Value::Int(value) = self.slot(place, &place.path, &path)?
                {
                    let old = std::mem::replace(value, value.wrapping_add(*step));
                    return Ok(Value::Int(if *first { *value } else { old }));
                }
                let old = self.read_at(place, &path)?;
                let new = match &old {
                    Value::Float(value) => Value::Float(value + *step as f32),
                    Value::Double(value) => Value::Double(value + f64::from(*step)),
                    Value::Int(value) => Value::Int(value.wrapping_add(*step)),
                    other => other.clone(),
                };
                let result = if *first { new.clone() } else { old };
                self.write_at(place, &path, new)?;
                result
            }
            ExprKind::Convert(inner) => {
                let value = self.eval(inner)?;
                arithmetic::convert(&value, &expr.ty)
                    .ok_or_else(|| Stop::error(codes::RUN_TIME, "the value cannot be converted", expr.span))?
            }
            ExprKind::Negate(inner) => match self.eval(inner)? {
                Value::Int(value) => Value::Int(value.wrapping_neg()),
                Value::Float(value) => Value::Float(-value),
                Value::Double(value) => Value::Double(-value),
                Value::Complex(real, imaginary) => Value::Complex(-real, -imaginary),
                other => other,
            },
            ExprKind::Not(inner) => Value::Boolean(!self.truth(inner)?),
            ExprKind::Complement(inner) => match self.eval(inner)? {
                Value::Int(value) => Value::Int(!value),
                Value::Bit(value) => Value::Bit(!value),
                other => other,
            },
            ExprKind::Binary(operator, _, left, right) => {
                let left = self.eval(left)?;
                let right = self.eval(right)?;
                return self.binary(*operator, &left, &right, expr.span);
            }
            ExprKind::And(left, right) => Value::Boolean(self.truth(left)? && self.truth(right)?),
            ExprKind::Or(left, right) => Value::Boolean(self.truth(left)? || self.truth(right)?),
            ExprKind::Choose(condition, yes, no) => {
                let chosen = if self.truth(condition)? { yes } else { no };
                return self.eval(chosen);
            }
            ExprKind::Call(id, args) => return self.call(*id, args, expr.span),
            ExprKind::Math(function, args) => {
                let values = self.all(args)?;
                match (function, &values[..]) {
                    (_, [Value::Complex(real, imaginary)]) => {
                        arithmetic::complex(*function, f64::from(*real), f64::from(*imaginary))
                    }
                    (_, [Value::Double(a)]) => Value::Float(arithmetic::math(*function, *a, 0.0) as f32),
                    (_, [Value::Double(a), Value::Double(b)]) => Value::Float(arithmetic::math(*function, *a, *b) as f32),
                    _ => return Err(Stop::error(codes::RUN_TIME, "a number is needed here", expr.span)),
                }
            }
            ExprKind::Random => Value::Double(self.world.random()),
            ExprKind::Pop => return self.world.pop(expr.span),
            ExprKind::Peek(index) => {
                let index = self.int(index)?;
                return self.world.peek(index, expr.span);
            }
            ExprKind::Iter => Value::Int(self.world.iterations()),
            ExprKind::Concat(left, right) => {
                let mut text = show_value(&self.eval(left)?);
                text += &show_value(&self.eval(right)?);
                Value::Text(text.into())
            }
            ExprKind::List(items) => Value::Array(self.all(items)?.into()),
            ExprKind::FileArray(file, length) => {
                let file = self.eval(file)?;
                let length = self.int(length)?;
                let (Value::Text(file), Ok(count)) = (file, u32::try_from(length)) else {
                    return Err(Stop::error(codes::RUN_TIME, "a file name and a length are needed here", expr.span));
                };
                let budget = self.world.budget();
                if u64::from(count) > budget.limits.cells {
                    let message = format!("the array is larger than the limit of {} scalars", budget.limits.cells);
                    return Err(Stop::error(codes::MEMORY, message, expr.span).help("make it smaller"));
                }
                let ints = matches!(&expr.ty, Type::Array(element) if **element == Type::Int);
                let numbers = self.world.read_numbers(&file, count, expr.span)?;
                let value = |number: f64| if ints { Value::Int(number as i32) } else { Value::Float(number as f32) };
                Value::Array(numbers.into_iter().map(value).collect())
            }
        })
    }

    /// Calls a function of the program. Arrays passed for parameters that it writes are copied back at its
    /// return.
    fn call(&mut self, id: FunctionId, args: &'a [Expr], span: Span) -> Result<Value, Stop> {
        let function = &self.program.functions[id];
        let base = self.stack.len();
        let mut back = vec![];
        for (index, arg) in args.iter().enumerate() {
            let value = match &arg.kind {
                ExprKind::Read(place) if function.written[index] => {
                    let path = self.resolve(place)?;
                    back.push((index, place, path));
                    self.read_at(place, &path)?
                }
                _ => self.eval(arg)?,
            };
            self.stack.push(value);
        }
        let result = self.invoke(function, base, span)?;
        for (index, place, path) in back {
            let value = std::mem::replace(&mut self.stack[base + index], Value::Unset);
            self.write_at(place, &path, value)?;
        }
        self.stack.truncate(base);
        Ok(result)
    }
}

/// Returns the error for an operation without a result.
#[cold]
pub(super) fn refused(operator: Binary, message: &str, span: Span) -> Stop {
    let error = Stop::error(codes::RUN_TIME, message, span);
    match operator {
        Binary::Divide | Binary::Modulo => error.help("test the divisor before: `b != 0 ? a / b : 0`"),
        _ => error,
    }
}

/// Returns the number of scalars of an array or struct. Other values count 0.
fn aggregate_cells(value: &Value) -> u64 {
    match value {
        Value::Array(_) | Value::Struct(_) => value.cells(),
        _ => 0,
    }
}

/// Error for more values than an array has elements.
#[derive(Debug, thiserror::Error)]
#[error("{values} values are given for an array of length {length}")]
struct TooManyValues {
    values: usize,
    length: u32,
}

/// Stores the given elements into an array of a layout. Missing elements are zero.
fn fill(layout: &Layout, given: Value) -> Result<Value, TooManyValues> {
    match (layout, given) {
        (Layout::Array(element, length), Value::Array(items)) => {
            if items.len() > *length as usize {
                return Err(TooManyValues { values: items.len(), length: *length });
            }
            let mut parts = Vec::with_capacity(*length as usize);
            for item in items {
                parts.push(fill(element, item)?);
            }
            parts.resize(*length as usize, element.zero());
            Ok(Value::Array(parts.into()))
        }
        (_, other) => Ok(other),
    }
}
