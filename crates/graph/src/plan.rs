//! Plans: what is launched for a tape, in which order, with which memory.
//!
//! A plan is data. It can be printed ([`Plan::explain`]) and asserted in tests: how many kernels, how many bytes, why each cut. It holds
//! nothing of a single run, so one plan serves all expressions with the same [tape](crate::tape), whatever their sizes and scalars.

use crate::cut::{Group, GroupKind, Reason, cut};
use crate::emit::{Code, Given};
use crate::error::{Error, Result};
use crate::op::{Combine, Extreme};
use crate::shape::Shape;
use crate::tape::{Bindings, Id, Kind, Tape};
use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::{Builder, Element, Literal, Type, Value};
use broadloom_skeleton::{Domain, Library, Loaded, Map, Operator, Pattern, Reduce, Scan, ScanSpread, Sink, Source, Spread};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

/// A kernel of a plan.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) group: Group,
    pub(crate) code: Code,
    pub(crate) ready: Ready,
    /// Nodes whose memory is free after it.
    pub(crate) dead: Vec<Id>,
    /// For each result, an input whose memory it takes over.
    pub(crate) reused: Vec<Option<Id>>,
}

/// The program of a kernel.
#[derive(Debug)]
pub(crate) enum Ready {
    /// One for all sizes.
    One(Loaded),
    /// How threads are best spread depends on sizes: there are a few ways, each made when it is first wanted.
    Spread { library: Library, pattern: Box<Spreading>, known: Mutex<Vec<(Way, Loaded)>> },
}

/// A pattern whose threads can be spread in several ways.
#[derive(Debug)]
pub(crate) enum Spreading {
    Reduce(Reduce),
    Scan(Scan),
}

/// One of the ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Reduce(Spread),
    Scan(ScanSpread),
}

impl Spreading {
    /// The best way for these sizes.
    fn way(&self, machine: &Machine, sizes: &[u64]) -> Way {
        match self {
            Spreading::Reduce(reduce) => Way::Reduce(Spread::of(machine, sizes, &reduce.reduced)),
            Spreading::Scan(scan) => Way::Scan(ScanSpread::of(machine, sizes, scan.axis)),
        }
    }

    fn pattern(&self, way: Way) -> Pattern {
        match (self, way) {
            (Spreading::Reduce(reduce), Way::Reduce(spread)) => Reduce { spread, ..reduce.clone() }.into(),
            (Spreading::Scan(scan), Way::Scan(spread)) => Scan { spread, ..scan.clone() }.into(),
            (Spreading::Reduce(reduce), Way::Scan(_)) => reduce.clone().into(),
            (Spreading::Scan(scan), Way::Reduce(_)) => scan.clone().into(),
        }
    }
}

impl Ready {
    /// The program for these sizes.
    pub(crate) fn loaded(&self, sizes: &[u64]) -> Result<Loaded> {
        match self {
            Ready::One(loaded) => Ok(loaded.clone()),
            Ready::Spread { library, pattern, known } => {
                let way = pattern.way(library.device().machine(), sizes);
                let find = |known: &[(Way, Loaded)]| known.iter().find(|(own, _)| *own == way).map(|(_, loaded)| loaded.clone());
                if let Some(loaded) = find(&known.lock().unwrap_or_else(PoisonError::into_inner)) {
                    return Ok(loaded);
                }
                let loaded = library.get(&pattern.pattern(way))?;
                known.lock().unwrap_or_else(PoisonError::into_inner).push((way, loaded.clone()));
                Ok(loaded)
            }
        }
    }
}

