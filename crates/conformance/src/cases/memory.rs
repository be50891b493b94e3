//! Placement of data: caches, shared pools, local arrays, unions, generic addresses.

use crate::compare::{close, same};
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

pub(crate) fn cache_hints(t: &mut Trial<'_>) -> Outcome {
    let n = 200;
    let mut r = Inputs::new(120);
    let input = r.i32s(n, -1000, 1000);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(n)?);
    t.launch("cache_hints", 2, 128, args![di, out, n as i32])?;
    same("sums", &t.download(&out)?, &input.iter().map(|v| 8 * v).collect::<Vec<i32>>())?;

    let quad = |r: &mut Inputs| [0; 4].map(|_: i32| r.f64(-1.0, 1.0) as f32);
    let (a, b, c) = (r.many(n, quad), r.many(n, quad), r.f64s(n, -1.0, 1.0));
    let (da, db, dc, out) = (t.upload(&a)?, t.upload(&b)?, t.upload(&c)?, t.output::<f64>(n)?);
    t.launch("read_only", 2, 128, args![da, db, dc, out, n as i32])?;
    let dot = |i: usize| (0..4).map(|k| f64::from(a[i][k]) * f64::from(b[i][k])).sum::<f64>() + c[i];
    close("dots", &t.download(&out)?, &(0..n).map(dot).collect::<Vec<f64>>(), 1e-14, 1e-14)
}

pub(crate) fn dynamic_shared(t: &mut Trial<'_>) -> Outcome {
    let (grid, n) = (3, 40);
    let input = Inputs::new(121).i32s(grid * n, -40_000, 40_000);
    let (di, out) = (t.upload(&input)?, t.output::<f64>(grid * n)?);
    t.launch_shared("dynamic_shared", grid as u32, n as u32, 16 * n, args![di, out])?;
    let want: Vec<f64> = values_at(0..grid * n, |i| {
        let block = &input[i / n * n..][..n];
        let mirror = n - 1 - i % n;
        let v = block[mirror];
        let checksum = block.iter().skip(mirror % 4).step_by(4).fold(0, |a, b| a ^ b);
        let bytes = (v as u32).to_le_bytes();
        f64::from(v) * 0.5
            + f64::from(v * 3)
            + f64::from(v as i16)
            + f64::from(bytes[0])
            + f64::from(bytes[1])
            + f64::from(checksum)
    });
    same("out", &t.download(&out)?, &want)
}

pub(crate) fn local_arrays(t: &mut Trial<'_>) -> Outcome {
    let n = 70;
    let seed = Inputs::new(122).u32s(n);
    let (ds, out) = (t.upload(&seed)?, t.output::<u32>(n)?);
    t.launch("local_arrays", 3, 32, args![ds, out, n as i32])?;
    let digest = |mut state: u32| {
        let mut order: Vec<usize> = (0..32).collect();
        for k in (1..32).rev() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            order.swap(k, (state >> 16) as usize % (k + 1));
        }
        let mut table = [0u32; 32];
        for k in 0..32 {
            table[order[k] % 4 * 8 + order[order[k]] % 8] += k as u32;
        }
        let digest = table.iter().fold(0u32, |d, v| d.wrapping_mul(31).wrapping_add(*v));
        digest.wrapping_add((1.5f64.powi((digest & 7) as i32) * 128.0) as u32)
    };
    same("digests", &t.download(&out)?, &seed.iter().map(|s| digest(*s)).collect::<Vec<u32>>())
}

pub(crate) fn type_punning(t: &mut Trial<'_>) -> Outcome {
    let n = 90;
    let input = Inputs::new(123).f32s(n, 0.01, 500.0);
    let (di, root, digest) = (t.upload(&input)?, t.output::<f32>(n)?, t.output::<u32>(n)?);
    t.launch("type_punning", 3, 32, args![di, root, digest, n as i32])?;
    // One Newton step after the well-known guess leaves an error of 0.18 %.
    let want: Vec<f32> = input.iter().map(|x| 1.0 / x.sqrt()).collect();
    close("roots", &t.download(&root)?, &want, 0.0018, 0.0)?;
    let want: Vec<u32> = values_at(0..n, |i| {
        let bits = input[i].to_bits();
        let b = bits.to_le_bytes().map(u32::from);
        let mut sum = b[0] + 3 * b[1] + 5 * b[2] + 7 * b[3];
        sum = sum.wrapping_add((bits & 0xffff) * (bits >> 16));
        let low = bits & 31;
        let middle = (bits >> 5).wrapping_add(3) & 0x7ff;
        let high = (bits >> 16) ^ low;
        let mut raw = vec![i as u8];
        raw.extend((low | middle << 5 | high << 16).to_le_bytes());
        raw.extend(((sum >> 4) as u16).to_le_bytes());
        let sum = raw.iter().fold(sum, |s, b| s.wrapping_mul(33).wrapping_add(u32::from(*b)));
        let wide = f64::from(input[i]).to_bits();
        // The double whose halves are both i is zero for the first thread only.
        let positive = f64::from_bits((i as u64) << 32 | i as u64) > 0.0;
        sum ^ (wide >> 32) as u32 ^ wide as u32 ^ u32::from(positive)
    });
    same("digests", &t.download(&digest)?, &want)
}

pub(crate) fn inline_assembly(t: &mut Trial<'_>) -> Outcome {
    let n = 128;
    let input = Inputs::new(124).i32s(n, -300, 300);
    let (di, out) = (t.upload(&input)?, t.output::<[i32; 4]>(n)?);
    t.launch("inline_assembly", 2, 64, args![di, out])?;
    let row = |i: usize| [input[i].clamp(-100, 100), input[i].abs(), input[i ^ 1], i as i32 % 32];
    same("out", &t.download(&out)?, &(0..n).map(row).collect::<Vec<[i32; 4]>>())
}

pub(crate) fn generic_addresses(t: &mut Trial<'_>) -> Outcome {
    let n = 60;
    let input = Inputs::new(125).i32s(8, -100, 100);
    let (di, out, space) = (t.upload(&input)?, t.output::<i32>(n)?, t.output::<i32>(n)?);
    t.launch("generic_addresses", 2, 32, args![di, out, space, n as i32])?;
    let weighted = |value: &dyn Fn(usize) -> i32| (0..8).map(|k| value(k) * (k as i32 + 1)).sum();
    let want: Vec<i32> = (0..n)
        .map(|i| match i % 4 {
            0 => weighted(&|k| input[k]),
            1 => weighted(&|k| 100 + (i % 32 % 16 + k) as i32),
            2 => weighted(&|k| (i * k) as i32),
            _ => weighted(&|k| 5 + k as i32),
        })
        .collect();
    same("sums", &t.download(&out)?, &want)?;
    same("spaces", &t.download(&space)?, &(0..n).map(|i| i as i32 % 4 + 1).collect::<Vec<i32>>())
}
