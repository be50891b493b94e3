//! Reduction of a random kernel that fails on the GPU: pieces are removed while it fails in the same way.
//!
//! A kernel fails if the interpreter finds no error, the GPU agrees without the assembler's optimisations,
//! and with them it differs, faults or hangs. A separate process tests this ([`judge`]), since a fault
//! destroys the only context of a process. [`pieces`] lists the removable pieces.

mod judge;
mod pieces;

pub(crate) use judge::run as run_judge;

use crate::part::{Options, Summary, say};
use crate::saved;
use broadloom_filetest::Failure;
use broadloom_fuzzgen::Kernel;
use judge::{KernelJudge, Verdict};
use std::ops::Range;

/// Reduces the kernel of the seed or of the file. The result is saved, and its body is in the report.
pub(crate) fn run(options: &Options) -> Summary {
    let mut summary = Summary::default();
    let reduced = saved::wanted(options).and_then(|kernel| {
        let mut judge = KernelJudge::new()?;
        let how = match judge.ask(&kernel)? {
            Verdict::Right => return Ok(None),
            Verdict::Invalid(why) => return Err(why.into()),
            wrong @ (Verdict::Differs(_) | Verdict::Faults | Verdict::Stuck) => wrong,
        };
        say(&format!("seed {}: {how:?}", kernel.seed));
        let left = smallest(kernel, |smaller| Ok(judge.ask(smaller)?.is_like(&how)))?;
        let path = format!("reduced-{}.ptx", left.seed);
        std::fs::write(&path, saved::text(&left)).map_err(|error| format!("{path}: {error}"))?;
        Ok(Some((left, how)))
    });
    match reduced {
        Ok(None) => summary.passed += 1,
        Ok(Some((left, how))) => summary.failed.push((format!("seed {}: {how:?}", left.seed), left.text)),
        Err(why) => summary.failed.push(("reduce".to_owned(), why.0)),
    }
    summary
}

/// Returns the smallest kernel that still fails, found by removing fewer and fewer pieces at a time until
/// none can be removed.
fn smallest(mut kernel: Kernel, mut is_wrong: impl FnMut(&Kernel) -> Result<bool, Failure>) -> Result<Kernel, Failure> {
    loop {
        let before = kernel.text.len();
        let mut step = pieces::of(&kernel.text).len().div_ceil(2);
        while step > 0 {
            let mut at = 0;
            loop {
                let all = pieces::of(&kernel.text);
                let Some(chosen) = all.get(at..(at + step).min(all.len())).filter(|chosen| !chosen.is_empty()) else { break };
                let smaller = Kernel { text: without(&kernel.text, chosen), ..kernel.clone() };
                match is_wrong(&smaller)? {
                    true => kernel = smaller,
                    false => at += step,
                }
            }
            step /= 2;
        }
        if kernel.text.len() == before {
            return Ok(kernel);
        }
    }
}

/// Removes lines from a text.
fn without(text: &str, chosen: &[Range<usize>]) -> String {
    let lines = text.lines().enumerate().filter(|(number, _)| !chosen.iter().any(|piece| piece.contains(number)));
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use broadloom_fuzzgen::{Config, generate};

    /// The reduced kernel is valid and contains the failing instruction and little else.
    #[test]
    fn little_is_left_but_what_is_to_blame() {
        let blamed = |kernel: &Kernel| kernel.text.lines().filter(|line| line.contains("madc.hi")).count();
        let kernel = (0..).map(|seed| generate(seed, &Config::default())).find(|kernel| blamed(kernel) == 1).unwrap();
        let all = kernel.text.lines().count();
        let left = smallest(kernel, |smaller| Ok(blamed(smaller) == 1 && judge::expected(smaller).is_ok())).unwrap();
        assert_eq!(blamed(&left), 1);
        // Besides declarations, labels and loop control there is hardly anything.
        let is_frame = |line: &str| line.starts_with('.') || line.contains("%c") || line.contains("%n");
        let instructions = left.text.lines().filter_map(|line| line.strip_prefix('\t')).filter(|line| !is_frame(line)).count();
        let lines = left.text.lines().count();
        assert!(lines < all / 3 && instructions < 16, "{lines} of {all}, {instructions}:\n{}", left.text);
    }
}
