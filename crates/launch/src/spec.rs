//! Parser of a launch: kernel, number of threads, arguments.

use crate::{ArgumentSpec, BAD_OPTION, parse_arguments};
use broadloom_device::Launch;
use broadloom_diag::{Diagnostic, Diagnostics, SourceId, Sources};
use std::time::Duration;

/// Launch, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchSpec {
    /// Kernel name; may be omitted if the module has only one kernel.
    pub kernel: Option<String>,
    /// Grid, block, shared memory and further options.
    pub launch: Launch,
    /// Arguments, in the order of the parameters.
    pub arguments: Vec<ArgumentSpec>,
}

/// Text that is not the size of a grid or block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidExtent {
    /// More than three numbers.
    #[error("`{0}` has more than three dimensions")]
    Dimensions(String),
    /// Text that is not a number.
    #[error("`{0}` is not a number of blocks or threads")]
    Number(String),
}

/// Parses one to three numbers, `64`, `8,8` or `4,4,4`: the size of a grid or block.
pub fn parse_extent(text: &str) -> Result<[u32; 3], InvalidExtent> {
    let mut extent = [1; 3];
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(InvalidExtent::Dimensions(text.to_owned()));
    }
    for (place, part) in extent.iter_mut().zip(parts) {
        *place = part.parse().map_err(|_| InvalidExtent::Number(part.to_owned()))?;
    }
    Ok(extent)
}

const OPTIONS: [&str; 8] = ["--kernel", "--grid", "--block", "--cluster", "--shared", "--cooperative", "--time-limit", "--arg"];

impl LaunchSpec {
    /// Parses a launch from words: `--kernel K`, `--grid X[,Y,Z]`, `--block X[,Y,Z]`, `--cluster X[,Y,Z]`,
    /// `--shared BYTES`, `--cooperative`, `--time-limit SECONDS`, `--arg A [=out]`.
    pub fn parse<W: AsRef<str>>(sources: &mut Sources, words: &[W]) -> Result<LaunchSpec, Diagnostics> {
        let mut spec = LaunchSpec { kernel: None, launch: Launch::linear(1, 1), arguments: vec![] };
        let mut arguments: Vec<&str> = vec![];
        let mut words = words.iter().map(AsRef::as_ref);
        while let Some(word) = words.next() {
            let mut wrong = |text: &str, message: String, label: &str| {
                let source: SourceId = sources.add("launch", text);
                let span = sources.span(source, 0, text.len() as u32);
                Diagnostics::from(Diagnostic::error(BAD_OPTION, message).at(span, label))
            };
            match word {
                "--cooperative" => spec.launch.cooperative = true,
                "--arg" | "--kernel" | "--grid" | "--block" | "--cluster" | "--shared" | "--time-limit" => {
                    let Some(value) = words.next() else {
                        return Err(wrong(word, format!("`{word}` without a value"), "expected a value behind this"));
                    };
                    let extent = |text: &str| parse_extent(text).map_err(|error| error.to_string());
                    let taken = match word {
                        "--arg" => {
                            arguments.push(value);
                            Ok(())
                        }
                        "--kernel" => {
                            spec.kernel = Some(value.to_owned());
                            Ok(())
                        }
                        "--grid" => extent(value).map(|grid| spec.launch.grid = grid),
                        "--block" => extent(value).map(|block| spec.launch.block = block),
                        "--cluster" => extent(value).map(|size| spec.launch.cluster = Some(size)),
                        "--shared" => value
                            .parse()
                            .map(|bytes| spec.launch.shared_bytes = bytes)
                            .map_err(|_| format!("`{value}` is not a number of bytes")),
                        _ => value
                            .parse()
                            .ok()
                            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                            .map(|limit| spec.launch.time_limit = Some(limit))
                            .ok_or_else(|| format!("`{value}` is not a number of seconds")),
                    };
                    taken.map_err(|message| wrong(value, message, &format!("behind `{word}`")))?;
                }
                output if output.starts_with('=') => arguments.push(output),
                other => {
                    let message = format!("`{other}` is not an option of a launch");
                    let help = match broadloom_ptx::select::nearest(other, OPTIONS.into_iter()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the options are {}", OPTIONS.join(", ")),
                    };
                    return Err(wrong(other, message, &help));
                }
            }
        }
        spec.arguments = parse_arguments(sources, &arguments)?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<LaunchSpec, String> {
        let mut sources = Sources::new();
        let words = crate::split_words(line).unwrap();
        LaunchSpec::parse(&mut sources, &words).map_err(|diagnostics| sources.render_all(&diagnostics))
    }

    #[test]
    fn reads_a_launch() {
        let spec = parse(
            "--kernel k --grid 2,3 --block 32 --cluster 2 --shared 1024 --cooperative --time-limit 0.5 --arg i32:7 --arg f32[4]:zero =",
        )
        .unwrap();
        assert_eq!(spec.kernel.as_deref(), Some("k"));
        let shape = Launch::new([2, 3, 1], [32, 1, 1]).cluster([2, 1, 1]);
        let expected = shape.shared(1024).cooperative().time_limit(Duration::from_millis(500));
        assert_eq!(spec.launch, expected);
        assert_eq!(spec.arguments.len(), 2);
    }

    #[test]
    fn says_what_is_wrong() {
        for (line, part) in [
            ("--gird 1", "did you mean `--grid`?"),
            ("--grid", "without a value"),
            ("--grid 1,2,3,4", "three dimensions"),
            ("--grid x", "not a number of blocks"),
            ("--block -1", "not a number of blocks"),
            ("--shared big", "not a number of bytes"),
            ("--time-limit -1", "not a number of seconds"),
            ("--time-limit nan", "not a number of seconds"),
            ("--arg i33:1", "not a type"),
            ("7", "the options are"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {part:?} missing in\n{error}");
        }
    }
}
