//! Sequences of loop forms. A sequence that a round makes is never stored: its elements are computed where they
//! are used.
//!
//! An element that takes a loop of its own is computed at one place only, and not in a loop that its sequence is
//! outside of. So a loop form takes no more steps than the program says, but for short elements that are computed
//! at several places.

use super::operands::{Delayed, Part, Sequence, Val, tables_of};
use super::{LoopResult, LoopWriter};
use crate::core::{Each, Expr, ExprId, PatternId, Primitive};
use crate::vcode::{Check, Op, Reg, Shape, Step, Type};
use broadloom_diag::Span;
use std::cell::Cell;
use std::rc::Rc;

/// Maximum number of places that compute the elements of an apply-to-each.
const MAX_USES: u32 = 4;

/// An element of a sequence, and whether a filter keeps it.
pub(super) type Item = (Val, Option<Reg>);

fn scalar(value: &Val) -> LoopResult<Reg> {
    match value {
        Val::Scalar(reg) => Ok(*reg),
        Val::Tuple(_) | Val::Seq(_) => Err("a scalar was expected".to_owned()),
    }
}

fn sequence(value: &Val) -> LoopResult<Rc<Sequence>> {
    match value {
        Val::Seq(seq) => Ok(seq.clone()),
        Val::Scalar(_) | Val::Tuple(_) => Err("a sequence was expected".to_owned()),
    }
}

fn two(value: &Val) -> LoopResult<(Val, Val)> {
    match value {
        Val::Tuple(parts) if parts.len() == 2 => Ok((parts[0].clone(), parts[1].clone())),
        _ => Err("a pair was expected".to_owned()),
    }
}

fn has_sequence(value: &Val) -> bool {
    match value {
        Val::Scalar(_) => false,
        Val::Tuple(parts) => parts.iter().any(has_sequence),
        Val::Seq(_) => true,
    }
}

impl Sequence {
    /// Tells whether it has fewer elements than indices.
    fn is_filtered(&self) -> bool {
        match self {
            Sequence::Each(each) => each.filter.is_some() || each.generators.iter().any(|(_, seq)| seq.is_filtered()),
            Sequence::Part(_)
            | Sequence::Range { .. }
            | Sequence::Equal { .. }
            | Sequence::List { .. }
            | Sequence::Gather { .. }
            | Sequence::Cut { .. } => false,
        }
    }
}

impl LoopWriter<'_, '_> {
    /// Writes a primitive on a sequence. Returns `None` for a primitive on scalars.
    pub(super) fn of_sequence(&mut self, id: ExprId, primitive: Primitive, value: &Val) -> LoopResult<Option<Val>> {
        use Primitive as P;
        let span = self.body.spans[id];
        Ok(Some(match primitive {
            P::Reduce(fold) => self.reduce(id, fold, &sequence(value)?)?,
            P::Length => Val::Scalar(self.count(id, &sequence(value)?)?),
            P::Elt => {
                let (values, index) = two(value)?;
                self.checked_item(&sequence(&values)?, scalar(&index)?, span)?
            }
            P::Get => {
                let (values, indices) = two(value)?;
                let (values, indices) = (sequence(&values)?, sequence(&indices)?);
                if values.is_filtered() || indices.is_filtered() {
                    return Err("it indexes a filtered sequence".to_owned());
                }
                let gather = Rc::new(Sequence::Gather { values, indices, span });
                self.require_items(&gather)?;
                Val::Seq(gather)
            }
            P::Subseq => {
                let (values, bounds) = two(value)?;
                let ((from, to), values) = (two(&bounds)?, sequence(&values)?);
                self.cut(id, &values, [scalar(&from)?, scalar(&to)?])?
            }
            P::Iseq => {
                let (start, rest) = two(value)?;
                let (step, end) = two(&rest)?;
                let [start, step, end] = [scalar(&start)?, scalar(&step)?, scalar(&end)?];
                if self.constants.get(&step) != Some(&1) {
                    return Err("it has a range with steps".to_owned());
                }
                let is_length = self.constants.get(&start) == Some(&0) && self.lengths.contains(&end);
                if !is_length {
                    self.push(Step::Check(Check::Range, [start, step, end], span))?;
                }
                let length = self.op(id, Op::Subtract, Type::Int, &[end, start])?;
                self.lengths.insert(length);
                if (end as usize) < self.parameters {
                    self.extents.push(end);
                }
                Val::Seq(Rc::new(Sequence::Range { start, length }))
            }
            P::Dist => {
                let (value, length) = two(value)?;
                let length = scalar(&length)?;
                if !self.lengths.contains(&length) {
                    self.push(Step::Check(Check::Count, [length; 3], span))?;
                    self.lengths.insert(length);
                }
                Val::Seq(Rc::new(Sequence::Equal { value, length }))
            }
            _ if has_sequence(value) => return Err("it has other operations on sequences".to_owned()),
            _ => return Ok(None),
        }))
    }

