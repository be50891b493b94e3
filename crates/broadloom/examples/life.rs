//! Conway's Life: a generation is one expression over whole arrays, and one kernel.
//!
//! `cargo run --release --package broadloom --example life` draws a pattern of five cells, 200 generations later, and says how one generation is
//! computed.

use broadloom::{Array, Context, array};

/// The next generation, on a torus.
fn next(cells: &Array<f32>) -> array::Result<Array<f32>> {
    let mut neighbours = cells.rotate(&[-1, -1])?;
    for by in [[-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]] {
        neighbours += cells.rotate(&by)?;
    }
    let stays = neighbours.eq(2.0)? & cells.gt(0.5)?;
    (neighbours.eq(3.0)? | stays).cond(1.0, 0.0)
}

/// Where five cells are after so many generations, drawn, and the plan of the last of them.
pub(crate) fn life(context: &Context, generations: usize) -> array::Result<String> {
    let (rows, columns) = (24, 72);
    let mut start = vec![0.0; rows * columns];
    for (row, column) in [(11, 36), (11, 37), (12, 35), (12, 36), (13, 36)] {
        start[row * columns + column] = 1.0;
    }
    let mut cells = Array::new(context, &start, [rows, columns])?;
    for _ in 0..generations {
        cells = next(&cells)?;
        cells.evaluate()?;
    }
    let drawn: Vec<String> =
        cells.to_vec()?.chunks(columns).map(|row| row.iter().map(|cell| if *cell > 0.5 { '#' } else { '.' }).collect()).collect();
    Ok(format!("{}\n\n{}", drawn.join("\n"), next(&cells)?.explain()?))
}

#[allow(clippy::print_stdout, dead_code, reason = "an example shows what it does; a test takes the rest of it")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", life(&broadloom::context("auto")?, 200)?);
    Ok(())
}
