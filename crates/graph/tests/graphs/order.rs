//! Sorts and products: moved values, and predictions.

use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_graph::{AxisMap, Context, Node, Result, Shape, SortKey};
use broadloom_interp::Interp;
use broadloom_scalar::{Element, Type};
use broadloom_skeleton::cost::{KernelWork, SORT_ROUND};

/// Unused values are not moved, and used ones are correct.
#[test]
fn a_sort_moves_what_is_wanted() -> Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let n = 3000u32;
    let line = |value: &dyn Fn(u32) -> u32| {
        let bytes: Vec<u8> = (0..n).flat_map(|i| value(i).to_le_bytes()).collect();
        Node::upload(&context, Type::U32, Shape::from(n as usize), &bytes)
    };
    // Each key occurs once.
    let key = |i: u32| i * 7 % n;
    let all = [line(&key)?, line(&|i| key(i) + 1)?, line(&|i| key(i) + 2)?];
    let besides = |wanted: &[usize]| -> Result<u64> {
        let sorted = Node::sort(&[(&all[0], SortKey::default())], &[&all[1], &all[2]])?;
        let nodes: Vec<Node> = wanted.iter().map(|result| sorted[*result].clone()).collect();
        let plan = context.explain(&nodes)?;
        assert_eq!(plan.kernels.len(), 1, "{}", plan.text());
        context.evaluate(&nodes)?;
        for (result, node) in wanted.iter().zip(&nodes) {
            let expected: Vec<u8> = (0..n).flat_map(|i| (i + *result as u32).to_le_bytes()).collect();
            assert_eq!(node.read()?.to_bytes(), expected, "result {result} of {wanted:?}");
        }
        Ok(plan.kernels[0].bytes_besides)
    };
    let (keys, one, other, both) = (besides(&[0])?, besides(&[1])?, besides(&[2])?, besides(&[0, 1, 2])?);
    assert_eq!(one, other);
    assert!(keys < one && one < both, "{keys}, {one}, {both}");
    Ok(())
}

/// Predictions include the rounds of a sort and the sums of a product.
#[test]
fn rounds_and_sums_are_work() -> Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let keys = Node::upload(&context, Type::U32, Shape::from(1000), &[1; 4000])?;
    let further =
        |node: &Node| Ok::<KernelWork, broadloom_graph::Error>(context.explain(std::slice::from_ref(node))?.kernels[0].further);
    let sorted = |bits| Node::sort(&[(&keys, SortKey { descending: false, bits })], &[]);
    let rounds = |rounds: u64| KernelWork { launches: 0, bytes: 8000 * (rounds - 1), operations: 1000 * rounds * SORT_ROUND };
    assert_eq!(further(&sorted(None)?[0])?, rounds(4));
    assert_eq!(further(&sorted(Some(10))?[0])?, rounds(2));
    let matrix = |rows, columns| Node::upload(&context, Type::F32, Shape::from([rows, columns]), &vec![0; 4 * rows * columns]);
    let product = matrix(8, 9)?.product(&matrix(9, 10)?)?;
    assert_eq!(further(&product)?, KernelWork { operations: 2 * 8 * 9 * 10, ..KernelWork::default() });
    Ok(())
}

/// The first elements of a sorted line are those of the sort of all elements: keys, values, equal keys in their
/// order, NaNs last.
#[test]
fn the_first_elements_of_a_sort_are_selected() -> Result<()> {
    let n = (1 << 16) + 5u32;
    let mixed = |i: u32| i.wrapping_mul(0x9E37_79B1) ^ (i >> 3);
    let float = |i: u32| match mixed(i) % 7 {
        0 => f32::NAN,
        1 => -0.0,
        2 => 0.0,
        _ => mixed(i) as i32 as f32,
    };
    let floats: Vec<u8> = (0..n).flat_map(|i| float(i).to_le_bytes()).collect();
    let few: Vec<u8> = (0..n).flat_map(|i| (mixed(i) as i32 % 9).to_le_bytes()).collect();
    let select = |context: &Context, ty: Type, bytes: &[u8], descending: bool, count: usize| -> Result<()> {
        let keys = Node::upload(context, ty, Shape::from(n as usize), bytes)?;
        let place = Node::position(context, Shape::from(n as usize), 0, Element::I32)?;
        let sorted = || Node::sort(&[(&keys, SortKey { descending, bits: None })], &[&place]);
        let whole = sorted()?;
        context.evaluate(&whole)?;
        let start = |line: &Node| line.affine("start", &[AxisMap::same(0)], Shape::from(count), None);
        let own = sorted()?.iter().map(start).collect::<Result<Vec<Node>>>()?;
        let plan = context.explain(&own)?.text();
        assert!(plan.contains("histogram"), "{plan}");
        context.evaluate(&own)?;
        for (own, whole) in own.iter().zip(&whole) {
            let want = start(whole)?.read()?.to_bytes();
            assert_eq!(own.read()?.to_bytes(), want, "{ty}, {count} elements, descending: {descending}");
        }
        Ok(())
    };
    let interp = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    select(&interp, Type::F32, &floats, true, 100)?;
    let options = broadloom_cpu::Options { threads: 2, cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    let cpu = Context::new(&Device::new(Cpu::new(options).unwrap_or_else(|error| panic!("{error}"))));
    for (ty, bytes) in [(Type::F32, &floats), (Type::I32, &few), (Type::U8, &vec![7; n as usize])] {
        for (descending, count) in [(false, 1), (false, 1000), (true, 100)] {
            select(&cpu, ty, bytes, descending, count)?;
        }
    }
    Ok(())
}
