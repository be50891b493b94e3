//! `if_convert`: replaces small branches by selections.
//!
//! **In**: SSA form. **Out**: SSA form. Keeps every value. Removes branches whose sides are short, meet again
//! at once and only compute. Both sides are then always computed, and a `selp` selects each value that
//! differs. Lanes of a warp stay together. That pays as long as the extra work costs less than running both
//! sides one after the other.
//!
//! Inner branches are converted first, so that the result can be part of an outer one. A branch marked
//! uniform (`.uni`) is left unchanged: it costs nothing else.

use crate::blocks::{arrivals, control, join, joinable, leave_by};
use crate::purity::is_speculable;
use crate::substitution::Substitution;
use crate::write::Writer;
use broadloom_analysis::Cfg;
use broadloom_ptx::{Block, Class, Edge, Function, Guard, Inst, InstData, Modifier, Module, Opcode, Reg, RegData};
use cranelift_entity::SecondaryMap;

/// Name of the pass.
pub const NAME: &str = "if_convert";

/// Maximum cost of unneeded work, including selections: about the cost of a divergent branch on a vector
/// machine.
const LIMIT: u32 = 12;

/// Converts the branches of a function if that pays off.
pub fn run(_module: &Module, function: &mut Function) {
    let Some(cfg) = Cfg::new(function) else { return };
    let arrivals = arrivals(function);
    let mut conversion = Conversion { function, arrivals, substitution: Substitution::default(), gone: SecondaryMap::new() };
    for block in cfg.order().iter().rev().copied() {
        if conversion.gone[block] {
            continue;
        }
        while conversion.convert(block) || conversion.join(block) {}
    }
    let Conversion { function, mut substitution, gone, .. } = conversion;
    function.layout.retain(|block| !gone[*block]);
    substitution.apply(function);
}

struct Conversion<'f> {
    function: &'f mut Function,
    arrivals: SecondaryMap<Block, u32>,
    substitution: Substitution,
    gone: SecondaryMap<Block, bool>,
}

/// One side of a branch.
struct BranchSide {
    /// Block that belongs to this side only, if there is one.
    block: Option<Block>,
    /// Target with arguments.
    end: Edge,
    cost: u32,
}

