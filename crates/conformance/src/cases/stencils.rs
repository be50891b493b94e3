//! Grids whose cells depend on their neighbours, and images.

use crate::compare::{close, same};
use crate::inputs::{Inputs, values_at};
use crate::trial::{Outcome, Trial, args};

/// Returns `i + by`, clamped to `0..n`.
fn clamp(i: usize, by: isize, n: usize) -> usize {
    i.saturating_add_signed(by).min(n - 1)
}

pub(crate) fn stencil_1d(t: &mut Trial<'_>) -> Outcome {
    let n = 1000;
    let input = Inputs::new(40).i32s(n, -999, 999);
    let (di, out) = (t.upload(&input)?, t.output::<i32>(n)?);
    t.launch("stencil_1d", 8, 128, args![di, out, n as i32])?;
    let want: Vec<i32> = (0..n).map(|i| input[i.saturating_sub(3)..(i + 4).min(n)].iter().sum()).collect();
    same("sums", &t.download(&out)?, &want)
}

pub(crate) fn stencil_2d(t: &mut Trial<'_>) -> Outcome {
    let (w, h) = (37, 29);
    let input = Inputs::new(41).f32s(w * h, 0.0, 100.0);
    let (di, out) = (t.upload(&input)?, t.output::<f32>(w * h)?);
    t.launch("stencil_2d", [3, 2, 1], [16, 16, 1], args![di, out, w as i32, h as i32])?;
    let want: Vec<f32> = values_at(0..w * h, |i| {
        let (x, y) = (i % w, i / w);
        if x == 0 || y == 0 || x == w - 1 || y == h - 1 {
            return input[i];
        }
        [i, i - 1, i + 1, i - w, i + w].iter().map(|k| input[*k]).sum::<f32>() / 5.0
    });
    close("averages", &t.download(&out)?, &want, 1e-5, 0.0)
}

pub(crate) fn stencil_3d(t: &mut Trial<'_>) -> Outcome {
    let (nx, ny, nz) = (18, 11, 7);
    let input = Inputs::new(42).i32s(nx * ny * nz, -50, 50);
    let floats: Vec<f32> = input.iter().map(|v| *v as f32).collect();
    let (di, out) = (t.upload(&floats)?, t.zeros::<f32>(nx * ny * nz)?);
    t.launch("stencil_3d", [3, 2, 1], [8, 8, 1], args![di, out, nx as i32, ny as i32, nz as i32])?;
    let mut want = vec![0.0f32; input.len()];
    for z in 1..nz - 1 {
        for y in 1..ny - 1 {
            for x in 1..nx - 1 {
                let c = (z * ny + y) * nx + x;
                let around = [c - 1, c + 1, c - nx, c + nx, c - nx * ny, c + nx * ny];
                want[c] = (around.iter().map(|k| input[*k]).sum::<i32>() - 6 * input[c]) as f32;
            }
        }
    }
    same("laplacian", &t.download(&out)?, &want)
}

pub(crate) fn stencil_25_point(t: &mut Trial<'_>) -> Outcome {
    let (nx, ny, nz) = (14, 12, 11);
    let n = nx * ny * nz;
    let mut r = Inputs::new(43);
    let (now, before) = (r.f32s(n, -1.0, 1.0), r.f32s(n, -1.0, 1.0));
    let (dn, db, out) = (t.upload(&now)?, t.upload(&before)?, t.zeros::<f32>(n)?);
    let size = args![dn, db, out, nx as i32, ny as i32, nz as i32, 0.125f32];
    t.launch("stencil_25_point", [2, 3, 6], [8, 4, 2], size)?;
    let weights = [-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];
    let mut want = vec![0.0f32; n];
    for (c, cell) in want.iter_mut().enumerate() {
        let (x, y, z) = (c % nx, c / nx % ny, c / nx / ny);
        if x < 4 || y < 4 || z < 4 || x >= nx - 4 || y >= ny - 4 || z >= nz - 4 {
            continue;
        }
        let at = |k: usize| f64::from(now[k]);
        let mut sum = 3.0 * weights[0] * at(c);
        for (r, weight) in weights.iter().enumerate().skip(1) {
            for step in [1, nx, nx * ny] {
                sum += weight * (at(c - r * step) + at(c + r * step));
            }
        }
        *cell = (2.0 * at(c) - f64::from(before[c]) + 0.125 * sum) as f32;
    }
    close("next", &t.download(&out)?, &want, 1e-5, 1e-5)
}

pub(crate) fn heat_diffusion(t: &mut Trial<'_>) -> Outcome {
    let (rods, cells, steps, alpha) = (3, 100, 25, 0.2);
    let mut state = Inputs::new(44).f64s(rods * cells, 0.0, 300.0);
    let dr = t.upload(&state)?;
    t.launch("heat_diffusion", rods as u32, cells as u32, args![dr, alpha, steps])?;
    for rod in state.chunks_mut(cells) {
        for _ in 0..steps {
            let old = rod.to_vec();
            for i in 1..cells - 1 {
                rod[i] = old[i] + alpha * (old[i - 1] - 2.0 * old[i] + old[i + 1]);
            }
        }
    }
    close("rods", &t.download(&dr)?, &state, 1e-12, 0.0)
}

