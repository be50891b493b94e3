//! StreamIt programs from the command.

use crate::harness::broadloom;
use std::path::Path;

const COUNTER: &str = "void->void pipeline Top { add Source; add Sink; }\n\
    void->int filter Source { int n; work push 1 { push(n++); } }\n";

fn program(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_program_of_two_files_runs_for_a_number_of_iterations() {
    let counter = program("counter.str", COUNTER);
    let sink = program("sink.str", "int->void filter Sink { work pop 1 { println(pop()); } }");
    let outcome = broadloom(&["run", &counter, &sink, "-i3"]).exits(0);
    assert_eq!(outcome.out, "0\n1\n2\n");
    assert_eq!(outcome.err, "");
}

#[test]
fn mistakes_are_told_with_their_place() {
    let file = program("mistake.str", &format!("{COUNTER}int->void filter Sink {{ work pop 1 {{ println(popp()); }} }}\n"));
    broadloom(&["run", &file]).exits(2).complains(&["mistake.str:3:", "there is no function `popp`"]);
    let file = program("fails.str", &format!("{COUNTER}int->void filter Sink {{ work pop 1 {{ println(6 / pop()); }} }}\n"));
    broadloom(&["run", &file, "-i", "2"]).exits(1).complains(&["fails.str:3:", "division by zero"]);
}

#[test]
fn options_of_kernels_are_refused() {
    let file = program("options.str", COUNTER);
    broadloom(&["run", &file, "--device", "cpu"]).exits(2).complains(&["--device is for kernels", "leave --device out"]);
    broadloom(&["run", "examples/saxpy.ptx", "-i", "3"]).exits(2).complains(&["--iterations is for StreamIt programs"]);
}