impl Conversion<'_> {
    /// Returns the side of a branch that starts with an edge: directly to its end, or through its own block
    /// that only computes.
    fn way(&self, edge: &Edge, through: bool) -> Option<BranchSide> {
        if !through {
            return Some(BranchSide { block: None, end: edge.clone(), cost: 0 });
        }
        let data = &self.function.blocks[edge.target];
        let [end] = data.edges.as_slice() else { return None };
        let alone = self.arrivals[edge.target] == 1 && data.params.is_empty() && data.pragmas.is_empty();
        if !alone || self.function.entry() == Some(edge.target) || end.target == edge.target {
            return None;
        }
        let mut total = 0;
        for inst in &data.insts {
            let data = &self.function.insts[*inst];
            if data.opcode() == Some(Opcode::Bra) && data.guard.is_none() {
                continue;
            }
            total += cost(data)?;
            if total > LIMIT {
                return None;
            }
        }
        Some(BranchSide { block: Some(edge.target), end: end.clone(), cost: total })
    }

    /// Returns both sides of a branch, if they meet.
    fn ways(&self, edges: [&Edge; 2]) -> Option<[BranchSide; 2]> {
        [[false, false], [true, false], [false, true], [true, true]].into_iter().find_map(|[first, second]| {
            let ways = [self.way(edges[0], first)?, self.way(edges[1], second)?];
            let meet = ways[0].end.target == ways[1].end.target;
            let apart = ways[0].block != Some(ways[1].end.target) && ways[1].block != Some(ways[0].end.target);
            (meet && apart).then_some(ways)
        })
    }

    fn convert(&mut self, block: Block) -> bool {
        let Some(last) = control(self.function, block) else { return false };
        let data = &self.function.insts[last];
        let (Some(Opcode::Bra), Some(guard)) = (data.opcode(), data.guard) else { return false };
        let [taken, other] = self.function.blocks[block].edges.as_slice() else { return false };
        if data.has(Modifier::Uni) || taken.target == block || other.target == block {
            return false;
        }
        let Some(ways) = self.ways([taken, other]) else { return false };
        if ways[0].end.target == block {
            return false;
        }
        let pairs: Vec<[Reg; 2]> = ways[0].end.args.iter().zip(&ways[1].end.args).map(|(a, b)| [*a, *b]).collect();
        let chosen: u32 = pairs.iter().filter(|[a, b]| a != b).map(|[a, _]| self.choice_cost(*a)).sum();
        if ways[0].cost + ways[1].cost + chosen > LIMIT {
            return false;
        }
        let target = ways[0].end.target;
        // The branch comes last again, without its guard, after everything of both sides.
        self.function.blocks[block].insts.pop();
        for way in ways.iter().filter_map(|way| way.block) {
            self.take(block, way);
        }
        let args = self.choose(block, last, guard, pairs);
        self.function.blocks[block].insts.push(last);
        leave_by(self.function, block, Edge { target, args });
        self.arrivals[target] -= 1;
        true
    }

    /// Moves the computations of a block to the end of another.
    fn take(&mut self, to: Block, from: Block) {
        let insts = std::mem::take(&mut self.function.blocks[from].insts);
        let computing = insts.into_iter().filter(|inst| !self.function.insts[*inst].is_control()).collect::<Vec<Inst>>();
        self.function.blocks[to].insts.extend(computing);
        self.function.blocks[from].edges.clear();
        self.gone[from] = true;
    }

    fn choose(&mut self, block: Block, at: Inst, guard: Guard, pairs: Vec<[Reg; 2]>) -> Vec<Reg> {
        let mut writer = Writer::new(self.function);
        writer.at(at);
        let mut made: Vec<([Reg; 2], Reg)> = vec![];
        let mut args = vec![];
        for pair in pairs {
            let earlier = made.iter().find(|(other, _)| *other == pair).map(|(_, reg)| *reg);
            args.push(match earlier {
                _ if pair[0] == pair[1] => pair[0],
                Some(reg) => reg,
                None => {
                    let RegData { name, ty } = writer.function.regs[pair[0]].clone();
                    let name = format!("{name}$or");
                    let reg = writer.reg(name.clone(), ty);
                    writer.select(reg, guard, pair, &mut |function, ty| function.regs.push(RegData { name: name.clone(), ty }));
                    made.push((pair, reg));
                    reg
                }
            });
        }
        let insts = writer.take();
        self.function.blocks[block].insts.extend(insts);
        args
    }

    /// Returns the number of instructions of a selection.
    fn choice_cost(&self, reg: Reg) -> u32 {
        match self.function.regs[reg].ty.bits() {
            1 => 3,
            8 => 4,
            16 | 32 | 64 => 1,
            _ => 5,
        }
    }

    fn join(&mut self, block: Block) -> bool {
        let Some(next) = joinable(self.function, block, &self.arrivals) else { return false };
        join(self.function, block, &mut self.substitution);
        self.gone[next] = true;
        true
    }
}

/// Returns the cost of an instruction, in additions. Returns `None` if it must not be speculated, or is too
/// expensive for that.
fn cost(data: &InstData) -> Option<u32> {
    if data.guard.is_some() || !is_speculable(data) {
        return None;
    }
    let wide = data.types().any(|ty| ty.bits() == 64);
    match data.class()? {
        Class::Move | Class::Address => Some(0),
        Class::Compare | Class::Logic | Class::Shift => Some(1),
        Class::Arith | Class::Float | Class::Half => match data.opcode()? {
            Opcode::Div | Opcode::Rem | Opcode::Sqrt | Opcode::Rsqrt | Opcode::Rcp => None,
            Opcode::Sin | Opcode::Cos | Opcode::Lg2 | Opcode::Ex2 | Opcode::Tanh => None,
            Opcode::Mul | Opcode::Mad if wide => Some(3),
            _ => Some(1),
        },
        Class::Convert => Some(2),
        Class::Bits => Some(2),
        Class::Video | Class::Carry | Class::Memory | Class::Control | Class::Barrier | Class::Warp | Class::Atomic => None,
        Class::Fence | Class::Misc | Class::Texture | Class::Surface | Class::Matrix | Class::Async => None,
        Class::Mbarrier | Class::Cluster | Class::Multimem => None,
    }
}