/// How the roots of a reduction are combined, and what is stored of it.
fn combination(tape: &Tape, group: &Group, reduced: &[bool]) -> Result<(Operator, Sink)> {
    let mut operators = vec![];
    // Which of the combined values is the result of each root.
    let (mut values, mut stored) = (vec![], vec![]);
    for root in &group.roots {
        let entry = tape.entry(*root);
        let types: Vec<Type> = entry.inputs.iter().map(|input| tape.entry(*input).ty).collect();
        operators.push(match &entry.kind {
            Kind::Reduce(combine, _) | Kind::Scan(combine, ..) => match combine {
                Combine::Sum => Operator::sum(types[0])?,
                Combine::Product | Combine::All => Operator::product(types[0])?,
                Combine::Min => Operator::min(types[0])?,
                Combine::Max | Combine::Any => Operator::max(types[0])?,
            },
            Kind::Extreme(Extreme::Least, _) => Operator::arg_min(types[0], types[1].element())?,
            Kind::Extreme(Extreme::Greatest, _) => Operator::arg_max(types[0], types[1].element())?,
            other => {
                return Err(Error::Plan { what: "a reduction".into(), reason: format!("`{}` combines nothing", other.name()) });
            }
        });
        values.extend(types);
        stored.push(values.len() - 1);
    }
    let operator = if operators.len() == 1 { operators.remove(0) } else { Operator::all(&operators)? };
    if values.len() == stored.len() {
        return Ok((operator, Sink::STORE));
    }
    let f = Builder::function("labels");
    let index = if tape.wide { Type::I64 } else { Type::I32 };
    let axes = reduced.iter().filter(|reduced| !**reduced).count();
    (0..axes).for_each(|_| {
        f.parameter("i", index);
    });
    let given: Vec<Value> = values.iter().map(|ty| f.parameter("x", *ty)).collect();
    let results: Vec<Value> = stored.iter().map(|value| given[*value]).collect();
    Ok((operator, Sink::new(f.finish_function(&results)?, axes, values.len())?))
}

/// What is launched.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tape: Tape,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) reasons: HashMap<Id, Reason>,
}

/// Simple operations in the time of a byte: what a GPU's and a CPU's arithmetic is to their memory.
fn balance(machine: &Machine) -> u64 {
    match machine.kind {
        MachineKind::Cuda => 15,
        MachineKind::Cpu | MachineKind::Interp => 8,
    }
}

impl Plan {
    /// A plan for a machine; kernels come from the library.
    pub(crate) fn new(tape: Tape, bindings: &Bindings, library: &Library) -> Result<Plan> {
        let machine = library.device().machine();
        let cut = cut(&tape, balance(machine));
        let order = order(&tape, &cut.groups, bindings);
        let mut kernels = vec![];
        for group in order.into_iter().map(|index| cut.groups[index].clone()) {
            let too_large = || Error::Plan { what: "a kernel".into(), reason: "it does not fit".into() };
            let (fused, _, line) = group.traced(&tape, &cut.kept).ok_or_else(too_large)?;
            let code = fused.code(&tape, "fused", machine.kind != MachineKind::Cuda)?;
            let source = Source::new(code.function.clone(), code.axes)?;
            let shape = domain(&tape, &group, line);
            let ready = match &group.kind {
                GroupKind::Map => Ready::One(library.get(&Map { domain: shape, source, sink: Sink::STORE }.into())?),
                GroupKind::Reduce(axes) => {
                    let reduced =
                        if line { vec![true] } else { (0..code.axes).map(|axis| axes.contains(&(axis as u8))).collect() };
                    let (operator, sink) = combination(&tape, &group, &reduced)?;
                    let spread = Spread { along_kept: false, blocks: false, split: false };
                    let pattern = Spreading::Reduce(Reduce { domain: shape, reduced, source, operator, sink, spread });
                    Ready::Spread { library: library.clone(), pattern: Box::new(pattern), known: Mutex::default() }
                }
                GroupKind::Scan(axis, inclusive) => {
                    let (operator, sink) = combination(&tape, &group, &vec![false; code.axes])?;
                    let (axis, inclusive) = (usize::from(*axis), *inclusive);
                    let spread = ScanSpread { along_axis: false, split: false };
                    let pattern = Spreading::Scan(Scan { domain: shape, axis, source, operator, inclusive, sink, spread });
                    Ready::Spread { library: library.clone(), pattern: Box::new(pattern), known: Mutex::default() }
                }
            };
            kernels.push(Kernel { group, code, ready, dead: vec![], reused: vec![] });
        }
        let mut plan = Plan { tape, kernels, reasons: cut.reasons };
        for kernel in &plan.kernels {
            kernel.ready.loaded(&plan.sizes(kernel, bindings))?;
        }
        plan.lifetimes();
        Ok(plan)
    }

