//! Conditions on operands, with the messages of the evaluator.

use super::Machine;
use crate::codes;
use crate::eval::{Fault, Run, conditions};
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
                conditions::same_length(what, a, b)
            }
            (Check::Count, [Entry::Int(counts)]) => {
                counts.iter().try_for_each(|count| conditions::count("`dist`", *count).map(drop))
            }
            (Check::Length, [Entry::Int(lengths)]) => match lengths.iter().find(|length| **length < 0) {
                Some(&length) => {
                    let is_wide = self.world.options().widths.wide_int;
                    self.world.out_of_memory(if is_wide { length as usize } else { length as u32 as usize })
                }
                None => Ok(()),
            },
            (Check::Total, [Entry::Int(lengths), Entry::Segdes(segments)]) if lengths.len() == segments.total => {
                let largest = self.world.widths().largest_int() as usize;
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
                    conditions::part(start, end, length)?;
                }
                Ok(())
            }
            (Check::Partition, [Entry::Int(pieces), Entry::Segdes(segments), Entry::Int(lengths)])
                if fits(pieces, segments, lengths) =>
            {
                for (range, &length) in segments.ranges().zip(lengths.iter()) {
                    conditions::partition(pieces[range].iter().copied(), length)?;
                }
                Ok(())
            }
            (Check::Permutation, [Entry::Int(indices), Entry::Segdes(segments), Entry::Int(lengths)])
                if fits(indices, segments, lengths) =>
            {
                segments.ranges().zip(lengths.iter()).try_for_each(|(range, &length)| {
                    let length = usize::try_from(length).unwrap_or(0);
                    conditions::permutation(indices[range].iter().copied(), length).map(drop)
                })
            }
            (Check::Code, [Entry::Int(codes)]) => codes.iter().try_for_each(|code| conditions::character(*code).map(drop)),
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
            // A length beyond the range of ints exceeds every limit on memory.
            let length = conditions::range(start, step, end)?;
            if length > self.world.widths().largest_int() as u64 {
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

/// Checks an index of a sequence.
pub(super) fn place(index: i64, length: i64) -> Run<()> {
    conditions::index(index, usize::try_from(length).unwrap_or(0)).map(drop)
}
