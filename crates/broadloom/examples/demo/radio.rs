//! StreamIt: an FM radio that recognises a melody.

use crate::report::{Row, Times};
use crate::session::Session;
use crate::{Result, plain};
use std::time::Instant;

/// The melody of the station, as indices of notes.
const TUNE: [usize; 30] = [2, 2, 3, 4, 4, 3, 2, 1, 0, 0, 1, 2, 2, 1, 1, 2, 2, 3, 4, 4, 3, 2, 1, 0, 0, 1, 2, 1, 0, 0];
const PITCH: [f32; 8] = [523.25, 587.33, 659.26, 698.46, 783.99, 880.0, 987.77, 1046.5];
const NAMES: [&str; 8] = ["C", "D", "E", "F", "G", "A", "B", "C'"];

pub(crate) fn run(session: &Session) -> Result<Row> {
    let notes = session.size(TUNE.len(), 2);
    let (first, again) =
        session.call(&["run", "examples/demo/radio.str", "-i", &notes.to_string(), "--device", session.device()])?;
    let heard: Vec<usize> = first.succeeded()?.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
    again.succeeded()?;

    let start = Instant::now();
    let expected = plain::radio(notes, &TUNE, &PITCH);
    let plain = start.elapsed();
    if heard != expected || heard != TUNE[..notes] || again.output != first.output {
        return Err(format!("the radio heard {heard:?}, the plain loop {expected:?}").into());
    }
    for note in (0..=*heard.iter().max().unwrap_or(&0)).rev() {
        let line: String = heard.iter().map(|at| if *at == note { "●─" } else { "──" }).collect();
        println!("{:>3} {line}", NAMES[note]);
    }
    let names: Vec<&str> = heard.iter().take(8).map(|note| NAMES[*note]).collect();
    let answer = format!("{} … (Ode to Joy)", names.join(" "));
    Ok(Row { job: "FM radio, 8 pitches", answer, times: Times { first: first.time, again: again.time, plain: Some(plain) } })
}
