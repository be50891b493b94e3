//! Functions of NESL programs, called with columns.

use crate::call::{Answer, Arguments, Entry};
use crate::error::{failed, of_graph, refused};
use crate::handle::Handle;
use crate::wait::{interruptible, wait_for};
use broadloom::Context;
use broadloom::device::Stop;
use broadloom::graph::{Node, Shape};
use broadloom::nesl::eval::{Options, SealedHost};
use broadloom::nesl::infer::Widths;
use broadloom::nesl::run::Target;
use broadloom::nesl::session::{Output, Session, Settings};
use broadloom::nesl::{Column, Program};
use broadloom_scalar::{Element, Type};
use pyo3::prelude::*;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"nesl_functions", c"nesl_functions(text): name and type of each definition of a program.", functions),
    (c"nesl_compile", c"nesl_compile(context, text, name): a function of a program.", compile),
    (c"nesl_call", c"nesl_call(function, context, columns): the columns of the result.", call),
];

/// A compiled function. One call runs at a time.
#[derive(Clone)]
struct NeslFunction {
    program: Arc<Mutex<Program>>,
    stop: &'static Stop,
}

impl Handle for NeslFunction {
    const NAME: &'static CStr = c"broadloom.nesl";
}

/// Returns the options of programs: the widths of Python's numbers.
fn options() -> Options {
    Options { widths: Widths { wide_int: true, narrow_float: false }, ..Options::default() }
}

fn functions(arguments: &Arguments<'_, '_>) -> Answer {
    let text = arguments.get::<String>(0)?;
    let outputs = arguments.py().detach(|| {
        let mut session = Session::new(Settings { options: options(), ..Settings::default() }, Box::new(SealedHost))
            .map_err(|error| error.to_string())?;
        Ok(session.eval("program", &text))
    });
    let mut found = vec![];
    for output in outputs.map_err(|error: String| failed(error))? {
        match output {
            Output::Error(report) => return Err(refused(report.text)),
            Output::Result(binding) => found.push((binding.name, binding.ty)),
            Output::Text(_) | Output::Note(_) | Output::Exit => {}
        }
    }
    arguments.answer(found)
}

fn compile(arguments: &Arguments<'_, '_>) -> Answer {
    let (context, text) = (arguments.handle::<Context>(0)?, arguments.get::<String>(1)?);
    let name = arguments.get::<String>(2)?;
    let device = context.device().clone();
    let target = Target::new(move || Ok(device.clone()));
    // The flag lives as long as a run may look at it: eight bytes for each function.
    let stop: &'static Stop = Box::leak(Box::new(Stop::new()));
    let options = Options { stop: Some(stop), ..options() };
    let program = arguments.py().detach(|| Program::new(&text, &name, options, target));
    let program = program.map_err(|failure| refused(failure.to_string()))?;
    arguments.wrap(NeslFunction { program: Arc::new(Mutex::new(program)), stop })
}

/// Lines with at least this many elements are passed to the program on the device.
const LONG: usize = 1 << 16;

fn call(arguments: &Arguments<'_, '_>) -> Answer {
    let py = arguments.py();
    let (function, context) = (arguments.handle::<NeslFunction>(0)?, arguments.handle::<Context>(1)?);
    let mut lines = vec![];
    for node in arguments.handles::<Node>(2)? {
        let buffer = wait_for(py, &node)?;
        lines.push((node, buffer));
    }
    let stop = function.stop;
    let work = move || -> Result<Vec<Node>, PyErr> {
        let mut program = function.program.lock().unwrap_or_else(PoisonError::into_inner);
        let mut columns = vec![];
        for (node, buffer) in lines {
            columns.push(if node.shape().count() >= LONG {
                let inside = program.context().map_err(failed)?;
                let count = node.shape().count();
                Column::Device(Node::from_buffer(&inside, node.ty(), Shape::from(count), buffer).map_err(of_graph)?)
            } else {
                host_column(node.ty().element(), &buffer.read().map_err(failed)?)
            });
        }
        stop.clear();
        let results = program.call(&columns).map_err(failed)?;
        results.into_iter().map(|column| node_of(&context, column).map_err(of_graph)).collect()
    };
    let results = interruptible(py, work, || {
        stop.request(2);
    })?;
    arguments.wrap_all(results?)
}

/// Returns bytes as a vector of the host.
fn host_column(element: Element, bytes: &[u8]) -> Column {
    let word = |chunk: &[u8]| chunk.try_into().map_or([0; 8], |word: [u8; 8]| word);
    match element {
        Element::Bool => Column::Bools(bytes.iter().map(|byte| *byte != 0).collect()),
        Element::F64 => Column::Floats(bytes.chunks_exact(8).map(|chunk| f64::from_le_bytes(word(chunk))).collect()),
        _ => Column::Ints(bytes.chunks_exact(8).map(|chunk| i64::from_le_bytes(word(chunk))).collect()),
    }
}

/// Returns a column as a node of a context on the same device.
fn node_of(context: &Context, column: Column) -> broadloom::graph::Result<Node> {
    let upload = |element: Element, bytes: Vec<u8>| {
        let count = bytes.len() / element.bytes() as usize;
        Node::upload(context, Type::of(element), Shape::from(count), &bytes)
    };
    match column {
        Column::Ints(values) => upload(Element::I64, values.into_iter().flat_map(i64::to_le_bytes).collect()),
        Column::Floats(values) => upload(Element::F64, values.into_iter().flat_map(f64::to_le_bytes).collect()),
        Column::Bools(values) => upload(Element::Bool, values.into_iter().map(u8::from).collect()),
        Column::Device(node) => {
            let node = node.hosted()?;
            let buffer = node.evaluate()?;
            node.context().confirm()?;
            Node::from_buffer(context, node.ty(), node.bound().clone(), buffer)
        }
    }
}
