//! Instructions that work on segments: scans, reductions, permutations, distribution, packing.

use super::element::slice;
use super::{Machine, wrong_lengths, wrong_types};
use crate::eval::{Run, conditions};
use crate::run::{Entry, Segments};
use crate::vcode::{Op, Type};
use std::cmp::Ordering;

impl Machine<'_, '_, '_> {
    pub(super) fn segment(&mut self, op: Op, ty: Type) -> Run<Vec<Entry>> {
        let range = self.range(op.operands().len() as u32, 0)?;
        let operands: Vec<Entry> = self.stack.drain(range).collect();
        if op.choice().allows(ty) && operands[0].ty() != Some(ty) {
            return wrong_types(op, &operands);
        }
        let result = match (op, &operands[..]) {
            (Op::Pack, [values, Entry::Bool(flags), Entry::Segdes(segments)]) => {
                return self.pack(values, flags, segments);
            }
            (Op::Length, [values]) => self.ints(vec![values.len() as i64]),
            (Op::MakeSegdes, [Entry::Int(lengths)]) => self.segdes(lengths.to_vec()),
            (Op::Lengths, [Entry::Segdes(segments)]) => self.ints(segments.lengths.iter().map(|&length| length as i64).collect()),
            (Op::Index, [Entry::Int(starts), Entry::Int(steps), Entry::Segdes(segments)]) => {
                fits(op, starts.len(), segments.lengths.len())?;
                fits(op, steps.len(), segments.lengths.len())?;
                self.reserve(segments.total)?;
                let mut out = Vec::with_capacity(segments.total);
                for (index, &length) in segments.lengths.iter().enumerate() {
                    let (mut next, step) = (starts[index], steps[index]);
                    for _ in 0..length {
                        out.push(self.world.wrap(next));
                        next = next.wrapping_add(step);
                    }
                }
                self.ints(out)
            }
            (Op::Distribute, [values, Entry::Segdes(segments)]) => {
                fits(op, values.len(), segments.lengths.len())?;
                self.reserve(segments.total)?;
                match values {
                    Entry::Int(values) => self.ints(distribute(values, segments)),
                    Entry::Bytes(values) => self.bytes(distribute(values, segments).into()),
                    Entry::Float(values) => self.floats(distribute(values, segments)),
                    Entry::Bool(values) => self.bools(distribute(values, segments)),
                    _ => wrong_types(op, &operands),
                }
            }
            (Op::RankUp | Op::RankDown, [values, Entry::Segdes(segments)]) => {
                fits(op, values.len(), segments.total)?;
                let down = op == Op::RankDown;
                match values {
                    Entry::Int(values) => self.ints(rank(values, segments, down, i64::cmp)),
                    Entry::Float(values) => {
                        // Zeros of both signs are equal.
                        let order = |a: &f64, b: &f64| (a + 0.0).total_cmp(&(b + 0.0));
                        self.ints(rank(values, segments, down, order))
                    }
                    _ => wrong_types(op, &operands),
                }
            }
            (_, [values, Entry::Segdes(segments)]) => self.fold(op, values, segments),
            (_, [values, ..]) => match values {
                Entry::Int(_) => self.moved(op, &operands, ints, 0, Machine::ints),
                Entry::Bytes(_) => self.moved(op, &operands, bytes, 0, |machine, values| machine.bytes(values.into())),
                Entry::Float(_) => self.moved(op, &operands, floats, 0.0, Machine::floats),
                Entry::Bool(_) => self.moved(op, &operands, bools, false, Machine::bools),
                Entry::Segdes(_) | Entry::Pair(_) | Entry::Device(_) | Entry::DeviceSegdes(_) => wrong_types(op, &operands),
            },
            (_, []) => wrong_types(op, &operands),
        };
        Ok(vec![result?])
    }

    fn pack(&mut self, values: &Entry, flags: &[bool], segments: &Segments) -> Run<Vec<Entry>> {
        fits(Op::Pack, values.len(), flags.len())?;
        fits(Op::Pack, values.len(), segments.total)?;
        let lengths = segments.ranges().map(|range| flags[range].iter().filter(|flag| **flag).count()).collect();
        let packed = match values {
            Entry::Int(values) => self.ints(kept(values, flags))?,
            Entry::Bytes(values) => self.bytes(kept(values, flags).into())?,
            Entry::Float(values) => self.floats(kept(values, flags))?,
            Entry::Bool(values) => self.bools(kept(values, flags))?,
            Entry::Segdes(_) | Entry::Pair(_) | Entry::Device(_) | Entry::DeviceSegdes(_) => {
                return wrong_types(Op::Pack, std::slice::from_ref(values));
            }
        };
        Ok(vec![packed, self.segments(lengths)?])
    }

    /// Computes scans and reductions.
    fn fold(&mut self, op: Op, values: &Entry, segments: &Segments) -> Run<Entry> {
        fits(op, values.len(), segments.total)?;
        let computed = slice(values)
            .zip(op.fold())
            .and_then(|(elements, (fold, is_scan))| fold.of_segments(self.world.widths(), &elements, segments.ranges(), is_scan));
        match computed {
            Some(elements) => self.computed(elements),
            None => wrong_types(op, std::slice::from_ref(values)),
        }
    }

    /// Computes permutations, `EXTRACT` and `REPLACE`. `part` returns the elements of an entry of the type.
    fn moved<T: Copy>(
        &mut self,
        op: Op,
        operands: &[Entry],
        part: fn(&Entry) -> Option<&[T]>,
        nothing: T,
        entry: fn(&mut Self, Vec<T>) -> Run<Entry>,
    ) -> Run<Entry> {
        let Some(values) = part(&operands[0]) else { return wrong_types(op, operands) };
        let out = match (op, &operands[1..]) {
            (Op::Permute, [Entry::Int(indices), Entry::Segdes(segments)]) => {
                let target = vec![nothing; segments.total];
                scatter(op, (values, indices, None), (segments, segments), target)
            }
            (Op::DefaultPermute, [Entry::Int(indices), target, Entry::Segdes(from), Entry::Segdes(to)]) => {
                let Some(target) = part(target) else { return wrong_types(op, operands) };
                scatter(op, (values, indices, None), (from, to), target.to_vec())
            }
            (Op::FlagPermute, [Entry::Int(indices), Entry::Bool(flags), Entry::Segdes(from), Entry::Segdes(to)]) => {
                self.reserve(to.total)?;
                scatter(op, (values, indices, Some(flags)), (from, to), vec![nothing; to.total])
            }
            (
                Op::DefaultFlagPermute,
                [Entry::Int(indices), Entry::Bool(flags), target, Entry::Segdes(from), Entry::Segdes(to)],
            ) => {
                let Some(target) = part(target) else { return wrong_types(op, operands) };
                scatter(op, (values, indices, Some(flags)), (from, to), target.to_vec())
            }
            (Op::BackPermute, [Entry::Int(indices), Entry::Segdes(from), Entry::Segdes(to)]) => {
                self.reserve(to.total)?;
                gather(op, (values, indices, None), (from, to), nothing)
            }
            (Op::BackFlagPermute, [Entry::Int(indices), Entry::Bool(flags), Entry::Segdes(from), Entry::Segdes(to)]) => {
                self.reserve(to.total)?;
                gather(op, (values, indices, Some(flags)), (from, to), nothing)
            }
            (Op::Extract, [Entry::Int(indices), Entry::Segdes(segments)]) => {
                fits(op, values.len(), segments.total)?;
                fits(op, indices.len(), segments.lengths.len())?;
                let places = segments.ranges().zip(indices.iter());
                places.map(|(range, &index)| Ok(values[range.start + conditions::index(index, range.len())?])).collect()
            }
            (Op::Replace, [Entry::Int(indices), new, Entry::Segdes(segments)]) => {
                let Some(new) = part(new) else { return wrong_types(op, operands) };
                fits(op, values.len(), segments.total)?;
                fits(op, indices.len(), segments.lengths.len())?;
                fits(op, indices.len(), new.len())?;
                let mut out = values.to_vec();
                for ((range, &index), &value) in segments.ranges().zip(indices.iter()).zip(new) {
                    out[range.start + conditions::index(index, range.len())?] = value;
                }
                Ok(out)
            }
            _ => return wrong_types(op, operands),
        };
        entry(self, out?)
    }
}

