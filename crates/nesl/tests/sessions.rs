//! File tests: every `.nesl` file under `tests/sessions` and `tests/mistakes` is a session. The file beside
//! it with the ending `.out` has the expected answers. `BLESS=1` rewrites the answers.
//!
//! In `tests/sessions` forms are entered one by one and shown with their answers. In `tests/mistakes` the
//! text is entered as a whole, so that the places in messages are those of the file. The programs of
//! `examples/nesl` are also entered as a whole, to the evaluator and to the flattening compiler, which must
//! give equal answers.

mod support;

use broadloom_diag::Sources;
use broadloom_nesl::session::{Engine, Session, Settings};
use broadloom_nesl::syntax::parse;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

/// The folder of the examples, relative to the folder of the tests.
const EXAMPLES: &str = "../../../examples/nesl";

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut trials = vec![];
    for folder in ["sessions", "mistakes", EXAMPLES] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the folder of the tests");
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "nesl"));
        files.sort();
        for path in files {
            let name = format!("{}/{}", folder.trim_start_matches("../"), path.file_stem().unwrap_or_default().to_string_lossy());
            trials.push(Trial::test(name, move || run(&path, folder)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Enters forms one by one; every form is shown after `>` before its answer.
fn conversation(session: &mut Session, text: &str) -> String {
    let mut sources = Sources::new();
    let program = parse(sources.add("", text), text);
    let mut found = String::new();
    for form in &program.forms {
        let form = sources.text(form.span);
        let answer = support::transcript(&session.eval("form", form));
        let end = if answer.is_empty() || answer.ends_with('\n') { "" } else { "\n" };
        found += &format!("> {}\n{answer}{end}", form.replace('\n', "\n> "));
    }
    found
}

fn run(path: &Path, folder: &str) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let settings = support::settings(&text);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut session = support::session(settings);
    let found = match folder {
        "sessions" => conversation(&mut session, &text),
        _ => support::transcript(&session.eval(&name, &text)),
    };
    if folder == EXAMPLES {
        let mut flattened = support::session(Settings { engine: Engine::Vcode, ..settings });
        let other = support::transcript(&flattened.eval(&name, &text));
        if other != found {
            return Err(format!("{}: flattened code answers\n{other}\nthe evaluator\n{found}", path.display()).into());
        }
    }
    let expected_path = path.with_extension("out");
    let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        return Ok(std::fs::write(expected_path, found)?);
    }
    let mut difference = String::new();
    for (index, (found, expected)) in found.lines().zip(expected.lines().chain(std::iter::repeat(""))).enumerate() {
        if found != expected {
            difference += &format!("line {}:\n  found    {found}\n  expected {expected}\n", index + 1);
            if difference.len() > 2000 {
                break;
            }
        }
    }
    Err(format!("{}: the answers differ\n{difference}\nBLESS=1 rewrites them", path.display()).into())
}
