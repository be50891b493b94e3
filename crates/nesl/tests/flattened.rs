//! Flattened code gives the answers of the evaluator: every session under `tests/sessions` and
//! `tests/mistakes`, the programs of `BROADLOOM_NESL_PROGRAMS`, and random programs run on both.

mod generator;
mod support;

use broadloom_device::Stop;
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
    trials.push(Trial::test("programs that once went wrong or easily could", small_programs));
    trials.push(Trial::test("a free array is shared", sharing));
    trials.push(Trial::test("limits end in errors", limits));
    trials.push(Trial::test("lengths that are only counted do not wrap", counted));
    trials.push(Trial::test("an interrupt ends a run and drops the rest of the text", interrupts));
    // `BROADLOOM_NESL_RANDOM` sets the number of programs, and `BROADLOOM_NESL_SEED` the first seed.
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, seed) = (number("BROADLOOM_NESL_RANDOM", 300), number("BROADLOOM_NESL_SEED", 1));
    trials.push(Trial::test(format!("{count} random programs"), move || random(seed, count)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Programs whose answers are compared as text.
const SMALL: [&str; 12] = [
    // Two spaces that a check finds equal can still be distributed from one to the other.
    "let v = [1, 2]; n = {dist(x, c) : x in v; c in [2, 0]} in (zip(v, flatten(n)), n, {{x + y : y in w} : x in v; w in n});",
    "{* print_line(@x ++ @y) : x in [1, 2, 3]; y in \"abc\" | let _ = print_string(\"-\") in oddp(x)};",
    "let k = 10 in map(x => let _ = print_line(@x); _ = print_line(@k) in x + k, [3, 2, 1]);",
    "{* rand(10) + rand(100) : i in [0:0]};",
    "{[i:i * 3:2] : i in [0:4]};",
    "function f(n) = if n == 0 then [] int else f(n - 1) ++ [n]; {f(i) : i in [0, 3, 1]};",
    "function even(n) : int -> bool; function odd(n) = if n == 0 then f else even(n - 1); \
     function even(n) = if n == 0 then t else odd(n - 1); {even(i) : i in [0:5]};",
    "let v = [[1, 2], [] int, [3]] in {{w[i] + j : i in index(#w)} : w in v; j in index(#v)};",
    "{if x > 1 then [x] else [] int : x in [0:4]};",
    "let fs = dist(x => x + 1, 3) in {g(i) : g in fs; i in [1, 2, 3]};",
    "{(max_val(s), min_scan(s)) : s in [\"bca\", \"\", \"z\"]};",
    "{12 / x : x in [1, 0] | x /= 0};",
];

fn small_programs() -> Result<(), Failed> {
    let [mut evaluator, mut flattened] = sessions(Settings::default());
    for program in SMALL {
        let (expected, found) = (answer(&evaluator.eval("small", program)), answer(&flattened.eval("small", program)));
        if expected != found {
            return Err(format!("{program}\n  found    {found}  expected {expected}").into());
        }
    }
    Ok(())
}

/// Checks sharing: an array of n elements, indexed by each of n elements, takes memory for n elements, not n
/// times n.
fn sharing() -> Result<(), Failed> {
    let mut settings = Settings { engine: Engine::Vcode, ..Settings::default() };
    settings.options.max_bytes = 16 << 20;
    let mut session = support::session(settings);
    let text = "function at(v, i) = v[i];
        function search(v, k, lo, hi) = if hi - lo < 2 then lo
          else let m = (lo + hi) / 2 in if v[m] <= k then search(v, k, m, hi) else search(v, k, lo, m);
        let x = index(5000) in sum({x[i] + #x : i in x}) + sum({at(x, i) : i in x}) + sum({sum(x -> [i:i + 1]) : i in x});
        let x = index(5000) in all({search(x, k, 0, #x) == k : k in x});";
    let found: Vec<String> = session.eval("sharing", text).iter().skip(2).map(ToString::to_string).collect();
    // The sums wrap to 32 bits.
    let sum = (5000i64 * 4999 / 2 * 3 + 5000 * 5000) as i32;
    let expected = [format!("it = {sum} : int\n"), "it = T : bool\n".to_owned()];
    if found == expected { Ok(()) } else { Err(format!("{found:?}").into()) }
}

fn limits() -> Result<(), Failed> {
    let mut settings = Settings { engine: Engine::Vcode, ..Settings::default() };
    settings.options.max_steps = 1_000_000;
    settings.options.max_bytes = 1 << 20;
    let mut session = support::session(settings);
    let cases = [
        ("function down(n) = 1 + down(n + 1); down(0);", "N0302"),
        ("function again(n) = again(n + 1); again(0);", "N0303"),
        ("function grow(v) = grow(v ++ v); grow([1]);", "N0304"),
        ("dist(0, 2000000000);", "N0304"),
        ("[0:2000000000];", "N0304"),
        ("[-2000000000:2000000000];", "N0304"),
        ("function each(n) = sum({each(n + i) : i in [0:2]}); each(0);", "N030"),
    ];
    for (text, code) in cases {
        let found: String = session.eval("limit", text).iter().map(ToString::to_string).collect();
        if !found.contains(&format!("Error[{code}")) {
            return Err(format!("{text}\n{found}").into());
        }
    }
    Ok(())
}

/// Checks sequences whose elements are not needed, so none is stored. Their number is correct, or an error
/// names the place.
fn counted() -> Result<(), Failed> {
    for (is_wide, program, expected) in support::COUNTED {
        let mut settings = Settings { engine: Engine::Vcode, ..Settings::default() };
        settings.options.widths.wide_int = is_wide;
        let found: String = support::session(settings).eval("counted", program).iter().map(ToString::to_string).collect();
        let is_placed = !expected.starts_with("Error") || found.contains("--> counted:1:");
        if !found.contains(expected) || !is_placed {
            return Err(format!("{program}\n  found    {found}  expected {expected}").into());
        }
    }
    Ok(())
}

fn interrupts() -> Result<(), Failed> {
    static STOP: Stop = Stop::new();
    let mut settings = Settings::default();
    settings.options.stop = Some(&STOP);
    for mut session in sessions(settings) {
        STOP.clear();
        session.eval("before", "function again(n) = again(n + 1); x = 5;");
        let endless = "again(0); y = 6;";
        let watch = std::thread::spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            STOP.request_by_time_limit();
        });
        let found = answer(&session.eval("interrupt", endless));
        watch.join().map_err(|_| "the thread that interrupts has failed")?;
        STOP.clear();
        let after = answer(&session.eval("interrupt", "x + 1; y;"));
        if !found.contains("N0307") || found.contains("y = 6") || !after.starts_with("it = 6 : int") {
            return Err(format!("{found}\n{after}").into());
        }
    }
    Ok(())
}

/// Runs random programs. If a program has several errors, the reported one depends on the order of work.
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

/// Returns answers as text. For an error, the code, the message and the place are compared; notes name
/// functions, which may differ.
fn answer(outputs: &[Output]) -> String {
    let mut text = String::new();
    for output in outputs {
        match output {
            Output::Error(report) => {
                for error in report.diagnostics.iter() {
                    let limit = ["N0302", "N0303", "N0304"].contains(&error.code.0);
                    // The first limit that is reached depends on the order of work.
                    let (code, message) = if limit { ("N030", "a limit") } else { (error.code.0, error.message.as_str()) };
                    text += &format!(
                        "{code} {message} {:?}\n",
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
    let settings = support::settings(&text);
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
