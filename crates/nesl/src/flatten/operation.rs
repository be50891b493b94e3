//! Operations on values that do not depend on their element types.

use super::Lowering;
use super::value::{Context, Form, Part, Sequence, Val, zero};
use crate::flat::{SpaceId, VarId};
use crate::vcode::{Constant, Op, Type};
use std::rc::Rc;

impl Lowering<'_, '_> {
    /// Applies an operation to the vectors that have an element for each element of the context.
    pub(super) fn map(&mut self, value: &Val, context: Context, apply: &mut dyn FnMut(&mut Self, VarId) -> VarId) -> Val {
        match value {
            Val::Base(var) => Val::Base(apply(self, *var)),
            Val::Pair(parts) => {
                let first = self.map(&parts.0, context, apply);
                let rest = self.map(&parts.1, context, apply);
                Val::pair(first, rest)
            }
            Val::Seq(seq) => {
                let (starts, lengths) = self.starts_and_lengths(seq, context);
                let (starts, lengths) = (apply(self, starts), apply(self, lengths));
                Val::seq(Form::Virtual(starts, lengths), seq.elements.clone(), seq.pool)
            }
            Val::Function(captured) => {
                let captured = captured.iter().map(|value| self.map(value, context, apply)).collect();
                Val::Function(Rc::new(captured))
            }
        }
    }

    pub(super) fn lengths(&mut self, seq: &Sequence) -> VarId {
        match seq.form {
            Form::Dense(segments) => self.b.lengths(segments),
            Form::Virtual(_, lengths) => lengths,
        }
    }

    pub(super) fn starts_and_lengths(&mut self, seq: &Sequence, context: Context) -> (VarId, VarId) {
        match seq.form {
            Form::Dense(segments) => {
                let lengths = self.b.lengths(segments);
                (self.offsets(lengths, context), lengths)
            }
            Form::Virtual(starts, lengths) => (starts, lengths),
        }
    }

    /// Returns the start of each segment.
    pub(super) fn offsets(&mut self, lengths: VarId, context: Context) -> VarId {
        if context.single { self.int(0, context) } else { self.b.scan(Op::AddScan, lengths, context.segment) }
    }

    /// Returns a constant for every element of a context.
    pub(super) fn int(&mut self, value: i64, context: Context) -> VarId {
        self.constant(Constant::Int([value].into()), context)
    }

    pub(super) fn constant(&mut self, constant: Constant, context: Context) -> VarId {
        let root = self.root();
        let scalar = self.b.constant(constant, root.space);
        if context.single { scalar } else { self.b.dist(scalar, context.segment, context.space) }
    }

    /// Makes the context of the elements of segments that belong to the elements of a context.
    pub(super) fn pool(&mut self, segments: VarId, context: Context) -> Context {
        let segment = if context.single {
            segments
        } else {
            let lengths = self.b.lengths(segments);
            let total = self.b.reduce(Op::AddReduce, lengths, context.segment);
            self.b.make_segdes(total)
        };
        Context { segment, space: self.pool_space(segments), single: false }
    }

    /// Returns the space of the elements of segments. It is the same wherever they are used.
    pub(super) fn pool_space(&mut self, segments: VarId) -> SpaceId {
        if let Some(&space) = self.pools.get(&segments) {
            return space;
        }
        let space = self.b.space();
        self.pools.insert(segments, space);
        space
    }

    /// Makes the elements of a sequence contiguous, including nested ones. Also returns its segment
    /// descriptor.
    pub(super) fn dense(&mut self, seq: &Sequence, context: Context) -> (VarId, Val, Context) {
        match seq.form {
            Form::Dense(segments) => (segments, seq.elements.clone(), seq.pool),
            Form::Virtual(starts, lengths) => {
                let segments = self.b.make_segdes(lengths);
                let pool = self.pool(segments, context);
                let one = self.int(1, context);
                let indices = self.b.index(starts, one, segments, pool.space);
                let elements = self.gather(&seq.elements, seq.pool, indices, pool);
                (segments, elements, pool)
            }
        }
    }

