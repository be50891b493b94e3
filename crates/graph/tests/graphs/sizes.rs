//! Sizes: plans depend on sizes that are known to be equal, never on sizes that happen to be equal.

use crate::support::Random;
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_graph::{Amount, AxisMap, Boundary, Combine, Context, Elementwise, Node, Result, Shape, SortKey, naive};
use broadloom_interp::Interp;
use broadloom_scalar::{BinaryOp, CompareOp, Element, Literal, Type};

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

/// Returns a line in reverse order.
fn reversed(a: &Node) -> Result<Node> {
    let n = a.shape().count();
    let map = AxisMap { offset: n as i64 - 1, stride: -1, ..AxisMap::same(0) };
    a.affine("reverse", &[map], Shape::from(n), None)
}

/// Returns expressions of lines of lengths `n` and `m` and a matrix.
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
    let (mut programs, mut accidents, mut ones) = (0, 0, 0);
    for round in 0..10_000 {
        // The larger expressions run less often: debug builds are slow.
        let is_large = round % 50 == 0;
        let mut extent = || 1 + random.below(13);
        let (n, m, matrix) = (extent(), extent(), [extent(), extent()]);
        ones += usize::from(n == 1 || m == 1 || matrix[0] == 1);
        accidents += usize::from(n == m || n == matrix[0] || m == matrix[1] || matrix[0] % matrix[1] == 0);
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
    assert!(accidents > 1000 && ones > 1000, "{accidents} {ones}");
    // One for the smaller expressions, one for the others. If rows have one element, a column is not
    // broadcast along them, which is another expression.
    assert_eq!(context.statistics().plans, 3);
    // Small and large sizes of a pattern may have kernels of their own, at most two of each.
    assert!(context.statistics().programs < 2 * programs, "{programs}");
    Ok(())
}

/// Code also depends on classes of sizes: extents of 1, of 0, long last axes. There are few of them.
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
    assert!(plans <= 6, "{plans}");
    Ok(())
}

/// Sizes that are known to be equal are one domain, whose kernels can be joined.
#[test]
fn lengths_that_are_known_to_be_equal_share_kernels() -> Result<()> {
    let context = context();
    let (a, b) = (upload(&context, 50.into())?, upload(&context, 50.into())?);
    let sum = a.reduce(Combine::Sum, &[0])?;
    let picked = a.gather(&[&b], &Boundary::Clamp)?.reduce(Combine::Sum, &[0])?;
    assert_eq!(context.explain(&[sum.clone(), picked.clone()])?.kernels.len(), 2);
    let product = binary(BinaryOp::Mul, &a, &b)?.reduce(Combine::Sum, &[0])?;
    assert_eq!(context.explain(&[sum.clone(), product.clone()])?.kernels.len(), 1);
    // The product implies that both have one length.
    assert_eq!(context.explain(&[sum, picked, product])?.kernels.len(), 1);
    Ok(())
}

/// A template is traced once. For other sizes its plans are fitted, and the function is not called.
#[test]
fn a_template_is_fitted_to_new_sizes() -> Result<()> {
    let context = context();
    let function = |inputs: &[Node]| -> Result<Vec<Node>> {
        let [a, b, c, d] = inputs else { return Ok(vec![]) };
        let product = binary(BinaryOp::Mul, a, &b.reversed("reverse", &[0])?)?;
        let joined = Node::concatenate(0, &[&product, c])?;
        let flat = d.reshape(Shape::from_amounts(&[d.bound().size()]))?;
        let column = d.reduce(Combine::Sum, &[1])?.reshape(Shape::from_amounts(&[d.bound().amount(0), 1.into()]))?;
        let shifted = joined.moved("shift", &[1], &Boundary::Wrap)?;
        let inner = {
            let (n, one) = (c.bound().amount(0), Amount::from(1));
            c.affine_at("slice", &[AxisMap::same(0)], std::slice::from_ref(&one), Shape::from_amounts(&[n.minus(&one)]), None)?
        };
        let zeros = Node::fill(c.context(), c.bound().clone(), &[Literal::from(0i32)])?;
        let key = SortKey { descending: false, bits: None };
        let mean = binary(
            BinaryOp::Div,
            &Node::elementwise(Elementwise::Convert(Element::I64), &[&flat.reduce(Combine::Sum, &[0])?])?,
            &{ Node::counting(c.context(), &d.bound().size()) },
        )?;
        let packed = a.pack(&Node::elementwise(Elementwise::Compare(CompareOp::Gt), &[a, b])?)?;
        Ok(vec![
            product.scan(Combine::Sum, 0, true)?,
            shifted,
            binary(BinaryOp::Sub, d, &column)?,
            inner,
            zeros.scatter(&[a], b, Some(Combine::Sum))?,
            Node::sort(&[(c, key)], &[&c.position_like(0, Element::I32)?])?.swap_remove(1),
            c.gather(&[a], &Boundary::Clamp)?.histogram(5)?,
            mean,
            binary(BinaryOp::Add, &packed, &packed)?,
        ])
    };
    let inputs = |round: usize| -> Result<Vec<Node>> {
        let (n, m) = (2 + round * 7 % 40, 2 + round * 11 % 40);
        let matrix = [2 + round * 3 % 11, 2 + round * 5 % 13];
        [n.into(), n.into(), m.into(), matrix.into()].into_iter().map(|shape: Shape| upload(&context, shape)).collect()
    };
    let template = context.template(&inputs(1)?, function)?;
    let plans = context.statistics().plans;
    for round in 0..300 {
        let inputs = inputs(round)?;
        assert!(template.fits(&inputs), "{round}: {:?}", inputs.iter().map(|input| input.shape()).collect::<Vec<_>>());
        if round % 20 == 0 {
            let expected = function(&inputs)?.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
            let found = template.call(&inputs)?.iter().map(Node::read).collect::<Result<Vec<_>>>()?;
            assert_eq!(found, expected, "{round}");
        }
    }
    let statistics = context.statistics();
    assert_eq!((statistics.traces, statistics.plans), (1, plans));
    assert!(statistics.fits > 200);
    // A call with recent sizes reuses their fit.
    let last = inputs(299)?;
    template.call(&last)?;
    let fits = context.statistics().fits;
    template.call(&last)?;
    assert_eq!(context.statistics().fits, fits);
    Ok(())
}

