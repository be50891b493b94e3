//! Kernels with one or several blocks for each firing: filters that add up many items.
//!
//! A following filter that adds up the pushed items of these firings is part of the kernel. The loops of all
//! firings are then merged, and only the totals are written.

use super::cut::{Cut, cost};
use super::emit::drafted;
use super::emit::memory::{BufferMemory, KernelBuffer, Window};
use super::section::{Actor, Port, Section};
use super::wiring::preimage;
use crate::language::core::Program;
use crate::language::graph::Graph;
use crate::planner::translate::{Cooperation, Fold, KernelSite, LoopShare, PartSize, Reason, Rows, Subject, fire};
use broadloom_device::Machine;
use broadloom_scalar::{AtomicOp, Axis, Builder, Element, Literal, Order, Precision, Scope, Type, Value};
use broadloom_skeleton::cost::{Costs, LOOP_ROWS, dataflow};
use broadloom_skeleton::kit::{Shared, Writer, reduce_block};
use broadloom_skeleton::{Argument, Count, Operator, Output, Program as Kernels};
use std::cell::Cell;

/// Returns the operator of a fold.
fn operator(fold: Fold, element: Element) -> Result<Operator, Reason> {
    let named = |identity: i32, combine: &dyn Fn(&Builder, Value, Value) -> Value| {
        let f = Builder::function("fold");
        let (a, b) = (f.parameter("a", Type::of(element)), f.parameter("b", Type::of(element)));
        let both = combine(&f, a, b);
        Ok(Operator::new(f.finish_function(&[both])?, &[Literal::from(identity)], true)?)
    };
    match fold {
        Fold::Add => Ok(Operator::sum(element)?),
        Fold::Multiply => Ok(Operator::product(element)?),
        Fold::And => named(-1, &|f, a, b| f.and(a, b)),
        Fold::Or => named(0, &|f, a, b| f.or(a, b)),
        Fold::Xor => named(0, &|f, a, b| f.xor(a, b)),
    }
}

struct FiringWriter<'m> {
    program: &'m Program,
    graph: &'m Graph,
    section: &'m Section,
    cut: &'m Cut,
    starts: &'m [i64],
    number: usize,
    input: Option<usize>,
    output: Option<usize>,
    flag: usize,
    /// The memory in which parts store their words.
    kept: Option<usize>,
    /// True if sums of floats are added in the written order.
    is_ordered: bool,
}

/// The parts of a firing.
#[derive(Clone, Copy)]
struct Split {
    share: LoopShare,
    parts: u32,
    /// Number of words that a part stores. `adds` is true if all parts add up theirs.
    words: u32,
    adds: bool,
    /// Copies of arrays in shared memory.
    copies: u32,
    /// Rows that a thread loads together. `prefetched` is true if the rows of the next rounds are prefetched.
    pieces: u32,
    prefetched: bool,
    /// Threads that run neighbouring rounds.
    together: u32,
}

impl Split {
    const WHOLE: Split =
        Split { share: LoopShare::Whole, parts: 1, words: 0, adds: false, copies: 1, pieces: 0, prefetched: false, together: 32 };
}

/// Returns the number of consecutive firings with merged loops, in a cut of a filter and of the following
/// filter that adds up its items.
fn firings_in_row(section: &Section, cut: &Cut) -> Option<i64> {
    (cut.actors.len() == 2).then(|| section.actors[cut.actors[0]].firings)
}

/// Choices for the loops of a firing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loops {
    /// Blocks that share the loop.
    pub(crate) parts: u32,
    /// Copies of arrays in shared memory.
    pub(crate) copies: u32,
    /// True if words are loaded by rows.
    pub(crate) by_rows: bool,
    /// True if the rows of the next rounds are prefetched.
    pub(crate) prefetched: bool,
}

