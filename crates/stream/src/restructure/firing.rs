//! Kernels with a block for each firing, or several: filters that add up many items.

use super::cut::Cut;
use super::emit::{Held, Store, Window, drafted};
use super::island::filter_of;
use super::section::{Port, Section};
use super::wiring::preimage;
use crate::core::Program;
use crate::graph::{Graph, NodeKind, TapeId};
use crate::translate::{Cooperation, Fold, Share, Site, Subject, fire};
use broadloom_device::Machine;
use broadloom_scalar::{Axis, Builder, Element, Literal, Precision, Type, Value};
use broadloom_skeleton::cost::{Costs, Each};
use broadloom_skeleton::kit::{Shared, Writer, reduce_block};
use broadloom_skeleton::{Argument, Count, Operator, Output, Program as Kernels};
use std::cell::Cell;

/// Rounds of a loop for each thread, before the loop is split among blocks.
const ROUNDS: Each<u32> = Each { vectors: 512, threads: 16 };
/// Blocks for each core, at most, among which a loop is split.
const BLOCKS: Each<u64> = Each { vectors: 4, threads: 8 };
/// Words that all parts of a firing keep, at most.
const KEPT_WORDS: u32 = 1 << 22;

/// The operator of a fold.
fn operator(fold: Fold, element: Element) -> Result<Operator, String> {
    let named = |identity: i32, combine: &dyn Fn(&Builder, Value, Value) -> Value| {
        let f = Builder::function("fold");
        let (a, b) = (f.parameter("a", Type::of(element)), f.parameter("b", Type::of(element)));
        let both = combine(&f, a, b);
        f.finish_function(&[both])
            .map_err(|error| error.to_string())
            .and_then(|function| Operator::new(function, &[Literal::from(identity)], true).map_err(|error| error.to_string()))
    };
    match fold {
        Fold::Add => Operator::sum(element).map_err(|error| error.to_string()),
        Fold::Multiply => Operator::product(element).map_err(|error| error.to_string()),
        Fold::And => named(-1, &|f, a, b| f.and(a, b)),
        Fold::Or => named(0, &|f, a, b| f.or(a, b)),
        Fold::Xor => named(0, &|f, a, b| f.xor(a, b)),
    }
}

struct Maker<'m> {
    program: &'m Program,
    graph: &'m Graph,
    section: &'m Section,
    cut: &'m Cut,
    starts: &'m [i64],
    number: usize,
    input: Option<usize>,
    output: Option<usize>,
    flag: usize,
    /// The memory that parts keep their words in.
    kept: Option<usize>,
}

/// The parts of a firing.
#[derive(Clone, Copy)]
struct Split {
    share: Share,
    parts: u32,
    /// Words that a part keeps.
    words: u32,
}

/// Writes the program of a cut by firing. Its inputs and outputs are those of [`super::emit::program`].
pub(crate) fn program(
    (program, graph): (&Program, &Graph),
    section: &Section,
    cut: &Cut,
    name: &str,
    starts: &[i64],
    (machine, precision): (&Machine, Precision),
) -> Result<Kernels, String> {
    let mut draft = drafted(name, precision);
    let index = cut.actors[0];
    let actor = &section.actors[index];
    let element = |port: &Port| Type::of(section.buffers[port.buffer].words.element);
    let number = draft.scalar(Type::I32);
    let input = actor.input.as_ref().map(|port| draft.input(element(port)));
    let output = actor.output.as_ref().map(|port| draft.output(Output { ty: element(port), count: Count::Constant(0) }));
    let flag = draft.output(Output { ty: Type::U32, count: Count::Constant(1) });
    let maker = Maker { program, graph, section, cut, starts, number, input, output, flag, kept: None };
    // How long the loop is, and what a part keeps, is known once a part was written.
    let (words, rounds) = (Cell::new(0), Cell::new(0));
    let probe = Writer::new(name, [cut.threads, 1, 1]);
    let splits =
        Maker { kept: Some(0), ..maker }.write(&probe, Split { share: Share::Part, parts: 2, words: 1 }, &words, &rounds);
    let costs = Costs::of(machine);
    let most = u32::try_from(costs.busy(costs.pick(BLOCKS))).unwrap_or(1).min(KEPT_WORDS / words.get().max(1));
    let parts = match splits {
        Ok(()) => (rounds.get() / (cut.threads * costs.pick(ROUNDS))).min(most),
        Err(_) => 1,
    };
    let grid = |parts: u32| [Count::size(0) * Count::Constant(actor.firings as u64 * u64::from(parts)), 1u32.into(), 1u32.into()];
    let block = [cut.threads, 1, 1];
    let failed = |error: broadloom_skeleton::Error| error.to_string();
    if parts < 2 {
        let k = Writer::new(name, block);
        k.prefer(precision);
        maker.write(&k, Split { share: Share::Whole, parts: 1, words: 0 }, &words, &rounds)?;
        draft.launch(k, grid(1), block).map_err(failed)?;
        return Ok(draft.finish());
    }
    let bytes = u64::from(parts) * u64::from(words.get()) * 4 * actor.firings as u64;
    let kept = Some(draft.temporary(Count::size(0) * Count::Constant(bytes), false));
    let maker = Maker { kept, ..maker };
    for (share, blocks, suffix) in [(Share::Part, parts, "parts"), (Share::Rest, 1, "rest")] {
        let k = Writer::new(&format!("{name}_{suffix}"), block);
        k.prefer(precision);
        let split = Split { share, parts, words: words.get() };
        maker.write(&k, split, &Cell::new(0), &Cell::new(0))?;
        draft.launch(k, grid(blocks), block).map_err(failed)?;
    }
    Ok(draft.finish())
}

