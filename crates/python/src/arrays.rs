//! Functions that make nodes: element-wise operations, views, reductions.

use crate::call::{Answer, Arguments, Entry};
use crate::complex;
use crate::error::{of_graph, refused};
use broadloom::Context;
use broadloom::graph::{AxisMap, Boundary, Combine, Elementwise, Extreme, Node, Result, Rule, Shape};
use broadloom_scalar::{BinaryOp, Builder, CompareOp, Element, Lanes, Literal, MathFunction, Precision, Type, UnaryOp};
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyComplexMethods};
use std::sync::OnceLock;

/// Names of NumPy for the types. A complex number is a vector of two lanes: NumPy's layout in memory.
const TYPES: [(&str, Type); 14] = [
    ("bool", Type::BOOL),
    ("int8", Type::I8),
    ("int16", Type::I16),
    ("int32", Type::I32),
    ("int64", Type::I64),
    ("uint8", Type::U8),
    ("uint16", Type::U16),
    ("uint32", Type::U32),
    ("uint64", Type::U64),
    ("float16", Type::F16),
    ("float32", Type::F32),
    ("float64", Type::F64),
    ("complex64", complex::COMPLEX64),
    ("complex128", complex::COMPLEX128),
];

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"fill", c"fill(context, shape, type, value): one value at all indices.", fill),
    (c"position", c"position(context, shape, axis, type): the index along an axis.", position),
    (c"operation", c"operation(name): the number of an operation on single elements.", operation),
    (c"elementwise", c"elementwise(operation, nodes): an operation on single elements.", elementwise),
    (c"unary", c"unary(operation, node): an operation on one element.", unary),
    (c"binary", c"binary(operation, left, right): an operation on two elements of one type.", binary),
    (c"with_number", c"with_number(operation, node, number, is_first): an operation with a number of its type.", with_number),
    (c"lane", c"lane(node, part): the real (0) or imaginary (1) part of complex numbers.", lane),
    (c"pair", c"pair(real, imaginary): complex numbers.", pair),
    (c"convert", c"convert(node, type): the elements in another type.", convert),
    (c"bitcast", c"bitcast(node, type): the bits of the elements as another type.", bitcast),
    (c"affine", c"affine(node, maps, shape, outside): a view; maps are (axis or -1, offset, stride).", affine),
    (c"reshape", c"reshape(node, shape): the elements in another shape.", reshape),
    (c"broadcast", c"broadcast(node, shape): repeated along axes of extent 1.", broadcast),
    (c"concatenate", c"concatenate(axis, nodes): arrays behind each other.", concatenate),
    (c"gather", c"gather(node, indices, outside): elements at indices.", gather),
    (c"scatter", c"scatter(node, indices, values, combine): elements at indices replaced or combined.", scatter),
    (c"reduce", c"reduce(node, combine, axes): combined along axes.", reduce),
    (c"scan", c"scan(node, combine, axis, inclusive): prefixes combined along an axis.", scan),
    (c"extreme", c"extreme(node, greatest, axis): the index of the least or greatest element.", extreme),
    (c"product", c"product(left, right): the product of two matrices.", product),
    (c"random", c"random(context, shape, type, seed): numbers in [0, 1).", random),
];

/// Returns the type with a name of NumPy.
pub(crate) fn type_named(name: &str) -> PyResult<Type> {
    let found = TYPES.iter().find(|(known, _)| *known == name);
    found.map(|(_, ty)| *ty).ok_or_else(|| refused(format!("there are no arrays of `{name}`")))
}

/// Returns the real type with a name of NumPy.
pub(crate) fn element(name: &str) -> PyResult<Element> {
    let ty = type_named(name)?;
    match ty.is_scalar() {
        true => Ok(ty.element()),
        false => Err(refused(format!("`{name}` is no type of real numbers"))),
    }
}

