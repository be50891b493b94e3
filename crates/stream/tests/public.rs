//! Runs public programs and compares their output with the recorded output of the original implementation.
//!
//! `BROADLOOM_STREAMIT_ANSWERS` names a table with the columns repository, commit, path, iterations, …, name
//! of the output. `BROADLOOM_STREAMIT_OUTPUTS` names the folder of the outputs, and
//! `BROADLOOM_STREAMIT_PROGRAMS` a folder that contains the repositories as `owner/name`. Without them the
//! test is skipped. `BROADLOOM_STREAMIT_DEVICE` may name a device, `cpu` or `interp`, on which the programs
//! run compiled.

use broadloom_cpu::Cpu;
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_stream::Program;
use broadloom_stream::compiled::Compiled;
use broadloom_stream::eval::{Limits, Memory, Settings};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

/// Programs whose recorded output shows a bug of the original implementation, with the reason.
const WRONG_IN_ORIGINAL: [(&str, &str); 2] = [
    ("tests/complex/ComplexTest1.str", "arguments of streams are values; its comment says so"),
    ("benchmarks/traces/nokia/dcalc.str", "arguments of streams are values; an array is changed after `add`"),
];

fn main() {
    let variable = |name: &str| std::env::var(format!("BROADLOOM_STREAMIT_{name}"));
    let (Ok(answers), Ok(outputs), Ok(programs)) = (variable("ANSWERS"), variable("OUTPUTS"), variable("PROGRAMS")) else {
        let skipped = Trial::test("skipped: no answers, outputs and programs are named", || Ok(())).with_ignored_flag(true);
        libtest_mimic::run(&Arguments::from_args(), vec![skipped]).exit();
    };
    let table = std::fs::read_to_string(answers).expect("the table of answers");
    let mut trials = vec![];
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (&repository, &path) = (&columns[0], &columns[2]);
        let iterations: u64 = columns[3].parse().expect("a number of iterations");
        let program = Path::new(&programs).join(repository).join(path);
        let output = Path::new(&outputs).join(columns[columns.len() - 1]);
        let wrong = WRONG_IN_ORIGINAL.iter().any(|(known, _)| path.ends_with(known));
        let device = variable("DEVICE").ok().map(|name| match &*name {
            "cpu" => Device::new(Cpu::new(Default::default()).expect("a CPU")),
            _ => Device::new(Interp::new(Default::default())),
        });
        let trial = Trial::test(format!("{repository}/{path}"), move || run(&program, &output, iterations, device.as_ref()));
        trials.push(trial.with_ignored_flag(wrong));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn run(path: &PathBuf, output: &PathBuf, iterations: u64, device: Option<&Device>) -> Result<(), Failed> {
    let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
    let expected = std::fs::read_to_string(output)?;
    let mut host = Memory::default();
    let limits = Limits { steps: 2_000_000_000, ..Limits::default() };
    let program = Program::compile(&path.to_string_lossy(), &text, &mut host, &limits)?;
    let settings = Settings { iterations: Some(iterations), limits, style: None };
    match device {
        None => program.run(&mut host, &settings)?,
        Some(device) => {
            let compiled = Compiled::new(&program, device)?;
            let outcome = compiled.run(&mut host, &settings)?;
            if compiled.statistics().handed_back > 0 {
                return Err("the evaluator ran the rest".into());
            }
            outcome
        }
    };
    let (found, wanted): (Vec<&str>, Vec<&str>) = (host.output.lines().collect(), expected.lines().collect());
    for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        if !alike(found, wanted) {
            return Err(format!("line {}:\n  found    {found}\n  expected {wanted}", index + 1).into());
        }
    }
    if found.len() != wanted.len() {
        return Err(format!("{} lines, expected {}", found.len(), wanted.len()).into());
    }
    Ok(())
}

/// Returns whether two lines are equal. Floats may differ by 1e-4 relative.
fn alike(found: &str, wanted: &str) -> bool {
    let (found, wanted): (Vec<&str>, Vec<&str>) = (found.split_whitespace().collect(), wanted.split_whitespace().collect());
    let number = |text: &str| text.contains('.').then(|| text.parse::<f64>().ok()).flatten();
    let same = |found: &str, wanted: &str| match (number(found), number(wanted)) {
        _ if found == wanted => true,
        (Some(found), Some(wanted)) => (found - wanted).abs() <= 1e-4 * found.abs().max(wanted.abs()).max(1e-6),
        _ => false,
    };
    found.len() == wanted.len() && found.iter().zip(&wanted).all(|(found, wanted)| same(found, wanted))
}
