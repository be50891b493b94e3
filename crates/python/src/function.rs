//! Functions of single elements that Python describes, one instruction after the other.
//!
//! The package compiles Python functions to lists of tuples. The first item of a tuple is a name; see
//! [`Code::instruction`]. Values are named by the number of the instruction that gives them.

use crate::arrays::{literals, shape, type_named};
use crate::call::{Answer, Arguments, Entry};
use crate::complex;
use crate::error::{of_graph, refused};
use crate::handle::Handle;
use broadloom::graph::{Boundary, Combine, Elementwise, Node};
use broadloom_scalar::{Accessor, AccessorKind, Array, Builder, Function, Operand, Type, Unroll, Value, Variable};
use broadloom_skeleton::Operator;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ffi::CStr;

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"function", c"function(name, instructions, results): a function of single elements.", function),
    (c"call_function", c"call_function(function, nodes): its results for each element.", call),
    (c"call_window", c"call_window(function, node, beside, reach, outside): its results for each neighbourhood.", window),
    (c"reduce_by", c"reduce_by(node, function, identity, axes): combined along axes by a function.", reduce_by),
    (c"scan_by", c"scan_by(node, function, identity, axis): prefixes combined by a function.", scan_by),
];

impl Handle for Function {
    const NAME: &'static CStr = c"broadloom.function";
}

/// Value, variable, local array or window that an instruction makes.
#[derive(Clone, Copy)]
enum InstructionResult {
    Value(Value),
    Variable(Variable),
    Array(Array),
    Window(Accessor),
    Nothing,
}

/// A function under construction.
struct Code {
    builder: Builder,
    given: Vec<InstructionResult>,
}

/// An instruction: its name and its arguments.
struct Instruction<'py>(Bound<'py, PyTuple>);

impl<'py> Instruction<'py> {
    fn get<T: FromPyObjectOwned<'py>>(&self, index: usize) -> PyResult<T> {
        self.0.get_item(index)?.extract::<T>().map_err(Into::into)
    }
}

impl Code {
    fn given(&self, number: usize) -> PyResult<InstructionResult> {
        self.given.get(number).copied().ok_or_else(|| refused(format!("instruction {number} is not there yet")))
    }

    fn value(&self, number: usize) -> PyResult<Value> {
        match self.given(number)? {
            InstructionResult::Value(value) => Ok(value),
            _ => Err(refused(format!("instruction {number} gives no value"))),
        }
    }

    fn variable(&self, number: usize) -> PyResult<Variable> {
        match self.given(number)? {
            InstructionResult::Variable(variable) => Ok(variable),
            _ => Err(refused(format!("instruction {number} is no variable"))),
        }
    }

    fn array(&self, number: usize) -> PyResult<Array> {
        match self.given(number)? {
            InstructionResult::Array(array) => Ok(array),
            _ => Err(refused(format!("instruction {number} is no local array"))),
        }
    }

    /// Applies an operation of the table of operations.
    fn operation(&self, number: usize, operands: &[usize]) -> PyResult<Value> {
        let values = operands.iter().map(|operand| self.value(*operand)).collect::<PyResult<Vec<Value>>>()?;
        let b = &self.builder;
        let last = values.last().map(|value| b.type_of(*value));
        let operation = crate::arrays::operation_numbered(number)?;
        let operation = match last {
            Some(ty) if !ty.is_scalar() => complex::operation(operation, ty).map_err(of_graph)?,
            _ => operation,
        };
        Ok(match (&operation, values.as_slice()) {
            (Elementwise::Unary(op), [x]) => b.unary(*op, *x),
            (Elementwise::Binary(op), [x, y]) => b.binary(*op, x, y),
            (Elementwise::Compare(op), [x, y]) => b.compare(*op, x, y),
            (Elementwise::Math(function, precision), values) => b.math(*function, *precision, values),
            (Elementwise::Select, [condition, x, y]) => b.select(condition, x, y),
            (Elementwise::Fma, [x, y, z]) => b.fma(x, y, z),
            (Elementwise::Call(function, _), values) => {
                b.inline(function, values, &mut []).first().copied().unwrap_or_else(|| b.poison())
            }
            (operation, values) => return Err(refused(format!("`{operation}` of {} values", values.len()))),
        })
    }

