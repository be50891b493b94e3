//! Devices, and what is known of a node without its elements.

use crate::arrays::type_name;
use crate::call::{Answer, Arguments, Entry};
use crate::error::{failed, of_graph};
use broadloom::Context;
use broadloom::device::MachineKind;
use broadloom::graph::Node;

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"open", c"open(name): the context of a device.", open),
    (c"machines", c"machines(): the names of the devices that are here, the default first.", machines),
    (c"device", c"device(context): the name of the device.", device),
    (c"is_host", c"is_host(context): whether the device works in the memory of the host.", is_host),
    (c"type", c"type(node): the name of its elements' type.", node_type),
    (c"shape", c"shape(node): its shape; waits if only the device knows it.", shape),
    (c"explain", c"explain(nodes): the plan that would compute them.", explain),
];

fn open(arguments: &Arguments<'_, '_>) -> Answer {
    let name = arguments.get::<String>(0)?;
    let context = arguments.py().detach(|| broadloom::context(&name));
    arguments.wrap(context.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?)
}

fn machines(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.answer(broadloom::machines().into_iter().map(|machine| machine.id).collect::<Vec<String>>())
}

fn device(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.answer(arguments.handle::<Context>(0)?.device().machine().id.clone())
}

fn is_host(arguments: &Arguments<'_, '_>) -> Answer {
    let context = arguments.handle::<Context>(0)?;
    arguments.answer(context.device().machine().kind == MachineKind::Cpu)
}

fn node_type(arguments: &Arguments<'_, '_>) -> Answer {
    arguments.answer(type_name(arguments.handle::<Node>(0)?.ty()))
}

fn shape(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(0)?;
    let node = arguments.py().detach(|| node.hosted()).map_err(of_graph)?;
    arguments.answer(node.bound().extents().to_vec())
}

fn explain(arguments: &Arguments<'_, '_>) -> Answer {
    let nodes = arguments.handles::<Node>(0)?;
    let Some(context) = nodes.first().map(Node::context) else { return Err(failed("there are no arrays to explain")) };
    let text = arguments.py().detach(|| Ok(context.explain(&nodes)?.text_on(context.device())));
    arguments.answer(text.map_err(of_graph)?)
}
