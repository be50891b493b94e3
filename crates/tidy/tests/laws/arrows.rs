//! Dependencies between crates. The tables of `docs/ARCHITECTURE.md` are the law: other dependencies are not
//! allowed.

use broadloom_tidy::{Crate, DependencyKind, Repository, hold, rust, workspace_dependencies};
use std::collections::{BTreeMap, BTreeSet};

const ARCHITECTURE: &str = "docs/ARCHITECTURE.md";

/// Crates that a crate must not reach, even indirectly, whatever the table says.
const NEVER: &[(&str, &[&str], &str)] = &[
    ("diag", &["ptx", "device"], "diagnostics know no language"),
    ("ptx", &["device", "interp", "launch"], "the waist knows no device and no front end"),
    ("device", &["interp", "launch"], "what front ends see names no executor"),
    ("eval", &["device", "interp", "analysis", "transform", "cpu"], "what instructions compute depends on no executor"),
    ("interp", &["analysis", "transform", "cpu", "launch", "fuzzgen"], "the judge shares no code with what it judges"),
];

/// Row of the crate table: the allowed dependencies of a crate, and the additional ones of its tests.
struct AllowedDependencies {
    always: BTreeSet<String>,
    in_tests: BTreeSet<String>,
}

/// Returns the rows of the table under a heading, each as its cells.
fn table_under(repository: &Repository, heading: &str) -> Vec<Vec<String>> {
    let text = repository.file(ARCHITECTURE).unwrap_or_else(|| panic!("{ARCHITECTURE} is missing")).text;
    let section = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{ARCHITECTURE} has no `{heading}`")).1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Returns the words in backticks.
fn ticked(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn crate_table(repository: &Repository) -> BTreeMap<String, AllowedDependencies> {
    let mut table = BTreeMap::new();
    for row in table_under(repository, "## Crates") {
        let [name, _, always, in_tests] = row.as_slice() else {
            panic!("{ARCHITECTURE}: a row of Crates without four cells: {row:?}")
        };
        for name in ticked(name) {
            let previous = table.insert(name.clone(), AllowedDependencies { always: ticked(always), in_tests: ticked(in_tests) });
            assert!(previous.is_none(), "{ARCHITECTURE}: `{name}` stands twice in the table");
        }
    }
    table
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let repository = Repository::open();
    let table = crate_table(&repository);
    let mut violations = vec![];
    for krate in repository.crates() {
        let Some(allowed) = table.get(&krate.folder) else {
            violations.push(format!("crates/{} is not in the table", krate.folder));
            continue;
        };
        for (package, kind) in &krate.dependencies {
            let Some(used) = Crate::folder_of(package) else { continue };
            let fine = allowed.always.contains(used) || *kind == DependencyKind::Tests && allowed.in_tests.contains(used);
            if !fine && used != krate.folder {
                let tests = if *kind == DependencyKind::Tests { " in its tests" } else { "" };
                violations.push(format!("`{}` uses `{used}`{tests}", krate.folder));
            }
        }
    }
    hold("Arrows between crates follow the table under \"## Crates\" of docs/ARCHITECTURE.md. Not allowed there:", violations);
}

#[test]
fn the_table_names_only_crates_that_exist() {
    let repository = Repository::open();
    let folders: BTreeSet<String> = repository.crates().into_iter().map(|krate| krate.folder).collect();
    let mut violations = vec![];
    for (name, allowed) in crate_table(&repository) {
        let named = std::iter::once(&name).chain(&allowed.always).chain(&allowed.in_tests);
        violations.extend(named.filter(|word| !folders.contains(*word)).map(|word| format!("`{word}` in the row of `{name}`")));
    }
    hold("docs/ARCHITECTURE.md describes what exists. Under \"## Crates\" there is no folder for:", violations);
}

#[test]
fn forbidden_crates_are_out_of_reach() {
    let repository = Repository::open();
    let crates = repository.crates();
    let mut violations = vec![];
    for (from, targets, why) in NEVER {
        let mut reached = BTreeSet::new();
        let mut open = vec![(*from).to_owned()];
        while let Some(folder) = open.pop() {
            let krate = crates.iter().find(|krate| krate.folder == folder);
            let always = krate.iter().flat_map(|krate| &krate.dependencies).filter(|(_, kind)| *kind == DependencyKind::Always);
            let folders = always.filter_map(|(package, _)| Crate::folder_of(package));
            open.extend(folders.filter(|folder| reached.insert((*folder).to_owned())).map(str::to_owned));
        }
        violations.extend(targets.iter().filter(|t| reached.contains(**t)).map(|t| format!("`{from}` reaches `{t}`: {why}")));
    }
    hold("Some crates must not know others, not even through a third.", violations);
}

#[test]
fn libraries_from_elsewhere_have_a_reason() {
    let repository = Repository::open();
    let listed: BTreeSet<String> =
        table_under(&repository, "## Libraries from elsewhere").iter().flat_map(|row| ticked(&row[0])).collect();
    let mut used = BTreeSet::new();
    for krate in repository.crates() {
        used.extend(krate.dependencies.into_iter().map(|(package, _)| package).filter(|p| Crate::folder_of(p).is_none()));
    }
    let unexplained = used.difference(&listed).map(|name| format!("`{name}` is used and has no row"));
    let left_over = listed.difference(&used).map(|name| format!("`{name}` has a row and is not used"));
    hold(
        "Every library has one line under \"## Libraries from elsewhere\" of docs/ARCHITECTURE.md that says why.",
        unexplained.chain(left_over).collect(),
    );
}

#[test]
fn what_is_asked_for_is_used() {
    let repository = Repository::open();
    let crates = repository.crates();
    let mut violations = vec![];
    for krate in &crates {
        let folder = format!("crates/{}/", krate.folder);
        let code: Vec<String> =
            repository.rust_files().filter(|file| file.path.starts_with(&folder)).map(|file| rust::code(&file.text)).collect();
        for (package, _) in &krate.dependencies {
            let name = package.replace('-', "_");
            if !code.iter().any(|text| rust::words(text, &name).next().is_some()) {
                violations.push(format!("crates/{}/Cargo.toml: `{package}`", krate.folder));
            }
        }
    }
    let used: BTreeSet<&String> = crates.iter().flat_map(|krate| &krate.dependencies).map(|(package, _)| package).collect();
    let root = repository.file("Cargo.toml").expect("Cargo.toml is missing");
    let offered = workspace_dependencies(&root).into_iter().filter(|name| Crate::folder_of(name).is_none());
    violations.extend(offered.filter(|name| !used.contains(name)).map(|name| format!("Cargo.toml: `{name}`")));
    hold("A dependency in a manifest is used by code. Not used:", violations);
}

#[test]
fn crates_introduce_themselves() {
    let mut violations = vec![];
    for krate in Repository::open().crates() {
        let expected = if krate.folder == "broadloom" { "broadloom".to_owned() } else { format!("broadloom-{}", krate.folder) };
        if krate.package != expected {
            violations.push(format!("crates/{} is package `{}`, expected `{expected}`", krate.folder, krate.package));
        }
        if krate.description.trim().is_empty() {
            violations.push(format!("crates/{} has no description", krate.folder));
        }
        if !krate.inherits_lints {
            violations.push(format!("crates/{} does not say `[lints] workspace = true`", krate.folder));
        }
    }
    hold("A crate is named after its folder, says in its manifest what it is, and takes the lints of the workspace.", violations);
}
