//! The table is complete, and `docs/MATH.md` is up to date. `BLESS=1` rewrites the page.

use broadloom_scalar::MathFunction;
use broadloom_scalar::math::accuracy::{TABLE, page};

#[test]
fn the_table_names_every_function_in_order() {
    let functions: Vec<MathFunction> = TABLE.iter().map(|row| row.function).collect();
    assert_eq!(functions, MathFunction::ALL);
    for function in MathFunction::ALL {
        assert_eq!(function.accuracy().function, *function);
    }
}

#[test]
fn the_page_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/MATH.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == page(),
        "run `BLESS=1 cargo test -p broadloom-scalar --test math page` to rewrite docs/MATH.md"
    );
}
