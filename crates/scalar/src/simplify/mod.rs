//! The simplifier.
//!
//! Its passes are rewritings ([`rewrite`](crate::rewrite)) into a builder that folds every node it
//! makes:
//!
//! 1. `unroll`: known values of variables are propagated, loops with few iterations are unrolled, and short
//!    conditional assignments become selections;
//! 2. `scalarise`: local arrays that are indexed only by literals become variables, whose values are
//!    propagated in turn;
//! 3. `contract`: a product whose only use is a sum becomes a fused multiply-add, as C compilers for GPUs do
//!    by default;
//! 4. [`guard`]: loads that only one side of selections needs are executed only if that side is taken, for
//!    lowering only;
//! 5. `expand`: elementary functions are expanded, for lowering only;
//! 6. `address`: indices become addresses with constant offsets, for lowering only.
//!
//! All except `contract` keep every result bit for bit.

mod contract;
mod guard;

use crate::body::Body;
use crate::builder::{Builder, Value};
use crate::declaration::ParameterDecl;
use crate::error::Result;
use crate::function::Function;
use crate::id::Id;
use crate::kernel::Kernel;
use crate::op::Op;
use crate::rewrite::{Options, Rewrite};

/// Loops are unrolled if the code has at most this size.
const UNROLL: usize = 512;

fn declare(builder: &Builder, parameters: &[ParameterDecl]) -> Vec<Value> {
    parameters.iter().map(|parameter| builder.redeclare(parameter)).collect()
}

fn rewrite_function(function: &Function, options: Options, folding: bool) -> Result<Function> {
    copied(function, &Builder::rewriting(function.name(), false, folding), options)
}

/// Copies a function with its parameters and accessors into an empty builder.
fn copied(function: &Function, builder: &Builder, options: Options) -> Result<Function> {
    let parameters = declare(builder, function.parameters());
    function.accessors().iter().for_each(|accessor| {
        builder.accessor(&accessor.name, accessor.kind, accessor.ty, accessor.rank);
    });
    let results = Rewrite::new(function.body(), builder, parameters, options).run(function.results());
    builder.finish_function(&results)
}

fn rewrite_kernel(kernel: &Kernel, options: Options, folding: bool) -> Result<Kernel> {
    let builder = Builder::rewriting(kernel.name(), true, folding);
    builder.launch_bounds(kernel.bounds().clone());
    let parameters = declare(&builder, kernel.parameters());
    Rewrite::new(kernel.body(), &builder, parameters, options).run(&[]);
    builder.finish_kernel()
}

fn calls_math(body: &Body) -> bool {
    body.nodes().any(|(_, node)| matches!(node.op, Op::Math(..)))
}

fn unroll() -> Options {
    Options { forward: true, unroll: Some(UNROLL), convert_ifs: true, narrow: true, ..Options::default() }
}

fn scalarise() -> Options {
    Options { scalarise: true, ..unroll() }
}

fn contract(body: &Body, results: &[Id]) -> Options {
    Options { contract: Some(contract::products(body, results)), ..unroll() }
}

/// Applies a pass until nothing changes, a few times at most. Each round uses the facts that the one before
/// made known.
fn settle<T: PartialEq>(mut code: T, pass: impl Fn(&T) -> Result<T>) -> Result<T> {
    for _ in 0..4 {
        let next = pass(&code)?;
        if next == code {
            break;
        }
        code = next;
    }
    Ok(code)
}

impl Function {
    /// Simplifies the function. Results stay the same bit for bit.
    pub fn simplify(&self) -> Result<Function> {
        let function = rewrite_function(self, unroll(), true)?;
        let function = rewrite_function(&function, scalarise(), true)?;
        settle(function, |function| rewrite_function(function, unroll(), true))
    }

    /// Contracts products whose only use is a sum into fused multiply-adds. This is faster and more exact,
    /// but changes bits. A function that [keeps its products](Builder::keep_products) is unchanged.
    pub fn contract(&self) -> Result<Function> {
        if self.body().keeps_products {
            return Ok(self.clone());
        }
        rewrite_function(self, contract(self.body(), self.results()), true)
    }

    /// Returns the function simplified and contracted for good: its results have the same bits in every
    /// kernel that contains it.
    pub fn settle_products(&self) -> Result<Function> {
        // Code without loops and variables cannot be simplified beyond its operations.
        let is_plain = self.body().blocks.len() == 1 && self.body().vars.is_empty() && self.body().arrays.is_empty();
        let function = if is_plain { self.clone() } else { self.simplify()? };
        let builder = Builder::rewriting(function.name(), false, true);
        builder.keep_products();
        if function.body().keeps_products {
            return copied(&function, &builder, unroll());
        }
        copied(&function, &builder, contract(function.body(), function.results()))
    }
}

impl Kernel {
    /// Simplifies the kernel. Results stay the same bit for bit.
    pub fn simplify(&self) -> Result<Kernel> {
        let kernel = rewrite_kernel(self, unroll(), true)?;
        let kernel = rewrite_kernel(&kernel, scalarise(), true)?;
        settle(kernel, |kernel| rewrite_kernel(kernel, unroll(), true))
    }

    /// Contracts products whose only use is a sum into fused multiply-adds. This is faster and more exact,
    /// but changes bits. A kernel with a part that [keeps its products](Builder::keep_products) is unchanged.
    pub fn contract(&self) -> Result<Kernel> {
        if self.body().keeps_products {
            return Ok(self.clone());
        }
        rewrite_kernel(self, contract(self.body(), &[]), true)
    }

    /// Returns the kernel with loads moved under the conditions that need them.
    pub(crate) fn guard(&self) -> Kernel {
        match guard::guard(self.body()) {
            Some(body) => Kernel::new(self.name().to_owned(), self.parameters().to_vec(), self.bounds().clone(), body),
            None => self.clone(),
        }
    }

    /// Returns the kernel with its elementary functions expanded.
    pub(crate) fn expand_math(&self, folding: bool) -> Result<Kernel> {
        if !calls_math(self.body()) {
            return Ok(self.clone());
        }
        let kernel = rewrite_kernel(self, Options { expand: true, forward: folding, ..Options::default() }, folding)?;
        if folding { rewrite_kernel(&kernel, unroll(), true) } else { Ok(kernel) }
    }

    /// Returns the kernel with addresses in place of indices.
    pub(crate) fn address(&self) -> Result<Kernel> {
        rewrite_kernel(self, Options { address: true, ..unroll() }, true)
    }
}

/// Returns the function with its elementary functions expanded.
pub(crate) fn expand_math(function: &Function) -> Result<Function> {
    if !calls_math(function.body()) {
        return Ok(function.clone());
    }
    rewrite_function(function, Options { expand: true, ..Options::default() }, false)
}
