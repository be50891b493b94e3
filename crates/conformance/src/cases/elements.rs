//! One thread per element: addition, vector types, structures by value, polynomials.

use crate::compare::{close, same};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

pub(crate) fn vector_add(t: &mut Trial<'_>) -> Outcome {
    let n = 1000;
    let mut r = Inputs::new(1);
    let (a, b) = (r.f32s(n, -100.0, 100.0), r.f32s(n, -100.0, 100.0));
    let (da, db, dc) = (t.upload(&a)?, t.upload(&b)?, t.output::<f32>(n)?);
    t.launch("vector_add", 4, 256, args![da, db, dc, n as i32])?;
    let want: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    same("c", &t.download(&dc)?, &want)
}

pub(crate) fn saxpy(t: &mut Trial<'_>) -> Outcome {
    let n = 1500;
    let mut r = Inputs::new(2);
    let (x, y) = (r.f32s(n, -9.0, 9.0), r.f32s(n, -9.0, 9.0));
    let (dx, dy) = (t.upload(&x)?, t.upload(&y)?);
    t.launch("saxpy", 3, 128, args![n as i32, 2.5f32, dx, dy])?;
    let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 2.5 * x + y).collect();
    close("saxpy", &t.download(&dy)?, &want, 1e-6, 1e-5)?;

    let (x, y) = (r.f64s(n, -9.0, 9.0), r.f64s(n, -9.0, 9.0));
    let (dx, dy) = (t.upload(&x)?, t.upload(&y)?);
    t.launch("daxpy", 2, 160, args![n as i64, -1.1f64, dx, dy])?;
    let want: Vec<f64> = x.iter().zip(&y).map(|(x, y)| f64::mul_add(-1.1, *x, *y)).collect();
    same("daxpy", &t.download(&dy)?, &want)
}

pub(crate) fn thread_index(t: &mut Trial<'_>) -> Outcome {
    let (grid, block) = ([3u32, 2, 2], [5u32, 4, 3]);
    let size = [grid[0] * block[0], grid[1] * block[1], grid[2] * block[2]];
    let out = t.output::<[i32; 4]>((size[0] * size[1] * size[2]) as usize)?;
    t.launch("thread_index", grid, block, args![out])?;
    let mut want = Vec::new();
    for z in 0..size[2] as i32 {
        for y in 0..size[1] as i32 {
            for x in 0..size[0] as i32 {
                want.push([x, y, z, 50403 + 12 * 1_000_000]);
            }
        }
    }
    same("out", &t.download(&out)?, &want)
}

pub(crate) fn vector_types(t: &mut Trial<'_>) -> Outcome {
    let n = 300;
    let mut r = Inputs::new(3);
    let small = |r: &mut Inputs| r.below(-50, 50) as f32;
    let input: Vec<[f32; 4]> = r.many(n, |r| [small(r), small(r), small(r), small(r)]);
    let (di, out) = (t.upload(&input)?, t.output::<[f32; 4]>(n)?);
    t.launch("reverse_float4", 3, 128, args![di, out, n as i32])?;
    let want: Vec<[f32; 4]> = input.iter().map(|v| [v[3], 2.0 * v[2], 3.0 * v[1], 4.0 * v[0]]).collect();
    same("reverse_float4", &t.download(&out)?, &want)?;

    let input: Vec<[i32; 2]> = r.many(n, |r| [r.u32() as i32 / 2, r.u32() as i32 / 2]);
    let (di, out) = (t.upload(&input)?, t.output::<[i32; 2]>(n)?);
    t.launch("butterfly_int2", 3, 128, args![di, out, n as i32])?;
    let want: Vec<[i32; 2]> = input.iter().map(|v| [v[0].wrapping_add(v[1]), v[0].wrapping_sub(v[1])]).collect();
    same("butterfly_int2", &t.download(&out)?, &want)?;

    let complex = |r: &mut Inputs| [r.below(-1000, 1000) as f64, r.below(-1000, 1000) as f64];
    let (a, b) = (r.many(n, complex), r.many(n, complex));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<[f64; 2]>(n)?);
    t.launch("multiply_double2", 3, 128, args![da, db, out, n as i32])?;
    let product = |(p, q): (&[f64; 2], &[f64; 2])| [p[0] * q[0] - p[1] * q[1], p[0] * q[1] + p[1] * q[0]];
    let want: Vec<[f64; 2]> = a.iter().zip(&b).map(product).collect();
    same("multiply_double2", &t.download(&out)?, &want)?;

    let input: Vec<[u8; 4]> = r.many(n, |r| r.u32().to_le_bytes());
    let (di, out) = (t.upload(&input)?, t.output::<[u8; 2]>(n)?);
    t.launch("luma_uchar4", 3, 128, args![di, out, n as i32])?;
    let luma = |p: &[u8; 4]| (p[0] as u32 * 77 + p[1] as u32 * 150 + p[2] as u32 * 29) / 256;
    let want: Vec<[u8; 2]> = input.iter().map(|p| [luma(p) as u8, p[3]]).collect();
    same("luma_uchar4", &t.download(&out)?, &want)?;

    let short4 = |r: &mut Inputs| [0; 4].map(|_: i32| r.u32() as i16);
    let (a, b): (Vec<[i16; 4]>, Vec<[i16; 4]>) = (r.many(n, short4), r.many(n, short4));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<i64>(n)?);
    t.launch("dot_short4", 3, 128, args![da, db, out, n as i32])?;
    let dot = |(p, q): (&[i16; 4], &[i16; 4])| p.iter().zip(q).map(|(a, b)| *a as i64 * *b as i64).sum();
    let want: Vec<i64> = a.iter().zip(&b).map(dot).collect();
    same("dot_short4", &t.download(&out)?, &want)
}

