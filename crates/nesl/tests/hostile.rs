//! Input that is meant to break things ends in errors.

mod support;

use broadloom_diag::Sources;
use broadloom_nesl::eval::Sealed;
use broadloom_nesl::session::{Output, Session, Settings};
use broadloom_nesl::syntax::{MAX_NESTING, is_complete, parse};

fn error_of(text: &str) -> String {
    let mut outputs = support::session(Settings::default()).eval("hostile", text);
    outputs.retain(|output| matches!(output, Output::Error(_)));
    support::transcript(&outputs)
}

#[test]
fn the_library_has_no_errors() {
    assert_eq!(error_of(""), "");
}

#[test]
fn sessions_share_the_library_but_not_what_they_change() {
    let answer = |session: &mut Session, text: &str| support::transcript(&session.eval("shared", text));
    let mut sealed = Session::new(Settings::default(), Box::new(Sealed)).expect("a thread for the session");
    let mut own = support::session(Settings::default());
    // The library asks the host for some of its variables.
    assert_eq!(answer(&mut sealed, "user;"), "it = \"\" : [char]\n");
    assert_eq!(answer(&mut own, "user;"), "it = \"weaver\" : [char]\n");
    answer(&mut own, "function sum(v) = #v; datatype pile([int]); user = 5;");
    let mut later = support::session(Settings::default());
    assert_eq!(answer(&mut later, "sum([3, 4]);"), "it = 7 : int\n");
    assert_eq!(answer(&mut later, "user;"), "it = \"weaver\" : [char]\n");
    assert!(answer(&mut later, "pile([1]);").contains("Error"));
    assert_eq!(answer(&mut own, "(sum([3, 4]), user);"), "it = (2, 5) : int, int\n");
    let mut wide = Settings::default();
    wide.options.widths.wide_int = true;
    assert_eq!(answer(&mut support::session(wide), "max_int;"), "it = 9223372036854775807 : int\n");
    assert_eq!(answer(&mut later, "max_int;"), "it = 2147483647 : int\n");
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = 100_000;
    let texts = [
        format!("{}1{};", "(".repeat(deep), ")".repeat(deep)),
        format!("{}1{};", "[".repeat(deep), "]".repeat(deep)),
        format!("{}1;", "-".repeat(deep)),
        format!("1{};", "+1".repeat(deep)),
        format!("1{};", ",1".repeat(deep)),
        format!("f{};", "(1)".repeat(deep)),
        format!("{}1;", "let x = ".repeat(deep)),
        "if t then ".repeat(deep),
        format!("{}x", "{".repeat(deep)),
        format!("function f(x) : {}int{} = x;", "[".repeat(deep), "]".repeat(deep)),
        format!("{}x => x;", "x => ".repeat(deep)),
    ];
    for text in texts {
        assert!(error_of(&text).starts_with("Error"), "{}", &text[..40]);
        // The parser alone needs no large stack either.
        assert!(!parse(Sources::new().add("", ""), &text).errors.is_empty());
    }
    let fitting = MAX_NESTING as usize / 3;
    let text = format!("{}1{};", "(2 + ".repeat(fitting), ")".repeat(fitting));
    assert_eq!(error_of(&text), "");
}

#[test]
fn large_types_are_errors() {
    let doubling: String = (1..60).map(|i| format!("x{i} = (x{p}, x{p}); ", p = i - 1)).collect();
    assert!(error_of(&format!("x0 = 1; {doubling}")).contains("N0206"));
    let lets: String = (1..60).map(|i| format!("x{i} = (x{p}, x{p}); ", p = i - 1)).collect();
    let error = error_of(&format!("function g(x0) = let {lets} in 0; g(1);"));
    assert!(error.contains("N0206"), "{error}");
    let wrapped: String = (1..400).map(|i| format!("x{i} = [x{p}]; ", p = i - 1)).collect();
    assert!(error_of(&format!("x0 = 1; {wrapped}")).contains("N0206"));
}

#[test]
fn random_bytes_never_panic() {
    let pieces = [
        "function ",
        "f",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "let ",
        "in ",
        "if ",
        "then ",
        "else ",
        "=",
        ";",
        "$",
        ":",
        "::",
        "|",
        "=>",
        "->",
        "<-",
        "x",
        "1",
        "2.5",
        "\"a\"",
        "`c",
        "%",
        "+",
        ",",
        "#",
        "@",
        "datatype ",
        "int",
        "t",
        ":=",
        "*",
        "^",
        "\n",
        "get ",
        "set ",
    ];
    let mut random = broadloom_random::Random::new(7);
    let mut session = support::session(Settings::default());
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..30 {
            text += *random.pick(&pieces);
        }
        let outputs = session.eval("noise", &text);
        assert!(!outputs.iter().any(|output| output.to_string().contains("internal error")), "{text}");
        is_complete(&text);
    }
}

#[test]
fn several_errors_are_found_in_one_text() {
    let text = "function f(x = 1;\nfunction g(x) = x + ;\nh = [1, 2;\n5;\n";
    let mut sources = Sources::new();
    let program = parse(sources.add("t", text), text);
    assert_eq!(program.errors.len(), 3);
    assert_eq!(program.forms.len(), 4);
}

#[test]
fn complete_forms_are_recognised() {
    for text in ["1;", "function f(x) = x $", "let a = 1; b = 2 in a;", "{x : x in v | x > 0};", ""] {
        assert!(is_complete(text), "{text}");
    }
    for text in ["1", "f(1;", "let a = 1;", "% open", "\"open;", "{x : x in v;", "function f(x) = let a = x;"] {
        assert!(!is_complete(text), "{text}");
    }
}
