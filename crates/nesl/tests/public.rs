//! Runs public programs, evaluated and flattened, and compares with recorded answers of the original implementation.
//!
//! `BROADLOOM_NESL_ANSWERS` names a table with the columns repository, path, expression and answer;
//! `BROADLOOM_NESL_PROGRAMS` names a folder that holds the repositories as `owner/name`. Without them the test is skipped.

use broadloom_nesl::eval::System;
use broadloom_nesl::session::{Engine, Output, Session, Settings};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Expressions and the answers that are expected.
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
        let (flattened, other) = (place.clone(), cases.clone());
        [
            Trial::test(format!("evaluator: {name}"), move || run(&place, &cases, Engine::Evaluator)),
            Trial::test(format!("flattened: {name}"), move || run(&flattened, &other, Engine::Vcode)),
        ]
    });
    libtest_mimic::run(&Arguments::from_args(), trials.flatten().collect()).exit();
}

fn run(place: &PathBuf, cases: &Cases, engine: Engine) -> Result<(), Failed> {
    let text = std::fs::read(place)?;
    let mut session = Session::new(Settings { engine, ..Settings::default() }, Box::new(System))?;
    let loaded = session.eval(&place.to_string_lossy(), &String::from_utf8_lossy(&text));
    let mut wrong = vec![];
    for (expression, expected) in cases {
        let outputs = match expression.as_str() {
            "(load; last result)" => loaded.clone(),
            _ => session.eval("case", &format!("{expression};")),
        };
        let value = |output: &&Output| matches!(output, Output::Result(binding) if binding.value != "fn");
        let found = outputs.iter().rev().find(value).map_or_else(String::new, |output| output.to_string().trim_end().to_owned());
        if found != *expected {
            let errors = loaded.iter().chain(&outputs).filter(|output| matches!(output, Output::Error(_)));
            let errors: String = errors.take(3).map(ToString::to_string).collect();
            wrong.push(format!("{expression}\n  found    {found}\n  expected {expected}\n{errors}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