    /// Makes all sequences of a value dense.
    pub(super) fn materialise(&mut self, value: &Val, context: Context) -> Val {
        match value {
            Val::Base(_) => value.clone(),
            Val::Pair(parts) => {
                let first = self.materialise(&parts.0, context);
                let rest = self.materialise(&parts.1, context);
                Val::pair(first, rest)
            }
            Val::Seq(seq) => {
                let (segments, elements, pool) = self.dense(seq, context);
                let elements = self.materialise(&elements, pool);
                Val::seq(Form::Dense(segments), elements, pool)
            }
            Val::Function(captured) => {
                Val::Function(Rc::new(captured.iter().map(|value| self.materialise(value, context)).collect()))
            }
        }
    }

    /// Prepares a value for a call: sequences may be virtual, nested ones may not.
    pub(super) fn argument(&mut self, value: &Val) -> Val {
        match value {
            Val::Base(_) => value.clone(),
            Val::Pair(parts) => {
                let first = self.argument(&parts.0);
                let rest = self.argument(&parts.1);
                Val::pair(first, rest)
            }
            Val::Seq(seq) => {
                let elements = self.materialise(&seq.elements, seq.pool);
                Val::seq(seq.form, elements, seq.pool)
            }
            Val::Function(captured) => Val::Function(Rc::new(captured.iter().map(|value| self.argument(value)).collect())),
        }
    }

    /// Gathers elements of a context at indices that are in range.
    pub(super) fn gather(&mut self, value: &Val, from: Context, indices: VarId, to: Context) -> Val {
        self.map(value, from, &mut |this, var| {
            let ty = this.b.ty_of(var);
            this.b.vector(Op::BackPermute, ty, &[var, indices, from.segment, to.segment], to.space)
        })
    }

    /// Copies each element of a context to all elements of its segment.
    pub(super) fn distribute(&mut self, value: &Val, context: Context, segments: VarId, to: Context) -> Val {
        self.map(value, context, &mut |this, var| this.b.dist(var, segments, to.space))
    }

    /// Keeps the elements of a context whose flag is true. `to` is the context that remains.
    pub(super) fn restrict(&mut self, value: &Val, context: Context, flags: VarId, to: Context) -> Val {
        self.map(value, context, &mut |this, var| this.b.pack(var, flags, context.segment, to.space).0)
    }

    /// Moves elements of parts to their indices in a context. Other elements come from `base`, or are
    /// neutral.
    pub(super) fn place(&mut self, base: Option<&Val>, parts: &[Part], to: Context) -> Val {
        let Some((sample, _, _)) = parts.first() else { return base.cloned().unwrap_or(Val::Function(Rc::default())) };
        match sample {
            Val::Base(var) => {
                let ty = self.b.ty_of(*var);
                let mut out = match base {
                    Some(Val::Base(base)) => *base,
                    _ => self.constant(zero(ty), to),
                };
                for (value, context, indices) in parts {
                    let Val::Base(var) = value else { continue };
                    out = self.b.vector(Op::DefaultPermute, ty, &[*var, *indices, out, context.segment, to.segment], to.space);
                }
                Val::Base(out)
            }
            Val::Pair(_) => {
                let part = |value: &Val, second: bool| match value {
                    Val::Pair(both) if second => both.1.clone(),
                    Val::Pair(both) => both.0.clone(),
                    other => other.clone(),
                };
                let of = |second: bool| -> Vec<Part> {
                    parts.iter().map(|(value, context, indices)| (part(value, second), *context, *indices)).collect()
                };
                let first = self.place(base.map(|base| part(base, false)).as_ref(), &of(false), to);
                let rest = self.place(base.map(|base| part(base, true)).as_ref(), &of(true), to);
                Val::pair(first, rest)
            }
            Val::Function(captured) => {
                let part = |value: &Val, index: usize| match value {
                    Val::Function(captured) => captured.get(index).cloned(),
                    _ => None,
                };
                let mut out = vec![];
                for index in 0..captured.len() {
                    let of = parts.iter().filter_map(|(value, context, indices)| Some((part(value, index)?, *context, *indices)));
                    let of: Vec<Part> = of.collect();
                    let base = base.and_then(|base| part(base, index));
                    out.push(self.place(base.as_ref(), &of, to));
                }
                Val::Function(Rc::new(out))
            }
            Val::Seq(_) => self.place_sequences(base, parts, to),
        }
    }

