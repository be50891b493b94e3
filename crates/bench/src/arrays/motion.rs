//! Motion estimation: for each block of 16×16 pixels of one image, its position in another image.
//!
//! The search is hierarchical, as in the Accelerator paper: whole pixels on a pyramid of three levels, then
//! halves and quarters of pixels by interpolation. All blocks are searched in parallel: the surroundings of
//! each block are gathered once per step, with the blocks along the last axis. Candidates are two further
//! axes.

use super::job::repeated;
use crate::error::Failure;
use crate::inputs::{hashed, weighed};
use crate::job::{Job, Work, equal};
use broadloom::array::{Function, Result, evaluate_all};
use broadloom::{Array, Boundary, Context};

/// Side length of a block in pixels.
const BLOCK: usize = 16;

/// Returns a pixel of a scene of whole numbers. The scene is smooth, so that blocks can be found again.
fn scene(y: i64, x: i64) -> f32 {
    let at = |i: i64, j: i64| i64::from(hashed((i * 4096 + j) as u32, 1) >> 24);
    let (i, j, fy, fx) = (y / 8, x / 8, y % 8, x % 8);
    let row = |i: i64| at(i, j) * (8 - fx) + at(i, j + 1) * fx;
    ((row(i) * (8 - fy) + row(i + 1) * fy) / 64) as f32
}

fn before(i: usize, n: usize) -> f32 {
    scene((i / n) as i64 + 32, (i % n) as i64 + 32)
}

/// Returns a pixel of the later image: every stretch of 64 has moved by its own distance, with a little
/// noise.
fn after(i: usize, n: usize) -> f32 {
    let (y, x) = (i / n, i % n);
    let dy = i64::from(hashed((x / 64) as u32, 2) >> 16) % 13 - 6;
    let dx = i64::from(hashed((y / 64) as u32, 3) >> 16) % 15 - 7;
    let noise = (hashed(i as u32, 4) >> 30) as f32 - 1.0;
    (scene(y as i64 + 32 + dy, x as i64 + 32 + dx) + noise).clamp(0.0, 255.0)
}

/// Returns the means of 2×2 pixels.
fn halved(image: &Array<f32>) -> Result<Array<f32>> {
    let side = image.shape().extents()[0] / 2;
    let at = |dy: i64, dx: i64| image.section(&[(dy, side, 2), (dx, side, 2)], None);
    Ok((at(0, 0)? + at(0, 1)? + at(1, 0)? + at(1, 1)?) * 0.25)
}

/// Motion vectors of all blocks, and their matching errors.
struct BlockVectors {
    dy: Array<i32>,
    dx: Array<i32>,
    errors: Array<f32>,
}

/// One level of the pyramid.
struct PyramidLevel {
    /// The blocks of the first image: row, column, block.
    blocks: Array<f32>,
    /// The image that is searched.
    image: Array<f32>,
    /// Number of blocks along a side.
    across: usize,
    /// Side length of a block in pixels.
    side: usize,
}

impl PyramidLevel {
    fn new(from: &Array<f32>, to: &Array<f32>, across: usize) -> Result<PyramidLevel> {
        let side = from.shape().extents()[0] / across;
        let blocks = from.reshape([across, side, across, side])?.transpose(&[1, 3, 0, 2])?;
        let blocks = blocks.reshape([side, side, across * across])?;
        evaluate_all(&[blocks.node(), to.node()])?;
        Ok(PyramidLevel { blocks, image: to.clone(), across, side })
    }

    /// Gathers the surroundings of each block at its vector, extended by `reach` pixels on all sides.
    fn around(&self, dy: &Array<i32>, dx: &Array<i32>, reach: usize) -> Result<Array<f32>> {
        let (context, count) = (self.image.context(), self.across * self.across);
        let extent = self.side + 2 * reach;
        let block = Array::<i32>::iota(context, count)?;
        let (across, side, reach) = (self.across as i32, self.side as i32, reach as i32);
        let y = (&block / across) * side + dy - reach;
        let x = (&block % across) * side + dx - reach;
        evaluate_all(&[dy.node(), dx.node(), y.node(), x.node()])?;
        let step = Array::<i32>::iota(context, extent)?;
        let around =
            self.image.gather(&[&(y + step.reshape([extent, 1, 1])?), &(x + step.reshape([extent, 1])?)], Boundary::Clamp)?;
        around.evaluate()?;
        Ok(around)
    }

