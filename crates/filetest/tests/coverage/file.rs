//! Files with cases, settings and expectations.

use broadloom_filetest::{FileError, PTX, TestFile, language_of};
use std::path::Path;

fn ptx(text: &str) -> Result<TestFile, FileError> {
    TestFile::parse(text, &PTX)
}

/// Comments of NESL end with the mark they start with; the text stands between both.
#[test]
fn comments_may_have_an_end() {
    let nesl = language_of(Path::new("case.nesl")).unwrap();
    let text = "% test: run %\n1 + 1;\n% expect run: %\n% it = 2 : int %\n";
    let mut file = TestFile::parse(text, nesl).unwrap();
    assert_eq!(file.cases[0].expectations["run"], "it = 2 : int\n");
    assert_eq!(file.render(), text);
    file.cases[0].expectations.insert("run", "it = 3 : int\n".to_owned());
    assert_eq!(file.render(), text.replace("= 2", "= 3"));
}

const ONE: &str =
    "// Prose.\n// test: print\n// test: verify\n.version 8.0\n\n// expect print:\n// a\n//\n//   b\n// expect verify:\n// ok\n";

#[test]
fn a_file_of_one_case() {
    let file = ptx(ONE).unwrap();
    let [case] = &file.cases[..] else { panic!("one case") };
    assert_eq!(case.settings.commands.iter().map(|command| command.name).collect::<Vec<_>>(), ["print", "verify"]);
    assert_eq!(case.text, "// Prose.\n// test: print\n// test: verify\n.version 8.0\n");
    assert_eq!(case.expectations["print"], "a\n\n  b\n");
    assert_eq!(case.expectations["verify"], "ok\n");
}

#[test]
fn rewriting_keeps_everything_but_expectations() {
    let mut file = ptx(ONE).unwrap();
    assert_eq!(file.render(), ONE.replace("8.0\n\n", "8.0\n"));
    file.cases[0].expectations.insert("verify", "bad\n".to_owned());
    assert_eq!(file.render(), ONE.replace("8.0\n\n", "8.0\n").replace("// ok", "// bad"));
}

#[test]
fn cases_share_settings_and_a_template() {
    let text = "// test: verify\nhead\n// ...\ntail\n\n// ----- a\nx\n// expect verify:\n// ok\n\n// ----- b\n// why\n// let: n = \"y\" * 3\n<<n>>\n";
    let file = ptx(text).unwrap();
    assert_eq!(file.cases[0].text, "head\nx\ntail\n");
    assert_eq!(file.cases[1].text, "head\nyyy\ntail\n");
    assert_eq!(file.cases[1].name.as_deref(), Some("b"));
    assert_eq!(file.render(), text);
}

#[test]
fn launches_may_span_lines() {
    let file = ptx("// test: run\n// run: --grid 2 \\\n//      --block 3\n.version 8.0\n").unwrap();
    assert_eq!(file.cases[0].settings.runs, ["--grid 2 --block 3"]);
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    for (text, line, part) in [
        ("// no command\n.version 8.0\n", 1, "no `// test:`"),
        ("// test: frobnicate\n", 1, "not a command"),
        ("// test: print fold\n", 1, "takes nothing"),
        ("// test: transform\n", 1, "needs passes"),
        ("// test: transform to_ssa, frobnicate\n", 1, "`frobnicate` is not a pass"),
        ("// test: print\n// test: print\n", 2, "second time"),
        ("// test: print\nx\n// expect print:\nstray\n", 4, "only comments"),
        ("// test: print\nx\n// expect verify:\n// ok\n", 3, "without `test: verify`"),
        ("// test: run\nx\n", 1, "needs a `// run:`"),
        ("// test: print\n// run: --grid 1\nx\n", 1, "without `// test: run`"),
        ("// test: print\nx\n// ----- a\n", 1, "needs a line"),
        ("// test: print\n// ----- a\n// ----- a\n", 3, "second case"),
        ("// test: print\n// ----- a b\n", 2, "name of a case"),
        ("// test: print\n// let: x\nx\n", 2, "let"),
        ("// test: run\n// tolerance: a bit\nx\n", 2, "not a tolerance"),
    ] {
        let error = ptx(text).unwrap_err();
        assert!(error.line == line && error.message.contains(part), "{text:?}: {error}");
    }
}
