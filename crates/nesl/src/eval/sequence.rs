//! Primitives on sequences.

use super::fault::{Fault, Run};
use super::number::largest_float;
use super::scalar::{compare, logic};
use super::{Machine, Value};
use crate::core::Primitive;
use crate::types::{Base, Type, TypeId};
use std::cmp::Ordering;

impl Machine<'_> {
    pub(super) fn sequence(&mut self, primitive: Primitive, argument: Value, ty: TypeId) -> Run<Value> {
        match primitive {
            Primitive::Length => Ok(Value::Int(argument.length() as i64)),
            Primitive::Dist => {
                let (value, count) = argument.parts();
                let count = self.count(count.int(), "`dist`", Some(value))?;
                self.seq(vec![value.clone(); count])
            }
            Primitive::Elt => {
                let (values, index) = argument.parts();
                if let Some(text) = values.characters() {
                    return Ok(Value::Char(text[place(index.int(), text.len())?]));
                }
                let values = values.elements();
                Ok(values[place(index.int(), values.len())?].clone())
            }
            Primitive::Rep => {
                let (values, value, index) = argument.three();
                let mut copy = values.elements().to_vec();
                let index = place(index.int(), copy.len())?;
                copy[index] = value.clone();
                self.seq(copy)
            }
            Primitive::Iseq => self.iseq(argument.three()),
            Primitive::Permute => self.permute(argument.parts()),
            Primitive::Get => {
                let (values, indices) = argument.parts();
                if let Some(text) = values.characters() {
                    let get = |index: &Value| place(index.int(), text.len()).map(|index| text[index]);
                    let taken = indices.elements().iter().map(get).collect::<Run<Vec<u8>>>()?;
                    return self.text(&taken);
                }
                let values = values.elements();
                let get = |index: &Value| place(index.int(), values.len()).map(|index| values[index].clone());
                let taken = indices.elements().iter().map(get).collect::<Run<Vec<Value>>>()?;
                self.seq(taken)
            }
            Primitive::Put => {
                let (values, indices, destination) = argument.three();
                let (values, indices) = (values.elements(), indices.elements());
                same_length("`put`: values and indices", values.len(), indices.len())?;
                let mut copy = destination.elements().to_vec();
                for (value, index) in values.iter().zip(indices) {
                    let index = place(index.int(), copy.len())?;
                    copy[index] = value.clone();
                }
                self.seq(copy)
            }
            Primitive::Rank => self.rank(&argument, false),
            Primitive::RankDown => self.rank(&argument, true),
            Primitive::Pack => {
                let kept = argument.elements().iter().map(Value::parts).filter(|(_, flag)| flag.bool());
                let kept = kept.map(|(value, _)| value.clone()).collect();
                self.seq(kept)
            }
            Primitive::Append => {
                let (first, second) = argument.parts();
                if let (Some(first), Some(second)) = (first.characters(), second.characters()) {
                    return self.text(&[&first[..], &second[..]].concat());
                }
                let (first, second) = (first.elements(), second.elements());
                self.count((first.len() + second.len()) as i64, "`++`", first.first().or(second.first()))?;
                self.seq([first, second].concat())
            }
            Primitive::Flatten => {
                let length: usize = argument.elements().iter().map(|values| values.elements().len()).sum();
                let sample = argument.elements().iter().find_map(|values| values.elements().first());
                self.count(length as i64, "`flatten`", sample)?;
                let mut flat = Vec::with_capacity(length);
                argument.elements().iter().for_each(|values| flat.extend_from_slice(values.elements()));
                self.seq(flat)
            }
            Primitive::Partition => self.partition(argument.parts()),
            Primitive::Subseq => {
                let (values, start, end) = argument.three();
                let (start, end) = (start.int(), end.int());
                if start < 0 || start > end || end > values.length() as i64 {
                    return Fault::at_run_time(format!(
                        "elements {start} to {end} are outside of a sequence of {}",
                        values.length()
                    ));
                }
                let part = start as usize..end as usize;
                match values.characters() {
                    Some(text) => self.text(&text[part]),
                    None => self.seq(values.elements()[part].to_vec()),
                }
            }
            _ => self.unpack(argument.parts(), ty),
        }
    }

    /// Checks a number of elements before memory is allocated.
    fn count(&mut self, count: i64, who: &str, sample: Option<&Value>) -> Run<usize> {
        let Ok(count) = usize::try_from(count) else {
            return Fault::at_run_time(format!("{who}: a sequence cannot have {count} elements"));
        };
        let is_counted = count <= self.largest_int() as usize;
        if is_counted && self.state.meter.allows(count, sample) { Ok(count) } else { self.out_of_memory(count) }
    }

    fn iseq(&mut self, (start, step, end): (&Value, &Value, &Value)) -> Run<Value> {
        let (start, step, end) = (start.int(), step.int(), end.int());
        if step < 1 {
            return Fault::at_run_time(format!("the step of a range must be positive, it is {step}"));
        }
        if start > end {
            return Fault::at_run_time(format!("a range cannot go from {start} down to {end}"));
        }
        let length = end.abs_diff(start).div_ceil(step as u64);
        let count = self.count(i64::try_from(length).unwrap_or(i64::MAX), "a range", None)?;
        self.seq((0..count as i64).map(|index| Value::Int(start + index * step)).collect())
    }

    fn permute(&mut self, (values, indices): (&Value, &Value)) -> Run<Value> {
        let (values, indices) = (values.elements(), indices.elements());
        same_length("`permute`: values and indices", values.len(), indices.len())?;
        let mut target: Vec<Option<Value>> = vec![None; values.len()];
        for (value, index) in values.iter().zip(indices) {
            let slot = &mut target[place(index.int(), values.len())?];
            if slot.is_some() {
                return Fault::at_run_time(format!("`permute`: the index {} occurs twice", index.int()));
            }
            *slot = Some(value.clone());
        }
        self.seq(target.into_iter().flatten().collect())
    }

    fn rank(&mut self, values: &Value, descending: bool) -> Run<Value> {
        let values = values.elements();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| {
            let order = total(&values[a], &values[b]);
            if descending { order.reverse() } else { order }
        });
        let mut ranks = vec![Value::Int(0); values.len()];
        for (rank, &index) in order.iter().enumerate() {
            ranks[index] = Value::Int(rank as i64);
        }
        self.seq(ranks)
    }

    fn partition(&mut self, (values, lengths): (&Value, &Value)) -> Run<Value> {
        let (values, lengths) = (values.elements(), lengths.elements());
        let mut parts = Vec::with_capacity(lengths.len());
        let mut at = 0usize;
        for length in lengths {
            let length = usize::try_from(length.int()).ok().filter(|length| *length <= values.len() - at);
            let Some(length) = length else { return wrong_lengths(values.len()) };
            parts.push(self.seq(values[at..at + length].to_vec())?);
            at += length;
        }
        if at == values.len() { self.seq(parts) } else { wrong_lengths(values.len()) }
    }

    fn unpack(&mut self, (values, flags): (&Value, &Value), ty: TypeId) -> Run<Value> {
        let (values, flags) = (values.elements(), flags.elements());
        let set = flags.iter().filter(|flag| flag.bool()).count();
        same_length("`unpack`: values and true flags", values.len(), set)?;
        let filler = match self.env.types[ty] {
            Type::Pair(sequence, _) => match self.env.types[sequence] {
                Type::Seq(element) => self.neutral_of(element)?,
                _ => Value::Int(0),
            },
            _ => Value::Int(0),
        };
        let mut next = values.iter();
        let spread = flags.iter().map(|flag| if flag.bool() { next.next().cloned() } else { None });
        let spread = spread.map(|value| value.unwrap_or_else(|| filler.clone())).collect();
        self.seq(spread)
    }

    /// Returns the neutral value of a type.
    fn neutral_of(&mut self, ty: TypeId) -> Run<Value> {
        Ok(match self.env.types[ty].clone() {
            Type::Base(Base::Float) => Value::Float(0.0),
            Type::Base(Base::Bool) => Value::Bool(false),
            Type::Base(Base::Char) => Value::Char(b' '),
            Type::Seq(_) => self.seq(vec![])?,
            Type::Pair(first, rest) => Value::pair(self.neutral_of(first)?, self.neutral_of(rest)?),
            Type::Data(datatype, parts) => {
                let content = self.env.datatypes[datatype].content;
                let content = crate::core::Instantiate::new(&mut self.env.types, &parts).ty(content);
                self.neutral_of(content)?
            }
            Type::Base(Base::Int) | Type::Function { .. } | Type::Variable(_) | Type::Definition(_) | Type::Closure(..) => {
                Value::Int(0)
            }
        })
    }

    /// Returns the base type of the elements of a sequence type.
    fn element(&self, ty: TypeId) -> Base {
        match self.env.types[ty] {
            Type::Seq(element) => match self.env.types[element] {
                Type::Base(base) => base,
                _ => Base::Int,
            },
            _ => Base::Int,
        }
    }

    /// Returns the start value of a scan.
    fn start_of(&self, primitive: Primitive, base: Base) -> Value {
        use Primitive as P;
        match (primitive, base) {
            (P::MaxScan | P::MaxVal, Base::Int) => Value::Int(self.least_int()),
            (P::MinScan | P::MinVal, Base::Int) => Value::Int(self.largest_int()),
            (P::MaxScan | P::MaxVal, Base::Float) => Value::Float(-largest_float()),
            (P::MinScan | P::MinVal, Base::Float) => Value::Float(largest_float()),
            (P::MaxScan | P::MaxVal, Base::Char) => Value::Char(0),
            (P::MinScan | P::MinVal, Base::Char) => Value::Char(255),
            (P::MultScan | P::Product, Base::Float) => Value::Float(1.0),
            (P::MultScan | P::Product, _) => Value::Int(1),
            (P::AndScan | P::All, Base::Bool) => Value::Bool(true),
            (P::AndScan | P::All, _) => Value::Int(-1),
            (_, Base::Bool) => Value::Bool(false),
            (_, Base::Float) => Value::Float(0.0),
            _ => Value::Int(0),
        }
    }

    fn combine(&mut self, primitive: Primitive, a: &Value, b: &Value) -> Run<Value> {
        use Primitive as P;
        Ok(match primitive {
            P::PlusScan | P::Sum => return self.arithmetic(P::Add, (a, b)),
            P::MultScan | P::Product => return self.arithmetic(P::Multiply, (a, b)),
            P::MaxScan | P::MaxVal => if compare(P::Greater, b, a) { b } else { a }.clone(),
            P::MinScan | P::MinVal => if compare(P::Less, b, a) { b } else { a }.clone(),
            P::OrScan | P::Any => logic(P::Or, (a, b)),
            P::AndScan | P::All => logic(P::And, (a, b)),
            _ => logic(P::Xor, (a, b)),
        })
    }

    pub(super) fn scan(&mut self, primitive: Primitive, argument: Value, ty: TypeId) -> Run<Value> {
        let mut sum = self.start_of(primitive, self.element(ty));
        let mut sums = Vec::with_capacity(argument.elements().len());
        for value in argument.elements() {
            let next = self.combine(primitive, &sum, value)?;
            sums.push(std::mem::replace(&mut sum, next));
        }
        self.seq(sums)
    }

    pub(super) fn reduce(&mut self, primitive: Primitive, argument: Value, ty: TypeId) -> Run<Value> {
        let (mut sum, rest) = match (primitive, argument.elements().split_first()) {
            // The extremum of some values is one of them, even if it is beyond the neutral value.
            (Primitive::MaxVal | Primitive::MinVal, Some((first, rest))) => (first.clone(), rest),
            (_, _) => (self.start_of(primitive, self.element(ty)), argument.elements()),
        };
        for value in rest {
            sum = self.combine(primitive, &sum, value)?;
        }
        Ok(sum)
    }
}

/// Checks an index.
fn place(index: i64, length: usize) -> Run<usize> {
    match usize::try_from(index) {
        Ok(place) if place < length => Ok(place),
        _ if length == 0 => Fault::at_run_time(format!("the index {index} is outside of an empty sequence")),
        _ => Fault::at_run_time(format!("the index {index} is outside of a sequence of {length} (0 to {})", length - 1)),
    }
}

fn same_length(what: &str, a: usize, b: usize) -> Run<()> {
    if a == b { Ok(()) } else { Fault::at_run_time(format!("{what} have different lengths: {a} and {b}")) }
}

fn wrong_lengths<T>(length: usize) -> Run<T> {
    Fault::at_run_time(format!("`partition`: the lengths do not add up to the {length} elements of the sequence"))
}

/// Compares two scalars. Floats have IEEE's total order, except that zeros are equal.
fn total(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Char(a), Value::Char(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
        _ => Ordering::Equal,
    }
}
