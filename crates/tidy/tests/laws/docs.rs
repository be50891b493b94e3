//! Laws for documents: they name only existing files, and show only what a test produces.

use broadloom_tidy::document::{BlockKind, blocks};
use broadloom_tidy::{Repository, hold};
use std::collections::BTreeSet;

/// Documents that stay below a number of lines.
const SHORT: &[(&str, usize)] = &[("docs/ARCHITECTURE.md", 500), ("docs/PERFORMANCE.md", 350)];

/// Files at the root of the repository.
const ROOT: &[&str] = &[
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "rustfmt.toml",
];

/// Returns the paths that a document names in backticks or as link targets. Fenced blocks are examples and do
/// not count.
fn named_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = vec![];
    let mut fenced = false;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            found.extend(line.split('`').skip(1).step_by(2).filter(|word| is_path(word)).map(|word| (offset, word.to_owned())));
            for link in line.split("](").skip(1) {
                let target = link.split([')', '#']).next().unwrap_or_default();
                if !target.is_empty() && !target.contains("://") {
                    found.push((offset, target.to_owned()));
                }
            }
        }
        offset += line.len();
    }
    found
}

/// Tests if a word has a slash inside and only characters of a path.
fn is_path(word: &str) -> bool {
    let inside = word.trim_start_matches("./").trim_end_matches('/');
    let slash = inside.contains('/') || word.ends_with('/');
    slash && !word.starts_with(['/', '~', '-']) && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
}

#[test]
fn paths_named_in_documents_exist() {
    let repository = Repository::open();
    let mut violations = vec![];
    for file in repository.documents() {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (at, path) in named_paths(&file.text) {
            let clean = path.trim_start_matches("./");
            let beside = if folder.is_empty() { clean.to_owned() } else { join(folder, &path) };
            // Build outputs are not in the repository.
            let built = clean.starts_with("target/");
            if !built && !repository.has(clean) && !repository.has(&beside) {
                violations.push(format!("{}: `{path}`", file.place(at)));
            }
        }
    }
    hold("A path that a document names exists. (What is no path stands without a slash, or outside of backticks.)", violations);
}

#[test]
fn files_at_the_root_are_known() {
    let repository = Repository::open();
    let unknown = repository.paths().iter().filter(|path| !path.contains('/') && !ROOT.contains(&path.as_str()));
    hold("The root has these files alone. Programs and tests write to folders of their own:", unknown.cloned().collect());
}

/// Returns the names of variables of the environment in a text, with their positions.
fn variables(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("BROADLOOM_").map(|(at, _)| {
        let rest = &text[at..];
        (at, rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next().unwrap_or(rest))
    })
}

#[test]
fn variables_named_in_documents_are_read() {
    let repository = Repository::open();
    let code = repository.files(|path| path == "Makefile" || path.ends_with(".rs") || path.ends_with(".sh"));
    let known: BTreeSet<String> =
        code.flat_map(|file| variables(&file.text).map(|(_, name)| name.to_owned()).collect::<Vec<_>>()).collect();
    let mut violations = vec![];
    for file in repository.documents() {
        let unknown = variables(&file.text).filter(|(_, name)| !known.contains(*name));
        violations.extend(unknown.map(|(at, name)| format!("{}: `{name}`", file.place(at))));
    }
    hold("A variable of the environment that a document names is read by code or a script.", violations);
}

/// Text that only an output has at the start of a line.
const OUTPUTS: &[&str] = &["$ ", "> ", "it = ", "error[", "Error[", "warning["];

#[test]
fn every_block_of_a_document_is_tested() {
    let repository = Repository::open();
    let rust: Vec<String> = repository.rust_files().map(|file| file.text).collect();
    let mut violations = vec![];
    // The page derived from the instruction table is tested where it is derived.
    for file in repository.documents().filter(|file| file.path != "docs/INSTRUCTIONS.md") {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let has_examples =
            || rust.iter().any(|text| text.contains("#[doc = include_str!") && text.contains(&format!("/{name}\")")));
        for block in blocks(&file.text) {
            let wrong = match block.kind() {
                Err(malformed) => Some(malformed.to_string()),
                Ok(BlockKind::Console | BlockKind::Skipped(_)) => block.commands().err().map(|malformed| malformed.to_string()),
                Ok(BlockKind::Example) => {
                    (!has_examples()).then(|| "an example in Rust, and no crate includes the page".to_owned())
                }
                Ok(BlockKind::Session) => {
                    let tests = repository.file("crates/python/tests/test_guide.py").map_or(String::new(), |tests| tests.text);
                    (!tests.contains(&format!("\"{name}\""))).then(|| "a session in Python, and no test runs the page".to_owned())
                }
                Ok(BlockKind::Excerpt(path)) => match repository.file(&path) {
                    None => Some(format!("an excerpt of `{path}`, which is not there")),
                    Some(source) => {
                        (!block.is_excerpt_of(&source.text)).then(|| format!("an excerpt that `{path}` does not have"))
                    }
                },
                Ok(BlockKind::Commands | BlockKind::File(_) | BlockKind::Fragment | BlockKind::Diagram) => {
                    let output = block.lines.iter().find(|line| OUTPUTS.iter().any(|start| line.starts_with(start)));
                    output.map(|line| format!("`{line}` is an output: it stands in a `console` block"))
                }
            };
            violations.extend(wrong.map(|reason| format!("{}:{}: {reason}", file.path, block.start)));
        }
    }
    hold(
        "A fenced block of a document is tested. docs/TESTING.md lists the kinds of blocks (*Blocks of documents*).",
        violations,
    );
}