    /// Returns the number of indices of a sequence.
    pub(super) fn length(&mut self, seq: &Sequence) -> Reg {
        match seq {
            Sequence::Part(Part { length, .. })
            | Sequence::Range { length, .. }
            | Sequence::Equal { length, .. }
            | Sequence::List { length, .. }
            | Sequence::Cut { length, .. } => *length,
            Sequence::Gather { indices, .. } => self.length(indices),
            Sequence::Each(each) => each.length,
        }
    }

    /// Returns the number of elements of a sequence.
    fn count(&mut self, id: ExprId, seq: &Rc<Sequence>) -> LoopResult<Reg> {
        if !seq.is_filtered() {
            return Ok(self.length(seq));
        }
        let none = self.constant(Type::Int, 0)?;
        let counted = self.fold(seq, &[(Type::Int, none)], |w, (_, kept), carried| {
            let one = w.constant(Type::Int, 1)?;
            let more = w.op(id, Op::Add, Type::Int, &[carried[0], one])?;
            Ok(vec![w.kept(id, kept, Type::Int, more, carried[0])?])
        })?;
        Ok(counted[0])
    }

    /// Returns a value if a flag is true, else another one.
    pub(super) fn kept(&mut self, id: ExprId, flag: Option<Reg>, ty: Type, value: Reg, other: Reg) -> LoopResult<Reg> {
        match flag {
            Some(flag) => self.op(id, Op::Select, ty, &[flag, value, other]),
            None => Ok(value),
        }
    }

    fn checked_item(&mut self, seq: &Rc<Sequence>, index: Reg, span: Span) -> LoopResult<Val> {
        if seq.is_filtered() {
            return Err("it indexes a filtered sequence".to_owned());
        }
        let length = self.length(seq);
        self.push(Step::Check(Check::Index, [index, length, length], span))?;
        Ok(self.item(seq, index)?.0)
    }

    /// Returns the element at a valid index.
    pub(super) fn item(&mut self, seq: &Sequence, index: Reg) -> LoopResult<Item> {
        let id = self.body.result.ok_or("it has no result")?;
        Ok(match seq {
            Sequence::Part(part) => (self.load(&part.element, part.table, [index, part.start])?, None),
            Sequence::Range { start, .. } => (Val::Scalar(self.op(id, Op::Add, Type::Int, &[*start, index])?), None),
            Sequence::Equal { value, .. } => (value.clone(), None),
            Sequence::List { items, .. } => (self.listed(id, items, index)?, None),
            Sequence::Gather { values, indices, span } => {
                let (place, _) = self.item(indices, index)?;
                (self.checked_item(values, scalar(&place)?, *span)?, None)
            }
            Sequence::Cut { values, from, .. } => {
                let index = self.op(id, Op::Add, Type::Int, &[index, *from])?;
                self.item(values, index)?
            }
            Sequence::Each(each) => self.computed(each, index)?,
        })
    }

