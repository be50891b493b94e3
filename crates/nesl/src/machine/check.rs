//! Conditions on operands, with the messages of the evaluator.

use super::Machine;
use crate::codes;
use crate::eval::{Fault, Run};
use crate::run::{Entry, Segments};
use crate::vcode::Check;

impl Machine<'_, '_, '_> {
    pub(super) fn check(&mut self, check: Check) -> Run<()> {
        if self.accelerator.is_some() {
            if self.check_on_amounts(check)? || self.check_on_device(check)? {
                return Ok(());
            }
            self.operands_to_host(check.operands().len())?;
        }
        self.check_on_host(check)
    }

    pub(super) fn check_on_host(&mut self, check: Check) -> Run<()> {
        // Messages are read only if they are needed.
        if !matches!(check, Check::Require | Check::Fail | Check::Undefined) {
            self.widen_top(check.operands().len())?;
        }
        let range = self.range(check.operands().len() as u32, 0)?;
        let operands: Vec<Entry> = self.stack.drain(range).collect();
        self.count(operands[0].len())?;
        let wrong = || Fault::at_run_time(format!("the operands of CHECK \"{}\" do not fit", check.name()));
        match (check, &operands[..]) {
            (Check::Index, [Entry::Int(indices), Entry::Int(lengths)]) if indices.len() == lengths.len() => {
                indices.iter().zip(lengths.iter()).try_for_each(|(&index, &length)| place(index, length))
            }
            (Check::Indices, [Entry::Int(indices), Entry::Segdes(segments), Entry::Int(lengths)])
                if fits(indices, segments, lengths) =>
            {
                let mut parts = segments.ranges().zip(lengths.iter());
                parts.try_for_each(|(range, &length)| indices[range].iter().try_for_each(|&index| place(index, length)))
            }
            (Check::Each | Check::Put | Check::Unpack, [Entry::Int(a), Entry::Int(b)]) if a.len() == b.len() => {
                let Some((a, b)) = a.iter().zip(b.iter()).find(|(a, b)| a != b) else { return Ok(()) };
                let what = match check {
                    Check::Each => "the sequences of an apply-to-each",
                    Check::Put => "`put`: values and indices",
                    _ => "`unpack`: values and true flags",
                };
                Fault::at_run_time(format!("{what} have different lengths: {a} and {b}"))
            }
            (Check::Count, [Entry::Int(counts)]) => match counts.iter().find(|count| **count < 0) {
                Some(count) => Fault::at_run_time(format!("`dist`: a sequence cannot have {count} elements")),
                None => Ok(()),
            },
            (Check::Length, [Entry::Int(lengths)]) => match lengths.iter().find(|length| **length < 0) {
                Some(&length) => {
                    let is_wide = self.world.options().widths.wide_int;
                    self.world.out_of_memory(if is_wide { length as usize } else { length as u32 as usize })
                }
                None => Ok(()),
            },
            (Check::Total, [Entry::Int(lengths), Entry::Segdes(segments)]) if lengths.len() == segments.total => {
                let largest = self.world.largest_int() as usize;
                for range in segments.ranges() {
                    let total = lengths[range].iter().fold(0usize, |sum, &length| sum.saturating_add(length as usize));
                    if total > largest {
                        return self.world.out_of_memory(total);
                    }
                }
                Ok(())
            }
            (Check::Range, [Entry::Int(starts), Entry::Int(steps), Entry::Int(ends)])
                if starts.len() == steps.len() && starts.len() == ends.len() =>
            {
                self.check_ranges(starts, steps, ends)
            }
            (Check::Part, [Entry::Int(starts), Entry::Int(ends), Entry::Int(lengths)])
                if starts.len() == ends.len() && starts.len() == lengths.len() =>
            {
                for ((&start, &end), &length) in starts.iter().zip(ends.iter()).zip(lengths.iter()) {
                    part(start, end, length)?;
                }
                Ok(())
            }
            (Check::Partition, [Entry::Int(pieces), Entry::Segdes(segments), Entry::Int(lengths)])
                if fits(pieces, segments, lengths) =>
            {
                for (range, &length) in segments.ranges().zip(lengths.iter()) {
                    let pieces = &pieces[range];
                    let sum = pieces.iter().fold(0i64, |sum, &piece| sum.saturating_add(piece));
                    if sum != length || pieces.iter().any(|piece| *piece < 0) {
                        return Fault::at_run_time(format!(
                            "`partition`: the lengths do not add up to the {length} elements of the sequence"
                        ));
                    }
                }
                Ok(())
            }
            (Check::Permutation, [Entry::Int(indices), Entry::Segdes(segments), Entry::Int(lengths)])
                if fits(indices, segments, lengths) =>
            {
                segments.ranges().zip(lengths.iter()).try_for_each(|(range, &length)| permutation(&indices[range], length))
            }
            (Check::Code, [Entry::Int(values)]) => match values.iter().find(|value| !(0..256).contains(*value)) {
                Some(code) => Fault::at_run_time(format!("{code} is not the code of a character: codes are 0 to 255")),
                None => Ok(()),
            },
            (Check::Require, [Entry::Bool(conditions), Entry::Int(starts), Entry::Int(lengths), pool])
                if conditions.len() == starts.len() && starts.len() == lengths.len() =>
            {
                match conditions.iter().position(|holds| !holds) {
                    Some(index) => Fault::at_run_time(message(starts[index], lengths[index], pool)),
                    None => Ok(()),
                }
            }
            (Check::Fail | Check::Undefined, [Entry::Int(starts), Entry::Int(lengths), pool])
                if starts.len() == lengths.len() =>
            {
                let code = if check == Check::Fail { codes::USER_ERROR } else { codes::RUN_TIME };
                match (starts.first(), lengths.first()) {
                    (Some(&start), Some(&length)) => Err(Fault::new(code, message(start, length, pool))),
                    _ => Ok(()),
                }
            }
            _ => wrong(),
        }
    }
}

