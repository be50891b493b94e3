//! Computer vision benchmarks: colours, corners, distances, motion.

use super::images::{bell, blurred, checksum};
use super::job::repeated;
use crate::error::Failure;
use crate::inputs::{hashed, unit, units, weighed};
use crate::job::{Job, Work, close, equal};
use broadloom::array::{Function, Result};
use broadloom::{Array, Boundary, Context};

/// Clamps a position to `0..n`.
fn clamp_index(place: i64, n: usize) -> usize {
    place.clamp(0, n as i64 - 1) as usize
}

/// Interpolates the missing colours of a mosaic of red, green, green and blue, after Malvar, He and Cutler.
pub(super) fn demosaic(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let mosaic = Array::new(context, &units(n * n, 1, 0.0, 1.0), [n, n])?;
    let colours = Function::new(context, move |c: &Array<f32>| {
        // Mirroring at the border continues the pattern.
        let at = |dy: i64, dx: i64| c.shift(&[-dy, -dx], Boundary::Mirror);
        let (above_below, beside) = (at(-1, 0)? + at(1, 0)?, at(0, -1)? + at(0, 1)?);
        let diagonal = at(-1, -1)? + at(-1, 1)? + at(1, -1)? + at(1, 1)?;
        let (far_up_down, far_beside) = (at(-2, 0)? + at(2, 0)?, at(0, -2)? + at(0, 2)?);
        let green = (c * 4.0 + (&above_below + &beside) * 2.0 - &far_up_down - &far_beside) * 0.125;
        let along = (c * 5.0 + &beside * 4.0 - &diagonal - &far_beside + &far_up_down * 0.5) * 0.125;
        let down = (c * 5.0 + &above_below * 4.0 - &diagonal - &far_up_down + &far_beside * 0.5) * 0.125;
        let opposite = (c * 6.0 + &diagonal * 2.0 - (&far_up_down + &far_beside) * 1.5) * 0.125;
        let is_even = |axis: usize| (Array::<i32>::positions(c.context(), [n, n], axis)? & 1).eq(0);
        let (even_row, even_column) = (is_even(0)?, is_even(1)?);
        let red = even_row.cond(&even_column.cond(c, &along)?, &even_column.cond(&down, &opposite)?)?;
        let green = (&even_row ^ &even_column).cond(c, &green)?;
        let blue = even_row.cond(&even_column.cond(&opposite, &down)?, &even_column.cond(&along, c)?)?;
        Ok(vec![red, green, blue])
    });
    let expression = move || colours.call(&mosaic);
    let judge = move |got: &[Vec<f32>]| {
        let mirrored = |place: i64| {
            let place = place.abs();
            if place >= n as i64 { 2 * n as i64 - 2 - place } else { place }
        };
        let want = |plane: usize, i: usize| {
            let (y, x) = ((i / n) as i64, (i % n) as i64);
            let at = |dy: i64, dx: i64| f64::from(unit((mirrored(y + dy) * n as i64 + mirrored(x + dx)) as u32, 1));
            let c = at(0, 0);
            let (above_below, beside) = (at(-1, 0) + at(1, 0), at(0, -1) + at(0, 1));
            let diagonal = at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1);
            let (far_up_down, far_beside) = (at(-2, 0) + at(2, 0), at(0, -2) + at(0, 2));
            let green = (4.0 * c + 2.0 * (above_below + beside) - far_up_down - far_beside) / 8.0;
            let along = (5.0 * c + 4.0 * beside - diagonal - far_beside + 0.5 * far_up_down) / 8.0;
            let down = (5.0 * c + 4.0 * above_below - diagonal - far_up_down + 0.5 * far_beside) / 8.0;
            let opposite = (6.0 * c + 2.0 * diagonal - 1.5 * (far_up_down + far_beside)) / 8.0;
            match (plane, y % 2, x % 2) {
                (0, 0, 0) | (1, 0, 1) | (1, 1, 0) | (2, 1, 1) => c,
                (0, 0, _) | (2, 1, _) => along,
                (0, _, 0) | (2, _, 1) => down,
                (1, ..) => green,
                _ => opposite,
            }
        };
        for (plane, got) in got.iter().enumerate() {
            close(got, |i| want(plane, i), 0.0, 1e-6)?;
        }
        Ok(got.iter().enumerate().map(|(plane, got)| checksum(got, plane * n * n)).sum())
    };
    Ok(repeated(Work { in_memory: false, ..Work::memory(16 * n * n, 45 * n * n) }, expression, judge))
}

