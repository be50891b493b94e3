//! Positions of elements that kernels read: near each other or apart.

use broadloom_graph::internals::{Index, Number, Tape, Trace};
use broadloom_scalar::Precision;

#[test]
fn places_lie_apart_in_other_rows_and_some_elements_from_each_other() {
    let tape = Tape::empty(Precision::Fast, false);
    let mut trace = Trace::new(&tape, &[], false);
    let (i, j) = (trace.axis(0), trace.axis(1));
    let scaled = |stride: i64| Index::Scaled { base: j, stride: Number::Known(stride), offset: Number::Known(1) };
    let (two, sixteen) = (trace.index(scaled(2)), trace.index(scaled(-16)));
    let extent = Number::Extent(0, 0);
    let in_block = trace.index(Index::Joined { high: i, low: j, extent: extent.clone() });
    let of_block = trace.index(Index::Joined { high: j, low: i, extent: extent.clone() });
    let sum = trace.index(Index::Plus(i, j, 1));
    let held = trace.index(Index::Clamp(sum, extent.clone()));
    let anything = trace.index(Index::Unravel(j, 0, 1));
    for near in [[i, j], [i, two], [i, in_block], [i, sum], [i, held], [i, i], [anything, j]] {
        assert!(!trace.is_apart(&near, 1), "{near:?}");
    }
    for apart in [[j, i], [i, sixteen], [i, of_block], [of_block, j], [held, i]] {
        assert!(trace.is_apart(&apart, 1), "{apart:?}");
    }
    assert!(!trace.is_apart(&[], 1));
}
