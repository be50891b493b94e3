//! Primitives on sequences.

use super::fault::Run;
use super::{Evaluation, Value, conditions};
use crate::core::Primitive;
use crate::primitives::Fold;
use crate::types::{Base, Type, TypeId};
use crate::vcode::Combination;
use std::cmp::Ordering;

impl Evaluation<'_> {
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
                    return Ok(Value::Char(text[conditions::index(index.int(), text.len())?]));
                }
                let values = values.elements();
                Ok(values[conditions::index(index.int(), values.len())?].clone())
            }
            Primitive::Rep => {
                let (values, value, index) = argument.three();
                let mut copy = values.elements().to_vec();
                let index = conditions::index(index.int(), copy.len())?;
                copy[index] = value.clone();
                self.seq(copy)
            }
            Primitive::Iseq => self.iseq(argument.three()),
            Primitive::Permute => self.permute(argument.parts()),
            Primitive::Get => {
                let (values, indices) = argument.parts();
                if let Some(text) = values.characters() {
                    let get = |index: &Value| conditions::index(index.int(), text.len()).map(|index| text[index]);
                    let taken = indices.elements().iter().map(get).collect::<Run<Vec<u8>>>()?;
                    return self.text(&taken);
                }
                let values = values.elements();
                let get = |index: &Value| conditions::index(index.int(), values.len()).map(|index| values[index].clone());
                let taken = indices.elements().iter().map(get).collect::<Run<Vec<Value>>>()?;
                self.seq(taken)
            }
            Primitive::Put => {
                let (values, indices, destination) = argument.three();
                let (values, indices) = (values.elements(), indices.elements());
                conditions::same_length("`put`: values and indices", values.len(), indices.len())?;
                let mut copy = destination.elements().to_vec();
                for (value, index) in values.iter().zip(indices) {
                    let index = conditions::index(index.int(), copy.len())?;
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
                conditions::part(start, end, values.length() as i64)?;
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
        let count = conditions::count(who, count)?;
        let is_counted = count <= self.widths().largest_int() as usize;
        if is_counted && self.state.meter.allows(count, sample) { Ok(count) } else { self.out_of_memory(count) }
    }

    fn iseq(&mut self, (start, step, end): (&Value, &Value, &Value)) -> Run<Value> {
        let (start, step, end) = (start.int(), step.int(), end.int());
        let length = conditions::range(start, step, end)?;
        let count = self.count(i64::try_from(length).unwrap_or(i64::MAX), "a range", None)?;
        self.seq((0..count as i64).map(|index| Value::Int(start + index * step)).collect())
    }

    fn permute(&mut self, (values, indices): (&Value, &Value)) -> Run<Value> {
        let (values, indices) = (values.elements(), indices.elements());
        let places = conditions::permutation(indices.iter().map(Value::int), values.len())?;
        let mut target = values.to_vec();
        for (value, place) in values.iter().zip(places) {
            target[place] = value.clone();
        }
        self.seq(target)
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
        conditions::partition(lengths.iter().map(Value::int), values.len() as i64)?;
        let (mut parts, mut rest) = (Vec::with_capacity(lengths.len()), values);
        for length in lengths {
            let (part, others) = rest.split_at(length.int() as usize);
            parts.push(self.seq(part.to_vec())?);
            rest = others;
        }
        self.seq(parts)
    }

    fn unpack(&mut self, (values, flags): (&Value, &Value), ty: TypeId) -> Run<Value> {
        let (values, flags) = (values.elements(), flags.elements());
        let set = flags.iter().filter(|flag| flag.bool()).count();
        conditions::same_length("`unpack`: values and true flags", values.len(), set)?;
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

    /// Returns the result of a fold of no elements.
    fn neutral_of_fold(&self, fold: Fold, base: Base) -> Value {
        let neutral = fold.neutral(self.widths());
        match base {
            Base::Int => Value::Int(neutral.int),
            Base::Float => Value::Float(neutral.float),
            Base::Bool => Value::Bool(neutral.bool),
            Base::Char => Value::Char(fold.char()),
        }
    }

    fn combine(&self, fold: Fold, a: &Value, b: &Value) -> Run<Value> {
        match fold.combination() {
            Combination::Operation(operation) => self.elementwise(operation, a, b),
            Combination::Extremum(comparison) => {
                let is_second = self.elementwise(comparison, b, a)?.bool();
                Ok(if is_second { b } else { a }.clone())
            }
        }
    }

    pub(super) fn scan(&mut self, fold: Fold, argument: &Value, ty: TypeId) -> Run<Value> {
        let mut sum = self.neutral_of_fold(fold, self.element(ty));
        let mut sums = Vec::with_capacity(argument.elements().len());
        for value in argument.elements() {
            let next = self.combine(fold, &sum, value)?;
            sums.push(std::mem::replace(&mut sum, next));
        }
        self.seq(sums)
    }

    pub(super) fn reduce(&mut self, fold: Fold, argument: &Value, ty: TypeId) -> Run<Value> {
        let (mut sum, rest) = match (fold.combination(), argument.elements().split_first()) {
            (Combination::Extremum(_), Some((first, rest))) => (first.clone(), rest),
            (_, _) => (self.neutral_of_fold(fold, self.element(ty)), argument.elements()),
        };
        for value in rest {
            sum = self.combine(fold, &sum, value)?;
        }
        Ok(sum)
    }
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
