//! Integers: bits, wide words, division, number theory.

use crate::compare::same;
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

/// Returns random words, including the corner values of 32 bits.
fn words(r: &mut Inputs, n: usize) -> Vec<u32> {
    let corners = [0, 1, u32::MAX, 0x8000_0000, 0x7fff_ffff, 0x00ff_00ff];
    (0..n).map(|_| if r.below(0, 4) == 0 { corners[r.below(0, 6) as usize] } else { r.u32() >> r.below(0, 32) }).collect()
}

pub(crate) fn bit_tricks(t: &mut Trial<'_>) -> Outcome {
    let n = 150;
    let mut r = Inputs::new(160);
    let (a, b) = (words(&mut r, n), words(&mut r, n));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[u32; 12]>(n)?);
    t.launch("bit_tricks", 2, 96, args![da, db, out, n as i32])?;
    let want: Vec<[u32; 12]> = values_at(0..n, |i| {
        let (x, y) = (a[i], b[i]);
        let w = u64::from(x) << 32 | u64::from(y);
        // The funnel holds y above x.
        let funnel = u64::from(y) << 32 | u64::from(x);
        let (shift, clamped) = (i as u32 % 32, (i as u32).min(32));
        let bytes = funnel.to_le_bytes();
        let pick = |k: u32| u32::from(bytes[(y >> (4 * k) & 7) as usize]) << (8 * k);
        let first = |v: u64| if v == 0 { 0 } else { v.trailing_zeros() + 1 };
        let wide = i as u32 % 64;
        [
            x.count_ones() + 100 * w.count_ones(),
            x.leading_zeros() + 100 * w.leading_zeros(),
            x.reverse_bits(),
            (w.reverse_bits() >> 16) as u32,
            first(x.into()) + 100 * first(w),
            (0..4).map(pick).sum(),
            (funnel << shift >> 32) as u32,
            (funnel >> shift) as u32,
            (funnel << clamped >> 32) as u32,
            (funnel >> clamped) as u32,
            (x & y) ^ (!x | y) ^ x << shift ^ y >> shift ^ (x as i32 >> shift) as u32,
            (w >> wide) as u32 ^ (w as i64 >> wide) as u32 ^ (w << wide) as u32,
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

/// Returns the field of `length` bits from `position`, as the manual defines `bfe`, bit by bit.
fn extract(word: u64, bits: i64, signed: bool, position: u32, length: u32) -> u64 {
    let (position, length) = (i64::from(position), i64::from(length));
    let bit = |k: i64| word >> k.min(bits - 1).max(0) & 1;
    let sign = if !signed || length == 0 { 0 } else { bit((position + length - 1).min(bits - 1)) };
    (0..bits).fold(0, |field, k| {
        let inside = k < length && position + k < bits;
        field | (if inside { bit(position + k) } else { sign }) << k
    })
}

/// Returns `into` with its bits from `position` replaced by the lowest `length` of `word`.
fn insert(word: u64, into: u64, bits: u32, position: u32, length: u32) -> u64 {
    (0..length).filter(|k| position + k < bits).fold(into, |v, k| {
        let place = position + k;
        v & !(1 << place) | (word >> k & 1) << place
    })
}

pub(crate) fn bit_fields(t: &mut Trial<'_>) -> Outcome {
    let n = 300;
    let mut r = Inputs::new(161);
    let (a, b) = (words(&mut r, n), words(&mut r, n));
    let c: Vec<u32> = r.many(n, |r| r.below(0, 40) as u32 | (r.below(0, 40) as u32) << 8 | r.u32() << 16);
    let (da, db, dc, out) = (t.upload(&a)?, t.upload(&b)?, t.upload(&c)?, t.output::<[u32; 12]>(n)?);
    t.launch("bit_fields", 3, 128, args![da, db, dc, out, n as i32])?;
    let want: Vec<[u32; 12]> = values_at(0..n, |i| {
        let (x, y, c) = (a[i], b[i], c[i]);
        let (position, length) = (c & 0xff, c >> 8 & 0xff);
        let w = u64::from(x) << 32 | u64::from(y);
        let folded = |q: u64| q as u32 ^ (q >> 32) as u32;
        let majority = (x & y) | (x & c) | (y & c);
        let highest = |v: u32| if v == 0 { u32::MAX } else { 31 - v.leading_zeros() };
        // For a negative number the highest bit that differs from the sign counts.
        let magnitude = if (y as i32) < 0 { !y } else { y };
        let shift_amount = if magnitude == 0 { u32::MAX } else { magnitude.leading_zeros() };
        let bytes = (u64::from(y) << 32 | u64::from(x)).to_le_bytes();
        let control = (c & 3) as usize;
        let forward = u32::from_le_bytes([0, 1, 2, 3].map(|k| bytes[(control + k) % 8]));
        let edge_left = u32::from_le_bytes([0, 1, 2, 3].map(|k: usize| bytes[k.max(control)]));
        let clamped = |v: Option<u32>| v.unwrap_or(0);
        let arithmetic = (x as i32 >> position.min(31)) as u32;
        let ones = |count: u32| if count >= 32 { u32::MAX } else { (1u32 << count) - 1 };
        let mask = if position >= 32 { 0 } else { ones(length) << position };
        // Wrapped to five bits; a width of no bits gives zero.
        let width = length & 31;
        let extended = if width == 0 { 0 } else { ((x << (32 - width)) as i32 >> (32 - width)) as u32 };
        [
            extract(x.into(), 32, false, position, length) as u32,
            extract(x.into(), 32, true, position, length) as u32,
            insert(x.into(), y.into(), 32, position, length) as u32,
            folded(extract(w, 64, true, position, length)),
            folded(insert(w, !w, 64, position, length)),
            highest(x),
            shift_amount,
            majority,
            forward,
            edge_left,
            clamped(x.checked_shl(position)) ^ clamped(x.checked_shr(position)) ^ arithmetic << 1,
            mask ^ extended,
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

pub(crate) fn wide_arithmetic(t: &mut Trial<'_>) -> Outcome {
    let n = 150;
    let mut r = Inputs::new(162);
    let mut draw = || -> Vec<u64> {
        (0..n)
            .map(|i| if i % 5 == 0 { [0, u64::MAX, 1 << 63, 1, (1 << 63) - 1][r.below(0, 5) as usize] } else { r.u64() })
            .collect()
    };
    let (a, b) = (draw(), draw());
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[u64; 10]>(n)?);
    t.launch("wide_arithmetic", 2, 96, args![da, db, out, n as i32])?;
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let want: Vec<[u64; 10]> = values_at(0..n, |i| {
        let (x, y) = (a[i], b[i]);
        let (sx, sy) = (x as i64, y as i64);
        let (u, v) = (x as u32, y as u32);
        let (s, t) = (u as i32, v as i32);
        let (u24, v24) = (u & 0xff_ffff, v & 0xff_ffff);
        let low24 = |v: u32| (v << 8) as i32 >> 8;
        [
            ((u128::from(x) * u128::from(y)) >> 64) as u64,
            ((i128::from(sx) * i128::from(sy)) >> 64) as u64,
            x.wrapping_mul(y),
            pair(((u64::from(u) * u64::from(v)) >> 32) as u32, ((i64::from(s) * i64::from(t)) >> 32) as u32),
            (u64::from(u) * u64::from(v)).wrapping_add((i64::from(s) * i64::from(t)) as u64),
            pair(u24.wrapping_mul(v24), low24(u).wrapping_mul(low24(v)) as u32),
            pair(((u64::from(u) + u64::from(v)) / 2) as u32, ((i64::from(s) + i64::from(t) + 1) >> 1) as u32),
            pair(u.abs_diff(v).wrapping_add(7), s.abs_diff(t).wrapping_add(9)),
            (sx.max(sy) as u64) ^ x.min(y) ^ (sx / 2).unsigned_abs() ^ u64::from((s / 2).unsigned_abs()),
            (i64::from(s.min(t)) as u64) << 32 ^ u64::from(u.max(v)) ^ u64::from(x < y) ^ u64::from(sx < sy) << 1,
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

pub(crate) fn int128(t: &mut Trial<'_>) -> Outcome {
    let n = 140;
    let mut r = Inputs::new(163);
    let mut draw = |zeros: bool| -> Vec<u128> {
        (0..n)
            .map(|i| {
                let v = (u128::from(r.u64()) << 64 | u128::from(r.u64())) >> r.below(0, 128);
                if zeros && i % 20 == 0 { 0 } else { v }
            })
            .collect()
    };
    let (a, b) = (draw(false), draw(true));
    let halves = |v: &u128| [*v as u64, (*v >> 64) as u64];
    let (da, db) = (t.upload(&a.iter().map(halves).collect::<Vec<_>>())?, t.upload(&b.iter().map(halves).collect::<Vec<_>>())?);
    let out = t.output::<[u64; 2]>(5 * n)?;
    t.launch("int128", 3, 64, args![da, db, out, n as i32])?;
    let want: Vec<u128> = (0..n)
        .flat_map(|i| {
            let (x, y) = (a[i], b[i]);
            [
                x.wrapping_add(y),
                x.wrapping_mul(y),
                x << (i % 128) ^ y >> (i % 128) ^ u128::from(x > y),
                x.checked_div(y).unwrap_or(0),
                (x as i128).checked_rem(y as i128).unwrap_or(0) as u128,
            ]
        })
        .collect();
    let got: Vec<u128> = t.download(&out)?.iter().map(|[low, high]| u128::from(*high) << 64 | u128::from(*low)).collect();
    same("numbers", &got, &want)
}

pub(crate) fn division(t: &mut Trial<'_>) -> Outcome {
    let n = 250;
    let mut r = Inputs::new(164);
    let a: Vec<i64> = r.many(n, |r| (r.u64() as i64) >> r.below(0, 60));
    // Odd, so that no narrow part of it is zero.
    let b: Vec<i64> = r.many(n, |r| (r.u64() as i64) >> r.below(0, 63) | 1);
    // The smallest value of any width divided by -1 has no quotient.
    let a: Vec<i64> = a.iter().map(|v| if *v as i32 == i32::MIN || *v == i64::MIN { 1 } else { *v }).collect();
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[i64; 8]>(n)?);
    t.launch("division", 2, 128, args![da, db, out, n as i32])?;
    let want: Vec<[i64; 8]> = values_at(0..n, |i| {
        let (x, y) = (a[i], b[i]);
        let (s, t) = (x as i32, y as i32);
        let (u, v) = (x as u32, y as u32);
        let pair = |high: u32, low: u32| (u64::from(high) << 32 | u64::from(low)) as i64;
        // In C++ narrow operands are promoted to int before they are divided.
        let short = i32::from(x as i16) / i32::from(y as i16);
        let byte = i64::from(x as u8 / y as u8) * 100_000;
        let signed_byte = i32::from(x as i8) % i32::from(y as i8);
        [
            x / y,
            x % y,
            ((x as u64 / y as u64) ^ (x as u64 % y as u64)) as i64,
            pair((s / t) as u32, (s % t) as u32),
            pair(u / v, u % v),
            i64::from(short) + byte + i64::from(signed_byte),
            x / 10 + x % 1_000_003 + i64::from(s / 7) + i64::from(u / 641) + i64::from(s % 12),
            x / 16 + x % 64 + i64::from(s / 4) + i64::from(u % 32),
        ]
    });
    same("rows", &t.download(&out)?, &want)
}

pub(crate) fn carry_chain(t: &mut Trial<'_>) -> Outcome {
    let n = 60;
    let mut r = Inputs::new(165);
    // Words of all ones make carries propagate far.
    let mut draw =
        |length: usize| -> Vec<u32> { (0..n * length).map(|_| if r.below(0, 2) == 0 { u32::MAX } else { r.u32() }).collect() };
    let (a, b) = (draw(8), draw(8));
    let (da, db, sum, difference) = (t.upload(&a)?, t.upload(&b)?, t.output::<u32>(8 * n)?, t.output::<u32>(8 * n)?);
    t.launch("carry_chain", 1, 64, args![da, db, sum, difference, n as i32])?;
    // One limb after the other, with the carry in a wider integer; subtraction adds the complement and one.
    let add = |flip: u32, first: u64| -> Vec<u32> {
        let mut carry = 0;
        (0..8 * n)
            .map(|k| {
                carry = if k % 8 == 0 { first } else { carry };
                let total = u64::from(a[k]) + u64::from(b[k] ^ flip) + carry;
                carry = total >> 32;
                total as u32
            })
            .collect()
    };
    same("sums", &t.download(&sum)?, &add(0, 0))?;
    same("differences", &t.download(&difference)?, &add(u32::MAX, 1))?;

    let (a, b) = (draw(4), draw(4));
    let (da, db, product) = (t.upload(&a)?, t.upload(&b)?, t.output::<u32>(8 * n)?);
    t.launch("long_product", 1, 64, args![da, db, product, n as i32])?;
    let want: Vec<u32> = a
        .chunks(4)
        .zip(b.chunks(4))
        .flat_map(|(x, y)| {
            let mut limbs = [0u32; 8];
            for (i, x) in x.iter().enumerate() {
                let mut carry = 0u64;
                for (j, y) in y.iter().enumerate() {
                    carry += u64::from(*x) * u64::from(*y) + u64::from(limbs[i + j]);
                    limbs[i + j] = carry as u32;
                    carry >>= 32;
                }
                limbs[i + 4] = carry as u32;
            }
            limbs
        })
        .collect();
    same("products", &t.download(&product)?, &want)?;

    let words = |r: &mut Inputs| -> Vec<u64> { r.many(n, |r| if r.below(0, 3) == 0 { r.u64() >> 32 } else { r.u64() }) };
    let (a, b) = (words(&mut Inputs::new(168)), words(&mut Inputs::new(169)));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[u64; 8]>(n)?);
    t.launch("mixed_chains", 1, 64, args![da, db, out, n as i32])?;
    let want: Vec<[u64; 8]> = a
        .iter()
        .zip(&b)
        .map(|(&x, &y)| {
            let (u, v) = (x as u32, y as u32);
            [
                x.wrapping_sub(y),
                y.wrapping_add(x).wrapping_add(u64::from(x >= y)),
                x.wrapping_add(y),
                y.wrapping_sub(x).wrapping_sub(u64::from(x.checked_add(y).is_some())),
                u64::from(u.wrapping_sub(v)),
                u64::from(v.wrapping_add(u).wrapping_add(u32::from(u >= v))),
                u64::from(u.wrapping_add(v)),
                u64::from(v.wrapping_sub(u).wrapping_sub(u32::from(u.checked_add(v).is_some()))),
            ]
        })
        .collect();
    same("mixed chains", &t.download(&out)?, &want)
}

pub(crate) fn number_theory(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(166);
    // Primes near the ends of 16, 32 and 63 bits, strong pseudoprimes, squares, and random numbers.
    let mut a = vec![2u64, 3, 1, 9, 37, 41, 65_521, 4_294_967_291, 9_223_372_036_854_775_783, 2047, 3_215_031_751];
    let known = [true, true, false, false, true, true, true, true, true, false, false];
    a.extend(r.many(6, |r| r.below(2, 100_000) as u64));
    a.extend(r.many(3, |r| u64::from(r.u32()).pow(2)));
    let n = a.len();
    let b: Vec<u64> = a.iter().map(|v| if v % 2 == 0 { r.u64() } else { v.wrapping_mul(6) >> 1 }).collect();
    let (da, db) = (t.upload(&a)?, t.upload(&b)?);
    let (divisor, root, prime) = (t.output::<u64>(n)?, t.output::<u32>(n)?, t.output::<u8>(n)?);
    t.launch("number_theory", 1, 32, args![da, db, divisor, root, prime, n as i32])?;
    let gcd = |a: u64, b: u64| {
        // Stein's algorithm: factors of two separately, then subtraction.
        let (mut a, mut b) = (a, b);
        let twos = (a | b).trailing_zeros();
        a >>= a.trailing_zeros();
        while b != 0 {
            b >>= b.trailing_zeros();
            if a > b {
                std::mem::swap(&mut a, &mut b);
            }
            b -= a;
        }
        a << twos
    };
    same("divisors", &t.download(&divisor)?, &a.iter().zip(&b).map(|(a, b)| gcd(*a, *b)).collect::<Vec<u64>>())?;
    same("roots", &t.download(&root)?, &a.iter().map(|v| v.isqrt() as u32).collect::<Vec<u32>>())?;
    let is_prime = |(i, v): (usize, &u64)| match known.get(i) {
        Some(known) => u8::from(*known),
        None => u8::from((2..).take_while(|d| d * d <= *v).all(|d| v % d != 0)),
    };
    same("primes", &t.download(&prime)?, &a.iter().enumerate().map(is_prime).collect::<Vec<u8>>())
}

pub(crate) fn prime_sieve(t: &mut Trial<'_>) -> Outcome {
    let blocks = 3;
    let small: Vec<u32> = (2u32..56).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    let (ds, count) = (t.upload(&small)?, t.zeros::<u32>(1)?);
    t.launch("prime_sieve", blocks, 48, args![ds, small.len() as i32, count])?;
    let want = (2..blocks * 1024).filter(|n| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0)).count() as u32;
    same("primes", &t.download(&count)?, &[want])
}

pub(crate) fn morton(t: &mut Trial<'_>) -> Outcome {
    let n = 100;
    let point: Vec<[u32; 4]> = Inputs::new(167).many(n, |r| [0; 4].map(|_: i32| r.u32()));
    let (dp, code2, code3) = (t.upload(&point)?, t.output::<u32>(n)?, t.output::<u64>(n)?);
    let (gray, curve) = (t.output::<u32>(n)?, t.output::<u32>(n)?);
    t.launch("morton", 2, 64, args![dp, code2, code3, gray, curve, n as i32])?;
    let weave = |parts: &[u32], bits: u32| -> u64 {
        let count = parts.len() as u32;
        (0..bits * count).fold(0, |code, k| code | u64::from(parts[(k % count) as usize] >> (k / count) & 1) << k)
    };
    same("code2", &t.download(&code2)?, &point.iter().map(|p| weave(&p[..2], 16) as u32).collect::<Vec<u32>>())?;
    same("code3", &t.download(&code3)?, &point.iter().map(|p| weave(&p[..3], 21)).collect::<Vec<u64>>())?;
    // Neighbouring Gray codes differ in one bit; the exclusive or of the prefixes gives the number back.
    let number = |g: u32| (0..32).fold(0, |n, shift| n ^ g >> shift);
    let back: Vec<u32> = t.download(&gray)?.iter().map(|g| number(*g)).collect();
    same("gray", &back, &point.iter().map(|p| p[3]).collect::<Vec<u32>>())?;
    // The point at each Hilbert index, computed from the lowest bits up, is the given one.
    let place = |index: u32| {
        let (mut x, mut y) = (0u32, 0u32);
        for level in 0..16 {
            let quadrant = index >> (2 * level) & 3;
            let (rx, ry) = (quadrant >> 1, (quadrant ^ quadrant >> 1) & 1);
            let side = 1u32 << level;
            if ry == 0 {
                if rx == 1 {
                    (x, y) = (side - 1 - x, side - 1 - y);
                }
                (x, y) = (y, x);
            }
            (x, y) = (x + side * rx, y + side * ry);
        }
        [x, y]
    };
    let back: Vec<[u32; 2]> = t.download(&curve)?.iter().map(|c| place(*c)).collect();
    same("hilbert", &back, &point.iter().map(|p| [p[0] & 0xffff, p[1] & 0xffff]).collect::<Vec<[u32; 2]>>())
}
