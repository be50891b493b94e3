//! Live registers.
//!
//! A register is live at a point if some path from there reads it before it is written. The rules are:
//!
//! - In either form the guard of an instruction is read, and `ret`, or the end of the function, reads the
//!   registers that are the function's results.
//! - In register form a guarded write keeps the old value if the guard is false, so it does not end liveness.
//! - In SSA form every write is a definition, guarded or not. Parameters of a block are defined at its head:
//!   they are not live in. Arguments of an edge are read after the last instruction of the block that it
//!   leaves: they are live out of it.
//!
//! A register that is live into the entry is a parameter of the function, or may be read before it is
//! written.

use crate::bit_set::BitSet;
use crate::cfg::Cfg;
use broadloom_ptx::{Block, BodyForm, Function, InstData, Opcode, Param, Reg};
use cranelift_entity::SecondaryMap;

/// Live registers at the head and at the end of each reachable block.
#[derive(Clone, Debug)]
pub struct Liveness {
    live_in: SecondaryMap<Block, BitSet<Reg>>,
    live_out: SecondaryMap<Block, BitSet<Reg>>,
}

impl Liveness {
    /// Computes the live registers of a function.
    pub fn new(function: &Function, cfg: &Cfg) -> Liveness {
        let room = || BitSet::with_capacity(function.regs.len());
        let mut live_in: SecondaryMap<Block, BitSet<Reg>> = SecondaryMap::new();
        let mut live_out: SecondaryMap<Block, BitSet<Reg>> = SecondaryMap::new();
        let mut defined: SecondaryMap<Block, BitSet<Reg>> = SecondaryMap::new();
        for block in cfg.order() {
            let (mut used, mut written, mut at_end) = (room(), room(), room());
            read_at_end(function, *block, |reg| _ = at_end.insert(reg));
            let data = &function.blocks[*block];
            written.extend(data.params.iter().copied());
            for inst in &data.insts {
                let data = &function.insts[*inst];
                data.each_read(|reg| {
                    if !written.contains(reg) {
                        used.insert(reg);
                    }
                });
                if ends_life(function, data) {
                    data.each_written(|reg| _ = written.insert(reg));
                }
            }
            used.union_with_difference(&at_end, &written);
            live_in[*block] = used;
            live_out[*block] = at_end;
            defined[*block] = written;
        }
        let mut work: Vec<Block> = cfg.order().to_vec();
        let mut waiting: BitSet<Block> = work.iter().copied().collect();
        while let Some(block) = work.pop() {
            waiting.remove(block);
            let mut out = std::mem::take(&mut live_out[block]);
            for target in cfg.successors(block) {
                out.union_with(&live_in[*target]);
            }
            if live_in[block].union_with_difference(&out, &defined[block]) {
                work.extend(cfg.predecessors(block).iter().copied().filter(|from| waiting.insert(*from)));
            }
            live_out[block] = out;
        }
        Liveness { live_in, live_out }
    }

    /// Returns the registers that are live before the first instruction of a block, without its parameters.
    pub fn live_in(&self, block: Block) -> &BitSet<Reg> {
        &self.live_in[block]
    }

    /// Returns the registers that are live after the last instruction of a block, including the arguments of
    /// its edges.
    pub fn live_out(&self, block: Block) -> &BitSet<Reg> {
        &self.live_out[block]
    }

    /// Returns the registers that are live before the instruction at an index of a block. For the number of
    /// its instructions, returns those live out of it. Parameters of the block that are still read are
    /// included.
    pub fn live_before(&self, function: &Function, block: Block, index: usize) -> BitSet<Reg> {
        let mut live = self.live_out[block].clone();
        for inst in function.blocks[block].insts.iter().skip(index).rev() {
            step_back(function, &function.insts[*inst], &mut live);
        }
        live
    }

    /// Walks a block from its end and calls `see` for each instruction, by index, with the registers live
    /// after it.
    pub fn walk_back(&self, function: &Function, block: Block, mut see: impl FnMut(usize, &BitSet<Reg>)) {
        let mut live = self.live_out[block].clone();
        for (index, inst) in function.blocks[block].insts.iter().enumerate().rev() {
            see(index, &live);
            step_back(function, &function.insts[*inst], &mut live);
        }
    }
}

impl Liveness {
    /// Returns the maximum weight of the registers that are live at once after an instruction or at the head
    /// of a block. Results of an instruction count after it, read or not.
    pub fn most_live(&self, function: &Function, weight: impl Fn(Reg) -> u32) -> u32 {
        let mut most = 0;
        for block in function.layout.iter() {
            let mut live = self.live_out[*block].clone();
            let mut now: u32 = live.iter().map(&weight).sum();
            most = most.max(now);
            for inst in function.blocks[*block].insts.iter().rev() {
                let data = &function.insts[*inst];
                let mut unread = 0;
                data.each_written(|reg| unread += if live.contains(reg) { 0 } else { weight(reg) });
                most = most.max(now + unread);
                if ends_life(function, data) {
                    data.each_written(|reg| now -= if live.remove(reg) { weight(reg) } else { 0 });
                }
                data.each_read(|reg| now += if live.insert(reg) { weight(reg) } else { 0 });
                most = most.max(now);
            }
        }
        most
    }
}

/// Updates the live set from after an instruction to before it.
fn step_back(function: &Function, data: &InstData, live: &mut BitSet<Reg>) {
    if ends_life(function, data) {
        data.each_written(|reg| _ = live.remove(reg));
    }
    data.each_read(|reg| _ = live.insert(reg));
}

/// Returns whether a write overwrites the old values completely.
fn ends_life(function: &Function, data: &InstData) -> bool {
    match function.form {
        BodyForm::Registers => data.guard.is_none(),
        BodyForm::Ssa => true,
    }
}

/// Calls `read` for the registers that are read after the last instruction of a block.
fn read_at_end(function: &Function, block: Block, mut read: impl FnMut(Reg)) {
    let data = &function.blocks[block];
    data.edges.iter().flat_map(|edge| &edge.args).for_each(|reg| read(*reg));
    let last = data.insts.last().map(|inst| &function.insts[*inst]);
    let falls_off = || match function.form {
        BodyForm::Registers => function.layout.last() == Some(&block) && last.is_none_or(|last| !last.is_terminator()),
        // Control that leaves without an instruction has an edge to its target.
        BodyForm::Ssa => data.edges.is_empty() && last.is_none_or(|last| !last.is_terminator()),
    };
    if last.is_some_and(|last| last.opcode() == Some(Opcode::Ret)) || falls_off() {
        for result in &function.results {
            match result {
                Param::Reg(reg) => read(*reg),
                Param::Memory(_) => {}
            }
        }
    }
}