    /// Says when memory is free, and where a result can take the place of an input.
    fn lifetimes(&mut self) {
        let results: Vec<Id> = self.tape.outputs.iter().map(|output| self.tape.behind(*output)).collect();
        let mut seen: Vec<Id> = vec![];
        for kernel in self.kernels.iter_mut().rev() {
            let own = kernel.group.reads.iter().chain(&kernel.group.roots);
            for id in own {
                let kept = !matches!(self.tape.entry(*id).kind, Kind::Leaf(_));
                if kept && !seen.contains(id) && !results.contains(id) {
                    kernel.dead.push(*id);
                }
                if !seen.contains(id) {
                    seen.push(*id);
                }
            }
        }
        for kernel in &mut self.kernels {
            let mut taken: Vec<Id> = vec![];
            for root in &kernel.group.roots {
                // Element by element, each read before it is written by the same thread.
                let candidate = kernel.code.inputs.iter().zip(&kernel.code.aligned).find(|(input, aligned)| {
                    let (from, to) = (self.tape.entry(**input), self.tape.entry(*root));
                    **aligned
                        && kernel.group.kind == GroupKind::Map
                        && kernel.dead.contains(input)
                        && !taken.contains(input)
                        && from.ty.bytes() == to.ty.bytes()
                        && from.shape == to.shape
                });
                let found = candidate.map(|(input, _)| *input);
                taken.extend(found);
                kernel.reused.push(found);
            }
        }
    }

    /// What a kernel is called with.
    pub(crate) fn scalars(&self, kernel: &Kernel, bindings: &Bindings) -> Vec<Literal> {
        let index = if self.tape.wide { Element::I64 } else { Element::I32 };
        kernel.code.scalars.iter().map(|given: &Given| given.literal(index, bindings)).collect()
    }

    /// The sizes that a kernel is called with.
    pub(crate) fn sizes(&self, kernel: &Kernel, bindings: &Bindings) -> Vec<u64> {
        let shape = &bindings.shapes[usize::from(kernel.group.domain)];
        if kernel.group.line { vec![shape.count() as u64] } else { shape.extents().iter().map(|extent| *extent as u64).collect() }
    }

    fn bytes(&self, id: Id, bindings: &Bindings) -> u64 {
        let entry = self.tape.entry(id);
        bindings.shapes[usize::from(entry.shape)].count() as u64 * u64::from(entry.ty.bytes())
    }

    /// What it does in a run with these bindings.
    pub(crate) fn summary(&self, bindings: &Bindings) -> Result<Summary> {
        let mut summary = Summary { kernels: vec![], peak_bytes: 0 };
        let mut live = 0u64;
        for kernel in &self.kernels {
            let bytes = |ids: &[Id]| ids.iter().map(|id| self.bytes(*id, bindings)).sum::<u64>();
            let fresh: Vec<Id> =
                kernel.group.roots.iter().zip(&kernel.reused).filter(|(_, reused)| reused.is_none()).map(|(id, _)| *id).collect();
            live += bytes(&fresh);
            summary.peak_bytes = summary.peak_bytes.max(live);
            let taken: Vec<Id> = kernel.reused.iter().flatten().copied().collect();
            live -= kernel.dead.iter().filter(|id| !taken.contains(id)).map(|id| self.bytes(*id, bindings)).sum::<u64>();
            let loaded = kernel.ready.loaded(&self.sizes(kernel, bindings))?;
            summary.kernels.push(KernelSummary {
                name: loaded.program().name.clone(),
                domain: bindings.shapes[usize::from(kernel.group.domain)].clone(),
                launches: loaded.program().steps.len(),
                operations: kernel.code.cost,
                reads: kernel.group.reads.len(),
                bytes_read: bytes(&kernel.group.reads),
                bytes_written: bytes(&kernel.group.roots),
                interior: kernel.code.interior,
                results: kernel.group.roots.iter().map(|root| self.result(*root, bindings)).collect(),
            });
        }
        Ok(summary)
    }

    fn result(&self, id: Id, bindings: &Bindings) -> ResultSummary {
        let entry = self.tape.entry(id);
        ResultSummary {
            operation: entry.kind.name(),
            ty: entry.ty.to_string(),
            shape: bindings.shapes[usize::from(entry.shape)].clone(),
            reason: self.reasons.get(&id).cloned().unwrap_or(Reason::Result),
        }
    }
}

impl Kind {
    /// Its name in plans.
    pub(crate) fn name(&self) -> String {
        match self {
            Kind::Leaf(_) => "input".into(),
            Kind::Fill(_) => "fill".into(),
            Kind::Elementwise(op) => op.to_string(),
            Kind::View(..) => "view".into(),
            Kind::Reshape => "reshape".into(),
            Kind::Position(axis) => format!("position {axis}"),
            Kind::Gather(..) => "gather".into(),
            Kind::Concatenate(axis) => format!("concatenate {axis}"),
            Kind::Reduce(combine, axes) => format!("{} over {:?}", combine.name(), axes.as_slice()),
            Kind::Extreme(extreme, axes) => format!("{} over {:?}", extreme.name(), axes.as_slice()),
            Kind::Scan(combine, axis, _) => format!("{} scan along {axis}", combine.name()),
        }
    }
}

