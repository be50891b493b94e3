//! Random graphs and code for tests, the same in every run.

pub(crate) mod checks;
pub(crate) mod programs;
pub(crate) mod ssa;
pub(crate) mod threads;

use broadloom_analysis::cfg::Cfg;
use broadloom_diag::Sources;
use broadloom_ptx::{Block, BlockData, BodyForm, Edge, Function, Guard, InstData, Module, Operand, Param, Reg, RegData, Type};
use cranelift_entity::SecondaryMap;

pub(crate) use broadloom_random::Random;

/// Returns the smallest and the largest integer of `bits` bits.
pub(crate) fn limits(bits: u32, signed: bool) -> (i128, i128) {
    match signed {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    }
}

/// Returns a mask of `bits` ones.
pub(crate) fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// Parses a module from a text without its header.
pub(crate) fn parsed(text: &str) -> Module {
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", format!(".version 8.0 .target sm_80 .address_size 64 {text}"));
    broadloom_ptx::parse(&sources, id).unwrap_or_else(|errors| panic!("{errors:?}"))
}

pub(crate) fn blocks(count: usize) -> impl Iterator<Item = Block> {
    (0..count as u32).map(Block::from_u32)
}

/// Returns the graph with these edges; the first block is the entry.
pub(crate) fn graph(edges: &[&[u32]]) -> Cfg {
    let mut successors = SecondaryMap::new();
    for (from, targets) in edges.iter().enumerate() {
        successors[Block::from_u32(from as u32)] = targets.iter().map(|to| Block::from_u32(*to)).collect();
    }
    Cfg::from_successors(Block::from_u32(0), successors)
}

/// Returns a random graph of up to `most` blocks with up to three edges each, some duplicate, some blocks
/// unreachable.
pub(crate) fn random_graph(random: &mut Random, most: usize) -> (Cfg, usize) {
    let count = 1 + random.below(most);
    let mut successors: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for block in blocks(count) {
        let edges = [0, 1, 1, 1, 2, 2, 2, 3][random.below(8)];
        successors[block] = (0..edges).map(|_| Block::from_u32(random.below(count) as u32)).collect();
    }
    (Cfg::from_successors(Block::from_u32(0), successors), count)
}

/// Returns the blocks reachable from a block, including itself, on paths that avoid another.
pub(crate) fn reaches(cfg: &Cfg, count: usize, from: Block, without: Option<Block>) -> Vec<Block> {
    let mut found: Vec<Block> = if Some(from) == without { vec![] } else { vec![from] };
    let mut next = 0;
    while next < found.len() {
        for target in cfg.successors(found[next]) {
            if Some(*target) != without && !found.contains(target) {
                found.push(*target);
            }
        }
        next += 1;
    }
    assert!(found.len() <= count);
    found
}

/// Generates additions, some guarded, for the blocks of a graph. A block without successors returns, and the
/// function has a register as its result. In SSA form blocks have parameters, and edges pass as many
/// registers.
pub(crate) fn random_code(random: &mut Random, cfg: &Cfg, count: usize, form: BodyForm) -> Function {
    const REGS: usize = 7;
    let mut function = Function::new("f", false);
    function.has_body = true;
    function.form = form;
    let mut reg = |ty| function.regs.push(RegData { name: format!("r{}", function.regs.len()), ty });
    let (predicate, regs) = (reg(Type::Pred), (0..REGS).map(|_| reg(Type::U32)).collect::<Vec<Reg>>());
    function.results = vec![Param::Reg(regs[0])];
    let any = |random: &mut Random| regs[random.below(REGS)];
    for block in blocks(count) {
        let mut data = BlockData::default();
        if form == BodyForm::Ssa && block != cfg.entry() && random.below(3) == 0 {
            data.params = vec![any(random)];
        }
        for _ in 0..random.below(4) {
            let operands = [any(random), any(random), any(random)].map(Operand::Reg);
            let mut add = InstData::of("add.u32", operands).unwrap();
            add.guard = (random.below(3) == 0).then_some(Guard { reg: predicate, negated: false });
            data.insts.push(function.insts.push(add));
        }
        if cfg.successors(block).is_empty() {
            data.insts.push(function.insts.push(InstData::of("ret", []).unwrap()));
        }
        function.blocks.push(data);
        function.layout.push(block);
    }
    // Nothing falls off the end: an unreachable block returns there.
    let ret = function.insts.push(InstData::of("ret", []).unwrap());
    let end = function.blocks.push(BlockData { insts: vec![ret], ..BlockData::default() });
    function.layout.push(end);
    for block in blocks(count).filter(|_| form == BodyForm::Ssa) {
        let targets = cfg.successors(block).iter();
        let edges = targets.map(|target| {
            let args = function.blocks[*target].params.iter().map(|_| any(random)).collect();
            Edge { target: *target, args }
        });
        function.blocks[block].edges = edges.collect();
    }
    function
}

/// Returns a random structured graph: nested sequences, branches and loops, some loops with a second exit or
/// back edge.
pub(crate) fn random_structure(random: &mut Random, depth: usize) -> (Cfg, usize) {
    let mut successors: Vec<Vec<u32>> = vec![vec![]];
    let end = structure(random, depth, &mut successors, 0);
    let count = successors.len();
    debug_assert!((end as usize) < count);
    let mut map: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    for (from, targets) in successors.into_iter().enumerate() {
        map[Block::from_u32(from as u32)] = targets.into_iter().map(Block::from_u32).collect();
    }
    (Cfg::from_successors(Block::from_u32(0), map), count)
}

/// Adds a piece of code after a block. Returns the block at its end.
fn structure(random: &mut Random, depth: usize, edges: &mut Vec<Vec<u32>>, from: u32) -> u32 {
    let new = |edges: &mut Vec<Vec<u32>>, from: &[u32]| {
        edges.push(vec![]);
        let block = edges.len() as u32 - 1;
        from.iter().for_each(|from| edges[*from as usize].push(block));
        block
    };
    if depth == 0 {
        return new(edges, &[from]);
    }
    match random.below(4) {
        0 => {
            let middle = structure(random, depth - 1, edges, from);
            structure(random, depth - 1, edges, middle)
        }
        1 => {
            let (left, right) = (new(edges, &[from]), new(edges, &[from]));
            let left = structure(random, depth - 1, edges, left);
            let right = if random.below(2) == 0 { right } else { structure(random, depth - 1, edges, right) };
            new(edges, &[left, right])
        }
        2 => {
            let header = new(edges, &[from]);
            let body = new(edges, &[header]);
            let latch = structure(random, depth - 1, edges, body);
            edges[latch as usize].push(header);
            match random.below(3) {
                0 => new(edges, &[header, latch]),
                1 => new(edges, &[latch]),
                _ => new(edges, &[header]),
            }
        }
        _ => {
            let header = new(edges, &[from]);
            let middle = structure(random, depth - 1, edges, header);
            let last = structure(random, depth - 1, edges, middle);
            edges[last as usize].push(header);
            if random.below(2) == 0 {
                edges[middle as usize].push(header);
            }
            new(edges, &[middle, last])
        }
    }
}
