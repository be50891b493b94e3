//! `atom` and `red` (manual: "Parallel Synchronization and Communication Instructions: atom, red").

use super::{Engine, NextAction, Stop};
use crate::cta::{CodeSite, Cta};
use crate::op::{Arg, Op};
use crate::watch::{Kind, Watch};
use broadloom_eval::{sign_extend, truncate};
use broadloom_ptx::{Modifier, Opcode, Space, Type};

impl<W: Watch> Engine<'_, W> {
    pub(super) fn atomic(&mut self, cta: &mut Cta, site: CodeSite<'_>, registers: usize) -> Result<NextAction, Stop> {
        let (op, index) = (site.op, site.thread);
        let address = self.read(cta, site, registers, &op.reads[0]);
        let operands: &[Arg] = match &op.reads[1] {
            Arg::Vector(list) => list,
            one => std::slice::from_ref(one),
        };
        let places: &[Arg] = match (op.opcode, op.writes.first()) {
            (Opcode::Red, _) | (_, None) => &[],
            (_, Some(Arg::Vector(list))) => list,
            (_, Some(one)) => std::slice::from_ref(one),
        };
        let size = op.ty.bytes() as usize;
        let total = size * operands.len();
        let Some(place) = self.approach(cta, site, address, total as u64, total as u64, Kind::Atomic)? else {
            return Ok(NextAction::Step);
        };
        // Atomic addition of `f32` flushes subnormals in global memory only.
        let flush = !matches!(place, super::access::AddressTarget::Shared(_) | super::access::AddressTarget::Peer { .. })
            && op.space != Space::Shared;
        let mut bytes = vec![0u8; total];
        self.load_bytes(cta, index, place, &mut bytes);
        for (part, operand) in operands.iter().enumerate() {
            let range = part * size..(part + 1) * size;
            let mut wide = [0u8; 16];
            wide[..size].copy_from_slice(&bytes[range.clone()]);
            let old = u128::from_le_bytes(wide);
            let b = self.read_wide(cta, site, registers, operand);
            let new = if op.has(Modifier::Cas) {
                let c = self.read_wide(cta, site, registers, &op.reads[2]);
                let mask = if op.ty.bits() >= 128 { u128::MAX } else { (1 << op.ty.bits()) - 1 };
                if old == b & mask { c } else { old }
            } else if op.has(Modifier::Exch) {
                b
            } else {
                u128::from(combine(op, old as u64, b as u64, flush))
            };
            bytes[range].copy_from_slice(&new.to_le_bytes()[..size]);
            match places.get(part) {
                Some(Arg::Wide { slot }) => self.write_wide(cta, index, registers, *slot, old),
                Some(place) => self.write(cta, index, registers, place, old as u64),
                None => {}
            }
        }
        self.store_bytes(cta, index, place, &bytes);
        Ok(NextAction::Step)
    }
}

/// Returns the new contents of memory.
fn combine(op: &Op, old: u64, b: u64, flush: bool) -> u64 {
    let bits = op.ty.bits();
    let b = truncate(b, bits);
    match op.ty {
        Type::F32 => return u64::from(combine_f32(op, f32::from_bits(old as u32), f32::from_bits(b as u32), flush).to_bits()),
        Type::F64 => return combine_f64(op, f64::from_bits(old), f64::from_bits(b)).to_bits(),
        Type::F16 | Type::Bf16 => return u64::from(combine_half(op, op.ty, old as u16, b as u16)),
        Type::F16x2 | Type::Bf16x2 => {
            let ty = if op.ty == Type::F16x2 { Type::F16 } else { Type::Bf16 };
            let low = combine_half(op, ty, old as u16, b as u16);
            let high = combine_half(op, ty, (old >> 16) as u16, (b >> 16) as u16);
            return u64::from(low) | u64::from(high) << 16;
        }
        _ => {}
    }
    let signed = |value: u64| sign_extend(value, bits);
    if op.has(Modifier::Add) {
        old.wrapping_add(b)
    } else if op.has(Modifier::Min) {
        if op.ty.is_signed() { signed(old).min(signed(b)) as u64 } else { old.min(b) }
    } else if op.has(Modifier::Max) {
        if op.ty.is_signed() { signed(old).max(signed(b)) as u64 } else { old.max(b) }
    } else if op.has(Modifier::Inc) {
        if old >= b { 0 } else { old + 1 }
    } else if op.has(Modifier::Dec) {
        if old == 0 || old > b { b } else { old - 1 }
    } else if op.has(Modifier::And) {
        old & b
    } else if op.has(Modifier::Or) {
        old | b
    } else {
        old ^ b
    }
}

fn combine_f32(op: &Op, old: f32, b: f32, flush: bool) -> f32 {
    let ftz = |x: f32| if flush && x.is_subnormal() { 0f32.copysign(x) } else { x };
    if op.has(Modifier::Add) {
        let sum = ftz(ftz(old) + ftz(b));
        return if sum.is_nan() { f32::from_bits(0x7fff_ffff) } else { sum };
    }
    pick(op, old, b, f32::is_nan, |a, b| a < b || (a == b && a.is_sign_negative()), f32::from_bits(0x7fff_ffff))
}

fn combine_f64(op: &Op, old: f64, b: f64) -> f64 {
    if op.has(Modifier::Add) {
        let sum = old + b;
        return if sum.is_nan() { f64::from_bits(0x7fff_ffff_ffff_ffff) } else { sum };
    }
    pick(op, old, b, f64::is_nan, |a, b| a < b || (a == b && a.is_sign_negative()), f64::from_bits(0x7fff_ffff_ffff_ffff))
}

/// Combines halves. They are added in `f32`, whose 24 bits suffice to make double rounding equal to single
/// rounding.
fn combine_half(op: &Op, ty: Type, old: u16, b: u16) -> u16 {
    let widen =
        |bits: u16| if ty == Type::F16 { half::f16::from_bits(bits).to_f32() } else { half::bf16::from_bits(bits).to_f32() };
    let (a, b) = (widen(old), widen(b));
    let value = if op.has(Modifier::Add) {
        a + b
    } else {
        pick(op, a, b, f32::is_nan, |a, b| a < b || (a == b && a.is_sign_negative()), f32::NAN)
    };
    if value.is_nan() {
        return 0x7fff;
    }
    if ty == Type::F16 { half::f16::from_f32(value).to_bits() } else { half::bf16::from_f32(value).to_bits() }
}

/// Returns the smaller or larger of two; a number wins over NaN.
fn pick<T: Copy>(op: &Op, a: T, b: T, is_nan: fn(T) -> bool, below: fn(T, T) -> bool, nan: T) -> T {
    match (is_nan(a), is_nan(b)) {
        (true, true) => nan,
        (true, false) => b,
        (false, true) => a,
        (false, false) if below(a, b) == op.has(Modifier::Min) => a,
        (false, false) => b,
    }
}