/// Returns the name of NumPy for a type.
pub(crate) fn type_name(ty: Type) -> &'static str {
    TYPES.iter().find(|(_, known)| *known == ty).map_or("bool", |(name, _)| name)
}

/// Returns the shape in an argument.
pub(crate) fn shape(arguments: &Arguments<'_, '_>, index: usize) -> PyResult<Shape> {
    Ok(Shape::from(arguments.get::<Vec<usize>>(index)?))
}

/// Returns the operations on single elements. Python names them by their position.
fn operations() -> &'static [(&'static str, Elementwise)] {
    static TABLE: OnceLock<Vec<(&'static str, Elementwise)>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let unary = UnaryOp::ALL.iter().map(|op| (op.name(), Elementwise::Unary(*op)));
        let binary = BinaryOp::ALL.iter().map(|op| (op.name(), Elementwise::Binary(*op)));
        let compare = CompareOp::ALL.iter().map(|op| (op.name(), Elementwise::Compare(*op)));
        let math = MathFunction::ALL.iter().map(|op| (op.name(), Elementwise::Math(*op, Precision::Accurate)));
        let others = [("select", Elementwise::Select), ("fma", Elementwise::Fma)];
        unary.chain(binary).chain(compare).chain(math).chain(others).collect()
    })
}

fn operation(arguments: &Arguments<'_, '_>) -> Answer {
    let name = arguments.get::<String>(0)?;
    let found = operations().iter().position(|(known, _)| *known == name);
    arguments.answer(found.ok_or_else(|| refused(format!("`{name}` is no operation on elements")))?)
}

/// Returns the operation whose number is the first argument.
fn numbered(arguments: &Arguments<'_, '_>) -> PyResult<Elementwise> {
    operation_numbered(arguments.get::<usize>(0)?)
}

/// Returns the operation with a number.
pub(crate) fn operation_numbered(number: usize) -> PyResult<Elementwise> {
    let found = operations().get(number);
    found.map(|(_, operation)| operation.clone()).ok_or_else(|| refused("there is no operation of this number"))
}

/// Returns the way to combine elements with a name.
pub(crate) fn combine(name: &str) -> PyResult<Combine> {
    let found = Combine::EVERY.into_iter().find(|combine| combine.name() == name);
    found.ok_or_else(|| refused(format!("`{name}` is no way to combine elements")))
}

/// Converts a Python number to an element of a type.
pub(crate) fn literals(value: &Bound<'_, PyAny>, ty: Type) -> PyResult<Lanes> {
    if ty.is_scalar() {
        return Ok([literal(value, ty.element())?].into_iter().collect());
    }
    let (real, imaginary) = match value.cast::<PyComplex>() {
        Ok(value) => (value.real(), value.imag()),
        Err(_) => (value.extract::<f64>()?, 0.0),
    };
    let lane = |value: f64| Literal::from_f64(ty.element(), value).ok_or_else(|| refused("no complex number"));
    Ok([lane(real)?, lane(imaginary)?].into_iter().collect())
}

/// Converts a Python number to an element.
fn literal(value: &Bound<'_, PyAny>, element: Element) -> PyResult<Literal> {
    if element.is_float() {
        let value = value.extract::<f64>()?;
        return Literal::from_f64(element, value).ok_or_else(|| refused("no float"));
    }
    if element == Element::Bool {
        return Ok(Literal::from_i128(element, i128::from(value.is_truthy()?)));
    }
    let number = value.extract::<i64>().map(i128::from).or_else(|_| value.extract::<u64>().map(i128::from))?;
    if element.range().is_some_and(|(low, high)| number < low || number > high) {
        let text = format!("{number} is out of bounds for {}", type_name(element.into()));
        return Err(pyo3::exceptions::PyOverflowError::new_err(text));
    }
    Ok(Literal::from_i128(element, number))
}

