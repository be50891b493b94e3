//! Kernels of islands.

use super::island::{BorderTape, InnerTape, Island, Round, StateLeaf, Step};
use crate::language::core::{Layout, Program};
use crate::language::graph::{Graph, NodeKind, TapeId};
use crate::planner::translate::{CLASSES, KernelSite, Leaf, Reason, Subject, Words, class_of, element, fire};
use broadloom_scalar::{Array, Axis, Builder, Element, Memory, Type, Unroll, Value, Variable};
use broadloom_skeleton::kit::{Draft, Writer};
use broadloom_skeleton::{Argument, Count, Output, Program as Kernels};
use std::rc::Rc;

/// The storage of a tape.
#[derive(Clone, Copy)]
enum Store {
    /// Memory with the items of the batch in order.
    Line(Memory),
    /// A local array: items from before the unit, then those of the unit.
    Local(Array),
    /// A ring in memory: its memory, its start and its length, which is a power of two.
    Ring(Memory, i64, i64),
}

/// A tape within the kernel.
#[derive(Clone, Copy)]
struct KernelTape {
    tape: TapeId,
    store: Store,
    words: Words,
    /// Items in a unit.
    items: i64,
    /// Items before the first one that is written in a unit.
    remaining: i64,
}

/// A point in the batch: the unit, counted from the start of the batch and of the program.
#[derive(Clone, Copy)]
struct BatchPoint {
    unit: Value,
    since: Value,
}

impl KernelTape {
    /// Returns the index of a word, counted from the first item that the unit pops or, if `written`, pushes.
    fn index(&self, k: &Builder, now: BatchPoint, word: Value, written: bool) -> Value {
        let count = i64::from(self.words.count);
        let shift = if written { self.remaining * count } else { 0 };
        let base = |unit: Value| k.add(k.mul(unit, (self.items * count) as i32), word);
        match self.store {
            Store::Line(_) => base(now.unit),
            Store::Local(_) => k.add(word, shift as i32),
            Store::Ring(_, start, length) => {
                let place = k.and(k.add(base(now.since), shift as i32), (length - 1) as i32);
                k.add(place, start as i32)
            }
        }
    }

    fn load(&self, k: &Builder, now: BatchPoint, word: Value) -> Value {
        let index = self.index(k, now, word, false);
        match self.store {
            Store::Line(memory) | Store::Ring(memory, ..) => k.load(memory, index),
            Store::Local(array) => k.element(array, index),
        }
    }

    fn put(&self, k: &Builder, now: BatchPoint, word: Value, value: Value) {
        let index = self.index(k, now, word, true);
        match self.store {
            Store::Line(memory) | Store::Ring(memory, ..) => k.store(memory, index, value),
            Store::Local(array) => k.set_element(array, index, value),
        }
    }
}

/// Storage of a leaf in the thread and in memory.
struct LeafStorage {
    leaf: Leaf,
    kept: StateLeaf,
}

/// Fields that a node writes, with their layouts and storage.
type State = Vec<(usize, Layout, Rc<Vec<Leaf>>)>;

struct IslandEmitter<'e> {
    program: &'e Program,
    graph: &'e Graph,
    island: &'e Island,
    k: &'e Writer,
    tapes: Vec<KernelTape>,
    /// For each node, the fields that it writes.
    state: Vec<State>,
    thread: Value,
    bad: Variable,
}