/// Returns whether the input of a firing can be loaded by rows. This needs contiguous items of one 4-byte
/// word, and every firing must begin with a whole row.
fn has_rows(section: &Section, cut: &Cut) -> bool {
    let actor = &section.actors[cut.actors[0]];
    let Some(port) = &actor.input else { return false };
    let buffer = &section.buffers[port.buffer];
    let row = i64::from(dataflow::ROW_WORDS);
    let rate = if firings_in_row(section, cut).is_some() { row } else { port.rate };
    let whole = [port.start, rate, buffer.items].iter().all(|items| items % row == 0);
    let short = round_cost(actor) <= dataflow::UNROLLED_ROUND;
    port.steps.is_empty() && whole && short && buffer.words.count == 1 && buffer.words.element.bytes() == 4
}

/// Returns the number of operations per input item.
fn round_cost(actor: &Actor) -> u64 {
    cost(actor) / u64::from(actor.code.window.pop.max(1))
}

/// The machine and the options of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct KernelTarget<'m> {
    pub(crate) machine: &'m Machine,
    pub(crate) precision: Precision,
    /// True or false if prefetching is demanded or forbidden.
    pub(crate) prefetch: Option<bool>,
}

/// Writes the program of a cut by firing, and returns its choices. Its inputs and outputs are those of
/// [`super::emit::program`].
pub(crate) fn program(
    program: &Program,
    graph: &Graph,
    section: &Section,
    cut: &Cut,
    name: &str,
    starts: &[i64],
    target: KernelTarget<'_>,
) -> Result<(Kernels, Loops), Reason> {
    let KernelTarget { machine, precision, prefetch } = target;
    let mut draft = drafted(name, precision);
    let actor = &section.actors[cut.actors[0]];
    let last = &section.actors[*cut.actors.last().ok_or("it is no filter")?];
    let firings = if firings_in_row(section, cut).is_some() { 1 } else { actor.firings };
    let element = |port: &Port| Type::of(section.buffers[port.buffer].words.element);
    let number = draft.scalar(Type::I32);
    let input = actor.input.as_ref().map(|port| draft.input(element(port)));
    let output = last.output.as_ref().map(|port| draft.output(Output { ty: element(port), count: Count::Constant(0) }));
    let flag = draft.output(Output { ty: Type::U32, count: Count::Constant(1) });
    let is_ordered = precision == Precision::Accurate && !Costs::of(machine).pick(dataflow::SHARES_FLOAT_SUMS);
    let maker = FiringWriter { program, graph, section, cut, starts, number, input, output, flag, kept: None, is_ordered };
    // The length of the loop and the words that a part stores are only known after a part was written.
    let measure = Cell::new(PartSize::default());
    let probe = Writer::new(name, [cut.threads, 1, 1]);
    let part = Split { share: LoopShare::Part, parts: 2, words: 1, ..Split::WHOLE };
    let splits = FiringWriter { kept: Some(0), ..maker }.write(&probe, part, &measure);
    let costs = Costs::of(machine);
    let PartSize { words, adds, rounds, added } = measure.get();
    let kept = if adds { 1 } else { words.max(1) };
    let most = u32::try_from(costs.busy(costs.pick(dataflow::SPLIT_BLOCKS))).unwrap_or(1).min(dataflow::SPLIT_WORDS / kept);
    let parts = match splits {
        Ok(()) => (rounds / (cut.threads * costs.pick(dataflow::SPLIT_ROUNDS))).min(most),
        Err(_) => 1,
    };
    let grid = |parts: u32| [Count::size(0) * Count::Constant(firings as u64 * u64::from(parts)), 1u32.into(), 1u32.into()];
    let block = [cut.threads, 1, 1];
    let by_rows = has_rows(section, cut) && costs.pick(LOOP_ROWS) > 0;
    let pieces = if by_rows { costs.pick(LOOP_ROWS) } else { 0 };
    // Copies of counters pay off if each counter is incremented often.
    let copies = if parts < 2 { 1 } else { costs.counter_copies(words, u64::from(rounds / parts) * u64::from(added)) };
    let resident = costs.resident_blocks(cut.threads, words * (copies + 1) * 4);
    let operations = round_cost(actor) * u64::from(dataflow::ROW_WORDS * pieces);
    let decided = costs.prefetches(resident * u64::from(cut.threads), operations);
    let prefetched = by_rows && prefetch.unwrap_or(decided);
    let loops = Loops { parts, copies, by_rows, prefetched };
    let whole = Split { pieces, prefetched, together: costs.taken_together(cut.threads), ..Split::WHOLE };
    if parts < 2 {
        let k = Writer::new(name, block);
        k.prefer(precision);
        maker.write(&k, whole, &measure)?;
        draft.launch(k, grid(1), block)?;
        return Ok((draft.finish(), loops));
    }
    // All blocks are resident at the same time.
    let parts = parts.min(u32::try_from(costs.busy(resident)).unwrap_or(parts)).max(2);
    let bytes = u64::from(if adds { 1 } else { parts }) * u64::from(words) * 4 * firings as u64;
    let kept = Some(draft.temporary(Count::size(0) * Count::Constant(bytes), adds));
    let maker = FiringWriter { kept, ..maker };
    for (share, blocks, suffix) in [(LoopShare::Part, parts, "parts"), (LoopShare::Rest, 1, "rest")] {
        let k = Writer::new(&format!("{name}_{suffix}"), block);
        k.prefer(precision);
        let copies = if share == LoopShare::Part { copies } else { 1 };
        maker.write(&k, Split { share, parts, words, adds, copies, ..whole }, &measure)?;
        draft.launch(k, grid(blocks), block)?;
    }
    Ok((draft.finish(), Loops { parts, ..loops }))
}

