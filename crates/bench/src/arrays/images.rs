//! Benchmarks over images.

use super::job::repeated;
use crate::error::Failure;
use crate::inputs::{unit, units, weighed};
use crate::job::{Job, Work, close, close_at, equal};
use broadloom::array::Function;
use broadloom::{Array, Boundary, Context, array};

pub(super) fn checksum(got: &[f32], first: usize) -> f64 {
    weighed(got.iter().map(|&x| f64::from(x)), first)
}

pub(super) fn life(context: &Context, n: usize) -> Result<Job, Failure> {
    let is_alive = |i: usize| if unit(i as u32, 1) < 0.35 { 1.0f32 } else { 0.0 };
    let cells = Array::new(context, &(0..n * n).map(is_alive).collect::<Vec<_>>(), [n, n])?;
    let next = Function::new(context, |cells: &Array<f32>| {
        let next = cells.window(Boundary::Wrap, |w| {
            let row = |y: i64| w.at(&[y, -1]) + w.at(&[y, 0]) + w.at(&[y, 1]);
            let (all, cell) = (row(-1) + row(0) + row(1), w.at(&[0, 0]));
            let none = cell.constant(0.0);
            all.eq(3.0).cond(cell.constant(1.0), all.eq(4.0).cond(cell, none))
        });
        Ok(vec![next?])
    });
    let expression = move || next.call(&cells);
    let judge = move |got: &[Vec<f32>]| {
        let next = |i: usize| {
            let at = |dy: usize, dx: usize| is_alive((i / n + dy + n - 1) % n * n + (i % n + dx + n - 1) % n);
            let all: f32 = (0..9).map(|k| at(k / 3, k % 3)).sum();
            if all == 3.0 || all == 4.0 && at(1, 1) == 1.0 { 1.0 } else { 0.0 }
        };
        equal(&got[0], next)?;
        Ok(checksum(&got[0], 0))
    };
    Ok(repeated(Work::memory(8 * n * n, 11 * n * n), expression, judge))
}

/// Returns a Gaussian over an odd number of points.
pub(crate) fn bell<const N: usize>(sigma: f64) -> [f32; N] {
    let place = |i: usize| (i as f64 - (N / 2) as f64) / sigma;
    let bell: [f64; N] = std::array::from_fn(|i| (-0.5 * place(i) * place(i)).exp());
    let sum: f64 = bell.iter().sum();
    bell.map(|x| (x / sum) as f32)
}

/// Blurs along an axis, as in Figure 2 of the Accelerator paper.
pub(super) fn blurred(image: &Array<f32>, axis: usize, weights: &[f32]) -> array::Result<Array<f32>> {
    let mut sum = Array::full(image.context(), image.shape(), 0.0f32)?;
    for (i, weight) in weights.iter().enumerate() {
        let mut by = [0, 0];
        by[axis] = i as i64 - weights.len() as i64 / 2;
        sum += image.shift(&by, Boundary::Clamp)? * *weight;
    }
    Ok(sum)
}

pub(super) fn convolution(context: &Context, n: usize) -> Result<Job, Failure> {
    let image = Array::new(context, &units(n * n, 1, 0.0, 1.0), [n, n])?;
    let weights = bell::<5>(1.0);
    let judge = move |got: &[Vec<f32>]| {
        let weights = weights.map(f64::from);
        let at = |y: usize, x: usize| f64::from(unit((y * n + x) as u32, 1));
        let near = |place: usize, k: usize| (place + k).saturating_sub(2).min(n - 1);
        let want = |i: usize| {
            let row = |y: usize| (0..5).map(|k| weights[k] * at(y, near(i % n, k))).sum::<f64>();
            (0..5).map(|k| weights[k] * row(near(i / n, k))).sum()
        };
        close(&got[0], want, 1e-6, 0.0)?;
        Ok(checksum(&got[0], 0))
    };
    let blur = Function::new(context, move |image: &Array<f32>| Ok(vec![blurred(&blurred(image, 1, &weights)?, 0, &weights)?]));
    let expression = move || blur.call(&image);
    Ok(repeated(Work::memory(8 * n * n, 20 * n * n), expression, judge))
}

/// The angle of rotation, in radians.
const ANGLE: f32 = 0.5;

