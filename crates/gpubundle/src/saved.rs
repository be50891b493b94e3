//! Random kernels as files: comments with the launch and the inputs, followed by the text.

use crate::part::{Options, Summary};
use broadloom_filetest::Failure;
use broadloom_fuzzgen::{Config, Kernel, generate};
use std::fmt::Write as _;

/// Writes the kernel of the seed to the file.
pub(crate) fn run(options: &Options) -> Summary {
    let mut summary = Summary::default();
    let kernel = generate(options.seed, &Config::default());
    let path = options.kernel.as_deref().unwrap_or("kernel.ptx");
    match std::fs::write(path, text(&kernel)) {
        Ok(()) => summary.passed += 1,
        Err(error) => summary.failed.push((path.to_owned(), error.to_string())),
    }
    summary
}

/// Returns the requested kernel: that of the file, or that of the seed.
pub(crate) fn wanted(options: &Options) -> Result<Kernel, Failure> {
    let Some(path) = &options.kernel else { return Ok(generate(options.seed, &Config::default())) };
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    kernel(&text).ok_or_else(|| format!("{path} is not a kernel that was saved").into())
}

pub(crate) fn text(kernel: &Kernel) -> String {
    let list = |name: &str, numbers: &[u32]| {
        numbers.iter().fold(format!("// {name}"), |mut line, number| {
            let _ = write!(line, " {number}");
            line
        })
    };
    let head = [
        format!("// seed {}", kernel.seed),
        list("grid", &kernel.grid),
        list("block", &kernel.block),
        format!("// output {}", kernel.output_bytes),
        list("input", &kernel.input),
    ];
    format!("{}\n{}", head.join("\n"), kernel.text)
}

pub(crate) fn kernel(text: &str) -> Option<Kernel> {
    let mut lines = text.splitn(6, '\n');
    let mut line = |name: &str| lines.next()?.strip_prefix("// ")?.strip_prefix(name);
    let numbers = |text: &str| text.split_whitespace().map(|word| word.parse::<u32>().ok()).collect::<Option<Vec<u32>>>();
    let seed = line("seed")?.trim().parse().ok()?;
    let (grid, block) = (numbers(line("grid")?)?, numbers(line("block")?)?);
    let output_bytes = line("output")?.trim().parse().ok()?;
    let input = numbers(line("input")?)?;
    let (grid, block) = (grid.try_into().ok()?, block.try_into().ok()?);
    Some(Kernel { text: lines.next()?.to_owned(), seed, grid, block, input, output_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_the_kernel() {
        let made = generate(7, &Config::default());
        assert_eq!(kernel(&text(&made)), Some(made.clone()));
        assert_eq!(kernel(&made.text), None);
    }
}
