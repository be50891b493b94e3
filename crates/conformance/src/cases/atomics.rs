//! Atomic operations on memory.

use half::f16;

use crate::compare::{holds, same, same_set};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn atomics_int(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (3, 110);
    let n: u32 = grid * block;
    let unsigned = [5, 1_000_000, 700, 30, u32::MAX, 1, 0xabcd, 0, 20, 4_000_000, 12345];
    let signed = [17, 300, -400];
    let (du, ds) = (t.upload(&unsigned)?, t.upload(&signed)?);
    t.launch("atomics_int", grid, block, args![du, ds])?;
    let (u, s) = (t.download(&du)?, t.download(&ds)?);
    let sum: u32 = (0..n).sum();
    let mixed = || (0..n).map(|i| i * 7919 % 1009);
    // Counts up to 99 and on from zero; counts down from 20 to zero and on from 49.
    let inc = n % 100;
    let dec = (50 + 20 - n % 50) % 50;
    let want = [
        5 + sum,
        1_000_000u32.wrapping_sub(3 * sum),
        mixed().min().unwrap_or_default().min(700),
        mixed().max().unwrap_or_default().max(30),
        !0xf_ffff,
        0xff_ffff,
        (0..n).fold(0xabcd, |x, i| x ^ i.wrapping_mul(2_654_435_761)),
        inc,
        dec,
    ];
    same("unsigned", &u[..9], &want)?;
    holds("the exchanged word is some thread's", u[9] < n)?;
    holds("the compared word is some thread's", u[10] < n)?;
    let steps: i32 = (0..n as i32).map(|i| i % 5 - 2).sum();
    same("signed", &s, &[17 + steps, 300.min(500 - n as i32 + 1), (-400).max(n as i32 - 1 - 500)])?;

    let (next, ticket) = (t.upload(&[9u32])?, t.output::<u32>(n as usize)?);
    t.launch("atomics_tickets", grid, block, args![next, ticket])?;
    same_set("tickets", &t.download(&ticket)?, &(0..n).map(|i| 9 + 2 * i).collect::<Vec<u32>>())
}

pub(crate) fn atomics_wide(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (2, 60);
    let n = u64::from(grid * block);
    let start = [1, u64::MAX, 5, u64::MAX, 2, 3, n + 1, 77, 1];
    let (du, ds) = (t.upload(&start)?, t.upload(&[5i64, -1000])?);
    t.launch("atomics_wide", grid, block, args![du, ds])?;
    let mixed = || (1..=n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let u = t.download(&du)?;
    let want = [
        mixed().fold(1, u64::wrapping_add),
        mixed().min().unwrap_or_default(),
        mixed().max().unwrap_or_default(),
        mixed().fold(u64::MAX, |a, m| a & (m | 0xff00_ff00_ff00_ff00)),
        (1 << 60) - 1,
        mixed().fold(3, |a, m| a ^ m),
    ];
    same("words", &u[..6], &want)?;
    holds("the exchanged word is some thread's", u[6] < n)?;
    same("compared word and product", &u[7..], &[78, (0..n).fold(1, |p: u64, i| p.wrapping_mul(2 * i + 1))])?;
    same("signed", &t.download(&ds)?, &[-(n as i64 - 1), 0])?;

    let h = t.upload(&[7u16, 0, 9, 11])?;
    t.launch("atomics_short", grid, block, args![h])?;
    same("16 bits", &t.download(&h)?, &[7, n as u16, 9, 11])
}

pub(crate) fn atomics_float(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (2, 75);
    let n = grid * block;
    let (f, d) = (t.zeros::<f32>(4)?, t.zeros::<f64>(1)?);
    let (pair, single) = (t.zeros::<f16>(2)?, t.zeros::<f16>(1)?);
    t.launch("atomics_float", grid, block, args![f, d, pair, single])?;
    let total: u32 = (0..n).map(|i| i % 100).sum();
    same("floats", &t.download(&f)?, &[total as f32, n as f32, (n - 1) as f32 * 0.5, 42.0])?;
    same("double", &t.download(&d)?, &[f64::from((0..n).sum::<u32>()) * 0.25])?;
    same("pair", &t.download(&pair)?, &[f16::from_f32(n as f32), f16::ZERO])?;
    same("half", &t.download(&single)?, &[f16::from_f32(n as f32 * 0.5)])
}

pub(crate) fn atomics_shared(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (3, 70);
    let input = Inputs::new(150).many(grid * block, |r| r.u32() | 0x40);
    let (di, out, system) = (t.upload(&input)?, t.output::<u32>(grid * 8)?, t.zeros::<u32>(1)?);
    t.launch("atomics_shared", grid as u32, block as u32, args![di, out, system])?;
    let want: Vec<u32> = input
        .chunks(block)
        .flat_map(|v| {
            let wide = v.iter().fold(0u64, |a, b| a + (u64::from(*b) << 8));
            [
                v.iter().fold(0u32, |a, b| a.wrapping_add(*b)),
                v.iter().fold(0, |a, b| a.max(*b)),
                v.iter().fold(u32::MAX, |a, b| a.min(*b)),
                v.iter().fold(0, |a, b| a | b),
                v.iter().fold(u32::MAX, |a, b| a & b),
                block as u32 % 11,
                wide as u32 ^ (wide >> 32) as u32,
                block as u32,
            ]
        })
        .collect();
    same("blocks", &t.download(&out)?, &want)?;
    same("system", &t.download(&system)?, &[(grid * block) as u32])
}

pub(crate) fn histogram_shared(t: &mut Trial<'_>) -> Outcome {
    let n = 3000;
    let mut r = Inputs::new(151);
    let input: Vec<u8> = r.many(n, |r| (r.u64() as u8).min(r.u64() as u8));
    let (di, bins) = (t.upload(&input)?, t.zeros::<u32>(256)?);
    t.launch("histogram_shared", 4, 128, args![di, n as i32, bins])?;
    let mut want = vec![0u32; 256];
    input.iter().for_each(|b| want[*b as usize] += 1);
    same("bins", &t.download(&bins)?, &want)
}

pub(crate) fn histogram_global(t: &mut Trial<'_>) -> Outcome {
    let (n, count) = (2000, 40);
    // The bins are a quarter wide, so that rounding decides no value near an edge.
    let input: Vec<f32> = Inputs::new(152).many(n, |r| r.below(-80, 80) as f32 * 0.1 + 0.01);
    let (di, bins) = (t.upload(&input)?, t.zeros::<u32>(count)?);
    t.launch("histogram_global", 4, 128, args![di, n as i32, bins, count as i32, -5.0f32, 5.0f32])?;
    let mut want = vec![0u32; count];
    input.iter().for_each(|v| want[((f64::from(*v) + 5.0) * 4.0).floor().clamp(0.0, 39.0) as usize] += 1);
    same("bins", &t.download(&bins)?, &want)
}
