//! Encoding of a proof for storage on disk: numbers with seven bits per byte, the lowest first; a list is its
//! length and its elements.
//!
//! **Decoding returns a proof with valid indices only, or nothing.** The storage must ensure that the bytes
//! are those that were written: a proof of something else would be believed.

use super::Proof;
use crate::conditions::Test;
use crate::inductions::{Induction, Inductions, Limit};
use crate::integer::{Arg, Op, Relation, Step};
use crate::obligations::Obligation;
use crate::ranges::{MergedParameter, OutgoingEdge, PlannedBlock, RangePlan};
use broadloom_ptx::{Block, Inst, Reg, Special, Type};

/// Special registers with facts known before a launch; the others are unknown.
const SPECIALS: [Special; 13] = [
    Special::TidX,
    Special::TidY,
    Special::TidZ,
    Special::NtidX,
    Special::NtidY,
    Special::NtidZ,
    Special::CtaidX,
    Special::CtaidY,
    Special::CtaidZ,
    Special::NctaidX,
    Special::NctaidY,
    Special::NctaidZ,
    Special::Laneid,
];

const RELATIONS: [Relation; 6] = [Relation::Eq, Relation::Ne, Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge];

/// Operations without parameters.
const OPS: [Op; 23] = [
    Op::Copy,
    Op::Add,
    Op::Sub,
    Op::Mul,
    Op::MulWide,
    Op::Mad,
    Op::MadWide,
    Op::Neg,
    Op::Not,
    Op::Abs,
    Op::Min,
    Op::Max,
    Op::Div,
    Op::Rem,
    Op::Shl,
    Op::Shr,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Select,
    Op::BitField,
    Op::Count,
    Op::Load,
];
const CONVERT: u64 = OPS.len() as u64;
const PARAM: u64 = CONVERT + 1;
const COMPARE: u64 = PARAM + 1;
const OTHER: u64 = COMPARE + 1;

