//! Which pattern a kernel is, and the program that it becomes.

use crate::cut::{Group, GroupKind};
use crate::emit::Code;
use crate::error::{Error, Result};
use crate::op::{Combine, Extreme};
use crate::tape::{Id, Kind, Tape};
use broadloom_device::{Machine, MachineKind};
use broadloom_scalar::Type;
use broadloom_skeleton::{
    Combine as Sent, Domain, Fold, Histogram, Library, Loaded, Map, Operator, Pack, Pattern, Product, Reduce, Scan, ScanSpread,
    Scatter, SegmentedReduce, SegmentedSort, Sink, Sort, Source, Spread, Stencil, Transpose,
};
use std::sync::{Mutex, PoisonError};

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
    /// With whether a thread can have several rows of results.
    Reduce(Reduce, bool),
    Scan(Scan),
}

/// One of the ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Reduce(Spread),
    Scan(ScanSpread),
}

impl Spreading {
    /// The best way for these sizes, where results share what they are computed from or do not.
    fn way(&self, machine: &Machine, sizes: &[u64], shares: bool) -> Way {
        match self {
            Spreading::Reduce(reduce, repeats) => {
                let spread = Spread::of(machine, sizes, &reduce.reduced);
                let is_cpu = machine.kind == MachineKind::Cpu;
                Way::Reduce(if is_cpu && *repeats && shares { spread.sharing(sizes, &reduce.reduced) } else { spread })
            }
            Spreading::Scan(scan) => Way::Scan(ScanSpread::of(machine, sizes, scan.axis)),
        }
    }

    fn pattern(&self, way: Way) -> Pattern {
        match (self, way) {
            (Spreading::Reduce(reduce, _), Way::Reduce(spread)) => Reduce { spread, ..reduce.clone() }.into(),
            (Spreading::Scan(scan), Way::Scan(spread)) => Scan { spread, ..scan.clone() }.into(),
            (Spreading::Reduce(reduce, _), Way::Scan(_)) => reduce.clone().into(),
            (Spreading::Scan(scan), Way::Reduce(_)) => scan.clone().into(),
        }
    }
}

impl Ready {
    /// The program of a kernel, each function that feeds it with whether its domain is one line. Without a function for its results they are just stored.
    /// `repeats` says whether a thread can have several rows of results.
    pub(crate) fn new(
        tape: &Tape,
        group: &Group,
        codes: &[(Code, bool)],
        sink: Option<&Code>,
        repeats: bool,
        library: &Library,
    ) -> Result<Ready> {
        let mut sources = vec![];
        for (code, _) in codes {
            sources.push(Source::new(code.function.clone(), code.axes)?);
        }
        let none = || Error::Plan { what: "a kernel".into(), reason: "it computes nothing".into() };
        let (code, line) = codes.first().map(|(code, line)| (code, *line)).ok_or_else(none)?;
        let shape = domain(tape, group, line);
        let spread =
            |pattern: Spreading| Ready::Spread { library: library.clone(), pattern: Box::new(pattern), known: Mutex::default() };
        let mut sources = sources.into_iter();
        let source = sources.next().ok_or_else(none)?;
        let sink = match sink {
            Some(code) => {
                // What is transposed is not the group's to say.
                let transposed = if matches!(group.kind, GroupKind::Transpose(_)) { source.results().len() } else { 0 };
                Sink::new(code.function.clone(), code.axes, group.values(tape).len() + transposed)?
            }
            None => Sink::STORE,
        };
        let pattern: Pattern = match &group.kind {
            GroupKind::Transpose(axis) => Transpose { axes: code.axes, axis: usize::from(*axis), source, sink }.into(),
            GroupKind::Map => Map { domain: shape, source, sink: Sink::STORE }.into(),
            GroupKind::Reduce(axes) => {
                let reduced: Vec<bool> =
                    if line { vec![true] } else { (0..code.axes).map(|axis| axes.contains(&(axis as u8))).collect() };
                let operator = combination(tape, group, false)?;
                let any = Spread { along_kept: false, blocks: false, split: false, rows: [1, 1] };
                let reduce = Reduce { domain: shape, reduced, source, operator, sink, spread: any };
                return Ok(spread(Spreading::Reduce(reduce, repeats)));
            }
            GroupKind::Scan(axis, inclusive) => {
                let operator = combination(tape, group, false)?;
                let (axis, inclusive) = (usize::from(*axis), *inclusive);
                let any = ScanSpread { along_axis: false, split: false };
                return Ok(spread(Spreading::Scan(Scan { domain: shape, axis, source, operator, inclusive, sink, spread: any })));
            }
            GroupKind::Product => Product { left: source, right: sources.next().ok_or_else(none)?, sink }.into(),
            GroupKind::Sort(keys, None) => Sort { source, keys: keys.to_vec(), sink }.into(),
            GroupKind::Sort(keys, Some(longest)) => {
                let (offsets, keys, longest) = (sources.next().ok_or_else(none)?, keys.to_vec(), *longest);
                SegmentedSort { source, offsets, keys, sink, longest }.into()
            }
            GroupKind::Histogram(room) => Histogram { domain: shape, source, sink, room: *room }.into(),
            GroupKind::SegmentedReduce => {
                let (offsets, operator) = (sources.next().ok_or_else(none)?, combination(tape, group, false)?);
                SegmentedReduce { source, offsets, operator, sink }.into()
            }
            GroupKind::Scatter(combine) => {
                let combine = match combine {
                    None => Sent::Last,
                    Some(Combine::Sum) => Sent::Add,
                    Some(Combine::Min) => Sent::Min,
                    Some(Combine::Max) => Sent::Max,
                    Some(Combine::All) => Sent::And,
                    Some(Combine::Any) => Sent::Or,
                    Some(Combine::Product | Combine::By(_)) => {
                        return Err(Error::Plan { what: "a scatter".into(), reason: "what is sent is sorted first".into() });
                    }
                };
                Scatter { domain: shape, source, base: sources.next().ok_or_else(none)?, combine, sink }.into()
            }
            // The values and the number, in this order: so are the roots.
            GroupKind::Pack(rest) => Pack { source, sink: Sink::STORE, rest: *rest }.into(),
        };
        Ok(Ready::One(library.get(&pattern)?))
    }

