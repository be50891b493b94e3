//! VCODE programs: every `.vcode` file under `tests/vcode` is read, written, read again, verified and run.
//! The file beside it with the ending `.out` has the expected answer. `BLESS=1` rewrites the answers.
//!
//! `BROADLOOM_NESLTEST` names the self-checking program of the original implementation. It runs on the host,
//! and on devices with every operation as a kernel. Without it these tests are skipped.

mod support;

use broadloom_diag::Sources;
use broadloom_nesl::eval::Options;
use broadloom_nesl::run::{Accelerator, Target};
use broadloom_nesl::{machine, vcode};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use support::Open;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vcode");
    let entries = std::fs::read_dir(folder).expect("the folder of the tests");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "vcode"));
    files.sort();
    let mut trials: Vec<Trial> = vec![];
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        trials.push(Trial::test(name, move || compare(&path)));
    }
    trials.push(Trial::test("random words never panic", noise));
    match std::env::var("BROADLOOM_NESLTEST") {
        Ok(path) => {
            let devices = support::DEVICES.map(|(name, open)| (name, Some(open)));
            for (name, open) in [("host", None)].into_iter().chain(devices) {
                let path = PathBuf::from(&path);
                let name = format!("{name}: the self-checking program of the original");
                trials.push(Trial::test(name, move || self_check(&path, open)));
            }
        }
        Err(_) => {
            trials.push(Trial::test("skipped: no self-checking program is named", || Ok(())).with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs a text on the host or on a device and returns its output and its final stack, or its errors.
fn transcript(name: &str, text: &str, open: Option<Open>) -> String {
    let mut sources = Sources::new();
    let source = sources.add(name, text);
    let program = match vcode::parse(source, text) {
        Ok(program) => program,
        Err(errors) => return sources.render_all(&errors),
    };
    let printed = program.to_string();
    let again = vcode::parse(sources.add("printed", printed.as_str()), &printed).map(|program| program.to_string());
    assert_eq!(again.ok(), Some(printed), "reading what was written");
    if let Err(errors) = vcode::verify(&program) {
        return sources.render_all(&errors);
    }
    let mut out = vec![];
    let mut accelerator = open.map(|open| Accelerator::new(Target::new(open).with_threshold(0)));
    let (mut host, mut print) = (support::Memory::default(), |bytes: &[u8]| out.extend_from_slice(bytes));
    let ended = machine::run_on(&program, Options::default(), &mut host, &mut print, accelerator.as_mut());
    let rest = match ended {
        Ok(ended) => ended.stack.concat(),
        Err(fault) => sources.render_all(&fault.diagnostic().into()),
    };
    String::from_utf8_lossy(&out).into_owned() + &rest
}

fn compare(path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let found = transcript(&path.file_name().unwrap_or_default().to_string_lossy(), &text, None);
    let expected_path = path.with_extension("out");
    if std::env::var_os("BLESS").is_some() {
        return Ok(std::fs::write(expected_path, found)?);
    }
    let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
    if found == expected { Ok(()) } else { Err(format!("found\n{found}\nexpected\n{expected}").into()) }
}

/// Runs the self-checking program. It prints a line for each check that fails; the first one fails on
/// purpose.
fn self_check(path: &Path, open: Option<Open>) -> Result<(), Failed> {
    let found = transcript("nesltest.vcode", &String::from_utf8_lossy(&std::fs::read(path)?), open);
    let failed: Vec<&str> =
        found.lines().filter(|line| line.to_lowercase().contains("failed") || line.contains("error")).collect();
    if failed.len() == 1 && found.len() > 500 { Ok(()) } else { Err(format!("{}\n{found}", failed.join("\n")).into()) }
}

/// Programs of random words end in errors or in results.
fn noise() -> Result<(), Failed> {
    let mut words: Vec<String> =
        vcode::Op::ALL.iter().flat_map(|op| ["INT", "FLOAT", "BOOL"].map(|ty| format!("{} {ty}", op.name()))).collect();
    words.extend(vcode::Op::ALL.iter().map(|op| op.name().to_owned()));
    words.extend(vcode::Check::ALL.iter().map(|check| format!("CHECK \"{}\"", check.name())));
    let others = [
        "CONST INT 3",
        "CONST INT ( 1 2 0 )",
        "CONST FLOAT ( 1.5 -2.0 )",
        "CONST BOOL ( T F T )",
        "CONST SEGDES ( 2 1 )",
        "CONST SEGDES 3",
        "CONST BOOL T",
        "COPY 1 0",
        "COPY 2 1",
        "POP 1 1",
        "CPOP 1 2",
        "CPOP 3 0",
        "PAIR",
        "UNPAIR",
        "IF",
        "ELSE",
        "ENDIF",
        "CALL MAIN",
        "CALL OTHER",
        "RET",
        "FUNC OTHER",
        "EXIT",
        "HOST \"@\" \"int\" \"[char]\"",
        "HOST \"iseq\" \"(int, (int, int))\" \"[int]\"",
        "HOST \"nothing\" \"fn\" \"fn\"",
        "CONST INT 99999999999",
        "\"",
        "{",
        ")",
    ];
    words.extend(std::iter::repeat_n(others, 8).flatten().map(str::to_owned));
    let mut random = broadloom_random::Random::new(42);
    let mut next = |bound: usize| random.below(bound);
    let options = Options { max_steps: 10_000, max_bytes: 1 << 20, max_depth: 100, ..Options::default() };
    for _ in 0..3000 {
        let text: String = (0..next(20)).map(|_| words[next(words.len())].clone() + "\n").collect();
        let text = format!("FUNC MAIN\nCONST INT ( 4 2 )\nCONST SEGDES 2\nCONST INT 1\n{text}RET\n");
        let mut sources = Sources::new();
        let source = sources.add("noise", text.as_str());
        if let Ok(program) = vcode::parse(source, &text) {
            // The machine does not rely on the verifier.
            let _ = vcode::verify(&program);
            let _ = machine::run(&program, options, &mut support::Memory::default(), &mut |_| {});
        }
    }
    Ok(())
}
