//! `fold_ranges`: replaces values whose range is a single number.
//!
//! **In**: SSA form. **Out**: SSA form in which every integer instruction with only one possible value, for
//! blocks of the shape that the facts name, is a copy of that value. Keeps everything else. Without a shape
//! nothing is done.
//!
//! The pass mainly serves C++ code. The remainder of a signed thread index by a power of two tests the sign
//! of a number that is never negative. Once that is resolved, folding leaves a mask, and a row of lanes is
//! recognised.

use crate::facts::Facts;
use crate::purity::is_pure;
use crate::write::made;
use broadloom_analysis::{Cfg, Dominators, Facts as Launch, Loops, RangePlan};
use broadloom_ptx::{Function, Imm, Inst, InstData, Module, Opcode, Operand, Type};

/// Name of the pass.
pub const NAME: &str = "fold_ranges";

/// Replaces values whose range is a single number.
pub fn run(_module: &Module, function: &mut Function, facts: &Facts) {
    let (Some(block), Some(cfg)) = (facts.with_directives(function).block, Cfg::new(function)) else { return };
    let dominators = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dominators);
    let plan = RangePlan::new(function, &cfg, &dominators, &loops);
    let launch = match facts.grid {
        Some(grid) => Launch::new(block).with_grid(grid),
        None => Launch::new(block),
    };
    let ranges = plan.ranges(&launch);
    let mut known: Vec<(Inst, InstData)> = vec![];
    for inst in cfg.order().iter().flat_map(|block| &function.blocks[*block].insts) {
        let data = &function.insts[*inst];
        let [result] = data.operands.first().map_or(&[][..], std::slice::from_ref) else { continue };
        let Operand::Reg(reg) = result else { continue };
        let name = match function.regs[*reg].ty {
            Type::B32 | Type::U32 | Type::S32 => "mov.b32",
            Type::B64 | Type::U64 | Type::S64 => "mov.b64",
            _ => continue,
        };
        let done = data.opcode() == Some(Opcode::Mov) && matches!(data.operands.get(1), Some(Operand::Imm(_)));
        if done || data.guard.is_some() || !is_pure(data) || data.writes().as_slice() != [*reg] {
            continue;
        }
        if let Some(value) = ranges.range(*reg).value() {
            let copy = made(name, [Operand::Reg(*reg), Operand::Imm(Imm::from_u64(value))]);
            known.push((*inst, InstData { loc: data.loc, span: data.span, ..copy }));
        }
    }
    for (inst, data) in known {
        function.insts[inst] = data;
    }
}