impl FiringWriter<'_> {
    fn write(&self, k: &Writer, split: Split, measure: &Cell<PartSize>) -> Result<(), Reason> {
        let index = self.cut.actors[0];
        let actor = &self.section.actors[index];
        let range = self.cut.unit.firings[index].ok_or("nothing needs it")?;
        let node = actor.nodes.first().map(|node| &self.graph.nodes[*node]);
        let subject = node.and_then(|node| Subject::of(self.program, self.graph, node)).ok_or("it is no filter")?;
        let in_row = firings_in_row(self.section, self.cut);
        let thread = k.thread(Axis::X);
        let block = k.convert(k.block(Axis::X), Type::I32);
        let is_part = split.share == LoopShare::Part;
        let (whole, part) = match is_part {
            true => (k.div(block, split.parts as i32), k.rem(block, split.parts as i32)),
            false => (block, k.literal(0i32)),
        };
        let (unit, firing) = match if in_row.is_some() { 1 } else { actor.firings } {
            1 => (whole, k.literal(range.start as i32)),
            firings => (k.div(whole, firings as i32), k.add(k.rem(whole, firings as i32), range.start as i32)),
        };
        let held = |port: &Port, argument: Argument| {
            let buffer = &self.section.buffers[port.buffer];
            KernelBuffer {
                store: BufferMemory::Memory(k.memory(argument, buffer.words.element)),
                start: self.starts[port.buffer],
                base: Some(k.mul(unit, buffer.items as i32)),
                words: buffer.words,
                padding: 0,
            }
        };
        let first = |port: &Port, firing: Value| k.add(k.mul(firing, port.rate as i32), port.start as i32);
        let input = match (&actor.input, self.input) {
            (Some(port), Some(number)) => {
                let (held, first) = (held(port, Argument::Input(number)), first(port, firing));
                Some(Window { port, held, first, least: port.items(range).start, anchors: &[] })
            }
            _ => None,
        };
        // A following filter that adds up firings pushes as many items as one of them.
        let (last, many) = match (&self.cut.actors[..], in_row) {
            ([_, last], Some(_)) => (*last, true),
            _ => (index, false),
        };
        let made = self.cut.unit.firings[last].ok_or("nothing needs it")?;
        let out = self.section.actors[last].output.as_ref().map(|port| {
            let items = if many { made.len() * port.rate } else { port.rate };
            Port { rate: items, seen: items, ..port.clone() }
        });
        let output = match (&out, &self.section.actors[last].output, self.output) {
            (Some(port), Some(own), Some(number)) if !is_part => {
                let wanted = self.cut.unit.items[port.buffer].ok_or("nothing needs its items")?;
                if own.items(made) != preimage(&port.steps, wanted) {
                    return Err("it makes items that nothing needs".into());
                }
                let firing = if many { k.literal(made.start as i32) } else { firing };
                let (held, first) = (held(port, Argument::Output(number)), first(own, firing));
                Some(Window { port, held, first, least: own.items(made).start, anchors: &[] })
            }
            _ => None,
        };
        let reads = |k: &Builder, at: Value| match &input {
            Some(window) => window.held.load(k, window.index(k, at)),
            None => k.fail("a tape that is not there is read"),
        };
        let writes = |k: &Builder, at: Value, value: Value| {
            if let Some(window) = &output {
                window.held.store(k, window.index(k, at), value);
            }
        };
        let tape = input.as_ref().and_then(|window| match window.held.store {
            BufferMemory::Memory(memory) => Some((window, memory)),
            BufferMemory::Local(_) => None,
        });
        let load = |at: Value| match tape {
            Some((window, memory)) => k.load_vector(memory, window.index(k, at), dataflow::ROW_WORDS as usize),
            None => k.fail("a tape that is not there is read"),
        };
        let starts_row = |port: &Port| (port.start - self.starts[port.buffer]) % i64::from(dataflow::ROW_WORDS) == 0;
        let rows = tape.filter(|(window, _)| split.pieces > 0 && starts_row(window.port)).map(|(_, memory)| Rows {
            load: &load,
            aligned: k.aligned(vec![k.address(memory)]),
            pieces: split.pieces,
            prefetched: split.prefetched,
        });
        let problem: Cell<bool> = Cell::new(false);
        let reduce = |fold: Fold, value: Value| match operator(fold, k.type_of(value).element()) {
            Ok(operator) if !(self.is_ordered && k.type_of(value).element().is_float()) => {
                let all = reduce_block(k, &operator, &[value], thread, self.cut.threads);
                let shared = Shared::new(k, &operator.types(), 1);
                k.if_then(k.eq(thread, 0), || shared.set(k, k.literal(0u32), &all));
                k.barrier();
                let all = shared.get(k, k.literal(0u32))[0];
                k.barrier();
                all
            }
            Ok(_) | Err(_) => {
                problem.set(true);
                value
            }
        };
        let array = |length: u32| k.shared(Element::I32, length);
        let kept = self.kept.map(|kept| k.memory(Argument::Temporary(kept), Element::I32));
        let place = |part: Value, slot: Value| {
            let first = if split.adds { whole } else { k.add(k.mul(whole, split.parts as i32), part) };
            k.add(k.mul(first, split.words as i32), slot)
        };
        let keep = |slot: Value, word: Value| {
            if let Some(memory) = kept {
                k.store(memory, place(part, slot), word);
            }
        };
        let add = |slot: Value, word: Value| {
            if let Some(memory) = kept {
                k.atomic(AtomicOp::Add, memory, place(k.literal(0i32), slot), word, Order::Relaxed(Scope::Device));
            }
        };
        let take = |part: Value, slot: Value| match kept {
            Some(memory) => k.load(memory, place(part, slot)),
            None => k.fail("there are no parts"),
        };
        let cooperation = Cooperation {
            thread: k.convert(thread, Type::I32),
            threads: self.cut.threads as i32,
            share: split.share,
            part,
            parts: split.parts as i32,
            together: split.together as i32,
            firings: in_row.map_or(Ok(1), u32::try_from).map_err(|_| "too many firings")?,
            copies: split.copies,
            rows,
            reduce: &reduce,
            array: &array,
            keep: &keep,
            kept: &take,
            add: &add,
            measure,
        };
        if actor.code.numbered {
            return Err("it counts its firings".into());
        }
        let bad = k.variable_with(k.literal(false));
        let number = k.scalar(self.number, Type::I32);
        let seen = k.add(k.add(k.mul(k.add(number, unit), actor.firings as i32), firing), actor.first as i32);
        let site =
            KernelSite { b: k, reads: &reads, writes: &writes, firing: seen, bad, state: &[], cooperation: Some(cooperation) };
        fire(subject, &site)?;
        if problem.get() || k.has_failed() {
            return Err("its code is not accepted".into());
        }
        if actor.code.fails {
            let flag = k.memory(Argument::Output(self.flag), Element::U32);
            k.if_then(k.get(bad), || k.store(flag, k.literal(0u32), k.literal(1u32)));
        }
        Ok(())
    }
}
