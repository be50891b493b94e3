//! The search for components of the actors of a kernel.

use super::components::{Class, Components, Operation, Word, code};
use super::cut::{BufferPlace, Cut};
use super::digits::Digits;
use super::section::{Actor, Port, Role, Section};
use super::wiring::{Range, preimage, target};
use crate::planner::disjoint_sets::DisjointSets;
use broadloom_scalar::{Binding, Builder, Function, Id, Literal, Op, Type, Value, reading, writing};
use broadloom_skeleton::cost::dataflow;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// Words that an operation reads and writes.
#[derive(Clone, Debug)]
struct Accesses {
    round: i64,
    reads: Vec<i64>,
    writes: Vec<i64>,
}

/// Finds components of the actors of a kernel by block. It groups as many filters as possible with at most
/// `words` live words in registers.
///
/// Components are numbered in the order of their first operations. With `by_place`, they are numbered in the
/// order of the words they load, so that neighbouring lanes of vectors load neighbouring words.
pub(super) fn components(section: &Section, cut: &Cut, words: usize, by_place: bool) -> Vec<Components> {
    if cut.actors.len() > dataflow::SEARCHED_ACTORS {
        return vec![];
    }
    let known: FxHashMap<usize, Vec<Accesses>> =
        cut.actors.iter().filter_map(|index| Some((*index, accesses(section, cut, *index)?))).collect();
    let all = users(section, section.actors.iter());
    let (mut found, mut at) = (vec![], 0);
    while at < cut.actors.len() {
        let most = (cut.actors.len() - at).min(dataflow::COMPONENT_ACTORS);
        let mut best = None;
        let first = if is_wired(section, cut, cut.actors[at]) { 1 } else { 2 };
        for length in first..=most {
            let group = &cut.actors[at..at + length];
            if group.iter().any(|index| !known.contains_key(index)) {
                break;
            }
            best = find(section, cut, group, &known, &all, words, by_place).or(best);
        }
        at += best.as_ref().map_or(1, |best: &Components| best.actors.len());
        found.extend(best);
    }
    found
}

/// Returns whether an actor by itself forms components. Its operations are shared in any case, but its words
/// are accessed through splitters or joiners.
fn is_wired(section: &Section, cut: &Cut, index: usize) -> bool {
    let actor = &section.actors[index];
    let wired = [&actor.input, &actor.output].into_iter().flatten().any(|port| !port.steps.is_empty());
    wired && (actor.code.rounds.is_none() || cut.rounds(section, index).is_some())
}

/// Returns the accesses of an actor's operations in a unit, if they can belong to components.
fn accesses(section: &Section, cut: &Cut, index: usize) -> Option<Vec<Accesses>> {
    let actor = &section.actors[index];
    let (input, output) = (actor.input.as_ref()?, actor.output.as_ref()?);
    let (_, rounds) = code(actor);
    let own = Range::new(0, actor.firings);
    let exact = !actor.code.fails && !actor.code.numbered && cut.unit.firings[index] == Some(own) && cut.extra == 0;
    // Stores to global memory must be those of the unit.
    let whole = match (cut.places[output.buffer], cut.unit.items[output.buffer]) {
        (BufferPlace::Written, Some(wanted)) => output.items(own) == preimage(&output.steps, wanted),
        (BufferPlace::Shared(_), _) => true,
        _ => false,
    };
    let from = matches!(cut.places[input.buffer], BufferPlace::Read | BufferPlace::Shared(_) | BufferPlace::Staged(_));
    if !exact || !whole || !from || input.absolute || output.absolute || actor.firings * rounds > dataflow::COMPONENT_ROUNDS {
        return None;
    }
    let traced = trace(actor)?;
    let moved = |port: &Port, firing: i64, words: &[i64]| -> Vec<i64> {
        let count = i64::from(section.buffers[port.buffer].words.count);
        let item = |word: &i64| target(&port.steps, port.start + firing * port.rate + word / count) * count + word % count;
        words.iter().map(item).collect()
    };
    let mut found = vec![];
    for firing in 0..actor.firings {
        found.extend(traced.iter().map(|own| Accesses {
            round: own.round,
            reads: moved(input, firing, &own.reads),
            writes: moved(output, firing, &own.writes),
        }));
    }
    Some(found)
}

