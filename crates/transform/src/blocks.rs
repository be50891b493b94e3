//! Blocks of a function in SSA form: removal of unreachable blocks, and merging of trivial ones.

use crate::substitution::Substitution;
use crate::write::made;
use broadloom_ptx::{Block, BlockData, Edge, Function, Inst, Operand, Reg, TargetList};
use cranelift_entity::SecondaryMap;

/// Removes unreachable blocks from the layout. Returns whether there were any.
pub(crate) fn drop_unreachable(function: &mut Function) -> bool {
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut work: Vec<Block> = function.entry().into_iter().collect();
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut seen[block], true) {
            work.extend(function.blocks[block].edges.iter().map(|edge| edge.target));
        }
    }
    let before = function.layout.len();
    let Function { layout, blocks, .. } = function;
    layout.retain(|block| {
        if !seen[*block] {
            blocks[*block] = BlockData { label: blocks[*block].label.take(), ..BlockData::default() };
        }
        seen[*block]
    });
    before != layout.len()
}

/// Returns the number of edges to each block. The entry counts one more, from outside.
pub(crate) fn arrivals(function: &Function) -> SecondaryMap<Block, u32> {
    let mut count = SecondaryMap::new();
    if let Some(entry) = function.entry() {
        count[entry] = 1;
    }
    for edge in function.layout.iter().flat_map(|block| &function.blocks[*block].edges) {
        count[edge.target] += 1;
    }
    count
}

/// Redirects an edge of a block to another block. The caller adapts the arguments.
pub(crate) fn retarget(function: &mut Function, block: Block, index: usize, to: Block) {
    function.blocks[block].edges[index].target = to;
    let Some(last) = function.blocks[block].insts.last().copied() else { return };
    for operand in 0..function.insts[last].operands.len() {
        match function.insts[last].operands[operand] {
            Operand::Label(_) if index == 0 => function.insts[last].operands[operand] = Operand::Label(to),
            Operand::Targets(list) if index < function.targets[list].blocks.len() => {
                // Other branches may share the list.
                let mut data: TargetList = function.targets[list].clone();
                data.blocks[index] = to;
                let own = function.targets.push(data);
                function.insts[last].operands[operand] = Operand::Targets(own);
            }
            _ => {}
        }
    }
}

/// Returns the last instruction of a block if it is a control instruction.
pub(crate) fn control(function: &Function, block: Block) -> Option<Inst> {
    function.blocks[block].insts.last().copied().filter(|inst| function.insts[*inst].is_control())
}

/// Makes one edge the only exit of a block.
pub(crate) fn leave_by(function: &mut Function, block: Block, edge: Edge) {
    if let Some(last) = control(function, block) {
        function.insts[last].guard = None;
        function.insts[last].mnemonic = made("bra", [Operand::Label(edge.target)]).mnemonic;
        function.insts[last].operands = [Operand::Label(edge.target)].into_iter().collect();
    }
    function.blocks[block].edges = vec![edge];
}

/// Removes parameters of blocks and the corresponding arguments of edges.
pub(crate) fn drop_params(function: &mut Function, dead: impl Fn(Reg) -> bool) {
    let mut kept: SecondaryMap<Block, Option<Vec<bool>>> = SecondaryMap::new();
    for block in &function.layout {
        let params = &mut function.blocks[*block].params;
        if params.iter().any(|reg| dead(*reg)) {
            kept[*block] = Some(params.iter().map(|reg| !dead(*reg)).collect());
            params.retain(|reg| !dead(*reg));
        }
    }
    for block in &function.layout {
        for edge in &mut function.blocks[*block].edges {
            if let Some(kept) = &kept[edge.target] {
                let mut kept = kept.iter();
                edge.args.retain(|_| kept.next().is_none_or(|kept| *kept));
            }
        }
    }
}

/// Returns whether a block contains nothing but a jump.
fn does_nothing(function: &Function, block: Block) -> bool {
    match function.blocks[block].insts.as_slice() {
        [] => true,
        [only] => {
            let data = &function.insts[*only];
            data.is_terminator() && matches!(data.operands.first(), Some(Operand::Label(_)))
        }
        _ => false,
    }
}

