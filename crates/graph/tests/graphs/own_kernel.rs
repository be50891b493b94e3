//! An operation with a new kernel, defined outside the crates in one file: the run-length encoding of
//! segments.
//!
//! The operation implements [`Operation`]; its pattern implements [`Generator`] and is written with
//! [`kit`](broadloom_skeleton::kit). One pass counts the runs before each tile by look-back. A second pass
//! computes the distances of their starts.

use broadloom_cpu::Cpu;
use broadloom_device::{Device, Machine};
use broadloom_graph::{
    Application, Context, Elementwise, Feed, HostArray, Node, Operation, OperationPattern, PatternParts, Result, Shape,
    SharedKernel, Typing, naive,
};
use broadloom_interp::Interp;
use broadloom_scalar::{Axis, BinaryOp, Cache, Element, Literal, Type, Value};
use broadloom_skeleton::kit::{Draft, Shared, TileChain, Writer, broadcast, scan_warp};
use broadloom_skeleton::{Argument, Count, Generator, Operator, Output, Program, Source};

/// Runs of equal elements within the segments of a line: elements (result 0) and lengths (result 1), both
/// followed by zeros, and their number (result 2). The second input is true if a segment starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RunLengths;

fn run_lengths(values: &Node, starts: &Node) -> Result<[Node; 3]> {
    let nodes = Node::apply(RunLengths, &[values, starts])?;
    Ok(nodes.try_into().unwrap_or_else(|_| panic!("three results are wanted")))
}

impl Typing for RunLengths {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let line = inputs[0].shape().clone();
        Ok(vec![(inputs[0].ty(), line.clone()), (Type::U32, line), (Type::U32, Shape::from([]))])
    }
}

impl Operation for RunLengths {
    fn name(&self) -> String {
        "run lengths".into()
    }

    fn naive(&self, result: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let mut runs: Vec<(Literal, u32)> = vec![];
        for (value, start) in inputs[0].lanes.iter().zip(&inputs[1].lanes) {
            match runs.last_mut() {
                Some((own, length)) if own == value && start.bits() == 0 => *length += 1,
                _ => runs.push((*value, 1)),
            }
        }
        let mut lanes: Vec<Literal> = match result {
            0 => runs.iter().map(|(value, _)| *value).collect(),
            1 => runs.iter().map(|(_, length)| Literal::from(*length)).collect(),
            _ => vec![Literal::from(runs.len() as u32)],
        };
        lanes.resize(shape.count(), Literal::zero(ty.element()));
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([0, 1], true)]
    }

    fn pattern(&self, mut parts: PatternParts) -> Result<OperationPattern> {
        let wanted = [0, 1, 2].map(|result| parts.application.wanted.contains(&result));
        Ok(OperationPattern::One(Runs { source: parts.source()?, wanted }.into()))
    }

    /// Returns no values: the kernel stores the results itself.
    fn values(&self, _: &Application) -> Vec<Type> {
        vec![]
    }

    fn joining(&self) -> SharedKernel {
        SharedKernel::Results
    }
}

/// The kernels. The source returns an element, and whether a segment starts there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Runs {
    source: Source,
    wanted: [bool; 3],
}

/// Threads of a block, each with one position of a tile.
const THREADS: u32 = 128;

