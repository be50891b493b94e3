//! References between the modules of a crate go one way.

use broadloom_tidy::modules::{Circle, Modules};
use broadloom_tidy::{Repository, hold};

/// A circle cannot be read from one end, and no part of it can be tested, moved or replaced alone.
#[test]
fn modules_form_no_circles() {
    let repository = Repository::open();
    let mut violations = vec![];
    for krate in repository.crates() {
        for (folder, circles) in modules(&repository, &krate.folder).circles() {
            for Circle { arrows, .. } in circles {
                let arrows = arrows.iter().map(|(from, to)| format!("{from} → {to}")).collect::<Vec<_>>().join(", ");
                violations.push(format!("{}: {arrows}", path(&krate.folder, &folder)));
            }
        }
    }
    hold("Modules of a crate form no circles: move what both need below both.", violations);
}

fn modules(repository: &Repository, krate: &str) -> Modules {
    let source = format!("crates/{krate}/src/");
    let files = repository.files(|path| path.starts_with(&source) && path.ends_with(".rs"));
    Modules::read(&source, files)
}

/// Returns the path of a folder of a crate.
fn path(krate: &str, folder: &str) -> String {
    format!("crates/{krate}/src/{}", folder.replace("::", "/")).trim_end_matches('/').to_owned()
}

/// A reader sees at one glance what stands on what. `BLESS=1` writes the page.
#[test]
fn layers_are_listed() {
    let repository = Repository::open();
    let mut page = String::from(HEAD);
    for krate in repository.crates() {
        for (folder, layers) in modules(&repository, &krate.folder).layers() {
            let layers: Vec<String> = layers.iter().map(|layer| format!("- `{}`\n", layer.join("` `"))).collect();
            if layers.len() > 1 || folder.is_empty() && !layers.is_empty() {
                let level = if folder.is_empty() { "##" } else { "###" };
                let source = path(&krate.folder, &folder);
                page += &format!("\n{level} `{source}`\n\n{}", layers.concat());
            }
        }
    }
    if std::env::var_os("BLESS").is_some() {
        repository.write("docs/MODULES.md", &page);
    }
    let equal = repository.file("docs/MODULES.md").is_some_and(|file| file.text == page);
    let violations = if equal { vec![] } else { vec!["docs/MODULES.md is not what the code says: run with BLESS=1".to_owned()] };
    hold("docs/MODULES.md lists the layers of all crates.", violations);
}

const HEAD: &str = "# Layers of modules

Modules of a crate form layers. A module refers to modules of lower layers of its folder only; modules of one layer do not
refer to each other. A folder is one module of the folder around it, and `mod` is the file of the folder itself. The crates
are in alphabetical order, the highest layer of each first; `ARCHITECTURE.md` says which crate may use which.

This page is generated: `BLESS=1 cargo test -p broadloom-tidy --test laws layers`.
";
