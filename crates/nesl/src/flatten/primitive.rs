//! Primitives.

use super::value::{Context, Form, Sequence, Val};
use super::{Lowering, internal};
use crate::core::Primitive;
use crate::eval::Run;
use crate::flat::VarId;
use crate::primitives::{Elementwise, Fold};
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::{Check, Combination, Constant, Op, Type};
use std::rc::Rc;

/// Returns the vector of a value of a base type.
fn scalar(value: &Val) -> Run<VarId> {
    match value {
        Val::Base(var) => Ok(*var),
        _ => internal("a scalar was expected"),
    }
}

pub(super) fn sequence(value: &Val) -> Run<Rc<Sequence>> {
    match value {
        Val::Seq(seq) => Ok(seq.clone()),
        _ => internal("a sequence was expected"),
    }
}

fn two(value: &Val) -> Run<(Val, Val)> {
    match value {
        Val::Pair(parts) => Ok((parts.0.clone(), parts.1.clone())),
        _ => internal("a pair was expected"),
    }
}

fn three(value: &Val) -> Run<(Val, Val, Val)> {
    let (first, rest) = two(value)?;
    let (second, third) = two(&rest)?;
    Ok((first, second, third))
}

impl Lowering<'_, '_> {
    pub(super) fn primitive(&mut self, primitive: Primitive, argument: Val, ty: TypeId, result: TypeId) -> Run<Val> {
        use Primitive as P;
        let context = self.context();
        match primitive {
            P::Elementwise(operation) => {
                let op = Op::from(operation);
                let operands = match op.operands().len() {
                    2 => {
                        let (a, b) = two(&argument)?;
                        vec![scalar(&a)?, scalar(&b)?]
                    }
                    _ => vec![scalar(&argument)?],
                };
                let ty = self.b.ty_of(operands[0]);
                Ok(Val::Base(self.b.element(op, ty, &operands)))
            }
            P::Negate => {
                let a = scalar(&argument)?;
                let ty = self.b.ty_of(a);
                let zero = self.constant(super::value::zero(ty), context);
                Ok(Val::Base(self.b.element(Op::Subtract, ty, &[zero, a])))
            }
            P::CharCode => Ok(argument),
            P::CodeChar => {
                let code = scalar(&argument)?;
                self.b.check(Check::Code, &[code]);
                // The mask makes known that the results are bytes.
                let mask = self.int(255, context);
                Ok(Val::Base(self.b.element(Op::And, Type::Int, &[code, mask])))
            }
            P::IntToAny | P::AsFloat => {
                let value = if primitive == P::AsFloat { argument } else { two(&argument)?.0 };
                let (var, base) = (scalar(&value)?, self.base(result));
                if base == Some(Base::Float) && self.b.ty_of(var) == Type::Int {
                    return Ok(Val::Base(self.b.element(Op::IntToFloat, Type::Int, &[var])));
                }
                Ok(value)
            }
            P::FloatToAny => match self.base(result) {
                Some(Base::Int) => Ok(self.foreign("float_to_any", &argument, ty, result)),
                _ => Ok(two(&argument)?.0),
            },
            P::Rand => match self.base(ty) {
                Some(Base::Int) => Ok(Val::Base(self.b.element(Op::Random, Type::Int, &[scalar(&argument)?]))),
                _ => Ok(self.foreign("rand", &argument, ty, result)),
            },
            P::Eql => {
                let (a, b) = two(&argument)?;
                Ok(Val::Base(self.equal(&a, &b, context)?))
            }
            P::Identity => {
                let content = self.c.resolve(ty);
                match self.c.env.types[content] {
                    Nesl::Function { .. } => Ok(argument),
                    _ => self.neutral(ty, context),
                }
            }
            P::HashCode => Ok(Val::Base(self.hash(&argument, context)?)),
            P::Require => {
                let (holds, text) = two(&argument)?;
                let (starts, lengths, pool) = self.text(&text)?;
                self.b.check(Check::Require, &[scalar(&holds)?, starts, lengths, pool]);
                Ok(Val::Base(self.constant(Constant::Bool([true].into()), context)))
            }
            P::Fail => {
                self.fail(Check::Fail, &argument)?;
                Ok(Val::Base(self.constant(Constant::Bool([true].into()), context)))
            }
            P::Length => {
                let seq = sequence(&argument)?;
                Ok(Val::Base(self.lengths(&seq)))
            }
            P::Dist => self.dist(&argument),
            P::Elt => self.elt(&argument),
            P::Rep => self.rep(&argument),
            P::Iseq => self.iseq(&argument, ty, result),
            P::Permute => self.permute(&argument),
            P::Get => self.get(&argument),
            P::Put => self.put(&argument),
            P::Rank | P::RankDown => {
                let seq = sequence(&argument)?;
                let (segments, elements, pool) = self.dense(&seq, context);
                let op = if primitive == P::Rank { Op::RankUp } else { Op::RankDown };
                let ranks = self.b.scan(op, scalar(&elements)?, segments);
                Ok(Val::seq(Form::Dense(segments), Val::Base(ranks), pool))
            }
            P::Pack => {
                let seq = sequence(&argument)?;
                let (segments, elements, pool) = self.dense(&seq, context);
                let (values, flags) = two(&elements)?;
                Ok(self.filter(&values, scalar(&flags)?, segments, pool))
            }
            P::Append => self.append(&argument),
            P::Flatten => self.flatten(&argument),
            P::Partition => self.partition(&argument),
            P::Subseq => {
                let (values, start, end) = three(&argument)?;
                let (values, start, end) = (sequence(&values)?, scalar(&start)?, scalar(&end)?);
                let (starts, lengths) = self.starts_and_lengths(&values, context);
                self.b.check(Check::Part, &[start, end, lengths]);
                let starts = self.b.element(Op::Add, Type::Int, &[starts, start]);
                let lengths = self.b.element(Op::Subtract, Type::Int, &[end, start]);
                Ok(Val::seq(Form::Virtual(starts, lengths), values.elements.clone(), values.pool))
            }
            P::Unpack => self.unpack(&argument, ty),
            P::Scan(fold) => self.scan(fold, &argument, result),
            P::Reduce(fold) => self.reduce(fold, &argument, result),
            P::Show
            | P::Digits
            | P::Decimal
            | P::RandSeed
            | P::PrintString
            | P::Open
            | P::Close
            | P::Write
            | P::Read
            | P::WriteObject
            | P::ReadObject
            | P::ReadNumbers
            | P::ReadTable
            | P::ReadArray
            | P::DataText
            | P::Spawn
            | P::EnvironmentVariable
            | P::StartTimer
            | P::StopTimer => Ok(self.foreign(primitive.name(), &argument, ty, result)),
        }
    }

