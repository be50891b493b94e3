//! Primitives on values of any type: hashes, neutral values, `unpack`, `@` of scalars.

use super::CodeResult;
use super::code::{Class, Kind, Reg, slots};
use super::expr::{Items, Seq, Val, Writer};
use crate::primitives::{Elementwise, Fold};
use crate::types::{Base, Type as Nesl, TypeId};
use crate::vcode::Shape;
use broadloom_ptx::Modifier as M;
use broadloom_ptx::builder::Instructions;

/// Factors of hashes, the same as in the evaluator.
const ODD: i64 = 0x2545_F491;
const FACTOR: i64 = 0x5851_F42D;

impl Writer<'_, '_, '_> {
    /// Records a loop whose rounds run in order.
    pub(super) fn in_order(&mut self) {
        self.refused |= self.varying;
        self.m.has_order |= self.code.team.is_some() && !self.varying;
    }

    /// Returns the hash of a value, equal to that of the evaluator.
    pub(super) fn hash(&mut self, value: &Val, ty: TypeId) -> CodeResult<Reg> {
        use Elementwise::{Add, Multiply};
        let ty = self.m.c.resolve(ty);
        match (value, self.m.c.env.types[ty].clone()) {
            (Val::Base(Kind::Bool, reg), _) => {
                let number = self.code.number(*reg);
                Ok(self.code.as_int(number))
            }
            (Val::Base(Kind::Float, reg), _) => Ok(self.hash_of_float(*reg)),
            (Val::Base(_, reg), _) => Ok(*reg),
            (Val::Tuple(parts), Nesl::Pair(first, rest)) if parts.len() == 2 => {
                let (first, rest) = (self.hash(&parts[0], first)?, self.hash(&parts[1], rest)?);
                let (one, odd) = (self.code.int(1), self.code.int(ODD));
                let rest = self.op(Add, Kind::Int, rest, one);
                let rest = self.op(Multiply, Kind::Int, rest, odd);
                Ok(self.op(Add, Kind::Int, first, rest))
            }
            (Val::Tuple(_), Nesl::Function { .. }) => Ok(self.code.int(0)),
            (Val::Seq(seq), Nesl::Seq(element)) => {
                let int = self.m.c.env.types.base(Base::Int);
                let ints = self.m.c.env.types.intern(Nesl::Seq(int));
                self.burn(seq.length);
                let terms = self.reduce(Fold::Sum, ints, seq.length, |w, index| {
                    let value = w.element(seq, index)?;
                    let hash = w.hash(&value, element)?;
                    let (one, odd, factor, index) = (w.code.int(1), w.code.int(ODD), w.code.int(FACTOR), w.code.as_int(index));
                    let weight = w.op(Multiply, Kind::Int, index, factor);
                    let weight = w.op(Add, Kind::Int, weight, odd);
                    let weight = w.op(Multiply, Kind::Int, weight, weight);
                    let hash = w.op(Add, Kind::Int, hash, one);
                    Ok(w.op(Multiply, Kind::Int, hash, weight))
                })?;
                let Val::Base(_, terms) = terms else { return Err("a sum is no number".to_owned()) };
                let length = self.code.as_int(seq.length);
                Ok(self.op(Add, Kind::Int, length, terms))
            }
            _ => Err("a value does not have its type".to_owned()),
        }
    }

    /// Returns the folded bits of a float. For zeros of both signs they are 0.
    fn hash_of_float(&mut self, value: Reg) -> Reg {
        let wide = match value.class {
            Class::F32 => {
                let wide = self.code.reg(Class::F64);
                self.code.to(wide).cvt((M::F64, M::F32), value);
                wide
            }
            _ => value,
        };
        let [bits, high, folded] = [(); 3].map(|()| self.code.reg(Class::B64));
        let is_zero = self.code.reg(Class::Pred);
        self.code.to(is_zero).setp((M::Eq, M::F64), wide, 0.0);
        self.code.to(bits).mov(M::B64, wide);
        self.code.to(bits).selp(M::B64, 0, bits, is_zero);
        self.code.to(high).shr(M::S64, bits, 32);
        self.code.to(folded).xor(M::B64, bits, high);
        if self.code.widths.wide_int {
            return folded;
        }
        let low = self.code.reg(Class::B32);
        self.code.to(low).cvt((M::U32, M::U64), folded);
        low
    }

    /// Returns the neutral value of a type.
    pub(super) fn neutral_of(&mut self, ty: TypeId) -> CodeResult<Val> {
        let ty = self.m.c.resolve(ty);
        Ok(match self.m.c.env.types[ty].clone() {
            Nesl::Base(Base::Int) => Val::Base(Kind::Int, self.code.int(0)),
            Nesl::Base(Base::Char) => Val::Base(Kind::Int, self.code.int(i64::from(b' '))),
            Nesl::Base(Base::Float) => Val::Base(Kind::Float, self.code.float(0.0)),
            Nesl::Base(Base::Bool) => Val::Base(Kind::Bool, self.code.bool(false)),
            Nesl::Pair(first, rest) => {
                let first = self.neutral_of(first)?;
                Val::pair(first, self.neutral_of(rest)?)
            }
            Nesl::Seq(element) => {
                let (shape, mut kinds) = (self.m.c.shape(element)?, vec![]);
                slots(&shape, &mut kinds);
                let nowhere = |code: &mut super::Code| {
                    let array = code.reg(Class::B64);
                    code.to(array).mov(M::U64, 0);
                    array
                };
                let arrays = kinds.iter().map(|_| nowhere(&mut self.code)).collect();
                Val::seq(self.code.length(0), shape, Items::Stored(arrays))
            }
            _ => return Err("a function has no neutral value".to_owned()),
        })
    }

    /// Writes values to the indices of true flags, in order; other indices get the neutral value.
    pub(super) fn unpack(&mut self, values: &Seq, flags: &Seq, element: TypeId) -> CodeResult<Val> {
        self.burn(flags.length);
        let arrays = self.room(flags.length, &values.shape);
        let (at, beyond) = (self.code.length(0), self.code.reg(Class::Pred));
        let each = self.begin(flags.length);
        let Val::Base(_, flag) = self.element(flags, each.index)? else { return Err("flags were expected".to_owned()) };
        let (other, next) = (self.code.label(), self.code.label());
        self.code.go_unless(flag, other);
        self.code.to(beyond).setp((M::Ge, M::U32), at, values.length);
        self.fail_if(beyond);
        let value = self.element(values, at)?;
        self.put(&arrays, &values.shape, each.index, &value)?;
        self.code.to(at).add(M::U32, at, 1);
        self.code.go(next);
        self.code.place(other);
        let neutral = self.neutral_of(element)?;
        self.put(&arrays, &values.shape, each.index, &neutral)?;
        self.code.place(next);
        self.end(each);
        self.same_length(at, values.length);
        Ok(Val::seq(flags.length, values.shape.clone(), Items::Stored(arrays)))
    }

    /// Returns a scalar as text.
    pub(super) fn show(&mut self, value: &Val, ty: TypeId) -> CodeResult<Val> {
        match (value, self.base(ty)) {
            (Val::Base(_, value), Some(Base::Int)) => Ok(self.decimal(*value)),
            (Val::Base(_, value), Some(Base::Bool)) => {
                let [yes, no] = [b't', b'f'].map(|letter| self.code.int(i64::from(letter)));
                let (letter, bits) = (self.code.of(Kind::Int), self.code.bits(Kind::Int));
                self.code.to(letter).selp(bits, yes, no, value);
                Ok(self.letters(&[letter]))
            }
            (Val::Base(_, value), Some(Base::Char)) => {
                let quote = self.code.int(i64::from(b'`'));
                Ok(self.letters(&[quote, *value]))
            }
            _ => Err("it uses `@` of a float, a tuple or a sequence, which runs flattened only".to_owned()),
        }
    }

    /// Returns a sequence of a few characters.
    fn letters(&mut self, letters: &[Reg]) -> Val {
        let length = self.code.length(letters.len() as u32);
        let arrays = self.room(length, &Shape::Int);
        self.code.meet();
        for (index, letter) in letters.iter().enumerate() {
            let index = self.code.length(index as u32);
            self.store(&arrays, &Shape::Int, index, &[*letter]);
        }
        Val::seq(length, Shape::Int, Items::Stored(arrays))
    }

    /// Returns the decimal digits of an int.
    fn decimal(&mut self, value: Reg) -> Val {
        self.in_order();
        let (ty, unsigned) = (self.code.ty(Kind::Int), self.code.unsigned());
        let (negative, done) = (self.code.reg(Class::Pred), self.code.reg(Class::Pred));
        let [magnitude, rest] = [(); 2].map(|()| self.code.of(Kind::Int));
        // The magnitude of the least int is correct as an unsigned number.
        self.code.to(negative).setp((M::Lt, ty), value, 0);
        self.code.to(magnitude).neg(ty, value);
        self.code.to(magnitude).selp(ty, magnitude, value, negative);
        let (length, sign) = (self.code.length(1), self.code.number(negative));
        self.code.to(length).add(M::U32, length, sign);
        self.code.to(rest).mov(unsigned, magnitude);
        let [counting, counted, writing] = [(); 3].map(|()| self.code.label());
        self.code.place(counting);
        self.code.to(done).setp((M::Lt, unsigned), rest, 10);
        self.code.go_if(done, counted);
        self.code.to(rest).div(unsigned, rest, 10);
        self.code.to(length).add(M::U32, length, 1);
        self.code.go(counting);
        self.code.place(counted);
        let arrays = self.room(length, &Shape::Int);
        self.code.meet();
        let (minus, first) = (self.code.int(i64::from(b'-')), self.code.length(0));
        // The sign is written first; a digit overwrites it if the number is not negative.
        self.store(&arrays, &Shape::Int, first, &[minus]);
        let (at, digit) = (self.code.copy(Kind::Length, length), self.code.of(Kind::Int));
        self.code.place(writing);
        self.code.to(at).sub(M::U32, at, 1);
        self.code.to(digit).rem(unsigned, magnitude, 10);
        self.code.to(digit).add(ty, digit, i32::from(b'0'));
        self.store(&arrays, &Shape::Int, at, &[digit]);
        self.code.to(magnitude).div(unsigned, magnitude, 10);
        self.code.to(done).setp((M::Ne, unsigned), magnitude, 0);
        self.code.go_if(done, writing);
        self.code.sync();
        Val::seq(length, Shape::Int, Items::Stored(arrays))
    }
}
