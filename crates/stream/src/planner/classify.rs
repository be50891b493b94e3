//! Classification: which nodes of a graph run on a device, and why the others stay on the host.

use crate::language::core::{Binary, Expr, ExprKind, Place, Root, Stmt, StmtKind, Type};
use crate::language::core::{Facts, Filter, Program, Value, facts, identify};
use crate::language::graph::{Graph, Instance, NodeId, NodeKind};
use crate::planner::recurrence::{Recurrence, recognise};
use crate::planner::translate::{FilterCode, Induction, Reason, Subject, Words, check_in_order, translate};
use broadloom_skeleton::cost::dataflow;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A filter whose firings depend only on the items they pop.
    Stateless,
    /// A stateless filter that peeks beyond the items it pops.
    Peeking,
    /// A filter whose only state is a counter of its firings.
    Counting,
    /// A node without an input.
    Source,
    /// A filter whose firings pass state from one to the next.
    Stateful,
    /// A filter that takes items and gives none.
    Sink,
    /// A filter that prints.
    Printing,
    /// A reader or writer of a file.
    File,
    /// A filter that sends or receives messages.
    Messages,
    /// A filter that draws random numbers.
    Random,
    /// A node of a feedbackloop.
    Feedback,
    /// A filter whose rates are not known before it fires.
    Dynamic,
    /// A splitter, joiner or identity: it only computes indices.
    Wire,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Stateless => "stateless",
            Class::Peeking => "peeking",
            Class::Counting => "counting",
            Class::Source => "source",
            Class::Stateful => "stateful",
            Class::Sink => "sink",
            Class::Printing => "prints",
            Class::File => "file",
            Class::Messages => "messages",
            Class::Random => "random",
            Class::Feedback => "feedback",
            Class::Dynamic => "dynamic rates",
            Class::Wire => "wire",
        })
    }
}

/// The placement of a node.
#[derive(Clone, Debug)]
pub enum Placement {
    /// A kernel with the translated code of the filter.
    Kernel(Arc<FilterCode>),
    /// A splitter, joiner or identity between nodes on the device.
    Wire,
    /// A node of an island: its firings run one after the other in one kernel.
    Sequential,
    /// A stateful filter whose firings are combined by a scan.
    Scan(Arc<Recurrence>),
    /// Stays on the host and runs on the evaluator, with the reason.
    Host(Reason),
}

/// The class and the placement of a node.
#[derive(Clone, Debug)]
pub struct ClassifiedNode {
    /// What the node does.
    pub class: Class,
    /// Where the node runs: on the host or on the device.
    pub placement: Placement,
    /// True if a later node converts floats to integers or compares them. The code of this node then adds
    /// floats in the written order.
    pub exact: bool,
    /// True if a later node prints. Products are then rounded before they are added, and convolutions are not
    /// transformed, because a sum close to 0 would show the difference.
    pub printed: bool,
}

impl ClassifiedNode {
    fn new(class: Class, placement: Placement) -> ClassifiedNode {
        ClassifiedNode { class, placement, exact: false, printed: false }
    }
}

/// Returns a flag for each node: true if the node belongs to a feedbackloop.
pub(crate) fn feedback_members(graph: &Graph) -> Vec<bool> {
    let mut members = vec![false; graph.nodes.len()];
    for tape in graph.tapes.values().filter(|tape| tape.is_back_edge) {
        // Nodes on a path from the target of the back edge to its source.
        let ahead = graph.reach(tape.to.0, true);
        let behind = graph.reach(tape.from.0, false);
        members.iter_mut().zip(ahead.iter().zip(&behind)).for_each(|(member, (a, b))| *member |= *a && *b);
    }
    members
}

