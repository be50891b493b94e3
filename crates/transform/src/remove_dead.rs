//! `remove_dead`: what nobody needs goes.
//!
//! **In**: SSA form. **Out**: SSA form. Keeps what memory, other threads and callers see, and every branch; loses instructions that only
//! compute, and plain loads, whose results nobody needs, parameters of blocks in the same case, and blocks that control
//! cannot reach. A load that goes takes its fault with it.
//!
//! Everything counts as dead until something that stays needs it; so circles that only feed themselves go too.

use crate::blocks::{drop_params, drop_unreachable};
use crate::purity::is_removable;
use broadloom_ptx::{Block, Function, Inst, InstData, Module, Param, Reg};
use cranelift_entity::SecondaryMap;

/// The name of the pass.
pub const NAME: &str = "remove_dead";

/// Where a register gets its value.
#[derive(Clone, Copy, Default)]
enum Source {
    /// From outside.
    #[default]
    Given,
    Inst(Inst),
    /// A parameter of a block, by its place.
    Param(Block, u32),
}

/// Removes what is dead in a function.
pub fn run(_module: &Module, function: &mut Function) {
    drop_unreachable(function);
    let mut source: SecondaryMap<Reg, Source> = SecondaryMap::new();
    // What edges pass to each parameter of each block.
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

/// Whether an instruction is needed whoever reads its results: it does something, or writes a result of the function.
fn stays(function: &Function, data: &InstData) -> bool {
    let gives = || {
        let results = || function.results.iter().filter(|result| matches!(result, Param::Reg(_)));
        results().next().is_some() && data.writes().into_iter().any(|reg| results().any(|result| *result == Param::Reg(reg)))
    };
    !is_removable(data) || gives()
}