    fn dist(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (value, count) = two(argument)?;
        let count = scalar(&count)?;
        self.b.check(Check::Count, &[count]);
        let segments = self.b.make_segdes(count);
        let pool = self.pool(segments, context);
        let elements = self.distribute(&value, context, segments, pool);
        Ok(Val::seq(Form::Dense(segments), elements, pool))
    }

    pub(super) fn elt(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (values, index) = two(argument)?;
        let (values, index) = (sequence(&values)?, scalar(&index)?);
        let (starts, lengths) = self.starts_and_lengths(&values, context);
        self.b.check(Check::Index, &[index, lengths]);
        let index = self.b.element(Op::Add, Type::Int, &[starts, index]);
        Ok(self.gather(&values.elements, values.pool, index, context))
    }

    fn rep(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (values, value, index) = three(argument)?;
        let (values, index) = (sequence(&values)?, scalar(&index)?);
        let (segments, elements, pool) = self.dense(&values, context);
        let lengths = self.b.lengths(segments);
        self.b.check(Check::Index, &[index, lengths]);
        let starts = self.offsets(lengths, context);
        let index = self.b.element(Op::Add, Type::Int, &[starts, index]);
        let elements = self.place(Some(&elements), &[(value, context, index)], pool);
        Ok(Val::seq(Form::Dense(segments), elements, pool))
    }

    fn iseq(&mut self, argument: &Val, ty: TypeId, result: TypeId) -> Run<Val> {
        let context = self.context();
        let (start, step, end) = three(argument)?;
        let (start, step, end) = (scalar(&start)?, scalar(&step)?, scalar(&end)?);
        if !self.b.is_int(step, 1) {
            return Ok(self.foreign("iseq", argument, ty, result));
        }
        self.b.check(Check::Range, &[start, step, end]);
        let lengths = self.b.element(Op::Subtract, Type::Int, &[end, start]);
        let segments = self.b.make_segdes(lengths);
        let pool = self.pool(segments, context);
        let elements = self.b.index(start, step, segments, pool.space);
        Ok(Val::seq(Form::Dense(segments), Val::Base(elements), pool))
    }

    fn permute(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (values, indices) = two(argument)?;
        let (values, indices) = (sequence(&values)?, sequence(&indices)?);
        let lengths = self.lengths(&values);
        let (_, index, other) = self.dense(&indices, context);
        let index = scalar(&index)?;
        let at = self.dense(&indices, context).0;
        self.b.check(Check::Permutation, &[index, at, lengths]);
        let (segments, elements, pool) = self.dense(&values, context);
        self.b.join_spaces(pool.space, other.space);
        let elements = self.map(&elements, pool, &mut |this, var| {
            let ty = this.b.ty_of(var);
            this.b.vector(Op::Permute, ty, &[var, index, segments], pool.space)
        });
        Ok(Val::seq(Form::Dense(segments), elements, pool))
    }