    fn load(&mut self, shape: &Shape, table: usize, args: [Reg; 2]) -> LoopResult<Val> {
        let load = |w: &mut Self, ty: Type, table: usize| -> LoopResult<Reg> {
            let to = w.reg(ty);
            w.push(Step::Load { to, table, args })?;
            Ok(to)
        };
        Ok(match shape {
            Shape::Int => Val::Scalar(load(self, Type::Int, table)?),
            Shape::Float => Val::Scalar(load(self, Type::Float, table)?),
            Shape::Bool => Val::Scalar(load(self, Type::Bool, table)?),
            Shape::Tuple(parts) => {
                let (mut own, mut table) = (vec![], table);
                for part in parts {
                    own.push(self.load(part, table, args)?);
                    table += tables_of(part);
                }
                Val::Tuple(own.into())
            }
            Shape::Seq(element) => {
                let (start, length) = (load(self, Type::Int, table)?, load(self, Type::Int, table + 1)?);
                self.lengths.insert(length);
                Val::Seq(Rc::new(Sequence::Part(Part { start, length, table: table + 2, element: (**element).clone() })))
            }
        })
    }

    /// Makes a sequence of elements that are written out.
    pub(super) fn list(&mut self, items: Vec<Val>) -> LoopResult<Val> {
        let length = self.constant(Type::Int, items.len() as i64)?;
        self.lengths.insert(length);
        Ok(Val::Seq(Rc::new(Sequence::List { items, length })))
    }

    /// Returns the element of a list at an index.
    fn listed(&mut self, id: ExprId, items: &[Val], index: Reg) -> LoopResult<Val> {
        let known = self.constants.get(&index).and_then(|index| items.get(usize::try_from(*index).ok()?));
        if let Some(item) = known {
            return Ok(item.clone());
        }
        let Some((first, rest)) = items.split_first() else { return Err("a list has no elements".to_owned()) };
        let mut chosen = first.clone();
        for (number, item) in rest.iter().enumerate() {
            let number = self.constant(Type::Int, number as i64 + 1)?;
            let is_this = self.op(id, Op::Equal, Type::Int, &[index, number])?;
            chosen = self.selected(id, is_this, item, &chosen)?;
        }
        Ok(chosen)
    }

    fn selected(&mut self, id: ExprId, condition: Reg, a: &Val, b: &Val) -> LoopResult<Val> {
        Ok(match (a, b) {
            (Val::Scalar(a), Val::Scalar(b)) => {
                let ty = self.registers[*a as usize];
                Val::Scalar(self.op(id, Op::Select, ty, &[condition, *a, *b])?)
            }
            (Val::Tuple(a), Val::Tuple(b)) if a.len() == b.len() => {
                let parts = a.iter().zip(b.iter()).map(|(a, b)| self.selected(id, condition, a, b));
                Val::Tuple(parts.collect::<LoopResult<Vec<Val>>>()?.into())
            }
            _ => return Err("it chooses between sequences".to_owned()),
        })
    }

    fn cut(&mut self, id: ExprId, values: &Rc<Sequence>, [from, to]: [Reg; 2]) -> LoopResult<Val> {
        if values.is_filtered() {
            return Err("it cuts a filtered sequence".to_owned());
        }
        let whole = self.length(values);
        self.push(Step::Check(Check::Part, [from, to, whole], self.body.spans[id]))?;
        let length = self.op(id, Op::Subtract, Type::Int, &[to, from])?;
        self.lengths.insert(length);
        Ok(Val::Seq(match &**values {
            Sequence::Part(part) => {
                let start = self.op(id, Op::Add, Type::Int, &[part.start, from])?;
                Rc::new(Sequence::Part(Part { start, length, ..part.clone() }))
            }
            _ => Rc::new(Sequence::Cut { values: values.clone(), from, length }),
        }))
    }

