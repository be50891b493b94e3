//! Concatenations among results: one kernel computes parts that share work, and writes each into its slice.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_graph::{Context, Elementwise, Node, Result, Shape, naive};
use broadloom_interp::Interp;
use broadloom_scalar::{BinaryOp, Type};

fn contexts() -> [Context; 2] {
    let cpu = Cpu::new(broadloom_cpu::Options { threads: 2, ..broadloom_cpu::Options::default() }).expect("a CPU");
    [Context::new(&Device::new(Interp::new(Default::default()))), Context::new(&Device::new(cpu))]
}

fn array(context: &Context, shape: [usize; 3], start: f32) -> Result<Node> {
    let count: usize = shape.iter().product();
    let bytes: Vec<u8> = (0..count).flat_map(|i| (start + i as f32 * 0.25).to_le_bytes()).collect();
    Node::upload(context, Type::F32, Shape::from(shape), &bytes)
}

fn both(op: BinaryOp, a: &Node, b: &Node) -> Result<Node> {
    Node::elementwise(Elementwise::Binary(op), &[a, b])
}

/// Returns the number of results of each kernel of a node, and checks its elements.
fn kernels(node: &Node) -> Result<Vec<usize>> {
    let expected = naive::evaluate(node)?.to_bytes();
    let plan = node.context().explain(std::slice::from_ref(node))?;
    assert_eq!(node.read()?.to_bytes(), expected, "{}", plan.text());
    Ok(plan.kernels.iter().map(|kernel| kernel.results.len()).collect())
}

#[test]
fn parts_that_share_work_come_from_one_kernel() -> Result<()> {
    for context in contexts() {
        for shape in [[1, 3, 5], [1, 20, 70], [2, 7, 33]] {
            let x = array(&context, shape, 1.0)?;
            let square = both(BinaryOp::Mul, &x, &x)?;
            let parts = [both(BinaryOp::Add, &square, &x)?, both(BinaryOp::Sub, &square, &x)?, both(BinaryOp::Mul, &square, &x)?];
            let parts: Vec<&Node> = parts.iter().collect();
            let whole = Node::concatenate(0, &parts)?;
            assert_eq!(kernels(&whole.reshape(Shape::from(whole.shape().count()))?)?, [3]);
            assert_eq!(kernels(&Node::concatenate(0, &parts)?)?, [3]);
            // A concatenation with another reader is a function of positions.
            let whole = Node::concatenate(0, &parts)?;
            assert_eq!(kernels(&both(BinaryOp::Add, &whole, &whole)?)?, [1]);
            // PatternParts that are equal, share nothing, or have other shapes.
            let other = array(&context, shape, 7.0)?;
            let other = both(BinaryOp::Add, &other, &other)?;
            assert_eq!(kernels(&Node::concatenate(0, &[parts[0], parts[0]])?)?, [1]);
            assert_eq!(kernels(&Node::concatenate(0, &[parts[0], &other])?)?, [1]);
            let more = array(&context, [3, shape[1], shape[2]], 2.0)?;
            assert_eq!(kernels(&Node::concatenate(0, &[parts[0], &both(BinaryOp::Mul, &more, &more)?])?)?, [1]);
        }
    }
    Ok(())
}

/// Both the whole and one of its parts are results, and a function is called with other arrays.
#[test]
fn wholes_and_parts_are_results_of_functions() -> Result<()> {
    for context in contexts() {
        let x = array(&context, [1, 6, 40], 1.0)?;
        let function = |inputs: &[Node]| {
            let square = both(BinaryOp::Mul, &inputs[0], &inputs[0])?;
            let (a, b) = (both(BinaryOp::Add, &square, &inputs[0])?, both(BinaryOp::Sub, &square, &inputs[0])?);
            let whole = Node::concatenate(0, &[&a, &b])?;
            let again = Node::concatenate(0, &[&b, &square])?;
            Ok(vec![whole, again])
        };
        let template = context.template(std::slice::from_ref(&x), function)?;
        for start in [1.0, 3.5] {
            let input = array(&context, [1, 6, 40], start)?;
            let found = template.call(std::slice::from_ref(&input))?;
            for (found, expected) in found.iter().zip(function(std::slice::from_ref(&input))?) {
                assert_eq!(found.read()?.to_bytes(), naive::evaluate(&expected)?.to_bytes());
            }
        }
    }
    Ok(())
}