    fn get(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (values, indices) = two(argument)?;
        let (values, indices) = (sequence(&values)?, sequence(&indices)?);
        let (starts, lengths) = self.starts_and_lengths(&values, context);
        let (segments, index, pool) = self.dense(&indices, context);
        let index = scalar(&index)?;
        self.b.check(Check::Indices, &[index, segments, lengths]);
        let starts = self.spread(starts, segments, pool);
        let index = self.b.element(Op::Add, Type::Int, &[index, starts]);
        let elements = self.gather(&values.elements, values.pool, index, pool);
        Ok(Val::seq(Form::Dense(segments), elements, pool))
    }

    /// Copies scalars of a context to the elements of its segments; a constant stays a constant.
    fn spread(&mut self, var: VarId, segments: VarId, pool: Context) -> VarId {
        match self.b.scalar_of(var) {
            Some(constant) => self.constant(constant, pool),
            None => self.b.dist(var, segments, pool.space),
        }
    }

    fn put(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (values, indices, into) = three(argument)?;
        let (values, indices, into) = (sequence(&values)?, sequence(&indices)?, sequence(&into)?);
        let (a, b) = (self.lengths(&values), self.lengths(&indices));
        if a != b {
            self.b.check(Check::Put, &[a, b]);
        }
        let lengths = self.lengths(&into);
        let (segments, index, pool) = self.dense(&indices, context);
        let index = scalar(&index)?;
        self.b.check(Check::Indices, &[index, segments, lengths]);
        let (_, elements, other) = self.dense(&values, context);
        self.b.join_spaces(pool.space, other.space);
        let (target, base, whole) = self.dense(&into, context);
        let starts = self.offsets(lengths, context);
        let starts = self.spread(starts, segments, pool);
        let index = self.b.element(Op::Add, Type::Int, &[index, starts]);
        let elements = self.place(Some(&base), &[(elements, pool, index)], whole);
        Ok(Val::seq(Form::Dense(target), elements, whole))
    }

    pub(super) fn append(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (a, b) = two(argument)?;
        let (a, b) = (sequence(&a)?, sequence(&b)?);
        let (p, q) = (self.lengths(&a), self.lengths(&b));
        let lengths = self.b.element(Op::Add, Type::Int, &[p, q]);
        if lengths != p && lengths != q {
            self.b.check(Check::Length, &[lengths]);
        }
        let segments = self.b.make_segdes(lengths);
        let pool = self.pool(segments, context);
        if !context.single && a.elements.is_scalar() && b.elements.is_scalar() {
            let elements = self.appended(&a, &b, segments, pool)?;
            return Ok(Val::seq(Form::Dense(segments), elements, pool));
        }
        let starts = self.offsets(lengths, context);
        let behind = self.b.element(Op::Add, Type::Int, &[starts, p]);
        let one = self.int(1, context);
        let (first, x, from) = self.dense(&a, context);
        let (second, y, then) = self.dense(&b, context);
        let first = self.b.index(starts, one, first, from.space);
        let second = self.b.index(behind, one, second, then.space);
        let elements = self.place(None, &[(x, from, first), (y, then, second)], pool);
        Ok(Val::seq(Form::Dense(segments), elements, pool))
    }

    /// Gathers each element of appended sequences from its source: no sequence is made dense first, and no
    /// element is scattered.
    fn appended(&mut self, a: &Sequence, b: &Sequence, segments: VarId, pool: Context) -> Run<Val> {
        let context = self.context();
        let (first, lengths) = self.starts_and_lengths(a, context);
        let (second, _) = self.starts_and_lengths(b, context);
        let second = self.b.element(Op::Subtract, Type::Int, &[second, lengths]);
        let (zero, one) = (self.int(0, context), self.int(1, context));
        let place = self.b.index(zero, one, segments, pool.space);
        let lengths = self.spread(lengths, segments, pool);
        let is_first = self.b.element(Op::Less, Type::Int, &[place, lengths]);
        let is_second = self.b.element(Op::Not, Type::Bool, &[is_first]);
        let mut taken = |seq: &Sequence, starts: VarId, flags: VarId| {
            let starts = self.spread(starts, segments, pool);
            let indices = self.b.element(Op::Add, Type::Int, &[place, starts]);
            self.map(&seq.elements, seq.pool, &mut |this, var| {
                let (ty, args) = (this.b.ty_of(var), [var, indices, flags, seq.pool.segment, pool.segment]);
                this.b.vector(Op::BackFlagPermute, ty, &args, pool.space)
            })
        };
        let (x, y) = (taken(a, first, is_first), taken(b, second, is_second));
        self.select(is_first, &x, &y)
    }