    /// Makes the sequence of an apply-to-each. Errors of its elements are those of the places that use them.
    pub(super) fn each(&mut self, id: ExprId, each: &Each) -> LoopResult<Rc<Sequence>> {
        let (body, span) = (self.body.clone(), self.body.spans[id]);
        let mut generators = vec![];
        let mut length = None;
        for (pattern, source) in &each.generators {
            let seq = match each.generators.len() {
                1 => sequence(&self.consumed(*source)?)?,
                _ => sequence(&self.value(*source)?)?,
            };
            if each.generators.len() > 1 && seq.is_filtered() {
                return Err("it goes through filtered sequences side by side".to_owned());
            }
            let own = self.length(&seq);
            let first = *length.get_or_insert(own);
            let are_equal = first == own || self.constants.get(&first).is_some_and(|one| self.constants.get(&own) == Some(one));
            if !are_equal {
                self.push(Step::Check(Check::Each, [first, own, own], span))?;
            }
            generators.push((*pattern, seq));
        }
        Ok(Rc::new(Sequence::Each(Rc::new(Delayed {
            generators,
            filter: each.filter,
            item: each.body,
            body,
            locals: self.locals.clone(),
            length: length.ok_or("an apply-to-each has no generator")?,
            depth: self.depth,
            uses: Cell::new(0),
            is_long: Cell::new(false),
        }))))
    }

    /// Writes a sequence that is used once, right behind: its errors are found there.
    pub(super) fn consumed(&mut self, id: ExprId) -> LoopResult<Val> {
        let body = self.body.clone();
        match &body.exprs[id] {
            Expr::Each(each) => Ok(Val::Seq(self.each(id, each)?)),
            _ => self.value(id),
        }
    }

    /// Writes a loop that finds the errors of the elements of a sequence, if there may be any.
    pub(super) fn require_items(&mut self, seq: &Rc<Sequence>) -> LoopResult<()> {
        let (steps, written, gains) = (self.steps.len(), self.written, self.gains);
        self.fold(seq, &[], |_, _, _| Ok(vec![]))?;
        if let Sequence::Each(each) = &**seq {
            each.uses.set(0);
        }
        if !self.steps[steps..].iter().any(Step::may_fail) {
            self.steps.truncate(steps);
            (self.written, self.gains) = (written, gains);
        }
        Ok(())
    }

    /// Computes the element of an apply-to-each at an index.
    fn computed(&mut self, each: &Delayed, index: Reg) -> LoopResult<Item> {
        each.uses.set(each.uses.get() + 1);
        let is_outside = self.depth > each.depth + 1;
        let folds = self.folds;
        if each.uses.get() > MAX_USES || (each.is_long.get() && (each.uses.get() > 1 || is_outside)) {
            return Err("it would compute elements several times".to_owned());
        }
        let mut kept: Option<Reg> = None;
        let mut items = vec![];
        for (pattern, seq) in &each.generators {
            let (item, flag) = self.item(seq, index)?;
            kept = kept.or(flag);
            items.push((*pattern, item));
        }
        let body = std::mem::replace(&mut self.body, each.body.clone());
        let locals = std::mem::replace(&mut self.locals, each.locals.clone());
        let written = self.item_of(each, items, kept);
        (self.body, self.locals) = (body, locals);
        if self.folds > folds {
            each.is_long.set(true);
            if is_outside || each.uses.get() > 1 {
                return Err("it would compute elements several times".to_owned());
            }
        }
        written
    }

    fn item_of(&mut self, each: &Delayed, items: Vec<(PatternId, Val)>, kept: Option<Reg>) -> LoopResult<Item> {
        for (pattern, item) in items {
            self.bind(pattern, &item)?;
        }
        let value = self.value(each.item)?;
        let Some(filter) = each.filter else { return Ok((value, kept)) };
        let flag = self.scalar(filter)?;
        let flag = match kept {
            Some(kept) => self.op(each.item, Op::And, Type::Bool, &[kept, flag])?,
            None => flag,
        };
        Ok((value, Some(flag)))
    }
}
