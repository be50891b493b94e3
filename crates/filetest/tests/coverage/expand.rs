//! Replacements in texts.

use broadloom_filetest::{Replacement, expand};

#[test]
fn replaces_repeats_and_numbers() {
    let a = Replacement::parse(r#" a = "(\x41\u{fc}\"" * 2"#).unwrap();
    let b = Replacement::parse(r#"b="r{#};"*3"#).unwrap();
    assert_eq!(expand("<<a>> <<b>> <<c>> 1<<2", &[a, b]).unwrap(), "(Aü\"(Aü\" r0;r1;r2; <<c>> 1<<2");
}

#[test]
fn cuts_at_the_end() {
    assert_eq!(expand("a<<eof>>\nb", &[]).unwrap(), "a");
}

#[test]
fn refuses_the_rest() {
    for line in
        ["", "a", "a = b", "a = \"b", "a = \"b\" * x", "a b = \"c\"", r#"a = "\q""#, r#"a = "\xFF""#, r#"a = "\u{110000}""#]
    {
        assert!(Replacement::parse(line).is_err(), "{line}");
    }
    let huge = Replacement::parse("a = \"b\" * 99999999999").unwrap();
    assert!(expand("<<a>>", &[huge]).is_err());
}