    /// Returns the best candidate of each block, given the pixels at all candidate positions: row, column,
    /// two axes of candidates, block. Of equal candidates, the first is taken.
    fn best(&self, there: &Array<f32>) -> Result<(Array<i32>, Array<i32>, Array<f32>)> {
        let (count, candidates) = (self.across * self.across, there.shape().extents()[2]);
        let blocks = self.blocks.reshape([self.side, self.side, 1, 1, count])?;
        let errors = (&blocks - there).abs().sum_along(&[0, 1])?.reshape([candidates * candidates, count])?;
        let (first, least) = (errors.argmin_as::<i32>(0)?, errors.min_along(&[0])?);
        let (candidates, middle) = (candidates as i32, candidates as i32 / 2);
        Ok((&first / candidates - middle, first % candidates - middle, least))
    }

    /// Returns the positions along an axis of candidates.
    fn along(&self, axis: usize, candidates: usize) -> Result<Array<i32>> {
        let shape = [self.side, self.side, candidates, candidates, self.across * self.across];
        Array::positions(self.image.context(), shape, axis)
    }

    /// Returns the best of all vectors that are at most `reach` pixels from the known ones.
    fn search(&self, dy: &Array<i32>, dx: &Array<i32>, reach: usize) -> Result<BlockVectors> {
        let around = self.around(dy, dx, reach)?;
        let along = |axis: usize| self.along(axis, 2 * reach + 1);
        let there = around.gather(&[&(along(0)? + along(2)?), &(along(1)? + along(3)?), &along(4)?], Boundary::Clamp)?;
        let (y, x, errors) = self.best(&there)?;
        Ok(BlockVectors { dy: dy + y, dx: dx + x, errors })
    }

    /// Refines vectors from whole pixels to quarters: the best halves, then the best quarters next to them.
    fn refine(&self, dy: &Array<i32>, dx: &Array<i32>) -> Result<BlockVectors> {
        let (around, along) = (self.around(dy, dx, 1)?, |axis: usize| self.along(axis, 3));
        let halves = {
            let (qy, qx) = ((along(2)? - 1) * 2, (along(3)? - 1) * 2);
            let (y, x) = (along(0)? + (&qy >> 2) + 1, along(1)? + (&qx >> 2) + 1);
            let block = along(4)?;
            let at = |dy: i32, dx: i32| around.gather(&[&(&y + dy), &(&x + dx), &block], Boundary::Clamp);
            let (fy, fx) = ((qy & 3).cast::<f32>()? * 0.25, (qx & 3).cast::<f32>()? * 0.25);
            let row = |dy: i32| -> Result<Array<f32>> { Ok(at(dy, 0)? * (1.0 - &fx) + at(dy, 1)? * &fx) };
            self.best(&(row(0)? * (1.0 - &fy) + row(1)? * &fy))?
        };
        let (half_y, half_x) = (&halves.0 * 2, &halves.1 * 2);
        evaluate_all(&[half_y.node(), half_x.node()])?;
        let (qy, qx) = (&half_y + along(2)? - 1, &half_x + along(3)? - 1);
        // The best half differs from block to block, so it differs whether the pixels above or before belong
        // to it.
        let (is_above, is_before) = (qy.lt(0)?, qx.lt(0)?);
        let (fy, fx) = ((qy & 3).cast::<f32>()? * 0.25, (qx & 3).cast::<f32>()? * 0.25);
        let count = self.across * self.across;
        let at = |y: i64, x: i64| {
            let part = around.section(&[(y + 1, self.side, 1), (x + 1, self.side, 1), (0, count, 1)], None)?;
            part.add_axis(2, 3)?.add_axis(3, 3)
        };
        let row = |y: i64| -> Result<Array<f32>> {
            let (left, right) = (is_before.cond(&at(y, -1)?, &at(y, 0)?)?, is_before.cond(&at(y, 0)?, &at(y, 1)?)?);
            Ok(left * (1.0 - &fx) + right * &fx)
        };
        let own = row(0)?;
        let (upper, lower) = (is_above.cond(&row(-1)?, &own)?, is_above.cond(&own, &row(1)?)?);
        let (y, x, errors) = self.best(&(upper * (1.0 - &fy) + lower * &fy))?;
        Ok(BlockVectors { dy: dy * 4 + half_y + y, dx: dx * 4 + half_x + x, errors })
    }
}