fn ints(entry: &Entry) -> Option<&[i64]> {
    if let Entry::Int(values) = entry { Some(values) } else { None }
}

fn bytes(entry: &Entry) -> Option<&[u8]> {
    if let Entry::Bytes(values) = entry { Some(values) } else { None }
}

fn floats(entry: &Entry) -> Option<&[f64]> {
    if let Entry::Float(values) = entry { Some(values) } else { None }
}

fn bools(entry: &Entry) -> Option<&[bool]> {
    if let Entry::Bool(values) = entry { Some(values) } else { None }
}

fn fits(op: Op, a: usize, b: usize) -> Run<()> {
    if a == b { Ok(()) } else { wrong_lengths(op, a, b) }
}

type Moves<'a, T> = (&'a [T], &'a [i64], Option<&'a [bool]>);

fn scatter<T: Copy>(
    op: Op,
    (values, indices, flags): Moves<'_, T>,
    (from, to): (&Segments, &Segments),
    mut target: Vec<T>,
) -> Run<Vec<T>> {
    fits(op, values.len(), from.total)?;
    fits(op, indices.len(), from.total)?;
    fits(op, flags.map_or(from.total, <[bool]>::len), from.total)?;
    fits(op, target.len(), to.total)?;
    fits(op, from.lengths.len(), to.lengths.len())?;
    for (source, range) in from.ranges().zip(to.ranges()) {
        for k in source {
            if flags.is_none_or(|flags| flags[k]) {
                target[range.start + conditions::index(indices[k], range.len())?] = values[k];
            }
        }
    }
    Ok(target)
}

