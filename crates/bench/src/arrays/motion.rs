//! Motion estimation: for each block of 16×16 pixels of one image, where it is in another.
//!
//! Hierarchical, as in the Accelerator paper: whole pixels on a pyramid of three levels, then halves and quarters of pixels between neighbours.
//! All blocks are searched side by side: what a step looks at around each block is gathered once, the blocks along the last axis, and
//! candidates are sections of that.

use super::repeated;
use crate::error::Failure;
use crate::inputs::{hashed, weighed};
use crate::job::{Job, Work, equal};
use broadloom::array::Result;
use broadloom::{Array, Boundary, Context};

/// Pixels of the side of a block.
const BLOCK: usize = 16;

/// A scene that is smooth enough to be found again, of whole numbers.
fn scene(y: i64, x: i64) -> f32 {
    let at = |i: i64, j: i64| i64::from(hashed((i * 4096 + j) as u32, 1) >> 24);
    let (i, j, fy, fx) = (y / 8, x / 8, y % 8, x % 8);
    let row = |i: i64| at(i, j) * (8 - fx) + at(i, j + 1) * fx;
    ((row(i) * (8 - fy) + row(i + 1) * fy) / 64) as f32
}

fn before(i: usize, n: usize) -> f32 {
    scene((i / n) as i64 + 32, (i % n) as i64 + 32)
}

/// Every stretch of 64 has moved by its own distance.
fn after(i: usize, n: usize) -> f32 {
    let (y, x) = (i / n, i % n);
    let dy = i64::from(hashed((x / 64) as u32, 2) >> 16) % 13 - 6;
    let dx = i64::from(hashed((y / 64) as u32, 3) >> 16) % 15 - 7;
    let noise = (hashed(i as u32, 4) >> 30) as f32 - 1.0;
    (scene(y as i64 + 32 + dy, x as i64 + 32 + dx) + noise).clamp(0.0, 255.0)
}

/// The means of 2×2 pixels.
fn halved(image: &Array<f32>) -> Result<Array<f32>> {
    let side = image.shape().extents()[0] / 2;
    let at = |dy: i64, dx: i64| image.section(&[(dy, side, 2), (dx, side, 2)], None);
    Ok((at(0, 0)? + at(0, 1)? + at(1, 0)? + at(1, 1)?) * 0.25)
}

/// Vectors of all blocks, and how well they fit.
struct Vectors {
    dy: Array<i32>,
    dx: Array<i32>,
    apart: Array<f32>,
}

/// One level of the pyramid.
struct Level {
    /// The blocks of the image that is looked for: row, column, block.
    blocks: Array<f32>,
    /// The image that is searched.
    image: Array<f32>,
    /// Blocks along a side.
    across: usize,
    /// Pixels of the side of a block.
    side: usize,
}

impl Level {
    fn new(from: &Array<f32>, to: &Array<f32>, across: usize) -> Result<Level> {
        let side = from.shape().extents()[0] / across;
        let blocks = from.reshape([across, side, across, side])?.transpose(&[1, 3, 0, 2])?;
        Ok(Level { blocks: blocks.reshape([side, side, across * across])?, image: to.clone(), across, side })
    }

    /// What lies around each block where its vector points: `reach` pixels more before it and `behind` more behind it.
    fn around(&self, dy: &Array<i32>, dx: &Array<i32>, reach: i32, behind: usize) -> Result<Array<f32>> {
        let (context, count) = (self.image.context(), self.across * self.across);
        let extent = self.side + reach as usize + behind;
        let block = Array::<i32>::iota(context, count)?;
        let (across, side) = (self.across as i32, self.side as i32);
        let y = (&block / across) * side + dy - reach;
        let x = (&block % across) * side + dx - reach;
        let step = Array::<i32>::iota(context, extent)?;
        let y = y.reshape([1, 1, count])? + step.reshape([extent, 1, 1])?;
        let x = x.reshape([1, 1, count])? + step.reshape([1, extent, 1])?;
        self.image.gather(&[&y, &x], Boundary::Clamp)
    }

    /// The part of what lies around that a block would cover, moved by whole pixels.
    fn part(&self, around: &Array<f32>, dy: usize, dx: usize) -> Result<Array<f32>> {
        around.section(&[(dy as i64, self.side, 1), (dx as i64, self.side, 1), (0, self.across * self.across, 1)], None)
    }

    /// How far blocks are from where they would be.
    fn apart(&self, there: &Array<f32>) -> Result<Array<f32>> {
        (&self.blocks - there).abs().sum_along(&[0, 1])
    }

    /// The best of all vectors that are at most `reach` pixels from what is known.
    fn search(&self, known: &(Array<i32>, Array<i32>), reach: i32) -> Result<Vectors> {
        let around = self.around(&known.0, &known.1, reach, reach as usize)?;
        let best = best(reach, 1, |dy, dx| self.apart(&self.part(&around, (dy + reach) as usize, (dx + reach) as usize)?))?;
        Ok(Vectors { dy: &known.0 + &best.dy, dx: &known.1 + &best.dx, apart: best.apart })
    }

