//! Functions of the implementation, called element by element, and values as vectors.

use super::Machine;
use crate::core::Primitive;
use crate::data::Cells;
use crate::eval::{Fault, Meter, Run, Value};
use crate::run::Entry;
use crate::vcode::{Foreign, Layout, Op, Type};
use std::rc::Rc;
use std::sync::Arc;

impl Machine<'_, '_, '_> {
    pub(super) fn foreign(&mut self, call: &Foreign) -> Run<()> {
        let Some(primitive) = Primitive::by_name(&call.name) else {
            return Fault::at_run_time(format!("the host has no function `{}`", call.name));
        };
        let mut types = vec![];
        call.argument.types(&mut types);
        if self.accelerator.is_some() {
            self.operands_to_host(types.len())?;
            if !call.is_pure() {
                self.look_before_effect()?;
            }
        }
        let range = self.range(types.len() as u32, 0)?;
        if primitive == Primitive::Iseq {
            self.widen_top(range.len())?;
        }
        let operands: Vec<Entry> = self.stack.drain(range).collect();
        if !operands.iter().zip(&types).all(|(operand, &ty)| operand.ty() == Some(ty)) {
            return Fault::at_run_time(format!("the operands of HOST \"{}\" have wrong types", call.name));
        }
        if let (Primitive::Iseq, [Entry::Int(starts), Entry::Int(steps), Entry::Int(ends)]) = (primitive, &operands[..]) {
            return self.ranges(starts, steps, ends);
        }
        let count = operands.first().map_or(1, Entry::len);
        if count == 1
            && let Some(results) = self.on_text(primitive, &operands)?
        {
            self.count(results.iter().map(Entry::len).sum())?;
            self.stack.extend(results);
            return Ok(());
        }
        if count == 1
            && let Some(results) = self.on_data(primitive, call, &operands)?
        {
            self.count(results.iter().map(Entry::len).sum())?;
            self.stack.extend(results);
            return Ok(());
        }
        let arguments = to_values(&call.argument, &mut operands.iter(), count, self.world)?;
        let argument_type = self.world.type_of(&call.argument);
        let result_type = self.world.type_of(&call.result);
        let mut results = Vec::with_capacity(count);
        for argument in arguments {
            results.push(self.world.primitive(primitive, argument, argument_type, result_type)?);
        }
        let mut entries = vec![];
        if from_values(&call.result, &results, self.world.meter(), &mut entries).is_none() {
            return self.world.out_of_memory(results.len());
        }
        self.count(entries.iter().map(Entry::len).sum())?;
        self.stack.extend(entries);
        Ok(())
    }
}

impl Machine<'_, '_, '_> {
    /// Makes a range for every start, step and end.
    fn ranges(&mut self, starts: &[i64], steps: &[i64], ends: &[i64]) -> Run<()> {
        self.check_ranges(starts, steps, ends)?;
        let all = || starts.iter().zip(steps).zip(ends).map(|((&start, &step), &end)| (start, step, end));
        let lengths: Vec<usize> = all().map(|(start, step, end)| end.abs_diff(start).div_ceil(step as u64) as usize).collect();
        let total = lengths.iter().fold(0usize, |sum, &length| sum.saturating_add(length));
        // The host needs no vector of many elements.
        if self.accelerator.as_deref().is_some_and(|accelerator| total >= accelerator.threshold().max(1)) {
            let (starts, steps, segments) = (self.ints(starts.to_vec())?, self.ints(steps.to_vec())?, self.segments(lengths)?);
            self.stack.extend([segments.clone(), starts, steps, segments]);
            return self.op(Op::Index, Type::Int);
        }
        self.reserve(total)?;
        let mut values = Vec::with_capacity(total);
        for ((start, step, _), &length) in all().zip(&lengths) {
            values.extend((0..length as i64).map(|index| start + index * step));
        }
        let entries = [self.segments(lengths)?, self.ints(values)?];
        self.count(total)?;
        self.stack.extend(entries);
        Ok(())
    }
}

impl Machine<'_, '_, '_> {
    /// Calls a function that reads or prints a string, without values of the evaluator. Returns `None` for
    /// other functions.
    fn on_text(&mut self, primitive: Primitive, operands: &[Entry]) -> Run<Option<Vec<Entry>>> {
        match (primitive, operands) {
            (Primitive::PrintString, [Entry::Segdes(_), codes]) => {
                self.world.print(&codes.text().unwrap_or_default());
                Ok(Some(vec![self.bools(vec![true])?]))
            }
            (Primitive::Read, [Entry::Segdes(_), delimiters, Entry::Int(limit), Entry::Int(stream)]) => {
                let delimiters = delimiters.text().unwrap_or_default();
                let limit = usize::try_from(limit[0]).unwrap_or(usize::MAX);
                let (text, end, message) = match self.world.read_until(stream[0], &delimiters, limit) {
                    Ok((text, end)) => (text, end, None),
                    Err(error) => (Arc::default(), -1, Some(error.to_string())),
                };
                let (length, text) = (self.segments(vec![text.len()])?, self.bytes(text)?);
                let (end, is_read) = (self.ints(vec![end])?, self.bools(vec![message.is_none()])?);
                let message = message.unwrap_or_default();
                let message = [self.segments(vec![message.len()])?, self.bytes(message.as_bytes().into())?];
                Ok(Some([vec![length, text, end, is_read], message.to_vec()].concat()))
            }
            _ => Ok(None),
        }
    }
}

