//! The simplifier.

use crate::builder::{Builder, ParameterDecl, Value};
use crate::error::Result;
use crate::function::Function;
use crate::kernel::Kernel;
use crate::op::Op;
use crate::rewrite::{Options, Rewrite};
use crate::types::Type;

/// A simpler value that is the same as the operation would give.
pub(crate) fn fold(builder: &Builder, op: &Op, ty: Type) -> Option<Value> {
    let _ = (builder, op, ty);
    None
}

/// The bounds of a loop in 32 bits, where all values of its counter fit.
pub(crate) fn narrow_bounds(builder: &Builder, start: Value, end: Value, step: Value) -> Option<[Value; 3]> {
    let _ = (builder, start, end, step);
    None
}

fn declare(builder: &Builder, parameters: &[ParameterDecl]) -> Vec<Value> {
    parameters.iter().map(|parameter| builder.redeclare(parameter)).collect()
}

fn rewrite_function(function: &Function, options: Options, folding: bool) -> Result<Function> {
    let builder = Builder::rewriting(function.name(), false, folding);
    let parameters = declare(&builder, function.parameters());
    function.accessors().iter().for_each(|accessor| {
        builder.accessor(&accessor.name, accessor.kind, accessor.ty, accessor.rank);
    });
    let results = Rewrite::new(function.body(), &builder, parameters, options).run(function.results());
    builder.finish_function(&results)
}

pub(crate) fn rewrite_kernel(kernel: &Kernel, options: Options, folding: bool) -> Result<Kernel> {
    let builder = Builder::rewriting(kernel.name(), true, folding);
    builder.launch_bounds(kernel.bounds().clone());
    let parameters = declare(&builder, kernel.parameters());
    Rewrite::new(kernel.body(), &builder, parameters, options).run(&[]);
    builder.finish_kernel()
}

fn calls_math(body: &crate::body::Body) -> bool {
    body.nodes().any(|(_, node)| matches!(node.op, Op::Math(..)))
}

/// The function with its elementary functions written out.
pub(crate) fn expand_math(function: &Function) -> Result<Function> {
    if !calls_math(function.body()) {
        return Ok(function.clone());
    }
    rewrite_function(function, Options { expand: true, ..Options::default() }, false)
}

/// The kernel with its elementary functions written out.
pub(crate) fn expand_math_in(kernel: &Kernel) -> Result<Kernel> {
    if !calls_math(kernel.body()) {
        return Ok(kernel.clone());
    }
    rewrite_kernel(kernel, Options { expand: true, ..Options::default() }, false)
}
