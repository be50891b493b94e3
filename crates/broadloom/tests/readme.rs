//! The README shows the example of arrays as it is, and what it prints.

#[path = "../examples/life.rs"]
mod life;

use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// The blocks of the README with a word behind their backticks.
fn blocks<'a>(readme: &'a str, word: &str) -> Vec<&'a str> {
    let starts = readme.split("\n```").skip(1).step_by(2);
    starts.filter_map(|block| block.strip_prefix(word)?.strip_prefix('\n')).collect()
}

#[test]
fn the_readme_shows_the_example() {
    let (readme, example) = (read("README.md"), read("crates/broadloom/examples/life.rs"));
    let shown = blocks(&readme, "rust");
    assert!(!shown.is_empty());
    for block in shown {
        assert!(example.contains(block), "not in life.rs:\n{block}");
    }
}

/// The picture and how many kernels a generation takes; the rest of a plan may depend on the machine.
#[test]
fn the_readme_shows_what_the_example_prints() {
    let readme = read("README.md");
    let printed = life::life(&broadloom::context("cpu").unwrap(), 200).unwrap();
    let (picture, _) = printed.split_once(" kernel, ").unwrap();
    assert!(picture.ends_with("\n\n1"), "{printed}");
    assert!(blocks(&readme, "text").iter().any(|block| block.starts_with(picture)), "README.md does not show\n{printed}");
}