/// Returns the accesses of an actor's rounds, with words counted from the start of a firing.
fn trace(actor: &Actor) -> Option<Vec<Accesses>> {
    let (function, rounds) = code(actor);
    if function.body().blocks().count() != 1 {
        return None;
    }
    let b = Builder::function("trace");
    let round = b.parameter("round", Type::I32);
    let firing = b.parameter("firing", Type::I32);
    let item = b.parameter("item", Type::of(actor.code.input?.element));
    let (reads, writes) = (RefCell::new(vec![]), RefCell::new(vec![]));
    let mut read = reading(|_: &Builder, position: &[Value]| {
        reads.borrow_mut().push(position[0]);
        item
    });
    let mut write = writing(|_: &Builder, position: &[Value], _: Value| writes.borrow_mut().push(position[0]));
    let arguments: Vec<Value> = [firing].into_iter().chain((rounds > 1).then_some(round)).collect();
    let mut bindings: Vec<&mut dyn Binding> = vec![&mut read, &mut write];
    b.inline(function, &arguments, &mut bindings);
    let count = reads.borrow().len();
    let places: Vec<Value> = reads.borrow().iter().chain(writes.borrow().iter()).copied().collect();
    let places = b.finish_function(&places).ok()?.simplify().ok()?;
    if depends_on_items(&places) || rounds * places.results().len() as i64 > dataflow::COMPONENT_INDICES {
        return None;
    }
    let zero = Literal::from_bits(actor.code.input?.element, 0);
    let of_round = |round: i64| {
        let found = places.evaluate(&[Literal::from(round as i32), Literal::from(0i32), zero]).ok()?;
        let place = |word: &Literal| word.as_i128().and_then(|word| i64::try_from(word).ok()).filter(|word| *word >= 0);
        let words = found.iter().map(place).collect::<Option<Vec<i64>>>()?;
        Some(Accesses { round, reads: words[..count].to_vec(), writes: words[count..].to_vec() })
    };
    (0..rounds).map(of_round).collect()
}

/// Returns whether the results of a function depend on more than its first parameter.
fn depends_on_items(function: &Function) -> bool {
    let body = function.body();
    let mut work: Vec<Id> = function.results().to_vec();
    let mut seen: FxHashSet<Id> = work.iter().copied().collect();
    while let Some(id) = work.pop() {
        let op = &body.node(id).op;
        if matches!(op, Op::Parameter(1..)) || !op.is_pure() {
            return true;
        }
        op.each_operand(|operand| {
            if seen.insert(operand) {
                work.push(operand);
            }
        });
    }
    false
}

/// The use of a buffer by a group of actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferUse {
    Input,
    Output,
    Inner,
}

/// Counts the readers and writers among some actors for each buffer.
fn users<'s>(section: &Section, actors: impl Iterator<Item = &'s Actor>) -> Vec<(usize, usize)> {
    let mut found = vec![(0, 0); section.buffers.len()];
    for actor in actors {
        actor.input.iter().for_each(|port| found[port.buffer].0 += 1);
        actor.output.iter().for_each(|port| found[port.buffer].1 += 1);
    }
    found
}

/// Returns how a group uses its buffers. Returns `None` if a buffer between its actors is also used by
/// others.
fn uses(section: &Section, actors: &[usize], all: &[(usize, usize)]) -> Option<FxHashMap<usize, BufferUse>> {
    let own = users(section, actors.iter().map(|index| &section.actors[*index]));
    let mut found = FxHashMap::default();
    for (buffer, own) in own.into_iter().enumerate() {
        let others = section.buffers[buffer].role != Role::Inner || own != all[buffer];
        match own {
            (0, 0) => continue,
            (_, 0) => found.insert(buffer, BufferUse::Input),
            (0, _) => found.insert(buffer, BufferUse::Output),
            _ if others => return None,
            _ => found.insert(buffer, BufferUse::Inner),
        };
    }
    Some(found)
}

