//! `unify_exits`: gives a function a single exit block.
//!
//! **In**: SSA form. **Out**: SSA form in which at most one block leaves the function: each `ret` and `exit`,
//! guarded or not, is a branch to a block that contains only one of them. `trap` stays. Keeps every path. In
//! a kernel, the distinction between `ret` and `exit` is lost; they are equivalent there.
//!
//! A called function keeps its `exit`s, which end the thread and not the function. Results that are registers
//! are still written before each `ret`.

use crate::names::Names;
use crate::write::made;
use broadloom_ptx::{Block, BlockData, Edge, Function, InstData, Module, Opcode, Operand};

/// Name of the pass.
pub const NAME: &str = "unify_exits";

/// Gives a function in SSA form one exit.
pub fn run(module: &Module, function: &mut Function) {
    let leaving: Vec<Block> = function.layout.iter().copied().filter(|block| leaves(function, *block)).collect();
    let guarded = |block: &Block| function.blocks[*block].insts.last().is_some_and(|last| function.insts[*last].guard.is_some());
    if leaving.is_empty() || (leaving.len() == 1 && !leaving.iter().any(guarded)) {
        return;
    }
    let label = Names::all(module, function).take("$exit");
    let exit = function.blocks.push(BlockData { label: Some(label), ..BlockData::default() });
    function.layout.push(exit);
    let ret = function.insts.push(made("ret", []));
    function.blocks[exit].insts.push(ret);
    for block in leaving {
        let Some(last) = function.blocks[block].insts.last().copied() else { continue };
        match function.insts[last].guard {
            Some(_) => {
                let InstData { mnemonic, operands, .. } = made("bra", [Operand::Label(exit)]);
                let data = &mut function.insts[last];
                (data.mnemonic, data.operands) = (mnemonic, operands);
            }
            None => {
                function.blocks[block].insts.pop();
            }
        }
        function.blocks[block].edges.insert(0, Edge::to(exit));
    }
}

/// Returns whether control leaves the function at the end of a block.
fn leaves(function: &Function, block: Block) -> bool {
    let last = function.blocks[block].insts.last().and_then(|last| function.insts[*last].opcode());
    match last {
        Some(Opcode::Ret) => true,
        Some(Opcode::Exit) => function.is_kernel,
        _ => false,
    }
}