/// What a result of a kernel is, and why it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSummary {
    /// The operation that gives it.
    pub operation: String,
    /// The type of its elements.
    pub ty: String,
    /// Its shape.
    pub shape: Shape,
    /// Why it is kept in memory.
    pub reason: Reason,
}

/// What a kernel of a plan does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSummary {
    /// The pattern.
    pub name: String,
    /// The positions that it works on.
    pub domain: Shape,
    /// How many launches it takes.
    pub launches: usize,
    /// What a position costs, in simple operations.
    pub operations: u64,
    /// How many arrays it reads.
    pub reads: usize,
    /// How many bytes these arrays have.
    pub bytes_read: u64,
    /// How many bytes its results have.
    pub bytes_written: u64,
    /// Whether boundaries are looked at only near the edges.
    pub interior: bool,
    /// Its results.
    pub results: Vec<ResultSummary>,
}

/// What a plan does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The kernels, in order.
    pub kernels: Vec<KernelSummary>,
    /// Most bytes that are alive at a time, inputs not counted.
    pub peak_bytes: u64,
}

impl Summary {
    /// Bytes read and written by all kernels.
    pub fn bytes_moved(&self) -> u64 {
        self.kernels.iter().map(|kernel| kernel.bytes_read + kernel.bytes_written).sum()
    }

    /// The plan as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        // Writing to a string never fails.
        let _ = writeln!(
            text,
            "{}, {} bytes moved, {} bytes of memory at most",
            plural(self.kernels.len(), "kernel"),
            self.bytes_moved(),
            self.peak_bytes
        );
        for (number, kernel) in self.kernels.iter().enumerate() {
            let edges = if kernel.interior { ", boundaries only at the edges" } else { "" };
            let _ = writeln!(
                text,
                "{number}: {} over {}: reads {} ({} bytes), writes {} bytes, {} operations a position{edges}",
                kernel.name,
                kernel.domain,
                plural(kernel.reads, "array"),
                kernel.bytes_read,
                kernel.bytes_written,
                kernel.operations,
            );
            for result in &kernel.results {
                let _ = writeln!(text, "   -> `{}` {}{}: {}", result.operation, result.ty, result.shape, result.reason);
            }
        }
        text
    }
}

/// The order of kernels in which least memory is alive: of those that can run, the one after which least is.
fn order(tape: &Tape, groups: &[Group], bindings: &Bindings) -> Vec<usize> {
    let bytes = |id: Id| {
        let entry = tape.entry(id);
        bindings.shapes[usize::from(entry.shape)].count() as i128 * i128::from(entry.ty.bytes())
    };
    let home: HashMap<Id, usize> =
        groups.iter().enumerate().flat_map(|(index, group)| group.roots.iter().map(move |root| (*root, index))).collect();
    let mut readers: HashMap<Id, usize> = HashMap::new();
    groups.iter().flat_map(|group| &group.reads).for_each(|read| *readers.entry(*read).or_default() += 1);
    let results: Vec<Id> = tape.outputs.iter().map(|output| tape.behind(*output)).collect();
    let mut done = vec![false; groups.len()];
    let mut order = vec![];
    while order.len() < groups.len() {
        let ready = (0..groups.len()).filter(|index| {
            !done[*index] && groups[*index].reads.iter().all(|read| home.get(read).is_none_or(|producer| done[*producer]))
        });
        let cost = |index: usize| {
            let group = &groups[index];
            let made: i128 = group.roots.iter().map(|root| bytes(*root)).sum();
            let freed: i128 = group
                .reads
                .iter()
                .filter(|read| home.contains_key(read) && readers[read] == 1 && !results.contains(read))
                .map(|read| bytes(*read))
                .sum();
            made - freed
        };
        let Some(next) = ready.min_by_key(|index| (cost(*index), *index)) else { break };
        done[next] = true;
        for read in &groups[next].reads {
            if let Some(left) = readers.get_mut(read) {
                *left -= 1;
            }
        }
        order.push(next);
    }
    order
}

/// The domain of a shape as code sees it.
fn domain(tape: &Tape, group: &Group, line: bool) -> Domain {
    let class = tape.shapes[usize::from(group.domain)];
    if line {
        return Domain::LINE;
    }
    let mut sizes = vec![1u64; usize::from(class.rank)];
    if let Some(last) = sizes.last_mut().filter(|_| class.rows) {
        *last = 1 << 20;
    }
    Domain::of(&sizes)
}
