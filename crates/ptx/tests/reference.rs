//! The reference page says what the table says.

use broadloom_ptx::reference_page;
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/INSTRUCTIONS.md");

#[test]
fn page_is_current() {
    let page = reference_page();
    if std::env::var_os("BLESS").is_some() {
        fs::write(PAGE, &page).unwrap();
    }
    let there = fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        there == page,
        "docs/INSTRUCTIONS.md is not what the table says; BLESS=1 cargo test -p broadloom-ptx --test reference"
    );
}
