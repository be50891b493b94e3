//! Tests of NESL programs in the command.

use crate::harness::{broadloom, empty_folder};
use std::path::Path;

fn program(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_program_answers_as_at_the_top_level() {
    let file = program("answers.nesl", "function double(x) = 2 * x; {double(i) : i in [0:4]}; print_line(\"done\");");
    let outcome = broadloom(&["run", &file]).exits(0);
    assert_eq!(outcome.out, "double = fn : int -> int\nit = [0, 2, 4, 6] : [int]\ndone\nit = T : bool\n");
    assert_eq!(outcome.err, "");
}

#[test]
fn a_form_that_fails_is_told_and_the_others_go_on() {
    let file = program("fails.nesl", "1 + 2;\n[1, 2][5];\n1 + 2.0;\n3 * 4;\n");
    let outcome = broadloom(&["run", &file]).exits(1).complains(&["Error", "fails.nesl:2:", "fails.nesl:3:"]);
    assert_eq!(outcome.out, "it = 3 : int\nit = 12 : int\n");
}

#[test]
fn words_behind_the_file_are_arguments_of_the_program() {
    let file = program("arguments.nesl", "let (n, ok) = parse_int(arguments[0]) in (#arguments, n + 1, arguments[1]);");
    let outcome = broadloom(&["run", &file, "--", "-100", "in \"x\\y\".txt"]).exits(0);
    assert_eq!(outcome.out, "it = (2, -99, \"in \\\"x\\\\y\\\".txt\") : int, int, [char]\n");
    let none = program("no_arguments.nesl", "arguments;");
    assert_eq!(broadloom(&["run", &none]).exits(0).out, "it = [] : [[char]]\n");
}

#[test]
fn options_of_kernels_are_refused() {
    let file = program("options.nesl", "1;");
    broadloom(&["run", &file, "--grid", "2"]).exits(2).complains(&["--grid is for kernels", "leave --grid out"]);
    broadloom(&["run", &file, "--device", "abacus"]).exits(3).complains(&["there is no device `abacus` here"]);
    broadloom(&["run", "examples/saxpy.ptx", "--int", "64"]).exits(2).complains(&["--int is for programs in NESL"]);
    broadloom(&["run", "no-such-file.nesl"]).exits(2).complains(&["no-such-file.nesl"]);
}

#[test]
fn a_program_is_compiled_to_vcode_that_runs() {
    let text = "function fact(n) = if n < 2 then 1 else n * fact(n - 1); {fact(i) : i in [3, 0, 7]}; x = [1.5]; #x;";
    let file = program("compiled.nesl", text);
    let outcome = broadloom(&["explain", &file, "--emit", "vcode"]).exits(0);
    assert!(outcome.out.contains("FUNC MAIN"), "{}", outcome.out);
    let vcode = program("compiled.vcode", &outcome.out);
    let outcome = broadloom(&["run", &vcode]).exits(0);
    assert_eq!(outcome.out, "[ 3 ]\n( 6 1 5040 )\n[ 1 ]\n( 1.50000000000000e+00 )\n( 1 )\n");
    let outcome = broadloom(&["explain", &file, "--emit", "flat"]).exits(0);
    assert!(outcome.out.contains("function FACT"), "{}", outcome.out);
    broadloom(&["explain", &file, "--emit", "llvm"]).exits(2).complains(&["`flat`, `vcode` and `ptx`"]);
}

#[test]
fn large_vectors_run_on_the_device() {
    let file = program("large.nesl", "sum({x * x : x in [0:70000]});");
    let outcome = broadloom(&["run", &file, "--device", "interp", "--int", "64", "--stats"]).exits(0);
    assert_eq!(outcome.out, "it = 114330883345000 : int\n");
    outcome.complains(&["device `interp`", "1 waits"]);
    let small = program("small.nesl", "sum({x * x : x in [0:7]});");
    broadloom(&["run", &small, "--stats"]).exits(0).complains(&["no device was needed"]);
    broadloom(&["run", &small, "--float", "32"]).exits(0);
    let fast = program("fast.nesl", "round(sum({sqrt(float(x)) / 2.0 : x in [0:70000]}) / 1000.0);");
    let fast = broadloom(&["run", &fast, "--device", "interp", "--float", "32", "--math", "fast"]).exits(0);
    assert_eq!(fast.out, "it = 6173 : int\n");
    broadloom(&["check", &small]).exits(0).complains(&["no findings"]);
    let outcome = broadloom(&["explain", &small, "--device", "interp"]).exits(0);
    for part in ["it : int", "+_REDUCE INT", "plan 1: 1 kernel"] {
        assert!(outcome.out.contains(part), "{part}: {}", outcome.out);
    }
}

#[test]
fn vcode_that_is_wrong_is_refused_at_its_place() {
    let file = program("wrong.vcode", "FUNC MAIN\nCONST INT 1\nNOT BOOL\nRET\n");
    broadloom(&["run", &file]).exits(2).complains(&["wrong.vcode:3:1", "found INT instead of BOOL"]);
    let file = program("fails.vcode", "FUNC MAIN\nCONST INT 1\nCONST INT 0\n/ INT\nRET\n");
    broadloom(&["run", &file]).exits(1).complains(&["fails.vcode:4:1", "division by zero"]);
    broadloom(&["run", &file, "--device", "interp"]).exits(1).complains(&["fails.vcode:4:1", "division by zero"]);
    broadloom(&["explain", &file]).exits(2).complains(&["a VCODE program has no other form to show"]);
}

/// Only the device knows that there are no elements. Nothing is read for them, not even element 0 of an empty
/// array.
#[test]
fn a_check_of_empty_sequences_finds_nothing() {
    let own = "let e = pack_index(v); l = if #e == 0 then [] int else previous(e, -1) in sum(l)";
    let file = program("nothing.nesl", &format!("{{{own} : v in [[f, f]]}};\n{{{own} : v in [[f, f], [t, f]]}};\n"));
    let outcome = broadloom(&["check", &file]).exits(0);
    assert_eq!(outcome.out, "it = [0] : [int]\nit = [0, -1] : [int]\n");
}

/// A level of calls without elements ends a recursion without a condition.
#[test]
fn a_walk_over_a_tree_ends_at_its_leaves() {
    let tree = "[[1, 2], [3], [] int, [4, 5], [] int, [] int]";
    let text = format!("function size(kids, v) = 1 + sum({{size(kids, c) : c in kids[v]}});\nsize({tree}, 0);\n");
    let file = program("tree.nesl", &text);
    for command in ["run", "check"] {
        let outcome = broadloom(&[command, &file]).exits(0);
        assert!(outcome.out.ends_with("it = 6 : int\n"), "{command}: {}", outcome.out);
    }
}

#[test]
fn a_missing_file_fails_with_its_name_and_the_place() {
    let functions =
        ["read_string_from_file(path)", "read_int_seq_from_file(path)", "read_object_from_file(0, path)", "grep(\"a\", path)"];
    for function in functions {
        let file = program("missing.nesl", &format!("path = \"/no/such/file\";\n{function};\n1 + 1;\n"));
        let outcome = broadloom(&["run", &file]).exits(1);
        let outcome = outcome.complains(&["the file /no/such/file cannot be opened: No such file", "missing.nesl:2:1"]);
        assert!(outcome.out.ends_with("it = 2 : int\n"), "{}", outcome.out);
    }
    let file = program("unreadable.nesl", &format!("read_int_seq_from_file({:?});\n", program("words.txt", "some words")));
    broadloom(&["run", &file]).exits(1).complains(&["words.txt cannot be read: "]);
    // The flag is for programs that go on.
    let file = program("asked.nesl", "let (s, ok, message) = open_in_file(\"/no/such/file\") in ok;\n");
    assert_eq!(broadloom(&["run", &file]).exits(0).out, "it = F : bool\n");
}

/// A pack leaves memory behind its count, which no instruction may read.
#[test]
fn a_check_of_packed_values_finds_nothing() {
    let packed = |ty: &str, values: &str| {
        format!(
            "FUNC MAIN\nCONST SEGDES 4\nCONST {ty} ( {values} )\nCONST BOOL ( F T F T )\nCOPY 1 2\nCOPY 2 1\nCPOP 1 2\nPACK {ty}\n"
        )
    };
    let into_packed = |ty: &str, values: &str| {
        format!("{}COPY 1 1\nCONST INT ( 1 0 )\nCOPY 1 3\nCOPY 1 3\nCOPY 1 4\nDPERMUTE {ty}\nRET\n", packed(ty, values))
    };
    let replaced = |ty: &str, values: &str, new: &str| {
        format!("{}CONST INT ( 1 )\nCONST {ty} ( {new} )\nCPOP 1 2\nREPLACE {ty}\nRET\n", packed(ty, values))
    };
    for (name, text) in [
        ("ints", into_packed("INT", "5 1 4 2")),
        ("floats", into_packed("FLOAT", "5.0 1.0 4.0 2.0")),
        ("bools", into_packed("BOOL", "T F T T")),
        ("replaced", replaced("INT", "5 1 4 2", "9")),
    ] {
        let file = program(&format!("packed_{name}.vcode"), &text);
        let run = broadloom(&["run", &file]).exits(0);
        let check = broadloom(&["check", &file]).exits(0).complains(&["no findings"]);
        assert_eq!(check.out, run.out, "{name}");
    }
}

/// A form that is stopped ends the check: forms behind it do not run, and the summary names the reason.
#[test]
fn a_check_that_is_stopped_says_so() {
    let file = program("endless.nesl", "function loop(n) = loop(n + 1);\nloop(0);\n1 + 1;\n");
    let json = program("stopped.json", "");
    let outcome = broadloom(&["check", &file, "--time-limit", "2", "--json", &json]).exits(1);
    let outcome = outcome.complains(&["; the check was stopped before its end by the time limit"]);
    assert!(!outcome.out.contains("it = 2"), "{}", outcome.out);
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["stopped"], "the time limit");
}

/// Equal errors of forms are counted.
#[test]
fn equal_errors_are_counted() {
    let file = empty_folder("equal-errors").join("equal.nesl");
    std::fs::write(&file, "foo(1);\n".repeat(30) + "bar(1);\n1 + 1;\n").unwrap();
    let outcome = broadloom(&["run", file.to_str().unwrap()]).exits(1).says(&["2 : int"]);
    assert_eq!(outcome.err.matches("Error[N0101]: `foo` is not defined").count(), 3, "{}", outcome.err);
    outcome.complains(&["`foo` is not defined: and 27 more like this\n", "`bar` is not defined"]);
}
