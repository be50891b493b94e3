//! Positions at which all indices of a kernel are inside.

use broadloom_graph::Shape;
use broadloom_graph::internals::{Bindings, Condition, Number, interior};

/// Compares with a test of every position.
#[test]
fn the_interior_is_where_all_indices_are_inside() {
    for (stride, offset, extent) in (-3i64..4).flat_map(|s| (-5..12).flat_map(move |o| [1, 2, 7].map(move |e| (s, o, e)))) {
        let mut bindings = Bindings::default();
        bindings.shapes.push(Shape::from(extent as usize));
        for (least, most) in [(0, 0), (-2, 0), (0, 3)] {
            let condition = Condition {
                axis: 0,
                stride: Number::Known(stride),
                offset: Number::Known(offset),
                extent: Number::Extent(0, 0),
                others: (Number::Known(least), Number::Known(most)),
            };
            let (first, end) = interior(0, &[condition], &bindings);
            for position in 0..40 {
                let inside = (least..=most).all(|other| (0..extent).contains(&(offset + other + stride * position)));
                assert_eq!((first..end).contains(&position), inside, "{stride} {offset} {extent} {position}");
            }
        }
    }
}