/// Redirects edges past empty blocks. Returns whether there were any.
pub(crate) fn thread_empty(function: &mut Function) -> bool {
    if !function.layout.iter().any(|block| does_nothing(function, *block)) {
        return false;
    }
    let mut reads: SecondaryMap<Reg, u32> = SecondaryMap::new();
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            function.insts[*inst].each_read(|reg| reads[reg] += 1);
        }
        function.blocks[*block].edges.iter().flat_map(|edge| &edge.args).for_each(|reg| reads[*reg] += 1);
    }
    // The edge out of a block whose parameters are read by that edge only.
    let mut empty: SecondaryMap<Block, Option<Edge>> = SecondaryMap::new();
    for block in &function.layout {
        let data = &function.blocks[*block];
        let [edge] = data.edges.as_slice() else { continue };
        let passes = |reg: &Reg| edge.args.iter().filter(|arg| *arg == reg).count() as u32;
        if does_nothing(function, *block)
            && edge.target != *block
            && data.pragmas.is_empty()
            && data.params.iter().all(|reg| reads[*reg] == passes(reg))
        {
            empty[*block] = Some(edge.clone());
        }
    }
    let mut changed = false;
    for block in function.layout.clone() {
        for index in 0..function.blocks[block].edges.len() {
            let mut edge = function.blocks[block].edges[index].clone();
            // A cycle of empty blocks has no end.
            for _ in 0..function.layout.len().min(64) {
                let Some(Edge { target, args }) = empty[edge.target].clone().filter(|next| next.target != edge.target) else {
                    break;
                };
                let params = &function.blocks[edge.target].params;
                let given = |reg: Reg| params.iter().position(|param| *param == reg).map_or(reg, |at| edge.args[at]);
                edge = Edge { target, args: args.into_iter().map(given).collect() };
            }
            if edge.target != function.blocks[block].edges[index].target {
                retarget(function, block, index, edge.target);
                function.blocks[block].edges[index].args = edge.args;
                changed = true;
            }
        }
    }
    if changed {
        drop_unreachable(function);
    }
    changed
}

/// Appends a block to its only predecessor, which has no other successor. The block's parameters become the
/// arguments.
pub(crate) fn join(function: &mut Function, block: Block, substitution: &mut Substitution) {
    let Some(Edge { target, args }) = function.blocks[block].edges.first().cloned() else { return };
    if control(function, block).is_some() {
        function.blocks[block].insts.pop();
    }
    let BlockData { params, insts, edges, .. } = std::mem::take(&mut function.blocks[target]);
    for (param, arg) in params.into_iter().zip(args) {
        substitution.replace(param, arg);
    }
    function.blocks[block].insts.extend(insts);
    function.blocks[block].edges = edges;
}

/// Returns the block that [`join`] would append.
pub(crate) fn joinable(function: &Function, block: Block, arrivals: &SecondaryMap<Block, u32>) -> Option<Block> {
    let [edge] = function.blocks[block].edges.as_slice() else { return None };
    let guarded = control(function, block).is_some_and(|last| function.insts[last].guard.is_some());
    let alone = arrivals[edge.target] == 1 && function.entry() != Some(edge.target) && edge.target != block;
    (alone && !guarded && function.blocks[edge.target].pragmas.is_empty()).then_some(edge.target)
}

/// Joins all chains of blocks. Returns whether there were any.
pub(crate) fn join_runs(function: &mut Function) -> bool {
    let arrivals = arrivals(function);
    let mut substitution = Substitution::default();
    let mut gone: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut changed = false;
    for block in function.layout.clone() {
        while !gone[block]
            && let Some(next) = joinable(function, block, &arrivals)
        {
            join(function, block, &mut substitution);
            gone[next] = true;
            changed = true;
        }
    }
    function.layout.retain(|block| !gone[*block]);
    substitution.apply(function);
    changed
}