    /// Adds an instruction.
    fn instruction(&mut self, name: &str, one: &Instruction<'_>) -> PyResult<InstructionResult> {
        let b = &self.builder;
        Ok(match name {
            "parameter" => InstructionResult::Value(b.parameter(&one.get::<String>(1)?, type_named(&one.get::<String>(2)?)?)),
            "window" => {
                let ty = type_named(&one.get::<String>(2)?)?;
                InstructionResult::Window(b.accessor(&one.get::<String>(1)?, AccessorKind::Window, ty, one.get(3)?))
            }
            "constant" => {
                let lanes = literals(&one.0.get_item(2)?, type_named(&one.get::<String>(1)?)?)?;
                let lanes: Vec<Value> = lanes.iter().map(|lane| b.literal(*lane)).collect();
                InstructionResult::Value(b.vector(&lanes))
            }
            "operation" => InstructionResult::Value(self.operation(one.get(1)?, &one.get::<Vec<usize>>(2)?)?),
            "convert" => {
                let (value, ty) = (self.value(one.get(1)?)?, type_named(&one.get::<String>(2)?)?);
                InstructionResult::Value(match complex::conversion(b.type_of(value), ty) {
                    None => b.convert(value, ty.element()),
                    Some(Ok(Elementwise::Call(function, _))) => {
                        b.inline(&function, &[value], &mut []).first().copied().unwrap_or_else(|| b.poison())
                    }
                    Some(_) => b.poison(),
                })
            }
            "variable" => InstructionResult::Variable(b.variable(type_named(&one.get::<String>(1)?)?)),
            "get" => InstructionResult::Value(b.get(self.variable(one.get(1)?)?)),
            "set" => {
                b.set(self.variable(one.get(1)?)?, self.value(one.get(2)?)?);
                InstructionResult::Nothing
            }
            "array" => InstructionResult::Array(b.array(type_named(&one.get::<String>(1)?)?, one.get(2)?)),
            "element" => InstructionResult::Value(b.element(self.array(one.get(1)?)?, self.value(one.get(2)?)?)),
            "set_element" => {
                b.set_element(self.array(one.get(1)?)?, self.value(one.get(2)?)?, self.value(one.get(3)?)?);
                InstructionResult::Nothing
            }
            "neighbour" => {
                let InstructionResult::Window(window) = self.given(one.get(1)?)? else {
                    return Err(refused("a neighbour of no window"));
                };
                let offsets = one.get::<Vec<usize>>(2)?;
                let offsets =
                    offsets.into_iter().map(|offset| self.value(offset).map(Operand::from)).collect::<PyResult<Vec<_>>>()?;
                InstructionResult::Value(b.window(window, &offsets))
            }
            "if" => {
                b.begin_if(self.value(one.get(1)?)?);
                InstructionResult::Nothing
            }
            "else" => {
                b.begin_else();
                InstructionResult::Nothing
            }
            "end_if" => {
                b.end_if();
                InstructionResult::Nothing
            }
            "while" => {
                b.begin_while();
                InstructionResult::Nothing
            }
            "do" => {
                b.begin_while_body(self.value(one.get(1)?)?);
                InstructionResult::Nothing
            }
            "end_while" => {
                b.end_while();
                InstructionResult::Nothing
            }
            "for" => {
                let bounds = [self.value(one.get(1)?)?, self.value(one.get(2)?)?];
                InstructionResult::Value(b.begin_for(bounds[0], bounds[1], one.get::<i64>(3)?, Unroll::Auto))
            }
            "end_for" => {
                b.end_for();
                InstructionResult::Nothing
            }
            "break" => {
                b.break_loop();
                InstructionResult::Nothing
            }
            "continue" => {
                b.continue_loop();
                InstructionResult::Nothing
            }
            other => return Err(refused(format!("`{other}` is no instruction"))),
        })
    }
}

fn function(arguments: &Arguments<'_, '_>) -> Answer {
    let mut code = Code { builder: Builder::function(&arguments.get::<String>(0)?), given: vec![] };
    for one in arguments.any(1)?.try_iter()? {
        let one = Instruction(one?.cast_into::<PyTuple>()?);
        let given = code.instruction(&one.get::<String>(0)?, &one)?;
        code.given.push(given);
    }
    let results = arguments.get::<Vec<usize>>(2)?;
    let results = results.into_iter().map(|result| code.value(result)).collect::<PyResult<Vec<Value>>>()?;
    let function = code.builder.finish_function(&results).map_err(|error| of_graph(error.into()))?;
    arguments.wrap(function)
}

fn call(arguments: &Arguments<'_, '_>) -> Answer {
    let (function, nodes) = (arguments.handle::<Function>(0)?, arguments.handles::<Node>(1)?);
    let results = Node::call(&function, &nodes.iter().collect::<Vec<&Node>>());
    arguments.wrap_all(results.map_err(of_graph)?)
}

fn window(arguments: &Arguments<'_, '_>) -> Answer {
    let (function, node) = (arguments.handle::<Function>(0)?, arguments.handle::<Node>(1)?);
    let (beside, reach) = (arguments.handles::<Node>(2)?, arguments.get::<Vec<(u32, u32)>>(3)?);
    let boundary = match crate::arrays::boundary(arguments, 4, node.ty())?.unwrap_or(Boundary::Clamp) {
        Boundary::Constant(lanes) => Boundary::Constant(vec![lanes]),
        Boundary::Clamp => Boundary::Clamp,
        Boundary::Wrap => Boundary::Wrap,
        Boundary::Mirror => Boundary::Mirror,
    };
    let beside: Vec<&Node> = beside.iter().collect();
    arguments.wrap_all(Node::window(&function, &[&node], &beside, &reach, &boundary).map_err(of_graph)?)
}

/// Returns the operator of a function of two elements. The function is associative and has this identity.
fn operator(arguments: &Arguments<'_, '_>, ty: Type) -> PyResult<Combine> {
    let identity = literals(&arguments.any(2)?, ty)?;
    let operator = Operator::new(arguments.handle::<Function>(1)?, &identity, false);
    Ok(Combine::By(operator.map_err(|error| of_graph(error.into()))?.into()))
}

fn reduce_by(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(0)?;
    let axes = shape(arguments, 3)?;
    arguments.wrap(node.reduce(operator(arguments, node.ty())?, axes.extents()).map_err(of_graph)?)
}

fn scan_by(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(0)?;
    arguments.wrap(node.scan(operator(arguments, node.ty())?, arguments.get(3)?, true).map_err(of_graph)?)
}
