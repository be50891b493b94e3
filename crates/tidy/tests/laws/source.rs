//! Laws for the contents of files.

use broadloom_tidy::{File, Repository, hold, rust};

/// Crates that call a driver, machine code or C.
const MAY_BE_UNSAFE: &[&str] = &["cuda", "fakecuda", "cpu", "cudart", "python", "shim"];

/// Crates that execute instructions: a new opcode must break their build.
const EXECUTORS: &[&str] = &["interp", "cpu"];

/// Names without meaning.
const BANNED_NAMES: &[&str] = &["util", "utils", "misc", "helper", "helpers", "manager", "common"];

/// Maximum number of lines of a file.
const MAX_LINES: usize = 1000;

fn of_crates(file: &File, crates: &[&str]) -> bool {
    file.krate().is_some_and(|krate| crates.contains(&krate))
}

#[test]
fn modules_open_with_what_they_do() {
    let repository = Repository::open();
    let silent = repository.rust_files().filter(|file| !file.text.starts_with("//! "));
    hold("A Rust file opens with `//!`: what it does, its invariant, the section it follows.", silent.map(|f| f.path).collect());
}

#[test]
fn files_stay_readable() {
    let repository = Repository::open();
    let written = repository.files(|path| [".rs", ".inst", ".md", ".cu", ".sh"].iter().any(|end| path.ends_with(end)));
    // Generated pages are as long as what they list.
    let written = written.filter(|file| !["docs/INSTRUCTIONS.md", "docs/MODULES.md"].contains(&file.path.as_str()));
    let long = written.map(|file| (file.text.lines().count(), file.path)).filter(|(lines, _)| *lines > MAX_LINES);
    hold(
        &format!("A file has at most {MAX_LINES} lines; split by class of work."),
        long.map(|(lines, path)| format!("{path} has {lines}")).collect(),
    );
}

#[test]
fn unsafe_stands_in_few_crates_each_with_its_proof() {
    let mut violations = vec![];
    for file in Repository::open().rust_files() {
        let code = rust::code(&file.text);
        for at in rust::words(&code, "unsafe") {
            if !of_crates(&file, MAY_BE_UNSAFE) {
                violations.push(format!("{}: only {MAY_BE_UNSAFE:?} may", file.place(at)));
            } else if code[at..].trim_start_matches("unsafe").trim_start().starts_with('{') && !has_proof(&file.text, at) {
                violations.push(format!("{}: no `// SAFETY:` above it", file.place(at)));
            }
        }
    }
    hold("`unsafe` stands in few crates, and each block says above it why it is sound.", violations);
}

/// Tests if the comment directly above the line of `at`, or on it, starts with `SAFETY:`.
fn has_proof(text: &str, at: usize) -> bool {
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let above = text[..line_start].lines().rev().take_while(|line| line.trim_start().starts_with("//"));
    text[line_start..at].contains("// SAFETY:") || above.into_iter().any(|line| line.trim_start().starts_with("// SAFETY:"))
}

#[test]
fn only_the_command_prints() {
    let mut violations = vec![];
    for file in Repository::open().rust_files() {
        // Cargo reads the output of a build script; examples are programs as users write them.
        let is_example = file.path.starts_with("crates/broadloom/examples/");
        let is_script = file.path.contains("/build/") || file.path.ends_with("/build.rs");
        let allowed = of_crates(&file, &["cli"]) || is_example || is_script;
        if allowed {
            continue;
        }
        let code = rust::code(&file.text);
        for name in ["print", "println", "eprint", "eprintln"] {
            violations.extend(rust::macro_calls(&code, name).map(|at| format!("{}: `{name}!`", file.place(at))));
        }
    }
    hold("Only `cli` and examples print. Return the text, or a diagnostic.", violations);
}

#[test]
fn nothing_is_left_for_later() {
    let mut violations = vec![];
    for file in Repository::open().rust_files() {
        let code = rust::code(&file.text);
        for name in ["todo", "unimplemented", "dbg"] {
            violations.extend(rust::macro_calls(&code, name).map(|at| format!("{}: `{name}!`", file.place(at))));
        }
        violations.extend(code.match_indices("#[ignore").map(|(at, _)| format!("{}: an ignored test", file.place(at))));
        for word in ["TODO", "FIXME", "XXX"] {
            violations.extend(marks(&file, &code, word).map(|at| format!("{}: `{word}`", file.place(at))));
        }
    }
    hold("What is on main is finished: no stub, no mark for later, no ignored test.", violations);
}

/// Returns whether the library of a manifest has a setting.
fn library_says(manifest: &File, setting: &str) -> bool {
    let lines = manifest.text.lines().skip_while(|line| *line != "[lib]").skip(1);
    lines.take_while(|line| !line.starts_with('[')).any(|line| line == setting)
}