pub(super) fn rotation(context: &Context, n: usize) -> Result<Job, Failure> {
    let plane = |p: usize| {
        let values: Vec<f32> = (0..n * n).map(|i| unit((p * n * n + i) as u32, 1)).collect();
        Array::new(context, &values, [n, n])
    };
    let (red, green, blue) = (plane(0)?, plane(1)?, plane(2)?);
    let (sin, cos, centre) = (ANGLE.sin(), ANGLE.cos(), (n - 1) as f32 * 0.5);
    let turn = Function::new(context, move |red: &Array<f32>, green: &Array<f32>, blue: &Array<f32>| {
        let along = |axis: usize| -> array::Result<Array<f32>> {
            Ok(Array::<i32>::positions(red.context(), [n, n], axis)?.cast::<f32>()? - centre)
        };
        let (y, x) = (along(0)?, along(1)?);
        let (from_x, from_y) = (&x * cos + &y * sin + centre, &y * cos - &x * sin + centre);
        let most = (n - 1) as f32;
        let inside = |at: &Array<f32>| -> array::Result<Array<bool>> { Ok(at.ge(0.0)? & at.le(most)?) };
        let is_inside = inside(&from_x)? & inside(&from_y)?;
        let whole = |at: &Array<f32>| at.floor().clamp(0.0, most - 1.0);
        let (x0, y0) = (whole(&from_x)?, whole(&from_y)?);
        let (ax, ay) = (&from_x - &x0, &from_y - &y0);
        let (x0, y0) = (x0.cast::<i32>()?, y0.cast::<i32>()?);
        let (x1, y1) = (&x0 + 1, &y0 + 1);
        let turned = |plane: &Array<f32>| -> array::Result<Array<f32>> {
            // The three planes belong to one picture.
            let plane = plane.broadcast_with(red)?;
            let at = |y: &Array<i32>, x: &Array<i32>| plane.gather(&[y, x], Boundary::Clamp);
            let between = |y: &Array<i32>| -> array::Result<Array<f32>> {
                let (left, right) = (at(y, &x0)?, at(y, &x1)?);
                Ok(&left + (right - &left) * &ax)
            };
            let (upper, lower) = (between(&y0)?, between(&y1)?);
            is_inside.cond(&(&upper + (lower - &upper) * &ay), 0.0)
        };
        Ok([turned(red)?, turned(green)?, turned(blue)?].to_vec())
    });
    let expression = move || turn.call((&red, &green, &blue));
    let judge = move |got: &[Vec<f32>]| {
        let (sin, cos, centre, most) = (f64::from(sin), f64::from(cos), f64::from(centre), (n - 1) as f64);
        let source = |i: usize| {
            let (x, y) = ((i % n) as f64 - centre, (i / n) as f64 - centre);
            (x * cos + y * sin + centre, y * cos - x * sin + centre)
        };
        // At the border of the image, rounding decides whether a point is inside.
        let is_sure = |i: &usize| {
            let (x, y) = source(*i);
            [x, y, most - x, most - y].iter().all(|distance| distance.abs() > 1e-2)
        };
        for (p, got) in got.iter().enumerate() {
            let at = |y: f64, x: f64| f64::from(unit((p * n * n + y as usize * n + x as usize) as u32, 1));
            let want = |i: usize| {
                let (x, y) = source(i);
                if x.min(y) < 0.0 || x.max(y) > most {
                    return 0.0;
                }
                let (x0, y0) = (x.floor().min(most - 1.0), y.floor().min(most - 1.0));
                let (ax, ay) = (x - x0, y - y0);
                let row = |y: f64| at(y, x0) + (at(y, x0 + 1.0) - at(y, x0)) * ax;
                row(y0) + (row(y0 + 1.0) - row(y0)) * ay
            };
            // Positions are computed in 32 bits, and neighbours differ by up to 1.
            close_at(got, (0..n * n).filter(is_sure), want, 1e-5, 4e-7 * n as f64)?;
        }
        Ok(got.iter().enumerate().map(|(p, got)| checksum(got, p * n * n)).sum())
    };
    Ok(repeated(Work::memory(24 * n * n, 60 * n * n), expression, judge))
}