    fn flatten(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let seq = sequence(argument)?;
        let (outer, elements, pool) = self.dense(&seq, context);
        let inner = sequence(&elements)?;
        let (segments, elements, whole) = self.dense(&inner, pool);
        let lengths = self.b.lengths(segments);
        self.b.check(Check::Total, &[lengths, outer]);
        let lengths = self.b.reduce(Op::AddReduce, lengths, outer);
        let flat = self.b.make_segdes(lengths);
        let from = self.pool(flat, context);
        self.b.join_spaces(from.space, whole.space);
        Ok(Val::seq(Form::Dense(flat), elements, from))
    }

    fn partition(&mut self, argument: &Val) -> Run<Val> {
        let context = self.context();
        let (values, pieces) = two(argument)?;
        let (values, pieces) = (sequence(&values)?, sequence(&pieces)?);
        let lengths = self.lengths(&values);
        let (outer, counts, pool) = self.dense(&pieces, context);
        let counts = scalar(&counts)?;
        self.b.check(Check::Partition, &[counts, outer, lengths]);
        let (_, elements, whole) = self.dense(&values, context);
        let inner = self.b.make_segdes(counts);
        let cut = self.pool(inner, pool);
        self.b.join_spaces(cut.space, whole.space);
        let elements = Val::seq(Form::Dense(inner), elements, cut);
        Ok(Val::seq(Form::Dense(outer), elements, pool))
    }

    fn unpack(&mut self, argument: &Val, ty: TypeId) -> Run<Val> {
        let context = self.context();
        let (values, flags) = two(argument)?;
        let (values, flags) = (sequence(&values)?, sequence(&flags)?);
        let Nesl::Pair(first, _) = self.c.env.types[ty] else { return internal("`unpack` takes a pair") };
        let first = self.c.resolve(first);
        let Nesl::Seq(element) = self.c.env.types[first] else { return internal("`unpack` takes a sequence") };
        let (segments, flags, pool) = self.dense(&flags, context);
        let flags = scalar(&flags)?;
        let ones = self.b.element(Op::BoolToInt, Type::Bool, &[flags]);
        let set = self.b.reduce(Op::AddReduce, ones, segments);
        let lengths = self.lengths(&values);
        self.b.check(Check::Unpack, &[lengths, set]);
        let (_, elements, from) = self.dense(&values, context);
        let (indices, kept) = self.restricted(flags, pool);
        self.b.join_spaces(kept.space, from.space);
        let base = self.neutral(element, pool)?;
        let elements = self.place(Some(&base), &[(elements, from, indices)], pool);
        Ok(Val::seq(Form::Dense(segments), elements, pool))
    }

    /// Clamps the extremum of an empty set of characters, which is that of ints, to the codes of characters.
    fn as_char(&mut self, var: VarId, fold: Fold, context: Context) -> VarId {
        let op = match fold.combination() {
            Combination::Extremum(Elementwise::Greater) => Op::Less,
            Combination::Extremum(_) => Op::Greater,
            Combination::Operation(_) => return var,
        };
        let bound = self.int(i64::from(fold.char()), context);
        let beyond = self.b.element(op, Type::Int, &[var, bound]);
        self.b.element(Op::Select, Type::Int, &[beyond, bound, var])
    }

    fn scan(&mut self, fold: Fold, argument: &Val, result: TypeId) -> Run<Val> {
        let context = self.context();
        let seq = sequence(argument)?;
        let (segments, elements, pool) = self.dense(&seq, context);
        let mut out = self.b.scan(fold.scan(), scalar(&elements)?, segments);
        let element = match self.c.env.types[result] {
            Nesl::Seq(element) => self.base(element),
            _ => None,
        };
        if element == Some(Base::Char) {
            out = self.as_char(out, fold, pool);
        }
        Ok(Val::seq(Form::Dense(segments), Val::Base(out), pool))
    }

    fn reduce(&mut self, fold: Fold, argument: &Val, result: TypeId) -> Run<Val> {
        let context = self.context();
        let seq = sequence(argument)?;
        let (segments, elements, _) = self.dense(&seq, context);
        let mut out = self.b.reduce(fold.reduction(), scalar(&elements)?, segments);
        if self.base(result) == Some(Base::Char) {
            out = self.as_char(out, fold, context);
        }
        Ok(Val::Base(out))
    }
}
