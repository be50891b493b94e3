//! Shapes: broadcasts, counts, strides.

use broadloom_graph::Shape;

#[test]
fn shapes_stretch_as_in_numpy() {
    let broadcast = |a: &[usize], b: &[usize]| Shape::new(a).broadcast(&Shape::new(b)).map(|s| s.extents().to_vec());
    assert_eq!(broadcast(&[3, 1], &[4]), Some(vec![3, 4]));
    assert_eq!(broadcast(&[], &[2, 2]), Some(vec![2, 2]));
    assert_eq!(broadcast(&[0], &[1]), Some(vec![0]));
    assert_eq!(broadcast(&[5, 3], &[3, 5]), None);
    assert_eq!(broadcast(&[1, 7, 1], &[2, 1, 9]), Some(vec![2, 7, 9]));
}

#[test]
fn counts_and_strides() {
    assert_eq!(Shape::new(&[]).count(), 1);
    assert_eq!(Shape::new(&[usize::MAX, 0]).count(), 0);
    assert!(!Shape::new(&[usize::MAX, 0, 2]).is_possible());
    assert_eq!(Shape::new(&[2, 3, 4]).strides().to_vec(), [12, 4, 1]);
}
