//! Exchanges between lanes of a warp when each lane runs on its own (manual: "shfl.sync", "vote.sync",
//! "match.sync", "redux.sync", "elect.sync").

use crate::abi::{Exchange, ExchangeOperands};
use crate::grid::{EvaluatedInstruction, Ready};

/// Input of a lane: its number in the warp and its operands.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneInput {
    pub number: u32,
    pub brings: ExchangeOperands,
}

/// Returns the results of one lane of a group: a value and a flag. A shuffle from a lane outside the group
/// gives 0, as on machines.
pub fn result(kind: Exchange, lanes: &[LaneInput], lane: &LaneInput) -> (u64, bool) {
    let members = || lanes.iter().fold(0u64, |mask, lane| mask | 1 << lane.number);
    let trues = || lanes.iter().filter(|lane| lane.brings.value != 0).fold(0u64, |mask, lane| mask | 1 << lane.number);
    let own = lane.brings.value;
    let holders = || lanes.iter().filter(|other| other.brings.value == own).fold(0u64, |mask, lane| mask | 1 << lane.number);
    let values = || lanes.iter().map(|lane| lane.brings.value as u32);
    let folded = |fold: fn(u32, u32) -> u32| (u64::from(values().reduce(fold).unwrap_or(0)), false);
    match kind {
        // A product is written to the registers whose addresses the lanes provide.
        Exchange::Wait | Exchange::Product => (0, false),
        Exchange::ShuffleUp | Exchange::ShuffleDown | Exchange::ShuffleXor | Exchange::ShuffleIndex => {
            let (source, in_range) = shuffle_source(kind, lane.number, lane.brings.select, lane.brings.control);
            // In a whole warp, the index of a lane is its number.
            let there = lanes.get(source as usize).filter(|other| other.number == source);
            let there = there.or_else(|| lanes.iter().find(|other| other.number == source));
            (there.map_or(0, |other| other.brings.value), in_range)
        }
        Exchange::VoteAll => {
            let all = trues() == members();
            (u64::from(all), all)
        }
        Exchange::VoteAny => {
            let any = trues() != 0;
            (u64::from(any), any)
        }
        Exchange::VoteUniform => {
            let trues = trues();
            let uniform = trues == members() || trues == 0;
            (u64::from(uniform), uniform)
        }
        Exchange::Ballot => (trues(), false),
        Exchange::MatchAny => (holders(), false),
        Exchange::MatchAll => {
            let same = holders() == members();
            (if same { members() } else { 0 }, same)
        }
        Exchange::Add => folded(u32::wrapping_add),
        Exchange::MinSigned => folded(|a, b| (a as i32).min(b as i32) as u32),
        Exchange::MaxSigned => folded(|a, b| (a as i32).max(b as i32) as u32),
        Exchange::MinUnsigned => folded(u32::min),
        Exchange::MaxUnsigned => folded(u32::max),
        Exchange::And => folded(|a, b| a & b),
        Exchange::Or => folded(|a, b| a | b),
        Exchange::Xor => folded(|a, b| a ^ b),
        Exchange::MinFloat | Exchange::MaxFloat => {
            let (absolute, keeps_nan) = (lane.brings.control & 1 != 0, lane.brings.control & 2 != 0);
            (u64::from(reduce_floats(values(), kind == Exchange::MinFloat, absolute, keeps_nan)), false)
        }
        Exchange::Elect => {
            let leader = members().trailing_zeros();
            (u64::from(leader), lane.number == leader)
        }
        Exchange::Members => (members(), false),
    }
}

/// Multiplies matrices held by lanes, each at the address that the lane provides.
///
/// # Safety
///
/// The registers that the product reads lie at each lane's address, followed by space for its results.
pub(crate) unsafe fn multiply(ready: &Ready, lanes: &[LaneInput]) {
    const LANES: usize = 32;
    let number = lanes.first().map_or(0, |lane| lane.brings.select as usize);
    let Some(Some(EvaluatedInstruction::Product(product))) = ready.operations.get(number) else { return };
    let (count, results) = (product.inputs(), product.outputs());
    let mut inputs = vec![0; count * LANES];
    let mut outputs = vec![0; results * LANES];
    for lane in lanes {
        let registers = lane.brings.value as *const u64;
        for register in 0..count {
            // SAFETY: as promised.
            inputs[register * LANES + lane.number as usize] = unsafe { registers.add(register).read() };
        }
    }
    product.multiply(&inputs, &mut outputs);
    for lane in lanes {
        let registers = lane.brings.value as *mut u64;
        for register in 0..results {
            // SAFETY: as promised.
            unsafe { registers.add(count + register).write(outputs[register * LANES + lane.number as usize]) };
        }
    }
}

/// Returns the lane that a lane reads from, and whether it was in range (the manual's pseudocode).
fn shuffle_source(kind: Exchange, lane: u32, select: u32, control: u32) -> (u32, bool) {
    let (by, clamp, segments) = (select & 0x1f, control & 0x1f, control >> 8 & 0x1f);
    let max = ((lane & segments) | (clamp & !segments)) as i32;
    let min = lane & segments;
    let (source, in_range) = match kind {
        Exchange::ShuffleUp => {
            let source = lane as i32 - by as i32;
            (source, source >= max)
        }
        Exchange::ShuffleDown => ((lane + by) as i32, (lane + by) as i32 <= max),
        Exchange::ShuffleXor => ((lane ^ by) as i32, (lane ^ by) as i32 <= max),
        _ => {
            let source = (min | (by & !segments)) as i32;
            (source, source <= max)
        }
    };
    if in_range { (source as u32, true) } else { (lane, false) }
}

fn reduce_floats(values: impl Iterator<Item = u32>, least: bool, absolute: bool, keeps_nan: bool) -> u32 {
    const CANONICAL_NAN: u32 = 0x7fff_ffff;
    let numbers = values.map(f32::from_bits).map(|x| if absolute { x.abs() } else { x });
    let folded = numbers.reduce(|a, b| match (a.is_nan(), b.is_nan()) {
        (true, true) => a,
        (true, false) => {
            if keeps_nan {
                a
            } else {
                b
            }
        }
        (false, true) => {
            if keeps_nan {
                b
            } else {
                a
            }
        }
        (false, false) => {
            // -0 is below +0.
            let a_first = a < b || (a == b && a.is_sign_negative());
            if a_first == least { a } else { b }
        }
    });
    // The only value may be a NaN with a payload.
    folded.map_or(0, |value| if value.is_nan() { CANONICAL_NAN } else { value.to_bits() })
}