pub(crate) fn struct_argument(t: &mut Trial<'_>) -> Outcome {
    let n = 200;
    let mut r = Inputs::new(4);
    let points: Vec<[f32; 2]> = r.many(n, |r| [r.f64(-1.0, 1.0) as f32, r.f64(-1.0, 1.0) as f32]);
    let (matrix, offset, repeat, sign) = ([[0.6f32, -0.8], [0.75, 0.5]], [0.25f64, -1.5], 5i16, -1i8);
    // The layout of the C++ structure: 16 bytes of matrix, 16 of offset, then 2, 1, one of padding, 4.
    let mut affine = Vec::new();
    matrix.iter().flatten().for_each(|m| affine.extend(m.to_le_bytes()));
    offset.iter().for_each(|o| affine.extend(o.to_le_bytes()));
    affine.extend(repeat.to_le_bytes());
    affine.extend([sign as u8, 0]);
    affine.extend((n as i32).to_le_bytes());
    let (di, out) = (t.upload(&points)?, t.output::<[f32; 2]>(n)?);
    t.launch("struct_argument", 2, 128, args![affine, di, out])?;
    let want: Vec<f32> = points
        .iter()
        .flat_map(|p| {
            let mut p = p.map(f64::from);
            for _ in 0..repeat {
                let line = |m: [f32; 2], o: f64| -(m[0] as f64 * p[0] + m[1] as f64 * p[1]) + o;
                p = [line(matrix[0], offset[0]), line(matrix[1], offset[1])];
            }
            p.map(|c| c as f32)
        })
        .collect();
    close("points", t.download(&out)?.as_flattened(), &want, 1e-5, 1e-5)?;

    let weights: [i32; 8] = [3, -1, 4, 1, -5, 9, 2, -6];
    let keys = r.u32s(n);
    let (dk, out) = (t.upload(&keys)?, t.output::<i32>(n)?);
    let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
    t.launch("indexed_argument", 2, 128, args![bytes, dk, out, n as i32])?;
    let want: Vec<i32> = keys.iter().map(|k| weights[*k as usize % 8] * 3 + weights[(*k as usize / 8) % 8]).collect();
    same("indexed_argument", &t.download(&out)?, &want)
}

pub(crate) fn horner(t: &mut Trial<'_>) -> Outcome {
    let (n, degree) = (400, 9);
    let mut r = Inputs::new(5);
    let (c, x) = (r.f64s(degree + 1, -2.0, 2.0), r.f64s(n, -1.25, 1.25));
    let value = |c: &[f64], x: f64| -> f64 { c.iter().enumerate().map(|(k, c)| c * x.powi(k as i32)).sum() };

    let (dc, dx, dy) = (t.upload(&c)?, t.upload(&x)?, t.output::<f64>(n)?);
    t.launch("horner_f64", 4, 128, args![dc, degree as i32, dx, dy, n as i32])?;
    let want: Vec<f64> = x.iter().map(|x| value(&c, *x)).collect();
    close("horner_f64", &t.download(&dy)?, &want, 1e-12, 1e-12)?;

    let c32: Vec<f32> = c.iter().map(|c| *c as f32).collect();
    let x32: Vec<f32> = x.iter().map(|x| *x as f32).collect();
    let (dc, dx, dy) = (t.upload(&c32)?, t.upload(&x32)?, t.output::<f32>(n)?);
    t.launch("horner_f32", 4, 128, args![dc, degree as i32, dx, dy, n as i32])?;
    let c: Vec<f64> = c32.iter().map(|c| f64::from(*c)).collect();
    let want: Vec<f32> = x32.iter().map(|x| value(&c, f64::from(*x)) as f32).collect();
    close("horner_f32", &t.download(&dy)?, &want, 1e-5, 1e-5)
}