/// Writes the program of an island.
///
/// Its inputs are the input tapes. Its outputs are the output tapes, the state memory of each type in use,
/// then the flag of failed firings. Its size is the number of units. Its scalar is the number of the first
/// unit.
pub(crate) fn program(program: &Program, graph: &Graph, island: &Island, name: &str) -> Result<Kernels, Reason> {
    let mut draft = Draft::new(name, 1);
    draft.keep_products();
    let number = draft.scalar(Type::I32);
    let block = [island.threads, 1, 1];
    let k = Writer::new(name, block);
    let mut tapes = vec![];
    let line = |argument: Argument, crossing: &BorderTape, remaining: i64| {
        let memory = k.memory(argument, crossing.words.element);
        let store = Store::Line(memory);
        KernelTape { tape: crossing.tape, store, words: crossing.words, items: crossing.items, remaining }
    };
    for crossing in &island.inputs {
        let input = draft.input(Type::of(crossing.words.element));
        tapes.push(line(Argument::Input(input), crossing, 0));
    }
    let output = |ty: Type| Output { ty, count: Count::Constant(0) };
    for crossing in &island.outputs {
        let number = draft.output(output(Type::of(crossing.words.element)));
        tapes.push(line(Argument::Output(number), crossing, 0));
    }
    let mut memories: [Option<Memory>; 3] = [None; 3];
    for (class, words) in island.state_words.iter().enumerate() {
        if *words > 0 {
            let number = draft.output(output(Type::of(CLASSES[class])));
            memories[class] = Some(k.memory(Argument::Output(number), CLASSES[class]));
        }
    }
    let flag = draft.output(output(Type::U32));
    let memory_of = |element: Element| memories[class_of(element)].ok_or("its state has no memory");
    let mut locals: Vec<(Array, InnerTape)> = vec![];
    for inner in &island.inner {
        let BorderTape { tape, words, items } = inner.crossing;
        let store = if inner.local {
            let array = k.array(words.element, ((inner.remaining + items) * i64::from(words.count)).max(1) as u32);
            locals.push((array, *inner));
            Store::Local(array)
        } else {
            Store::Ring(memory_of(words.element)?, inner.stored.start as i64, inner.stored.words as i64)
        };
        tapes.push(KernelTape { tape, store, words, items, remaining: inner.remaining });
    }
    let bad = k.variable_with(k.literal(false));
    let mut loaded: Vec<LeafStorage> = vec![];
    let mut state = vec![vec![]; island.nodes.len()];
    for field in &island.fields {
        let mut store = vec![];
        for kept in &field.leaves {
            let own = element(&kept.ty)?;
            let memory = memory_of(own)?;
            let leaf = if kept.scalar {
                Leaf::Variable(k.variable(own))
            } else if kept.local {
                Leaf::Array(k.array(own, kept.stored.words as u32), own)
            } else {
                Leaf::Memory(memory, kept.stored.start as i32, own)
            };
            loaded.push(LeafStorage { leaf: leaf.clone(), kept: kept.clone() });
            store.push(leaf);
        }
        state[field.node].push((field.field, field.layout.clone(), Rc::new(store)));
    }
    let units = k.assume(k.convert(k.count(Count::size(0), Type::U32), Type::I32), 0, 1 << 30);
    let first = k.scalar(number, Type::I32);
    let thread = k.convert(k.thread(Axis::X), Type::I32);
    let emitter = IslandEmitter { program, graph, island, k: &k, tapes, state, thread, bad };
    for item in &loaded {
        emitter.exchange(item, memory_of(item.kept.stored.element)?, true);
    }
    for (array, inner) in &locals {
        emitter.exchange_tape(*array, inner, &memories, true);
    }
    let mut problem = None;
    let mut start = k.literal(0i32);
    for round in &island.rounds {
        // A round of several units takes as many of them as fit. The next round takes the rest.
        let end = if round.units == 1 { units } else { k.sub(units, k.rem(units, round.units as i32)) };
        k.for_step(start, end, round.units as i32, Unroll::Never, |unit| {
            let now = BatchPoint { unit, since: k.add(first, unit) };
            if let Err(reason) = emitter.round(round, now) {
                problem = Some(reason);
            }
            for (array, inner) in &locals {
                let words = i64::from(inner.crossing.words.count);
                let (kept, by) = ((inner.remaining * words) as i32, (inner.crossing.items * words) as i32);
                k.for_step(0, k.literal(kept), 1, Unroll::Auto, |word| {
                    k.set_element(*array, word, k.element(*array, k.add(word, by)));
                });
            }
        });
        start = end;
    }
    if let Some(reason) = problem {
        return Err(reason);
    }
    for item in &loaded {
        emitter.exchange(item, memory_of(item.kept.stored.element)?, false);
    }
    for (array, inner) in &locals {
        emitter.exchange_tape(*array, inner, &memories, false);
    }
    let flag = k.memory(Argument::Output(flag), Element::U32);
    k.if_then(k.get(bad), || k.store(flag, k.literal(0u32), k.literal(1u32)));
    draft.launch(k, [1u32.into(), 1u32.into(), 1u32.into()], block)?;
    Ok(draft.finish())
}

