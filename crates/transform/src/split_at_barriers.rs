//! `split_at_barriers`: splits a kernel into pieces that all warps of a block run one after the other.
//!
//! **In**: SSA form whose branches are uniform in each warp (`linearise`). **Out**: the same, in which a
//! barrier for all threads is the last instruction of its block. Keeps everything; only block boundaries
//! change.
//!
//! [`FunctionPieces`] are the parts of such a function. A piece starts at the entry, after a barrier, or at a
//! requested block. It extends to the next of those. An executor can run the warps of a block through one
//! piece after the other, on one stack. The state of a warp between pieces is the set of values live into the
//! next piece.
//!
//! A block that is reachable from two starts without a barrier in between belongs to two pieces, as if it
//! were duplicated. For example, the latch of a loop with a barrier in its body continues with the head of
//! the loop, up to the first barrier. If that would more than double the code, such blocks become starts of
//! pieces themselves.

use crate::names::Names;
use broadloom_analysis::Cfg;
use broadloom_ptx::{Block, BlockData, Edge, Function, Inst, InstData, Modifier, Module, Opcode, Operand};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeSet;

/// Name of the pass.
pub const NAME: &str = "split_at_barriers";

/// Maximum growth of the pieces over the function in instructions, beyond [`TIMES`].
pub const MORE: usize = 256;
/// Maximum growth of the pieces over the function as a factor.
pub const TIMES: usize = 2;

/// Returns the number of a barrier at which all threads of a block wait and nothing else happens.
pub fn plain_barrier(inst: &InstData) -> Option<u64> {
    let opcode = matches!(inst.opcode(), Some(Opcode::Bar | Opcode::Barrier));
    let more = [Modifier::Arrive, Modifier::Red, Modifier::Popc, Modifier::And, Modifier::Or];
    match inst.operands.as_slice() {
        [Operand::Imm(id)] if opcode && !more.iter().any(|modifier| inst.has(*modifier)) => id.integer_bits(),
        _ => None,
    }
}

/// Makes every plain barrier the last instruction of its block.
pub fn run(module: &Module, function: &mut Function) {
    let mut names = None;
    let mut work: Vec<Block> = function.layout.clone();
    while let Some(block) = work.pop() {
        let insts = &function.blocks[block].insts;
        let barrier = |inst: &Inst| plain_barrier(&function.insts[*inst]).is_some();
        let Some(at) = insts.iter().position(barrier).filter(|at| at + 1 < insts.len()) else { continue };
        let label = names.get_or_insert_with(|| Names::all(module, function)).take("$behind");
        let data = &mut function.blocks[block];
        let rest = BlockData {
            label: Some(label),
            insts: data.insts.split_off(at + 1),
            edges: std::mem::take(&mut data.edges),
            ..BlockData::default()
        };
        let behind = function.blocks.push(rest);
        function.blocks[block].edges.push(Edge::to(behind));
        let place = function.layout.iter().position(|other| *other == block).map_or(function.layout.len(), |at| at + 1);
        function.layout.insert(place, behind);
        work.push(behind);
    }
}

/// Parts of a function between its barriers.
#[derive(Clone, Debug)]
pub struct FunctionPieces {
    pieces: Vec<FunctionPiece>,
    number: SecondaryMap<Block, Option<u32>>,
}

/// Part of a function that starts at one block.
#[derive(Clone, Debug)]
pub struct FunctionPiece {
    /// First block.
    pub entry: Block,
    /// Blocks, each before its successors except for back edges.
    pub blocks: Vec<Block>,
}

impl FunctionPieces {
    /// Splits a function that [`run`] has processed, with pieces in the order in which control reaches them.
    /// `also` are blocks that start a piece.
    pub fn new(function: &Function, cfg: &Cfg, also: &[Block]) -> FunctionPieces {
        let mut entries: BTreeSet<u32> = also.iter().chain([&cfg.entry()]).filter_map(|block| cfg.position(*block)).collect();
        for block in cfg.order() {
            if waits(function, *block) {
                entries.extend(cfg.successors(*block).iter().filter_map(|target| cfg.position(*target)));
            }
        }
        let total: usize = cfg.order().iter().map(|block| function.blocks[*block].insts.len()).sum();
        loop {
            let pieces = FunctionPieces::from_entries(function, cfg, &entries);
            let code: usize = pieces.blocks().map(|block| function.blocks[block].insts.len()).sum();
            if code <= TIMES * total + MORE {
                return pieces;
            }
            let mut times: SecondaryMap<Block, u32> = SecondaryMap::new();
            pieces.blocks().for_each(|block| times[block] += 1);
            let before = entries.len();
            // The first block that is reachable from two starts. Blocks that only follow it then have one
            // start.
            entries.extend(cfg.order().iter().find(|block| times[**block] > 1).and_then(|block| cfg.position(*block)));
            if entries.len() == before {
                return pieces;
            }
        }
    }

    fn from_entries(function: &Function, cfg: &Cfg, entries: &BTreeSet<u32>) -> FunctionPieces {
        let mut number: SecondaryMap<Block, Option<u32>> = SecondaryMap::new();
        let starts: Vec<Block> = entries.iter().map(|position| cfg.order()[*position as usize]).collect();
        for (index, entry) in (0..).zip(&starts) {
            number[*entry] = Some(index);
        }
        let piece = |entry: &Block| {
            let mut found = BTreeSet::from([cfg.position(*entry)]);
            let mut work = vec![*entry];
            while let Some(block) = work.pop() {
                if waits(function, block) {
                    continue;
                }
                for target in cfg.successors(block) {
                    if number[*target].is_none() && found.insert(cfg.position(*target)) {
                        work.push(*target);
                    }
                }
            }
            FunctionPiece {
                entry: *entry,
                blocks: found.into_iter().flatten().map(|position| cfg.order()[position as usize]).collect(),
            }
        };
        let pieces = starts.iter().map(piece).collect();
        FunctionPieces { pieces, number }
    }

    /// Returns all pieces in order; the first starts at the function's entry.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &FunctionPiece> {
        self.pieces.iter()
    }

    /// Returns the number of pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns whether there are no pieces, which never happens.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns a piece by number.
    pub fn get(&self, number: usize) -> &FunctionPiece {
        &self.pieces[number]
    }

    /// Returns the number of the piece that starts at a block.
    pub fn starting_at(&self, block: Block) -> Option<usize> {
        self.number[block].map(|number| number as usize)
    }

    /// Returns the blocks of all pieces, those of several pieces repeatedly.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.pieces.iter().flat_map(|piece| piece.blocks.iter().copied())
    }
}

/// Returns whether warps wait for each other at the end of a block.
pub fn waits(function: &Function, block: Block) -> bool {
    function.blocks[block].insts.last().is_some_and(|last| plain_barrier(&function.insts[*last]).is_some())
}
