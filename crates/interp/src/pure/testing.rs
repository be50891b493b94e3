//! What tests of pure instructions share: an [`Op`] from its text, corner values, pseudo-random ones.

use crate::handlers::handler;
use crate::op::{Arg, Handler, Inputs, ModifierSet, Op};
use broadloom_ptx::{Inst, Modifier, Row, Selector, Space, Type};

/// The instruction that a text such as `add.sat.s32` names. Its operands, if it has any, are [`Arg::Sink`].
pub(crate) fn op(text: &str) -> Op {
    let row = Row::all()
        .iter()
        .filter(|row| text.strip_prefix(row.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        .max_by_key(|row| row.name.len())
        .unwrap_or_else(|| panic!("no row for {text}"));
    let words = text[row.name.len()..].split('.').filter(|word| !word.is_empty());
    let list: Vec<Modifier> = words.map(|word| Modifier::from_text(word).unwrap_or_else(|| panic!("no word {word}"))).collect();
    let mut modifiers = ModifierSet::default();
    list.iter().for_each(|&modifier| modifiers.insert(modifier));
    let types: Vec<Type> = list.iter().filter_map(|modifier| modifier.ty()).collect();
    let ty = types.first().copied().unwrap_or(Type::B32);
    let other = |index: usize| types.get(index).copied().unwrap_or(ty);
    let mut op = Op {
        handler: Handler::Refused,
        opcode: row.opcode,
        ty,
        source_ty: other(1),
        third_ty: other(2),
        space: Space::Generic,
        modifiers,
        guard: None,
        writes: Box::new([Arg::Sink]),
        reads: Box::new([Arg::Sink, Arg::Sink, Arg::Sink]),
        inst: Inst::from_u32(0),
        call: None,
    };
    op.handler = handler(&op);
    op
}

/// The result of a pure instruction on some operands.
pub(crate) fn run(op: &Op, operands: &[u64]) -> u64 {
    let mut inputs: Inputs = [0; 6];
    inputs[..operands.len()].copy_from_slice(operands);
    match op.handler {
        Handler::Pure(function) => function(op, &inputs),
        Handler::Pair(_) | Handler::Carry(_) | Handler::Machine(_) | Handler::Refused => panic!("not pure, with one result"),
    }
}

/// A register of a video instruction.
pub(crate) fn part(selector: Option<Selector>, negated: bool) -> Arg {
    Arg::Part { slot: 0, negated, selector }
}

/// Values at the edges of all widths.
pub(crate) const CORNERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x0001_0000,
    0x7fff_8001,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x0001_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
];

/// The corners, then pseudo-random values with few and with many bits.
pub(crate) fn values() -> Vec<u64> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let random = (0..24).map(|index| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> (index * 5 % 61)
    });
    CORNERS.into_iter().chain(random).collect()
}

/// All pairs of [`values`].
pub(crate) fn pairs() -> impl Iterator<Item = (u64, u64)> {
    let all = values();
    let again = all.clone();
    all.into_iter().flat_map(move |a| again.clone().into_iter().map(move |b| (a, b)))
}