impl Proof {
    /// Encodes the proof as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer(vec![]);
        let plan = &self.plan;
        to.list(plan.bits.iter().zip(&plan.unknown), |to, (bits, unknown)| {
            to.number(u64::from(*bits) << 1 | u64::from(*unknown));
        });
        to.number(plan.moves as u64);
        to.list(&plan.blocks, Writer::place);
        to.list(&self.obligations, Writer::obligation);
        to.0
    }

    /// Decodes the bytes of [`encode`](Self::encode).
    pub fn decode(bytes: &[u8]) -> Option<Proof> {
        let mut from = ByteReader { bytes, regs: 0, moves: 0, places: 0 };
        let regs = from.list(|from| {
            let number = from.number()?;
            let bits = u32::try_from(number >> 1).ok().filter(|bits| *bits <= 64)?;
            // Nothing is known of a register that is not an integer.
            Some((bits, number & 1 != 0 || bits == 0))
        })?;
        from.regs = regs.len();
        // Every move is in some list.
        from.moves = from.index(bytes.len())?;
        let mut depths: Vec<usize> = vec![];
        let blocks = from.list(|from| {
            let place = from.place(&depths)?;
            depths.push(place.depth);
            Some(place)
        })?;
        from.places = blocks.len();
        let obligations = from.list(ByteReader::obligation)?;
        let (bits, unknown) = regs.into_iter().unzip();
        let plan = RangePlan::of_places(bits, unknown, blocks, from.moves);
        from.bytes.is_empty().then_some(Proof { plan, obligations })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    fn flag(&mut self, flag: bool) {
        self.number(u64::from(flag));
    }

    fn reg(&mut self, reg: Reg) {
        self.number(u64::from(reg.as_u32()));
    }

    fn list<T>(&mut self, list: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>, each: impl Fn(&mut Writer, T)) {
        let list = list.into_iter();
        self.number(list.len() as u64);
        list.for_each(|element| each(self, element));
    }

    fn ty(&mut self, ty: Type) {
        self.number(place_of(Type::ALL, ty));
    }

    fn relation(&mut self, relation: Relation) {
        self.number(place_of(&RELATIONS, relation));
    }

    fn arg(&mut self, arg: &Arg) {
        match arg {
            Arg::Reg(reg) => {
                self.number(0);
                self.reg(*reg);
            }
            Arg::Const(value) => {
                self.number(1);
                self.number(*value);
            }
            Arg::Special(special) if SPECIALS.contains(special) => self.number(3 + place_of(&SPECIALS, *special)),
            Arg::Special(_) | Arg::Other => self.number(2),
        }
    }

    fn test(&mut self, test: &Test) {
        self.relation(test.relation);
        self.number(u64::from(test.bits) << 2 | u64::from(test.signed) << 1 | u64::from(test.in_some_lane));
        self.arg(&test.a);
        self.arg(&test.b);
    }

    fn step(&mut self, step: &Step) {
        match step.op {
            Op::Convert(from) => {
                self.number(CONVERT);
                self.ty(from);
            }
            Op::Param(offset) => {
                self.number(PARAM);
                self.number(offset);
            }
            Op::Compare(relation) => {
                self.number(COMPARE);
                self.relation(relation);
            }
            Op::Other => self.number(OTHER),
            Op::Copy | Op::Add | Op::Sub | Op::Mul | Op::MulWide | Op::Mad | Op::MadWide | Op::Neg | Op::Not | Op::Abs => {
                self.number(place_of(&OPS, step.op));
            }
            Op::Min | Op::Max | Op::Div | Op::Rem | Op::Shl | Op::Shr | Op::And | Op::Or | Op::Xor => {
                self.number(place_of(&OPS, step.op));
            }
            Op::Select | Op::BitField | Op::Count | Op::Load => self.number(place_of(&OPS, step.op)),
        }
        self.ty(step.ty);
        self.list(&step.result, |to, reg| to.reg(*reg));
        step.args.iter().for_each(|arg| self.arg(arg));
    }

    fn inductions(&mut self, inductions: &Inductions) {
        self.list(&inductions.all, |to, induction| {
            to.number(induction.param as u64);
            to.arg(&induction.step);
            to.flag(induction.falls);
            to.number(u64::from(induction.bits));
        });
        self.list(&inductions.limits, |to, limit| {
            to.number(limit.counter as u64);
            to.relation(limit.relation);
            to.number(u64::from(limit.next) << 2 | u64::from(limit.signed) << 1 | u64::from(limit.in_some_lane));
            to.arg(&limit.bound);
        });
    }

    fn place(&mut self, place: &PlannedBlock) {
        self.number(place.parent.map_or(0, |parent| parent as u64 + 1));
        self.flag(place.is_entered_again);
        self.list(&place.tests, Writer::test);
        self.list(&place.params, |to, param| {
            to.reg(param.reg);
            to.list(&param.first, |to, number| to.number(*number as u64));
            to.list(&param.again, |to, number| to.number(*number as u64));
        });
        self.list(&place.inductions, Writer::inductions);
        self.list(&place.steps, Writer::step);
        self.list(&place.edges, |to, edge| {
            to.list(&edge.tests, Writer::test);
            to.list(&edge.moves, |to, (number, reg)| {
                to.number(*number as u64);
                to.reg(*reg);
            });
        });
    }

    fn obligation(&mut self, obligation: &Obligation) {
        self.number(u64::from(obligation.inst.as_u32()));
        self.number(u64::from(obligation.block.as_u32()));
        self.reg(obligation.reg);
        let flags = [obligation.signed, obligation.whole_at_definition, obligation.whole_here];
        flags.into_iter().for_each(|flag| self.flag(flag));
        self.signed(obligation.least);
        self.signed(obligation.most);
    }
}

/// Returns the index of an element in a list that contains it.
fn place_of<T: PartialEq>(list: &[T], wanted: T) -> u64 {
    list.iter().position(|element| *element == wanted).unwrap_or(list.len()) as u64
}

struct ByteReader<'a> {
    bytes: &'a [u8],
    regs: usize,
    moves: usize,
    places: usize,
}

