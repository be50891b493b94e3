//! Lanes that reach a block, if thread indices alone decide it.
//!
//! For example, the first sixteen threads may be on one side of a branch and synchronise there, as tiles of a
//! warp do. Their mask is computed from their index. In a block of known shape both are numbers: the branches
//! that lead to such a block are evaluated for every thread, and so is the mask.

use super::LANES;
use super::definitions::Definitions;
use super::sides::Side;
use crate::facts::Facts;
use crate::fold::KnownValues;
use broadloom_eval::immediate;
use broadloom_ptx::{InstData, Opcode, Operand, Reg, Special, Type};

/// Maximum length of the chains of instructions that are followed.
const DEEPEST: usize = 64;

/// Threads of a block of known shape.
pub(super) struct ArrivingLanes<'f> {
    definitions: &'f Definitions<'f>,
    shape: [u32; 3],
}

impl<'f> ArrivingLanes<'f> {
    /// Describes the threads of blocks of a known shape. The callers of a function are unknown.
    pub(super) fn new(definitions: &'f Definitions<'f>, shape: Option<[u32; 3]>) -> Option<Self> {
        let shape = shape.filter(|_| definitions.function.is_kernel)?;
        Some(ArrivingLanes { definitions, shape })
    }

    /// Returns whether the member mask of an instruction contains only lanes that reach it together, in every
    /// warp. `sides` are the earlier branch decisions of the lanes; `members` is the operand with the mask.
    pub(super) fn are_named(&self, data: &InstData, members: usize, sides: &[Side]) -> bool {
        data.guard.is_none() && self.each_warp(&data.operands[members], sides).is_some_and(|named| named)
    }

    fn each_warp(&self, members: &Operand, sides: &[Side]) -> Option<bool> {
        let threads = self.shape.iter().map(|count| u64::from(*count)).product::<u64>();
        for first in (0..threads).step_by(LANES as usize) {
            let (mut here, mut named) = (0u32, 0u32);
            for thread in first..(first + LANES).min(threads) {
                let mut values = ThreadValues { arriving_lanes: self, thread, known: KnownValues::default() };
                let mut comes = true;
                for side in sides {
                    comes &= values.takes(*side)?;
                }
                if comes {
                    here |= 1 << (thread - first);
                    named |= values.operand(members)? as u32;
                }
            }
            if named & !here != 0 {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// Values that one thread computes.
struct ThreadValues<'c, 'f> {
    arriving_lanes: &'c ArrivingLanes<'f>,
    thread: u64,
    known: KnownValues,
}

impl ThreadValues<'_, '_> {
    /// Returns whether the thread takes a side of a branch.
    fn takes(&mut self, side: Side) -> Option<bool> {
        let function = self.arriving_lanes.definitions.function;
        let data = &function.insts[*function.blocks[side.head].insts.last()?];
        let guard = data.guard.filter(|_| data.opcode() == Some(Opcode::Bra))?;
        let is_taken = (self.register(guard.reg, DEEPEST)? != 0) != guard.negated;
        Some(is_taken == (side.edge? == 0))
    }

    fn operand(&mut self, operand: &Operand) -> Option<u64> {
        match operand {
            Operand::Reg(reg) => self.register(*reg, DEEPEST),
            Operand::Imm(imm) => Some(immediate(*imm, Type::B32)),
            _ => None,
        }
    }

    fn register(&mut self, reg: Reg, depth: usize) -> Option<u64> {
        if let Some(value) = self.known.get(reg) {
            return Some(value);
        }
        let function = self.arriving_lanes.definitions.function;
        let data = &function.insts[self.arriving_lanes.definitions.maker(reg)?];
        if data.guard.is_some() || depth == 0 {
            return None;
        }
        if let (Some(Opcode::Mov), [Operand::Reg(to), Operand::Special(special)]) = (data.opcode(), data.operands.as_slice()) {
            let value = self.special(*special)?;
            self.known.set(*to, value);
            return Some(value);
        }
        for read in data.reads() {
            self.register(read, depth - 1)?;
        }
        let facts = Facts { block: Some(self.arriving_lanes.shape), grid: None };
        for (written, value) in self.known.evaluate(function, &facts, data)? {
            self.known.set(written, value);
        }
        self.known.get(reg)
    }

    fn special(&self, special: Special) -> Option<u64> {
        let [x, y, _] = self.arriving_lanes.shape.map(u64::from);
        let lane = self.thread % LANES;
        match special {
            Special::TidX => Some(self.thread % x),
            Special::TidY => Some(self.thread / x % y),
            Special::TidZ => Some(self.thread / x / y),
            Special::Laneid => Some(lane),
            Special::LanemaskEq => Some(1 << lane),
            Special::LanemaskLt => Some((1 << lane) - 1),
            Special::LanemaskLe => Some((2 << lane) - 1),
            special => Facts { block: Some(self.arriving_lanes.shape), grid: None }.special(special),
        }
    }
}