/// Resolves a relative path from a folder of the repository.
fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn documents_of_tables_stay_short() {
    let repository = Repository::open();
    let mut violations = vec![];
    for (path, most) in SHORT {
        let lines = repository.file(path).map_or(usize::MAX, |file| file.text.lines().count());
        if lines >= *most {
            violations.push(format!("{path} has {lines} lines: it stays below {most}"));
        }
    }
    hold("These documents are short. A guide or a commit message takes what is too long for them.", violations);
}

#[test]
fn the_architecture_is_whole() {
    let repository = Repository::open();
    let text = repository.file("docs/ARCHITECTURE.md").expect("docs/ARCHITECTURE.md is missing").text;
    let mut violations = vec![];
    for krate in repository.crates() {
        let heading = format!("\n### `{}`", krate.folder);
        if !text.contains(&heading) {
            violations.push(format!("docs/ARCHITECTURE.md has no paragraph headed \"### `{}`\"", krate.folder));
        }
    }
    hold("docs/ARCHITECTURE.md has a paragraph on every crate.", violations);
}

/// Returns the words in the first column of the glossary's tables.
fn glossary(text: &str) -> impl Iterator<Item = &str> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ").map(|(words, _)| words));
    rows.filter(|words| *words != "word" && *words != "---").flat_map(|words| words.split(", "))
}

#[test]
fn words_of_the_glossary_are_used_and_stand_there_once() {
    let repository = Repository::open();
    let text = repository.file("docs/GLOSSARY.md").expect("docs/GLOSSARY.md is missing").text;
    let sources: String = repository.rust_files().map(|file| file.text.to_lowercase()).collect();
    let words: Vec<&str> = glossary(&text).collect();
    let twice = words.iter().enumerate().filter(|(index, word)| words[..*index].contains(word));
    let mut violations: Vec<String> = twice.map(|(_, word)| format!("`{word}` stands there twice")).collect();
    // Parts of a longer word are words of their own.
    let is_used = |word: &str| word.split(' ').all(|part| sources.contains(&part.to_lowercase()));
    violations.extend(words.iter().filter(|word| !is_used(word)).map(|word| format!("no source uses `{word}`")));
    assert!(words.len() > 50, "only {} words were read", words.len());
    hold("docs/GLOSSARY.md explains each word once, and each is used.", violations);
}

#[test]
fn paths_are_told_from_other_words() {
    assert!(is_path("crates/ptx/src/table.rs") && is_path("docs/") && is_path("../README.md"));
    assert!(!is_path("broadloom run x.ptx") && !is_path("/dev/null") && !is_path("a => b/c") && !is_path("table.rs"));
    assert_eq!(join("docs/a", "../b.md"), "docs/b.md");
}

/// Returns the goals of a makefile, from `.PHONY` or from prerequisites, that have no rule. Make would
/// silently skip such a goal.
fn goals_without_a_rule(text: &str) -> Vec<String> {
    let rule = |line: &str| -> Option<(String, String)> {
        let (goals, asked) = line.split('#').next()?.split_once(':')?;
        let is_rule = !line.starts_with(['\t', ' ', '#']) && !asked.contains('=') && !goals.contains(['?', '(', '=']);
        is_rule.then(|| (goals.to_owned(), asked.to_owned()))
    };
    let rules: Vec<_> = text.lines().filter_map(rule).collect();
    let words = |part: fn(&(String, String)) -> &str, told: &(String, String)| -> Vec<String> {
        part(told).split_whitespace().map(str::to_owned).collect()
    };
    let made: Vec<_> = rules.iter().filter(|told| told.0 != ".PHONY").flat_map(|told| words(|told| &told.0, told)).collect();
    let mut missing: Vec<_> =
        rules.iter().flat_map(|told| words(|told| &told.1, told)).filter(|goal| !made.contains(goal)).collect();
    missing.sort();
    missing.dedup();
    missing
}

#[test]
fn every_goal_of_the_makefile_has_a_rule() {
    let makefile = Repository::open().file("Makefile").expect("there is a Makefile");
    hold(
        "A goal that the Makefile asks for has a rule: without one, make does nothing and says nothing.",
        goals_without_a_rule(&makefile.text),
    );
}

#[test]
fn goals_without_a_rule_are_found() {
    let text = ".PHONY: all tools\nNAME := x:y\nall: tools other # why: so\n\techo a: b\nother:\n\ttrue\n";
    assert_eq!(goals_without_a_rule(text), ["tools"]);
    assert!(goals_without_a_rule(&format!("{text}tools one: other\n")).is_empty());
}
