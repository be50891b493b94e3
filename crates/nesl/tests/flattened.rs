//! Flattened code answers what the evaluator answers: every session under `tests/sessions` and `tests/mistakes`, the
//! programs of `BROADLOOM_NESL_PROGRAMS`, and random programs run on both.

mod generator;
mod support;

use broadloom_diag::Sources;
use broadloom_nesl::session::{Engine, Output, Session, Settings};
use broadloom_nesl::syntax::parse;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut trials = vec![];
    for folder in ["sessions", "mistakes"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder of the tests");
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "nesl"));
        files.sort();
        for path in files {
            let name = format!("{folder}/{}", path.file_stem().unwrap_or_default().to_string_lossy());
            trials.push(Trial::test(name, move || compare(&path)));
        }
    }
    // `BROADLOOM_NESL_RANDOM` gives another number of programs, and `BROADLOOM_NESL_SEED` the first seed.
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, seed) = (number("BROADLOOM_NESL_RANDOM", 300), number("BROADLOOM_NESL_SEED", 1));
    trials.push(Trial::test(format!("{count} random programs"), move || random(seed, count)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs random programs. Where a program has several errors, which one is reported depends on the order of work.
fn random(seed: u64, count: u64) -> Result<(), Failed> {
    let mut settings = Settings::default();
    settings.options.max_steps = 3_000_000;
    let [mut evaluator, mut flattened] = sessions(settings);
    let mut wrong = vec![];
    let mut failed = 0;
    for number in seed..seed + count {
        let program = generator::Generator::new(number).program(number as u32);
        let (expected, found) = (evaluator.eval("random", &program), flattened.eval("random", &program));
        let is_error = |outputs: &[Output]| outputs.iter().any(|output| matches!(output, Output::Error(_)));
        failed += u64::from(is_error(&expected));
        let text = |outputs: &[Output]| outputs.iter().map(ToString::to_string).collect::<String>();
        let internal = text(&found).contains("internal error");
        let agree = if is_error(&expected) { is_error(&found) && !internal } else { text(&expected) == text(&found) };
        if !agree {
            wrong.push(format!("seed {number}: {program}  found    {}  expected {}", text(&found), text(&expected)));
        }
        if wrong.len() == 5 {
            break;
        }
    }
    if failed * 2 > count {
        wrong.push(format!("{failed} of {count} programs end in an error"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn sessions(settings: Settings) -> [Session; 2] {
    [support::session(settings), support::session(Settings { engine: Engine::Vcode, ..settings })]
}

/// Answers as text. Of an error the code, the message and the place count; notes name functions, which may differ.
fn answer(outputs: &[Output]) -> String {
    let mut text = String::new();
    for output in outputs {
        match output {
            Output::Error(report) => {
                for error in report.diagnostics.iter() {
                    let limit = ["N0302", "N0303", "N0304"].contains(&error.code.0);
                    let message = if limit { "a limit" } else { &error.message };
                    text += &format!(
                        "{} {message} {:?}\n",
                        error.code,
                        if limit { None } else { error.primary.as_ref().map(|label| label.span) }
                    );
                }
            }
            other => text += &other.to_string(),
        }
    }
    text
}

fn compare(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let mut settings = Settings::default();
    for line in text.lines().take_while(|line| line.starts_with('%')) {
        match line.trim_matches(['%', ' ']) {
            "wide int" => settings.options.widths.wide_int = true,
            "narrow float" => settings.options.widths.narrow_float = true,
            "few steps" => settings.options.max_steps = 100_000,
            "little memory" => settings.options.max_bytes = 1 << 20,
            _ => {}
        }
    }
    let mut sources = Sources::new();
    let program = parse(sources.add("", text.as_str()), &text);
    let [mut evaluator, mut flattened] = sessions(settings);
    let mut wrong = vec![];
    for form in &program.forms {
        let form = sources.text(form.span);
        let (expected, found) = (answer(&evaluator.eval("form", form)), answer(&flattened.eval("form", form)));
        if expected != found {
            wrong.push(format!("{form}\n  found    {found}  expected {expected}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
