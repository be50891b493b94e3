//! Division of a kernel into pieces between barriers, with the values that a warp keeps from piece to piece.

use super::llvm::{Label, Val};
use broadloom_analysis::{BitSet, Cfg};
use broadloom_ptx::{Block, Function, Inst, Opcode, Reg};
use broadloom_transform::split_at_barriers::{FunctionPieces, waits};
use cranelift_entity::SecondaryMap;

/// Maximum number of pieces. A kernel with more is run warp by warp.
pub(crate) const MOST_PIECES: usize = 120;

/// Exits of a piece.
pub(super) struct Exits {
    pub(super) targets: Vec<Option<usize>>,
    /// True if a warp may pass a barrier without waiting.
    pub(super) unsure: bool,
}

impl Exits {
    pub(super) fn of(function: &Function, cfg: &Cfg, pieces: &FunctionPieces, blocks: &[Block]) -> Exits {
        let mut exits = Exits { targets: vec![], unsure: false };
        for block in blocks {
            let last = function.blocks[*block].insts.last().map(|last| &function.insts[*last]);
            let waits = waits(function, *block);
            exits.unsure |= waits && last.is_some_and(|last| last.guard.is_some());
            if cfg.successors(*block).is_empty() && last.and_then(|last| last.opcode()) != Some(Opcode::Trap) {
                exits.targets.push(None);
            }
            exits.targets.extend(cfg.successors(*block).iter().filter_map(|target| pieces.starting_at(*target)).map(Some));
        }
        exits.targets.sort_unstable();
        exits.targets.dedup();
        exits
    }

    /// Returns the only exit of the piece, if all warps that reach its end take it.
    pub(super) fn only(&self) -> Option<Option<usize>> {
        match self.targets.as_slice() {
            [one] if !self.unsure => Some(*one),
            _ => None,
        }
    }
}

/// Kernel split into pieces.
pub(crate) struct Plan {
    pub(super) pieces: FunctionPieces,
    pub(super) exits: Vec<Exits>,
    /// For each piece, true if all warps that have not ended are known to reach it together.
    pub(super) together: Vec<bool>,
    /// Live registers at the start of each piece, including the parameters of its first block.
    pub(super) live: Vec<Vec<Reg>>,
    /// Instructions that are executed once for the whole block.
    pub(super) once: Vec<Inst>,
    /// Registers that are not kept: those of `once`, and those that are recomputed.
    pub(super) not_kept: BitSet<Reg>,
    /// Offset at which a warp keeps a register.
    pub(super) places: SecondaryMap<Reg, Option<u64>>,
    /// Bytes that a warp keeps, a multiple of 64.
    pub(super) bytes: u64,
}

impl Plan {
    /// Returns whether there is nothing to wait for.
    pub(super) fn is_whole(&self) -> bool {
        self.pieces.len() == 1 && self.exits[0].only() == Some(None)
    }
}

/// State of the piece being emitted.
#[derive(Default)]
pub(crate) struct CurrentPiece {
    /// Registers that have one value at the start and another one later.
    pub(crate) variables: SecondaryMap<Reg, Option<Val>>,
    /// Registers defined in the piece.
    pub(super) defines: BitSet<Reg>,
    /// Its number.
    pub(crate) piece: Option<usize>,
    /// Label at which a warp leaves the piece.
    pub(super) latch: Option<Label>,
    /// Predecessors of that label, with the state of the warp.
    pub(super) leaving: Vec<(Label, Val)>,
}

/// Returns the bytes of local memory of all lanes of a warp.
pub(super) fn local_of_warp(local_bytes: u64) -> u64 {
    (32 * local_bytes).next_multiple_of(64)
}

/// State of a warp that has ended. Other states are the number of the piece in which it continues.
pub(super) const ENDED: u64 = 0xff;

/// Added to the state of a warp that waits at the barrier.
pub(super) const WAITING: u64 = 0x80;
