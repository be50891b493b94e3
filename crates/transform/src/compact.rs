//! Removal of unused entries from the tables of a function.
//!
//! Passes leave behind registers, instructions, blocks and target lists that are no longer part of the code.
//! This pass rebuilds the tables in the order of the layout.

use broadloom_ptx::{Block, BlockData, Function, Inst, InstData, Operand, Param, Reg, RegData, TargetList, Targets};
use cranelift_entity::{PrimaryMap, SecondaryMap};

/// Keeps blocks of the layout, their instructions, the registers that these and the function's head name, and
/// the target lists of branches, one for each branch.
pub(crate) fn compact(function: &mut Function) {
    let mut blocks: PrimaryMap<Block, BlockData> = PrimaryMap::new();
    let mut place: SecondaryMap<Block, Block> = SecondaryMap::with_default(Block::from_u32(0));
    for block in &function.layout {
        place[*block] = blocks.push(std::mem::take(&mut function.blocks[*block]));
    }
    let mut insts: PrimaryMap<Inst, InstData> = PrimaryMap::new();
    let mut targets: PrimaryMap<Targets, TargetList> = PrimaryMap::new();
    let mut regs = Registers { old: std::mem::take(&mut function.regs), new: PrimaryMap::new(), place: SecondaryMap::new() };
    for param in function.params.iter_mut().chain(&mut function.results) {
        match param {
            Param::Reg(reg) => regs.keep(reg),
            Param::Memory(_) => {}
        }
    }
    for data in blocks.values_mut() {
        data.params.iter_mut().for_each(|reg| regs.keep(reg));
        for inst in &mut data.insts {
            let mut data = function.insts[*inst].clone();
            data.change_reads(|reg| regs.keep(reg));
            data.change_writes(|reg| regs.keep(reg));
            for operand in &mut data.operands {
                match operand {
                    Operand::Label(block) => *block = place[*block],
                    Operand::Targets(list) => {
                        let TargetList { name, blocks } = function.targets[*list].clone();
                        let blocks = blocks.into_iter().map(|block| place[block]).collect();
                        *list = targets.push(TargetList { name, blocks });
                    }
                    _ => {}
                }
            }
            *inst = insts.push(data);
        }
        for edge in &mut data.edges {
            edge.target = place[edge.target];
            edge.args.iter_mut().for_each(|reg| regs.keep(reg));
        }
    }
    function.layout = blocks.keys().collect();
    function.blocks = blocks;
    function.insts = insts;
    function.targets = targets;
    function.regs = regs.new;
}

struct Registers {
    old: PrimaryMap<Reg, RegData>,
    new: PrimaryMap<Reg, RegData>,
    place: SecondaryMap<Reg, Option<Reg>>,
}

impl Registers {
    fn keep(&mut self, reg: &mut Reg) {
        let Registers { old, new, place } = self;
        *reg = *place[*reg].get_or_insert_with(|| new.push(old[*reg].clone()));
    }
}
