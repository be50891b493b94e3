//! Exchanges between lanes of a warp when each lane runs on its own (manual: "shfl.sync", "vote.sync",
//! "match.sync", "redux.sync", "elect.sync").

use crate::abi::{Exchange, Exchanged};
use crate::grid::{Evaluated, Ready};

/// Input of a lane: its number in the warp and its operands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane {
    pub(crate) number: u32,
    pub(crate) brings: Exchanged,
}

/// Returns the results of one lane of a group: a value and a flag. A shuffle from a lane outside the group
/// gives 0, as on machines.
pub(crate) fn result(kind: Exchange, lanes: &[Lane], lane: &Lane) -> (u64, bool) {
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
pub(crate) unsafe fn multiply(ready: &Ready, lanes: &[Lane]) {
    const LANES: usize = 32;
    let number = lanes.first().map_or(0, |lane| lane.brings.select as usize);
    let Some(Some(Evaluated::Product(product))) = ready.operations.get(number) else { return };
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
    const CANONICAL_NAN: f32 = f32::from_bits(0x7fff_ffff);
    let numbers = values.map(f32::from_bits).map(|x| if absolute { x.abs() } else { x });
    let folded = numbers.reduce(|a, b| match (a.is_nan(), b.is_nan()) {
        (true, true) => CANONICAL_NAN,
        (true, false) | (false, true) if keeps_nan => CANONICAL_NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            // -0 is below +0.
            let a_first = a < b || (a == b && a.is_sign_negative());
            if a_first == least { a } else { b }
        }
    });
    folded.map_or(0, f32::to_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(values: &[(u32, u64)], control: u32, select: u32) -> Vec<Lane> {
        let brings = |value| Exchanged { value, control, select, ..Exchanged::default() };
        values.iter().map(|&(number, value)| Lane { number, brings: brings(value) }).collect()
    }

    fn all(kind: Exchange, lanes: &[Lane]) -> Vec<(u64, bool)> {
        lanes.iter().map(|lane| result(kind, lanes, lane)).collect()
    }

    #[test]
    fn shuffles_stay_within_their_segment() {
        let eight: Vec<(u32, u64)> = (0..8).map(|lane| (lane, u64::from(lane) + 100)).collect();
        // Segments of four lanes.
        let control = 0x1c << 8 | 0x1f;
        let values = |kind, control| -> Vec<u64> { all(kind, &lanes(&eight, control, 1)).iter().map(|pair| pair.0).collect() };
        assert_eq!(values(Exchange::ShuffleUp, 0x1c << 8), [100, 100, 101, 102, 104, 104, 105, 106]);
        assert_eq!(values(Exchange::ShuffleDown, control), [101, 102, 103, 103, 105, 106, 107, 107]);
        assert_eq!(values(Exchange::ShuffleXor, control), [101, 100, 103, 102, 105, 104, 107, 106]);
        assert_eq!(values(Exchange::ShuffleIndex, control), [101, 101, 101, 101, 105, 105, 105, 105]);
        let in_range: Vec<bool> = all(Exchange::ShuffleDown, &lanes(&eight, control, 1)).iter().map(|pair| pair.1).collect();
        assert_eq!(in_range, [true, true, true, false, true, true, true, false]);
        // A missing lane gives 0 and is in range; one that is out of range gives the own value.
        assert_eq!(all(Exchange::ShuffleIndex, &lanes(&[(0, 7), (2, 9)], 0x1f, 1))[0], (0, true));
        assert_eq!(all(Exchange::ShuffleDown, &lanes(&[(0, 7), (2, 9)], 1, 1)), [(0, true), (9, false)]);
    }

    #[test]
    fn votes_and_matches_see_the_members_alone() {
        let group = lanes(&[(1, 1), (4, 0), (31, 1)], 0, 0);
        assert_eq!(all(Exchange::Ballot, &group)[0].0, 1 << 1 | 1 << 31);
        assert_eq!(all(Exchange::VoteAll, &group)[0], (0, false));
        assert_eq!(all(Exchange::VoteAny, &group)[0], (1, true));
        assert_eq!(all(Exchange::VoteUniform, &group)[0], (0, false));
        assert_eq!(all(Exchange::Members, &group)[2].0, 1 << 1 | 1 << 4 | 1 << 31);
        assert_eq!(all(Exchange::Elect, &group), [(1, true), (1, false), (1, false)]);
        assert_eq!(all(Exchange::MatchAny, &group)[1].0, 1 << 4);
        assert_eq!(all(Exchange::MatchAll, &group)[1], (0, false));
        assert_eq!(all(Exchange::MatchAll, &lanes(&[(0, 5), (3, 5)], 0, 0)), [(9, true), (9, true)]);
    }

    #[test]
    fn reductions_know_signs_and_nans() {
        let group = lanes(&[(0, 0xffff_ffff), (1, 5)], 0, 0);
        assert_eq!(all(Exchange::MinSigned, &group)[0].0, 0xffff_ffff);
        assert_eq!(all(Exchange::MinUnsigned, &group)[0].0, 5);
        assert_eq!(all(Exchange::Add, &group)[0].0, 4);
        assert_eq!(all(Exchange::Xor, &group)[1].0, 0xffff_fffa);
        let bits = |x: f32| u64::from(x.to_bits());
        let floats = [(0, bits(-3.0)), (1, bits(2.0)), (2, bits(f32::NAN))];
        assert_eq!(all(Exchange::MinFloat, &lanes(&floats, 0, 0))[0].0, bits(-3.0));
        assert_eq!(all(Exchange::MinFloat, &lanes(&floats, 1, 0))[0].0, bits(2.0));
        assert_eq!(all(Exchange::MaxFloat, &lanes(&floats, 2, 0))[0].0, 0x7fff_ffff);
        assert_eq!(all(Exchange::MinFloat, &lanes(&[(0, bits(0.0)), (1, bits(-0.0))], 0, 0))[0].0, bits(-0.0));
    }
}