/// Returns the boundary rule of an argument: a name, or the constant outside.
pub(crate) fn boundary(arguments: &Arguments<'_, '_>, index: usize, ty: Type) -> PyResult<Option<Boundary>> {
    let value = arguments.any(index)?;
    if value.is_none() {
        return Ok(None);
    }
    Ok(Some(match value.extract::<String>().as_deref() {
        Ok("clamp") => Boundary::Clamp,
        Ok("wrap") => Boundary::Wrap,
        Ok("mirror") => Boundary::Mirror,
        Ok(other) => return Err(refused(format!("`{other}` is no boundary rule"))),
        Err(_) => Boundary::Constant(literals(&value, ty)?),
    }))
}

/// Wraps a new node.
fn made(arguments: &Arguments<'_, '_>, node: Result<Node>) -> Answer {
    arguments.wrap(node.map_err(of_graph)?)
}

fn fill(arguments: &Arguments<'_, '_>) -> Answer {
    let context = arguments.handle::<Context>(0)?;
    let value = literals(&arguments.any(3)?, type_named(&arguments.get::<String>(2)?)?)?;
    made(arguments, Node::fill(&context, shape(arguments, 1)?, &value))
}

fn position(arguments: &Arguments<'_, '_>) -> Answer {
    let context = arguments.handle::<Context>(0)?;
    let element = element(&arguments.get::<String>(3)?)?;
    made(arguments, Node::position(&context, shape(arguments, 1)?, arguments.get(2)?, element))
}

fn elementwise(arguments: &Arguments<'_, '_>) -> Answer {
    let nodes = arguments.handles::<Node>(1)?;
    made(arguments, applied(numbered(arguments)?, &nodes.iter().collect::<Vec<&Node>>()))
}

/// Applies an operation on elements; complex numbers have their own functions.
fn applied(operation: Elementwise, inputs: &[&Node]) -> Result<Node> {
    match inputs.last() {
        Some(last) if !last.ty().is_scalar() => Node::elementwise(complex::operation(operation, last.ty())?, inputs),
        _ => Node::elementwise(operation, inputs),
    }
}

fn unary(arguments: &Arguments<'_, '_>) -> Answer {
    made(arguments, applied(numbered(arguments)?, &[&arguments.handle::<Node>(1)?]))
}

fn binary(arguments: &Arguments<'_, '_>) -> Answer {
    let (left, right) = (arguments.handle::<Node>(1)?, arguments.handle::<Node>(2)?);
    made(arguments, applied(numbered(arguments)?, &[&left, &right]))
}

fn lane(arguments: &Arguments<'_, '_>) -> Answer {
    made(arguments, Node::elementwise(Elementwise::Lane(arguments.get(1)?), &[&arguments.handle::<Node>(0)?]))
}

fn pair(arguments: &Arguments<'_, '_>) -> Answer {
    let (real, imaginary) = (arguments.handle::<Node>(0)?, arguments.handle::<Node>(1)?);
    made(arguments, Node::elementwise(Elementwise::Vector, &[&real, &imaginary]))
}

fn with_number(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(1)?;
    let value = literals(&arguments.any(2)?, node.ty())?;
    let number = Node::fill(node.context(), Shape::from([]), &value).map_err(of_graph)?;
    let inputs = if arguments.get::<bool>(3)? { [&number, &node] } else { [&node, &number] };
    made(arguments, applied(numbered(arguments)?, &inputs))
}

fn convert(arguments: &Arguments<'_, '_>) -> Answer {
    let (node, ty) = (arguments.handle::<Node>(0)?, type_named(&arguments.get::<String>(1)?)?);
    if node.ty() == ty {
        return arguments.wrap(node);
    }
    let conversion = match complex::conversion(node.ty(), ty) {
        Some(conversion) => conversion.map_err(of_graph)?,
        None => Elementwise::Convert(ty.element()),
    };
    made(arguments, Node::elementwise(conversion, &[&node]))
}