    /// The program of a kernel in strips of so many rows whose lanes reach so far: functions for the interior and, if it is another, near the edges.
    pub(crate) fn strips(
        tape: &Tape,
        group: &Group,
        codes: &[Code],
        sink: Option<&Code>,
        (rows, reach): (u32, (u32, u32)),
        library: &Library,
    ) -> Result<Ready> {
        let source = |code: &Code| Source::new(code.function.clone(), code.axes);
        let none = || Error::Plan { what: "a kernel".into(), reason: "it computes nothing".into() };
        let inner = source(codes.first().ok_or_else(none)?)?;
        let edge = codes.get(1).map(source).transpose()?;
        let sink = match sink {
            Some(code) => Sink::new(code.function.clone(), code.axes, group.values(tape).len())?,
            None => Sink::STORE,
        };
        let fold = match &group.kind {
            GroupKind::Reduce(_) => Some(Fold { operator: combination(tape, group, true)?, sink }),
            _ => None,
        };
        let pattern = Stencil { domain: domain(tape, group, false), rows, inner, edge, reach, fold };
        Ok(Ready::One(library.get(&pattern.into())?))
    }

    /// The program for these sizes, where results share what they are computed from or do not.
    pub(crate) fn loaded(&self, sizes: &[u64], shares: bool) -> Result<Loaded> {
        match self {
            Ready::One(loaded) => Ok(loaded.clone()),
            Ready::Spread { library, pattern, known } => {
                let way = pattern.way(library.device().machine(), sizes, shares);
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

/// How the values of a reduction or a scan are combined; in the order of positions if so said.
fn combination(tape: &Tape, group: &Group, in_order: bool) -> Result<Operator> {
    let is_position = |id: Id| matches!(tape.entry(id).kind, Kind::Position(_));
    let mut operators = vec![];
    for id in &group.combined {
        let entry = tape.entry(*id);
        let types: Vec<Type> = entry.inputs.iter().map(|input| tape.entry(*input).ty).collect();
        operators.push(match &entry.kind {
            Kind::Reduce(combine, _) | Kind::Scan(combine, ..) | Kind::SegmentedReduce(combine) => combine.operator(types[0])?,
            Kind::SegmentedScan(combine, _) => combine.operator(types[1])?.segmented()?,
            Kind::Extreme(extreme, _) if in_order && is_position(entry.inputs[1]) => match extreme {
                Extreme::Least => Operator::arg_min_in_order(types[0], types[1].element())?,
                Extreme::Greatest => Operator::arg_max_in_order(types[0], types[1].element())?,
            },
            Kind::Extreme(Extreme::Least, _) => Operator::arg_min(types[0], types[1].element())?,
            Kind::Extreme(Extreme::Greatest, _) => Operator::arg_max(types[0], types[1].element())?,
            other => {
                return Err(Error::Plan { what: "a reduction".into(), reason: format!("`{}` combines nothing", other.name()) });
            }
        });
    }
    Ok(if operators.len() == 1 { operators.remove(0) } else { Operator::all(&operators)? })
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