/// A library with `test = false` is not compiled as a test program: its tests would never run. With
/// `doctest = false`, neither would its examples.
#[test]
fn tests_stand_where_they_are_run() {
    let repository = Repository::open();
    let mut violations = vec![];
    for manifest in repository.files(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml")) {
        let sources = manifest.path.replace("Cargo.toml", "src/");
        let (untested, unread) = (library_says(&manifest, "test = false"), library_says(&manifest, "doctest = false"));
        for file in repository.rust_files().filter(|file| file.path.starts_with(&sources)) {
            let code = rust::code(&file.text);
            let tests = ["#[cfg(test)]", "#[test]"].iter().find_map(|attribute| code.find(attribute)).filter(|_| untested);
            violations.extend(tests.map(|at| format!("{}: a test", file.place(at))));
            let examples = ["/// ```", "//! ```"].iter().find_map(|fence| file.text.find(fence)).filter(|_| unread);
            violations.extend(examples.map(|at| format!("{}: an example", file.place(at))));
        }
    }
    hold("Tests of crates with `test = false` are in `tests/`; examples need `doctest`. These would never run:", violations);
}

/// Clippy checks a library a second time, as a benchmark, unless it has `bench = false`.
#[test]
fn libraries_without_tests_are_no_benchmarks() {
    let repository = Repository::open();
    let manifests = repository.files(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml"));
    let wrong = manifests.filter(|file| library_says(file, "test = false") && !library_says(file, "bench = false"));
    hold("A library with `test = false` has `bench = false`.", wrong.map(|file| file.path.clone()).collect());
}

/// Returns marks in comments: occurrences of the word where `code` is blank and no quote is before it on its
/// line.
fn marks<'a>(file: &'a File, code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    rust::words(&file.text, word).filter(move |&at| {
        let line_start = file.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = &file.text[line_start..at];
        code.as_bytes()[at] == b' ' && before.contains("//") && !before.contains('"')
    })
}

/// Crates that still return texts as errors. The list only gets shorter.
const ERRORS_AS_TEXT: &[&str] = &["nesl"];

#[test]
fn errors_are_types() {
    let mut violations = vec![];
    let mut unused = ERRORS_AS_TEXT.to_vec();
    for file in Repository::open().rust_files().filter(|file| file.path.contains("/src/")) {
        let code = rust::code(&file.text);
        let library = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for at in rust::words(library, "Result").filter(|at| fails_with_text(&library[*at..])) {
            match of_crates(&file, ERRORS_AS_TEXT) {
                true => unused.retain(|krate| file.krate() != Some(krate)),
                false => violations.push(file.place(at)),
            }
        }
    }
    violations.extend(unused.iter().map(|krate| format!("`{krate}` has none: remove it from `ERRORS_AS_TEXT`")));
    hold("An error is a type with a variant per cause, not a `String`.", violations);
}

/// Returns whether a type that starts with `Result` has `String` as its error.
fn fails_with_text(code: &str) -> bool {
    let Some(arguments) = code.strip_prefix("Result<") else { return false };
    let (mut depth, mut last) = (1, 0);
    for (at, byte) in arguments.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if at > 0 && arguments.as_bytes()[at - 1] == b'-' => {}
            b'>' | b')' | b']' => depth -= 1,
            b',' if depth == 1 => last = at + 1,
            _ => {}
        }
        if depth == 0 {
            return last > 0 && arguments[last..at].trim() == "String";
        }
    }
    false
}

#[test]
fn results_with_texts_are_found() {
    for (code, found) in [
        ("Result<(), String> {", true),
        ("Result<Vec<(u8, String)>, String>", true),
        ("Result<fn(u8) -> u8, String>", true),
        ("Result<String>", false),
        ("Result<(u8, String), Error>", false),
        ("Result<String, Failure>", false),
    ] {
        assert_eq!(fails_with_text(code), found, "{code}");
    }
}

#[test]
fn comments_say_more_than_names() {
    let mut violations = vec![];
    for file in Repository::open().rust_files() {
        let lines = rust::repeated_names(&file.text).into_iter();
        violations.extend(lines.map(|line| format!("{}:{}", file.path, line + 1)));
    }
    hold("A doc comment says something that the name below it does not say.", violations);
}

/// Crates with functions that take patterns of tuples. The list only gets shorter.
const TUPLE_PARAMETERS: &[&str] = &["nesl"];

#[test]
fn parameters_have_names() {
    let mut violations = vec![];
    let mut unused = TUPLE_PARAMETERS.to_vec();
    for file in Repository::open().rust_files() {
        for at in rust::tuple_parameters(&rust::code(&file.text)) {
            match of_crates(&file, TUPLE_PARAMETERS) {
                true => unused.retain(|krate| file.krate() != Some(krate)),
                false => violations.push(file.place(at)),
            }
        }
    }
    violations.extend(unused.iter().map(|krate| format!("`{krate}` has none: remove it from `TUPLE_PARAMETERS`")));
    hold("A parameter has a name: a tuple hides how many there are.", violations);
}