/// Blurs along both axes.
fn smooth(image: &Array<f32>, weights: &[f32]) -> Result<Array<f32>> {
    blurred(&blurred(image, 1, weights)?, 0, weights)
}

/// Blurs along both axes, in plain Rust.
fn smooth_by_hand(image: &[f64], n: usize, weights: &[f32]) -> Vec<f64> {
    let middle = weights.len() as i64 / 2;
    let sum =
        |at: &dyn Fn(i64) -> f64| weights.iter().enumerate().map(|(k, w)| f64::from(*w) * at(k as i64 - middle)).sum::<f64>();
    let along: Vec<f64> = (0..n * n).map(|i| sum(&|d| image[i / n * n + clamp_index((i % n) as i64 + d, n)])).collect();
    (0..n * n).map(|i| sum(&|d| along[clamp_index((i / n) as i64 + d, n) * n + i % n])).collect()
}

/// Operations of [`corners`] with kernels of 5 and 9 points: a shift, a product and a sum for each of 64
/// points, and 23 more.
pub(crate) const CORNERS: usize = 64 * 3 + 23;

/// Returns the corner measure of an image, smoothed with two Gaussian kernels.
pub(crate) fn corners(image: &Array<f32>, narrow: &[f32], wide: &[f32]) -> Result<Array<f32>> {
    let smoothed = smooth(image, narrow)?;
    let slope = |by: [i64; 2]| -> Result<Array<f32>> {
        let back = by.map(|by| -by);
        Ok((smoothed.shift(&back, Boundary::Clamp)? - smoothed.shift(&by, Boundary::Clamp)?) * 0.5)
    };
    let (dx, dy) = (slope([0, 1])?, slope([1, 0])?);
    let (xx, xy, yy) = (smooth(&(&dx * &dx), wide)?, smooth(&(&dx * &dy), wide)?, smooth(&(&dy * &dy), wide)?);
    let (half, difference) = ((&xx + &yy) * 0.5, &xx - &yy);
    let root = (&difference * &difference * 0.25 + &xy * &xy).sqrt();
    Ok((&half + &root) * 0.5 + (&half - &root))
}

/// Finds corners as Kanade, Lucas and Tomasi do: by the eigenvalues of the smoothed structure tensor.
pub(super) fn corner(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let image = Array::new(context, &units(n * n, 1, 0.0, 1.0), [n, n])?;
    let (narrow, wide) = (bell::<5>(1.0), bell::<9>(2.0));
    let corners = Function::new(context, move |image: &Array<f32>| Ok(vec![corners(image, &narrow, &wide)?]));
    let expression = move || corners.call(&image);
    let judge = move |got: &[Vec<f32>]| {
        let image: Vec<f64> = (0..n * n).map(|i| f64::from(unit(i as u32, 1))).collect();
        let smoothed = smooth_by_hand(&image, n, &narrow);
        let at =
            |i: usize, dy: i64, dx: i64| smoothed[clamp_index((i / n) as i64 + dy, n) * n + clamp_index((i % n) as i64 + dx, n)];
        let slopes: Vec<(f64, f64)> =
            (0..n * n).map(|i| ((at(i, 0, 1) - at(i, 0, -1)) / 2.0, (at(i, 1, 0) - at(i, -1, 0)) / 2.0)).collect();
        let tensor =
            |product: fn(&(f64, f64)) -> f64| smooth_by_hand(&slopes.iter().map(product).collect::<Vec<f64>>(), n, &wide);
        let (xx, xy, yy) = (tensor(|(x, _)| x * x), tensor(|(x, y)| x * y), tensor(|(_, y)| y * y));
        let want = |i: usize| {
            let (half, difference) = ((xx[i] + yy[i]) / 2.0, xx[i] - yy[i]);
            let root = (difference * difference / 4.0 + xy[i] * xy[i]).sqrt();
            (half + root) / 2.0 + (half - root)
        };
        let most = (0..n * n).map(|i| want(i).abs()).fold(0.0, f64::max);
        close(&got[0], want, 0.0, 1e-5 * most)?;
        Ok(checksum(&got[0], 0))
    };
    Ok(repeated(Work::arithmetic(8 * n * n, (144 * n * n) as f64), expression, judge))
}

