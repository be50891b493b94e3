//! A function in SSA form with its analyses, and the steps that prepare kernels and the functions they call
//! alike.
//!
//! Instructions carry a number through the passes, so that the result of a pass can be matched with its input.

use super::error::CompileFailure;
use super::lanes::Shapes;
use super::progress;
use broadloom_analysis::{Cfg, Dominators, Loops, RangePlan, Shapes as WarpShapes, Waiting};
use broadloom_diag::Span;
use broadloom_ptx::{Effects, Func, Function, Inst, InstData, Module, Opcode};
use broadloom_transform::facts::Facts;
use broadloom_transform::inline_calls::Choice;
use broadloom_transform::pipeline::{self, Verification};
use broadloom_transform::split_at_barriers::plain_barrier;
use std::collections::{HashMap, HashSet};

/// Offset of the numbers. A number is a span that ends before it starts; spans of texts never do.
const MARK: u32 = 1;

/// Function in SSA form with its analyses.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) func: Func,
    pub(crate) function: Function,
    pub(crate) shapes: Shapes,
    /// Reads at which a loop may wait for another thread.
    pub(crate) polls: HashSet<Inst>,
}

/// Returns the control flow of a function, and the plan for its ranges.
pub(crate) fn flow(function: &Function) -> Result<(Cfg, Loops, RangePlan), CompileFailure> {
    let cfg = Cfg::new(function).ok_or(CompileFailure::NoBody)?;
    let dominators = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dominators);
    let plan = RangePlan::new(function, &cfg, &dominators, &loops);
    Ok((cfg, loops, plan))
}

/// Converts a function to SSA form, with all passes except those for lockstep code. `called` is set if vector
/// code calls it.
pub(crate) fn in_ssa_form(
    module: &Module,
    func: Func,
    block: [u32; 3],
    choice: &mut Choice,
    called: bool,
) -> Result<Function, CompileFailure> {
    let facts = Facts { block: Some(block), grid: None };
    let mut function = module.functions[func].clone();
    for pass in pipeline::passes(called) {
        progress::begin(pass.name);
        pipeline::run_pass_with(pass, module, &mut function, &facts, Verification::InDebug, choice)?;
    }
    Ok(function)
}

/// Finds a barrier with a divergent guard. Lanes that the guard excludes have not exited and may reach
/// another barrier, at which a warp in lockstep cannot wait.
pub(crate) fn divergent_barrier(function: &Function, shapes: &WarpShapes) -> Option<String> {
    function.instructions().find_map(|(_, inst)| {
        let guard = inst.guard?;
        let barrier = inst.effects().has(Effects::BARRIER);
        (barrier && !shapes.is_uniform(guard.reg)).then(|| format!("lanes may come apart to `{}`", inst.mnemonic_text()))
    })
}

/// Returns the reads at which a loop of a function may wait for another thread.
pub(crate) fn polls(module: &Module, function: &Function) -> HashSet<Inst> {
    let Some(cfg) = Cfg::new(function) else { return HashSet::new() };
    let dominators = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dominators);
    Waiting::new(module, function, &cfg, &dominators, &loops).waits().iter().map(|wait| wait.inst).collect()
}

/// Returns whether warps of a kernel wait for each other other than at a single barrier for all of them.
pub(crate) fn waits(function: &Function, polls: &HashSet<Inst>) -> bool {
    let mut barrier = None;
    let mut waiting = |inst: &InstData| match plain_barrier(inst) {
        Some(id) => *barrier.get_or_insert(id) != id,
        None => {
            let effects = inst.effects();
            effects.has(Effects::BARRIER) || effects.has(Effects::POLL) || inst.opcode() == Some(Opcode::Nanosleep)
        }
    };
    !polls.is_empty() || function.instructions().any(|(_, inst)| waiting(inst))
}

/// Replaces the span of every instruction by its number. Returns the spans.
pub(crate) fn number_spans(function: &mut Function) -> HashMap<Inst, Span> {
    let mut spans = HashMap::new();
    for (inst, data) in function.insts.iter_mut() {
        let span = Span { start: inst.as_u32() + MARK, end: 0, ..Span::default() };
        spans.insert(inst, std::mem::replace(&mut data.span, span));
    }
    spans
}

/// Returns the instruction that an instruction was made from.
pub(super) fn origin(data: &InstData) -> Option<Inst> {
    (data.span.end == 0 && data.span.start >= MARK).then(|| Inst::from_u32(data.span.start - MARK))
}

/// Replaces the numbers of instructions by the spans that [`number_spans`] returned.
pub(crate) fn restore_spans(function: &mut Function, spans: &HashMap<Inst, Span>) {
    for data in function.insts.values_mut() {
        if let Some(origin) = origin(data) {
            data.span = spans.get(&origin).copied().unwrap_or_default();
        }
    }
}

/// Returns the reads and calls of a function that were made from `instructions`, which carry numbers.
pub(crate) fn made_from(function: &Function, instructions: &HashSet<Inst>) -> HashSet<Inst> {
    let is_one = |data: &InstData| data.effects().may_read() && origin(data).is_some_and(|origin| instructions.contains(&origin));
    function.instructions().filter(|(_, data)| is_one(data)).map(|(inst, _)| inst).collect()
}
