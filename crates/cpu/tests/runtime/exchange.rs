//! Exchanges between the lanes of a warp.

use broadloom_cpu::abi::{Exchange, ExchangeOperands};
use broadloom_cpu::exchange::{LaneInput, result};

fn lanes(values: &[(u32, u64)], control: u32, select: u32) -> Vec<LaneInput> {
    let brings = |value| ExchangeOperands { value, control, select, ..ExchangeOperands::default() };
    values.iter().map(|&(number, value)| LaneInput { number, brings: brings(value) }).collect()
}

fn all(kind: Exchange, lanes: &[LaneInput]) -> Vec<(u64, bool)> {
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
