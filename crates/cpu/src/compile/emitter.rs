//! Translation of a function in SSA form with uniform branches to LLVM code for one warp.
//!
//! A register whose shape is known across all lanes is kept as one scalar, the value of lane 0. Its lanes are
//! equal, or a constant distance apart. All other registers are vectors of 32 lanes. An instruction whose
//! result is kept as a scalar is computed on lane 0 of its operands; all others are computed on vectors. On
//! the slow path a warp has one lane, and everything is a scalar.
//!
//! NaN results of `f32` are made canonical only where their bits become visible: when they are stored or used
//! as bits. Until then one NaN cannot be distinguished from another. Registers that may hold another NaN are
//! called noisy (`nans.rs`).

use super::lanes::{Shapes, offsets};
use super::llvm::{Ir, Label, Ty, Val};
use super::machine::Host;
use super::nans::Nans;
use super::options::Checks;
use super::plan::{CurrentPiece, Plan};
use super::state::{BlockChecks, Counters, NextAddress, NonTemporalArrays, Specials};
use crate::code::{Accesses, FaultSite, RareInstruction};
use broadloom_analysis::LANE_BITS;
use broadloom_eval::matrix::Product;
use broadloom_ptx::{Block, Func, Function, Inst, InstData, Lines, Module, Reg, Type};
use cranelift_entity::SecondaryMap;
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// Reason why a function could not be translated. It is an internal error, since every verified kernel can be
/// translated.
#[derive(Debug)]
pub(crate) struct TranslationError(pub(crate) String);

pub(crate) type TranslationResult<T> = Result<T, TranslationError>;

/// Translation of one kernel.
pub(crate) struct Emitter<'e> {
    pub(crate) ir: &'e Ir,
    pub(crate) module: &'e Module,
    pub(crate) function: &'e Function,
    pub(crate) shapes: &'e Shapes,
    pub(crate) host: Host,
    pub(crate) block: [u32; 3],
    /// Number of lanes of a warp; `None` on the slow path, where a warp is one thread.
    pub(crate) lanes: Option<u32>,
    /// Places of the variables in shared, local and parameter memory.
    pub(crate) layout: &'e super::layout::Layout,
    pub(crate) warp: Val,
    pub(crate) services: Val,
    /// Linear index of the first lane.
    pub(crate) first: Val,
    pub(crate) specials: Specials,
    pub(crate) values: SecondaryMap<Reg, Option<Val>>,
    pub(super) nans: Nans,
    /// Label at which the warp is done.
    pub(crate) done: Label,
    pub(crate) rare: Vec<RareInstruction>,
    pub(crate) sites: Vec<FaultSite>,
    /// Instruction being translated.
    pub(crate) at: Option<Inst>,
    /// Reads at which a loop may wait for another thread.
    pub(super) polls: &'e HashSet<Inst>,
    pub(crate) loads: Accesses,
    pub(crate) stores: Accesses,
    /// Pointers to the function's arguments and to the space for its results. `None` in a kernel.
    pub(crate) passed: Option<(Val, Val)>,
    /// Lanes that run this function: threads of the block that call it. `None` if all lanes do.
    pub(crate) exists: Option<Val>,
    /// Lanes that are threads of the block; `None` if all lanes are.
    pub(crate) threads: Option<Val>,
    /// Offset of the frame in the local memory of each lane, in vector code.
    pub(crate) frame_start: Val,
    /// Maximum bytes of local memory for the frames of a lane, if they might exceed it.
    pub(crate) stack_limit: Option<u64>,
    /// Rows for arguments and results of calls.
    pub(crate) rows: Vec<Val>,
    /// Local memory on the stack; `None` if the runtime provides it.
    pub(crate) frame: Option<Val>,
    /// Memory that masked-off lanes store to; created on first use.
    pub(crate) sink: Cell<Option<Val>>,
    /// Functions that can be called.
    pub(crate) callees: &'e BTreeMap<Func, CallTarget>,
    /// Shape of the cluster that the block belongs to.
    pub(crate) cluster: crate::cluster::ClusterShape,
    /// Number of instructions at which lanes of the slow path meet.
    pub(crate) exchanges: u32,
    /// Matrix products, each with the function that computes it.
    pub(crate) products: Vec<(Product, Val)>,
    /// Memory for inputs and outputs of runtime calls, by type.
    pub(super) rooms: Vec<(Ty, Val)>,
    pub(super) labels: SecondaryMap<Block, Option<Label>>,
    pub(crate) definitions: SecondaryMap<Reg, Option<Inst>>,
    pub(super) used: SecondaryMap<Reg, bool>,
    /// True if one call runs all warps of a block.
    pub(crate) in_block: bool,
    /// Pieces of the kernel, if there are several.
    pub(crate) plan: Option<Rc<Plan>>,
    /// Piece being emitted.
    pub(crate) current: CurrentPiece,
    /// Memory in which warps record the piece they continue in.
    pub(crate) states: Option<Val>,
    /// Bytes after the local memory of a warp that a block keeps.
    pub(crate) kept_bytes: u64,
    /// Shared arrays of counters.
    pub(crate) counters: Option<Counters>,
    /// Write-only arrays.
    pub(crate) streams: NonTemporalArrays,
    /// Addresses whose value in the next iteration of a loop is known.
    pub(crate) ahead: SecondaryMap<Reg, Option<Rc<NextAddress>>>,
    /// Check of addresses before accesses.
    pub(super) checks: Checks,
    /// Accesses that need no check of their own.
    pub(super) checked: BlockChecks,
    /// Line table of the high-level source, built when the first position is recorded.
    pub(crate) lines: Option<Lines<'e>>,
}