fn bitcast(arguments: &Arguments<'_, '_>) -> Answer {
    let (node, element) = (arguments.handle::<Node>(0)?, element(&arguments.get::<String>(1)?)?);
    let f = Builder::function("bitcast");
    let value = f.parameter("value", node.ty());
    let function = f.finish_function(&[f.bitcast(value, Type::of(element))]).map_err(|error| of_graph(error.into()))?;
    made(arguments, Node::elementwise(Elementwise::Call(function, 0), &[&node]))
}

fn affine(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(0)?;
    let maps = arguments.get::<Vec<(i64, i64, i64)>>(1)?;
    let map =
        |(axis, offset, stride): (i64, i64, i64)| AxisMap { source: u8::try_from(axis).ok(), offset, stride, rule: Rule::Inside };
    let maps: Vec<AxisMap> = maps.into_iter().map(map).collect();
    let outside = boundary(arguments, 3, node.ty())?;
    made(arguments, node.affine("view", &maps, shape(arguments, 2)?, outside.as_ref()))
}

fn reshape(arguments: &Arguments<'_, '_>) -> Answer {
    made(arguments, arguments.handle::<Node>(0)?.reshape(shape(arguments, 1)?))
}

fn broadcast(arguments: &Arguments<'_, '_>) -> Answer {
    made(arguments, arguments.handle::<Node>(0)?.broadcast_to(&shape(arguments, 1)?))
}

fn concatenate(arguments: &Arguments<'_, '_>) -> Answer {
    let nodes = arguments.handles::<Node>(1)?;
    if nodes.is_empty() {
        return Err(refused("there are no arrays to concatenate"));
    }
    made(arguments, Node::concatenate(arguments.get(0)?, &nodes.iter().collect::<Vec<&Node>>()))
}

fn gather(arguments: &Arguments<'_, '_>) -> Answer {
    let (node, indices) = (arguments.handle::<Node>(0)?, arguments.handles::<Node>(1)?);
    let outside = boundary(arguments, 2, node.ty())?.unwrap_or(Boundary::Clamp);
    made(arguments, node.gather(&indices.iter().collect::<Vec<&Node>>(), &outside))
}

fn scatter(arguments: &Arguments<'_, '_>) -> Answer {
    let (node, indices) = (arguments.handle::<Node>(0)?, arguments.handles::<Node>(1)?);
    let values = arguments.handle::<Node>(2)?;
    let combined = arguments.get::<Option<String>>(3)?.map(|name| combine(&name)).transpose()?;
    let combined = combined.map(|combine| complex::combine(combine, node.ty())).transpose().map_err(of_graph)?;
    made(arguments, node.scatter(&indices.iter().collect::<Vec<&Node>>(), &values, combined))
}

fn reduce(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(0)?;
    let combine = complex::combine(combine(&arguments.get::<String>(1)?)?, node.ty()).map_err(of_graph)?;
    made(arguments, node.reduce(combine, &arguments.get::<Vec<usize>>(2)?))
}

fn scan(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(0)?;
    let combine = complex::combine(combine(&arguments.get::<String>(1)?)?, node.ty()).map_err(of_graph)?;
    made(arguments, node.scan(combine, arguments.get(2)?, arguments.get(3)?))
}

fn extreme(arguments: &Arguments<'_, '_>) -> Answer {
    let which = if arguments.get::<bool>(1)? { Extreme::Greatest } else { Extreme::Least };
    made(arguments, arguments.handle::<Node>(0)?.extreme(which, arguments.get(2)?, Element::I64))
}

fn product(arguments: &Arguments<'_, '_>) -> Answer {
    made(arguments, arguments.handle::<Node>(0)?.product(&arguments.handle::<Node>(1)?))
}

fn random(arguments: &Arguments<'_, '_>) -> Answer {
    let context = arguments.handle::<Context>(0)?;
    let element = element(&arguments.get::<String>(2)?)?;
    made(arguments, Node::random(&context, shape(arguments, 1)?, element, arguments.get(3)?))
}
