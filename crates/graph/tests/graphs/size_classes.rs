//! Sizes that are known to be equal.

use broadloom_graph::Shape;
use broadloom_graph::internals::{ONE, ShapeId, Sizes};

#[test]
fn shapes_are_one_where_their_sizes_are_known_to_be_equal() {
    let mut sizes = Sizes::default();
    let shape = Shape::from([7, 1]);
    let [a, b, c] = [(); 3].map(|()| sizes.fresh_shape(&shape));
    assert!(!sizes.are_equal(a, b));
    sizes.unite_shapes(a, c);
    assert!(sizes.are_equal(c, a));
    let (ids, shapes) = sizes.finish();
    assert_eq!((ids.as_slice(), shapes.len()), ([0, 1, 0].as_slice(), 2));
    sizes.clear(false);
    let (a, b) = (sizes.fresh(), sizes.fresh());
    assert!(a != ONE && a != b);
}

#[test]
fn long_lines_of_one_extent_have_one_size_where_kernels_are_joined() {
    let mut sizes = Sizes::default();
    for (joins, extent, are_equal) in [(true, 100, true), (true, 7, false), (false, 100, false)] {
        sizes.clear(joins);
        let [a, b] = [(); 2].map(|()| sizes.fresh_shape(&Shape::from(extent)));
        assert_eq!(sizes.are_equal(a, b), are_equal, "{joins} {extent}");
    }
    // A length that only the device knows is not an extent, whatever its bound.
    sizes.clear(true);
    let length = sizes.length(3, 100);
    let [a, b] = [Some(length), None].map(|length| sizes.fresh_shape_with(&Shape::from(100), length));
    assert!(!sizes.are_equal(a, b));
}

#[test]
fn many_shapes_are_found_by_their_sizes() {
    let mut sizes = Sizes::default();
    let all: Vec<ShapeId> = (0..100).map(|_| sizes.fresh_shape(&Shape::from(5))).collect();
    all.chunks(2).for_each(|pair| sizes.unite_shapes(pair[0], pair[1]));
    let (ids, shapes) = sizes.finish();
    assert_eq!(shapes.len(), 50);
    assert!(ids.chunks(2).enumerate().all(|(number, pair)| pair == [number as ShapeId; 2]));
}
