//! Primitives. Those without code here run only flattened.

use super::code::{Class, Kind, Reg};
use super::expr::{Items, Seq, Val, Writer};
use super::{CodeResult, reason};
use crate::core::{Each, Primitive};
use crate::primitives::{Elementwise, Fold};
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::elementwise::{BadOperand, ThreadForm};
use crate::vcode::{Choice, Combination, Op, Shape, Type};
use broadloom_ptx::builder::{Instructions, IntoModifiers};
use broadloom_ptx::{Modifier as M, Opcode};
use std::rc::Rc;

fn scalar(value: &Val) -> CodeResult<(Kind, Reg)> {
    match value {
        Val::Base(kind, reg) => Ok((*kind, *reg)),
        _ => Err("a scalar was expected".to_owned()),
    }
}

fn sequence(value: &Val) -> CodeResult<Rc<Seq>> {
    match value {
        Val::Seq(seq) => Ok(seq.clone()),
        _ => Err("a sequence was expected".to_owned()),
    }
}

fn two(value: &Val) -> CodeResult<(Val, Val)> {
    match value {
        Val::Tuple(parts) if parts.len() == 2 => Ok((parts[0].clone(), parts[1].clone())),
        _ => Err("a pair was expected".to_owned()),
    }
}

fn three(value: &Val) -> CodeResult<(Val, Val, Val)> {
    let (first, rest) = two(value)?;
    let (second, third) = two(&rest)?;
    Ok((first, second, third))
}

