//! Sizes: plans depend on which are known to be equal, never on which happen to be.

#[allow(dead_code, reason = "shared with the random graphs")]
mod support;

use broadloom_device::Device;
use broadloom_graph::{AxisMap, Boundary, Combine, Context, Elementwise, Node, Result, Shape, SortKey, naive};
use broadloom_interp::Interp;
use broadloom_scalar::{BinaryOp, Element, Literal, Type};
use support::Random;

fn context() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

fn upload(context: &Context, shape: Shape) -> Result<Node> {
    let bytes: Vec<u8> = (0..shape.count() as i32).flat_map(|i| (i * 7 % 23 - 9).to_le_bytes()).collect();
    Node::upload(context, Type::I32, shape, &bytes)
}

fn binary(op: BinaryOp, a: &Node, b: &Node) -> Result<Node> {
    Node::elementwise(Elementwise::Binary(op), &[a, b])
}

/// The elements of a line from the last to the first.
fn reversed(a: &Node) -> Result<Node> {
    let n = a.shape().count();
    let map = AxisMap { offset: n as i64 - 1, stride: -1, ..AxisMap::same(0) };
    a.affine("reverse", &[map], Shape::from(n), None)
}

/// Expressions of lines of lengths `n` and `m` and a matrix.
fn expressions(context: &Context, n: usize, m: usize, matrix: [usize; 2]) -> Result<Vec<Node>> {
    let (a, b, c, d) =
        (upload(context, n.into())?, upload(context, n.into())?, upload(context, m.into())?, { upload(context, matrix.into())? });
    let sum = binary(BinaryOp::Add, &a, &reversed(&b)?)?;
    let squares = binary(BinaryOp::Mul, &c, &c)?;
    let joined = Node::concatenate(0, &[&sum, &squares])?;
    let shifted =
        joined.affine("shift", &[AxisMap { offset: -1, ..AxisMap::same(0) }], joined.shape().clone(), Some(&Boundary::Wrap))?;
    let column = d.reduce(Combine::Sum, &[1])?.reshape([matrix[0], 1].into())?;
    let centred = binary(BinaryOp::Sub, &d, &column)?;
    let picked = c.gather(&[&squares], &Boundary::Clamp)?;
    let key = SortKey { descending: false, bits: None };
    let places = Node::position(context, n.into(), 0, Element::I32)?;
    let mut sorted = Node::sort(&[(&a, key)], &[&binary(BinaryOp::Add, &places, &b)?])?;
    let zeros = Node::fill(context, m.into(), &[Literal::from(0i32)])?;
    let scattered = zeros.scatter(&[&a], &b, Some(Combine::Sum))?;
    let counts = a.histogram(5)?;
    Ok(vec![shifted, centred.reduce(Combine::Max, &[0])?, picked, sorted.swap_remove(1), scattered, counts])
}

#[test]
fn lengths_that_are_equal_by_accident_make_no_plan() -> Result<()> {
    let context = context();
    let mut random = Random::new(19);
    let (mut programs, mut accidents) = (0, 0);
    for round in 0..10_000 {
        // The larger expressions less often: debug builds are slow.
        let is_large = round % 50 == 0;
        let mut extent = || 2 + random.below(12);
        // How much a view enlarges is a class of its own.
        let (n, m, matrix) = (extent(), extent(), [extent(), 6 + extent()]);
        accidents += usize::from(n == m || n == matrix[0] || m == matrix[1] || matrix[0] == matrix[1]);
        if !is_large {
            let (a, b, c) = (upload(&context, n.into())?, upload(&context, n.into())?, upload(&context, m.into())?);
            context.plan_only(&[binary(BinaryOp::Add, &a, &reversed(&b)?)?, binary(BinaryOp::Mul, &c, &c)?])?;
            continue;
        }
        let nodes = expressions(&context, n, m, matrix)?;
        context.plan_only(&nodes)?;
        if round % 1000 == 0 {
            let expected = nodes.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
            context.evaluate(&nodes)?;
            for (node, expected) in nodes.iter().zip(&expected) {
                assert_eq!(node.read()?, *expected, "{n} {m} {matrix:?}");
            }
        }
        if round == 50 {
            programs = context.statistics().programs;
        }
    }
    assert!(accidents > 1000, "{accidents}");
    // One for the larger expressions, one for the others.
    assert_eq!(context.statistics().plans, 2);
    // Small and large sizes of a pattern may have kernels of their own, two of each at most.
    assert!(context.statistics().programs < 2 * programs, "{programs}");
    Ok(())
}

