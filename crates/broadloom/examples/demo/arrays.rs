//! Arrays: a Julia set, drawn in characters.

use crate::report::{Row, Times};
use crate::session::Session;
use crate::{Result, plain};
use broadloom::{Array, Context, array};
use std::time::Instant;

const ROUNDS: usize = 48;
const C: [f32; 2] = [-0.8, 0.156];

/// Coordinates of a pixel: 3.2 wide, with square pixels, around 0.
pub(crate) fn point(column: f32, row: f32, width: usize, height: usize) -> (f32, f32) {
    let scale = 3.2 / width as f32;
    ((column - width as f32 / 2.0) * scale, (row - height as f32 / 2.0) * scale)
}

/// The number of rounds for which each point stays near: one expression over whole arrays.
fn julia(context: &Context, width: usize, height: usize) -> array::Result<Array<f32>> {
    let scale = 3.2 / width as f32;
    let shape = [height, width];
    let axis = |axis: usize, size: usize| -> array::Result<Array<f32>> {
        Ok((Array::<i32>::positions(context, shape, axis)?.cast::<f32>()? - size as f32 / 2.0) * scale)
    };
    let (mut x, mut y) = (axis(1, width)?, axis(0, height)?);
    let mut count = Array::full(context, shape, 0.0f32)?;
    for _ in 0..ROUNDS {
        (x, y) = (&x * &x - &y * &y + C[0], &x * &y * 2.0 + C[1]);
        count += (&x * &x + &y * &y).lt(4.0)?.cond(1.0, 0.0)?;
    }
    Ok(count)
}

pub(crate) fn run(session: &Session) -> Result<Row> {
    let (width, height) = (session.size(1920, 152), session.size(1080, 86));
    // The cache of compiled code is empty: this process has one of its own.
    let context = broadloom::context(session.device())?;
    let compute = || -> Result<(Vec<f32>, std::time::Duration)> {
        let start = Instant::now();
        let counts = julia(&context, width, height)?.to_vec()?;
        Ok((counts, start.elapsed()))
    };
    let (counts, first) = compute()?;
    let (_, again) = compute()?;

    let start = Instant::now();
    let expected = plain::julia(width, height, ROUNDS, C);
    let plain = start.elapsed();
    // Fused products move a point near the edge to the other side now and then.
    let different = counts.iter().zip(&expected).filter(|(a, b)| a != b).count();
    if different > counts.len() / 100 {
        return Err(format!("{different} of {} pixels differ from the plain loop", counts.len()).into());
    }
    let (rows, columns) = (24, 76);
    for row in 0..rows {
        let at = |column: usize| counts[(2 * row + 1) * height / (2 * rows) * width + (2 * column + 1) * width / (2 * columns)];
        let line: String =
            (0..columns).map(|column| char::from(b" .:-=+*#%@"[(at(column) * 9.0 / ROUNDS as f32) as usize])).collect();
        println!("{}", line.trim_end());
    }
    let inside = counts.iter().filter(|count| **count == ROUNDS as f32).count();
    let answer = format!("{width}×{height}, {:.1} % stay", 100.0 * inside as f64 / counts.len() as f64);
    Ok(Row { job: "Julia set by arrays", answer, times: Times { first, again, plain: Some(plain) } })
}
