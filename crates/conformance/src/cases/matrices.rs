//! Dense and sparse matrices.

use half::{bf16, f16};

use crate::compare::{close, same};
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

/// Returns the product of an `m` x `k` and a `k` x `n` matrix, in double precision.
fn product(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    let cell = |row: usize, col: usize| (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
    (0..m * n).map(|i| cell(i / n, i % n)).collect()
}

fn wide<T: Copy + Into<f64>>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| (*v).into()).collect()
}

pub(crate) fn transpose_tiled(t: &mut Trial<'_>) -> Outcome {
    let (w, h) = (45, 70);
    let mut r = Inputs::new(50);
    let turn = |i: usize| i % h * w + i / h;
    let input = r.f32s(w * h, -1.0, 1.0);
    let (di, out) = (t.upload(&input)?, t.output::<f32>(w * h)?);
    t.launch("transpose_f32", [2, 3, 1], [32, 8, 1], args![di, out, w as i32, h as i32])?;
    let want: Vec<f32> = (0..w * h).map(|i| input[turn(i)]).collect();
    same("floats", &t.download(&out)?, &want)?;

    let input: Vec<u16> = r.many(w * h, |r| r.u32() as u16);
    let (di, out) = (t.upload(&input)?, t.output::<u16>(w * h)?);
    t.launch("transpose_u16", [2, 3, 1], [32, 8, 1], args![di, out, w as i32, h as i32])?;
    let want: Vec<u16> = (0..w * h).map(|i| input[turn(i)]).collect();
    same("16 bits", &t.download(&out)?, &want)
}

pub(crate) fn matmul_tiled(t: &mut Trial<'_>) -> Outcome {
    let (m, n, k) = (30, 37, 21);
    let mut r = Inputs::new(51);
    let (a, b) = (r.f32s(m * k, -1.0, 1.0), r.f32s(k * n, -1.0, 1.0));
    let (da, db, dc) = (t.upload(&a)?, t.upload(&b)?, t.output::<f32>(m * n)?);
    t.launch("matmul_tiled", [3, 2, 1], [16, 16, 1], args![da, db, dc, m as i32, n as i32, k as i32])?;
    close("c", &wide(&t.download(&dc)?), &product(&wide(&a), &wide(&b), m, n, k), 1e-5, 1e-5)
}

pub(crate) fn matmul_double(t: &mut Trial<'_>) -> Outcome {
    let n = 32;
    let mut r = Inputs::new(52);
    let (a, b, c) = (r.f64s(n * n, -1.0, 1.0), r.f64s(n * n, -1.0, 1.0), r.f64s(n * n, -1.0, 1.0));
    let (da, db, dc) = (t.upload(&a)?, t.upload(&b)?, t.upload(&c)?);
    t.launch("matmul_double", [2, 2, 1], [8, 8, 1], args![da, db, dc, n as i32, 1.5f64, -0.5f64])?;
    let want: Vec<f64> = product(&a, &b, n, n, n).iter().zip(&c).map(|(p, c)| 1.5 * p - 0.5 * c).collect();
    close("c", &t.download(&dc)?, &want, 1e-12, 1e-12)
}