/// Code depends on classes of sizes besides: extents of 1, of 0, long last axes. There are few of them.
#[test]
fn all_shapes_need_few_plans() -> Result<()> {
    let context = context();
    let mut random = Random::new(20);
    let mut plans = 0;
    for round in 0..4000 {
        let mut extent = || *random.pick(&[1, 2, 3, 5, 16, 31, 32, 40]);
        let (shape, other) = ([extent(), extent()], extent());
        let (a, b) = (upload(&context, shape.into())?, upload(&context, shape[1].into())?);
        let product = binary(BinaryOp::Mul, &a, &b)?;
        let line = upload(&context, other.into())?;
        context.plan_only(&[product.reduce(Combine::Sum, &[1])?, line.scan(Combine::Sum, 0, true)?])?;
        if round == 2000 {
            plans = context.statistics().plans;
        }
    }
    assert_eq!(context.statistics().plans, plans);
    assert!(plans <= 24, "{plans}");
    Ok(())
}

/// Sizes that are known to be equal are one domain, whose kernels can be one.
#[test]
fn lengths_that_are_known_to_be_equal_share_kernels() -> Result<()> {
    let context = context();
    let (a, b) = (upload(&context, 50.into())?, upload(&context, 50.into())?);
    let sum = a.reduce(Combine::Sum, &[0])?;
    let picked = a.gather(&[&b], &Boundary::Clamp)?.reduce(Combine::Sum, &[0])?;
    assert_eq!(context.explain(&[sum.clone(), picked.clone()])?.kernels.len(), 2);
    let product = binary(BinaryOp::Mul, &a, &b)?.reduce(Combine::Sum, &[0])?;
    assert_eq!(context.explain(&[sum.clone(), product.clone()])?.kernels.len(), 1);
    // The product says that both have one length.
    assert_eq!(context.explain(&[sum, picked, product])?.kernels.len(), 1);
    Ok(())
}

/// A function that is traced for other sizes finds its plan and its programs.
#[test]
fn a_template_for_new_sizes_compiles_nothing() -> Result<()> {
    let context = context();
    let function = |inputs: &[Node]| -> Result<Vec<Node>> {
        let product = binary(BinaryOp::Mul, &inputs[0], &reversed(&inputs[1])?)?;
        Ok(vec![product.scan(Combine::Sum, 0, true)?, Node::concatenate(0, &[&product, &inputs[2]])?])
    };
    let mut known = None;
    for round in 0..400 {
        let (n, m) = (2 + round * 7 % 40, 2 + round * 11 % 40);
        let inputs = [upload(&context, n.into())?, upload(&context, n.into())?, upload(&context, m.into())?];
        let template = context.template(&inputs, function)?;
        if round % 100 == 0 {
            let expected = function(&inputs)?.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
            let found = template.call(&inputs)?.iter().map(Node::read).collect::<Result<Vec<_>>>()?;
            assert_eq!(found, expected);
        }
        assert_eq!(context.statistics().plans, 1, "{n} {m}");
        // All sizes come in the first 40 rounds; small and large ones may have kernels of their own.
        if round >= 40 {
            let made = context.statistics().programs;
            assert_eq!(*known.get_or_insert(made), made, "{n} {m}");
        }
    }
    Ok(())
}