impl ByteReader<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return (bits << shift >> shift == bits).then_some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Reads a number up to a bound.
    fn index(&mut self, most: usize) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|index| *index <= most)
    }

    fn below(&mut self, count: usize) -> Option<usize> {
        self.index(count.checked_sub(1)?)
    }

    fn reg(&mut self) -> Option<Reg> {
        self.below(self.regs).map(|index| Reg::from_u32(index as u32))
    }

    fn move_number(&mut self) -> Option<usize> {
        self.below(self.moves)
    }

    fn bits(&mut self) -> Option<u32> {
        self.index(64).filter(|bits| *bits > 0).map(|bits| bits as u32)
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        // Every element has at least one byte.
        let length = self.index(self.bytes.len())?;
        (0..length).map(|_| each(self)).collect()
    }

    fn option<T>(&mut self, each: impl FnMut(&mut Self) -> Option<T>) -> Option<Option<T>> {
        let mut list = self.list(each)?;
        (list.len() <= 1).then(|| list.pop())
    }

    fn ty(&mut self) -> Option<Type> {
        Type::ALL.get(self.below(Type::ALL.len())?).copied().filter(|ty| (1..=64).contains(&ty.bits()))
    }

    fn relation(&mut self) -> Option<Relation> {
        RELATIONS.get(self.below(RELATIONS.len())?).copied()
    }

    fn arg(&mut self) -> Option<Arg> {
        Some(match self.number()? {
            0 => Arg::Reg(self.reg()?),
            1 => Arg::Const(self.number()?),
            2 => Arg::Other,
            special => Arg::Special(*SPECIALS.get(usize::try_from(special - 3).ok()?)?),
        })
    }

    fn test(&mut self) -> Option<Test> {
        let relation = self.relation()?;
        let number = self.index(64 << 2 | 3)?;
        let bits = (number >> 2) as u32;
        let (signed, in_some_lane) = (number & 2 != 0, number & 1 != 0);
        (bits > 0).then_some(Test { relation, signed, bits, a: self.arg()?, b: self.arg()?, in_some_lane })
    }

    fn step(&mut self) -> Option<Step> {
        let op = match self.number()? {
            CONVERT => Op::Convert(self.ty()?),
            PARAM => Op::Param(self.number()?),
            COMPARE => Op::Compare(self.relation()?),
            OTHER => Op::Other,
            op => *OPS.get(usize::try_from(op).ok()?)?,
        };
        let ty = self.ty()?;
        // Products of 64 bits and their double width are not integers that are computed with.
        if matches!(op, Op::MulWide | Op::MadWide) && ty.bits() > 32 {
            return None;
        }
        let result = self.option(ByteReader::reg)?;
        Some(Step { op, ty, result, args: [self.arg()?, self.arg()?, self.arg()?] })
    }

    fn inductions(&mut self, params: usize) -> Option<Inductions> {
        let all = self.list(|from| {
            let (param, step) = (from.below(params)?, from.arg()?);
            Some(Induction { param, step, falls: from.flag()?, bits: from.bits()? })
        })?;
        let limits = self.list(|from| {
            let (counter, relation, flags) = (from.below(all.len())?, from.relation()?, from.index(7)?);
            let (next, signed, in_some_lane) = (flags & 4 != 0, flags & 2 != 0, flags & 1 != 0);
            Some(Limit { counter, next, relation, signed, bound: from.arg()?, in_some_lane })
        })?;
        Some(Inductions { all, limits })
    }

    /// Reads a place after others, whose depths are given.
    fn place(&mut self, depths: &[usize]) -> Option<PlannedBlock> {
        let parent = self.index(depths.len())?.checked_sub(1);
        let depth = parent.map_or(0, |parent| depths[parent] + 1);
        let is_entered_again = self.flag()?;
        let tests = self.list(ByteReader::test)?;
        let params = self.list(|from| {
            let reg = from.reg()?;
            Some(MergedParameter { reg, first: from.list(ByteReader::move_number)?, again: from.list(ByteReader::move_number)? })
        })?;
        let inductions = self.option(|from| from.inductions(params.len()))?;
        let steps = self.list(ByteReader::step)?;
        let edges = self.list(|from| {
            let tests = from.list(ByteReader::test)?;
            Some(OutgoingEdge { tests, moves: from.list(|from| Some((from.move_number()?, from.reg()?)))? })
        })?;
        Some(PlannedBlock { parent, depth, tests, params, is_entered_again, inductions, steps, edges })
    }

    fn obligation(&mut self) -> Option<Obligation> {
        let inst = Inst::from_u32(self.index(u32::MAX as usize - 1)? as u32);
        let block = Block::from_u32(self.index(self.places)? as u32);
        let reg = self.reg()?;
        let (signed, whole_at_definition, whole_here) = (self.flag()?, self.flag()?, self.flag()?);
        let (least, most) = (self.signed()?, self.signed()?);
        Some(Obligation { inst, block, reg, signed, least, most, whole_at_definition, whole_here })
    }
}