/// Classifies all nodes of a graph.
pub fn classify(program: &Program, graph: &Graph) -> Vec<ClassifiedNode> {
    let loops = feedback_members(graph);
    let mut known = TranslationCache::default();
    let mut found: Vec<ClassifiedNode> = vec![];
    for (id, node) in graph.nodes.iter() {
        let host = |class: Class, reason: &'static str| ClassifiedNode::new(class, Placement::Host(reason.into()));
        let carries =
            |tapes: &[crate::language::graph::TapeId]| tapes.iter().all(|tape| Words::of(&graph.tapes[*tape].layout).is_some());
        found.push(match &node.kind {
            NodeKind::Identity | NodeKind::Duplicate | NodeKind::Split(_) | NodeKind::Join(_) if loops[id.index()] => {
                if carries(&node.inputs) && carries(&node.outputs) {
                    ClassifiedNode::new(Class::Feedback, Placement::Sequential)
                } else {
                    host(Class::Feedback, "its tapes carry items that kernels do not have")
                }
            }
            NodeKind::FileReader(..) => host(Class::File, "it reads a file"),
            NodeKind::FileWriter(..) => host(Class::File, "it writes a file"),
            NodeKind::Identity | NodeKind::Duplicate | NodeKind::Split(_) | NodeKind::Join(_) => {
                if !carries(&node.inputs) || !carries(&node.outputs) {
                    host(Class::Wire, "its tapes carry items that kernels do not have")
                } else {
                    ClassifiedNode::new(Class::Wire, Placement::Wire)
                }
            }
            NodeKind::Filter(_) => filter(program, graph, id, loops[id.index()], &mut known),
        });
    }
    mark_exact(program, graph, &mut found);
    let prints: Vec<NodeId> = graph.nodes.keys().filter(|node| found[node.index()].class == Class::Printing).collect();
    mark(graph, prints, &mut found, |node| &mut node.printed);
    found
}

/// Sets a flag on the given nodes and on all nodes before them.
fn mark(graph: &Graph, some: Vec<NodeId>, classified: &mut [ClassifiedNode], flag: impl Fn(&mut ClassifiedNode) -> &mut bool) {
    let mut waiting = some;
    while let Some(node) = waiting.pop() {
        for tape in &graph.nodes[node].inputs {
            let from = graph.tapes[*tape].from.0;
            if !std::mem::replace(flag(&mut classified[from.index()]), true) {
                waiting.push(from);
            }
        }
    }
}

/// Marks the nodes before filters that convert floats to integers or compare them.
fn mark_exact(program: &Program, graph: &Graph, classified: &mut [ClassifiedNode]) {
    let mut known: FxHashMap<crate::language::core::StreamId, bool> = FxHashMap::default();
    let mut decides = |node: NodeId| {
        let filter = graph.nodes[node].filter(program);
        let mut known = |stream, filter| *known.entry(stream).or_insert_with(|| facts(program, filter).decides);
        filter.is_some_and(|(filter, instance)| known(instance.stream, filter))
    };
    let deciding = graph.nodes.keys().filter(|node| decides(*node)).collect();
    mark(graph, deciding, classified, |node| &mut node.exact);
}

/// A cache of translated filters. Equal instances share their code.
#[derive(Default)]
struct TranslationCache {
    codes: FxHashMap<Key, Result<Arc<FilterCode>, Reason>>,
    recurrences: FxHashMap<Key, Option<Arc<Recurrence>>>,
    ordered: FxHashMap<Key, Result<(), Reason>>,
    numbers: ValueNumbers,
}

/// The inputs that determine the code of an instance.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    stream: usize,
    params: usize,
    fields: usize,
}

/// Returns the number of scalars of a value. All elements of an array are assumed to have the same count.
fn scalars(value: &Value) -> usize {
    match value {
        Value::Array(parts) => parts.first().map_or(0, scalars).saturating_mul(parts.len()),
        Value::Struct(parts) => parts.iter().map(scalars).sum(),
        _ => 1,
    }
}

/// A table that gives values a number. Values that are bitwise equal get the same number.
#[derive(Default)]
struct ValueNumbers {
    /// Numbers by address, because equal instances share their values.
    shared: FxHashMap<usize, usize>,
    values: FxHashMap<Vec<u32>, usize>,
}