impl Generator for Runs {
    fn program(&self, _: &Machine) -> broadloom_skeleton::Result<Program> {
        let (index, count) = (Type::U32, Count::size(0));
        let ty = self.source.results()[0];
        let mut draft = Draft::new("run_lengths", 1);
        draft.limit(count.clone());
        let inlet = draft.source(&self.source);
        // Unused results go to memory that is freed after the run.
        let results = [(ty, count.clone()), (Type::U32, count.clone()), (Type::U32, 1u32.into())];
        let mut place = |result: usize| {
            let (ty, count) = results[result].clone();
            match self.wanted[result] {
                true => Argument::Output(draft.output(Output { ty, count })),
                false => Argument::Temporary(draft.temporary(count * ty.bytes(), false)),
            }
        };
        let [values, lengths, number] = [place(0), place(1), place(2)];
        let starts = Argument::Temporary(draft.temporary((count.clone() + 1u32) * 4u32, false));
        let tiles = count.clone().div_ceil(THREADS);
        let sum = Operator::sum(Type::U32)?;
        let chain = TileChain::new(&mut draft, &sum, index, &1u32.into(), &tiles);
        let block = [THREADS, 1, 1];

        let k = Writer::new("run_starts", block);
        let thread = k.thread(Axis::X);
        let (lane, warp) = (k.and(thread, 31), k.shr(thread, 5));
        let tile = chain.number(&k);
        let i = k.add(k.mul(tile, THREADS), thread);
        let n = k.count(count.clone(), index);
        let is_there = k.lt(i, n);
        let comparable = |x: Value| if ty.element() == Element::Bool { k.convert(x, Type::U32) } else { x };
        let read = || {
            let own = inlet.at(&k, &[i]);
            let before = inlet.at(&k, &[k.sub(k.max(i, 1), 1)])[0];
            let differs = k.ne(comparable(own[0]), comparable(before));
            vec![own[0], k.or(k.eq(i, 0), k.or(own[1], differs))]
        };
        let nothing = || vec![k.literal(Literal::zero(ty.element())), k.literal(false)];
        let found = k.choose_list(is_there, read, nothing);
        let head = k.convert(found[1], Type::U32);
        // Heads up to each thread of its warp, then those of the warps before it.
        let up_to = scan_warp(&k, &sum, &[head], lane)[0];
        let totals = Shared::new(&k, &[Type::U32], THREADS / 32);
        let of_warp = broadcast(&k, &[up_to], 31);
        k.if_then(k.eq(lane, 0), || totals.set(&k, warp, &of_warp));
        k.barrier();
        let (mut before, mut whole) = (k.sub(up_to, head), k.literal(0u32));
        for other in 0..THREADS / 32 {
            let total = totals.get(&k, k.literal(other))[0];
            before = k.add(before, k.select(k.lt(k.literal(other), warp), total, 0));
            whole = k.add(whole, total);
        }
        let tiles_before = chain.before(&k, None, tile, &[whole])[0];
        let run = k.add(tiles_before, before);
        k.if_then(found[1], || {
            k.store_element(k.memory(values.clone(), ty.element()), run, found[0], Cache::Normal);
            k.store(k.memory(starts.clone(), Element::U32), run, i);
        });
        k.if_then(k.eq(i, k.sub(n, 1)), || {
            let all = k.add(tiles_before, whole);
            k.store(k.memory(number.clone(), Element::U32), k.literal(0u32), all);
            k.store(k.memory(starts.clone(), Element::U32), all, n);
        });
        draft.launch(k, [tiles.clone(), 1u32.into(), 1u32.into()], block)?;

        let k = Writer::new("run_lengths", block);
        let run = k.global_thread(Axis::X);
        k.if_then(k.lt(run, k.count(count, index)), || {
            let (starts, lengths) = (k.memory(starts, Element::U32), k.memory(lengths, Element::U32));
            let is_run = k.lt(run, k.load(k.memory(number, Element::U32), k.literal(0u32)));
            k.if_else(
                is_run,
                || k.store(lengths, run, k.sub(k.load(starts, k.add(run, 1)), k.load(starts, run))),
                || {
                    k.store(lengths, run, k.literal(0u32));
                    k.store_element(k.memory(values, ty.element()), run, k.literal(Literal::zero(ty.element())), Cache::Normal);
                },
            );
        });
        draft.launch(k, [tiles, 1u32.into(), 1u32.into()], block)?;
        Ok(draft.finish())
    }
}

#[test]
fn run_lengths_of_segments() -> Result<()> {
    let devices = [
        Device::new(Interp::new(broadloom_interp::Options::default())),
        Device::new(Cpu::new(broadloom_cpu::Options::default()).expect("a CPU")),
    ];
    for device in devices {
        let context = Context::new(&device);
        for element in [Element::I32, Element::Bool, Element::F64, Element::U8] {
            for length in [1usize, 127, 128, 129, 5000] {
                let number = |i: usize| Literal::from_i128(element, (i * i / 50 % 3) as i128);
                let line = Shape::from(length);
                let upload = |ty: Type, lanes: Vec<Literal>| {
                    let array = HostArray { ty, shape: line.clone(), lanes };
                    Node::upload(&context, ty, line.clone(), &array.to_bytes())
                };
                let values = upload(element.into(), (0..length).map(number).collect())?;
                let starts = upload(Type::BOOL, (0..length).map(|i| Literal::from(i % 97 == 5)).collect())?;
                let [runs, lengths, count] = run_lengths(&values, &starts)?;
                // The planner may fuse later nodes.
                let doubled = Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&lengths, &lengths])?;
                let nodes = [runs, doubled, count];
                let expected = nodes.iter().map(naive::evaluate).collect::<Result<Vec<HostArray>>>()?;
                context.evaluate(&nodes)?;
                let found = nodes.iter().map(Node::read).collect::<Result<Vec<HostArray>>>()?;
                assert_eq!(found, expected, "{element}, {length}");
            }
        }
        // One plan for each type, whatever the length.
        assert_eq!(context.statistics().plans, 4);
    }
    Ok(())
}

/// An unused result is not in memory of the plan.
#[test]
fn the_number_of_runs_alone() -> Result<()> {
    let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
    let values = Node::upload(&context, Type::U8, Shape::from(6), &[1, 1, 2, 2, 2, 1])?;
    let starts = Node::upload(&context, Type::BOOL, Shape::from(6), &[1, 0, 0, 1, 0, 0])?;
    let [_, _, count] = run_lengths(&values, &starts)?;
    assert_eq!(count.read()?.lanes, [Literal::from(4u32)]);
    Ok(())
}