pub(super) fn motion(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let across = n / BLOCK;
    let from: Vec<f32> = (0..n * n).map(|i| before(i, n)).collect();
    let to: Vec<f32> = (0..n * n).map(|i| after(i, n)).collect();
    let (first, second) = (Array::new(context, &from, [n, n])?, Array::new(context, &to, [n, n])?);
    let vectors = Function::new(context, move |first: &Array<f32>, second: &Array<f32>| {
        let (first_half, second_half) = (halved(first)?, halved(second)?);
        let coarse = PyramidLevel::new(&halved(&first_half)?, &halved(&second_half)?, across)?;
        let (middle, fine) = (PyramidLevel::new(&first_half, &second_half, across)?, PyramidLevel::new(first, second, across)?);
        let nothing = Array::full(first.context(), [across * across], 0)?;
        let found = coarse.search(&nothing, &nothing, 3)?;
        let found = middle.search(&(found.dy * 2), &(found.dx * 2), 1)?;
        let found = fine.search(&(found.dy * 2), &(found.dx * 2), 1)?;
        let found = fine.refine(&found.dy, &found.dx)?;
        Ok(vec![found.dy.cast::<f32>()?, found.dx.cast::<f32>()?, found.errors])
    });
    let expression = move || vectors.call((&first, &second));
    let judge = move |got: &[Vec<f32>]| {
        let want = by_hand(&from, &to, n);
        let places = [|v: &(i32, i32, f32)| v.0 as f32, |v: &(i32, i32, f32)| v.1 as f32, |v: &(i32, i32, f32)| v.2];
        for (got, part) in got.iter().zip(places) {
            equal(got, |block| part(&want[block]))?;
        }
        let blocks = across * across;
        let vectors = (0..blocks).flat_map(|block| [got[0][block], got[1][block]]).map(f64::from);
        Ok(weighed(vectors, 0) + weighed(got[2].iter().map(|&x| f64::from(x)), 2 * blocks))
    };
    // Candidates: 49 of 4×4, 9 of 8×8 and of 16×16 whole pixels, 18 of 16×16 between pixels.
    let operations = across * across * (49 * 16 * 3 + 9 * 64 * 3 + 9 * 256 * 3 + 18 * 256 * 11);
    Ok(repeated(Work::arithmetic(8 * n * n, operations as f64), expression, judge))
}

/// Computes the same result block by block, as a reference.
fn by_hand(from: &[f32], to: &[f32], n: usize) -> Vec<(i32, i32, f32)> {
    let half = |image: &[f32], n: usize| -> Vec<f32> {
        let at = |y: usize, x: usize| image[y * n + x];
        let mean = |y: usize, x: usize| (at(y, x) + at(y, x + 1) + at(y + 1, x) + at(y + 1, x + 1)) * 0.25;
        (0..n * n / 4).map(|i| mean(i / (n / 2) * 2, i % (n / 2) * 2)).collect()
    };
    let (from_1, to_1) = (half(from, n), half(to, n));
    let (from_2, to_2) = (half(&from_1, n / 2), half(&to_1, n / 2));
    let across = n / BLOCK;
    let held = |image: &[f32], n: usize, y: i32, x: i32| {
        image[y.clamp(0, n as i32 - 1) as usize * n + x.clamp(0, n as i32 - 1) as usize]
    };
    // The sum of absolute differences between a block and the pixels of a function.
    let errors = |from: &[f32], n: usize, block: usize, there: &dyn Fn(i32, i32) -> f32| {
        let side = n / across;
        let place = |k: usize| (block / across * side + k / side, block % across * side + k % side);
        (0..side * side).map(place).map(|(y, x)| (from[y * n + x] - there(y as i32, x as i32)).abs()).sum::<f32>()
    };
    let first_best = |start: (i32, i32), reach: i32, step: i32, errors: &dyn Fn(i32, i32) -> f32| {
        let mut best = (0, 0, f32::INFINITY);
        for (dy, dx) in (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dy, dx))) {
            let (y, x) = (start.0 + dy * step, start.1 + dx * step);
            let sum = errors(y, x);
            if sum < best.2 {
                best = (y, x, sum);
            }
        }
        best
    };
    let search = |images: (&[f32], &[f32]), n: usize, block: usize, start: (i32, i32), reach: i32| {
        let whole = |dy: i32, dx: i32| errors(images.0, n, block, &|y, x| held(images.1, n, y + dy, x + dx));
        first_best(start, reach, 1, &whole)
    };
    let estimate = |block: usize| {
        let (y, x, _) = search((&from_2, &to_2), n / 4, block, (0, 0), 3);
        let (y, x, _) = search((&from_1, &to_1), n / 2, block, (2 * y, 2 * x), 1);
        let (y, x, _) = search((from, to), n, block, (2 * y, 2 * x), 1);
        let between = |qy: i32, qx: i32| {
            let (fy, fx) = ((qy & 3) as f32 * 0.25, (qx & 3) as f32 * 0.25);
            let row = |y: i32, x: i32| held(to, n, y, x) * (1.0 - fx) + held(to, n, y, x + 1) * fx;
            errors(from, n, block, &|y, x| {
                let (y, x) = (y + (qy >> 2), x + (qx >> 2));
                row(y, x) * (1.0 - fy) + row(y + 1, x) * fy
            })
        };
        let (y, x, _) = first_best((4 * y, 4 * x), 1, 2, &between);
        first_best((y, x), 1, 1, &between)
    };
    (0..across * across).map(estimate).collect()
}
