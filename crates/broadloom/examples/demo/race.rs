//! The checker: a race in a CUDA kernel.

use crate::Result;
use crate::report::{Row, Times};
use crate::session::Session;

pub(crate) fn run(session: &Session) -> Result<Row> {
    let launch = ["--block", "64", "--arg", "f32[64]:iota", "--arg", "f32[1]:zero", "--arg", "i32:64"];
    let (first, again) = session.call(&[&["check", "examples/race.ptx"], &launch[..]].concat())?;
    print!("{}", first.output);
    let line = first.output.lines().find_map(|line| line.split_once("from ")?.1.split_once(": ")).ok_or("no source line")?;
    if first.code != Some(1) || !first.output.contains("error[race]") || again.output != first.output {
        return Err("the checker did not find the race".into());
    }
    let answer = format!("race at {}", line.0);
    Ok(Row { job: "check of a kernel", answer, times: Times { first: first.time, again: again.time, plain: None } })
}
