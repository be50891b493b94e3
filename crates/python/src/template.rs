//! Functions of arrays that are traced once (`bl.jit`) and called again, and loops over them.

use crate::call::{Answer, Arguments, Entry};
use crate::error::{of_graph, refused};
use crate::handle::Handle;
use crate::wait::check_process;
use broadloom::graph::{Error, Node, Shape, State, Template};
use broadloom_scalar::Literal;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::ffi::CStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"trace", c"trace(nodes, function): a template of a function that takes and returns lists of nodes.", trace),
    (c"call_template", c"call_template(template, nodes): the results for these inputs; does not wait.", call),
    (c"repeat_template", c"repeat_template(template, start, stop, carried, others): carried nodes after all rounds.", repeat),
    (c"is_symbolic", c"is_symbolic(node): whether it has no elements until a traced function is called.", is_symbolic),
    (c"is_pending", c"is_pending(node): whether it is not computed yet.", is_pending),
];

/// A traced function.
#[derive(Clone)]
struct Traced(Arc<Template>);

impl Handle for Traced {
    const NAME: &'static CStr = c"broadloom.template";
}

/// Traces a function for inputs of these sizes. An exception of the function is raised again.
fn trace(arguments: &Arguments<'_, '_>) -> Answer {
    check_process()?;
    let (py, nodes, function) = (arguments.py(), arguments.handles::<Node>(0)?, arguments.any(1)?);
    let Some(context) = nodes.first().map(Node::context) else { return Err(refused("a traced function has an input")) };
    let mut raised = None;
    let template = context.template_of_sizes(&nodes, |symbols| {
        let called = || -> PyResult<Vec<Node>> {
            let symbols: Vec<Py<PyAny>> = symbols.iter().map(|node| node.clone().into_object(py)).collect::<PyResult<_>>()?;
            let results = function.call1((PyList::new(py, symbols)?,))?;
            results.try_iter()?.map(|node| Node::from_object(&node?)).collect()
        };
        called().map_err(|error| {
            raised = Some(error);
            Error::Symbolic { operation: "function".into() }
        })
    });
    match (template, raised) {
        (_, Some(error)) => Err(error),
        (template, None) => arguments.wrap(Traced(Arc::new(template.map_err(of_graph)?))),
    }
}

fn call(arguments: &Arguments<'_, '_>) -> Answer {
    check_process()?;
    let (template, nodes) = (arguments.handle::<Traced>(0)?, arguments.handles::<Node>(1)?);
    let results = arguments.py().detach(|| template.0.call(&nodes));
    arguments.wrap_all(results.map_err(of_graph)?)
}

/// Calls a template for each number of a range, with the results of the round before. Its first input is the number.
fn repeat(arguments: &Arguments<'_, '_>) -> Answer {
    /// Time between two looks at the signals.
    const QUANTUM: Duration = Duration::from_millis(10);
    check_process()?;
    let (py, template) = (arguments.py(), arguments.handle::<Traced>(0)?);
    let (mut round, stop) = (arguments.get::<i64>(1)?, arguments.get::<i64>(2)?);
    let (mut carried, others) = (arguments.handles::<Node>(3)?, arguments.handles::<Node>(4)?);
    let context = match carried.first().or(others.first()) {
        Some(node) => node.context().clone(),
        None => return Err(refused("a loop carries at least one array")),
    };
    while round < stop {
        py.check_signals()?;
        let done = py.detach(|| -> Result<(), Error> {
            let start = Instant::now();
            while round < stop && start.elapsed() < QUANTUM {
                let number = Node::fill(&context, Shape::from([]), &[Literal::from(round)])?;
                let inputs: Vec<Node> = std::iter::once(number).chain(carried.drain(..)).chain(others.iter().cloned()).collect();
                carried = template.0.call(&inputs)?;
                round += 1;
            }
            Ok(())
        });
        done.map_err(of_graph)?;
    }
    arguments.wrap_all(carried)
}

fn is_symbolic(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.answer(arguments.handle::<Node>(0)?.is_symbolic())
}

fn is_pending(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.answer(matches!(arguments.handle::<Node>(0)?.state(), State::Pending(_)))
}