impl IslandEmitter<'_> {
    /// Copies a leaf of the state between memory and the thread.
    fn exchange(&self, item: &LeafStorage, memory: Memory, inward: bool) {
        let (k, start) = (self.k, item.kept.stored.start as i32);
        let is_bool = matches!(element(&item.kept.ty), Ok(Element::Bool));
        let from_word = |word: Value| if is_bool { k.ne(word, 0) } else { word };
        let to_word = |value: Value| if is_bool { k.convert(value, Type::I32) } else { value };
        match &item.leaf {
            Leaf::Variable(variable) if inward => k.set(*variable, from_word(k.load(memory, k.literal(start)))),
            Leaf::Variable(variable) => k.store(memory, k.literal(start), to_word(k.get(*variable))),
            Leaf::Array(array, _) => k.for_step(0, k.literal(item.kept.stored.words as i32), 1, Unroll::Auto, |index| {
                let at = k.add(index, start);
                match inward {
                    true => k.set_element(*array, index, from_word(k.load(memory, at))),
                    false => k.store(memory, at, to_word(k.element(*array, index))),
                }
            }),
            Leaf::Memory(..) | Leaf::Constants(..) => {}
        }
    }

    /// Copies the items that remain on a tape between memory and the thread.
    fn exchange_tape(&self, array: Array, inner: &InnerTape, memories: &[Option<Memory>; 3], inward: bool) {
        let k = self.k;
        let Some(memory) = memories[class_of(inner.crossing.words.element)] else { return };
        let words = (inner.remaining * i64::from(inner.crossing.words.count)) as i32;
        k.for_step(0, k.literal(words), 1, Unroll::Auto, |index| {
            let at = k.add(index, inner.stored.start as i32);
            match inward {
                true => k.set_element(array, index, k.load(memory, at)),
                false => k.store(memory, at, k.element(array, index)),
            }
        });
    }

    fn round(&self, round: &Round, now: BatchPoint) -> Result<(), Reason> {
        let k = self.k;
        if round.times == 1 {
            return self.steps(round, now, None);
        }
        let mut done = Ok(());
        k.for_step(0, k.literal(round.times as i32), 1, Unroll::Never, |time| done = self.steps(round, now, Some(time)));
        done
    }

    fn steps(&self, round: &Round, now: BatchPoint, time: Option<Value>) -> Result<(), Reason> {
        let k = self.k;
        for step in &round.steps {
            let before = time.map(|time| k.mul(time, self.island.fired_in(round, step.node) as i32));
            let fire = |firing: Value| {
                let firing = before.map_or(firing, |before| k.add(before, firing));
                self.fire(step, firing, now)
            };
            let (first, end) = (step.first as i32, (step.first + step.count) as i32);
            let mut done = Ok(());
            if self.island.threads > 1 {
                let start = k.add(self.thread, first);
                k.for_step(start, k.literal(end), self.island.threads as i32, Unroll::Never, |firing| done = fire(firing));
                k.barrier();
            } else if step.count == 1 {
                done = fire(k.literal(first));
            } else {
                k.for_step(k.literal(first), k.literal(end), 1, Unroll::Auto, |firing| done = fire(firing));
            }
            done?;
        }
        Ok(())
    }

    fn tape(&self, tape: TapeId) -> Result<KernelTape, Reason> {
        self.tapes.iter().find(|held| held.tape == tape).copied().ok_or_else(|| "a tape has no memory".into())
    }

    /// Writes one firing of a node.
    fn fire(&self, step: &Step, firing: Value, now: BatchPoint) -> Result<(), Reason> {
        let k: &Builder = self.k;
        let node = &self.graph.nodes[self.island.nodes[step.node]];
        let flow = node.flow();
        let rate = |rates: &[crate::language::graph::Rate], port: usize| i64::from(rates[port].known().unwrap_or(0));
        let from = |port: usize| -> Result<(KernelTape, Value), Reason> {
            let held = self.tape(node.inputs[port])?;
            let words = rate(&flow.pop, port) * i64::from(held.words.count);
            Ok((held, k.mul(firing, words as i32)))
        };
        let to = |port: usize| -> Result<(KernelTape, Value), Reason> {
            let held = self.tape(node.outputs[port])?;
            let words = rate(&flow.push, port) * i64::from(held.words.count);
            Ok((held, k.mul(firing, words as i32)))
        };
        // Copies items of one tape to another, each from a given word on.
        let copy =
            |(source, first): (KernelTape, Value), skip: i64, (sink, second): (KernelTape, Value), put: i64, items: i64| {
                let count = i64::from(source.words.count);
                k.for_step(0, k.literal((items * count) as i32), 1, Unroll::Auto, |word| {
                    let value = source.load(k, now, k.add(first, k.add(word, (skip * count) as i32)));
                    sink.put(k, now, k.add(second, k.add(word, (put * count) as i32)), value);
                });
            };
        match &node.kind {
            NodeKind::Identity => copy(from(0)?, 0, to(0)?, 0, 1),
            NodeKind::Duplicate => {
                for port in 0..node.outputs.len() {
                    copy(from(0)?, 0, to(port)?, 0, 1);
                }
            }
            NodeKind::Split(weights) => {
                let mut skip = 0;
                for (port, weight) in weights.iter().enumerate() {
                    copy(from(0)?, skip, to(port)?, 0, i64::from(*weight));
                    skip += i64::from(*weight);
                }
            }
            NodeKind::Join(weights) => {
                let mut put = 0;
                for (port, weight) in weights.iter().enumerate() {
                    copy(from(port)?, 0, to(0)?, put, i64::from(*weight));
                    put += i64::from(*weight);
                }
            }
            NodeKind::Filter(_) => {
                let subject = Subject::of(self.program, self.graph, node).ok_or("it is no filter")?;
                let source = if node.inputs.is_empty() { None } else { Some(from(0)?) };
                let sink = if node.outputs.is_empty() { None } else { Some(to(0)?) };
                let reads = |k: &Builder, at: Value| match source {
                    Some((held, first)) => held.load(k, now, k.add(first, at)),
                    None => k.fail("a tape that is not there is read"),
                };
                let writes = |k: &Builder, at: Value, value: Value| {
                    if let Some((held, first)) = sink {
                        held.put(k, now, k.add(first, at), value);
                    }
                };
                let number = k.add(k.mul(now.since, self.island.firings[step.node] as i32), firing);
                let number = k.add(number, self.island.first[step.node] as i32);
                let state = &self.state[step.node];
                let site =
                    KernelSite { b: k, reads: &reads, writes: &writes, firing: number, bad: self.bad, state, cooperation: None };
                fire(subject, &site)?;
            }
            NodeKind::FileReader(..) | NodeKind::FileWriter(..) => return Err("it reads or writes a file".into()),
        }
        Ok(())
    }
}
