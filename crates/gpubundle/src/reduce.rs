//! Makes a random kernel on which the GPU differs smaller: pure instructions are left out one by one for as long as it still differs.
//!
//! What sets registers first, touches memory, branches or meets others stays, so that a smaller kernel keeps the promises of the larger one.

use crate::{Options, Summary, saved};
use broadloom_cuda::Cuda;
use broadloom_device::Device;
use broadloom_fuzzgen::{Kernel, module, run as run_kernel};
use broadloom_interp::Interp;

/// Reduces the kernel of the seed; the report holds what is left of it.
pub(crate) fn run(options: &Options) -> Summary {
    let mut summary = Summary::default();
    let cuda = Cuda::new(broadloom_cuda::Options::default());
    let (cuda, interp) = match cuda {
        Ok(cuda) => (Device::new(cuda), Device::new(Interp::new(broadloom_interp::Options::default()))),
        Err(error) => {
            summary.failed.push(("reduce".to_owned(), error.to_string()));
            return summary;
        }
    };
    // Where they differ; nothing when one of them fails or the text is no longer valid.
    let differs = |kernel: &Kernel| -> Option<String> {
        let code = module(kernel).ok()?;
        let expected = run_kernel(&interp, kernel, &code).ok()?.output;
        let found = run_kernel(&cuda, kernel, &code).ok()?.output;
        let at = (0..expected.len()).find(|at| expected[*at] != found[*at])?;
        let bytes = at / 4 * 4..(at / 4 * 4 + 4).min(expected.len());
        Some(format!("{}: {:02x?} instead of {:02x?}", kernel.place(at), &found[bytes.clone()], &expected[bytes]))
    };
    let mut kernel = match saved::wanted(options) {
        Ok(kernel) => kernel,
        Err(why) => {
            summary.failed.push(("reduce".to_owned(), why));
            return summary;
        }
    };
    let Some(mut why) = differs(&kernel) else {
        summary.passed += 1;
        return summary;
    };
    let mut step = 16;
    while step > 0 {
        let mut at = 0;
        loop {
            let lines: Vec<&str> = kernel.text.lines().collect();
            let chosen: Vec<usize> = (0..lines.len()).filter(|index| may_go(lines[*index])).skip(at).take(step).collect();
            if chosen.is_empty() {
                break;
            }
            let left: String =
                (0..lines.len()).filter(|index| !chosen.contains(index)).map(|index| format!("{}\n", lines[index])).collect();
            let smaller = Kernel { text: left, ..kernel.clone() };
            let register = |why: &str| why.split(" of ").next().unwrap_or_default().to_owned();
            match differs(&smaller) {
                Some(still) if register(&still) == register(&why) => (kernel, why) = (smaller, still),
                Some(_) | None => at += step,
            }
        }
        step /= 2;
    }
    let body: Vec<&str> = kernel.text.lines().filter(|line| may_go(line)).collect();
    summary.failed.push((format!("seed {}: {why}", kernel.seed), body.join("\n")));
    summary
}

/// Whether a line is an instruction that can be left out.
fn may_go(line: &str) -> bool {
    let line = line.trim();
    let word = line.trim_start_matches('@').trim_start_matches('!');
    let word = if line.starts_with('@') { word.split_once(' ').map_or("", |(_, rest)| rest) } else { word };
    let stays = [
        "ld",
        "st",
        "atom",
        "red",
        "bar",
        "bra",
        "brx",
        "ret",
        "call",
        "exit",
        "shfl",
        "vote",
        "match",
        "redux",
        "activemask",
        ".",
    ];
    // Registers that kernels compute with have numbers; those that say where things are have names.
    let numbered = |operand: &str| {
        let name = operand.trim_start_matches(['{', '%']);
        let digits = name.trim_start_matches(|c: char| c.is_ascii_lowercase());
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('x')
    };
    let result = word.split_once(' ').map_or("", |(_, operands)| operands);
    let result = result.split([',', ';', '|', '}']).next().unwrap_or_default().trim();
    line.ends_with(';') && numbered(result) && !stays.iter().any(|stay| word.starts_with(stay)) && !word.contains("%x")
}
