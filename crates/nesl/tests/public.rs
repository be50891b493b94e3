//! Runs public programs, evaluated, flattened and on devices, and compares the results with recorded answers
//! of the original implementation. On a device every operation is a kernel, however small. Floats may differ
//! there in the last digits: sums are added in another order, and elementary functions differ.
//!
//! `BROADLOOM_NESL_ANSWERS` names a table with the columns repository, path, expression and answer.
//! `BROADLOOM_NESL_PROGRAMS` names a folder with the repositories as `owner/name`. Without them the test is
//! skipped.

mod support;

use broadloom_diag::Sources;
use broadloom_nesl::eval::System;
use broadloom_nesl::run::Target;
use broadloom_nesl::session::{Engine, Output, Session, Settings};
use broadloom_nesl::syntax::{FormKind, parse};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Expression for the answer of the last expression of a program.
const LOAD: &str = "(load; last result)";

/// Expressions with the expected answers.
type Cases = Vec<(String, String)>;

fn main() {
    let (answers, programs) = (std::env::var("BROADLOOM_NESL_ANSWERS"), std::env::var("BROADLOOM_NESL_PROGRAMS"));
    let (Ok(answers), Ok(programs)) = (answers, programs) else {
        let skipped = Trial::test("skipped: no answers and programs are named", || Ok(())).with_ignored_flag(true);
        libtest_mimic::run(&Arguments::from_args(), vec![skipped]).exit();
    };
    let table = std::fs::read_to_string(answers).expect("the table of answers");
    let mut files: BTreeMap<(&str, &str), Cases> = BTreeMap::new();
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [repository, path, expression, expected] = columns[..] else { panic!("four columns in {line}") };
        files.entry((repository, path)).or_default().push((expression.to_owned(), expected.to_owned()));
    }
    let trials = files.into_iter().map(|((repository, path), cases)| {
        let place = Path::new(&programs).join(repository).join(path);
        let name = format!("{repository}/{path} ({} answers)", cases.len());
        let hosts = [("evaluator", Engine::Evaluator), ("flattened", Engine::Vcode)].map(|(engine_name, engine)| {
            let (place, cases) = (place.clone(), cases.clone());
            let start = move || Session::new(Settings { engine, ..Settings::default() }, Box::new(System));
            Trial::test(format!("{engine_name}: {name}"), move || run(&place, &cases, start()?, 0.0, false))
        });
        let devices = support::DEVICES.map(|(device_name, open)| {
            let (place, cases) = (place.clone(), cases.clone());
            let start = move || Session::with_device(Settings::default(), Box::new(System), Target::new(open).with_threshold(0));
            let few = device_name == "interp";
            Trial::test(format!("{device_name}: {name}"), move || run(&place, &cases, start()?, 1e-9, few))
        });
        hosts.into_iter().chain(devices)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.flatten().collect()).exit();
}

/// Tells whether two texts are equal, except for digits of floats, which may differ by a fraction of their
/// values.
fn is_near(found: &str, expected: &str, part: f64) -> bool {
    let numbers = |text: &str| -> Vec<String> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '+');
        text.split_inclusive(|c: char| !is_part(c)).map(str::to_owned).collect()
    };
    let (found, expected) = (numbers(found), numbers(expected));
    let near = |(found, expected): (&String, &String)| {
        let value = |text: &str| text.trim_end_matches([',', ')', ']', ' ']).parse::<f64>().ok().filter(|_| text.contains('.'));
        match (value(found), value(expected)) {
            (Some(a), Some(b)) => (a - b).abs() <= part * b.abs().max(1e-3),
            _ => found == expected,
        }
    };
    found.len() == expected.len() && found.iter().zip(&expected).all(near)
}

/// Loads a program and compares answers. With `few`, expressions of the program itself are left out unless an
/// answer belongs to them: some sort a million numbers.
fn run(place: &PathBuf, cases: &Cases, mut session: Session, part: f64, few: bool) -> Result<(), Failed> {
    let bytes = std::fs::read(place)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if few && cases.iter().all(|(expression, _)| expression != LOAD) {
        let mut sources = Sources::new();
        let program = parse(sources.add("", text.as_str()), &text);
        let forms = program.forms.iter().filter(|form| !matches!(form.kind, FormKind::Expr(_)));
        text = forms.map(|form| format!("{}\n", sources.text(form.span))).collect();
    }
    let loaded = session.eval(&place.to_string_lossy(), &text);
    let mut wrong = vec![];
    for (expression, expected) in cases {
        let outputs = match expression.as_str() {
            LOAD => loaded.clone(),
            _ => session.eval("case", &format!("{expression};")),
        };
        let value = |output: &&Output| matches!(output, Output::Result(binding) if binding.value != "fn");
        let found = outputs.iter().rev().find(value).map_or_else(String::new, |output| output.to_string().trim_end().to_owned());
        if found != *expected && !is_near(&found, expected, part) {
            let errors = loaded.iter().chain(&outputs).filter(|output| matches!(output, Output::Error(_)));
            let errors: String = errors.take(3).map(ToString::to_string).collect();
            wrong.push(format!("{expression}\n  found    {found}\n  expected {expected}\n{errors}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
