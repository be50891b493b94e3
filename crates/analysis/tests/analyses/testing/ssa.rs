//! Test code in SSA form, from text.

use broadloom_analysis::{BlockParameters, Cfg, Dominators, Liveness};
use broadloom_ptx::{Block, BodyForm, Edge, Function, InstData, Operand, Reg};
use std::collections::HashMap;

/// Returns the first kernel of a text in SSA form. Its code has no guarded writes, and no branch to its first
/// block.
pub(crate) fn kernel(text: &str) -> Function {
    let module = super::parsed(text);
    let function = module.kernels().next().unwrap().1.clone();
    to_ssa(function)
}

/// Converts a function to SSA form in a simple way: parameters where they are needed, and a new register for
/// each write.
fn to_ssa(mut function: Function) -> Function {
    let cfg = Cfg::new(&function).unwrap();
    let dominators = Dominators::new(&cfg);
    let liveness = Liveness::new(&function, &cfg);
    let needed = BlockParameters::new(&function, &cfg, &dominators, &liveness);
    let successors = function.successors();
    function.form = BodyForm::Ssa;
    function.layout = cfg.order().to_vec();
    let mut out: HashMap<Block, HashMap<Reg, Reg>> = HashMap::new();
    // Registers that no path writes before they are passed on get a value at the entry.
    let count = function.regs.len() as u32;
    let mut unset: HashMap<Reg, Reg> = HashMap::new();
    for block in dominators.preorder() {
        let mut names = dominators.immediate(block).map(|above| out[&above].clone()).unwrap_or_default();
        for reg in needed.of(block) {
            let copy = fresh(&mut function, *reg);
            function.blocks[block].params.push(copy);
            names.insert(*reg, copy);
        }
        for inst in function.blocks[block].insts.clone() {
            let mut data = function.insts[inst].clone();
            data.change_reads(|reg| *reg = names.get(reg).copied().unwrap_or(*reg));
            for reg in data.writes() {
                assert!(data.guard.is_none(), "a guarded write");
                let copy = fresh(&mut function, reg);
                names.insert(reg, copy);
            }
            data.change_writes(|reg| *reg = names[reg]);
            function.insts[inst] = data;
        }
        out.insert(block, names);
    }
    for block in cfg.order() {
        let mut edges = vec![];
        for target in &successors[*block] {
            let args = needed.of(*target).iter().map(|reg| match out[block].get(reg) {
                Some(name) => *name,
                None => *unset.entry(*reg).or_insert_with(|| fresh(&mut function, *reg)),
            });
            edges.push(Edge { target: *target, args: args.collect() });
        }
        function.blocks[*block].edges = edges;
    }
    assert!((0..count).all(|index| !unset.values().any(|reg| *reg == Reg::from_u32(index))));
    for reg in unset.values() {
        let ty = function.regs[*reg].ty;
        let zero = InstData::of(&format!("mov.b{}", ty.bits()), [Operand::Reg(*reg), Operand::from(0)]).unwrap();
        let inst = function.insts.push(zero);
        function.blocks[cfg.entry()].insts.insert(0, inst);
    }
    function
}

fn fresh(function: &mut Function, reg: Reg) -> Reg {
    let mut data = function.regs[reg].clone();
    data.name = format!("{}_{}", data.name, function.regs.len());
    function.regs.push(data)
}
