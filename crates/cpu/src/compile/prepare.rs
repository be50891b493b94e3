//! Preparation of a kernel for LLVM: inlining, SSA form, and masks for divergent branches.
//!
//! Addresses are often computed in 32 bits and then widened. Lanes that are adjacent before the widening stay
//! adjacent only if none of them wraps around. A [`Proof`] checks this assumption for each launch. It works
//! on the kernel before its branches become masks, because the branches still bound the indices. The
//! assumptions of the emitter on the linearised kernel must be among the proved ones. Instructions carry a
//! number through the passes in between, to match them.

use super::alike::told_apart;
use super::calls::CalledFunctions;
use super::error::{CompileFailure, InStep, Obstacle};
use super::lanes::Shapes;
use super::options::CompileOptions;
use super::plan::MOST_PIECES;
use super::progress;
use super::unit::{Unit, divergent_barrier, flow, in_ssa_form, made_from, number_spans, origin, polls, restore_spans, waits};
use crate::abi::Kind;
use broadloom_analysis::{Assume, Cfg, Facts as LaunchFacts, Proof, Shapes as WarpShapes};
use broadloom_ptx::{Block, Callee, Func, Function, InstData, Module, Opcode, Reg};
use broadloom_transform::inline_calls::Choice;
use broadloom_transform::linearise::Blocks;
use broadloom_transform::return_exits::{self, resolve};
use broadloom_transform::sink_stores::{self, DisjointParameters};
use broadloom_transform::split_at_barriers::{self, plain_barrier};
use broadloom_transform::{check, linearise, nest_loops, remove_dead, unify_exits};
use cranelift_entity::SecondaryMap;
use std::collections::HashSet;

/// Kernel prepared for translation, and the functions that it calls.
#[derive(Clone, Debug)]
pub(crate) struct PreparedKernel {
    pub(crate) kernel: Unit,
    pub(crate) others: Vec<Unit>,
    pub(crate) kind: Kind,
    /// Changed module, if the module was changed.
    pub(crate) module: Option<Module>,
    /// Reason why the kernel is not vectorised.
    pub(crate) not_vectorised: Option<String>,
    /// Assumptions to prove for each launch.
    pub(crate) proof: Option<Proof>,
    /// Pointer parameters that are assumed to point to different buffers.
    pub(crate) apart: DisjointParameters,
    /// Threads of a block that run. Each runs also for the threads that compute the same.
    pub(crate) runs: [u32; 3],
}

impl PreparedKernel {
    /// Returns whether the code is that of one thread, and a block has no other.
    pub(crate) fn has_one_thread(&self) -> bool {
        self.kind == Kind::Threads && self.runs == [1, 1, 1]
    }

    /// Returns the kernel, followed by the functions that it calls.
    pub(crate) fn units(self) -> Vec<Unit> {
        std::iter::once(self.kernel).chain(self.others).collect()
    }
}

pub(crate) fn prepare(
    module: &Module,
    kernel: Func,
    block: [u32; 3],
    options: &CompileOptions,
) -> Result<PreparedKernel, CompileFailure> {
    let mut choice = Choice::new(module, [kernel]);
    let mut function = in_ssa_form(module, kernel, block, &mut choice, false)?;
    let apart = without_stores(module, &mut function, options)?;
    // A vector of one lane would cost as much as one of all lanes. Results of calls and atomics would be vectors.
    let is_varying = |inst: &InstData| inst.call().is_some() || inst.opcode() == Some(Opcode::Atom);
    let has_one_thread = block == [1, 1, 1] && function.instructions().any(|(_, inst)| is_varying(inst));
    let reason = match options.vectorise {
        _ if has_one_thread => "a block has one thread, and it has calls or atomics".to_owned(),
        true => match fast(module, kernel, function.clone(), block, options, choice)? {
            Ok(prepared) => return Ok(PreparedKernel { apart, ..prepared }),
            Err(Obstacle(reason)) => reason,
        },
        false => "vectors are not asked for".to_owned(),
    };
    Ok(PreparedKernel { apart, ..slow(module, kernel, function, block, reason)? })
}

