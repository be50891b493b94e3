//! Functions of kernels, emitted from traces.

use super::code::{Code, KernelScalar, bounds};
use super::emitter::{Emitter, TraceEmitter};
use super::fused::FusedTraces;
use crate::emit::trace::{ExtentCondition, Item};
use crate::expr::error::Result;
use crate::tape::entries::Tape;
use broadloom_scalar::{Builder, Type};
use std::sync::Arc;

impl<'k> FusedTraces<'k> {
    fn emitter<'t>(&self, tape: &'t Tape, name: &str, side_by_side: bool, values: &[Type]) -> Emitter<'t>
    where
        'k: 't,
    {
        let axes = if self.line { 1 } else { self.rank };
        let index = if tape.wide { Type::I64 } else { Type::I32 };
        let builder = Builder::function(name);
        builder.prefer(tape.precision);
        let position =
            (0..axes).map(|axis| builder.parameter(["i", "j", "k", "l", "m", "n", "o", "p"][axis % 8], index)).collect();
        let given = values.iter().map(|ty| builder.parameter("x", *ty)).collect();
        let sum = if side_by_side { Type::I64 } else { index };
        let replaced = vec![];
        let vectors = side_by_side;
        let (scalars, inputs, aligned) = (vec![], vec![], vec![]);
        let along = self.rank.checked_sub(1).filter(|_| self.along_last && !self.line).map(|last| last as u8);
        let (lengths, traps, staged) = (vec![], vec![], self.staged);
        let mut emitter = Emitter {
            tape,
            builder,
            index,
            sum,
            vectors,
            along,
            position,
            given,
            replaced,
            scalars,
            inputs,
            aligned,
            lengths,
            traps,
            staged,
            columns: 1,
            wide: vec![],
        };
        let own = self.length.iter().filter(|_| self.absent.is_some()).map(|(length, _)| length);
        let traces = std::iter::once(&self.interior).chain(&self.everywhere);
        traces.flat_map(|trace| &trace.lengths).chain(own).for_each(|length| emitter.read_length(*length));
        emitter
    }

    /// Returns the reads along an axis, as a function of positions with that axis and the last one exchanged,
    /// and the function that takes the values read.
    pub(crate) fn code_transposed(self, tape: &Tape, side_by_side: bool, axis: u8, reads: Vec<u32>) -> Result<[Code; 2]> {
        let mut emitter = self.emitter(tape, "rows", side_by_side, &[]);
        emitter.position.swap(usize::from(axis), self.rank - 1);
        let (trace, line) = (&self.interior, false);
        let mut half = TraceEmitter::new(&mut emitter, trace, line);
        let mut results = vec![];
        for read in &reads {
            if let Item::Read { node, place } = &trace.items[*read as usize] {
                let (_, accessor) = half.emitter.input(*node);
                let at = half.linear(*node, place);
                results.push(half.emitter.builder.read(accessor, &[at.into()]));
            }
        }
        let types: Vec<Type> = results.iter().map(|value| emitter.builder.type_of(*value)).collect();
        let rows = emitter.code(&results, self.rank, 0, false)?;
        Ok([rows, self.code_replacing(tape, "fused", side_by_side, &types, reads)?])
    }

    /// Returns the functions of a strip, for the interior and, if it differs, near edges, and the bounds of
    /// the interior along all axes.
    pub(crate) fn strip_codes(self, tape: &Tape, side_by_side: bool) -> Result<(Vec<Code>, Vec<KernelScalar>)> {
        let bounds = bounds(0..self.rank as u8, self.interior.conditions.clone());
        Ok((self.patch_codes(tape, side_by_side, 1, ["inner", "edge"])?, bounds))
    }

    /// Returns the functions of patches with `columns` columns, in the order of [`FusedTraces::strip_codes`].
    /// In the interior, several columns are read together if possible.
    pub(crate) fn patch_codes(self, tape: &Tape, side_by_side: bool, columns: u32, names: [&str; 2]) -> Result<Vec<Code>> {
        let edge = self.everywhere.as_ref().map(|trace| (trace, &self.roots_everywhere));
        let halves = std::iter::once((&self.interior, &self.roots, names[0], columns))
            .chain(edge.map(|(trace, roots)| (trace, roots, names[1], 1)));
        let mut codes = vec![];
        for (trace, roots, name, columns) in halves {
            let mut emitter = self.emitter(tape, name, side_by_side, &[]);
            emitter.columns = columns;
            let results = emitter.half(trace, roots, &[], false)?;
            // A strip may read elements that another strip has written.
            emitter.aligned.iter_mut().for_each(|aligned| *aligned = false);
            let cost = if codes.is_empty() { trace.cost } else { 0 };
            codes.push(emitter.code(&results, self.rank, cost, self.everywhere.is_some())?);
        }
        Ok(codes)
    }

    /// Returns the function of the interior alone, and the conditions of a position in it. Returns `None` if
    /// all positions are in the interior.
    pub(crate) fn inner_code(&self, tape: &Tape, side_by_side: bool) -> Result<Option<(Code, Arc<Vec<ExtentCondition>>)>> {
        if self.everywhere.is_none() {
            return Ok(None);
        }
        let mut emitter = self.emitter(tape, "inner", side_by_side, &[]);
        let results = emitter.half(&self.interior, &self.roots, &self.traps, self.line)?;
        let axes = if self.line { 1 } else { self.rank };
        let code = emitter.code(&results, axes, self.interior.cost, false)?;
        Ok(Some((code, Arc::new(self.interior.conditions.clone()))))
    }

    /// Returns the function, which takes values of these types after the position. With `side_by_side`,
    /// addresses are added up so that an executor of vectors sees that neighbouring threads access
    /// neighbouring elements.
    pub(crate) fn code(self, tape: &Tape, name: &str, side_by_side: bool, values: &[Type]) -> Result<Code> {
        self.code_replacing(tape, name, side_by_side, values, vec![])
    }

    /// Emits code with the given values in place of these items.
    fn code_replacing(self, tape: &Tape, name: &str, side_by_side: bool, values: &[Type], replaced: Vec<u32>) -> Result<Code> {
        let axes = if self.line { 1 } else { self.rank };
        let mut emitter = Emitter { replaced, ..self.emitter(tape, name, side_by_side, values) };
        let results = match &self.absent {
            None => emitter.results(&self)?,
            Some(absent) => emitter.present(&self, absent)?,
        };
        emitter.code(&results, axes, self.interior.cost, self.everywhere.is_some())
    }
}