/// The operations of a component and its registers, without the numbers that differ between the components of
/// a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ComponentForm {
    /// Actor, registers read, registers written.
    operations: Vec<(usize, Vec<usize>, Vec<usize>)>,
    /// Buffers of the loaded words, and the registers that receive them.
    loads: Vec<(usize, usize)>,
    stores: Vec<(usize, usize)>,
    registers: usize,
}

#[derive(Clone, Debug, Default)]
struct ComponentNumbers {
    rounds: Vec<i64>,
    loads: Vec<i64>,
    stores: Vec<i64>,
}

/// Returns the components of a group of actors with at most `most` live words: `known` has the accesses of
/// each actor, `users` the numbers of actors that read and write each buffer.
fn find(
    section: &Section,
    cut: &Cut,
    actors: &[usize],
    known: &FxHashMap<usize, Vec<Accesses>>,
    users: &[(usize, usize)],
    most: usize,
    by_place: bool,
) -> Option<Components> {
    let uses = uses(section, actors, users)?;
    let buffer = |port: &Option<Port>| port.as_ref().map(|port| port.buffer);
    let ends = |index: usize| Some((buffer(&section.actors[index].input)?, buffer(&section.actors[index].output)?));
    let all: Vec<(usize, &Accesses)> = actors.iter().flat_map(|index| known[index].iter().map(|own| (*index, own))).collect();
    let mut sets = DisjointSets::new(all.len());
    let mut writers: FxHashMap<(usize, i64), usize> = FxHashMap::default();
    for (operation, (index, own)) in all.iter().enumerate() {
        let (from, to) = ends(*index)?;
        if uses[&from] == BufferUse::Inner {
            for word in &own.reads {
                let writer = *writers.get(&(from, *word))?;
                sets.unite(writer, operation);
            }
        }
        if uses[&to] == BufferUse::Inner && !own.writes.iter().all(|word| writers.insert((to, *word), operation).is_none()) {
            return None;
        }
    }
    // Components are in the order of their first operations.
    let mut number: FxHashMap<usize, usize> = FxHashMap::default();
    let mut members: Vec<Vec<usize>> = vec![];
    for operation in 0..all.len() {
        let next = members.len();
        let own = *number.entry(sets.first(operation)).or_insert(next);
        if own == next {
            members.push(vec![]);
        }
        members[own].push(operation);
        if members[own].len() > dataflow::COMPONENT_OPERATIONS {
            return None;
        }
    }
    if members.len() < 2 {
        return None;
    }
    let mut classes: Vec<(ComponentForm, Vec<ComponentNumbers>)> = vec![];
    let mut in_place = true;
    for own in &members {
        let operations: Vec<(usize, &Accesses)> = own.iter().map(|operation| all[*operation]).collect();
        let (form, numbers) = form(&operations, &ends, &uses)?;
        let sorted = |list: &[i64]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        in_place &= sorted(&numbers.loads) == sorted(&numbers.stores);
        match classes.iter().position(|class| class.0 == form) {
            Some(class) => classes[class].1.push(numbers),
            None if classes.len() < dataflow::COMPONENT_CLASSES => classes.push((form, vec![numbers])),
            None => return None,
        }
    }
    // Words of a single operation are loaded at their first read.
    let most = if actors.len() == 1 { dataflow::SINGLE_OPERATION_WORDS } else { most };
    let none_inside = !uses.values().any(|own| *own == BufferUse::Inner);
    if classes.iter().any(|(form, _)| live(form) > most) || (none_inside && actors.len() > 1) {
        return None;
    }
    let of_kind = |kind: BufferUse| {
        let mut list: Vec<usize> = uses.iter().filter(|(_, own)| **own == kind).map(|(buffer, _)| *buffer).collect();
        list.sort_unstable();
        list
    };
    let (inputs, outputs) = (of_kind(BufferUse::Input), of_kind(BufferUse::Output));
    let alike = |a: usize, b: usize| {
        let (one, other) = (&section.buffers[a], &section.buffers[b]);
        one.words == other.words && one.items == other.items && cut.extents[a] == cut.extents[b]
    };
    in_place &= matches!((&inputs[..], &outputs[..]), ([from], [to]) if alike(*from, *to));
    let made = |(form, numbers): (ComponentForm, Vec<ComponentNumbers>)| {
        let mut sorted = numbers.clone();
        sorted.sort_by_key(|own| own.loads.first().copied());
        let placed = if by_place { class(&form, &sorted) } else { None };
        placed.or_else(|| class(&form, &numbers))
    };
    let classes = classes.into_iter().map(made).collect::<Option<Vec<Class>>>()?;
    Some(Components { actors: actors.to_vec(), inner: of_kind(BufferUse::Inner), inputs, outputs, in_place, classes })
}

