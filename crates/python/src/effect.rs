//! Image effects on arrays with the axes plane, row, column.

use crate::call::{Answer, Arguments, Entry};
use crate::error::{failed, of_graph, refused};
use crate::wait::wait_for;
use broadloom::Context;
use broadloom::effect::Image;
use broadloom::effect::catalogue::{Chain, EFFECTS, Engine, Inputs, chain};
use broadloom::effect::effects::OnDevice;
use broadloom::graph::{Node, Shape};
use broadloom_scalar::{Element, Type};
use pyo3::prelude::*;

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"effects", c"effects(): name, summary, roles of the images, and parameters (name, default, text) of each.", effects),
    (c"run_effects", c"run_effects(context, names, settings, images, planes, further): the planes of the result.", run),
];

fn effects(arguments: &Arguments<'_, '_>) -> Answer {
    let list = EFFECTS.iter().map(|effect| {
        let roles: Vec<&str> = match effect.inputs {
            Inputs::Images(roles) => roles.to_vec(),
            Inputs::Frames(_) => vec!["frames"],
        };
        let parameters: Vec<(&str, Option<&str>, &str)> =
            effect.parameters.iter().map(|parameter| (parameter.name, parameter.default, parameter.doc)).collect();
        (effect.name, effect.summary, roles, parameters)
    });
    arguments.answer(list.collect::<Vec<_>>())
}

/// Reads an array of `float32` with the axes plane, row, column as an image.
fn image(py: Python<'_>, node: &Node, names: &[String]) -> PyResult<Image> {
    let buffer = wait_for(py, node)?;
    let &[planes, rows, columns] = node.shape().extents() else {
        return Err(refused("an image has the axes plane, row, column"));
    };
    let extent = |size: usize| u32::try_from(size).map_err(|_| refused(format!("an image with an extent of {size}")));
    if planes != names.len() || rows * columns == 0 {
        return Err(refused(format!("an image of the shape {:?}", node.shape().extents())));
    }
    let bytes = py.detach(|| buffer.read()).map_err(failed)?;
    let sample = |chunk: &[u8]| chunk.try_into().map_or(0.0, f32::from_le_bytes);
    let samples = bytes.chunks_exact(4 * rows * columns).map(|plane| plane.chunks_exact(4).map(sample).collect::<Vec<f32>>());
    Image::from_f32(extent(columns)?, extent(rows)?, names.iter().map(String::as_str).zip(samples)).map_err(failed)
}

fn run(arguments: &Arguments<'_, '_>) -> Answer {
    let py = arguments.py();
    let (context, names) = (arguments.handle::<Context>(0)?, arguments.get::<String>(1)?);
    let steps = chain(&names, &arguments.get::<Vec<String>>(2)?).map_err(|error| refused(error.to_string()))?;
    let (nodes, planes) = (arguments.handles::<Node>(3)?, arguments.get::<Vec<Vec<String>>>(4)?);
    let mut images = nodes.iter().zip(&planes).map(|(node, names)| image(py, node, names)).collect::<PyResult<Vec<Image>>>()?;
    let further = images.split_off(arguments.get::<usize>(5)?.min(images.len()));
    let result = py.detach(|| {
        let call = Chain { steps: &steps, inputs: &images, further: &further, planes: &[], region: None };
        OnDevice::new(&context, Default::default()).run_chain(&call, &mut |_, _| {})
    });
    let result = result.map_err(|error| refused(error.to_string()))?;
    let (height, width) = (result.height() as usize, result.width() as usize);
    let bytes: Vec<u8> = result.planes().iter().flat_map(|plane| plane.to_f32()).flat_map(f32::to_le_bytes).collect();
    let shape = Shape::from([result.planes().len(), height, width]);
    let node = Node::upload(&context, Type::of(Element::F32), shape, &bytes).map_err(of_graph)?;
    let names: Vec<String> = result.names().map(str::to_owned).collect();
    arguments.answer((arguments.wrap(node)?, names))
}
