//! Traps in kernels whose threads have several positions: a word is written exactly if the condition holds.

use crate::support::gpu::interp_as_gpu;
use broadloom_graph::{Combine, Context, Elementwise, Node, Result, Segments, Shape, Total};
use broadloom_scalar::{CompareOp, Literal, Type, UnaryOp};

type Make = fn(&Node, &Node) -> Result<Node>;

/// Results over the positions of a line, and of flags.
const KERNELS: [(&str, Make); 5] = [
    ("map", |x, _| Node::elementwise(Elementwise::Unary(UnaryOp::Neg), &[x])),
    ("reduce", |x, _| x.reduce(Combine::Sum, &[0])),
    ("scan", |x, _| x.scan(Combine::Sum, 0, true)),
    ("pack", |x, flags| x.pack(flags)),
    ("segments", |x, _| {
        let lengths: Vec<u8> = (0..x.bound().count()).map(|place| (place % 5) as u8).scan(x.bound().count(), shorten).collect();
        let lengths = Node::upload(x.context(), Type::U8, Shape::from(lengths.len()), &lengths)?;
        Ok(Segments::from_lengths(&lengths, Total::of(x))?.reduce(&[(x, Combine::Sum)])?.swap_remove(0))
    }),
];

/// Returns a length, limited to the remaining elements.
fn shorten(left: &mut usize, length: u8) -> Option<u8> {
    let length = usize::from(length).min(*left);
    *left -= length;
    Some(length as u8)
}

#[test]
fn a_trap_is_written_wherever_its_condition_holds() -> Result<()> {
    let context = Context::new(&interp_as_gpu());
    for (name, make) in KERNELS {
        for (n, marked) in [(90, None), (90, Some(89)), (9000, None), (9000, Some(0)), (9000, Some(5001)), (9000, Some(8999))] {
            let values: Vec<u8> = (0..n).flat_map(|place| i32::from(Some(place) == marked).to_le_bytes()).collect();
            let x = Node::upload(&context, Type::I32, Shape::from(n), &values)?;
            let word = Node::upload(&context, Type::U32, Shape::from([]), &[0; 4])?;
            let one = Node::fill(&context, Shape::from([]), &[Literal::from(1i32)])?;
            let flags = Node::elementwise(Elementwise::Compare(CompareOp::Eq), &[&x, &one])?;
            let nodes = [make(&x, &flags)?, flags.trap(&word)?];
            context.evaluate(&nodes)?;
            let found = nodes[1].read()?.lanes[0];
            assert_eq!(found, Literal::from(u32::from(marked.is_some())), "{name} of {n}, {marked:?}");
        }
    }
    Ok(())
}
