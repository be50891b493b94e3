//! Warp operations.

use super::{Emitter, compute_type};
use crate::id::Id;
use crate::op::{Shuffle, Vote, WarpReduce};
use crate::types::Element;
use broadloom_ptx::builder::Instructions;
use broadloom_ptx::{Modifier, Operand, Reg, Type};

impl Emitter<'_> {
    pub(super) fn shuffle(&mut self, kind: Shuffle, width: u8, value: Id, amount: Id, members: Id) -> Reg {
        let element = self.element(value);
        let value = self.reg(value);
        let (amount, members) = (self.operand(amount), self.operand(members));
        let (word, clamp) = match kind {
            Shuffle::Up => (Modifier::Up, 0),
            Shuffle::Down => (Modifier::Down, 31),
            Shuffle::Xor => (Modifier::Bfly, 31),
            Shuffle::Index => (Modifier::Idx, 31),
        };
        let groups = ((32 - u32::from(width)) << 8) | clamp;
        let exchange = |this: &mut Self, word_value: Reg| {
            this.f.shfl_sync((word, Type::B32), word_value, amount.clone(), groups, members.clone())
        };
        let reg = self.register(element);
        match element {
            Element::I64 | Element::U64 | Element::F64 => {
                let [low, high] = self.f.vector().mov(Type::B64, value);
                let (low, high) = (exchange(self, low), exchange(self, high));
                self.f.to(reg).mov(Type::B64, Operand::from([low, high]))
            }
            Element::F32 => {
                let moved = exchange(self, value);
                self.f.to(reg).mov(Type::B32, moved)
            }
            Element::F16 => {
                let word_value = self.f.mov(Type::B32, Operand::from([value, value]));
                let moved = exchange(self, word_value);
                let [low, _] = self.f.vector().mov(Type::B32, moved);
                low
            }
            Element::Bool => {
                let word_value = self.f.selp(Type::B32, 1, 0, value);
                let moved = exchange(self, word_value);
                self.f.setp((Modifier::Ne, Type::U32), moved, 0)
            }
            Element::I8 | Element::I16 | Element::I32 | Element::U8 | Element::U16 | Element::U32 => exchange(self, value),
        }
    }

    pub(super) fn vote(&mut self, vote: Vote, predicate: Id, members: Id) -> Reg {
        let (predicate, members) = (self.reg(predicate), self.operand(members));
        let word = match vote {
            Vote::All => Modifier::All,
            Vote::Any => Modifier::Any,
            Vote::Uniform => Modifier::Uni,
        };
        self.f.vote_sync((word, Type::Pred), predicate, members)
    }

    pub(super) fn match_any(&mut self, value: Id, members: Id) -> Reg {
        let element = self.element(value);
        let value = self.reg(value);
        let members = self.operand(members);
        match element {
            Element::F16 => {
                let wide = self.f.cvt((Type::U32, Type::U16), value);
                self.f.match_any_sync(Type::B32, wide, members)
            }
            Element::I64 | Element::U64 | Element::F64 => self.f.match_any_sync(Type::B64, value, members),
            _ => self.f.match_any_sync(Type::B32, value, members),
        }
    }

    pub(super) fn warp_reduce(&mut self, op: WarpReduce, value: Id, members: Id) -> Reg {
        let ty = compute_type(self.element(value));
        let value = self.reg(value);
        let members = self.operand(members);
        let (word, ty) = match op {
            WarpReduce::Add => (Modifier::Add, ty),
            WarpReduce::Min => (Modifier::Min, ty),
            WarpReduce::Max => (Modifier::Max, ty),
            WarpReduce::And => (Modifier::And, Type::B32),
            WarpReduce::Or => (Modifier::Or, Type::B32),
            WarpReduce::Xor => (Modifier::Xor, Type::B32),
        };
        self.f.redux_sync((word, ty), value, members)
    }
}
