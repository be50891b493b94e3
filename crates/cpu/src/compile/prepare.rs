//! What happens to a kernel before it becomes LLVM code: calls inlined, SSA form, divergent branches made masks.

use super::Options;
use super::lanes::Shapes;
use crate::abi::Kind;
use broadloom_analysis::Cfg;
use broadloom_ptx::{Callee, Effects, Func, Function, InstData, Module, Opcode, Operand};
use broadloom_transform::facts::Facts;
use broadloom_transform::pipeline::{self, Verification};

/// A kernel made ready for translation, and the functions that it calls.
pub(crate) struct Prepared {
    pub(crate) kernel: Unit,
    pub(crate) others: Vec<Unit>,
    pub(crate) kind: Kind,
    /// Why it does not run as vectors.
    pub(crate) not_vectorised: Option<String>,
}

/// A function in SSA form with what is known of it.
pub(crate) struct Unit {
    pub(crate) func: Func,
    pub(crate) function: Function,
    pub(crate) shapes: Shapes,
}

pub(crate) fn prepare(module: &Module, kernel: Func, block: [u32; 3], options: &Options) -> Result<Prepared, String> {
    let reason = "vectors are not asked for";
    slow(module, kernel, block, options, reason.to_owned())
}

/// Every thread for itself.
fn slow(module: &Module, kernel: Func, block: [u32; 3], options: &Options, reason: String) -> Result<Prepared, String> {
    let _ = options;
    let facts = Facts { block: Some(block), grid: None };
    let unit = |func: Func| -> Result<Unit, String> {
        let function = pipeline::run_pipeline(module, func, pipeline::STAGES, &facts, Verification::InDebug, |_, _| {})
            .map_err(|failure| failure.to_string())?;
        Ok(Unit { func, function, shapes: Shapes })
    };
    let main = unit(kernel)?;
    let mut others = vec![];
    for func in reachable(module, kernel) {
        others.push(unit(func)?);
    }
    Ok(Prepared { kernel: main, others, kind: Kind::Threads, not_vectorised: Some(reason) })
}

/// Functions with a body that a kernel can call, directly or through a pointer.
fn reachable(module: &Module, kernel: Func) -> Vec<Func> {
    let mut found = vec![];
    let mut work = vec![kernel];
    while let Some(func) = work.pop() {
        let mut add = |callee: Func| {
            if module.functions[callee].has_body && !module.functions[callee].is_kernel && !found.contains(&callee) {
                found.push(callee);
                work.push(callee);
            }
        };
        for (_, inst) in module.functions[func].instructions() {
            for operand in &inst.operands {
                if let Operand::Call(call) = operand {
                    match call.callee {
                        Callee::Direct(callee) => add(resolve(module, callee)),
                        // A pointer may lead to any function.
                        Callee::Indirect { .. } => module.functions.keys().for_each(&mut add),
                    }
                }
            }
        }
    }
    found.sort();
    found
}

/// The function that a name means, aliases followed.
fn resolve(module: &Module, func: Func) -> Func {
    let alias = module.items.iter().find_map(|item| match item {
        broadloom_ptx::Item::Alias(alias) if alias.alias == func => Some(alias.aliasee),
        _ => None,
    });
    alias.unwrap_or(func)
}

/// Whether warps of a kernel wait for each other.
#[allow(dead_code)]
pub(crate) fn waits(function: &Function, cfg: &Cfg) -> bool {
    let waiting = |inst: &InstData| inst.effects().has(Effects::BARRIER) || inst.opcode() == Some(Opcode::Nanosleep);
    function.instructions().any(|(_, inst)| waiting(inst)) || !super::emit::waiting_loops(function, cfg).is_empty()
}
