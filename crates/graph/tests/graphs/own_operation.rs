//! An operation that the graph does not know, defined with its public interface only: the minimum and the
//! maximum along some axes, found in one pass.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_diag::Sources;
use broadloom_graph::text::{Spelling, Vocabulary, parse, print_with_elements};
use broadloom_graph::{
    Application, Combine, Context, Elementwise, Feed, HostArray, Node, Operation, OperationPattern, PatternParts, Result, Shape,
    SharedKernel, Typing, naive,
};
use broadloom_interp::Interp;
use broadloom_scalar::{BinaryOp, Literal, Type};
use broadloom_skeleton::{Operator, Reduce, Spread};

/// Minimum (result 0) and maximum (result 1) of each row of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bounds;

impl Typing for Bounds {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let rows = Shape::from(inputs[0].shape().extents()[0]);
        Ok(vec![(inputs[0].ty(), rows.clone()), (inputs[0].ty(), rows)])
    }
}

impl Operation for Bounds {
    fn name(&self) -> String {
        "bounds".into()
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("bounds"))
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let columns = inputs[0].shape.extents()[1];
        let rows = inputs[0].lanes.chunks(columns).map(|row| {
            let values = row.iter().filter_map(|value| value.as_f64());
            let best = if result == 0 { values.fold(f64::INFINITY, f64::min) } else { values.fold(f64::NEG_INFINITY, f64::max) };
            Literal::from(best as f32)
        });
        Ok(HostArray { ty, shape: shape.clone(), lanes: rows.collect() })
    }

    /// Returns a feed of each element twice: it is a candidate for both results.
    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([0, 0], false)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let (source, operator) = (parts.source()?, parts.operator()?);
        let spread = Spread { blocks: true, ..Spread::default() };
        let (domain, reduced, sink) = (parts.domain, vec![false, true], parts.sink);
        Ok(OperationPattern::One(Reduce { domain, reduced, source, operator, sink, spread }.into()))
    }

    fn operator(&self, application: &Application, _: bool) -> Result<Option<Operator>> {
        let ty = application.types[0];
        Ok(Some(Operator::all(&[Operator::min(ty)?, Operator::max(ty)?])?))
    }

    fn values(&self, application: &Application) -> Vec<Type> {
        vec![application.ty, application.ty]
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }
}

fn apply(op: BinaryOp, left: &Node, right: &Node) -> Result<Node> {
    Node::elementwise(Elementwise::Binary(op), &[left, right])
}

/// Both results, the product before them and the difference after them are one kernel on every device.
#[test]
fn an_operation_of_another_crate_is_planned_like_any_other() -> Result<()> {
    let devices = [
        Device::new(Interp::new(broadloom_interp::Options::default())),
        Device::new(Cpu::new(broadloom_cpu::Options::default()).expect("a CPU")),
    ];
    for device in devices {
        let context = Context::new(&device);
        for (rows, columns) in [(3, 70), (5, 33), (12, 300)] {
            let values = (0..rows * columns).flat_map(|i: usize| ((i * 37 % 101) as f32 - 50.0).to_le_bytes());
            let shape = Shape::from([rows, columns]);
            let matrix = Node::upload(&context, Type::F32, shape, &values.collect::<Vec<u8>>())?;
            let scaled = apply(BinaryOp::Mul, &matrix, &matrix)?;
            let bounds = Node::apply(Bounds, &[&scaled])?;
            let [least, greatest] = &bounds[..] else { panic!("two results are wanted") };
            let spread = apply(BinaryOp::Sub, greatest, least)?;
            let plan = context.explain(&[spread.clone(), least.clone()])?;
            assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
            let expected = [naive::evaluate(&spread)?, naive::evaluate(least)?];
            context.evaluate(&[spread.clone(), least.clone()])?;
            assert_eq!([spread.read()?, least.read()?], expected, "{rows} by {columns}");
        }
        // Equal structure is planned once, whatever the sizes.
        assert_eq!(context.statistics().plans, 1);
    }
    Ok(())
}

/// An operation of another crate has a textual form.
#[test]
fn an_operation_of_another_crate_is_written_and_read() -> Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let vocabulary = Vocabulary::default().with("bounds", |call| {
        let [matrix] = call.exactly()?;
        if matrix.shape().rank() != 2 || matrix.ty() != Type::F32 {
            return Err(call.error("expected a matrix of `f32`"));
        }
        Node::apply(Bounds, &[matrix])
    });
    let text = "\
n0: f32[2, 3] = input [1.0, -2.0, 0.5, 4.0, 4.0, 8.0]
n1: f32[2], n2: f32[2] = bounds(n0)
n3: f32[2] = n2 - n1
output n3
";
    let mut sources = Sources::new();
    let id = sources.add("bounds.graph", text);
    let graph = parse(&sources, id, &context, &vocabulary).unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong)));
    let node = &graph.outputs[0].1;
    assert_eq!(print_with_elements(std::slice::from_ref(node), 6)?, text);
    assert_eq!(node.read()?.lanes, [Literal::from(3.0f32), Literal::from(4.0f32)]);
    let id = sources.add("bad.graph", "x: f32[4] = input iota\ny = bounds(x)\noutput y\n");
    let wrong = parse(&sources, id, &context, &vocabulary).expect_err("a line is no matrix");
    assert!(sources.render_all(&wrong).contains("expected a matrix of `f32`"), "{}", sources.render_all(&wrong));
    Ok(())
}

/// Operations of the graph and of another crate can be combined.
#[test]
fn results_of_an_own_operation_feed_others() -> Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let values: Vec<u8> = (0..6 * 40).flat_map(|i: u32| ((i * 11 % 17) as f32).to_le_bytes()).collect();
    let matrix = Node::upload(&context, Type::F32, Shape::from([6, 40]), &values)?;
    let bounds = Node::apply(Bounds, &[&matrix])?;
    let sum = bounds[1].reduce(Combine::Sum, &[0])?;
    let expected = naive::evaluate(&sum)?;
    assert_eq!(sum.read()?, expected);
    Ok(())
}
