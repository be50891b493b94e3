//! Several small integers in one word: dot products, SIMD intrinsics, video instructions, saturation.

use crate::compare::same;
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

fn unsigned_bytes(word: u32) -> [i64; 4] {
    word.to_le_bytes().map(i64::from)
}

fn signed_bytes(word: u32) -> [i64; 4] {
    word.to_le_bytes().map(|b| i64::from(b as i8))
}

fn unsigned_halves(word: u32) -> [i64; 2] {
    [word & 0xffff, word >> 16].map(i64::from)
}

fn signed_halves(word: u32) -> [i64; 2] {
    unsigned_halves(word).map(|h| i64::from(h as i16))
}

/// Packs four lanes of eight bits, or two of sixteen; each is truncated to its width.
fn join<const N: usize>(lanes: [i64; N]) -> u32 {
    let width = 32 / N;
    lanes.iter().enumerate().fold(0, |word, (k, v)| word | ((*v as u64 & ((1 << width) - 1)) as u32) << (k * width))
}

fn each<const N: usize>(a: [i64; N], b: [i64; N], f: impl Fn(i64, i64) -> i64) -> u32 {
    join::<N>(std::array::from_fn(|k| f(a[k], b[k])))
}

fn total<const N: usize>(a: [i64; N], b: [i64; N], f: impl Fn(i64, i64) -> i64) -> u32 {
    (0..N).map(|k| f(a[k], b[k])).sum::<i64>() as u32
}

