//! `nest_loops`: gives a nested loop its own header.
//!
//! **In**: SSA form. **Out**: SSA form with the same paths. Some back edges to a loop header change no
//! parameter and others do. This happens in `do { do word = *place; while (word == 0); … } while (…)` if both
//! loops begin at the same instruction. The edges without changes then become a loop inside the other one.
//! Lanes in lockstep then wait for each other after the inner loop.

use crate::names::Names;
use broadloom_analysis::{Cfg, Dominators, Loops};
use broadloom_ptx::{Block, BlockData, Edge, Function, Module, Operand};

/// Name of the pass.
pub const NAME: &str = "nest_loops";

/// Gives nested loops of a function in SSA form their own headers.
pub fn run(module: &Module, function: &mut Function) {
    let Some(cfg) = Cfg::new(function) else { return };
    let loops = Loops::new(&cfg, &Dominators::new(&cfg));
    for (_, data) in loops.iter() {
        let header = data.header;
        let params = &function.blocks[header].params;
        let back = || data.latches.iter().flat_map(|latch| &function.blocks[*latch].edges).filter(|edge| edge.target == header);
        let changes = |edge: &Edge| edge.args != *params;
        if !back().any(changes) || back().all(changes) {
            continue;
        }
        let label = Names::all(module, function).take("$rounds");
        let params = std::mem::take(&mut function.blocks[header].params);
        let outer =
            BlockData { label: Some(label), params: params.clone(), edges: vec![Edge::to(header)], ..BlockData::default() };
        let outer = function.blocks.push(outer);
        for from in &function.layout.clone() {
            let is_inside = data.latches.contains(from);
            lead(function, *from, header, |edge| if is_inside && edge.args == params { header } else { outer });
        }
        let at = function.layout.iter().position(|block| *block == header).unwrap_or(0);
        function.layout.insert(at, outer);
    }
}

/// Redirects the edges from a block to a header. Edges that still lead to the header lose their arguments.
fn lead(function: &mut Function, from: Block, header: Block, target: impl Fn(&Edge) -> Block) {
    let data = &mut function.blocks[from];
    for edge in data.edges.iter_mut().filter(|edge| edge.target == header) {
        edge.target = target(edge);
        if edge.target == header {
            edge.args.clear();
        }
    }
    let (Some(last), Some(taken)) = (data.insts.last(), data.edges.first()) else { return };
    for operand in &mut function.insts[*last].operands {
        if let Operand::Label(label) = operand {
            *label = taken.target;
        }
    }
}