/// Crates that plan for a machine, and their only folder that looks at machines.
const PLANNERS: &[&str] = &["graph", "skeleton", "array", "nesl", "effect", "stream"];
const COST_MODEL: &str = "crates/skeleton/src/cost/";
/// Parts of the description of a machine that decide about speed.
const MACHINE: &[&str] = &[
    "MachineKind",
    "multiprocessors",
    "resident_threads",
    "vector_registers",
    "max_shared_bytes",
    "cache_bytes",
    "core_cache_bytes",
    "peak_operations",
    "peak_bandwidth",
    "bandwidth",
    "launch_cost",
];

/// Returns whether a file plans for a machine. Tests describe machines.
fn plans(file: &File) -> bool {
    of_crates(file, PLANNERS) && !file.path.starts_with(COST_MODEL) && file.path.contains("/src/")
}

/// A comparison by a factor decides what is worth its cost. Those of a language's text and types do not.
#[test]
fn only_the_cost_model_compares_by_factors() {
    let mut violations = vec![];
    for file in Repository::open().rust_files().filter(plans) {
        let exempt = ["crates/stream/src/language/", "crates/nesl/src/infer/"];
        if exempt.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        let found = rust::scaled_comparisons(&rust::code(&file.text));
        violations.extend(found.into_iter().map(|at| file.place(at)));
    }
    hold(&format!("A comparison like `x * 10 < y * 9` is a function of {COST_MODEL} with a name."), violations);
}

/// Types of numbers that decide about speed.
const NUMBERS: &[&str] = &["u", "i", "f", "Each<", "[u", "[i", "std::ops::Range"];

#[test]
fn numbers_of_the_stream_planner_are_in_the_cost_model() {
    let mut violations = vec![];
    for file in Repository::open().rust_files().filter(|file| file.path.starts_with("crates/stream/src/planner/")) {
        let code = rust::code(&file.text);
        for at in rust::words(&code, "const") {
            let ty = code[at..].split_once(": ").map_or("", |(_, ty)| ty);
            let is_number = NUMBERS.iter().any(|number| ty.starts_with(number)) && !code[at..].starts_with("const fn");
            violations.extend(is_number.then(|| file.place(at)));
        }
    }
    hold(&format!("A number that the planner of streams decides by is in {COST_MODEL}."), violations);
}

#[test]
fn only_the_cost_model_looks_at_machines() {
    let mut violations = vec![];
    for file in Repository::open().rust_files() {
        if !plans(&file) {
            continue;
        }
        let code = rust::code(&file.text);
        for word in MACHINE {
            violations.extend(rust::words(&code, word).map(|at| format!("{}: `{word}`", file.place(at))));
        }
    }
    hold(&format!("Patterns and planners ask `Costs` what work costs; only {COST_MODEL} looks at machines."), violations);
}

#[test]
fn executors_name_every_opcode() {
    let mut violations = vec![];
    for file in Repository::open().rust_files().filter(|file| of_crates(file, EXECUTORS) && file.path.contains("/src/")) {
        let code = rust::code(&file.text);
        for arms in rust::matches(&code) {
            let over_opcodes = arms.iter().any(|arm| arm.pattern.contains("Opcode::"));
            let catch_all = arms.iter().filter(|arm| over_opcodes && arm.takes_all());
            violations.extend(catch_all.map(|arm| format!("{}: `{} =>`", file.place(arm.at), arm.pattern)));
        }
    }
    hold(
        "An executor's `match` over opcodes names all of them, so that a new one does not compile until it is thought of.",
        violations,
    );
}

#[test]
fn names_say_something() {
    let mut violations = vec![];
    for path in Repository::open().paths().iter().filter(|path| path.starts_with("crates/") && path.ends_with(".rs")) {
        let parts = path.trim_end_matches(".rs").split('/');
        let empty = parts.filter(|part| BANNED_NAMES.contains(part));
        violations.extend(empty.map(|part| format!("{path}: `{part}`")));
    }
    hold("A file, a folder, a crate is named after its role.", violations);
}

#[test]
fn no_file_names_the_machine_it_was_made_on() {
    let mut violations = vec![];
    for file in Repository::open().files(|_| true) {
        for folder in ["work", "root", "home"] {
            let needle = format!("/{folder}/");
            // A path starts after a blank, a quote or similar; `corpus/work/x` would be a path of the
            // repository.
            let absolute = |at: &usize| !file.text[..*at].ends_with(|c: char| c.is_alphanumeric() || "._-})$".contains(c));
            let places = file.text.match_indices(&needle).map(|(at, _)| at).filter(absolute);
            violations.extend(places.map(|at| format!("{}: `{needle}`", file.place(at))));
        }
    }
    hold("The repository speaks of Broadloom alone: no path of the machine it was made on.", violations);
}