    /// Vectors in quarters of pixels, from those of whole pixels.
    fn refine(&self, dy: &Array<i32>, dx: &Array<i32>) -> Result<Vectors> {
        let around = self.around(dy, dx, 1, 1)?;
        let at = |y: i32, x: i32| self.part(&around, (y + 1) as usize, (x + 1) as usize);
        let halves = best(1, 2, |qy, qx| {
            let (y, x, fy, fx) = (qy >> 2, qx >> 2, (qy & 3) as f32 * 0.25, (qx & 3) as f32 * 0.25);
            let row = |y: i32| -> Result<Array<f32>> { Ok(at(y, x)? * (1.0 - fx) + at(y, x + 1)? * fx) };
            self.apart(&(row(y)? * (1.0 - fy) + row(y + 1)? * fy))
        })?;
        let quarters = best(1, 1, |ry, rx| {
            // Which half was best differs from block to block: the pixel above or before belongs to it or does not.
            let (qy, qx) = (&halves.dy + ry, &halves.dx + rx);
            let (is_above, is_before) = (qy.lt(0)?, qx.lt(0)?);
            let (fy, fx) = ((qy & 3).cast::<f32>()? * 0.25, (qx & 3).cast::<f32>()? * 0.25);
            let row = |y: i32| -> Result<Array<f32>> {
                let (left, right) = (is_before.cond(&at(y, -1)?, &at(y, 0)?)?, is_before.cond(&at(y, 0)?, &at(y, 1)?)?);
                Ok(left * (1.0 - &fx) + right * &fx)
            };
            let (above, own, below) = (row(-1)?, row(0)?, row(1)?);
            let (upper, lower) = (is_above.cond(&above, &own)?, is_above.cond(&own, &below)?);
            self.apart(&(upper * (1.0 - &fy) + lower * &fy))
        })?;
        let (dy, dx) = (dy * 4 + &halves.dy + &quarters.dy, dx * 4 + &halves.dx + &quarters.dx);
        Ok(Vectors { dy, dx, apart: quarters.apart })
    }
}

/// The first of the best among candidates at multiples of `step`, row by row.
fn best(reach: i32, step: i32, apart: impl Fn(i32, i32) -> Result<Array<f32>>) -> Result<Vectors> {
    let mut best: Option<Vectors> = None;
    for (dy, dx) in (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dy * step, dx * step))) {
        let apart = apart(dy, dx)?;
        best = Some(match best {
            None => {
                let all = |value: i32| Array::full(apart.context(), apart.shape(), value);
                Vectors { dy: all(dy)?, dx: all(dx)?, apart }
            }
            Some(known) => {
                let is_better = apart.lt(&known.apart)?;
                Vectors {
                    dy: is_better.cond(dy, &known.dy)?,
                    dx: is_better.cond(dx, &known.dx)?,
                    apart: is_better.cond(&apart, &known.apart)?,
                }
            }
        });
    }
    best.ok_or_else(|| broadloom::array::Error::Plan { what: "a search".into(), reason: "there are no candidates".into() })
}

pub(super) fn motion(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let across = n / BLOCK;
    let from: Vec<f32> = (0..n * n).map(|i| before(i, n)).collect();
    let to: Vec<f32> = (0..n * n).map(|i| after(i, n)).collect();
    let (first, second) = (Array::new(context, &from, [n, n])?, Array::new(context, &to, [n, n])?);
    let own = context.clone();
    let expression = move || {
        let (first_half, second_half) = (halved(&first)?, halved(&second)?);
        let coarse = Level::new(&halved(&first_half)?, &halved(&second_half)?, across)?;
        let (middle, fine) = (Level::new(&first_half, &second_half, across)?, Level::new(&first, &second, across)?);
        let nothing = Array::full(&own, [across * across], 0)?;
        let found = coarse.search(&(nothing.clone(), nothing), 3)?;
        let found = middle.search(&(found.dy * 2, found.dx * 2), 1)?;
        let found = fine.search(&(found.dy * 2, found.dx * 2), 1)?;
        let found = fine.refine(&found.dy, &found.dx)?;
        Ok(vec![found.dy.cast::<f32>()?, found.dx.cast::<f32>()?, found.apart])
    };
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

/// The same block by block.
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
    // The sum of differences of a block from what a function says is there.
    let apart = |from: &[f32], n: usize, block: usize, there: &dyn Fn(i32, i32) -> f32| {
        let side = n / across;
        let place = |k: usize| (block / across * side + k / side, block % across * side + k % side);
        (0..side * side).map(place).map(|(y, x)| (from[y * n + x] - there(y as i32, x as i32)).abs()).sum::<f32>()
    };
    let first_best = |start: (i32, i32), reach: i32, step: i32, apart: &dyn Fn(i32, i32) -> f32| {
        let mut best = (0, 0, f32::INFINITY);
        for (dy, dx) in (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dy, dx))) {
            let (y, x) = (start.0 + dy * step, start.1 + dx * step);
            let sum = apart(y, x);
            if sum < best.2 {
                best = (y, x, sum);
            }
        }
        best
    };
    let search = |images: (&[f32], &[f32]), n: usize, block: usize, start: (i32, i32), reach: i32| {
        let whole = |dy: i32, dx: i32| apart(images.0, n, block, &|y, x| held(images.1, n, y + dy, x + dx));
        first_best(start, reach, 1, &whole)
    };
    let estimate = |block: usize| {
        let (y, x, _) = search((&from_2, &to_2), n / 4, block, (0, 0), 3);
        let (y, x, _) = search((&from_1, &to_1), n / 2, block, (2 * y, 2 * x), 1);
        let (y, x, _) = search((from, to), n, block, (2 * y, 2 * x), 1);
        let between = |qy: i32, qx: i32| {
            let (fy, fx) = ((qy & 3) as f32 * 0.25, (qx & 3) as f32 * 0.25);
            let row = |y: i32, x: i32| held(to, n, y, x) * (1.0 - fx) + held(to, n, y, x + 1) * fx;
            apart(from, n, block, &|y, x| {
                let (y, x) = (y + (qy >> 2), x + (qx >> 2));
                row(y, x) * (1.0 - fy) + row(y + 1, x) * fy
            })
        };
        let (y, x, _) = first_best((4 * y, 4 * x), 1, 2, &between);
        first_best((y, x), 1, 1, &between)
    };
    (0..across * across).map(estimate).collect()
}
