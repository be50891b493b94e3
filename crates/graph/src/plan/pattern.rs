//! The pattern of a kernel, and the program that it becomes: the one place where patterns are chosen.

use crate::emit::code::Code;
use crate::emit::patch::Patch;
use crate::expr::error::{Error, Result};
use crate::expr::operation::{OperationPattern, PatternParts, Variants};
use crate::plan::group::{Group, GroupFeed, GroupKind};
use crate::tape::entries::Tape;
use broadloom_device::Machine;
use broadloom_skeleton::{
    Border, Domain, Fold, Library, LoadedProgram, Map, Operator, Pattern, Sink, Source, Stencil, Transpose,
};
use std::sync::{Mutex, PoisonError};

/// The programs of a kernel, each with the number of its variant. They are made when they are first used.
#[derive(Debug)]
pub(crate) struct KernelProgram {
    library: Library,
    variants: Box<dyn Variants>,
    known: Mutex<Vec<(u64, LoadedProgram)>>,
}

/// One pattern for all sizes.
#[derive(Debug)]
struct SinglePattern(Pattern);

impl Variants for SinglePattern {
    fn best(&self, _: &Machine, _: &[u64], _: bool) -> u64 {
        0
    }

    fn pattern(&self, _: u64) -> Pattern {
        self.0.clone()
    }
}

fn nothing() -> Error {
    Error::Plan { what: "a kernel".into(), reason: "it computes nothing".into() }
}

/// The part of the positions that a thread of a stencil computes.
#[derive(Clone, Copy)]
pub(crate) struct StencilForm {
    /// Its rows and columns.
    pub(crate) patch: Patch,
    /// Lanes before and behind its own whose values it takes.
    pub(crate) reach: (u32, u32),
    /// Values that it keeps at the same time.
    pub(crate) live: u32,
}

impl StencilForm {
    fn pattern(self, domain: Domain, inner: Source, edge: Option<Source>, border: Option<Border>, fold: Option<Fold>) -> Stencil {
        let StencilForm { patch, reach, live } = self;
        let Patch { rows, columns, step, skew, .. } = patch;
        Stencil { domain, rows, step, columns, skew, live, inner, edge, border, reach, fold }
    }
}

impl KernelProgram {
    /// Makes the program of a kernel. Each of `codes` feeds it, with a flag that is true if its domain is one
    /// line. Results are stored if there is no `sink`. `repeats` is true if a thread may have several rows of
    /// results.
    pub(crate) fn new(
        tape: &Tape,
        group: &Group,
        codes: &[(Code, bool)],
        sink: Option<&Code>,
        repeats: bool,
        library: &Library,
    ) -> Result<KernelProgram> {
        let source = |((code, _), feed): (&(Code, bool), &GroupFeed)| {
            Ok(Source::new(code.function.clone(), code.axes)?.with_given(feed.given.len())?)
        };
        let mut sources = codes.iter().zip(&group.feeds).map(source).collect::<Result<Vec<Source>>>()?;
        let (axes, line) = codes.first().map(|(code, line)| (code.axes, *line)).ok_or_else(nothing)?;
        let domain = domain(tape, group, line);
        let form = match &group.kind {
            GroupKind::Map => {
                let is_known = tape.shapes[group.domain as usize].length.is_none();
                let domain = if is_known { domain } else { domain.counted_on_device() };
                OperationPattern::One(Map { domain, source: sources.remove(0), sink: Sink::STORE }.into())
            }
            GroupKind::Transpose(axis) => {
                let source = sources.remove(0);
                // The values that go through shared memory are those of the function, not of the group.
                let sink = made(sink, source.results().len())?;
                OperationPattern::One(Transpose { axes, axis: usize::from(*axis), source, sink }.into())
            }
            GroupKind::Chain | GroupKind::Rows => return Err(nothing()),
            GroupKind::Pattern => {
                let sink = made(sink, group.values(tape).len())?;
                let application = tape.application(*group.combined.first().ok_or_else(nothing)?);
                let operator = combination(tape, group, false)?;
                let parts = PatternParts { application, domain, axes, line, sources, sink, operator, repeats };
                group.operation(tape).ok_or_else(nothing)?.pattern(parts)?
            }
        };
        match form {
            OperationPattern::One(pattern) => Ok(KernelProgram::one(pattern, library)),
            OperationPattern::Several(variants) => Ok(KernelProgram::several(variants, library)),
        }
    }

