//! Prefix sums and algorithms built from them.

use crate::compare::{close, same, same_set};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

/// Returns running sums of `values`, restarting at every multiple of `length`.
fn running<T: Copy + std::ops::Add<Output = T>>(values: &[T], length: usize) -> Vec<T> {
    let mut out: Vec<T> = Vec::with_capacity(values.len());
    for (i, v) in values.iter().enumerate() {
        out.push(if i % length == 0 { *v } else { out[i - 1] + *v });
    }
    out
}

pub(crate) fn scan_hillis_steele(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (3, 200);
    let input = Inputs::new(20).i32s(grid * block, -1000, 1000);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(grid * block)?);
    t.launch_shared("scan_hillis_steele", grid as u32, block as u32, 2 * block * 4, args![di, out])?;
    same("sums", &t.download(&out)?, &running(&input, block))
}

pub(crate) fn scan_blelloch(t: &mut Trial<'_>) -> Outcome {
    let blocks = 4;
    let n = blocks * 512;
    let input = Inputs::new(21).many(n, |r| r.u32() >> 16);
    let (di, out, sums) = (t.upload(&input)?, t.output::<u32>(n)?, t.output::<u32>(blocks)?);
    t.launch("scan_blelloch", blocks as u32, 256, args![di, out, sums])?;
    let totals: Vec<u32> = input.chunks(512).map(|c| c.iter().sum()).collect();
    same("totals", &t.download(&sums)?, &totals)?;

    let inclusive = running(&totals, blocks);
    let offsets: Vec<u32> = inclusive.iter().zip(&totals).map(|(sum, own)| sum - own).collect();
    let offsets = t.upload(&offsets)?;
    t.launch("add_offsets", blocks as u32, 256, args![out, offsets])?;
    let want: Vec<u32> = running(&input, n).iter().zip(&input).map(|(sum, own)| sum - own).collect();
    same("exclusive sums", &t.download(&out)?, &want)
}

pub(crate) fn scan_shuffle(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (3, 256);
    let input: Vec<i64> = Inputs::new(22).many(grid * block, |r| r.below(-(1 << 50), 1 << 50));
    let (di, out) = (t.upload(&input)?, t.output::<i64>(grid * block)?);
    t.launch("scan_shuffle", grid as u32, block as u32, args![di, out])?;
    same("sums", &t.download(&out)?, &running(&input, block))
}

pub(crate) fn scan_lookback(t: &mut Trial<'_>) -> Outcome {
    let (n, blocks) = (1500, 12);
    let input = Inputs::new(23).many(n, |r| r.u32() >> 12);
    let (di, out) = (t.upload(&input)?, t.output::<u32>(n)?);
    let (status, next) = (t.zeros::<u64>(blocks)?, t.zeros::<u32>(1)?);
    t.launch("scan_lookback", blocks as u32, 128, args![di, out, n as i32, status, next])?;
    same("sums", &t.download(&out)?, &running(&input, n))?;
    same("blocks", &t.download(&next)?, &[blocks as u32])
}

pub(crate) fn segmented_scan(t: &mut Trial<'_>) -> Outcome {
    let n = 3 * 256;
    let mut r = Inputs::new(24);
    let input = r.f32s(n, 0.0, 1.0);
    let head: Vec<u8> = r.many(n, |r| (r.below(0, 9) == 0) as u8 * 17);
    let (di, dh, out) = (t.upload(&input)?, t.upload(&head)?, t.output::<f32>(n)?);
    t.launch("segmented_scan", 3, 256, args![di, dh, out])?;
    let mut want = Vec::new();
    let mut sum = 0.0f64;
    for i in 0..n {
        sum = if head[i] != 0 || i % 256 == 0 { 0.0 } else { sum } + f64::from(input[i]);
        want.push(sum as f32);
    }
    close("sums", &t.download(&out)?, &want, 1e-5, 1e-6)
}

pub(crate) fn stream_compaction(t: &mut Trial<'_>) -> Outcome {
    let n = 1000;
    let input = Inputs::new(25).i32s(n, -100, 100);
    let kept: Vec<i32> = input.iter().copied().filter(|v| *v > 30).collect();
    let (di, out, count) = (t.upload(&input)?, t.zeros::<i32>(n)?, t.zeros::<i32>(1)?);
    t.launch("compact_stable", 1, 256, args![di, n as i32, 30i32, out, count])?;
    same("stable count", &t.download(&count)?, &[kept.len() as i32])?;
    same("stable elements", &t.download(&out)?[..kept.len()], &kept)?;

    let (out, count) = (t.zeros::<i32>(n)?, t.zeros::<i32>(1)?);
    t.launch("compact_any", 4, 256, args![di, n as i32, 30i32, out, count])?;
    same("count", &t.download(&count)?, &[kept.len() as i32])?;
    same_set("elements", &t.download(&out)?[..kept.len()], &kept)
}
