//! Warp operations: exchanges of values, votes and groups.

use crate::compare::{same, same_set};
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

pub(crate) fn shuffles(t: &mut Trial<'_>) -> Outcome {
    let n = 96;
    let mut r = Inputs::new(130);
    let input = r.i32s(n, -1000, 1000);
    let (di, out) = (t.upload(&input)?, t.output::<[i32; 8]>(n)?);
    t.launch("shuffles", 1, n as u32, args![di, out])?;
    // Value of a lane given by its index in a segment of `width`; an index outside means the thread's own
    // value.
    let lane = |i: usize, width: usize, place: i64| {
        let segment = i / width * width;
        if (0..width as i64).contains(&place) { input[segment + place as usize] } else { input[i] }
    };
    let row = |i: usize| {
        let at = |width: usize| (i % width) as i64;
        [
            lane(i, 32, 5),
            lane(i, 16, (i * 7 % 16) as i64),
            lane(i, 32, at(32) - 3),
            lane(i, 8, at(8) - 2),
            lane(i, 32, at(32) + 9),
            lane(i, 4, at(4) + 1),
            lane(i, 32, at(32) ^ 21),
            lane(i, 8, at(8) ^ 6),
        ]
    };
    same("shuffles", &t.download(&out)?, &(0..n).map(row).collect::<Vec<[i32; 8]>>())?;

    let (d, l) = (r.f64s(n, -1.0, 1.0), r.many(n, |r| r.u64() as i64));
    let (dd, dl, od, ol) = (t.upload(&d)?, t.upload(&l)?, t.output::<f64>(n)?, t.output::<i64>(n)?);
    t.launch("shuffles_wide", 1, n as u32, args![dd, dl, od, ol])?;
    let lower = |i: usize| i % 32 < 16;
    let want: Vec<f64> = (0..n).map(|i| if lower(i) { d[i / 32 * 32 + (i + 1) % 16] } else { -1.0 }).collect();
    same("doubles", &t.download(&od)?, &want)?;
    let want: Vec<i64> = (0..n).map(|i| if lower(i) { l[i ^ 10] } else { -1 }).collect();
    same("longs", &t.download(&ol)?, &want)
}

/// Returns the mask of the lanes of `warp` for which `holds`.
fn mask(warp: &[i32], holds: impl Fn(i32) -> bool) -> u32 {
    warp.iter().enumerate().fold(0, |m, (lane, v)| m | u32::from(holds(*v)) << lane)
}

pub(crate) fn votes(t: &mut Trial<'_>) -> Outcome {
    let n = 128;
    let mut input = Inputs::new(131).i32s(n, -120, 90);
    // The second warp has no value below -100, the third one above 90, the last one nothing negative.
    input[32..64].iter_mut().for_each(|v| *v = v.abs() % 90);
    input[70] = 95;
    input[96..].iter_mut().for_each(|v| *v = v.abs());
    let (di, out) = (t.upload(&input)?, t.output::<[u32; 5]>(n)?);
    t.launch("votes", 2, 64, args![di, out])?;
    let want: Vec<[u32; 5]> = values_at(0..n, |i| {
        let warp = &input[i / 32 * 32..][..32];
        let negative = input[i] < 0;
        [
            u32::from(warp.iter().all(|v| *v > -100)),
            u32::from(warp.iter().any(|v| *v > 90)),
            mask(warp, |v| v & 1 != 0),
            mask(warp, |v| v & 2 != 0 && (v < 0) == negative),
            1,
        ]
    });
    same("votes", &t.download(&out)?, &want)?;

    let out = t.output::<i32>(n)?;
    t.launch("vote_uniform", 2, 64, args![di, out])?;
    let uniform = |i: usize| {
        let warp = &input[i / 32 * 32..][..32];
        i32::from(matches!(mask(warp, |v| v > 0), 0 | u32::MAX))
    };
    same("uniform", &t.download(&out)?, &(0..n).map(uniform).collect::<Vec<i32>>())
}

pub(crate) fn matches(t: &mut Trial<'_>) -> Outcome {
    let n = 128;
    let mut r = Inputs::new(132);
    let mut narrow = r.i32s(n, 0, 6);
    narrow[32..64].fill(-9);
    // Equal in their lower halves, different in the upper ones.
    let wide: Vec<u64> = r.many(n, |r| (r.below(0, 3) as u64) << 40 | 77);
    let (dn, dw, out) = (t.upload(&narrow)?, t.upload(&wide)?, t.output::<[u32; 4]>(n)?);
    t.launch("matches", 2, 64, args![dn, dw, out])?;
    let want: Vec<[u32; 4]> = values_at(0..n, |i| {
        let lanes = i / 32 * 32..i / 32 * 32 + 32;
        let equal = mask(&narrow[lanes.clone()], |v| v == narrow[i]);
        let equal_wide = lanes.clone().fold(0, |m, k| m | u32::from(wide[k] == wide[i]) << (k % 32));
        let all = equal == u32::MAX;
        [equal, equal_wide, if all { u32::MAX } else { 0 }, u32::from(all)]
    });
    same("matches", &t.download(&out)?, &want)?;

    let count = t.output::<i32>(n / 32)?;
    t.launch("distinct_per_warp", 2, 64, args![dn, count])?;
    let distinct = |warp: &[i32]| warp.iter().collect::<std::collections::BTreeSet<_>>().len() as i32;
    same("distinct", &t.download(&count)?, &narrow.chunks(32).map(distinct).collect::<Vec<i32>>())
}