/// Computes one generation of the Game of Life on a torus.
fn generation(board: &[u8], w: usize, h: usize) -> Vec<u8> {
    (0..w * h)
        .map(|i| {
            let (x, y) = (i % w, i / w);
            let mut alive = 0;
            for dy in [h - 1, 0, 1] {
                for dx in [w - 1, 0, 1] {
                    alive += board[(y + dy) % h * w + (x + dx) % w];
                }
            }
            // The cell itself was counted too.
            u8::from(alive == 3 || (alive == 4 && board[i] == 1))
        })
        .collect()
}

pub(crate) fn game_of_life(t: &mut Trial<'_>) -> Outcome {
    let (w, h) = (33, 20);
    let mut r = Inputs::new(45);
    let board: Vec<u8> = r.many(w * h, |r| (r.below(0, 3) == 0) as u8);
    let (di, out) = (t.upload(&board)?, t.output::<u8>(w * h)?);
    t.launch("game_of_life", [3, 3, 1], [16, 8, 1], args![di, out, w as i32, h as i32])?;
    same("board", &t.download(&out)?, &generation(&board, w, h))?;

    let rows = 40;
    let packed = r.many(rows, |r| r.u32() & r.u32());
    let (di, out) = (t.upload(&packed)?, t.output::<u32>(rows)?);
    t.launch("game_of_life_packed", 2, 32, args![di, out, rows as u32])?;
    let cells: Vec<u8> = packed.iter().flat_map(|row| (0..32).map(move |b| (row >> b & 1) as u8)).collect();
    let want: Vec<u32> = generation(&cells, 32, rows)
        .chunks(32)
        .map(|row| row.iter().enumerate().fold(0, |word, (b, c)| word | u32::from(*c) << b))
        .collect();
    same("packed board", &t.download(&out)?, &want)
}

fn convolve(image: &[f32], w: usize, h: usize, filter: &[f32]) -> Vec<f32> {
    (0..w * h)
        .map(|i| {
            let at = |k: usize| {
                let (dx, dy) = ((k % 5) as isize - 2, (k / 5) as isize - 2);
                f64::from(image[clamp(i / w, dy, h) * w + clamp(i % w, dx, w)])
            };
            (0..25).map(|k| f64::from(filter[k]) * at(k)).sum::<f64>() as f32
        })
        .collect()
}

pub(crate) fn convolution(t: &mut Trial<'_>) -> Outcome {
    let (w, h) = (30, 21);
    let mut r = Inputs::new(46);
    let image = r.f32s(w * h, 0.0, 255.0);
    let (di, out) = (t.upload(&image)?, t.output::<f32>(w * h)?);
    let binomial = [1.0, 4.0, 6.0, 4.0, 1.0];
    let filter: Vec<f32> = (0..25).map(|k| binomial[k / 5] * binomial[k % 5] / 256.0).collect();
    t.launch("convolution", [2, 3, 1], [16, 8, 1], args![di, out, w as i32, h as i32])?;
    close("default filter", &t.download(&out)?, &convolve(&image, w, h, &filter), 1e-5, 1e-4)?;

    let filter = r.f32s(25, -1.0, 1.0);
    t.write_variable("filter", &filter)?;
    t.launch("convolution", [2, 3, 1], [16, 8, 1], args![di, out, w as i32, h as i32])?;
    close("written filter", &t.download(&out)?, &convolve(&image, w, h, &filter), 1e-5, 1e-3)
}

pub(crate) fn sobel(t: &mut Trial<'_>) -> Outcome {
    let (w, h, pitch) = (29, 17, 32);
    let image = Inputs::new(47).u8s(pitch * h);
    let (di, out) = (t.upload(&image)?, t.zeros::<u8>(pitch * h)?);
    t.launch("sobel", [2, 3, 1], [16, 8, 1], args![di, out, w as i32, h as i32, pitch as u64])?;
    let mut want = vec![0u8; pitch * h];
    for y in 1..h - 1 {
        for x in 1..w - 1 {
            let mut gradient = [0i32; 2];
            for (dy, row) in [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]].iter().enumerate() {
                for (dx, weight) in row.iter().enumerate() {
                    // The vertical kernel is the transposed horizontal one.
                    gradient[0] += weight * i32::from(image[(y + dy - 1) * pitch + x + dx - 1]);
                    gradient[1] += weight * i32::from(image[(y + dx - 1) * pitch + x + dy - 1]);
                }
            }
            want[y * pitch + x] = (gradient[0].abs() + gradient[1].abs()).min(255) as u8;
        }
    }
    same("edges", &t.download(&out)?, &want)
}

pub(crate) fn median_filter(t: &mut Trial<'_>) -> Outcome {
    let (w, h) = (25, 18);
    let image: Vec<u16> = Inputs::new(48).many(w * h, |r| r.u32() as u16);
    let (di, out) = (t.upload(&image)?, t.output::<u16>(w * h)?);
    t.launch("median_filter", [2, 3, 1], [16, 8, 1], args![di, out, w as i32, h as i32])?;
    let want: Vec<u16> = values_at(0..w * h, |i| {
        let mut around: Vec<u16> = (0..9).map(|k| image[clamp(i / w, k / 3 - 1, h) * w + clamp(i % w, k % 3 - 1, w)]).collect();
        around.sort_unstable();
        around[4]
    });
    same("medians", &t.download(&out)?, &want)
}
