//! Tapes of expressions.

use broadloom_device::Device;
use broadloom_graph::internals::{Recorder, splits};
use broadloom_graph::{Context, Elementwise, Node, Result, Shape};
use broadloom_interp::Interp;
use broadloom_scalar::{BinaryOp, Literal, Precision};

/// A large expression does not slow down later small ones.
#[test]
fn the_table_of_a_large_expression_is_given_up() -> Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let sum = |operations: u32| {
        (0..operations).try_fold(Node::fill(&context, Shape::from(4), &[Literal::from(0u32)])?, |sum, i| {
            Node::elementwise(
                Elementwise::Binary(BinaryOp::Add),
                &[&sum, &Node::fill(&context, Shape::from(4), &[Literal::from(i)])?],
            )
        })
    };
    let mut recorder = Recorder::new(Precision::Accurate, false);
    let (large, small) = (sum(5000)?, sum(5)?);
    recorder.record(&[large], false)?;
    assert!(recorder.table_len() >= 10_000);
    for _ in 0..2 {
        recorder.record(std::slice::from_ref(&small), false)?;
    }
    assert!(recorder.table_len() <= 1024, "{}", recorder.table_len());
    Ok(())
}

#[test]
fn equal_constants_are_one_where_they_stay_what_they_are() -> Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let fill = |value: f32| Node::fill(&context, Shape::from(4), &[Literal::from(value)]);
    let add = |a: f32, b: f32| Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&fill(a)?, &fill(b)?]);
    let nodes = [add(2.0, 2.0)?, add(0.0, -0.0)?];
    let mut recorder = Recorder::new(Precision::Accurate, false);
    assert_eq!(recorder.record(&nodes, false)?.values.len(), 4);
    assert_eq!(recorder.record(&nodes, true)?.values.len(), 3);
    Ok(())
}

#[test]
fn axes_that_are_split_are_known() {
    let splits = |from: &[usize], to: &[usize]| splits(from, to).to_vec();
    assert_eq!(splits(&[128, 128], &[32, 4, 32, 4]), [2, 2]);
    assert_eq!(splits(&[5, 12], &[5, 3, 4]), [1, 2]);
    assert_eq!(splits(&[5, 6], &[5, 6]), [1, 1]);
    let no_splits: [(&[usize], &[usize]); 5] =
        [(&[6, 4], &[4, 6]), (&[3, 4], &[12]), (&[6], &[6, 1]), (&[0], &[0, 3]), (&[], &[1])];
    for (from, to) in no_splits {
        assert!(splits(from, to).is_empty(), "{from:?} {to:?}");
    }
}