/// A function that knows sizes from elsewhere has one kernel in a template of these sizes. The template
/// refuses others.
#[test]
fn a_template_of_sizes_serves_no_others() -> Result<()> {
    let context = context();
    let function = |x: &[Node]| {
        // A number equal to the extent of the input is the same size.
        let next = AxisMap { offset: 1, ..AxisMap::same(0) };
        let shifted = x[0].affine("shift", &[next], Shape::from(6), Some(&Boundary::Clamp))?;
        Ok(vec![binary(BinaryOp::Add, &shifted, &x[0])?])
    };
    let inputs = |count: usize| -> Result<Vec<Node>> { Ok(vec![upload(&context, count.into())?]) };
    let template = context.template_of_sizes(&inputs(6)?, function)?;
    assert!(template.fits(&inputs(6)?) && !template.fits(&inputs(7)?));
    let error = template.call(&inputs(7)?).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("[6]") && error.contains("[7]"), "{error}");
    let expected = function(&inputs(6)?)?.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
    let found = template.call(&inputs(6)?)?.iter().map(Node::read).collect::<Result<Vec<_>>>()?;
    assert_eq!(found, expected);
    Ok(())
}

/// A function whose decisions depend on numbers is traced again exactly when a decision changes.
#[test]
fn a_template_holds_where_its_function_does_the_same() -> Result<()> {
    type Body = fn(&[Node]) -> Result<Vec<Node>>;
    // A function, the shapes of its trace, and other shapes with whether the trace is valid for them.
    type Case = (Body, [&'static [usize]; 2], &'static [([&'static [usize]; 2], bool)]);
    let cases: [Case; 8] = [
        // Reads all extents of the first.
        (
            |x| {
                if x[0].shape().extents()[0] > 4 {
                    Ok(vec![x[0].clone()])
                } else {
                    Ok(vec![binary(BinaryOp::Add, &x[0], &x[0])?])
                }
            },
            [&[6, 3], &[5]],
            &[([&[6, 3], &[9]], true), ([&[6, 4], &[5]], false), ([&[2, 3], &[5]], false)],
        ),
        // Reads one extent.
        (
            |x| {
                let rows = x[0].shape().amount(0).get();
                Ok(vec![binary(BinaryOp::Mul, &x[0], &Node::fill(x[0].context(), [].into(), &[Literal::from(rows as i32)])?)?])
            },
            [&[6, 3], &[5]],
            &[([&[6, 4], &[2]], true), ([&[7, 3], &[5]], false)],
        ),
        // Compares extents.
        (
            |x| Ok(vec![if x[1].shape().amount(0).is_less(&x[0].shape().amount(1)) { x[0].clone() } else { x[1].clone() }]),
            [&[2, 7], &[5]],
            &[([&[9, 8], &[7]], true), ([&[2, 7], &[7]], false)],
        ),
        // Compares shapes: if they differ, the first differing axis is the condition.
        (
            |x| Ok(vec![if x[0].shape() == x[1].shape() { binary(BinaryOp::Sub, &x[0], &x[1])? } else { x[1].clone() }]),
            [&[4, 4], &[4, 4]],
            &[([&[7, 9], &[7, 9]], true), ([&[7, 9], &[9, 7]], false)],
        ),
        // An error is a decision.
        (
            |x| Ok(vec![binary(BinaryOp::Add, &x[0], &x[1]).unwrap_or(x[0].clone())]),
            [&[5], &[4]],
            &[([&[9], &[8]], true), ([&[5], &[5]], false), ([&[5], &[1]], false)],
        ),
        // A constant that equals an extent by accident.
        (
            |x| {
                let part = x[0].affine("part", &[AxisMap::same(0)], Shape::from(5), None)?;
                Ok(vec![part.clone(), binary(BinaryOp::Add, &part, &part.moved("shift", &[1], &Boundary::Clamp)?)?])
            },
            [&[5], &[5]],
            &[([&[9], &[5]], true), ([&[5], &[7]], true), ([&[4], &[5]], false)],
        ),
        // One axis is broadcast.
        (
            |x| Ok(vec![binary(BinaryOp::Add, &x[0], &x[1])?]),
            [&[1, 4], &[6, 4]],
            &[([&[1, 7], &[3, 7]], true), ([&[6, 4], &[6, 4]], false), ([&[1, 4], &[6, 1]], false)],
        ),
        // A dropped boundary rule is needed for other sizes.
        (
            |x| {
                let map = AxisMap { offset: 2, ..AxisMap::same(0) };
                Ok(vec![x[0].affine("part", &[map], Shape::from(3), Some(&Boundary::Wrap))?, x[1].clone()])
            },
            [&[5], &[2]],
            &[([&[8], &[3]], true), ([&[4], &[2]], false)],
        ),
    ];
    for (number, (body, shapes, others)) in cases.into_iter().enumerate() {
        let context = context();
        let inputs =
            |shapes: [&[usize]; 2]| shapes.into_iter().map(|shape| upload(&context, shape.into())).collect::<Result<Vec<_>>>();
        let template = context.template(&inputs(shapes)?, body)?;
        for (shapes, holds) in [(shapes, true)].iter().chain(others) {
            let inputs = inputs(*shapes)?;
            assert_eq!(template.fits(&inputs), *holds, "{number}: {shapes:?}");
            // A function that fails for some shapes also fails in a template of them.
            let Ok(expected) = body(&inputs) else { continue };
            let expected = expected.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
            let again;
            let fitting = if *holds {
                &template
            } else {
                assert!(template.call(&inputs).is_err());
                again = context.template(&inputs, body)?;
                &again
            };
            let found = fitting.call(&inputs)?.iter().map(Node::read).collect::<Result<Vec<_>>>()?;
            assert_eq!(found, expected, "{number}: {shapes:?}");
        }
    }
    Ok(())
}

/// Returns a random function that never reads extents: its operations and constants do not depend on shapes.
fn random_function(seed: u64, inputs: &[Node]) -> Result<Vec<Node>> {
    let mut random = Random::new(seed);
    let mut pool: Vec<Node> = inputs.to_vec();
    for _ in 0..3 + random.below(8) {
        let (a, b) = (random.pick(&pool).clone(), random.pick(&pool).clone());
        let rank = a.bound().rank();
        let axis = random.below(rank.max(1));
        let (way, small, flag) = (random.below(14), random.between(-3, 3), random.one_in(2));
        let edge = random.pick(&[Boundary::Clamp, Boundary::Wrap, Boundary::Mirror]).clone();
        let made = match way {
            0..=2 => binary(*random.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul]), &a, &b),
            3 => a.moved("shift", &vec![small; rank], &edge),
            4 => a.reversed("reverse", &(0..rank).filter(|own| flag || *own == axis).collect::<Vec<_>>()),
            5 => a.reshape(Shape::from_amounts(&[a.bound().size()])),
            6 => Node::concatenate(axis, &[&a, &b]),
            7 if rank > 0 => a.reduce(Combine::Sum, &[axis]),
            8 if rank > 0 => a.scan(Combine::Max, axis, true),
            9 if rank == 2 => {
                let shape = Shape::from_amounts(&[a.bound().amount(1), a.bound().amount(0)]);
                a.affine("transpose", &[AxisMap::same(1), AxisMap::same(0)], shape, None)
            }
            10 if rank == 1 => a.gather(&[&b], &edge),
            11 if rank > 0 => {
                // From the second element on, or a constant number of elements at the end.
                let (extent, few) = (a.bound().amount(axis), Amount::from(random.between(1, 3)));
                let mut offsets = vec![Amount::from(0); rank];
                offsets[axis] = if flag { few.clone() } else { extent.minus(&few) };
                let count = if flag { extent.minus(&few) } else { few };
                let maps: Vec<AxisMap> = (0..rank).map(AxisMap::same).collect();
                a.affine_at("slice", &maps, &offsets, a.bound().with(axis, count.max(&0.into())), None)
            }
            12 if rank == 1 => Ok(Node::sort(&[(&a, SortKey { descending: flag, bits: None })], &[])?.swap_remove(0)),
            13 if rank == 1 => a.fill_like(&[Literal::from(1i32)])?.scatter(&[&a], &a, Some(Combine::Sum)),
            _ => a.position_like(axis, Element::I32),
        };
        // A slice that does not fit is left out, which is a decision too.
        pool.extend(made);
        if random.one_in(10) {
            // Another stage.
            inputs[0].context().evaluate(&pool[pool.len() - 1..])?;
        }
    }
    Ok(pool.split_off(pool.len() - 3))
}

/// A valid template returns the results of its function.
#[test]
fn random_functions_give_the_same_for_all_sizes_that_fit() -> Result<()> {
    let setting = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (from, count) = (setting("BROADLOOM_FUZZ_SEED", 1), setting("BROADLOOM_FUZZ_FUNCTIONS", 60));
    let (mut fitting, mut others) = (0, 0);
    for seed in from..from + count {
        let context = context();
        let mut random = Random::new(seed ^ 0x5eed);
        let mut draw = || -> Result<Vec<Node>> {
            let mut extent = || *random.pick(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 33]);
            let (n, m, k) = (extent(), extent(), extent());
            [Shape::from(n), Shape::from(m), Shape::from([k, n]), Shape::from([n, k])]
                .into_iter()
                .map(|s| upload(&context, s))
                .collect()
        };
        let template = context.template(&draw()?, |inputs| random_function(seed, inputs))?;
        for _ in 0..6 {
            let inputs = draw()?;
            if !template.fits(&inputs) {
                others += 1;
                continue;
            }
            fitting += 1;
            let expected = random_function(seed, &inputs)?;
            let expected = expected.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
            let found = template.call(&inputs)?.iter().map(Node::read).collect::<Result<Vec<_>>>()?;
            assert_eq!(found, expected, "seed {seed}, {:?}", inputs.iter().map(Node::shape).collect::<Vec<_>>());
        }
        assert_eq!(context.statistics().traces, 1);
    }
    assert!(count < 50 || fitting * 5 > others, "{fitting} fit, {others} do not");
    Ok(())
}

/// Extents of short axes are part of the code of large arrays only, and results are those of the definitions, in
/// maps, reductions of short rows, and where short axes are added, joined and exchanged.
#[test]
fn short_axes_of_large_arrays_are_part_of_the_code() -> Result<()> {
    let cpu = Cpu::new(broadloom_cpu::Options { threads: 2, cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() });
    let cpu = Device::new(cpu.unwrap_or_else(|error| panic!("{error}")));
    for device in [Device::new(Interp::new(broadloom_interp::Options::default())), cpu] {
        let context = Context::new(&device);
        let results = |rows: usize, middle: usize, last: usize| -> Result<()> {
            let shape = Shape::from([rows, middle, last]);
            let x = upload(&context, shape.clone())?;
            let place = Node::position(&context, shape, 2, Element::I32)?;
            let y = binary(BinaryOp::Mul, &x, &place)?;
            let turned = [AxisMap::same(0), AxisMap::same(2), AxisMap::same(1)];
            let turned = y.affine("turn", &turned, Shape::from([rows, last, middle]), None)?;
            let all = [
                y.reduce(Combine::Sum, &[2])?,
                y.reduce(Combine::Max, &[1])?,
                y.reduce(Combine::Sum, &[1, 2])?,
                turned,
                Node::concatenate(2, &[&x, &y])?,
                Node::concatenate(1, &[&y, &x, &y])?,
            ];
            let expected = all.iter().map(naive::evaluate).collect::<Result<Vec<_>>>()?;
            context.evaluate(&all)?;
            for (number, (own, expected)) in all.iter().zip(&expected).enumerate() {
                assert_eq!(own.read()?, *expected, "{:?}, {rows}, {middle}, {last}, {number}", device.machine().kind);
            }
            Ok(())
        };
        let mut plans = vec![];
        for (rows, middle, last) in [(10, 5, 3), (11, 4, 5), (1200, 5, 3), (1300, 5, 3), (1100, 5, 4), (600, 4, 8), (90, 16, 16)]
        {
            results(rows, middle, last)?;
            plans.push(context.statistics().plans);
        }
        // Small arrays of all extents share plans, and so do large ones whose short axes are equal.
        assert_eq!((plans[0], plans[2]), (plans[1], plans[3]));
        assert!(plans[2] > plans[1] && plans[4] > plans[3], "{plans:?}");
    }
    Ok(())
}
