//! Manifests of crates.

use crate::File;
use toml::{Table, Value};

/// Table of a manifest that a dependency stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyKind {
    /// Needed always, or to build.
    Always,
    /// Needed for tests only.
    Tests,
}

/// Crate of the workspace.
#[derive(Clone, Debug)]
pub struct Crate {
    /// Folder under `crates/`.
    pub folder: String,
    /// Name of the package.
    pub package: String,
    /// The line `description` of the manifest.
    pub description: String,
    /// True if it inherits the lints of the workspace.
    pub inherits_lints: bool,
    /// Packages it depends on.
    pub dependencies: Vec<(String, DependencyKind)>,
}

impl Crate {
    /// Parses a manifest.
    ///
    /// # Panics
    /// If it is not TOML; cargo would have refused it before.
    pub fn read(file: &File) -> Self {
        let table: Table = file.text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path));
        let package = table.get("package").and_then(Value::as_table).cloned().unwrap_or_default();
        let text_of = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let inherits_lints = table.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool) == Some(true);
        let mut dependencies = vec![];
        gather(&table, &mut dependencies);
        for target in table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values) {
            target.as_table().into_iter().for_each(|target| gather(target, &mut dependencies));
        }
        let folder = file.krate().unwrap_or_default().to_owned();
        Crate { folder, package: text_of("name"), description: text_of("description"), inherits_lints, dependencies }
    }

    /// Returns the folder of a package of this workspace; `None` for an external library.
    pub fn folder_of(package: &str) -> Option<&str> {
        if package == "broadloom" { Some("broadloom") } else { package.strip_prefix("broadloom-") }
    }
}

/// Returns the libraries that the workspace manifest offers to its crates.
///
/// # Panics
/// If it is not TOML; cargo would have refused it before.
pub fn workspace_dependencies(file: &File) -> Vec<String> {
    let table: Table = file.text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.path));
    let offered = table.get("workspace").and_then(|workspace| workspace.get("dependencies")).and_then(Value::as_table);
    offered.into_iter().flat_map(Table::keys).cloned().collect()
}

fn gather(table: &Table, into: &mut Vec<(String, DependencyKind)>) {
    let kinds = [
        ("dependencies", DependencyKind::Always),
        ("build-dependencies", DependencyKind::Always),
        ("dev-dependencies", DependencyKind::Tests),
    ];
    for (key, kind) in kinds {
        for (name, value) in table.get(key).and_then(Value::as_table).into_iter().flatten() {
            let package = value.get("package").and_then(Value::as_str).unwrap_or(name);
            into.push((package.to_owned(), kind));
        }
    }
}