impl Maker<'_> {
    fn write(&self, k: &Writer, split: Split, words: &Cell<u32>, rounds: &Cell<u32>) -> Result<(), String> {
        let index = self.cut.actors[0];
        let actor = &self.section.actors[index];
        let range = self.cut.unit.firings[index].ok_or("nothing needs it")?;
        let NodeKind::Filter(instance) = &self.graph.nodes[*actor.nodes.first().ok_or("it is no filter")?].kind else {
            return Err("it is no filter".into());
        };
        let node = &self.graph.nodes[actor.nodes[0]];
        let filter = filter_of(self.program, instance).ok_or("it is no filter")?;
        let thread = k.thread(Axis::X);
        let block = k.convert(k.block(Axis::X), Type::I32);
        let is_part = split.share == Share::Part;
        let (whole, part) = match is_part {
            true => (k.div(block, split.parts as i32), k.rem(block, split.parts as i32)),
            false => (block, k.literal(0i32)),
        };
        let (unit, firing) = match actor.firings {
            1 => (whole, k.literal(range.start as i32)),
            firings => (k.div(whole, firings as i32), k.add(k.rem(whole, firings as i32), range.start as i32)),
        };
        let window = |port: &Port, argument: Argument| {
            let buffer = &self.section.buffers[port.buffer];
            let held = Held {
                store: Store::Memory(k.memory(argument, buffer.words.element)),
                start: self.starts[port.buffer],
                base: Some(k.mul(unit, buffer.items as i32)),
                words: buffer.words,
                padding: 0,
            };
            (held, k.add(k.mul(firing, port.rate as i32), port.start as i32), port.items(range).start)
        };
        let input = match (&actor.input, self.input) {
            (Some(port), Some(number)) => {
                let (held, first, least) = window(port, Argument::Input(number));
                Some(Window { port, held, first, least, anchors: &[] })
            }
            _ => None,
        };
        let output = match (&actor.output, self.output) {
            (Some(port), Some(number)) if !is_part => {
                let wanted = self.cut.unit.items[port.buffer].ok_or("nothing needs its items")?;
                if port.items(range) != preimage(&port.steps, wanted) {
                    return Err("it makes items that nothing needs".into());
                }
                let (held, first, least) = window(port, Argument::Output(number));
                Some(Window { port, held, first, least, anchors: &[] })
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
        let problem: Cell<bool> = Cell::new(false);
        let reduce = |fold: Fold, value: Value| match operator(fold, k.type_of(value).element()) {
            Ok(operator) => {
                let all = reduce_block(k, &operator, &[value], thread, self.cut.threads);
                let shared = Shared::new(k, &operator.types(), 1);
                k.if_then(k.eq(thread, 0), || shared.set(k, k.literal(0u32), &all));
                k.barrier();
                let all = shared.get(k, k.literal(0u32))[0];
                k.barrier();
                all
            }
            Err(_) => {
                problem.set(true);
                value
            }
        };
        let array = |length: u32| k.shared(Element::I32, length);
        let kept = self.kept.map(|kept| k.memory(Argument::Temporary(kept), Element::I32));
        let place = |part: Value, slot: Value| {
            let first = k.add(k.mul(whole, split.parts as i32), part);
            k.add(k.mul(first, split.words as i32), slot)
        };
        let keep = |slot: Value, word: Value| {
            if let Some(memory) = kept {
                k.store(memory, place(part, slot), word);
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
            reduce: &reduce,
            array: &array,
            keep: &keep,
            kept: &take,
            words,
            rounds,
        };
        let layout = |tapes: &[TapeId]| tapes.first().map(|tape| &self.graph.tapes[*tape].layout);
        let subject = Subject {
            program: self.program,
            filter,
            instance,
            statics: &self.graph.statics,
            input: layout(&node.inputs),
            output: layout(&node.outputs),
            inductions: &[],
        };
        if actor.code.numbered {
            return Err("it counts its firings".into());
        }
        let bad = k.variable_with(k.literal(false));
        let number = k.scalar(self.number, Type::I32);
        let seen = k.add(k.add(k.mul(k.add(number, unit), actor.firings as i32), firing), actor.first as i32);
        let site = Site { b: k, reads: &reads, writes: &writes, firing: seen, bad, state: &[], cooperation: Some(cooperation) };
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
