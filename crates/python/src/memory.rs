//! Elements that go to a device and come back.
//!
//! The package passes addresses of contiguous NumPy arrays that it holds during the call, with their size.

use crate::arrays::{shape, type_named};
use crate::call::{Answer, Arguments, Entry};
use crate::error::{of_graph, refused};
use crate::wait::wait_for;
use broadloom::Context;
use broadloom::graph::Node;

/// Functions of the module.
pub(crate) const FUNCTIONS: &[Entry] = &[
    (c"upload", c"upload(context, shape, type, address, bytes): a copy of host memory.", upload),
    (c"read", c"read(node, address, bytes): copies the elements to host memory; waits.", read),
    (c"address", c"address(node): where the elements are; computes them and waits.", address),
];

#[allow(unsafe_code, reason = "NumPy arrays come as addresses")]
fn upload(arguments: &Arguments<'_, '_>) -> Answer {
    let (context, shape) = (arguments.handle::<Context>(0)?, shape(arguments, 1)?);
    let ty = type_named(&arguments.get::<String>(2)?)?;
    let (address, length) = (arguments.get::<usize>(3)?, arguments.get::<usize>(4)?);
    if length == 0 || address == 0 {
        return arguments.wrap(Node::upload(&context, ty, shape, &[]).map_err(of_graph)?);
    }
    // SAFETY: the package holds a contiguous array of this size at this address until the call returns.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, length) };
    let node = arguments.py().detach(|| Node::upload(&context, ty, shape, bytes));
    arguments.wrap(node.map_err(of_graph)?)
}

#[allow(unsafe_code, reason = "NumPy arrays come as addresses")]
fn read(arguments: &Arguments<'_, '_>) -> Answer {
    let (node, address, length) = (arguments.handle::<Node>(0)?, arguments.get::<usize>(1)?, arguments.get::<usize>(2)?);
    let buffer = wait_for(arguments.py(), &node)?;
    if buffer.len() != length {
        return Err(refused(format!("{} bytes do not fit into {length}", buffer.len())));
    }
    if length > 0 {
        // SAFETY: the package holds a contiguous, writable array of this size at this address, which nothing else
        // uses, until the call returns.
        let bytes = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length) };
        let done = arguments.py().detach(|| buffer.read_into(Default::default(), bytes));
        done.map_err(|error| of_graph(error.into()))?;
    }
    arguments.answer(())
}

fn address(arguments: &Arguments<'_, '_>) -> Answer {
    let node = arguments.handle::<Node>(0)?;
    arguments.answer(wait_for(arguments.py(), &node)?.address())
}