pub(crate) fn cooperative_tiles(t: &mut Trial<'_>) -> Outcome {
    let n = 128;
    let input = Inputs::new(133).i32s(n, -60, 60);
    let (di, out) = (t.upload(&input)?, t.output::<[i32; 4]>(n)?);
    t.launch("cooperative_tiles", 2, 64, args![di, out])?;
    let tile = |i: usize, size: usize| &input[i / size * size..][..size];
    let want: Vec<[i32; 4]> = values_at(0..n, |i| {
        // The tile of four at the mirrored position: as far from the end of the block as this thread's
        // tile from its start.
        let opposite = i / 64 * 64 + (15 - i % 64 / 4) * 4;
        let any = i32::from(tile(i, 4).iter().any(|v| *v > 50));
        let all = i32::from(tile(i, 8).iter().all(|v| *v > -50));
        let odd = mask(tile(i, 32), |v| v & 1 != 0) as i32;
        [
            tile(i, 32).iter().sum(),
            tile(i, 8).iter().sum::<i32>() + (i % 32 / 8) as i32,
            tile(opposite, 4).iter().sum(),
            (any * 2 + all).wrapping_add(odd),
        ]
    });
    same("tiles", &t.download(&out)?, &want)
}

pub(crate) fn cooperative_coalesced(t: &mut Trial<'_>) -> Outcome {
    let n = 250;
    let input = Inputs::new(134).i32s(256, 0, 1000);
    let kept: Vec<i32> = input[..n].iter().copied().filter(|v| v % 3 == 0).collect();
    let (di, out, count) = (t.upload(&input)?, t.zeros::<i32>(n)?, t.zeros::<i32>(1)?);
    t.launch("cooperative_coalesced", 4, 64, args![di, n as i32, out, count])?;
    same("count", &t.download(&count)?, &[kept.len() as i32])?;
    same_set("kept", &t.download(&out)?[..kept.len()], &kept)?;

    let out = t.output::<[i32; 2]>(256)?;
    t.launch("labelled_groups", 4, 64, args![di, out])?;
    let group = |i: usize| {
        let equals = || input[i / 32 * 32..][..32].iter().filter(|v| *v % 5 == input[i] % 5);
        [equals().count() as i32, equals().sum()]
    };
    same("groups", &t.download(&out)?, &(0..256).map(group).collect::<Vec<[i32; 2]>>())
}

pub(crate) fn warp_transpose(t: &mut Trial<'_>) -> Outcome {
    let n = 96;
    let mut r = Inputs::new(135);
    let rows = r.u32s(n);
    let (dr, out) = (t.upload(&rows)?, t.output::<u32>(n)?);
    t.launch("transpose_bits", 1, n as u32, args![dr, out])?;
    let column = |i: usize| (0..32).fold(0, |c, row| c | (rows[i / 32 * 32 + row] >> (i % 32) & 1) << row);
    same("bits", &t.download(&out)?, &(0..n).map(column).collect::<Vec<u32>>())?;

    let values = r.f32s(n * 8, -1.0, 1.0);
    let (dv, out) = (t.upload(&values)?, t.output::<f32>(n * 8)?);
    t.launch("transpose_registers", 1, n as u32, args![dv, out])?;
    let turned = |i: usize| values[i / 64 * 64 + i % 8 * 8 + i / 8 % 8];
    same("registers", &t.download(&out)?, &(0..n * 8).map(turned).collect::<Vec<f32>>())
}

pub(crate) fn special_registers(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = (2, 80);
    let out = t.output::<[u32; 10]>(grid * block)?;
    t.launch_shared("special_registers", grid as u32, block as u32, 64, args![out])?;
    let want: Vec<[u32; 10]> = values_at(0..grid * block, |i| {
        let lane = (i % block % 32) as u32;
        let (equal, less) = (1u32 << lane, (1u32 << lane) - 1);
        [lane, equal, less, less | equal, !(less | equal), !less, 64, grid as u32, 1, 32]
    });
    same("registers", &t.download(&out)?, &want)
}
