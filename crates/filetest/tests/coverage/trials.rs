//! Outputs that are compared with expectations.

use broadloom_filetest::trials::{difference, normal};

#[test]
fn differences_show_only_what_differs() {
    assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), "  a\n- b\n+ x\n+ y\n  c\n");
    assert_eq!(difference("a\na\n", "a\n"), "  a\n- a\n");
}

#[test]
fn trailing_blanks_do_not_count() {
    assert_eq!(normal("a  \n\nb\n\n\n"), "a\n\nb\n");
}
