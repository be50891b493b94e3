//! Tests and measures a GPU. The program contains everything it needs except the driver.
//!
//! ```text
//! broadloom-gpubundle [figures] [tests] [corpus] [kernels] [instructions] [--kernels N] [--sweeps N] [--seed S] [--filter TEXT]
//! broadloom-gpubundle reduce [--seed S | --kernel FILE]
//! broadloom-gpubundle save --seed S --kernel FILE
//! broadloom-gpubundle kernels --kernel FILE
//! broadloom-gpubundle trace                            writes trace.json
//! ```
//!
//! Without a part it does all: the file tests and the corpus on the GPU; random kernels, and every pure
//! instruction separately, on the interpreter, the CPU and the GPU; and the measurements. `reduce` shrinks
//! the random kernel of a seed while the GPU differs from the interpreter, faults or hangs, and saves the
//! result as `reduced-S.ptx`; `judge` is its helper process. `save` writes the kernel of a seed to a file, so
//! that it can be inspected and rerun when seeds generate other kernels. The report comes at the end; the
//! exit code is 1 if something differs.

mod corpus;
mod figures;
mod files;
mod isolate;
mod kernels;
mod part;
mod reduce;
mod saved;
mod tests;
mod traced;

use broadloom_filetest::Failure;
use part::{Options, Summary, say};
use std::process::ExitCode;

fn options() -> Result<Options, Failure> {
    let filter = String::new();
    let mut options = Options { parts: vec![], kernels: 2000, sweeps: 4, seed: 0, alone: false, filter, kernel: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--kernels" => options.kernels = value()?.parse().map_err(|_| "--kernels needs a number")?,
            "--sweeps" => options.sweeps = value()?.parse().map_err(|_| "--sweeps needs a number")?,
            "--seed" => options.seed = value()?.parse().map_err(|_| "--seed needs a number")?,
            "--alone" => options.alone = true,
            "--filter" => options.filter = value()?,
            "--kernel" => options.kernel = Some(value()?),
            part if PARTS.iter().any(|(name, _)| *name == part) => options.parts.push(word),
            _ => return Err(format!("`{word}` is not understood").into()),
        }
    }
    Ok(options)
}

/// Function that runs a part.
type RunPart = fn(&Options) -> Summary;

/// All parts.
const PARTS: [(&str, RunPart); 9] = [
    ("figures", figures::run),
    ("tests", tests::run),
    ("corpus", corpus::run),
    ("kernels", kernels::run),
    ("instructions", kernels::run_sweeps),
    ("reduce", reduce::run),
    ("judge", reduce::run_judge),
    ("save", saved::run),
    ("trace", traced::run),
];

/// Parts that run only on request.
const ONLY_ON_REQUEST: [&str; 4] = ["reduce", "judge", "save", "trace"];

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(why) => {
            say(&why.0);
            return ExitCode::from(2);
        }
    };
    match broadloom_cuda::machines() {
        Ok(machines) => machines.iter().for_each(|machine| say(&format!("{machine:?}"))),
        // A kernel can be saved without a GPU.
        Err(_) if options.parts == ["save"] => {}
        Err(error) => {
            say(&error.to_string());
            return ExitCode::from(3);
        }
    }
    let mut summaries = vec![];
    for (name, part) in PARTS {
        if options.parts.is_empty() && !ONLY_ON_REQUEST.contains(&name) || options.parts.iter().any(|wanted| wanted == name) {
            let start = std::time::Instant::now();
            let summary = part(&options);
            say(&format!("{name}: done in {:.1} s", start.elapsed().as_secs_f64()));
            summaries.push((name, summary));
        }
    }
    say("\n==== report ====");
    let mut failed = false;
    for (name, summary) in &summaries {
        let Summary { passed, skipped, failed: wrong, lines } = summary;
        say(&format!("{name}: {passed} passed, {} failed, {} skipped", wrong.len(), skipped.len()));
        lines.iter().for_each(|line| say(&format!("  {line}")));
        let mut reasons: Vec<&String> = skipped.iter().map(|(_, reason)| reason).collect();
        reasons.sort();
        reasons.dedup();
        for reason in reasons {
            let count = skipped.iter().filter(|(_, other)| other == reason).count();
            say(&format!("  skipped {count}: {reason}"));
        }
        for (test, why) in wrong {
            let short: String =
                why.lines().take(if *name == "reduce" { usize::MAX } else { 12 }).map(|line| format!("      {line}\n")).collect();
            say(&format!("  FAILED {test}\n{}", short.trim_end()));
        }
        failed |= !wrong.is_empty();
    }
    ExitCode::from(u8::from(failed))
}
