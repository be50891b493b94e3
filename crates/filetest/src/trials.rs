//! Trials of files, and rewriting of expectations.

use crate::device_differences::left_out_on_gpus;
use crate::failure::Failure;
use crate::language::{Command, Devices, Language};
use crate::languages::language_of;
use crate::{Case, DEVICES, DeviceEntry, TestFile};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Returns the trials of a file: one per case, command and, for launches, device. Trials of a missing device
/// are ignored.
pub fn trials(name: &str, path: &Path) -> Vec<Trial> {
    let file = match read(path) {
        Ok(file) => file,
        Err(error) => return vec![Trial::test(name.to_owned(), move || Err(Failed::from(error.0)))],
    };
    let mut trials = vec![];
    for (number, case) in file.cases.into_iter().enumerate() {
        let case_name = match &case.name {
            Some(part) => format!("{name}::{part}"),
            None => name.to_owned(),
        };
        for &command in &case.settings.commands {
            let runs = command.devices != Devices::One;
            for device in DEVICES.iter().filter(|device| command.devices.take(device) && device.takes(number)) {
                let suffix = if runs { format!("@{}", device.name) } else { String::new() };
                let (case, path) = (case.clone(), path.to_owned());
                let source_name = source_name(name, &case);
                let left_out = left_out_on_gpus(&case_name, &case);
                let trial = Trial::test(format!("{case_name}::{command}{suffix}"), move || {
                    judge(command, &case, &source_name, &path, device)
                        .map_err(|failure| Failed::from(format!("{}:{}: {}", path.display(), case.line, failure.0)))
                });
                let left_out = runs && (left_out.is_some() && device.is_shared || !device.is_here());
                trials.push(trial.with_ignored_flag(left_out));
            }
        }
    }
    trials
}

/// Returns the name of the text in diagnostics: the file, or the case of a file with several.
pub fn source_name(name: &str, case: &Case) -> String {
    match &case.name {
        Some(part) => {
            let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or("ptx");
            format!("{part}.{extension}")
        }
        None => name.rsplit('/').next().unwrap_or(name).to_owned(),
    }
}

fn read(path: &Path) -> Result<TestFile, Failure> {
    let content = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    TestFile::parse(&content, language(path)?).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn language(path: &Path) -> Result<&'static Language, Failure> {
    language_of(path).ok_or_else(|| format!("{}: no language has files with this extension", path.display()).into())
}

/// Returns the folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Runs a command and compares its output with the expectation. Returns the difference as an error.
pub fn judge(
    command: &'static Command,
    case: &Case,
    source_name: &str,
    path: &Path,
    device: &DeviceEntry,
) -> Result<(), Failure> {
    static ONE: Mutex<()> = Mutex::new(());
    // The next launch must not see the effects of this one on a shared machine.
    let _one = device.is_shared.then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner));
    let request = case.request(command, source_name, folder(path), device);
    let outcome = normal(&(command.perform)(&request)?);
    let near = |expected: &str| {
        case.settings.tolerance.is_some_and(|tolerance| tolerance.same(expected, &outcome))
            || device.name != DEVICES[0].name && crate::device_differences::same(expected, &outcome)
    };
    match case.expectations.get(command.name) {
        None => Err(format!("nothing is expected of `{command}`; BLESS=1 writes down what comes out:\n{outcome}").into()),
        Some(expected) if normal(expected) == outcome || near(&normal(expected)) => Ok(()),
        Some(expected) => Err(format!("`{command}` gives something else\n{}", difference(&normal(expected), &outcome)).into()),
    }
}

/// Removes white space at the ends of lines, and empty lines at the end.
pub fn normal(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns both texts with the differing lines marked; common lines at both ends appear once.
pub fn difference(expected: &str, outcome: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), outcome.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mark = |sign: char, lines: &[&str]| lines.iter().map(|line| format!("{sign} {line}\n")).collect::<String>();
    [
        mark(' ', &old[..start]),
        mark('-', &old[start..old.len() - end]),
        mark('+', &new[start..new.len() - end]),
        mark(' ', &old[old.len() - end..]),
    ]
    .concat()
}

/// Rewrites the expectations of a file with the current output. A command that fails keeps its old
/// expectation and is reported.
pub fn bless(name: &str, path: &Path) -> Result<(), Failure> {
    let with_path = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let before = fs::read_to_string(path).map_err(|error| with_path(&error))?;
    let mut file = TestFile::parse(&before, language(path)?).map_err(|error| with_path(&error))?;
    let mut broken = vec![];
    for case in &mut file.cases {
        let source_name = source_name(name, case);
        for command in case.settings.commands.clone() {
            let request = case.request(command, &source_name, folder(path), &DEVICES[0]);
            match (command.perform)(&request) {
                Ok(outcome) => {
                    case.expectations.insert(command.name, normal(&outcome));
                }
                Err(failure) => broken.push(format!("{}:{}: {}", path.display(), case.line, failure.0)),
            }
        }
    }
    let after = file.render();
    if after != before {
        fs::write(path, after).map_err(|error| with_path(&error))?;
    }
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n").into()) }
}
