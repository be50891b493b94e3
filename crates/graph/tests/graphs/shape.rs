//! Shapes: broadcasts, counts, strides; and running states of loops that are written out.

use broadloom_device::Device;
use broadloom_graph::{Context, Elementwise, Node, Shape};
use broadloom_interp::Interp;
use broadloom_scalar::{BinaryOp, Type};

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

/// Running states of a long loop that is written out are cut at the same place: the number of kernels grows with
/// the number of steps only, and no kernel computes again what another one has.
#[test]
fn running_states_are_kept_together() -> broadloom_graph::Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let line = |seed: u32| {
        let bytes: Vec<u8> = (0..100u32).flat_map(|i| (((i * 7 + seed) % 13) as f32 / 13.0).to_le_bytes()).collect();
        Node::upload(&context, Type::F32, Shape::from(100), &bytes)
    };
    let (a, b, seen) = (line(1)?, line(2)?, line(3)?);
    let two = |op: BinaryOp, a: &Node, b: &Node| Node::elementwise(Elementwise::Binary(op), &[a, b]);
    let (add, sub, mul) = (BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul);
    let step = |[x, y, z]: [&Node; 3]| -> broadloom_graph::Result<[Node; 3]> {
        let off = two(sub, &two(mul, x, &seen)?, y)?;
        let (x, y) = (two(add, &two(mul, &off, &a)?, z)?, two(sub, &two(mul, y, &b)?, &two(mul, &off, z)?)?);
        let z = two(mul, &two(add, &two(mul, z, &a)?, &off)?, &b)?;
        Ok([x, y, z])
    };
    let steps = |count: usize, apart: bool| -> broadloom_graph::Result<[Node; 3]> {
        let mut state = [a.clone(), b.clone(), seen.clone()];
        for _ in 0..count {
            state = step([&state[0], &state[1], &state[2]])?;
            if apart {
                context.evaluate(&state)?;
            }
        }
        Ok(state)
    };
    let all = steps(200, false)?;
    let kernels = context.explain(&all)?.kernels.len();
    assert!(kernels <= 10, "{kernels} kernels");
    context.evaluate(&all)?;
    for (own, want) in all.iter().zip(&steps(200, true)?) {
        assert_eq!(own.read()?.to_bytes(), want.read()?.to_bytes());
    }
    Ok(())
}