impl ValueNumbers {
    fn number(&mut self, values: &Arc<[Value]>) -> usize {
        if values.is_empty() {
            return usize::MAX;
        }
        // Long arrays are compared by address only. Comparing all elements takes longer than a second
        // translation.
        let all = &mut self.values;
        *self.shared.entry(values.as_ptr() as usize).or_insert_with(|| {
            let mut words = vec![values.len() as u32];
            match values.iter().map(scalars).sum::<usize>() {
                0..dataflow::COMPARED_SCALARS => values.iter().for_each(|value| identify(value, &mut words)),
                _ => words.extend([u32::MAX, all.len() as u32]),
            }
            let next = all.len();
            *all.entry(words).or_insert(next)
        })
    }
}

/// Returns whether the firings of a filter can run one after the other in a kernel.
pub(crate) fn runs_in_order(program: &Program, graph: &Graph, id: NodeId) -> bool {
    Subject::of(program, graph, &graph.nodes[id]).is_some_and(|subject| check_in_order(&subject).is_ok())
}

fn filter(program: &Program, graph: &Graph, id: NodeId, in_loop: bool, known: &mut TranslationCache) -> ClassifiedNode {
    let node = &graph.nodes[id];
    let Some(subject) = Subject::of(program, graph, node) else {
        return ClassifiedNode::new(Class::Stateful, Placement::Host("it is no filter".into()));
    };
    let Subject { filter, instance, .. } = subject;
    let effects = facts(program, filter);
    let receives = graph.portals.iter().any(|receivers| receivers.contains(&id));
    let (mut inductions, mut others) = inductions(program, filter, instance, &effects);
    let peeks_ahead = instance.work.peek != instance.work.pop;
    let is_quiet = !effects.prints && !effects.sends && !receives && !effects.random && node.is_static();
    let key = Key {
        stream: instance.stream.index(),
        params: known.numbers.number(&instance.params),
        fields: known.numbers.number(&instance.fields),
    };
    let recurrence = if others && is_quiet && !in_loop {
        known.recurrences.entry(key.clone()).or_insert_with(|| recognise(&subject).map(Arc::new)).clone()
    } else {
        None
    };
    // Counters that change inside expressions or loops.
    if let Some(found) = counters(recurrence.as_deref(), instance, &effects) {
        (inductions, others) = (found, false);
    }
    let (class, reason) = match () {
        () if effects.prints => (Class::Printing, Some("it prints")),
        () if effects.sends => (Class::Messages, Some("it sends messages")),
        () if receives => (Class::Messages, Some("it receives messages")),
        () if !node.is_static() => (Class::Dynamic, Some("its rates are dynamic")),
        () if effects.random => (Class::Random, Some("it draws random numbers, in the order of all firings")),
        () if node.outputs.is_empty() && node.inputs.is_empty() => (Class::Sink, Some("it has no tapes")),
        () if in_loop => (Class::Feedback, None),
        () if node.outputs.is_empty() => (Class::Sink, None),
        () if others => (Class::Stateful, None),
        () if node.inputs.is_empty() => (Class::Source, None),
        () if !effects.written.is_empty() => (Class::Counting, None),
        () if peeks_ahead => (Class::Peeking, None),
        () => (Class::Stateless, None),
    };
    if let Some(reason) = reason {
        return ClassifiedNode::new(class, Placement::Host(reason.into()));
    }
    if matches!(class, Class::Feedback | Class::Sink | Class::Stateful) {
        let accepted = known.ordered.entry(key).or_insert_with(|| check_in_order(&subject));
        let placement = match accepted.clone() {
            Ok(()) => match recurrence.filter(|_| class == Class::Stateful) {
                Some(recurrence) => Placement::Scan(recurrence),
                None => Placement::Sequential,
            },
            Err(reason) => Placement::Host(reason),
        };
        return ClassifiedNode::new(class, placement);
    }
    let code = known.codes.entry(key).or_insert_with(|| translate(Subject { inductions: &inductions, ..subject }).map(Arc::new));
    let placement = match code {
        Ok(code) => Placement::Kernel(code.clone()),
        Err(reason) => Placement::Host(reason.clone()),
    };
    ClassifiedNode::new(class, placement)
}

