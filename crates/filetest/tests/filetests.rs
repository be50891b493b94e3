//! Runs every file under `tests/filetests`. `BLESS=1` first rewrites the expectations; arguments filter as in
//! any Rust test.

use broadloom_filetest::{bless, find_files, root, trials};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let files = match find_files(&root()) {
        Ok(files) => files,
        Err(error) => {
            let trial = Trial::test("discovery", move || Err(Failed::from(error.to_string())));
            libtest_mimic::run(&arguments, vec![trial]).exit();
        }
    };
    let mut all = vec![];
    if std::env::var_os("BLESS").is_some_and(|value| value != "0") {
        for (name, path) in &files {
            // A filter names files, or trials of a file.
            let chosen = |filter: &String| name.contains(filter.as_str()) || filter.starts_with(name.as_str());
            if !arguments.filter.as_ref().is_none_or(chosen) {
                continue;
            }
            // A file that cannot be rewritten is a failure with its reason.
            if let Err(error) = bless(name, path) {
                all.push(Trial::test(format!("{name}::bless"), move || Err(Failed::from(error.0))));
            }
        }
    }
    all.extend(files.iter().flat_map(|(name, path)| trials(name, path)));
    libtest_mimic::run(&arguments, all).exit();
}
