//! Ranks: a stable merge sort of indices.
//!
//! Runs of 1, 2, 4, … indices are merged in order from one array into another. All lanes of a warp do the
//! same work, so a rank costs a warp as much as a thread. A team has no form for it.

use super::CodeResult;
use super::code::{Class, Kind, Reg};
use super::expr::{Items, Seq, Val, Writer};
use crate::vcode::Shape;
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier as M, Type};

impl Writer<'_, '_, '_> {
    /// Returns the ranks of scalars; the sort is stable.
    pub(super) fn rank(&mut self, seq: &Seq, descending: bool) -> CodeResult<Val> {
        let kind = match seq.shape {
            Shape::Int => Kind::Int,
            Shape::Float => Kind::Float,
            Shape::Bool | Shape::Tuple(_) | Shape::Seq(_) => return Err("it ranks what has no order".to_owned()),
        };
        let count = seq.length;
        let [keys] = self.arrays(seq)?[..] else { return Err("a key has several parts".to_owned()) };
        self.burn(count);
        let ranks = self.room(count, &Shape::Int);
        // Both arrays of indices are after the result and are released.
        let mark = self.code.copy(Kind::Pointer, self.top);
        let [from, to] = [(); 2].map(|()| self.take(count, Kind::Length));
        let number = |w: &mut Self, index: Reg| Ok(vec![w.code.copy(Kind::Length, index)]);
        self.spread(count, number, |w, index, regs| w.code.store_at(Kind::Length, from, index, regs[0]))?;
        self.sorted(count, (kind, keys, descending), (from, to));
        let place = |w: &mut Self, index: Reg| {
            let (place, rank) = (w.code.load_at(Kind::Length, from, index), w.code.as_int(index));
            Ok(vec![place, rank])
        };
        self.spread(count, place, |w, _, regs| w.store(&ranks, &Shape::Int, regs[0], &regs[1..]))?;
        self.code.to(self.top).mov(M::B64, mark);
        Ok(Val::seq(count, Shape::Int, Items::Stored(ranks)))
    }

    /// Sorts indices by their keys. `from` is the array of the indices, before and after the sort; the other
    /// array is temporary.
    fn sorted(&mut self, count: Reg, (kind, keys, descending): (Kind, Reg, bool), (from, to): (Reg, Reg)) {
        self.in_order();
        self.code.sync();
        let (width, done) = (self.code.length(1), self.code.reg(Class::Pred));
        let [rounds, runs, merge, merged, end] = [(); 5].map(|()| self.code.label());
        self.code.place(rounds);
        self.code.to(done).setp((M::Ge, M::U32), width, count);
        self.code.go_if(done, end);
        self.burn(count);
        let start = self.code.length(0);
        // Lengths are below 2^31, so sums of two do not wrap.
        self.code.place(runs);
        let [middle, last, a, b, at] = [(); 5].map(|()| self.code.length(0));
        self.code.to(middle).add(M::U32, start, width);
        self.code.to(middle).min(M::U32, middle, count);
        self.code.to(last).add(M::U32, middle, width);
        self.code.to(last).min(M::U32, last, count);
        self.code.to(a).mov(M::U32, start);
        self.code.to(b).mov(M::U32, middle);
        self.code.to(at).mov(M::U32, start);
        self.code.place(merge);
        self.code.to(done).setp((M::Ge, M::U32), at, last);
        self.code.go_if(done, merged);
        let index = self.code.length(0);
        let [first, second, next] = [(); 3].map(|()| self.code.label());
        self.code.to(done).setp((M::Ge, M::U32), a, middle);
        self.code.go_if(done, second);
        self.code.to(done).setp((M::Ge, M::U32), b, last);
        self.code.go_if(done, first);
        let [x, y] = [a, b].map(|run| {
            let index = self.code.load_at(Kind::Length, from, run);
            self.key(kind, keys, index)
        });
        let ty = if x.class == Class::B64 { Type::S64 } else { Type::S32 };
        self.code.to(done).setp((if descending { M::Gt } else { M::Lt }, ty), y, x);
        self.code.go_if(done, second);
        for (label, run) in [(first, a), (second, b)] {
            self.code.place(label);
            let taken = self.code.load_at(Kind::Length, from, run);
            self.code.to(index).mov(M::U32, taken);
            self.code.to(run).add(M::U32, run, 1);
            if label == first {
                self.code.go(next);
            }
        }
        self.code.place(next);
        self.code.store_at(Kind::Length, to, at, index);
        self.code.to(at).add(M::U32, at, 1);
        self.code.go(merge);
        self.code.place(merged);
        self.code.to(start).mov(M::U32, last);
        self.code.to(done).setp((M::Lt, M::U32), start, count);
        self.code.go_if(done, runs);
        // No lane writes to an array that another lane still reads.
        self.code.meet();
        let other = self.code.copy(Kind::Pointer, from);
        self.code.to(from).mov(M::B64, to);
        self.code.to(to).mov(M::B64, other);
        self.code.to(width).shl(M::B32, width, 1);
        self.code.go(rounds);
        self.code.place(end);
        self.code.sync();
    }

    /// Returns the key at an index as an int that preserves the order of keys. Zeros of both signs are equal.
    fn key(&mut self, kind: Kind, keys: Reg, index: Reg) -> Reg {
        let key = self.code.load_at(kind, keys, index);
        if kind != Kind::Float {
            return key;
        }
        let (zero, sum, ty) = (self.code.float(0.0), self.code.of(Kind::Float), self.code.ty(Kind::Float));
        self.code.to(sum).add((M::Rn, ty), key, zero);
        // The bits of negative floats are in the wrong order.
        let (class, width, [untyped, signed, unsigned]) = match sum.class {
            Class::F32 => (Class::B32, 32, [Type::B32, Type::S32, Type::U32]),
            _ => (Class::B64, 64, [Type::B64, Type::S64, Type::U64]),
        };
        let [bits, sign, flipped] = [(); 3].map(|()| self.code.reg(class));
        self.code.to(bits).mov(untyped, sum);
        self.code.to(sign).shr(signed, bits, width - 1);
        self.code.to(sign).shr(unsigned, sign, 1);
        self.code.to(flipped).xor(untyped, bits, sign);
        flipped
    }
}
