//! `sink_stores`: moves repeated stores of a loop to one address after the loop.
//!
//! **In**: SSA form. **Out**: SSA form. Keeps the contents of memory after the loop; removes stores that
//! nothing observes. For example, `sum[i] += x[k]` in a loop over `k` stores in every iteration, because a
//! compiler cannot tell whether `sum[i]` is one of the `x[k]`. If each lane has its own row, every lane pays
//! this cost in every iteration.
//!
//! Stores to a loop-invariant address, of the same bytes, are moved if
//!
//! - each is executed before every exit of the loop, so that the last one of them determines the final value;
//! - no other access of the loop can alias: it uses the same register with another offset, memory of another
//!   space or memory that is never written (`ld.global.nc`), or its address derives from another kernel
//!   parameter ([`Origins`]);
//! - nothing in the loop makes the stores visible to other threads: it computes, loads and stores, and no
//!   access is ordered.
//!
//! The pass returns the condition on a launch: pairs of parameters, by their offsets in the parameter block,
//! that must point to different buffers.

use crate::blocks::retarget;
use crate::names::Names;
use crate::purity::{is_plain_load, is_plain_store, is_speculable};
use broadloom_analysis::{Cfg, Dominators, LoopData, Loops, Origins};
use broadloom_ptx::{Address, Base, Block, BlockData, Edge, Function, Inst, Modifier, Module, Opcode, Operand, Reg, Space};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeSet;

/// Name of the pass.
pub const NAME: &str = "sink_stores";

/// Pairs of kernel parameters, by their offsets in the parameter block, that point to different buffers.
pub type DisjointParameters = BTreeSet<(u64, u64)>;

/// Moves stores after loops. Returns the assumptions made.
pub fn run(module: &Module, function: &mut Function) -> DisjointParameters {
    let mut apart = DisjointParameters::new();
    if !function.is_kernel {
        return apart;
    }
    // Each iteration moves a store out of a loop.
    while let Some(found) = find(function) {
        apart.extend(&found.apart);
        found.sink(module, function);
    }
    apart
}

/// Load or store of a loop.
#[derive(Clone, Copy)]
struct LoopAccess {
    inst: Inst,
    block: Block,
    address: Address,
    bytes: i64,
    space: Space,
    stores: bool,
    /// True for memory that a kernel never writes.
    constant: bool,
}

/// Stores that can be moved.
struct MovableStores {
    stores: Vec<Inst>,
    /// Store that determines the final value.
    last: Inst,
    exits: Vec<(Block, Block)>,
    apart: DisjointParameters,
}

fn find(function: &Function) -> Option<MovableStores> {
    let cfg = Cfg::new(function)?;
    let dominators = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dominators);
    if loops.is_empty() || !loops.is_reducible() {
        return None;
    }
    let origins = Origins::new(function, &cfg);
    let mut homes: SecondaryMap<Reg, Option<Block>> = SecondaryMap::new();
    for block in cfg.order() {
        function.blocks[*block].params.iter().for_each(|reg| homes[*reg] = Some(*block));
        for inst in &function.blocks[*block].insts {
            function.insts[*inst].each_written(|reg| homes[reg] = Some(*block));
        }
    }
    // Inner loops first: stores that leave them may leave the next one too.
    loops.iter().rev().find_map(|(id, around)| {
        let accesses = accesses(function, around)?;
        let fixed = |reg: Reg| homes[reg].is_none_or(|home| !loops.contains(id, home));
        let before_all = |block: Block| around.exits.iter().all(|(from, _)| dominators.dominates(block, *from));
        let search = Search { function, origins: &origins, accesses: &accesses };
        accesses.iter().find_map(|access| {
            let leaves = access.stores && is_fixed(access.address, fixed) && !around.exits.is_empty();
            if leaves { search.group(access, around, before_all) } else { None }
        })
    })
}

fn is_fixed(address: Address, fixed: impl Fn(Reg) -> bool) -> bool {
    match address.base {
        Base::Reg(reg) => fixed(reg),
        Base::Symbol(_) | Base::Absolute => false,
    }
}