    /// Returns the programs of a kernel, of which the sizes select one.
    pub(crate) fn several(variants: Box<dyn Variants>, library: &Library) -> KernelProgram {
        KernelProgram { library: library.clone(), variants, known: Mutex::default() }
    }

    /// Returns the program of a pattern for all sizes.
    pub(crate) fn one(pattern: Pattern, library: &Library) -> KernelProgram {
        KernelProgram::several(Box::new(SinglePattern(pattern)), library)
    }

    /// Makes the program of a kernel in strips of rows. `codes` are the function of the interior and, if it
    /// differs, that near the edges.
    pub(crate) fn strips(
        tape: &Tape,
        group: &Group,
        codes: &[Code],
        sink: Option<&Code>,
        form: StencilForm,
        library: &Library,
    ) -> Result<KernelProgram> {
        let source = |code: &Code| Source::new(code.function.clone(), code.axes);
        let inner = source(codes.first().ok_or_else(nothing)?)?;
        let edge = codes.get(1).map(source).transpose()?;
        let fold = match combination(tape, group, true)? {
            Some(operator) => Some(Fold { operator, sink: made(sink, group.values(tape).len())? }),
            None => None,
        };
        Ok(KernelProgram::one(form.pattern(domain(tape, group, false), inner, edge, None, fold).into(), library))
    }

    /// Returns the program of a kernel in patches.
    pub(crate) fn patches(
        tape: &Tape,
        group: &Group,
        codes: &[Code],
        form: StencilForm,
        library: &Library,
    ) -> Result<KernelProgram> {
        let source = |code: &Code| Source::new(code.function.clone(), code.axes);
        let inner = source(codes.first().ok_or_else(nothing)?)?;
        let edge = codes.get(1).map(source).transpose()?;
        let border = match codes.get(2..) {
            Some([along_rows, along_columns]) => {
                let [along_rows, along_columns] = [source(along_rows)?, source(along_columns)?];
                let of_position = edge.as_ref().map_or(1, |edge| edge.results().len());
                let positions = (along_rows.results().len() / of_position) as u32;
                Some(Border { positions, along_rows, along_columns })
            }
            _ => None,
        };
        Ok(KernelProgram::one(form.pattern(domain(tape, group, false), inner, edge, border, None).into(), library))
    }

    /// Returns the program for these sizes. `shares` is true if results have much of what they read in
    /// common.
    pub(crate) fn loaded(&self, sizes: &[u64], shares: bool) -> Result<LoadedProgram> {
        let best = self.variants.best(self.library.device().machine(), sizes, shares);
        let find = |known: &[(u64, LoadedProgram)]| known.iter().find(|(own, _)| *own == best).map(|(_, loaded)| loaded.clone());
        if let Some(loaded) = find(&self.known.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(loaded);
        }
        let loaded = self.library.get(&self.variants.pattern(best))?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).push((best, loaded.clone()));
        Ok(loaded)
    }
}

/// Returns the sink of `values` values of a pattern. Without code they are stored.
fn made(sink: Option<&Code>, values: usize) -> Result<Sink> {
    Ok(match sink {
        Some(code) => Sink::new(code.function.clone(), code.axes, values)?,
        None => Sink::STORE,
    })
}

/// Returns the operator of all values that share a pass. With `in_order`, it combines in the order of
/// positions.
pub(crate) fn combination(tape: &Tape, group: &Group, in_order: bool) -> Result<Option<Operator>> {
    let mut operators = vec![];
    for id in group.applications(tape) {
        if let Some(applied) = tape.applied(*id) {
            operators.extend(applied.operation().operator(&tape.application(*id), in_order)?);
        }
    }
    Ok(if operators.len() > 1 { Some(Operator::all(&operators)?) } else { operators.pop() })
}

/// Returns the domain of a shape as code sees it.
fn domain(tape: &Tape, group: &Group, line: bool) -> Domain {
    let class = tape.shapes[group.domain as usize];
    if line {
        return Domain::LINE;
    }
    let mut sizes = vec![1u64; usize::from(class.rank)];
    if let Some(last) = sizes.last_mut().filter(|_| class.rows) {
        *last = 1 << 20;
    }
    let known: Vec<Option<u64>> = (0..sizes.len()).map(|axis| class.known(axis)).collect();
    Domain::of(&sizes).with_known(&known)
}
