//! File tests: runs every `.str` file under `tests/programs`, `tests/mistakes`, `tests/blocks` and `examples/stream` of
//! the repository.
//!
//! The file beside it with the ending `.out` contains its output and its final message. `BLESS=1` rewrites
//! these files, except those of `tests/blocks`: SciPy has computed them, in `figures.py` there. Programs without mistakes are also compiled, for `interp` and `cpu`, and must print the same
//! there.
//!
//! Comments at the start of a file set how it is run:
//! - `// iterations N`: the number of iterations;
//! - `// steps N`, `// nodes N`: limits;
//! - `// file NAME HEX`: an input file;
//! - `// show NAME`: an output file that is shown;
//! - `// tolerance X`: the largest difference of floats, for programs of `tests/blocks`.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_stream::compiled::Compiled;
use broadloom_stream::eval::{Limits, Memory, Outcome, Settings};
use broadloom_stream::{Failure, Program};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut trials = vec![];
    for folder in ["tests/programs", "tests/mistakes", "tests/blocks", "../../examples/stream"] {
        let entries = std::fs::read_dir(here.join(folder)).expect("the folder of the tests");
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "str"));
        files.sort();
        for path in files {
            let folder = folder.rsplit('/').next().unwrap_or(folder);
            let name = format!("{folder}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
            let shared = path.clone();
            trials.push(Trial::test(name.clone(), move || run(&shared)));
            if folder != "mistakes" {
                for device in ["interp", "cpu"] {
                    let path = path.clone();
                    trials.push(Trial::test(format!("{name} on {device}"), move || run_on(device, &path)));
                }
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs a program, on a device if one is given. Returns its output, and how it ended if that is unusual.
fn transcript(name: &str, text: &str, device: Option<&Device>) -> Result<String, Failed> {
    let mut host = Memory::default();
    let limits = Limits { steps: 50_000_000, ..Limits::default() };
    let mut settings = Settings { iterations: Some(5), limits, style: None };
    let mut shown = vec![];
    for line in text.lines().map_while(|line| line.strip_prefix("// ")) {
        match line.split(' ').collect::<Vec<&str>>()[..] {
            ["iterations", count] => settings.iterations = Some(count.parse()?),
            ["steps", count] => settings.limits.steps = count.parse()?,
            ["nodes", count] => settings.limits.nodes = count.parse()?,
            ["show", file] => shown.push(file),
            ["file", file, hex] => {
                let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16);
                let bytes = (0..hex.len()).step_by(2).map(byte).collect::<Result<Vec<u8>, _>>()?;
                host.files.lock().map_err(|_| "locked")?.insert(file.to_owned(), bytes);
            }
            _ => {}
        }
    }
    let mut end = String::new();
    match Program::compile(name, text, &mut host, &settings.limits) {
        Err(failure) => end = failure.to_string(),
        Ok(program) => match run_once(&program, &mut host, &settings, device) {
            Ok(Outcome::Done) => {}
            Ok(outcome) => end = format!("-- {outcome:?}\n"),
            Err(failure) => end = failure.to_string(),
        },
    }
    let mut found = host.output + &end;
    for file in shown {
        let files = host.files.lock().map_err(|_| "locked")?;
        let bytes: String = files.get(file).map_or(&[][..], |bytes| bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        found += &format!("-- {file}: {bytes}\n");
    }
    Ok(found)
}

fn run(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let found = transcript(&name, &text, None)?;
    let expected_path = path.with_extension("out");
    let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    if let Some(tolerance) = tolerance(&text)? {
        return within(&found, &expected, tolerance);
    }
    if std::env::var_os("BLESS").is_some() {
        return Ok(std::fs::write(expected_path, found)?);
    }
    Err(format!("{}: found\n{found}\nexpected\n{expected}\nBLESS=1 rewrites it", path.display()).into())
}

/// Returns the tolerance that a program states.
fn tolerance(text: &str) -> Result<Option<f64>, Failed> {
    let line = text.lines().find_map(|line| line.strip_prefix("// tolerance "));
    Ok(line.map(str::parse).transpose()?)
}

/// Compares the printed numbers with those that SciPy has computed.
fn within(found: &str, expected: &str, tolerance: f64) -> Result<(), Failed> {
    let numbers = |text: &str| text.lines().map(str::parse).collect::<Result<Vec<f64>, _>>();
    let (found, expected) = (numbers(found).map_err(|_| found.to_owned())?, numbers(expected)?);
    if found.len() != expected.len() {
        return Err(format!("{} numbers, and not {}", found.len(), expected.len()).into());
    }
    match found.iter().zip(&expected).position(|(a, b)| (a - b).abs().is_nan() || (a - b).abs() > tolerance) {
        Some(at) => Err(format!("number {at} is {}, and not {}", found[at], expected[at]).into()),
        None => Ok(()),
    }
}

/// Compares outputs. Floats may differ by 1e-4, because combined linear filters round differently.
fn agrees(found: &str, expected: &str) -> bool {
    let number = |word: &str| word.contains('.').then(|| word.parse::<f64>().ok()).flatten();
    let near = |(found, expected): (&str, &str)| match (number(found), number(expected)) {
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-4 * expected.abs(),
        _ => found == expected,
    };
    let lines = |text: &str| text.split('\n').map(|line| line.split(' ').count()).collect::<Vec<_>>();
    lines(found) == lines(expected) && found.split([' ', '\n']).zip(expected.split([' ', '\n'])).all(near)
}

fn run_once(program: &Program, host: &mut Memory, settings: &Settings, device: Option<&Device>) -> Result<Outcome, Failure> {
    let Some(device) = device else { return program.run(host, settings) };
    let compiled = Compiled::new(program, device)?;
    let outcome = compiled.run(host, settings)?;
    if compiled.statistics().handed_back > 0 && outcome == Outcome::Done {
        host.output += "-- the evaluator ran the rest\n";
    }
    Ok(outcome)
}

/// Runs a program on a device.
fn run_on(device: &str, path: &Path) -> Result<(), Failed> {
    let device = match device {
        "cpu" => Device::new(Cpu::new(Default::default())?),
        _ => Device::new(Interp::new(Default::default())),
    };
    let text = std::fs::read_to_string(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let found = transcript(&name, &text, Some(&device))?;
    let expected = std::fs::read_to_string(path.with_extension("out"))?;
    if let Some(tolerance) = tolerance(&text)? {
        return within(&found, &expected, tolerance);
    }
    match agrees(&found, &expected) {
        true => Ok(()),
        false => Err(format!("found\n{found}\nexpected\n{expected}").into()),
    }
}