/// Function that generated code can call.
#[derive(Clone, Copy)]
pub(crate) struct CallTarget {
    pub(crate) function: Val,
    /// Bytes of its frame in the local memory of a lane.
    pub(crate) frame_bytes: u64,
    /// True if its address is taken.
    pub(crate) is_addressed: bool,
}

impl<'e> Emitter<'e> {
    /// Returns whether a register has a value already.
    pub(crate) fn has_value(&self, reg: Reg) -> bool {
        self.values[reg].is_some()
    }

    /// Returns whether a register is kept as the value of its first lane.
    pub(crate) fn is_kept_as_scalar(&self, reg: Reg) -> bool {
        if self.lanes.is_none() {
            return true;
        }
        let shape = self.shapes.shape(reg);
        let ty = self.function.regs[reg].ty;
        shape.is_uniform() || (shape.known() == LANE_BITS && is_plain_integer(ty))
    }

    /// Returns the offset of each lane from the first, for a register that is kept as a scalar. Returns
    /// `None` if all lanes are equal.
    pub(crate) fn offsets(&self, reg: Reg) -> Option<Vec<i64>> {
        let shape = self.shapes.shape(reg);
        if self.lanes.is_none() || shape.is_uniform() { None } else { offsets(&shape) }
    }

    /// Returns the type of a register in one lane.
    pub(crate) fn register_type(&self, ty: Type) -> Ty {
        match ty {
            Type::Pred => self.ir.int(1),
            Type::F32 => self.ir.float(),
            Type::F64 => self.ir.double(),
            ty => self.ir.int(ty.bits()),
        }
    }

    pub(crate) fn kept_type(&self, reg: Reg) -> Ty {
        let ty = self.register_type(self.function.regs[reg].ty);
        if self.is_kept_as_scalar(reg) { ty } else { self.ir.lanes_of(ty, self.lanes) }
    }

    pub(crate) fn kept(&self, reg: Reg) -> TranslationResult<Val> {
        if let Some(variable) = self.current.variables[reg] {
            return Ok(self.ir.load(self.kept_type(reg), variable, 64));
        }
        let name = || format!("`{}` has no value yet", self.function.regs[reg].name);
        self.values[reg].ok_or_else(|| TranslationError(name()))
    }

    /// Returns the value of a register in lane 0.
    pub(crate) fn lane0(&self, reg: Reg) -> TranslationResult<Val> {
        let value = self.kept(reg)?;
        Ok(if self.ir.lanes(value).is_some() { self.ir.extract_at(value, 0) } else { value })
    }

    /// Returns the value of a register in all lanes.
    pub(crate) fn all_lanes(&self, reg: Reg) -> TranslationResult<Val> {
        let value = self.kept(reg)?;
        let Some(lanes) = self.lanes else { return Ok(value) };
        if self.ir.lanes(value).is_some() {
            return Ok(value);
        }
        Ok(match self.offsets(reg) {
            None => self.ir.splat(value, lanes),
            Some(offsets) => self.ir.add(self.ir.splat(value, lanes), self.numbers(self.ir.type_of(value), &offsets)),
        })
    }

    /// Returns a vector of integer constants.
    pub(crate) fn numbers(&self, element: Ty, numbers: &[i64]) -> Val {
        let values: Vec<Val> = numbers.iter().map(|number| self.ir.constant(element, *number as u64)).collect();
        self.ir.constants(&values)
    }

    /// Broadcasts a scalar to all lanes and adds a stride from lane to lane.
    pub(crate) fn spread(&self, scalar: Val, stride: i64, lanes: u32) -> Val {
        let splat = self.ir.splat(scalar, lanes);
        if stride == 0 {
            return splat;
        }
        let steps = self.ir.steps(self.ir.type_of(scalar), lanes, stride as u64);
        self.ir.add(splat, steps)
    }

    /// Returns the instruction that writes a register; `None` for parameters of blocks.
    pub(crate) fn definition(&self, reg: Reg) -> Option<&InstData> {
        self.definitions[reg].map(|inst| &self.function.insts[inst])
    }

    /// Returns whether a register is read.
    pub(crate) fn is_used(&self, reg: Reg) -> bool {
        self.used[reg]
    }

    pub(crate) fn is_noisy(&self, reg: Reg) -> bool {
        self.nans.is_noisy(reg)
    }

    /// Sets the value of a register: a scalar, or one value per lane, in the register's own type.
    pub(crate) fn define(&mut self, reg: Reg, value: Val) {
        let value = match (self.is_kept_as_scalar(reg), self.ir.lanes(value), self.lanes) {
            (true, Some(_), _) => self.ir.extract_at(value, 0),
            (false, None, Some(lanes)) => self.ir.splat(value, lanes),
            _ => value,
        };
        if let Some(variable) = self.current.variables[reg] {
            self.ir.store(value, variable, 64);
        }
        self.values[reg] = Some(value);
    }
}

/// Returns whether a type is an integer or untyped bits of at most 64 bits.
pub(crate) fn is_plain_integer(ty: Type) -> bool {
    matches!(ty, Type::B16 | Type::B32 | Type::B64 | Type::U16 | Type::U32 | Type::U64 | Type::S16 | Type::S32 | Type::S64)
        || matches!(ty, Type::B8 | Type::U8 | Type::S8)
}
