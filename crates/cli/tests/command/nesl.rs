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

/// Equal errors of forms are counted.
#[test]
fn equal_errors_are_counted() {
    let file = empty_folder("equal-errors").join("equal.nesl");
    std::fs::write(&file, "foo(1);\n".repeat(30) + "bar(1);\n1 + 1;\n").unwrap();
    let outcome = broadloom(&["run", file.to_str().unwrap()]).exits(1).says(&["2 : int"]);
    assert_eq!(outcome.err.matches("Error[N0101]: `foo` is not defined").count(), 3, "{}", outcome.err);
    outcome.complains(&["`foo` is not defined: and 27 more like this\n", "`bar` is not defined"]);
}
