//! Test that `docs/INSTRUCTIONS.md` is current. `BLESS=1` rewrites it.

use broadloom_ptx::{Row, Special, reference_page};
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/INSTRUCTIONS.md");

#[test]
fn the_page_is_the_table() {
    let page = reference_page();
    if std::env::var_os("BLESS").is_some() {
        fs::write(PAGE, &page).unwrap();
    }
    let committed = fs::read_to_string(PAGE).unwrap_or_default();
    if page != committed {
        let differing = page.lines().zip(committed.lines()).position(|(a, b)| a != b).unwrap_or(0);
        panic!(
            "docs/INSTRUCTIONS.md differs from the table from line {} on:\n  table: {:?}\n  page:  {:?}\n\
             run `BLESS=1 cargo test -p broadloom-ptx --test reference` to rewrite it",
            differing + 1,
            page.lines().nth(differing),
            committed.lines().nth(differing)
        );
    }
}

#[test]
fn the_page_names_everything() {
    let page = reference_page();
    for row in Row::all() {
        assert!(page.contains(&format!("\n### `{}`\n", row.name)), "`{}` is missing", row.name);
    }
    for special in Special::ALL {
        let name = special.text();
        let base = name.split(['.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']).next().unwrap_or(name);
        assert!(page.contains(base), "`{name}` is missing");
    }
    assert!(!page.contains(":?"), "an operand refers to a modifier without a name");
}
