//! Kernels in PTX, launched on arrays.

use crate::call::{Answer, Arguments, Entry};
use crate::error::{failed, of_graph, refused};
use crate::handle::Handle;
use crate::wait::{until_idle, wait_for};
use broadloom::Context;
use broadloom::device::{Argument, Buffer, Kernel, Launch};
use broadloom::diag::Sources;
use broadloom::graph::Node;
use broadloom::ptx::{self, TypeKind};
use pyo3::prelude::*;
use std::ffi::CStr;
use std::sync::Arc;

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"kernel", c"kernel(context, ptx, name): a kernel of a module in PTX.", kernel),
    (c"kernel_parameters", c"kernel_parameters(kernel): its name, and name, type and bytes of each parameter.", parameters),
    (c"launch", c"launch(kernel, context, grid, block, shared, arguments): new nodes for the arrays.", launch),
];

impl Handle for Kernel {
    const NAME: &'static CStr = c"broadloom.kernel";
}

fn kernel(arguments: &Arguments<'_, '_>) -> Answer {
    let (context, text) = (arguments.handle::<Context>(0)?, arguments.get::<String>(1)?);
    let name = arguments.get::<Option<String>>(2)?;
    let mut sources = Sources::new();
    let id = sources.add("kernel.ptx", text.as_str());
    let module = ptx::parse(&sources, id).and_then(ptx::verify).map_err(|found| refused(sources.render_all(&found)))?;
    let module = arguments.py().detach(|| context.device().load(&Arc::new(module))).map_err(failed)?;
    let names: Vec<String> = module.code().kernels().map(|(_, function)| function.name.clone()).collect();
    let name = match (name, &names[..]) {
        (Some(name), _) => name,
        (None, [only]) => only.clone(),
        (None, _) => return Err(refused(format!("the module has the kernels {}: name one", names.join(", ")))),
    };
    arguments.wrap(module.kernel(&name).map_err(|error| refused(error.to_string()))?)
}

fn parameters(arguments: &Arguments<'_, '_>) -> Answer {
    let kernel = arguments.handle::<Kernel>(0)?;
    let list = kernel.params().iter().map(|info| (info.name.clone(), info.ty.name(), info.bytes));
    arguments.answer((kernel.name(), list.collect::<Vec<(String, &str, u64)>>()))
}

/// Returns the bytes of a number for a parameter.
fn number(value: &Bound<'_, PyAny>, kind: TypeKind, bytes: u64, name: &str) -> PyResult<Argument> {
    let is_float = value.is_instance_of::<pyo3::types::PyFloat>();
    let wide = match kind {
        TypeKind::Float => None,
        // Compilers declare floats as such, so untyped bits take the kind of the number.
        TypeKind::Bits if is_float => None,
        _ if is_float => return Err(refused(format!("the parameter `{name}` is an integer, not {value}"))),
        _ => Some(value.extract::<i64>().map(i128::from).or_else(|_| value.extract::<u64>().map(i128::from))?),
    };
    let Some(wide) = wide else {
        let value = value.extract::<f64>()?;
        return match bytes {
            4 => Ok((value as f32).into()),
            8 => Ok(value.into()),
            _ => Err(refused(format!("the parameter `{name}` of {bytes} bytes is no float of Python"))),
        };
    };
    if !(1..=8).contains(&bytes) {
        return Err(refused(format!("the parameter `{name}` of {bytes} bytes is no number")));
    }
    let bits = 8 * bytes as u32;
    if wide >> bits != 0 && wide >> (bits - 1) != -1 {
        return Err(refused(format!("{wide} does not fit into the {bytes} bytes of the parameter `{name}`")));
    }
    Ok(Argument::Bytes(wide.to_le_bytes()[..bytes as usize].to_vec()))
}

/// Launches a kernel on copies of the arrays, since other arrays may share their memory.
fn launch(arguments: &Arguments<'_, '_>) -> Answer {
    let py = arguments.py();
    let (kernel, context) = (arguments.handle::<Kernel>(0)?, arguments.handle::<Context>(1)?);
    let (grid, block) = (arguments.get::<[u32; 3]>(2)?, arguments.get::<[u32; 3]>(3)?);
    let launch = Launch::new(grid, block).shared(arguments.get(4)?);
    let values: Vec<Bound<'_, PyAny>> = arguments.any(5)?.try_iter()?.collect::<PyResult<_>>()?;
    let wanted = kernel.params().to_vec();
    if values.len() != wanted.len() {
        return Err(refused(format!("`{}` takes {} arguments, not {}", kernel.name(), wanted.len(), values.len())));
    }
    let (mut passed, mut arrays) = (vec![], vec![]);
    for (value, parameter) in values.iter().zip(&wanted) {
        let Ok(node) = Node::from_object(value) else {
            passed.push(number(value, parameter.ty.kind(), parameter.bytes, &parameter.name)?);
            continue;
        };
        if parameter.bytes != 8 {
            return Err(refused(format!("the parameter `{}` has {} bytes and is no array", parameter.name, parameter.bytes)));
        }
        let buffer = wait_for(py, &node)?;
        let copy = copied(&context, &buffer).map_err(failed)?;
        passed.push((&copy).into());
        arrays.push((node, copy));
    }
    py.detach(|| kernel.launch(&launch, &passed)).map_err(failed)?;
    until_idle(py, context.device())?;
    let made = arrays.into_iter().map(|(node, copy)| Node::from_buffer(&context, node.ty(), node.shape().clone(), copy));
    arguments.wrap_all(made.collect::<Result<Vec<Node>, _>>().map_err(of_graph)?)
}

fn copied(context: &Context, buffer: &Buffer<u8>) -> Result<Buffer<u8>, broadloom::device::Error> {
    let copy = context.device().allocate::<u8>(buffer.len())?;
    if !buffer.is_empty() {
        copy.copy_from(Default::default(), buffer)?;
    }
    Ok(copy)
}