pub(crate) fn matmul_half(t: &mut Trial<'_>) -> Outcome {
    let n = 24;
    let mut r = Inputs::new(53);
    let a: Vec<f16> = r.many(n * n, |r| f16::from_f64(r.f64(-1.0, 1.0)));
    let b: Vec<f16> = r.many(n * n, |r| f16::from_f64(r.f64(-1.0, 1.0)));
    let (da, db, dc) = (t.upload(&a)?, t.upload(&b)?, t.output::<f16>(n * n)?);
    let want = product(&wide(&a), &wide(&b), n, n, n);
    t.launch("matmul_half", [2, 3, 1], [16, 8, 1], args![da, db, dc, n as i32])?;
    close("half", &wide(&t.download(&dc)?), &want, 1e-3, 1e-5)?;
    // Sums are kept in half precision too, so every step may have an error of half a unit in the last place
    // of a sum below 8.
    t.launch("matmul_half2", [1, 3, 1], [16, 8, 1], args![da, db, dc, n as i32])?;
    close("half2", &wide(&t.download(&dc)?), &want, 0.0, n as f64 * 0.002)?;

    let a: Vec<bf16> = r.many(n * n, |r| bf16::from_f64(r.f64(-1.0, 1.0)));
    let b: Vec<bf16> = r.many(n * n, |r| bf16::from_f64(r.f64(-1.0, 1.0)));
    let (da, db, dc) = (t.upload(&a)?, t.upload(&b)?, t.output::<bf16>(n * n)?);
    t.launch("matmul_bf16", [2, 3, 1], [16, 8, 1], args![da, db, dc, n as i32])?;
    close("bfloat16", &wide(&t.download(&dc)?), &product(&wide(&a), &wide(&b), n, n, n), 1.0 / 256.0, 1e-5)
}

pub(crate) fn spmv(t: &mut Trial<'_>) -> Outcome {
    let (rows, cols) = (150, 90);
    let mut r = Inputs::new(54);
    let (mut start, mut column, mut value) = (vec![0i32], Vec::<i32>::new(), Vec::<f32>::new());
    for _ in 0..rows {
        // Empty rows, short ones, and some longer than a warp.
        let length = if r.below(0, 10) == 0 { r.below(33, 70) } else { r.below(0, 8) };
        for _ in 0..length {
            column.push(r.below(0, cols) as i32);
            value.push(r.below(-16, 16) as f32 * 0.25);
        }
        start.push(column.len() as i32);
    }
    let x: Vec<f32> = r.many(cols as usize, |r| r.below(-16, 16) as f32 * 0.5);
    let row = |i: usize| start[i] as usize..start[i + 1] as usize;
    // Multiples of one eighth: every order of summation gives the same float.
    let want: Vec<f32> = (0..rows).map(|i| row(i).map(|k| value[k] * x[column[k] as usize]).sum::<f32>() + 0.0).collect();
    let (ds, dc, dv, dx) = (t.upload(&start)?, t.upload(&column)?, t.upload(&value)?, t.upload(&x)?);
    for (kernel, grid, block) in [("spmv_csr_scalar", 3, 64), ("spmv_csr_vector", 38, 128)] {
        let dy = t.output::<f32>(rows)?;
        t.launch(kernel, grid, block, args![rows as i32, ds, dc, dv, dx, dy])?;
        close(kernel, &t.download(&dy)?, &want, 0.0, 0.0)?;
    }

    let width = 5;
    let ell_column: Vec<i32> = r.many(rows * width, |r| r.below(-1, cols) as i32);
    let ell_value = r.f64s(rows * width, -1.0, 1.0);
    let xd = r.f64s(cols as usize, -1.0, 1.0);
    let (dc, dv, dx, dy) = (t.upload(&ell_column)?, t.upload(&ell_value)?, t.upload(&xd)?, t.output::<f64>(rows)?);
    t.launch("spmv_ell", 2, 96, args![rows as i32, width as i32, dc, dv, dx, dy])?;
    let cell = |i: usize| if ell_column[i] < 0 { 0.0 } else { ell_value[i] * xd[ell_column[i] as usize] };
    let want: Vec<f64> = (0..rows).map(|i| (0..width).map(|k| cell(k * rows + i)).sum()).collect();
    close("spmv_ell", &t.download(&dy)?, &want, 1e-13, 1e-14)
}

/// Returns a matrix with a dominant diagonal, so that elimination needs no pivots.
fn dominant(r: &mut Inputs, n: usize) -> Vec<f64> {
    (0..n * n).map(|i| r.f64(-1.0, 1.0) + if i / n == i % n { n as f64 } else { 0.0 }).collect()
}

