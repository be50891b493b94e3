//! Reductions: sums, extrema, indices.

use crate::compare::{close, same};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn reduce_shared(t: &mut Trial<'_>) -> Outcome {
    let n = 1800;
    let input = Inputs::new(10).i32s(n, -1000, 1000);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(4)?);
    t.launch("reduce_shared", 4, 256, args![di, out, n as i32])?;
    let want: Vec<i32> = input.chunks(512).map(|c| c.iter().sum()).collect();
    same("partial sums", &t.download(&out)?, &want)
}

pub(crate) fn reduce_shuffle(t: &mut Trial<'_>) -> Outcome {
    let (n, grid, block) = (3000, 3, 192);
    // Whole numbers, so that the order of the sum does not matter.
    let input: Vec<f32> = Inputs::new(11).i32s(n, -100, 100).iter().map(|v| *v as f32).collect();
    let (di, out) = (t.upload(&input)?, t.output::<f32>(grid)?);
    t.launch("reduce_shuffle", grid as u32, block as u32, args![di, out, n as i32])?;
    let mut want = vec![0.0f32; grid];
    for (i, v) in input.iter().enumerate() {
        want[i / block % grid] += v;
    }
    same("partial sums", &t.download(&out)?, &want)
}

pub(crate) fn reduce_atomic(t: &mut Trial<'_>) -> Outcome {
    let n = 2000;
    let input = Inputs::new(12).i32s(n, -5000, 5000);
    let (di, result) = (t.upload(&input)?, t.upload(&[0, i32::MAX, i32::MIN])?);
    t.launch("reduce_atomic", 3, 100, args![di, n as i32, result])?;
    let least = input.iter().min().copied().unwrap_or_default();
    let greatest = input.iter().max().copied().unwrap_or_default();
    same("sum, least, greatest", &t.download(&result)?, &[input.iter().sum(), least, greatest])
}

pub(crate) fn reduce_last_block(t: &mut Trial<'_>) -> Outcome {
    let (n, blocks) = (5000, 9);
    let input = Inputs::new(13).u32s(n);
    let (di, partial) = (t.upload(&input)?, t.output::<u32>(blocks)?);
    let (ticket, total) = (t.zeros::<u32>(1)?, t.output::<u32>(1)?);
    let want = input.iter().fold(0u32, |a, b| a.wrapping_add(*b));
    // Twice, because the ticket must be reset for another launch.
    for _ in 0..2 {
        t.launch("reduce_last_block", blocks as u32, 128, args![di, n as i32, partial, ticket, total])?;
        same("total", &t.download(&total)?, &[want])?;
        same("ticket", &t.download(&ticket)?, &[0])?;
    }
    Ok(())
}

pub(crate) fn reduce_template(t: &mut Trial<'_>) -> Outcome {
    let n = 777;
    let mut r = Inputs::new(14);
    let doubles: Vec<f64> = r.f64s(n, -1.0, 1.0);
    let (di, out) = (t.upload(&doubles)?, t.output::<f64>(1)?);
    t.launch("sum_f64", 1, 128, args![di, n as i32, out])?;
    close("sum_f64", &t.download(&out)?, &[doubles.iter().sum::<f64>()], 1e-12, 1e-12)?;

    let longs: Vec<i64> = r.many(n, |r| r.u64() as i64);
    let (di, out) = (t.upload(&longs)?, t.output::<i64>(1)?);
    t.launch("least_s64", 1, 128, args![di, n as i32, out])?;
    same("least_s64", &t.download(&out)?, &[longs.iter().copied().min().unwrap_or_default()])?;

    let floats = r.f32s(n, -70.0, -3.0);
    let (di, out) = (t.upload(&floats)?, t.output::<f32>(1)?);
    t.launch("greatest_f32", 1, 128, args![di, n as i32, out])?;
    same("greatest_f32", &t.download(&out)?, &[floats.iter().copied().fold(f32::NEG_INFINITY, f32::max)])?;

    let bytes: Vec<u8> = r.many(n, |r| 1 << r.below(0, 7));
    let (di, out) = (t.upload(&bytes)?, t.output::<u8>(1)?);
    t.launch("union_u8", 1, 128, args![di, n as i32, out])?;
    same("union_u8", &t.download(&out)?, &[bytes.iter().fold(0, |a, b| a | b)])
}

pub(crate) fn reduce_redux(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (3, 96);
    let n = grid * block;
    let mut r = Inputs::new(15);
    let input = r.many(n, |r| r.u32() | 0x0001_0100);
    let (di, out) = (t.upload(&input)?, t.output::<u32>(n / 32 * 6)?);
    t.launch("reduce_redux", grid as u32, block as u32, args![di, out])?;
    let want: Vec<u32> = input
        .chunks(32)
        .flat_map(|w| {
            [
                w.iter().fold(0, |a: u32, b| a.wrapping_add(*b)),
                w.iter().fold(u32::MAX, |a, b| a.min(*b)),
                w.iter().fold(0, |a, b| a.max(*b)),
                w.iter().fold(u32::MAX, |a, b| a & b),
                w.iter().fold(0, |a, b| a | b),
                w.iter().fold(0, |a, b| a ^ b),
            ]
        })
        .collect();
    same("reduce_redux", &t.download(&out)?, &want)?;

    let input = r.i32s(n, -1000, 1000);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(n)?);
    t.launch("reduce_redux_masked", grid as u32, block as u32, args![di, out])?;
    let spread = |i: usize| {
        let half = || input[i / 32 * 32..i / 32 * 32 + 32].iter().skip(i % 2).step_by(2);
        half().max().copied().unwrap_or_default() - half().min().copied().unwrap_or_default()
    };
    let want: Vec<i32> = (0..n).map(spread).collect();
    same("reduce_redux_masked", &t.download(&out)?, &want)
}

pub(crate) fn argmax(t: &mut Trial<'_>) -> Outcome {
    let n = 3000;
    // Few distinct values, so that the maximum occurs several times and the first index matters.
    let input: Vec<f32> = Inputs::new(16).i32s(n, 0, 500).iter().map(|v| *v as f32 * 0.125).collect();
    let (di, best) = (t.upload(&input)?, t.zeros::<u64>(1)?);
    t.launch("argmax", 5, 128, args![di, n as u32, best])?;
    let greatest = input.iter().copied().fold(0.0, f32::max);
    let place = input.iter().position(|v| *v == greatest).unwrap_or_default();
    same("best", &t.download(&best)?, &[(greatest.to_bits() as u64) << 32 | (u32::MAX - place as u32) as u64])
}

pub(crate) fn dot_product(t: &mut Trial<'_>) -> Outcome {
    let n = 2500;
    let mut r = Inputs::new(17);
    let (a, b) = (r.f64s(n, -1.0, 1.0), r.f64s(n, -1.0, 1.0));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.zeros::<f64>(1)?);
    t.launch("dot_product", 3, 256, args![da, db, n as i32, out])?;
    let want: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
    close("dot", &t.download(&out)?, &[want], 1e-11, 1e-11)
}