/// Moves stores out of loops, if pointers may be assumed to point to different buffers. Returns the pairs of
/// pointers assumed.
fn without_stores(
    module: &Module,
    function: &mut Function,
    options: &CompileOptions,
) -> Result<DisjointParameters, CompileFailure> {
    if !options.assume_apart {
        return Ok(DisjointParameters::new());
    }
    let apart = sink_stores::run(module, function);
    if cfg!(debug_assertions) {
        check(sink_stores::NAME, module, function)?;
    }
    Ok(apart)
}

/// Prepares a module in which only kernels contain `exit`.
fn without_exits(module: &Module, kernel: Func, block: [u32; 3], options: &CompileOptions) -> InStep<PreparedKernel> {
    let changed = return_exits::run(module).ok_or(CompileFailure::NoExit)?;
    let mut choice = Choice::new(&changed, [kernel]);
    let function = in_ssa_form(&changed, kernel, block, &mut choice, false)?;
    let prepared = fast(&changed, kernel, function, block, options, choice)?;
    Ok(prepared.map(|prepared| PreparedKernel { module: Some(changed), ..prepared }))
}

/// Prepares the kernel for whole warps in lockstep, or returns the reason why that is impossible.
fn fast(
    module: &Module,
    kernel: Func,
    mut function: Function,
    block: [u32; 3],
    options: &CompileOptions,
    mut choice: Choice,
) -> InStep<PreparedKernel> {
    progress::begin(linearise::NAME);
    let assume = if options.assume_no_wrap { Assume::NoWrap } else { Assume::Nothing };
    unify_exits::run(module, &mut function);
    nest_loops::run(module, &mut function);
    let told_apart = told_apart(&function, block);
    let (cfg, loops, plan) = flow(&function)?;
    let shapes = WarpShapes::new(&function, &cfg, &loops, &plan, &LaunchFacts::new(block), assume);
    let called = match CalledFunctions::new(module, &function, block, &mut choice)? {
        Ok(called) if called.ends_threads() => return without_exits(module, kernel, block, options),
        Ok(called) => called,
        Err(reason) => return Ok(Err(reason)),
    };
    let apart = divergent_barrier(&function, &shapes).or_else(|| called.comes_apart(module, &function, &cfg, &shapes, block));
    if let Some(reason) = apart {
        return Ok(Err(Obstacle(reason)));
    }
    let others = match called.linearised(module, block)? {
        Ok(others) => others,
        Err(reason) => return Ok(Err(reason)),
    };
    let proof = Proof::new(&plan, shapes.obligations());
    let polls = polls(module, &function);
    let spans = number_spans(&mut function);
    let before = function.clone();
    if let Err(reason) = linearise::run(module, &mut function, &|block| shapes.is_divergent_branch(block), Blocks::Shaped(block))
    {
        return Ok(Err(Obstacle(reason.to_string())));
    }
    remove_dead::run(module, &mut function);
    if cfg!(debug_assertions) {
        check(linearise::NAME, module, &function)?;
    }
    let (cfg, loops, plan) = flow(&function)?;
    let facts = LaunchFacts::new(block);
    let mut known = WarpShapes::new(&function, &cfg, &loops, &plan, &facts, assume);
    if !is_covered(&function, &known, &before, &shapes) {
        known = WarpShapes::new(&function, &cfg, &loops, &plan, &facts, Assume::Nothing);
    }
    // A branch to a `trap` leaves no lanes behind.
    let parts = |block: &Block| known.is_divergent_branch(*block) && cfg.successors(*block).len() > 1;
    if let Some(block) = cfg.order().iter().find(|block| parts(block)) {
        return Ok(Err(Obstacle(format!("a branch of {block} is still divergent"))));
    }
    let polls = made_from(&function, &polls);
    restore_spans(&mut function, &spans);
    let one_waits = |unit: &Unit| waits(&unit.function, &unit.polls);
    let mut kind = if waits(&function, &polls) || others.iter().any(one_waits) { Kind::Warps } else { Kind::Block };
    let barriers = |unit: &Function| unit.instructions().any(|(_, inst)| plain_barrier(inst).is_some());
    if !others.is_empty() && (barriers(&function) || others.iter().any(|unit| barriers(&unit.function))) {
        // Frames of called functions are not kept from piece to piece.
        kind = Kind::Warps;
    }
    if kind == Kind::Block {
        if block.iter().product::<u32>() <= 32 {
            // A single warp has no other warp to wait for.
            drop_barriers(&mut function);
        }
        split_at_barriers::run(module, &mut function);
        let cfg = Cfg::new(&function).ok_or(CompileFailure::NoBody)?;
        if split_at_barriers::FunctionPieces::new(&function, &cfg, &[]).len() > MOST_PIECES {
            kind = Kind::Warps;
        }
    }
    let kernel = Unit { func: kernel, function, shapes: Shapes::Warp(Box::new(known)), polls };
    let runs = if kind == Kind::Block { told_apart } else { block };
    Ok(Ok(PreparedKernel {
        kernel,
        others,
        kind,
        module: None,
        not_vectorised: None,
        proof,
        apart: DisjointParameters::new(),
        runs,
    }))
}