    /// Joins the pools of sequences and moves their starts and lengths.
    fn place_sequences(&mut self, base: Option<&Val>, parts: &[Part], to: Context) -> Val {
        let mut pools: Vec<(Val, Context)> = vec![];
        // The index of the pool of each sequence.
        let mut of_pool = |seq: &Sequence| {
            let known = pools.iter().position(|(elements, pool)| *pool == seq.pool && elements.same_vectors(&seq.elements));
            known.unwrap_or_else(|| {
                pools.push((seq.elements.clone(), seq.pool));
                pools.len() - 1
            })
        };
        let base = base.and_then(|base| if let Val::Seq(seq) = base { Some(seq.clone()) } else { None });
        let base_pool = base.as_ref().map(|seq| of_pool(seq));
        let mut moved = vec![];
        for (value, context, indices) in parts {
            let Val::Seq(seq) = value else { continue };
            moved.push((seq.clone(), of_pool(seq), *context, *indices));
        }
        let (elements, pool, shifts) = self.join(&pools);
        let shifted = |this: &mut Self, seq: &Sequence, context: Context, pool: usize| {
            let (starts, lengths) = this.starts_and_lengths(seq, context);
            let shift =
                shifts[pool].map(|shift| if context.single { shift } else { this.b.dist(shift, context.segment, context.space) });
            (shift.map_or(starts, |shift| this.b.element(Op::Add, Type::Int, &[starts, shift])), lengths)
        };
        let (mut starts, mut lengths) = match (&base, base_pool) {
            (Some(seq), Some(pool)) => shifted(self, seq, to, pool),
            _ => (self.int(0, to), self.int(0, to)),
        };
        for (seq, pool, context, indices) in &moved {
            let (s, l) = shifted(self, seq, *context, *pool);
            let mut put = |values: VarId, into: VarId| {
                let args = [values, *indices, into, context.segment, to.segment];
                self.b.vector(Op::DefaultPermute, Type::Int, &args, to.space)
            };
            starts = put(s, starts);
            lengths = put(l, lengths);
        }
        Val::seq(Form::Virtual(starts, lengths), elements, pool)
    }

    /// Concatenates pools. Returns the start of each in the whole, as a scalar; `None` for 0.
    fn join(&mut self, pools: &[(Val, Context)]) -> (Val, Context, Vec<Option<VarId>>) {
        if let [(elements, pool)] = pools {
            return (elements.clone(), *pool, vec![None]);
        }
        let root = self.root();
        let one = self.int(1, root);
        let (mut shifts, mut parts) = (vec![], vec![]);
        let mut total = self.int(0, root);
        for (elements, pool) in pools {
            shifts.push((!shifts.is_empty()).then_some(total));
            let indices = self.b.index(total, one, pool.segment, pool.space);
            parts.push((elements.clone(), *pool, indices));
            let length = self.b.lengths(pool.segment);
            total = self.b.element(Op::Add, Type::Int, &[total, length]);
        }
        let segment = self.b.make_segdes(total);
        let whole = Context { segment, space: self.pool_space(segment), single: false };
        let elements = self.place(None, &parts, whole);
        (elements, whole, shifts)
    }
}
