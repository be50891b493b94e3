//! NESL: quicksort of many numbers.

use crate::report::{Row, Times};
use crate::session::Session;
use crate::{Result, plain};
use std::time::Instant;

pub(crate) fn run(session: &Session) -> Result<Row> {
    let n = session.size(1_000_000, 2000);
    let source = include_str!("../../../../examples/demo/quicksort.nesl").replace("1000000", &n.to_string());
    let file =
        if n == 1_000_000 { "examples/demo/quicksort.nesl".to_owned() } else { session.written("quicksort.nesl", &source)? };
    let (first, again) = session.call(&["run", &file, "--device", session.device()])?;
    print!("{}", first.succeeded()?);
    again.succeeded()?;

    let start = Instant::now();
    let numbers = plain::numbers(n as i32);
    let sum = numbers.iter().fold(0i32, |sum, number| sum.wrapping_add(*number));
    let sorted = plain::quicksort(numbers);
    let plain = start.elapsed();
    let ends = format!("({}, {}, {sum}, T)", sorted[0], sorted[n - 1]);
    if !first.output.contains(&ends) || again.output != first.output {
        return Err(format!("the plain loop has {ends}").into());
    }
    let answer = format!("{n} numbers, from {} to {}, in order", sorted[0], sorted[n - 1]);
    Ok(Row { job: "quicksort in NESL", answer, times: Times { first: first.time, again: again.time, plain: Some(plain) } })
}