pub(crate) fn gauss_step(t: &mut Trial<'_>) -> Outcome {
    let n = 12;
    let mut r = Inputs::new(55);
    let a: Vec<f32> = dominant(&mut r, n).iter().map(|v| *v as f32).collect();
    let solution = r.f64s(n, -2.0, 2.0);
    let b: Vec<f32> = product(&wide(&a), &solution, n, 1, n).iter().map(|v| *v as f32).collect();
    let (da, db, dm) = (t.upload(&a)?, t.upload(&b)?, t.zeros::<f32>(n * n)?);
    for step in 0..n - 1 {
        let (n, step) = (n as i32, step as i32);
        t.launch("gauss_multipliers", 1, 32, args![da, dm, n, step])?;
        t.launch("gauss_eliminate", [2, 2, 1], [8, 8, 1], args![da, db, dm, n, step])?;
    }
    let (a, b) = (t.download(&da)?, t.download(&db)?);
    let mut x = vec![0.0f64; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| f64::from(a[i * n + k]) * x[k]).sum();
        x[i] = (f64::from(b[i]) - known) / f64::from(a[i * n + i]);
    }
    close("solution", &x, &solution, 1e-4, 1e-4)?;
    let below: Vec<f32> = (0..n * n).filter(|i| i / n > i % n).map(|i| a[i]).collect();
    close("lower triangle", &below, &vec![0.0; below.len()], 0.0, 1e-5)
}

pub(crate) fn lu_decomposition(t: &mut Trial<'_>) -> Outcome {
    let (count, n) = (3, 12);
    let matrices = Inputs::new(56).f64s(count * n * n, -1.0, 1.0);
    let (dm, dp) = (t.upload(&matrices)?, t.output::<i32>(count * n)?);
    t.launch("lu_decomposition", count as u32, n as u32, args![dm, dp])?;
    let (factors, pivots) = (t.download(&dm)?, t.download(&dp)?);
    for m in 0..count {
        let lu = &factors[m * n * n..][..n * n];
        let lower: Vec<f64> = values_at(0..n * n, |i| {
            if i / n == i % n {
                1.0
            } else if i / n > i % n {
                lu[i]
            } else {
                0.0
            }
        });
        let upper: Vec<f64> = (0..n * n).map(|i| if i / n <= i % n { lu[i] } else { 0.0 }).collect();
        let mut permuted = matrices[m * n * n..][..n * n].to_vec();
        for (k, pivot) in pivots[m * n..][..n].iter().enumerate() {
            for c in 0..n {
                permuted.swap(k * n + c, *pivot as usize * n + c);
            }
        }
        close("l u", &product(&lower, &upper, n, n, n), &permuted, 1e-12, 1e-12)?;
        // With row pivoting no multiplier exceeds one.
        close("multipliers", &[lower.iter().fold(0.0, |a: f64, b| a.max(b.abs()))], &[1.0], 0.0, 0.0)?;
    }
    Ok(())
}

pub(crate) fn cholesky(t: &mut Trial<'_>) -> Outcome {
    let (count, n) = (2, 14);
    let mut r = Inputs::new(57);
    let mut matrices = Vec::new();
    for _ in 0..count {
        let a = dominant(&mut r, n);
        matrices.extend((0..n * n).map(|i| (a[i] + a[i % n * n + i / n]) as f32));
    }
    let dm = t.upload(&matrices)?;
    t.launch_shared("cholesky", count as u32, n as u32, n * n * 4, args![dm])?;
    let factors = wide(&t.download(&dm)?);
    for (l, a) in factors.chunks(n * n).zip(wide(&matrices).chunks(n * n)) {
        let turned: Vec<f64> = (0..n * n).map(|i| l[i % n * n + i / n]).collect();
        close("l l^T", &product(l, &turned, n, n, n), a, 1e-5, 1e-4)?;
        let above: f64 = (0..n * n).filter(|i| i / n < i % n).map(|i| l[i].abs()).sum();
        same("upper triangle", &[above], &[0.0])?;
    }
    Ok(())
}
