//! `linearise`: replaces divergent control flow by masks.
//!
//! **In**: SSA form without `brx.idx` (`lower_branches`). **Out**: SSA form in which every branch is uniform,
//! also for inactive lanes: all lanes of a warp take the same path. Keeps every value that a lane sees and
//! every effect. The position of each lane is no longer explicit; predicates hold it. The result is ordinary
//! PTX: divergent branches have become masks, instructions with effects are guarded by them, and
//! `vote.sync.any` skips code that no lane waits for.
//!
//! The work is done in steps, one file each:
//! - [`levels`]: the function as a nest of loops, each an acyclic graph;
//! - [`plan`]: which control flow stays and which becomes masks;
//! - [`steady`]: which conditions are equal even in masked-off lanes;
//! - [`emit`] and [`guard`]: the code; [`build`]: SSA construction on the way;
//! - [`converge`], [`arriving_lanes`] and [`spin`]: code that cannot run this way, because lanes would wait for each
//!   other.
//!
//! Rejected, each with a [`Reason`]:
//! - loops with several entries;
//! - barriers that not all lanes of a warp reach;
//! - warp operations that name lanes that may be elsewhere;
//! - loops in which a lane may wait for an action of another lane after the loop;
//! - divergent branches nested more than a hundred deep;
//! - `brx.idx`;
//! - results in registers, and `exit` in a called function.
//!
//! Not taken: partial linearisation in one order of all blocks (Moll and Hack). It keeps more uniform
//! branches between overlapping divergent regions, but needs a mask for each block instead of each region.

mod arriving_lanes;
mod build;
mod converge;
mod definitions;
mod emit;
mod guard;
mod levels;
mod places;
mod plan;
mod polls;
mod reason;
mod sides;
mod spin;
mod steady;
mod tidy;

use crate::compact::compact;
use crate::unify_exits;
use broadloom_analysis::{Assume, Cfg, Dominators, Facts, Loops, RangePlan, Shapes};
use broadloom_diag::{Code, Diagnostic, Diagnostics};
use broadloom_ptx::{Block, Function, Module, Opcode, Operand, Param, Reg, Special, Type};
use build::Builder;
use cranelift_entity::SecondaryMap;
use emit::Emitter;
use levels::{Kind, Levels, Node};
use plan::LevelPlan;
use std::collections::HashMap;
use steady::SteadyValues;

pub use converge::{Convergence, barriers_are_convergent, comes_apart, meets_others};
pub use plan::DEEPEST;
pub use reason::Reason;

/// Name of the pass.
pub const NAME: &str = "linearise";

/// Number of lanes of a warp.
const LANES: u64 = 32;

/// Error code for code that cannot run in lockstep.
pub const APART: Code = Code("T0002");

/// Runs the pass with a known block shape or none. Without one the function's own directives are used, and
/// without any the block is one warp.
pub(crate) fn run_with(module: &Module, function: &mut Function, facts: &crate::Facts) -> Result<(), Diagnostics> {
    let block = facts.with_directives(function).block.unwrap_or([LANES as u32, 1, 1]);
    let before = function.clone();
    run_for(module, function, &Facts::new(block)).map_err(|reason| {
        let message = format!("the lanes of a warp cannot go through `{}` together", before.name);
        let span = reason.inst.filter(|inst| before.insts.is_valid(*inst)).map_or(before.span, |inst| before.insts[inst].span);
        Diagnostics::from(Diagnostic::error(APART, message).at(span, reason.text))
    })
}

/// Makes every branch of a function uniform, for launches that satisfy the facts. [`Shapes`] determine which
/// branches are divergent.
pub fn run_for(module: &Module, function: &mut Function, facts: &Facts) -> Result<(), Reason> {
    unify_exits::run(module, function);
    let Some(cfg) = Cfg::new(function) else { return Ok(()) };
    let dominators = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dominators);
    let ranges = RangePlan::new(function, &cfg, &dominators, &loops);
    let shapes = Shapes::new(function, &cfg, &loops, &ranges, facts, Assume::Nothing);
    run(module, function, &|block| shapes.is_divergent_branch(block), Blocks::Masked(facts.block))
}

/// Thread blocks that a function is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Any shape with full warps.
    Any,
    /// This shape. If its threads do not fill the last warp, the runner of the code ensures that the surplus
    /// lanes do nothing.
    Shaped([u32; 3]),
    /// This shape. If its threads do not fill the last warp, everything runs under the mask of existing
    /// threads. The surplus lanes have thread indices that continue in the same way.
    Masked([u32; 3]),
}

impl Blocks {
    fn shape(self) -> Option<[u32; 3]> {
        match self {
            Blocks::Any => None,
            Blocks::Shaped(shape) | Blocks::Masked(shape) => Some(shape),
        }
    }
}

