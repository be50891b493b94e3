//! Facts about a launch for the analysis of a function.

use broadloom_ptx::{Function, Param, Special, Var};
use std::collections::BTreeMap;

/// Number of lanes of a warp.
pub const WARP: u32 = 32;

/// Facts about the launches that a function is analysed for. Every result of an analysis holds for all
/// launches that satisfy them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks of the grid, if known.
    pub grid: Option<[u32; 3]>,
    /// Number of threads that run together: 32, or 1 for one thread at a time.
    pub lanes: u32,
    /// Known parameters.
    pub params: KnownParams,
    /// True if the grid and the parameters stand for all that are rounded up alike: see [`rounded_up`].
    pub rounded: bool,
}

/// The largest number that is rounded. Larger ones are addresses or negative integers, or wrap around soon.
const LARGEST_SIZE: u64 = 1 << 30;

/// Returns the power of two that a size is rounded up to; numbers that are no sizes stay.
pub fn rounded_up(size: u64) -> u64 {
    if size > LARGEST_SIZE { size } else { size.next_power_of_two() }
}

/// Returns the smallest and the largest number that are rounded up like this one.
pub(crate) fn rounded_alike(size: u64) -> (u64, u64) {
    match rounded_up(size) {
        _ if size > LARGEST_SIZE => (size, size),
        // 0 is rounded up to 1, too.
        1 => (0, 1),
        most => (most / 2 + 1, most),
    }
}

impl Facts {
    /// Returns facts for whole warps of a block shape, with nothing else known.
    pub fn new(block: [u32; 3]) -> Facts {
        Facts { block, grid: None, lanes: WARP, params: KnownParams::default(), rounded: false }
    }

    /// Returns these facts with a known grid.
    pub fn with_grid(self, grid: [u32; 3]) -> Facts {
        Facts { grid: Some(grid), ..self }
    }

    /// Returns these facts with known parameters.
    pub fn with_params(self, params: KnownParams) -> Facts {
        Facts { params, ..self }
    }

    /// Returns facts that all launches satisfy whose blocks and parameters are rounded up like these.
    pub fn with_rounded_sizes(self) -> Facts {
        Facts { rounded: true, ..self }
    }

    /// Returns the number of threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|count| u64::from(*count)).product()
    }

    /// Returns the smallest and the largest unsigned value of a special register, for a grid; `None` if
    /// nothing is known.
    pub(crate) fn special(&self, special: Special, grid: Option<[u32; 3]>) -> Option<(u64, u64)> {
        // Manual, "Special Registers": grids have up to 2^31 - 1 blocks in x, 65535 in y and z.
        const LARGEST: [u64; 3] = [0x7fff_ffff, 0xffff, 0xffff];
        let tid = |axis: usize| (0, u64::from(self.block[axis]).saturating_sub(1));
        let ntid = |axis: usize| (u64::from(self.block[axis]), u64::from(self.block[axis]));
        let blocks = |axis: usize| {
            let known = grid.map(|grid| u64::from(grid[axis]));
            known.map(|known| if self.rounded { rounded_alike(known) } else { (known, known) })
        };
        let ctaid = |axis: usize| (0, blocks(axis).map_or(LARGEST[axis], |known| known.1).saturating_sub(1));
        let nctaid = |axis: usize| blocks(axis).unwrap_or((1, LARGEST[axis]));
        Some(match special {
            Special::TidX => tid(0),
            Special::TidY => tid(1),
            Special::TidZ => tid(2),
            Special::NtidX => ntid(0),
            Special::NtidY => ntid(1),
            Special::NtidZ => ntid(2),
            Special::CtaidX => ctaid(0),
            Special::CtaidY => ctaid(1),
            Special::CtaidZ => ctaid(2),
            Special::NctaidX => nctaid(0),
            Special::NctaidY => nctaid(1),
            Special::NctaidZ => nctaid(2),
            Special::Laneid => (0, u64::from(WARP) - 1),
            _ => return None,
        })
    }
}

/// Known bytes of a kernel's parameter block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownParams {
    /// Runs of known bytes by offset; they do not overlap.
    runs: BTreeMap<u64, Vec<u8>>,
}

impl KnownParams {
    /// Returns known parameters from the whole block.
    pub fn block(bytes: &[u8]) -> KnownParams {
        KnownParams { runs: BTreeMap::from([(0, bytes.to_vec())]) }
    }

    /// Adds the known bits of a scalar of `bytes` bytes at an offset of the block.
    pub fn set(&mut self, offset: u64, bits: u64, bytes: usize) {
        self.runs.insert(offset, bits.to_le_bytes()[..bytes.min(8)].to_vec());
    }

    /// Returns the bits of `bytes` bytes at an offset, if all of them are known.
    pub fn get(&self, offset: u64, bytes: usize) -> Option<u64> {
        let (start, run) = self.runs.range(..=offset).next_back()?;
        let first = usize::try_from(offset - start).ok()?;
        let known = run.get(first..first.checked_add(bytes)?)?;
        let mut bits = [0; 8];
        bits.get_mut(..bytes)?.copy_from_slice(known);
        Some(u64::from_le_bytes(bits))
    }
}

/// Returns the offset of each parameter of a kernel in its parameter block: in sequence, each aligned.
pub fn param_offsets(function: &Function) -> BTreeMap<Var, u64> {
    let mut end = 0u64;
    let mut offsets = BTreeMap::new();
    for param in &function.params {
        let Param::Memory(var) = param else { continue };
        let variable = &function.variables[*var];
        let offset = end.next_multiple_of(variable.alignment().max(1));
        end = offset + variable.bytes().unwrap_or(0);
        offsets.insert(*var, offset);
    }
    offsets
}