fn drop_barriers(function: &mut Function) {
    let Function { blocks, insts, .. } = function;
    for block in blocks.values_mut() {
        block.insts.retain(|inst| plain_barrier(&insts[*inst]).is_none());
    }
}

/// Returns whether every assumption on the linearised function was derived or assumed on the function before.
fn is_covered(function: &Function, known: &WarpShapes, before: &Function, shapes: &WarpShapes) -> bool {
    if known.obligations().is_empty() {
        return true;
    }
    let homes = homes(before);
    // Known bits of a register: the maximum of those at its definition and those everywhere.
    let most = |reg: Reg| {
        let at_home = homes[reg].map_or(0, |home| shapes.shape_in(reg, home).known());
        shapes.shape(reg).known().max(at_home)
    };
    known.obligations().iter().all(|obligation| {
        let data = &function.insts[obligation.inst];
        let Some(origin) = origin(data).filter(|origin| before.insts.is_valid(*origin)) else { return false };
        let (new, old) = (data.writes(), before.insts[origin].writes());
        new.len() == old.len() && new.iter().zip(old).all(|(new, old)| known.shape(*new).known() <= most(old))
    })
}

/// Returns the block in which each register is defined.
fn homes(function: &Function) -> SecondaryMap<Reg, Option<Block>> {
    let mut homes = SecondaryMap::new();
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            function.insts[*inst].writes().into_iter().for_each(|reg| homes[reg] = Some(*block));
        }
    }
    homes
}

/// Prepares the kernel to run each thread on its own.
fn slow(
    module: &Module,
    kernel: Func,
    function: Function,
    block: [u32; 3],
    reason: String,
) -> Result<PreparedKernel, CompileFailure> {
    let unit = |func: Func, choice: &mut Choice| -> Result<Unit, CompileFailure> {
        let function = in_ssa_form(module, func, block, choice, false)?;
        let polls = polls(module, &function);
        Ok(Unit { func, function, shapes: Shapes::One, polls })
    };
    let polls = polls(module, &function);
    let main = Unit { func: kernel, function, shapes: Shapes::One, polls };
    let mut choice = Choice::new(module, [kernel]);
    let mut others: Vec<Unit> = vec![];
    let mut work = callees(module, &main.function);
    let mut seen = HashSet::new();
    while let Some(func) = work.pop() {
        if seen.insert(func) {
            let other = unit(func, &mut choice)?;
            work.extend(callees(module, &other.function));
            others.push(other);
        }
    }
    others.sort_by_key(|other| other.func);
    Ok(PreparedKernel {
        kernel: main,
        others,
        kind: Kind::Threads,
        module: None,
        not_vectorised: Some(reason),
        proof: None,
        apart: DisjointParameters::new(),
        runs: block,
    })
}

/// Returns the functions with a body that a function can call, directly or through a pointer.
fn callees(module: &Module, function: &Function) -> Vec<Func> {
    let mut found = vec![];
    let mut indirect = false;
    for call in function.instructions().filter_map(|(_, inst)| inst.call()) {
        match call.callee {
            Callee::Direct(callee) => found.push(resolve(module, callee)),
            Callee::Indirect { .. } => indirect = true,
        }
    }
    if indirect {
        // A pointer may lead to any function.
        found.extend(module.functions.keys());
    }
    found.retain(|func| module.functions[*func].has_body && !module.functions[*func].is_kernel);
    found
}