impl Writer<'_, '_, '_> {
    pub(super) fn primitive(&mut self, primitive: Primitive, argument: &Val, ty: TypeId, result: TypeId) -> CodeResult<Val> {
        use Primitive as P;
        match primitive {
            P::Elementwise(operation) => match Op::from(operation).operands().len() {
                2 => {
                    let (a, b) = two(argument)?;
                    let ((kind, a), (_, b)) = (scalar(&a)?, scalar(&b)?);
                    self.elementwise(operation, kind, [a, b])
                }
                _ => {
                    let (kind, a) = scalar(argument)?;
                    self.elementwise(operation, kind, [a, a])
                }
            },
            P::Negate => {
                let (kind, a) = scalar(argument)?;
                let zero = self.zero(kind);
                self.elementwise(Elementwise::Subtract, kind, [zero, a])
            }
            P::CharCode => Ok(argument.clone()),
            P::CodeChar => {
                let (_, a) = scalar(argument)?;
                let (beyond, ty) = (self.code.reg(Class::Pred), self.code.unsigned());
                self.code.to(beyond).setp((M::Gt, ty), a, 255);
                self.fail_if(beyond);
                Ok(argument.clone())
            }
            P::IntToAny | P::AsFloat => {
                let value = if primitive == P::AsFloat { argument.clone() } else { two(argument)?.0 };
                let (kind, reg) = scalar(&value)?;
                match self.base(result) {
                    Some(Base::Float) if kind == Kind::Int => self.elementwise(Elementwise::IntToFloat, kind, [reg, reg]),
                    _ => Ok(value),
                }
            }
            P::Eql => {
                let (a, b) = two(argument)?;
                Ok(Val::Base(Kind::Bool, self.equal(&a, &b)?))
            }
            P::Require => {
                let (_, holds) = scalar(&two(argument)?.0)?;
                let fail = self.fail;
                self.code.go_unless(holds, fail);
                Ok(Val::Base(Kind::Bool, self.code.bool(true)))
            }
            P::Length => {
                let length = sequence(argument)?.length;
                Ok(Val::Base(Kind::Int, self.code.as_int(length)))
            }
            P::Dist => {
                let (value, count) = two(argument)?;
                let (_, count) = scalar(&count)?;
                let shape = self.shape_of(&value);
                let length = self.checked_length(count);
                Ok(Val::seq(length, shape, Items::Same(value)))
            }
            P::Elt => {
                let (values, index) = two(argument)?;
                let (values, (_, index)) = (sequence(&values)?, scalar(&index)?);
                let index = self.checked_index(index, values.length);
                self.element(&values, index)
            }
            P::Rep => {
                let (values, value, index) = three(argument)?;
                let (values, (_, index)) = (sequence(&values)?, scalar(&index)?);
                let index = self.checked_index(index, values.length);
                let arrays = self.copied(&values)?;
                self.put(&arrays, &values.shape, index, &value)?;
                Ok(Val::seq(values.length, values.shape.clone(), Items::Stored(arrays)))
            }
            P::Iseq => self.iseq(argument),
            P::Get => {
                let (values, indices) = two(argument)?;
                let (values, indices) = (sequence(&values)?, sequence(&indices)?);
                self.burn(indices.length);
                let arrays = self.room(indices.length, &values.shape);
                let load = |w: &mut Self, at: Reg| {
                    let (_, index) = scalar(&w.element(&indices, at)?)?;
                    let index = w.checked_index(index, values.length);
                    let value = w.element(&values, index)?;
                    w.stored(&value)
                };
                self.spread(indices.length, load, |w, at, regs| w.store(&arrays, &values.shape, at, regs))?;
                Ok(Val::seq(indices.length, values.shape.clone(), Items::Stored(arrays)))
            }
            P::Put => {
                let (values, indices, into) = three(argument)?;
                let (values, indices, into) = (sequence(&values)?, sequence(&indices)?, sequence(&into)?);
                self.same_length(values.length, indices.length);
                let arrays = self.copied(&into)?;
                self.burn(indices.length);
                let each = self.begin(indices.length);
                let (_, index) = scalar(&self.element(&indices, each.index)?)?;
                let index = self.checked_index(index, into.length);
                let value = self.element(&values, each.index)?;
                self.put(&arrays, &into.shape, index, &value)?;
                self.end(each);
                Ok(Val::seq(into.length, into.shape.clone(), Items::Stored(arrays)))
            }
            P::Permute => self.permute(argument),
            P::Rank | P::RankDown => self.rank(&*sequence(argument)?, primitive == P::RankDown),
            P::HashCode => Ok(Val::Base(Kind::Int, self.hash(argument, ty)?)),
            P::Show => self.show(argument, ty),
            P::Unpack => {
                let (values, flags) = two(argument)?;
                let (values, flags) = (sequence(&values)?, sequence(&flags)?);
                let ty = self.m.c.resolve(result);
                let Nesl::Seq(element) = self.m.c.env.types[ty] else { return Err("a sequence was expected".to_owned()) };
                self.unpack(&values, &flags, element)
            }
            P::Pack => {
                let pairs = sequence(argument)?;
                let Shape::Tuple(parts) = &pairs.shape else { return Err("pairs were expected".to_owned()) };
                let shape = parts[0].clone();
                self.burn(pairs.length);
                let arrays = self.room(pairs.length, &shape);
                let kept = self.code.length(0);
                let each = self.begin(pairs.length);
                let (value, flag) = two(&self.element(&pairs, each.index)?)?;
                self.put(&arrays, &shape, kept, &value)?;
                let one = self.code.number(scalar(&flag)?.1);
                self.code.to(kept).add(M::U32, kept, one);
                self.end(each);
                Ok(Val::seq(kept, shape, Items::Stored(arrays)))
            }
            P::Append => {
                let (a, b) = two(argument)?;
                self.append(&[a, b])
            }
            P::Flatten => self.flattened(&*sequence(argument)?),
            P::Partition => self.partition(argument),
            P::Subseq => {
                let (values, start, end) = three(argument)?;
                let (values, (_, start), (_, end)) = (sequence(&values)?, scalar(&start)?, scalar(&end)?);
                // As an unsigned number, a negative one is larger than every length.
                let (ty, after, beyond) = (self.code.unsigned(), self.code.reg(Class::Pred), self.code.reg(Class::Pred));
                let all = self.code.as_int(values.length);
                self.code.to(after).setp((M::Gt, ty), start, end);
                self.fail_if(after);
                self.code.to(beyond).setp((M::Gt, ty), end, all);
                self.fail_if(beyond);
                let (start, end, length) = (self.code.as_length(start), self.code.as_length(end), self.code.reg(Class::B32));
                self.code.to(length).sub(M::U32, end, start);
                self.part(&values, start, length)
            }
            P::Scan(fold) => self.scan(fold, &*sequence(argument)?, result),
            P::Reduce(fold) => {
                let seq = sequence(argument)?;
                self.burn(seq.length);
                self.reduce(fold, ty, seq.length, |w, index| Ok(scalar(&w.element(&seq, index)?)?.1))
            }
            P::Identity
            | P::FloatToAny
            | P::Rand
            | P::RandSeed
            | P::Digits
            | P::Decimal
            | P::Fail
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
            | P::StopTimer => Err(reason(primitive)),
        }
    }

    pub(super) fn base(&mut self, ty: TypeId) -> Option<Base> {
        let ty = self.m.c.resolve(ty);
        match self.m.c.env.types[ty] {
            Nesl::Base(base) => Some(base),
            _ => None,
        }
    }

    fn zero(&mut self, kind: Kind) -> Reg {
        match kind {
            Kind::Float => self.code.float(0.0),
            Kind::Bool => self.code.bool(false),
            Kind::Int | Kind::Length | Kind::Pointer => self.code.int(0),
        }
    }

    /// Computes an operation on scalars. An operation on one ignores the second.
    fn elementwise(&mut self, operation: Elementwise, kind: Kind, [a, b]: [Reg; 2]) -> CodeResult<Val> {
        let (ty, op) = (kind_type(kind), Op::from(operation));
        if op.choice() == Choice::Number && kind == Kind::Bool {
            return Err(format!("it uses `{}` of bools, which runs flattened only", op.name()));
        }
        self.fail_on_operand(operation, kind, [a, b]);
        Ok(match operation.thread() {
            ThreadForm::Elementary(function) => Val::Base(kind, self.elementary(function, a)?),
            _ => {
                let result = match op.result(ty) {
                    Type::Float => Kind::Float,
                    Type::Bool => Kind::Bool,
                    Type::Int | Type::Char | Type::Segdes => Kind::Int,
                };
                Val::Base(result, self.op(operation, kind, a, b))
            }
        })
    }

    /// Ends the call with a failure if an operand has a value that the operation does not take.
    fn fail_on_operand(&mut self, operation: Elementwise, kind: Kind, operands: [Reg; 2]) {
        let Some(failure) = operation.failure() else { return };
        let (bad, ty, operand) = (self.code.reg(Class::Pred), self.code.ty(kind), operands[failure.operand]);
        let how = match failure.value {
            BadOperand::Zero => M::Eq,
            BadOperand::Negative => M::Lt,
        };
        match kind {
            Kind::Float => {
                let zero = self.code.float(0.0);
                self.code.to(bad).setp((how, ty), operand, zero);
            }
            _ => self.code.to(bad).setp((how, ty), operand, 0),
        }
        self.fail_if(bad);
    }

    /// Writes the instruction of an operation: a result and one or two operands.
    fn instruction(&mut self, operation: Elementwise, opcode: Opcode, modifiers: impl IntoModifiers, [to, a, b]: [Reg; 3]) {
        match Op::from(operation).operands().len() {
            2 => self.code.to(to).instruction(opcode, modifiers, (a, b)),
            _ => self.code.to(to).instruction(opcode, modifiers, (a,)),
        }
    }

    /// Writes an operation that cannot fail, or whose operands were checked.
    pub(super) fn op(&mut self, operation: Elementwise, kind: Kind, a: Reg, b: Reg) -> Reg {
        let (ty, bits) = (self.code.ty(kind), self.code.bits(kind));
        match operation.thread() {
            ThreadForm::Typed([int, float]) => {
                let (to, (opcode, modifier)) = (self.code.of(kind), if kind == Kind::Float { float } else { int });
                self.instruction(operation, opcode, (modifier, ty), [to, a, b]);
                to
            }
            ThreadForm::Bits(opcode) => {
                let to = self.code.of(kind);
                self.instruction(operation, opcode, bits, [to, a, b]);
                to
            }
            ThreadForm::Compare([int, float]) => {
                let (to, name) = (self.code.reg(Class::Pred), if kind == Kind::Float { float } else { int });
                self.code.to(to).setp((name, ty), a, b);
                to
            }
            ThreadForm::Divide if kind == Kind::Float => {
                let to = self.code.of(kind);
                self.code.to(to).div((M::Rn, ty), a, b);
                to
            }
            ThreadForm::Divide => {
                let (minus, divisor) = self.divisor(kind, b);
                let [quotient, negated, to] = [(); 3].map(|()| self.code.of(kind));
                self.code.to(quotient).div(ty, a, divisor);
                self.code.to(negated).neg(ty, a);
                self.code.to(to).selp(ty, negated, quotient, minus);
                to
            }
            ThreadForm::Remainder => {
                let ((_, divisor), to) = (self.divisor(kind, b), self.code.of(kind));
                self.code.to(to).rem(ty, a, divisor);
                to
            }
            form @ (ThreadForm::LeftShift | ThreadForm::RightShift) => {
                let (to, count, b) = (self.code.of(kind), self.code.reg(Class::B32), self.code.as_length(b));
                let low_bits = self.code.widths.low_bits();
                self.code.to(count).and(M::B32, b, low_bits);
                match form {
                    ThreadForm::LeftShift => self.code.to(to).shl(bits, a, count),
                    _ => self.code.to(to).shr(ty, a, count),
                }
                to
            }
            ThreadForm::ToInt(rounding) => {
                // A NaN is 0.
                let (whole, to, odd) = (self.code.of(Kind::Int), self.code.of(Kind::Int), self.code.reg(Class::Pred));
                let int = self.code.ty(Kind::Int);
                self.code.to(whole).cvt((rounding, int, ty), a);
                self.code.to(odd).setp((M::Nan, ty), a, a);
                self.code.to(to).selp(int, 0, whole, odd);
                to
            }
            ThreadForm::ToFloat => {
                let (to, float) = (self.code.of(Kind::Float), self.code.ty(Kind::Float));
                self.code.to(to).cvt((M::Rn, float, ty), a);
                to
            }
            ThreadForm::OfBool => {
                let number = self.code.number(a);
                self.code.as_int(number)
            }
            ThreadForm::Elementary(_) | ThreadForm::Absent => a,
        }
    }

    /// Returns a divisor for which no division overflows: 1 for -1, and whether it was -1. The quotient of the
    /// least int and -1 wraps.
    fn divisor(&mut self, kind: Kind, b: Reg) -> (Reg, Reg) {
        let (minus, divisor, ty) = (self.code.reg(Class::Pred), self.code.of(kind), self.code.ty(kind));
        self.code.to(minus).setp((M::Eq, ty), b, -1);
        self.code.to(divisor).selp(ty, 1, b, minus);
        (minus, divisor)
    }

    /// Returns an int as an index; fails if it is outside.
    pub(super) fn checked_index(&mut self, index: Reg, length: Reg) -> Reg {
        let (outside, ty) = (self.code.reg(Class::Pred), self.code.unsigned());
        let all = self.code.as_int(length);
        self.code.to(outside).setp((M::Ge, ty), index, all);
        self.fail_if(outside);
        self.code.as_length(index)
    }

    /// Returns an int as a length; fails if it is negative or larger than any sequence.
    fn checked_length(&mut self, count: Reg) -> Reg {
        let (outside, ty) = (self.code.reg(Class::Pred), self.code.unsigned());
        self.code.to(outside).setp((M::Gt, ty), count, i32::MAX);
        self.fail_if(outside);
        self.code.as_length(count)
    }

    pub(super) fn same_length(&mut self, a: Reg, b: Reg) {
        let differs = self.code.reg(Class::Pred);
        self.code.to(differs).setp((M::Ne, M::U32), a, b);
        self.fail_if(differs);
    }

    /// Compares values of any type.
    fn equal(&mut self, a: &Val, b: &Val) -> CodeResult<Reg> {
        match (a, b) {
            (Val::Base(Kind::Bool, a), Val::Base(_, b)) => {
                let differs = self.op(Elementwise::Xor, Kind::Bool, *a, *b);
                let to = self.code.reg(Class::Pred);
                self.code.to(to).not(M::Pred, differs);
                Ok(to)
            }
            (Val::Base(kind, a), Val::Base(_, b)) => Ok(self.op(Elementwise::Equal, *kind, *a, *b)),
            (Val::Tuple(a), Val::Tuple(b)) => {
                let mut all = self.code.bool(true);
                for (a, b) in a.iter().zip(b.iter()) {
                    let one = self.equal(a, b)?;
                    all = self.op(Elementwise::And, Kind::Bool, all, one);
                }
                Ok(all)
            }
            (Val::Seq(a), Val::Seq(b)) => {
                let (all, count) = (self.code.reg(Class::Pred), self.code.reg(Class::B32));
                self.code.to(all).setp((M::Eq, M::U32), a.length, b.length);
                // Sequences of different lengths have no elements to compare.
                self.code.to(count).selp(M::U32, a.length, 0, all);
                self.burn(count);
                let each = self.begin(count);
                let (x, y) = (self.element(a, each.index)?, self.element(b, each.index)?);
                let one = self.equal(&x, &y)?;
                self.code.to(all).and(M::Pred, all, one);
                self.end(each);
                Ok(all)
            }
            _ => Err("values of two types are compared".to_owned()),
        }
    }

    fn iseq(&mut self, argument: &Val) -> CodeResult<Val> {
        let (start, step, end) = three(argument)?;
        let ((_, start), (_, step), (_, end)) = (scalar(&start)?, scalar(&step)?, scalar(&end)?);
        let (ty, small, down) = (self.code.ty(Kind::Int), self.code.reg(Class::Pred), self.code.reg(Class::Pred));
        self.code.to(small).setp((M::Lt, ty), step, 1);
        self.fail_if(small);
        self.code.to(down).setp((M::Gt, ty), start, end);
        self.fail_if(down);
        let [distance, count, product, rest] = [(); 4].map(|()| self.code.of(Kind::Int));
        let (more, unsigned) = (self.code.reg(Class::Pred), self.code.unsigned());
        self.code.to(distance).sub(ty, end, start);
        self.code.to(count).div(unsigned, distance, step);
        self.code.to(product).mul((M::Lo, ty), count, step);
        self.code.to(more).setp((M::Ne, ty), product, distance);
        self.code.to(rest).selp(ty, 1, 0, more);
        self.code.to(count).add(ty, count, rest);
        let length = self.checked_length(count);
        Ok(Val::seq(length, Shape::Int, Items::Range(start, step)))
    }

    /// Returns arrays with a modifiable copy of the elements of a sequence.
    fn copied(&mut self, seq: &Seq) -> CodeResult<Vec<Reg>> {
        self.burn(seq.length);
        let arrays = self.room(seq.length, &seq.shape);
        self.copy_elements(seq, &arrays)?;
        Ok(arrays)
    }

    /// Returns a part of a sequence, which shares its memory.
    fn part(&mut self, seq: &Seq, start: Reg, length: Reg) -> CodeResult<Val> {
        let items = match &seq.items {
            Items::Stored(arrays) => {
                let mut kinds = vec![];
                super::slots(&seq.shape, &mut kinds);
                let moved = kinds.iter().zip(arrays).map(|(kind, array)| {
                    let bytes = self.code.bytes(*kind);
                    self.code.address(*array, start, bytes)
                });
                Items::Stored(moved.collect())
            }
            Items::Range(first, step) => {
                let Val::Base(_, first) =
                    self.element(&Seq { length, shape: Shape::Int, items: Items::Range(*first, *step) }, start)?
                else {
                    return Err("a range of no ints".to_owned());
                };
                Items::Range(first, *step)
            }
            Items::Same(value) => Items::Same(value.clone()),
        };
        Ok(Val::seq(length, seq.shape.clone(), items))
    }

    fn permute(&mut self, argument: &Val) -> CodeResult<Val> {
        let (values, indices) = two(argument)?;
        let (values, indices) = (sequence(&values)?, sequence(&indices)?);
        self.same_length(values.length, indices.length);
        self.burn(values.length);
        let arrays = self.room(values.length, &values.shape);
        // Flags of the indices that have occurred; they are after the result and are released.
        let mark = self.code.copy(Kind::Pointer, self.top);
        let seen = self.take(values.length, Kind::Bool);
        let no = self.code.bool(false);
        let clear = self.begin(values.length);
        self.code.store_at(Kind::Bool, seen, clear.index, no);
        self.end(clear);
        let each = self.begin(values.length);
        let (_, index) = scalar(&self.element(&indices, each.index)?)?;
        let index = self.checked_index(index, values.length);
        let twice = self.code.load_at(Kind::Bool, seen, index);
        self.code.sync();
        self.fail_if(twice);
        let yes = self.code.bool(true);
        self.code.store_at(Kind::Bool, seen, index, yes);
        let value = self.element(&values, each.index)?;
        self.put(&arrays, &values.shape, index, &value)?;
        self.end(each);
        if !matches!(indices.items, Items::Same(_)) && values.shape.is_scalar() {
            self.code.to(self.top).mov(M::B64, mark);
        }
        Ok(Val::seq(values.length, values.shape.clone(), Items::Stored(arrays)))
    }

    /// Copies all elements of a sequence to arrays from an index on, which is advanced.
    fn copy_to(&mut self, seq: &Seq, arrays: &[Reg], at: Reg) -> CodeResult<()> {
        let load = |w: &mut Self, index: Reg| {
            let value = w.element(seq, index)?;
            w.stored(&value)
        };
        self.spread(seq.length, load, |w, index, regs| {
            let place = w.code.reg(Class::B32);
            w.code.to(place).add(M::U32, at, index);
            w.store(arrays, &seq.shape, place, regs);
        })?;
        self.code.to(at).add(M::U32, at, seq.length);
        Ok(())
    }

    /// Returns the total length of several sequences.
    pub(super) fn appended_length(&mut self, parts: &[Rc<Seq>]) -> CodeResult<Reg> {
        let Some(first) = parts.first() else { return Err("nothing is appended".to_owned()) };
        let length = self.code.copy(Kind::Length, first.length);
        // Each partial sum is checked: the sum of several parts could wrap to a valid length.
        for part in &parts[1..] {
            self.code.to(length).add(M::U32, length, part.length);
            let checked = self.code.as_int(length);
            self.checked_length(checked);
        }
        Ok(length)
    }

    pub(super) fn append(&mut self, parts: &[Val]) -> CodeResult<Val> {
        let parts = parts.iter().map(sequence).collect::<CodeResult<Vec<Rc<Seq>>>>()?;
        let Some(first) = parts.first() else { return Err("nothing is appended".to_owned()) };
        let length = self.appended_length(&parts)?;
        self.burn(length);
        let arrays = self.room(length, &first.shape);
        let at = self.code.length(0);
        for (number, part) in parts.iter().enumerate() {
            // One barrier after all parts suffices.
            self.code.is_held = number + 1 < parts.len();
            self.copy_to(part, &arrays, at)?;
        }
        self.code.is_held = false;
        Ok(Val::seq(length, first.shape.clone(), Items::Stored(arrays)))
    }

    fn flattened(&mut self, seq: &Seq) -> CodeResult<Val> {
        let Shape::Seq(shape) = &seq.shape else { return Err("a nested sequence was expected".to_owned()) };
        self.burn(seq.length);
        let total = self.code.length(0);
        let count = self.begin(seq.length);
        let inner = sequence(&self.element(seq, count.index)?)?;
        self.code.to(total).add(M::U32, total, inner.length);
        let checked = self.code.as_int(total);
        self.checked_length(checked);
        self.end(count);
        self.burn(total);
        let arrays = self.room(total, shape);
        let at = self.code.length(0);
        let each = self.begin(seq.length);
        let inner = sequence(&self.element(seq, each.index)?)?;
        self.copy_to(&inner, &arrays, at)?;
        self.end(each);
        Ok(Val::seq(total, (**shape).clone(), Items::Stored(arrays)))
    }

    fn partition(&mut self, argument: &Val) -> CodeResult<Val> {
        let (values, lengths) = two(argument)?;
        let (values, lengths) = (sequence(&values)?, sequence(&lengths)?);
        let stored = self.arrays(&values)?;
        let values = Seq { length: values.length, shape: values.shape.clone(), items: Items::Stored(stored) };
        let shape = Shape::Seq(Box::new(values.shape.clone()));
        self.burn(lengths.length);
        let arrays = self.room(lengths.length, &shape);
        let (at, beyond) = (self.code.length(0), self.code.reg(Class::Pred));
        let each = self.begin(lengths.length);
        let (_, length) = scalar(&self.element(&lengths, each.index)?)?;
        let length = self.checked_length(length);
        let start = self.code.copy(Kind::Length, at);
        self.code.to(at).add(M::U32, at, length);
        self.code.to(beyond).setp((M::Gt, M::U32), at, values.length);
        self.fail_if(beyond);
        let part = self.part(&values, start, length)?;
        self.put(&arrays, &shape, each.index, &part)?;
        self.end(each);
        self.same_length(at, values.length);
        Ok(Val::seq(lengths.length, shape, Items::Stored(arrays)))
    }

    /// Returns a register with the result of a scan or reduction of an empty sequence.
    pub(super) fn neutral(&mut self, fold: Fold, ty: TypeId) -> CodeResult<(Kind, Reg)> {
        let ty = self.m.c.resolve(ty);
        let element = match self.m.c.env.types[ty] {
            Nesl::Seq(element) => self.base(element),
            _ => None,
        };
        let neutral = fold.neutral(self.code.widths);
        match element {
            Some(Base::Int) => Ok((Kind::Int, self.code.int(neutral.int))),
            Some(Base::Float) => Ok((Kind::Float, self.code.float(neutral.float))),
            Some(Base::Bool) => Ok((Kind::Bool, self.code.bool(neutral.bool))),
            Some(Base::Char) => Ok((Kind::Int, self.code.int(i64::from(fold.char())))),
            None => Err("numbers were expected".to_owned()),
        }
    }

    /// Combines a value into a register. The extremum of some values is one of them, so at index 0 of a
    /// reduction the result is the value.
    pub(super) fn combine(&mut self, fold: Fold, kind: Kind, out: Reg, value: Reg, index: Option<Reg>) -> CodeResult<()> {
        match fold.combination() {
            Combination::Operation(operation) => {
                let new = self.op(operation, kind, out, value);
                self.code.set(kind, out, new);
            }
            Combination::Extremum(_) if kind == Kind::Bool => return Err(reason(Primitive::Reduce(fold))),
            Combination::Extremum(comparison) => {
                let mut takes = self.op(comparison, kind, value, out);
                if let Some(index) = index {
                    let first = self.code.reg(Class::Pred);
                    self.code.to(first).setp((M::Eq, M::U32), index, 0);
                    takes = self.op(Elementwise::Or, Kind::Bool, takes, first);
                }
                let ty = self.code.ty(kind);
                self.code.to(out).selp(ty, value, out, takes);
            }
        }
        Ok(())
    }

    fn scan(&mut self, fold: Fold, seq: &Seq, ty: TypeId) -> CodeResult<Val> {
        self.burn(seq.length);
        let (kind, sum) = self.neutral(fold, ty)?;
        let arrays = self.room(seq.length, &seq.shape);
        let each = self.begin(seq.length);
        let (_, value) = scalar(&self.element(seq, each.index)?)?;
        self.put(&arrays, &seq.shape, each.index, &Val::Base(kind, sum))?;
        self.combine(fold, kind, sum, value, None)?;
        self.end(each);
        Ok(Val::seq(seq.length, seq.shape.clone(), Items::Stored(arrays)))
    }

    /// Reduces the scalar elements of an apply-to-each without storing them.
    pub(super) fn reduce_each(&mut self, fold: Fold, each: &Each, ty: TypeId) -> CodeResult<Val> {
        let sources = self.sources(each)?;
        let Some(length) = sources.first().map(|first| first.length) else { return Err("no generator".to_owned()) };
        self.burn(length);
        self.reduce(fold, ty, length, |w, index| {
            w.bind_elements(each, &sources, index)?;
            w.scalar(each.body)
        })
    }
}

/// Returns the type of vectors of a kind of values.
fn kind_type(kind: Kind) -> Type {
    match kind {
        Kind::Float => Type::Float,
        Kind::Bool => Type::Bool,
        Kind::Int | Kind::Length | Kind::Pointer => Type::Int,
    }
}