fn gather<T: Copy>(
    op: Op,
    (values, indices, flags): Moves<'_, T>,
    (from, to): (&Segments, &Segments),
    nothing: T,
) -> Run<Vec<T>> {
    fits(op, values.len(), from.total)?;
    fits(op, indices.len(), to.total)?;
    fits(op, flags.map_or(to.total, <[bool]>::len), to.total)?;
    fits(op, from.lengths.len(), to.lengths.len())?;
    let mut out = Vec::with_capacity(to.total);
    for (source, range) in from.ranges().zip(to.ranges()) {
        for k in range {
            let taken = flags.is_none_or(|flags| flags[k]);
            out.push(if taken { values[source.start + conditions::index(indices[k], source.len())?] } else { nothing });
        }
    }
    Ok(out)
}

fn distribute<T: Copy>(values: &[T], segments: &Segments) -> Vec<T> {
    let mut out = Vec::with_capacity(segments.total);
    for (&value, &length) in values.iter().zip(&segments.lengths) {
        out.extend(std::iter::repeat_n(value, length));
    }
    out
}

fn kept<T: Copy>(values: &[T], flags: &[bool]) -> Vec<T> {
    values.iter().zip(flags).filter(|(_, flag)| **flag).map(|(&value, _)| value).collect()
}

fn rank<T>(values: &[T], segments: &Segments, down: bool, compare: impl Fn(&T, &T) -> Ordering) -> Vec<i64> {
    let mut ranks = vec![0; values.len()];
    for range in segments.ranges() {
        let mut order: Vec<usize> = range.collect();
        order.sort_by(|&a, &b| {
            let order = compare(&values[a], &values[b]);
            if down { order.reverse() } else { order }
        });
        for (rank, &index) in order.iter().enumerate() {
            ranks[index] = rank as i64;
        }
    }
    ranks
}
