//! Malicious input ends in errors.

mod support;

use broadloom_diag::Sources;
use broadloom_nesl::eval::SealedHost;
use broadloom_nesl::session::{Output, Session, Settings};
use broadloom_nesl::syntax::{Lines, MAX_NESTING, is_complete, parse};

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
    let mut sealed = Session::new(Settings::default(), Box::new(SealedHost)).expect("a thread for the session");
    let mut own = support::session(Settings::default());
    // Some variables of the library depend on the host.
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

#[test]
fn lines_are_complete_when_their_text_is() {
    let text = "function f(x) = let a = x;\n  b = \"in; two\n lines \\\" and ;\n three\"\n in % a comment;\n of\n lines % (a,\n b)\n;\n\
        c = `\n;\n1 +\n2 $\n{x\n : x in [1]};\n";
    let (mut lines, mut seen) = (Lines::default(), String::new());
    for line in text.split_inclusive('\n') {
        lines.push(line);
        seen += line;
        assert_eq!(lines.is_complete(), is_complete(&seen), "{seen}");
    }
    assert!(lines.is_complete());
}

#[test]
fn many_lines_of_one_form_are_read_once() {
    for line in ["(\n", "let x = 1;\n", "\" a\n", "% a\n"] {
        let mut lines = Lines::default();
        lines.push(line);
        // Scanning all lines again for each new one would take hours.
        for _ in 0..1_000_000 {
            lines.push(if line.len() > 2 && !line.contains(['"', '%']) { line } else { "(\n" });
            assert!(!lines.is_complete());
        }
    }
}

#[test]
fn a_byte_order_mark_begins_a_text() {
    let outputs = support::session(Settings::default()).eval("marked", "\u{feff}set print_length 2;\n[1, 2, 3];");
    assert_eq!(support::transcript(&outputs), "it = [1, 2,...] : [int]\n");
    assert!(error_of("1 \u{feff};").contains("N0001"));
}

#[test]
fn forms_behind_a_broken_one_on_its_line_are_answered() {
    let mut session = support::session(Settings::default());
    let outputs = session.eval("line", "[1, 2,]; 5; if t then 1; else 2; 6; let a = 1 b = 2; c = 3 in a; 7; (1 + ; 8;\n9;");
    let is_error = |output: &Output| matches!(output, Output::Error(_));
    let answers: Vec<Output> = outputs.iter().filter(|output| !is_error(output)).cloned().collect();
    assert_eq!(support::transcript(&answers), "it = 5 : int\nit = 6 : int\nit = 7 : int\nit = 9 : int\n");
    assert_eq!(outputs.iter().filter(|output| is_error(output)).count(), 4, "{}", support::transcript(&outputs));
}
