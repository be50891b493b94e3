//! `remove_dead`: removes unused code.
//!
//! **In**: SSA form. **Out**: SSA form. Keeps everything that memory, other threads and callers see, and
//! every branch. Removes pure instructions and plain loads with unused results, unused block parameters, and
//! unreachable blocks. A removed load no longer faults.
//!
//! Everything counts as dead until live code needs it, so cycles that only feed themselves are removed too.

use crate::blocks::{drop_params, drop_unreachable};
use crate::purity::is_removable;
use broadloom_ptx::{Block, Function, Inst, InstData, Module, Param, Reg};
use cranelift_entity::SecondaryMap;

/// Name of the pass.
pub const NAME: &str = "remove_dead";

/// Definition of a register.
#[derive(Clone, Copy, Default)]
enum Source {
    /// Defined outside.
    #[default]
    Given,
    Inst(Inst),
    /// Parameter of a block, by index.
    Param(Block, u32),
}

/// Removes dead code of a function.
pub fn run(_module: &Module, function: &mut Function) {
    drop_unreachable(function);
    let mut source: SecondaryMap<Reg, Source> = SecondaryMap::new();
    // Arguments of edges for each parameter of each block.
    let mut passed: SecondaryMap<Block, Vec<(Block, u32)>> = SecondaryMap::new();
    let mut work: Vec<Reg> = vec![];
    for block in &function.layout {
        let data = &function.blocks[*block];
        for (index, param) in data.params.iter().enumerate() {
            source[*param] = Source::Param(*block, index as u32);
        }
        for inst in &data.insts {
            let data = &function.insts[*inst];
            data.each_written(|reg| source[reg] = Source::Inst(*inst));
            if stays(function, data) {
                data.each_read(|reg| work.push(reg));
            }
        }
        for (index, edge) in data.edges.iter().enumerate() {
            passed[edge.target].push((*block, index as u32));
        }
    }
    let mut live: SecondaryMap<Reg, bool> = SecondaryMap::new();
    while let Some(reg) = work.pop() {
        if std::mem::replace(&mut live[reg], true) {
            continue;
        }
        match source[reg] {
            Source::Given => {}
            Source::Inst(inst) => function.insts[inst].each_read(|reg| work.push(reg)),
            Source::Param(block, index) => {
                let edges = passed[block].iter().map(|(from, edge)| &function.blocks[*from].edges[*edge as usize]);
                work.extend(edges.map(|edge| edge.args[index as usize]));
            }
        }
    }
    for block in function.layout.clone() {
        let mut kept = std::mem::take(&mut function.blocks[block].insts);
        kept.retain(|inst| {
            let data = &function.insts[*inst];
            let mut read = false;
            data.each_written(|reg| read |= live[reg]);
            read || stays(function, data)
        });
        function.blocks[block].insts = kept;
    }
    drop_params(function, |reg| !live[reg]);
}

/// Returns whether an instruction is needed even if its results are unused: it has effects, or writes a
/// result of the function.
fn stays(function: &Function, data: &InstData) -> bool {
    let gives = || {
        let results = || function.results.iter().filter(|result| matches!(result, Param::Reg(_)));
        results().next().is_some() && data.writes().into_iter().any(|reg| results().any(|result| *result == Param::Reg(reg)))
    };
    !is_removable(data) || gives()
}