/// Returns all accesses of a loop, if nothing else in it accesses memory or is visible to other threads.
fn accesses(function: &Function, around: &LoopData) -> Option<Vec<LoopAccess>> {
    let mut found = vec![];
    for block in &around.blocks {
        for inst in &function.blocks[*block].insts {
            let data = &function.insts[*inst];
            match data.opcode() {
                Some(Opcode::Bra) => {}
                Some(Opcode::St) if is_plain_store(data) => found.push(access(function, *inst, *block)?),
                Some(Opcode::Ld) if is_plain_load(data) => found.push(access(function, *inst, *block)?),
                _ if is_speculable(data) => {}
                _ => return None,
            }
        }
    }
    Some(found)
}

fn access(function: &Function, inst: Inst, block: Block) -> Option<LoopAccess> {
    let data = &function.insts[inst];
    let address = data.address()?;
    let elements = data.operands.iter().map(|operand| if let Operand::Vector(list) = operand { list.len() } else { 1 }).max()?;
    Some(LoopAccess {
        inst,
        block,
        address,
        bytes: elements as i64 * i64::from(data.types().next()?.bytes()),
        space: data.space(),
        stores: data.opcode() == Some(Opcode::St),
        constant: data.has(Modifier::Nc) || matches!(data.space(), Space::Const | Space::Param),
    })
}

struct Search<'s> {
    function: &'s Function,
    origins: &'s Origins,
    accesses: &'s [LoopAccess],
}

impl Search<'_> {
    /// Returns the stores to the address of one, if they can be moved.
    fn group(&self, one: &LoopAccess, around: &LoopData, before_all: impl Fn(Block) -> bool) -> Option<MovableStores> {
        if one.space != Space::Global {
            return None;
        }
        let mut apart = DisjointParameters::new();
        let mut stores: Vec<&LoopAccess> = vec![];
        for other in self.accesses {
            let same = other.stores && other.address == one.address && other.bytes == one.bytes && other.space == one.space;
            if same {
                let always = self.function.insts[other.inst].guard.is_none() && before_all(other.block);
                stores.push(Some(other).filter(|_| always)?);
            } else {
                self.is_elsewhere(one, other, &mut apart).then_some(())?;
            }
        }
        // Blocks that precede all exits form a chain, so they are in the order of the loop.
        let last = stores.last()?.inst;
        let exits = around.exits.clone();
        Some(MovableStores { stores: stores.iter().map(|store| store.inst).collect(), last, exits, apart })
    }

    /// Returns whether an access cannot alias a store, provided that some parameters point to different
    /// buffers.
    fn is_elsewhere(&self, store: &LoopAccess, other: &LoopAccess, apart: &mut DisjointParameters) -> bool {
        if other.constant || matches!(other.space, Space::Shared | Space::Local) {
            return true;
        }
        let (Base::Reg(a), Base::Reg(b)) = (store.address.base, other.address.base) else { return false };
        if a == b && other.space == store.space {
            let (a, b) = (store.address.offset, other.address.offset);
            return a.saturating_add(store.bytes) <= b || b.saturating_add(other.bytes) <= a;
        }
        match (self.origins.param(a), self.origins.param(b)) {
            (Some(a), Some(b)) if a != b => {
                apart.insert((a.min(b), a.max(b)));
                true
            }
            (Some(_) | None, _) => false,
        }
    }
}

impl MovableStores {
    fn sink(self, module: &Module, function: &mut Function) {
        for block in function.layout.clone() {
            function.blocks[block].insts.retain(|inst| !self.stores.contains(inst));
        }
        let mut names = Names::all(module, function);
        let mut number = 0;
        for (from, to) in self.exits {
            for index in 0..function.blocks[from].edges.len() {
                if function.blocks[from].edges[index].target != to {
                    continue;
                }
                let store = function.insts[self.last].clone();
                let store = function.insts.push(store);
                let edge = Edge { target: to, args: std::mem::take(&mut function.blocks[from].edges[index].args) };
                let label = Some(names.next("$sunk", &mut number));
                let between =
                    function.blocks.push(BlockData { label, insts: vec![store], edges: vec![edge], ..BlockData::default() });
                let place = function.layout.iter().position(|block| *block == to).unwrap_or(function.layout.len());
                function.layout.insert(place, between);
                retarget(function, from, index, between);
            }
        }
    }
}