/// Makes every branch of a function uniform.
///
/// `is_divergent` tells whether lanes may disagree at the branch of a block. The function should already have
/// one exit ([`unify_exits`]), so that `is_divergent` knows the branches to it.
pub fn run(module: &Module, function: &mut Function, is_divergent: &dyn Fn(Block) -> bool, blocks: Blocks) -> Result<(), Reason> {
    refuse(function)?;
    unify_exits::run(module, function);
    let Some(cfg) = Cfg::new(function) else { return Ok(()) };
    let dominators = Dominators::new(&cfg);
    let levels = Levels::new(function, &cfg, &dominators)?;
    if let Some(reason) = barriers_are_convergent(function, &cfg, is_divergent, blocks.shape()).reasons.into_iter().next() {
        return Err(reason);
    }
    spin::refuse_asking_apart(function, &cfg, &levels, is_divergent)?;
    let plans = plan::plan(function, &levels, is_divergent)?;
    spin::refuse_spinning(module, function, &cfg, &dominators, &levels, &plans, blocks.shape())?;
    let homes = homes(function, &cfg, &levels);
    let steady = SteadyValues::new(function, &cfg, &levels, &plans, &homes);
    let outs = outs(function, &cfg, &levels, &plans, &homes);
    let mut builder = Builder::new(module, function);
    let at = builder.entry();
    for param in &function.params {
        if let Param::Reg(reg) = param {
            builder.write(build::Variable::Value(*reg), at, *reg);
        }
    }
    let mut emitter = Emitter {
        input: function,
        cfg: &cfg,
        levels: &levels,
        plans: &plans,
        steady: &steady,
        homes: &homes,
        outs: &outs,
        brought: HashMap::new(),
        builder,
        at,
        combined: HashMap::new(),
        everybody: None,
        lines: 0,
    };
    let mask = match blocks {
        Blocks::Masked(shape) if !fills_warps(shape) => Some(emitter.exists(shape)),
        Blocks::Any | Blocks::Shaped(_) | Blocks::Masked(_) => None,
    };
    emitter.function(mask);
    *function = emitter.builder.finish();
    tidy::tidy(module, function);
    compact(function);
    Ok(())
}

/// Returns whether the threads of a block fill its last warp.
fn fills_warps(shape: [u32; 3]) -> bool {
    shape.iter().map(|count| u64::from(*count)).product::<u64>().is_multiple_of(LANES)
}

fn refuse(function: &Function) -> Result<(), Reason> {
    if function.results.iter().any(|result| matches!(result, Param::Reg(_))) {
        return Err(Reason::new("its results are in registers", None));
    }
    for (inst, data) in function.instructions() {
        match data.opcode() {
            None => return Err(Reason::new(format!("nothing is known of `{}`", data.mnemonic_text()), Some(inst))),
            Some(Opcode::BrxIdx) => return Err(Reason::new("a branch has a list of targets", Some(inst))),
            Some(Opcode::Exit) if !function.is_kernel => {
                return Err(Reason::new("a function that is called ends the thread", Some(inst)));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Returns the level in which each register is defined.
fn homes(function: &Function, cfg: &Cfg, levels: &Levels) -> SecondaryMap<Reg, usize> {
    let mut homes = SecondaryMap::new();
    for block in cfg.order() {
        let level = levels.innermost(*block);
        let data = &function.blocks[*block];
        data.params.iter().for_each(|reg| homes[*reg] = level);
        for inst in &data.insts {
            function.insts[*inst].writes().into_iter().for_each(|reg| homes[reg] = level);
        }
    }
    homes
}

/// Returns, for each divergent loop, the registers that are computed in it and read outside, each with the
/// node that defines it.
fn outs(
    function: &Function,
    cfg: &Cfg,
    levels: &Levels,
    plans: &[LevelPlan],
    homes: &SecondaryMap<Reg, usize>,
) -> Vec<Vec<(Reg, Node)>> {
    let mut places: SecondaryMap<Reg, Option<Block>> = SecondaryMap::new();
    let mut reads: SecondaryMap<Reg, Vec<usize>> = SecondaryMap::new();
    for block in cfg.order() {
        let level = levels.innermost(*block);
        let data = &function.blocks[*block];
        data.params.iter().for_each(|reg| places[*reg] = Some(*block));
        for inst in &data.insts {
            let data = &function.insts[*inst];
            data.writes().into_iter().for_each(|reg| places[reg] = Some(*block));
            data.reads().into_iter().for_each(|reg| reads[reg].push(level));
        }
        data.edges.iter().flat_map(|edge| &edge.args).for_each(|reg| reads[*reg].push(level));
    }
    let mut outs = vec![vec![]; levels.levels.len()];
    for reg in function.regs.keys() {
        let Some(place) = places[reg] else { continue };
        let mut at = Some(homes[reg]);
        while let Some(level) = at {
            let data = &levels.levels[level];
            let leaves = plans[level].divergent && reads[reg].iter().any(|reader| !levels.is_inside(*reader, level));
            if leaves {
                let kind = match levels.kind_in(level, place) {
                    Kind::Back => Kind::Block(place),
                    kind => kind,
                };
                outs[level].extend(data.node(kind).map(|node| (reg, node)));
            }
            at = data.parent;
        }
    }
    outs
}

impl Emitter<'_> {
    /// Returns the lanes whose threads exist: those whose index in the block is below the number of threads.
    fn exists(&mut self, [x, y, z]: [u32; 3]) -> Reg {
        let at = self.at;
        let [first, second, third] = [Special::TidX, Special::TidY, Special::TidZ]
            .map(|special| self.builder.compute(at, Type::U32, "mov.u32", [Operand::Sink, Operand::Special(special)]));
        // No index is omitted, even if it is zero in all existing threads: in surplus lanes it need not be
        // zero.
        let plane = self.builder.compute(at, Type::U32, "mad.lo.u32", [Operand::Sink, third.into(), y.into(), second.into()]);
        let number = self.builder.compute(at, Type::U32, "mad.lo.u32", [Operand::Sink, plane.into(), x.into(), first.into()]);
        let row = u64::from(x) * u64::from(y) * u64::from(z);
        self.builder.compute(at, Type::Pred, "setp.lt.u32", [Operand::Sink, number.into(), row.into()])
    }
}