pub(crate) fn dot_products_packed(t: &mut Trial<'_>) -> Outcome {
    let n = 100;
    let mut r = Inputs::new(170);
    let (a, b) = (r.u32s(n), r.u32s(n));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[u32; 6]>(n)?);
    t.launch("dot_products_packed", 2, 64, args![da, db, out, n as i32])?;
    let want: Vec<[u32; 6]> = values_at(0..n, |i| {
        let (x, y, k) = (a[i], b[i], i as u32);
        let product = |a: i64, b: i64| a * b;
        // The two halves of a against the lower or upper two bytes of b.
        let pair = |bytes: [i64; 4], upper: usize| [bytes[2 * upper], bytes[2 * upper + 1]];
        [
            total(signed_bytes(x), signed_bytes(y), product).wrapping_add(k),
            total(unsigned_bytes(x), unsigned_bytes(y), product).wrapping_add(k),
            total(signed_bytes(x), unsigned_bytes(y), product).wrapping_add(k),
            total(signed_halves(x), pair(signed_bytes(y), 0), product).wrapping_sub(k),
            total(unsigned_halves(x), pair(unsigned_bytes(y), 1), product).wrapping_add(3 * k),
            total(unsigned_halves(x), pair(signed_bytes(y), 0), product).wrapping_add(k),
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

pub(crate) fn simd_intrinsics(t: &mut Trial<'_>) -> Outcome {
    let n = 120;
    let mut r = Inputs::new(171);
    let special = [0x8000_7fff, 0x807f_ff00, 0xffff_ffff, 0, 0x7fff_8000, 0x0180_fe7f];
    let mut draw =
        || -> Vec<u32> { (0..n).map(|_| if r.below(0, 4) == 0 { special[r.below(0, 6) as usize] } else { r.u32() }).collect() };
    let (a, b) = (draw(), draw());
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[u32; 20]>(n)?);
    t.launch("simd_intrinsics", 2, 64, args![da, db, out, n as i32])?;
    let all = |condition: bool| -i64::from(condition);
    let want: Vec<[u32; 20]> = values_at(0..n, |i| {
        let (x, y) = (a[i], b[i]);
        let (ub, vb, sb, tb) = (unsigned_bytes(x), unsigned_bytes(y), signed_bytes(x), signed_bytes(y));
        let (uh, vh, sh, th) = (unsigned_halves(x), unsigned_halves(y), signed_halves(x), signed_halves(y));
        let low_bits = |bytes: [i64; 4]| bytes.map(|b| b & 1);
        [
            each(uh, vh, |a, b| a + b),
            each(ub, vb, |a, b| a + b),
            each(uh, vh, |a, b| a - b),
            each(ub, vb, |a, b| a - b),
            each(sh, th, |a, b| (a + b).clamp(-0x8000, 0x7fff)),
            each(ub, vb, |a, b| (a + b).min(0xff)),
            each(sb, tb, |a, b| (a - b).clamp(-0x80, 0x7f)),
            each(uh, vh, |a, b| (a - b).max(0)),
            each(ub, vb, |a, b| (a - b).abs()),
            each(sh, th, |a, b| (a - b).abs()),
            each(ub, vb, |a, b| a.max(b)),
            each(sh, th, |a, b| a.min(b)),
            each(ub, vb, |a, b| (a + b + 1) / 2),
            each(ub, vb, |a, b| (a + b) / 2),
            each(ub, vb, |a, b| all(a > b)),
            each(low_bits(ub), low_bits(vb), |a, b| i64::from(a == b)),
            total(ub, vb, |a, b| (a - b).abs()),
            total(sh, th, |a, b| (a - b).abs()),
            each(sb, sb, |a, _| a.abs().min(0x7f)) ^ each(vh, vh, |b, _| -b),
            each(sb, tb, |a, b| a.max(b)) ^ each(uh, vh, |a, b| a.min(b)),
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

pub(crate) fn video_instructions(t: &mut Trial<'_>) -> Outcome {
    let n = 120;
    let mut r = Inputs::new(172);
    let (a, b, c) = (r.u32s(n), r.u32s(n), r.u32s(n));
    let (da, db, dc, out) = (t.upload(&a)?, t.upload(&b)?, t.upload(&c)?, t.output::<[u32; 9]>(n)?);
    t.launch("video_instructions", 2, 64, args![da, db, dc, out, n as i32])?;
    let signed = |v: i64| v.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32;
    let want: Vec<[u32; 9]> = values_at(0..n, |i| {
        let (x, y, z) = (a[i], b[i], c[i]);
        let merged = (z & 0xff00_ffff) | (signed_bytes(x)[0].min(signed_bytes(y)[0]) as u32 & 0xff) << 16;
        let shifted = (unsigned_halves(x)[0] as u32) << (unsigned_bytes(y)[0] & 31);
        [
            signed(unsigned_bytes(x)[1] + signed_halves(y)[1]),
            (signed_halves(x)[0] - signed_bytes(y)[3]).wrapping_add(i64::from(z as i32)) as u32,
            x.abs_diff(y).max(z),
            merged,
            ((signed_halves(x)[1] * unsigned_bytes(y)[2] + i64::from(z as i32)) >> 7) as u32,
            shifted.wrapping_add(z),
            // vset.u32.s32 reads a as unsigned and b as signed.
            u32::from(unsigned_halves(x)[1] < signed_halves(y)[1]).wrapping_add(z),
            total(unsigned_bytes(x), unsigned_bytes(y), |a, b| (a - b).abs()).wrapping_add(z),
            each(signed_halves(x), signed_halves(y), |a, b| (a + b).clamp(-0x8000, 0x7fff)),
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

pub(crate) fn saturating(t: &mut Trial<'_>) -> Outcome {
    let n = 120;
    let mut r = Inputs::new(173);
    let mut ints = || -> Vec<i32> { (0..n).map(|_| (r.u32() as i32) >> r.below(0, 30)).collect() };
    let (a, b) = (ints(), ints());
    let mut f = r.f32s(n, -6.0, 6.0);
    f[..8].copy_from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, 0.5, -0.0, 2.5]);
    let (da, db, df, out, unit) =
        (t.upload(&a)?, t.upload(&b)?, t.upload(&f)?, t.output::<[i32; 6]>(n)?, t.output::<[f32; 3]>(n)?);
    t.launch("saturating", 2, 64, args![da, db, df, out, unit, n as i32])?;
    let want: Vec<[i32; 6]> = values_at(0..n, |i| {
        let (x, y) = (a[i], b[i]);
        let high = ((i64::from(x) * i64::from(y)) >> 32) as i32;
        [
            x.saturating_add(y),
            x.saturating_sub(y),
            high.saturating_add(x),
            x.clamp(-0x8000, 0x7fff),
            y.clamp(0, 255),
            // A cast saturates and turns NaN into zero, as the instruction does.
            f[i].round_ties_even() as i32,
        ]
    });
    same("integers", &t.download(&out)?, &want)?;
    // Saturation turns NaN and negative zero into zero.
    let clamp = |v: f32| if v > 0.0 { v.min(1.0) } else { 0.0 };
    let want: Vec<[f32; 3]> = f.iter().map(|v| [clamp(*v), clamp(v * 0.25 + 0.5), clamp(v.mul_add(-0.125, 0.5))]).collect();
    same("floats", &t.download(&unit)?, &want)
}