/// Returns the form of a component and its numbers.
fn form(
    operations: &[(usize, &Accesses)],
    ends: &dyn Fn(usize) -> Option<(usize, usize)>,
    uses: &FxHashMap<usize, BufferUse>,
) -> Option<(ComponentForm, ComponentNumbers)> {
    let (mut form, mut numbers) = (ComponentForm::default(), ComponentNumbers::default());
    let mut registers: FxHashMap<(usize, i64), usize> = FxHashMap::default();
    for (index, own) in operations {
        let (from, to) = ends(*index)?;
        let mut reads = vec![];
        for word in &own.reads {
            reads.push(match registers.get(&(from, *word)) {
                Some(register) => *register,
                None if uses[&from] == BufferUse::Inner => return None,
                None => {
                    registers.insert((from, *word), form.registers);
                    form.loads.push((from, form.registers));
                    numbers.loads.push(*word);
                    form.registers += 1;
                    form.registers - 1
                }
            });
        }
        let mut writes = vec![];
        for word in &own.writes {
            registers.insert((to, *word), form.registers);
            if uses[&to] == BufferUse::Output {
                form.stores.push((to, form.registers));
                numbers.stores.push(*word);
            }
            writes.push(form.registers);
            form.registers += 1;
        }
        form.operations.push((*index, reads, writes));
        numbers.rounds.push(own.round);
    }
    Some((form, numbers))
}

/// Returns the maximum number of live registers.
fn live(form: &ComponentForm) -> usize {
    let mut last = vec![0; form.registers];
    for (at, (_, reads, _)) in form.operations.iter().enumerate() {
        reads.iter().for_each(|register| last[*register] = at);
    }
    form.stores.iter().for_each(|(_, register)| last[*register] = form.operations.len());
    let mut held = form.loads.len();
    let mut most = held;
    for (at, (_, reads, writes)) in form.operations.iter().enumerate() {
        let mut done = reads.clone();
        done.sort_unstable();
        done.dedup();
        held -= done.iter().filter(|register| last[**register] == at).count();
        held += writes.iter().filter(|register| last[**register] > at).count();
        most = most.max(held);
    }
    most
}

/// Makes a class of components. Returns `None` if its numbers are not functions of digits.
fn class(form: &ComponentForm, numbers: &[ComponentNumbers]) -> Option<Class> {
    let count = numbers.len() as i64;
    let digits = |of: &dyn Fn(&ComponentNumbers) -> i64| Digits::of(count, &|component| of(&numbers[component as usize]));
    let mut operations = vec![];
    for (at, (actor, reads, writes)) in form.operations.iter().enumerate() {
        let round = digits(&|own| own.rounds[at])?;
        operations.push(Operation { actor: *actor, round, reads: reads.clone(), writes: writes.clone() });
    }
    let words = |list: &[(usize, usize)], of: &dyn Fn(&ComponentNumbers, usize) -> i64| -> Option<Vec<Word>> {
        let one = |(at, (buffer, register)): (usize, &(usize, usize))| {
            Some(Word { buffer: *buffer, place: digits(&|own| of(own, at))?, register: *register })
        };
        list.iter().enumerate().map(one).collect()
    };
    let loads = words(&form.loads, &|own, at| own.loads[at])?;
    let stores = words(&form.stores, &|own, at| own.stores[at])?;
    Some(Class { count, operations, loads, stores, registers: form.registers })
}
