//! Ranks: a stable merge sort of indices.
//!
//! Runs of 1, 2, 4, … indices are merged in order from one array into another. All lanes of a warp do the
//! same work, so a rank costs a warp as much as a thread. A team has no form for it.

use super::CodeResult;
use super::code::{Class, Kind, Reg, emit};
use super::expr::{Items, Seq, Val, Writer};
use crate::vcode::Shape;

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
        emit!(self.code, "mov.b64 {}, {mark};", self.top);
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
        emit!(self.code, "setp.ge.u32 {done}, {width}, {count};");
        self.code.go_if(done, end);
        self.burn(count);
        let start = self.code.length(0);
        // Lengths are below 2^31, so sums of two do not wrap.
        self.code.place(runs);
        let [middle, last, a, b, at] = [(); 5].map(|()| self.code.length(0));
        emit!(self.code, "add.u32 {middle}, {start}, {width};");
        emit!(self.code, "min.u32 {middle}, {middle}, {count};");
        emit!(self.code, "add.u32 {last}, {middle}, {width};");
        emit!(self.code, "min.u32 {last}, {last}, {count};");
        emit!(self.code, "mov.u32 {a}, {start};");
        emit!(self.code, "mov.u32 {b}, {middle};");
        emit!(self.code, "mov.u32 {at}, {start};");
        self.code.place(merge);
        emit!(self.code, "setp.ge.u32 {done}, {at}, {last};");
        self.code.go_if(done, merged);
        let index = self.code.length(0);
        let [first, second, next] = [(); 3].map(|()| self.code.label());
        emit!(self.code, "setp.ge.u32 {done}, {a}, {middle};");
        self.code.go_if(done, second);
        emit!(self.code, "setp.ge.u32 {done}, {b}, {last};");
        self.code.go_if(done, first);
        let [x, y] = [a, b].map(|run| {
            let index = self.code.load_at(Kind::Length, from, run);
            self.key(kind, keys, index)
        });
        let ty = if x.class == Class::B64 { "s64" } else { "s32" };
        emit!(self.code, "setp.{}.{ty} {done}, {y}, {x};", if descending { "gt" } else { "lt" });
        self.code.go_if(done, second);
        for (label, run) in [(first, a), (second, b)] {
            self.code.place(label);
            let taken = self.code.load_at(Kind::Length, from, run);
            emit!(self.code, "mov.u32 {index}, {taken};");
            emit!(self.code, "add.u32 {run}, {run}, 1;");
            if label == first {
                self.code.go(next);
            }
        }
        self.code.place(next);
        self.code.store_at(Kind::Length, to, at, index);
        emit!(self.code, "add.u32 {at}, {at}, 1;");
        self.code.go(merge);
        self.code.place(merged);
        emit!(self.code, "mov.u32 {start}, {last};");
        emit!(self.code, "setp.lt.u32 {done}, {start}, {count};");
        self.code.go_if(done, runs);
        // No lane writes to an array that another lane still reads.
        self.code.meet();
        let other = self.code.copy(Kind::Pointer, from);
        emit!(self.code, "mov.b64 {from}, {to};");
        emit!(self.code, "mov.b64 {to}, {other};");
        emit!(self.code, "shl.b32 {width}, {width}, 1;");
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
        emit!(self.code, "add.rn.{ty} {sum}, {key}, {zero};");
        // The bits of negative floats are in the wrong order.
        let (class, width) = if sum.class == Class::F32 { (Class::B32, 32) } else { (Class::B64, 64) };
        let [bits, sign, flipped] = [(); 3].map(|()| self.code.reg(class));
        emit!(self.code, "mov.b{width} {bits}, {sum};");
        emit!(self.code, "shr.s{width} {sign}, {bits}, {};", width - 1);
        emit!(self.code, "shr.u{width} {sign}, {sign}, 1;");
        emit!(self.code, "xor.b{width} {flipped}, {bits}, {sign};");
        flipped
    }
}