impl Machine<'_, '_, '_> {
    /// Checks starts, steps and ends of ranges.
    pub(super) fn check_ranges(&mut self, starts: &[i64], steps: &[i64], ends: &[i64]) -> Run<()> {
        for ((&start, &step), &end) in starts.iter().zip(steps).zip(ends) {
            if step < 1 {
                return Fault::at_run_time(format!("the step of a range must be positive, it is {step}"));
            }
            if start > end {
                return Fault::at_run_time(format!("a range cannot go from {start} down to {end}"));
            }
            // A length beyond the range of ints exceeds every limit on memory.
            let length = end.abs_diff(start).div_ceil(step as u64);
            if length > self.world.largest_int() as u64 {
                return self.world.out_of_memory(length as usize);
            }
        }
        Ok(())
    }
}

fn fits(values: &[i64], segments: &Segments, lengths: &[i64]) -> bool {
    values.len() == segments.total && lengths.len() == segments.lengths.len()
}

/// Returns a text from a pool.
fn message(start: i64, length: i64, pool: &Entry) -> String {
    let pool = pool.text().unwrap_or_default();
    let start = usize::try_from(start).unwrap_or(0).min(pool.len());
    let length = usize::try_from(length).unwrap_or(0).min(pool.len() - start);
    String::from_utf8_lossy(&pool[start..start + length]).into_owned()
}

/// Checks the start and the end of a part of a sequence.
pub(super) fn part(start: i64, end: i64, length: i64) -> Run<()> {
    if start < 0 || start > end || end > length {
        return Fault::at_run_time(format!("elements {start} to {end} are outside of a sequence of {length}"));
    }
    Ok(())
}

/// Checks an index of a sequence.
pub(super) fn place(index: i64, length: i64) -> Run<()> {
    match length {
        _ if (0..length).contains(&index) => Ok(()),
        0 => Fault::at_run_time(format!("the index {index} is outside of an empty sequence")),
        _ => Fault::at_run_time(format!("the index {index} is outside of a sequence of {length} (0 to {})", length - 1)),
    }
}

fn permutation(indices: &[i64], length: i64) -> Run<()> {
    if indices.len() as i64 != length {
        let (a, b) = (length, indices.len());
        return Fault::at_run_time(format!("`permute`: values and indices have different lengths: {a} and {b}"));
    }
    let mut seen = vec![false; indices.len()];
    for &index in indices {
        place(index, length)?;
        if std::mem::replace(&mut seen[index as usize], true) {
            return Fault::at_run_time(format!("`permute`: the index {index} occurs twice"));
        }
    }
    Ok(())
}