/// Returns the induction counters that make up a recurrence.
fn counters(recurrence: Option<&Recurrence>, instance: &Instance, effects: &Facts) -> Option<Vec<Induction>> {
    let steps = recurrence.filter(|_| instance.prework.is_none())?.steps()?;
    let each = effects.written.iter().zip(steps);
    each.map(|(field, step)| match instance.fields.get(*field) {
        Some(Value::Int(start)) => Some(Induction { field: *field, start: *start, step }),
        _ => None,
    })
    .collect()
}

/// Finds the integer fields that every firing changes by the same amount. Returns whether other fields are
/// written.
fn inductions(program: &Program, filter: &Filter, instance: &Instance, effects: &Facts) -> (Vec<Induction>, bool) {
    let mut found = vec![];
    let Some(body) = &program.functions[filter.work.function].body else { return (found, !effects.written.is_empty()) };
    for field in &effects.written {
        // One statement at the top level of `work` changes the field, and nothing else writes it.
        let mut steps = body.iter().filter_map(|stmt| step_of(stmt, *field));
        let (Some(step), None, Some(Value::Int(start))) = (steps.next(), steps.next(), instance.fields.get(*field)) else {
            return (found, true);
        };
        let mut writes = 0;
        count_writes(program, filter, *field, &mut writes);
        if writes != 1 || instance.prework.is_some() {
            return (found, true);
        }
        found.push(Induction { field: *field, start: *start, step });
    }
    (found, false)
}

fn count_writes(program: &Program, filter: &Filter, field: usize, writes: &mut u32) {
    let body = program.functions[filter.work.function].body.iter().flatten();
    body.for_each(|stmt| writes_in(stmt, field, program, writes));
    // Functions that `work` calls see the same fields.
    let mut called = vec![];
    let body = program.functions[filter.work.function].body.iter().flatten();
    body.for_each(|stmt| calls_in(stmt, &mut called));
    let mut seen = vec![filter.work.function];
    while let Some(id) = called.pop() {
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        if let Some(body) = &program.functions[id].body {
            body.iter().for_each(|stmt| writes_in(stmt, field, program, writes));
            body.iter().for_each(|stmt| calls_in(stmt, &mut called));
        }
    }
}

fn writes_in(stmt: &Stmt, field: usize, program: &Program, count: &mut u32) {
    crate::language::core::each_write(stmt, &program.functions, &mut |place: &Place| {
        if place.root == Root::Field(field) {
            *count += 1;
        }
    });
}

fn calls_in(stmt: &Stmt, called: &mut Vec<crate::language::core::FunctionId>) {
    crate::language::core::each_call(stmt, &mut |id| called.push(id));
}

/// Returns the amount by which a statement changes a field, if it does nothing else to the field.
fn step_of(stmt: &Stmt, field: usize) -> Option<i32> {
    let plain = |place: &Place| place.root == Root::Field(field) && place.path.is_empty() && place.ty == Type::Int;
    match &stmt.kind {
        StmtKind::Expr(Expr { kind: ExprKind::Step(place, by, _), .. }) if plain(place) => Some(*by),
        StmtKind::Push(Expr { kind: ExprKind::Step(place, by, _), .. }) if plain(place) => Some(*by),
        StmtKind::Push(Expr { kind: ExprKind::Convert(inner), .. }) => match &inner.kind {
            ExprKind::Step(place, by, _) if plain(place) => Some(*by),
            _ => None,
        },
        StmtKind::Assign(place, Some(operator), Expr { kind: ExprKind::Const(Value::Int(by)), .. }) if plain(place) => {
            match operator {
                Binary::Add => Some(*by),
                Binary::Subtract => by.checked_neg(),
                _ => None,
            }
        }
        StmtKind::Assign(place, None, Expr { kind: ExprKind::Binary(operator, _, left, right), .. }) if plain(place) => {
            let (ExprKind::Read(read), ExprKind::Const(Value::Int(by))) = (&left.kind, &right.kind) else { return None };
            if !plain(read) {
                return None;
            }
            match operator {
                Binary::Add => Some(*by),
                Binary::Subtract => by.checked_neg(),
                _ => None,
            }
        }
        _ => None,
    }
}