impl Machine<'_, '_, '_> {
    /// Reads data of a file as vectors, without values of the evaluator. Returns `None` for other functions.
    fn on_data(&mut self, primitive: Primitive, call: &Foreign, operands: &[Entry]) -> Run<Option<Vec<Entry>>> {
        if !matches!(primitive, Primitive::ReadTable | Primitive::ReadArray) {
            return Ok(None);
        }
        let behind = |number: usize| operands.len().checked_sub(number).and_then(|index| operands.get(index));
        let text_of = |number: usize| behind(number).and_then(Entry::text).unwrap_or_default();
        let (text, file) = (text_of(3), text_of(1));
        let (mut kind, mut names) = (0, vec![]);
        if let (Primitive::ReadTable, Some(Entry::Int(own)), Some(Entry::Segdes(lengths))) = (primitive, behind(8), behind(6)) {
            let characters = text_of(5);
            kind = own[0];
            names = lengths.ranges().map(|range| characters[range].to_vec()).collect();
        }
        let cells = self.world.read_data(primitive, &call.result, (kind, &names), &text, &file)?;
        let mut entries = vec![];
        self.of_cells(cells, &mut entries)?;
        Ok(Some(entries))
    }

    fn of_cells(&mut self, cells: Cells, out: &mut Vec<Entry>) -> Run<()> {
        out.push(match cells {
            Cells::Int(values) => self.ints(values)?,
            Cells::Float(values) => self.floats(values)?,
            Cells::Bool(values) => self.bools(values)?,
            Cells::Char(values) => self.bytes(values.into())?,
            Cells::Seq(lengths, element) => {
                let segments = self.segments(lengths)?;
                out.push(segments);
                return self.of_cells(*element, out);
            }
            Cells::Pair(parts) => {
                self.of_cells(parts.0, out)?;
                return self.of_cells(parts.1, out);
            }
        });
        Ok(())
    }
}

/// Makes values from vectors.
pub(crate) fn to_values<'a>(
    layout: &Layout,
    entries: &mut impl Iterator<Item = &'a Entry>,
    count: usize,
    world: &mut crate::eval::Evaluation<'_>,
) -> Run<Vec<Value>> {
    let misfit = || Fault::at_run_time("the vectors of a value do not fit its type");
    let values: Vec<Value> = match layout {
        Layout::Nothing => return Ok(vec![Value::nameless_function(); count]),
        Layout::Pair(first, rest) => {
            let first = to_values(first, entries, count, world)?;
            let rest = to_values(rest, entries, count, world)?;
            first.into_iter().zip(rest).map(|(first, rest)| Value::pair(first, rest)).collect()
        }
        Layout::Seq(element) => {
            let Some(Entry::Segdes(segments)) = entries.next() else { return misfit() };
            if **element == Layout::Char {
                let Some(text) = entries.next().and_then(Entry::text) else { return misfit() };
                if text.len() != segments.total || segments.lengths.len() != count {
                    return misfit();
                }
                if let [_] = segments.lengths[..] {
                    return Ok(vec![world.shared_text(text)?]);
                }
                return segments.ranges().map(|range| world.text(&text[range])).collect();
            }
            let mut elements = to_values(element, entries, segments.total, world)?.into_iter();
            let mut values = Vec::with_capacity(segments.lengths.len());
            for &length in &segments.lengths {
                values.push(world.seq(elements.by_ref().take(length).collect())?);
            }
            values
        }
        Layout::Int | Layout::Float | Layout::Bool | Layout::Char => match (layout, entries.next()) {
            (Layout::Int, Some(Entry::Int(values))) => values.iter().map(|&value| Value::Int(value)).collect(),
            (Layout::Int, Some(Entry::Bytes(values))) => values.iter().map(|&value| Value::Int(value.into())).collect(),
            (Layout::Char, Some(Entry::Bytes(values))) => values.iter().map(|&value| Value::Char(value)).collect(),
            (Layout::Char, Some(Entry::Int(values))) => values.iter().map(|&value| Value::Char(value as u8)).collect(),
            (Layout::Float, Some(Entry::Float(values))) => values.iter().map(|&value| Value::Float(value)).collect(),
            (Layout::Bool, Some(Entry::Bool(values))) => values.iter().map(|&value| Value::Bool(value)).collect(),
            _ => return misfit(),
        },
    };
    if values.len() == count { Ok(values) } else { misfit() }
}

/// Makes vectors from values; `None` if they exceed the limit on memory.
fn from_values(layout: &Layout, values: &[Value], meter: &Rc<Meter>, out: &mut Vec<Entry>) -> Option<()> {
    match layout {
        Layout::Nothing => {}
        Layout::Int => out.push(Entry::ints(meter, values.iter().map(Value::int).collect())?),
        Layout::Char => out.push(Entry::ints(meter, values.iter().map(|value| i64::from(value.char())).collect())?),
        Layout::Float => out.push(Entry::floats(meter, values.iter().map(Value::float).collect())?),
        Layout::Bool => out.push(Entry::bools(meter, values.iter().map(Value::bool).collect())?),
        Layout::Pair(first, rest) => {
            let (firsts, rests): (Vec<Value>, Vec<Value>) =
                values.iter().map(|value| (value.parts().0.clone(), value.parts().1.clone())).unzip();
            from_values(first, &firsts, meter, out)?;
            from_values(rest, &rests, meter, out)?;
        }
        Layout::Seq(element) => {
            out.push(Entry::segdes(meter, values.iter().map(Value::length).collect())?);
            if **element == Layout::Char {
                let text = match values {
                    [text] => text.bytes(),
                    texts => texts.iter().flat_map(|text| text.bytes().to_vec()).collect(),
                };
                return Entry::bytes(meter, text).map(|text| out.push(text));
            }
            let elements: Vec<Value> = values.iter().flat_map(|value| value.elements().iter().cloned()).collect();
            from_values(element, &elements, meter, out)?;
        }
    }
    Some(())
}