/// Number of disparities that stereo matching tries.
const DISPARITIES: usize = 32;

/// Returns a pixel of the right image: a whole number, so that all sums are exact.
fn right_pixel(y: usize, x: usize, n: usize) -> f32 {
    (hashed((y * n + x) as u32, 1) >> 24) as f32
}

fn left_pixel(i: usize, n: usize) -> f32 {
    let (y, x) = (i / n, i % n);
    let disparity = (y / 32 * 5 + x / 32 * 3) % DISPARITIES;
    right_pixel(y, x.saturating_sub(disparity), n) + (hashed(i as u32, 2) >> 30) as f32
}

/// Returns the sum of seven neighbours along an axis.
fn sum_of_seven(volume: &Array<f32>, axis: usize) -> Result<Array<f32>> {
    let at = |offset: i64| {
        let mut by = [0; 3];
        by[axis] = -offset;
        volume.shift(&by, Boundary::Clamp)
    };
    (-2..=3).try_fold(at(-3)?, |sum, offset| Ok(sum + at(offset)?))
}

/// Matches stereo images: for each pixel, the disparity at which its neighbourhood matches best.
pub(super) fn stereo(context: &Context, n: usize) -> std::result::Result<Job, Failure> {
    let left: Vec<f32> = (0..n * n).map(|i| left_pixel(i, n)).collect();
    let right: Vec<f32> = (0..n * n).map(|i| right_pixel(i / n, i % n, n)).collect();
    let (left_image, right_image) = (Array::new(context, &left, [n, n])?, Array::new(context, &right, [n, n])?);
    let distances = Function::new(context, move |left: &Array<f32>, right: &Array<f32>| {
        let along = |axis: usize| Array::<i32>::positions(left.context(), [DISPARITIES, n, n], axis);
        let moved = right.gather(&[&along(1)?, &(along(2)? - along(0)?)], Boundary::Clamp)?;
        let difference = left - &moved;
        let cost = sum_of_seven(&sum_of_seven(&(&difference * &difference), 1)?, 2)?;
        Ok(vec![cost.argmin_as::<i32>(0)?])
    });
    let expression = move || distances.call((&left_image, &right_image));
    let judge = move |got: &[Vec<i32>]| {
        let mut best = vec![(f32::INFINITY, 0i32); n * n];
        for disparity in 0..DISPARITIES {
            let square = |i: usize| {
                let difference = left[i] - right[i / n * n + (i % n).saturating_sub(disparity)];
                difference * difference
            };
            let squares: Vec<f32> = (0..n * n).map(square).collect();
            let down = |i: usize| (-3..=3).map(|d| squares[clamp_index((i / n) as i64 + d, n) * n + i % n]).sum::<f32>();
            let sums: Vec<f32> = (0..n * n).map(down).collect();
            for (i, best) in best.iter_mut().enumerate() {
                let cost: f32 = (-3..=3).map(|d| sums[i / n * n + clamp_index((i % n) as i64 + d, n)]).sum();
                if cost < best.0 {
                    *best = (cost, disparity as i32);
                }
            }
        }
        equal(&got[0], |i| best[i].1)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::arithmetic(12 * n * n, (n * n * DISPARITIES * 51) as f64), expression, judge))
}
