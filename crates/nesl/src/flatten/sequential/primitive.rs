//! Primitives. Those without code here run only flattened.

use super::code::{Class, Kind, Reg, emit};
use super::expr::{Items, Seq, Val, Writer};
use super::{CodeResult, math, reason};
use crate::core::Each;
use crate::core::Primitive;
use crate::eval::largest_float;
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::Shape;
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
            P::Add | P::Subtract | P::Multiply | P::Divide | P::Rem | P::LeftShift | P::RightShift => {
                let (a, b) = two(argument)?;
                let ((kind, a), (_, b)) = (scalar(&a)?, scalar(&b)?);
                Ok(Val::Base(kind, self.arithmetic(primitive, kind, a, b)))
            }
            P::Equal | P::NotEqual | P::Less | P::Greater | P::LessEqual | P::GreaterEqual => {
                let (a, b) = two(argument)?;
                let ((kind, a), (_, b)) = (scalar(&a)?, scalar(&b)?);
                if kind == Kind::Bool {
                    return Err(reason(primitive));
                }
                Ok(Val::Base(Kind::Bool, self.compared(primitive, kind, a, b)))
            }
            P::And | P::Or | P::Xor => {
                let (a, b) = two(argument)?;
                let ((kind, a), (_, b)) = (scalar(&a)?, scalar(&b)?);
                Ok(Val::Base(kind, self.logic(primitive, kind, a, b)))
            }
            P::Not => {
                let (kind, a) = scalar(argument)?;
                let (to, bits) = (self.code.of(kind), self.code.bits(kind));
                emit!(self.code, "not.{bits} {to}, {a};");
                Ok(Val::Base(kind, to))
            }
            P::Negate => {
                let (kind, a) = scalar(argument)?;
                let zero = self.zero(kind);
                Ok(Val::Base(kind, self.arithmetic(P::Subtract, kind, zero, a)))
            }
            P::Float => self.as_float(argument),
            P::Ceil | P::Floor | P::Trunc => {
                let (_, a) = scalar(argument)?;
                let rounding = match primitive {
                    P::Ceil => "rpi",
                    P::Floor => "rmi",
                    _ => "rzi",
                };
                Ok(Val::Base(Kind::Int, self.as_int(a, rounding)))
            }
            P::Btoi => {
                let (_, a) = scalar(argument)?;
                let number = self.code.number(a);
                Ok(Val::Base(Kind::Int, self.code.as_int(number)))
            }
            P::CharCode => Ok(argument.clone()),
            P::CodeChar => {
                let (_, a) = scalar(argument)?;
                let (beyond, ty) = (self.code.reg(Class::Pred), self.code.ty(Kind::Int).replace('s', "u"));
                emit!(self.code, "setp.gt.{ty} {beyond}, {a}, 255;");
                self.fail_if(beyond);
                Ok(argument.clone())
            }
            P::Sqrt => {
                let (kind, a) = scalar(argument)?;
                let (to, ty, zero, negative) =
                    (self.code.of(kind), self.code.ty(kind), self.code.float(0.0), self.code.reg(Class::Pred));
                emit!(self.code, "setp.lt.{ty} {negative}, {a}, {zero};");
                self.fail_if(negative);
                emit!(self.code, "sqrt.rn.{ty} {to}, {a};");
                Ok(Val::Base(kind, to))
            }
            P::IntToAny | P::AsFloat => {
                let value = if primitive == P::AsFloat { argument.clone() } else { two(argument)?.0 };
                let (kind, _) = scalar(&value)?;
                if self.base(result) == Some(Base::Float) && kind == Kind::Int { self.as_float(&value) } else { Ok(value) }
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
                emit!(self.code, "add.u32 {kept}, {kept}, {one};");
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
                let (ty, after, beyond) =
                    (self.code.ty(Kind::Int).replace('s', "u"), self.code.reg(Class::Pred), self.code.reg(Class::Pred));
                let all = self.code.as_int(values.length);
                emit!(self.code, "setp.gt.{ty} {after}, {start}, {end};");
                self.fail_if(after);
                emit!(self.code, "setp.gt.{ty} {beyond}, {end}, {all};");
                self.fail_if(beyond);
                let (start, end, length) = (self.code.as_length(start), self.code.as_length(end), self.code.reg(Class::B32));
                emit!(self.code, "sub.u32 {length}, {end}, {start};");
                self.part(&values, start, length)
            }
            P::PlusScan | P::MultScan | P::MaxScan | P::MinScan | P::OrScan | P::AndScan | P::XorScan => {
                self.scan(primitive, &*sequence(argument)?, result)
            }
            P::Sum | P::Product | P::MaxVal | P::MinVal | P::Any | P::All | P::Parity => {
                let seq = sequence(argument)?;
                self.burn(seq.length);
                self.reduce(primitive, ty, seq.length, |w, index| Ok(scalar(&w.element(&seq, index)?)?.1))
            }
            _ => match math::function(primitive) {
                Some(function) => {
                    let (kind, a) = scalar(argument)?;
                    Ok(Val::Base(kind, self.elementary(function, a)?))
                }
                None => Err(reason(primitive)),
            },
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

    pub(super) fn arithmetic(&mut self, primitive: Primitive, kind: Kind, a: Reg, b: Reg) -> Reg {
        let (to, ty) = (self.code.of(kind), self.code.ty(kind));
        match (primitive, kind) {
            (Primitive::Add, Kind::Float) => emit!(self.code, "add.rn.{ty} {to}, {a}, {b};"),
            (Primitive::Subtract, Kind::Float) => emit!(self.code, "sub.rn.{ty} {to}, {a}, {b};"),
            (Primitive::Multiply, Kind::Float) => emit!(self.code, "mul.rn.{ty} {to}, {a}, {b};"),
            (_, Kind::Float) => {
                let (zero, none) = (self.code.float(0.0), self.code.reg(Class::Pred));
                emit!(self.code, "setp.eq.{ty} {none}, {b}, {zero};");
                self.fail_if(none);
                emit!(self.code, "div.rn.{ty} {to}, {a}, {b};");
            }
            (Primitive::Add, _) => emit!(self.code, "add.{ty} {to}, {a}, {b};"),
            (Primitive::Subtract, _) => emit!(self.code, "sub.{ty} {to}, {a}, {b};"),
            (Primitive::Multiply, _) => emit!(self.code, "mul.lo.{ty} {to}, {a}, {b};"),
            (Primitive::LeftShift | Primitive::RightShift, _) => {
                let count = self.code.reg(Class::B32);
                let b = self.code.as_length(b);
                let bits = self.code.bits(kind);
                emit!(self.code, "and.b32 {count}, {b}, {};", if bits == "b64" { 63 } else { 31 });
                if primitive == Primitive::LeftShift {
                    emit!(self.code, "shl.{bits} {to}, {a}, {count};");
                } else {
                    emit!(self.code, "shr.{ty} {to}, {a}, {count};");
                }
            }
            (_, _) => {
                // The quotient of the least int and -1 wraps.
                let (none, minus, divisor) = (self.code.reg(Class::Pred), self.code.reg(Class::Pred), self.code.of(kind));
                emit!(self.code, "setp.eq.{ty} {none}, {b}, 0;");
                self.fail_if(none);
                emit!(self.code, "setp.eq.{ty} {minus}, {b}, -1;");
                emit!(self.code, "selp.{ty} {divisor}, 1, {b}, {minus};");
                if primitive == Primitive::Rem {
                    emit!(self.code, "rem.{ty} {to}, {a}, {divisor};");
                } else {
                    let (quotient, negated) = (self.code.of(kind), self.code.of(kind));
                    emit!(self.code, "div.{ty} {quotient}, {a}, {divisor};");
                    emit!(self.code, "neg.{ty} {negated}, {a};");
                    emit!(self.code, "selp.{ty} {to}, {negated}, {quotient}, {minus};");
                }
            }
        }
        to
    }

    /// Compares two numbers. A NaN is unequal to everything and neither less nor greater.
    fn compared(&mut self, primitive: Primitive, kind: Kind, a: Reg, b: Reg) -> Reg {
        let (to, ty) = (self.code.reg(Class::Pred), self.code.ty(kind));
        let how = match (primitive, kind) {
            (Primitive::Equal, _) => "eq",
            (Primitive::NotEqual, Kind::Float) => "neu",
            (Primitive::NotEqual, _) => "ne",
            (Primitive::Less, _) => "lt",
            (Primitive::Greater, _) => "gt",
            (Primitive::LessEqual, _) => "le",
            (_, _) => "ge",
        };
        emit!(self.code, "setp.{how}.{ty} {to}, {a}, {b};");
        to
    }

    fn logic(&mut self, primitive: Primitive, kind: Kind, a: Reg, b: Reg) -> Reg {
        let (to, bits) = (self.code.of(kind), self.code.bits(kind));
        let how = match primitive {
            Primitive::And | Primitive::AndScan | Primitive::All => "and",
            Primitive::Or | Primitive::OrScan | Primitive::Any => "or",
            _ => "xor",
        };
        emit!(self.code, "{how}.{bits} {to}, {a}, {b};");
        to
    }

    fn as_float(&mut self, value: &Val) -> CodeResult<Val> {
        let (_, a) = scalar(value)?;
        let (to, from, ty) = (self.code.of(Kind::Float), self.code.ty(Kind::Int), self.code.ty(Kind::Float));
        emit!(self.code, "cvt.rn.{ty}.{from} {to}, {a};");
        Ok(Val::Base(Kind::Float, to))
    }

    /// Converts a float to the nearest int in a direction; a NaN is 0.
    fn as_int(&mut self, a: Reg, rounding: &str) -> Reg {
        let (whole, to, odd) = (self.code.of(Kind::Int), self.code.of(Kind::Int), self.code.reg(Class::Pred));
        let (int, ty) = (self.code.ty(Kind::Int), self.code.ty(Kind::Float));
        emit!(self.code, "cvt.{rounding}.{int}.{ty} {whole}, {a};");
        emit!(self.code, "setp.nan.{ty} {odd}, {a}, {a};");
        emit!(self.code, "selp.{int} {to}, 0, {whole}, {odd};");
        to
    }

    /// Returns an int as an index; fails if it is outside.
    pub(super) fn checked_index(&mut self, index: Reg, length: Reg) -> Reg {
        let (outside, ty) = (self.code.reg(Class::Pred), self.code.ty(Kind::Int).replace('s', "u"));
        let all = self.code.as_int(length);
        emit!(self.code, "setp.ge.{ty} {outside}, {index}, {all};");
        self.fail_if(outside);
        self.code.as_length(index)
    }

    /// Returns an int as a length; fails if it is negative or larger than any sequence.
    fn checked_length(&mut self, count: Reg) -> Reg {
        let (outside, ty) = (self.code.reg(Class::Pred), self.code.ty(Kind::Int).replace('s', "u"));
        emit!(self.code, "setp.gt.{ty} {outside}, {count}, {};", i32::MAX);
        self.fail_if(outside);
        self.code.as_length(count)
    }

    pub(super) fn same_length(&mut self, a: Reg, b: Reg) {
        let differs = self.code.reg(Class::Pred);
        emit!(self.code, "setp.ne.u32 {differs}, {a}, {b};");
        self.fail_if(differs);
    }

    /// Compares values of any type.
    fn equal(&mut self, a: &Val, b: &Val) -> CodeResult<Reg> {
        match (a, b) {
            (Val::Base(Kind::Bool, a), Val::Base(_, b)) => {
                let differs = self.logic(Primitive::Xor, Kind::Bool, *a, *b);
                let to = self.code.reg(Class::Pred);
                emit!(self.code, "not.pred {to}, {differs};");
                Ok(to)
            }
            (Val::Base(kind, a), Val::Base(_, b)) => Ok(self.compared(Primitive::Equal, *kind, *a, *b)),
            (Val::Tuple(a), Val::Tuple(b)) => {
                let mut all = self.code.bool(true);
                for (a, b) in a.iter().zip(b.iter()) {
                    let one = self.equal(a, b)?;
                    all = self.logic(Primitive::And, Kind::Bool, all, one);
                }
                Ok(all)
            }
            (Val::Seq(a), Val::Seq(b)) => {
                let (all, count) = (self.code.reg(Class::Pred), self.code.reg(Class::B32));
                emit!(self.code, "setp.eq.u32 {all}, {}, {};", a.length, b.length);
                // Sequences of different lengths have no elements to compare.
                emit!(self.code, "selp.u32 {count}, {}, 0, {all};", a.length);
                self.burn(count);
                let each = self.begin(count);
                let (x, y) = (self.element(a, each.index)?, self.element(b, each.index)?);
                let one = self.equal(&x, &y)?;
                emit!(self.code, "and.pred {all}, {all}, {one};");
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
        emit!(self.code, "setp.lt.{ty} {small}, {step}, 1;");
        self.fail_if(small);
        emit!(self.code, "setp.gt.{ty} {down}, {start}, {end};");
        self.fail_if(down);
        let [distance, count, product, rest] = [(); 4].map(|()| self.code.of(Kind::Int));
        let (more, unsigned) = (self.code.reg(Class::Pred), ty.replace('s', "u"));
        emit!(self.code, "sub.{ty} {distance}, {end}, {start};");
        emit!(self.code, "div.{unsigned} {count}, {distance}, {step};");
        emit!(self.code, "mul.lo.{ty} {product}, {count}, {step};");
        emit!(self.code, "setp.ne.{ty} {more}, {product}, {distance};");
        emit!(self.code, "selp.{ty} {rest}, 1, 0, {more};");
        emit!(self.code, "add.{ty} {count}, {count}, {rest};");
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
            emit!(self.code, "mov.b64 {}, {mark};", self.top);
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
            emit!(w.code, "add.u32 {place}, {at}, {index};");
            w.store(arrays, &seq.shape, place, regs);
        })?;
        emit!(self.code, "add.u32 {at}, {at}, {};", seq.length);
        Ok(())
    }

    /// Returns the total length of several sequences.
    pub(super) fn appended_length(&mut self, parts: &[Rc<Seq>]) -> CodeResult<Reg> {
        let Some(first) = parts.first() else { return Err("nothing is appended".to_owned()) };
        let length = self.code.copy(Kind::Length, first.length);
        // Each partial sum is checked: the sum of several parts could wrap to a valid length.
        for part in &parts[1..] {
            emit!(self.code, "add.u32 {length}, {length}, {};", part.length);
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
        emit!(self.code, "add.u32 {total}, {total}, {};", inner.length);
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
        emit!(self.code, "add.u32 {at}, {at}, {length};");
        emit!(self.code, "setp.gt.u32 {beyond}, {at}, {};", values.length);
        self.fail_if(beyond);
        let part = self.part(&values, start, length)?;
        self.put(&arrays, &shape, each.index, &part)?;
        self.end(each);
        self.same_length(at, values.length);
        Ok(Val::seq(lengths.length, shape, Items::Stored(arrays)))
    }

    /// Returns a register with the result of a scan or reduction of an empty sequence.
    pub(super) fn neutral(&mut self, primitive: Primitive, ty: TypeId) -> CodeResult<(Kind, Reg)> {
        use Primitive as P;
        let ty = self.m.c.resolve(ty);
        let element = match self.m.c.env.types[ty] {
            Nesl::Seq(element) => self.base(element),
            _ => None,
        };
        let Some(base) = element else { return Err("numbers were expected".to_owned()) };
        let wide = self.code.widths.wide_int;
        let least = if wide { i64::MIN } else { i64::from(i32::MIN) };
        Ok(match (primitive, base) {
            (P::MaxScan | P::MaxVal, Base::Int) => (Kind::Int, self.code.int(least)),
            (P::MinScan | P::MinVal, Base::Int) => (Kind::Int, self.code.int(!least)),
            (P::MaxScan | P::MaxVal, Base::Float) => (Kind::Float, self.code.float(-largest_float())),
            (P::MinScan | P::MinVal, Base::Float) => (Kind::Float, self.code.float(largest_float())),
            (P::MinScan | P::MinVal, Base::Char) => (Kind::Int, self.code.int(255)),
            (P::MultScan | P::Product, Base::Float) => (Kind::Float, self.code.float(1.0)),
            (P::MultScan | P::Product, _) => (Kind::Int, self.code.int(1)),
            (P::AndScan | P::All, Base::Bool) => (Kind::Bool, self.code.bool(true)),
            (P::AndScan | P::All, _) => (Kind::Int, self.code.int(-1)),
            (_, Base::Bool) => (Kind::Bool, self.code.bool(false)),
            (_, Base::Float) => (Kind::Float, self.code.float(0.0)),
            _ => (Kind::Int, self.code.int(0)),
        })
    }

    /// Combines a value into a register. The extremum of some values is one of them, so at index 0 of a
    /// reduction the result is the value.
    pub(super) fn combine(
        &mut self,
        primitive: Primitive,
        kind: Kind,
        out: Reg,
        value: Reg,
        index: Option<Reg>,
    ) -> CodeResult<()> {
        use Primitive as P;
        match primitive {
            P::Sum | P::PlusScan | P::Product | P::MultScan => {
                let op = if matches!(primitive, P::Sum | P::PlusScan) { P::Add } else { P::Multiply };
                let new = self.arithmetic(op, kind, out, value);
                self.code.set(kind, out, new);
            }
            P::MaxVal | P::MaxScan | P::MinVal | P::MinScan => {
                if kind == Kind::Bool {
                    return Err(reason(primitive));
                }
                let is_max = matches!(primitive, P::MaxVal | P::MaxScan);
                let mut takes = self.compared(if is_max { P::Greater } else { P::Less }, kind, value, out);
                if let Some(index) = index {
                    let first = self.code.reg(Class::Pred);
                    emit!(self.code, "setp.eq.u32 {first}, {index}, 0;");
                    takes = self.logic(P::Or, Kind::Bool, takes, first);
                }
                let ty = self.code.ty(kind);
                emit!(self.code, "selp.{ty} {out}, {value}, {out}, {takes};");
            }
            _ => {
                let new = self.logic(primitive, kind, out, value);
                self.code.set(kind, out, new);
            }
        }
        Ok(())
    }

    fn scan(&mut self, primitive: Primitive, seq: &Seq, ty: TypeId) -> CodeResult<Val> {
        self.burn(seq.length);
        let (kind, sum) = self.neutral(primitive, ty)?;
        let arrays = self.room(seq.length, &seq.shape);
        let each = self.begin(seq.length);
        let (_, value) = scalar(&self.element(seq, each.index)?)?;
        self.put(&arrays, &seq.shape, each.index, &Val::Base(kind, sum))?;
        self.combine(primitive, kind, sum, value, None)?;
        self.end(each);
        Ok(Val::seq(seq.length, seq.shape.clone(), Items::Stored(arrays)))
    }

    /// Reduces the scalar elements of an apply-to-each without storing them.
    pub(super) fn reduce_each(&mut self, primitive: Primitive, each: &Each, ty: TypeId) -> CodeResult<Val> {
        let sources = self.sources(each)?;
        let Some(length) = sources.first().map(|first| first.length) else { return Err("no generator".to_owned()) };
        self.burn(length);
        self.reduce(primitive, ty, length, |w, index| {
            w.bind_elements(each, &sources, index)?;
            w.scalar(each.body)
        })
    }
}
