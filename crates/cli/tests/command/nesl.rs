//! NESL programs from the command.

use crate::harness::broadloom;
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
    broadloom(&["run", &file, "--device", "cpu"]).exits(2).complains(&["--device is for kernels", "leave --device out"]);
    broadloom(&["run", "no-such-file.nesl"]).exits(2).complains(&["no-such-file.nesl"]);
}
