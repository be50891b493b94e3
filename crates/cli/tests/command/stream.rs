//! Tests of StreamIt programs in the command.

use crate::harness::{broadloom, output_of, piped, root};
use std::io::{Read, Write};
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

/// The end of a pipe is not lost on a device: all items come out that the evaluator gives.
#[test]
fn the_end_of_a_pipe_is_not_lost_on_devices() {
    let filter = "add float->float filter { work push 1 pop 1 peek 3 { push(pop() + peek(1) * 0.5); } }";
    let text = format!(
        "void->void pipeline Top {{ add FileReader<float>(\"/dev/stdin\"); {filter} add FileWriter<float>(\"/dev/stdout\"); }}"
    );
    let file = program("pipe.str", &text);
    let noise: Vec<u8> = (0..25_000u32).flat_map(|item| ((item * 37 % 101) as f32).to_le_bytes()).collect();
    let run = |input: &[u8], device: &[&str]| output_of(&[&["run", &file], device].concat(), input);
    for bytes in [0, 1, 4, 399, 400, 401, 100_000] {
        let expected = run(&noise[..bytes], &[]);
        assert_eq!(expected.len(), (bytes / 4).saturating_sub(2) * 4, "{bytes}");
        for device in ["cpu", "interp"] {
            assert_eq!(run(&noise[..bytes], &["--device", device]), expected, "{bytes} bytes on {device}");
        }
    }
}

/// A run that writes no items leaves no older file that looks like its output.
#[test]
fn a_file_without_items_is_created() {
    let (empty, old) = (program("empty.f32", ""), program("old.f32", ""));
    let filter = "add float->float filter { work push 1 pop 1 { push(pop() * 2); } }";
    let text =
        format!("void->void pipeline Top {{ add FileReader<float>(\"{empty}\"); {filter} add FileWriter<float>(\"{old}\"); }}");
    let file = program("no_items.str", &text);
    for device in [&[][..], &["--device", "cpu"]] {
        std::fs::write(&old, "stale").unwrap();
        broadloom(&[&["run", &file], device].concat()).exits(0);
        assert_eq!(std::fs::read(&old).unwrap(), b"", "{device:?}");
    }
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
    let file = program("options.str", &format!("{COUNTER}int->void filter Sink {{ work pop 1 {{ println(pop()); }} }}\n"));
    broadloom(&["run", &file, "--grid", "2"]).exits(2).complains(&["--grid is for kernels", "leave --grid out"]);
    broadloom(&["run", &file, "--stats"]).exits(2).complains(&["--stats", "add --device"]);
    broadloom(&["run", "examples/saxpy.ptx", "-i", "3"]).exits(2).complains(&["--iterations is for StreamIt programs"]);
}

#[test]
fn a_device_runs_a_program_and_explains_it() {
    let sink = "int->void filter Sink { work pop 1 { println(pop() * 2); } }";
    let file = program("device.str", &format!("{COUNTER}{sink}\n"));
    let outcome = broadloom(&["run", &file, "-i3", "--device", "interp", "--stats"]).exits(0);
    assert_eq!(outcome.out, "0\n2\n4\n");
    assert!(outcome.err.contains("3 steady states on the device in 1 batch"), "{}", outcome.err);
    assert!(outcome.err.contains("kernel 0: 1 launch, ") && outcome.err.contains(" ms: Source\n"), "{}", outcome.err);
    let outcome = broadloom(&["explain", &file, "--device", "interp"]).exits(0);
    assert!(
        outcome.out.contains("1 filter on the device in 1 kernel") && outcome.out.contains("Sink: prints"),
        "{}",
        outcome.out
    );
    let outcome = broadloom(&["explain", &file, "--device", "interp", "--emit", "kernels"]).exits(0);
    assert!(outcome.out.contains("label=\"kernel 0\"") && outcome.out.contains("-> node1"), "{}", outcome.out);
    assert!(broadloom(&["explain", &file, "--emit", "dot"]).exits(0).out.contains("node0 -> node1"));
    broadloom(&["explain", &file, "--emit", "llvm"]).exits(2).complains(&["`dot`, `kernels`, `svg`"]);
}

/// Fast floats are close to accurate ones. Their kernels use hardware functions.
#[test]
fn floats_are_fast_on_request() {
    let file = "examples/stream/black_scholes.str";
    let accurate = broadloom(&["run", file, "-i4", "--device", "interp"]).exits(0).out;
    let fast = broadloom(&["run", file, "-i4", "--device", "interp", "--math", "fast"]).exits(0).out;
    let numbers = |text: &str| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<f64>>();
    let (accurate, fast) = (numbers(&accurate), numbers(&fast));
    assert_eq!((accurate.len(), fast.len()), (8, 8));
    assert!(accurate.iter().zip(&fast).all(|(one, other)| (one - other).abs() < 1e-4), "{accurate:?} {fast:?}");
    let ptx = |math: &str| broadloom(&["explain", file, "--device", "interp", "--emit", "ptx", "--math", math]).exits(0).out;
    assert!(ptx("fast").contains("ex2.approx") && !ptx("accurate").contains("ex2.approx"));
    broadloom(&["check", file, "-i1", "--math", "fast"]).exits(0).complains(&["no findings"]);
    broadloom(&["run", file, "-i1", "--math", "fast"]).exits(2).complains(&["--math is for floats on a device", "add --device"]);
    broadloom(&["run", "examples/saxpy.ptx", "--math", "fast"]).exits(2).complains(&["--math is for programs in NESL"]);
    broadloom(&["explain", "examples/saxpy.ptx", "--math", "fast"]).exits(2).complains(&["--math is for StreamIt programs"]);
    broadloom(&["check", "examples/saxpy.ptx", "--math", "fast"]).exits(2).complains(&["--math is for StreamIt programs"]);
}

#[test]
fn pictures_are_drawn() {
    let file = "examples/stream/fm_radio.str";
    let before = broadloom(&["explain", file, "--emit", "svg"]).exits(0).out;
    assert!(before.starts_with("<svg ") && before.ends_with("</svg>\n"), "{before}");
    assert!(before.contains(">Demodulator</text>") && before.contains(">pop 4, peek 32, push 1</text>"), "{before}");
    let shown = std::fs::read_to_string(root().join("docs/pictures/fm_radio.svg")).unwrap();
    assert_eq!(before, shown, "docs/pictures/fm_radio.svg is not what `explain --emit svg` gives");
    let after = broadloom(&["explain", file, "--device", "interp", "--emit", "kernels-svg", "--math", "fast"]).exits(0).out;
    assert!(after.contains(">kernel 0: ") && after.contains(">Station</text>"), "{after}");
    let shown = std::fs::read_to_string(root().join("docs/pictures/fm_radio_kernels.svg")).unwrap();
    assert_eq!(after, shown, "docs/pictures/fm_radio_kernels.svg is not what `explain --emit kernels-svg` gives");
}

/// A check runs the kernels of a program under the checker. Errors are reported as in a run.
#[test]
fn kernels_of_a_program_are_watched() {
    let outcome = broadloom(&["check", "examples/stream/bitonic_sort.str", "-i2"]).exits(0);
    assert!(outcome.out.starts_with("0.5 1.5 3.5 "), "{}", outcome.out);
    assert!(outcome.err.contains("no findings in 1 kernel, watched for 2 steady states"), "{}", outcome.err);
    let middle = "int->int filter Middle { work push 1 pop 1 { int[2] a; push(a[pop()]); } }";
    let sink = "int->void filter Sink { work pop 1 { println(pop()); } }";
    let text = format!("{COUNTER}{sink}\n{middle}\n").replace("add Sink", "add Middle; add Sink");
    broadloom(&["check", &program("watched.str", &text), "-i5"]).exits(1).complains(&["watched.str:4:", "index"]);
    broadloom(&["check", "examples/saxpy.ptx", "-i", "3"]).exits(2).complains(&["--iterations is for StreamIt programs"]);
}

/// Mistakes that the end of the input shows are told, and do not change the exit code.
#[test]
fn the_end_of_the_input_tells_of_mistakes() {
    let fir = "float->float filter Fir(int n) { work push 1 pop 1 peek n { push(peek(0) + peek(n - 1)); pop(); } }";
    let text = |input: &str, taps: u32| {
        format!(
            "void->void pipeline Top {{ add FileReader<float>(\"{input}\"); add Fir({taps}); \
             add FileWriter<float>(\"/dev/stdout\"); }}\n{fir}\n"
        )
    };
    let samples: Vec<u8> = (0..10).flat_map(|item| (item as f32).to_le_bytes()).collect();
    let input = program("ten.f32", "");
    std::fs::write(&input, &samples).unwrap();
    let long = program("long_window.str", &text(&input, 64));
    let short = program("short_window.str", &text(&input, 3));
    for device in [&[][..], &["--device", "interp"]] {
        let run = |arguments: &[&str]| broadloom(&[&["run"], arguments, device].concat()).exits(0);
        run(&[&long]).complains(&["ended after 10 items; `Fir` needs 64", "this did not fire", "longer file"]);
        run(&[&short, "-i", "100"]).complains(&["ended after 10 items, in steady state 9 of 100", "-i"]);
        assert_eq!(run(&[&short]).err, "");
        assert_eq!(run(&[&short, "-i", "8"]).err, "");
    }
    broadloom(&["check", &long]).exits(1).complains(&["nothing was checked: 1 kernel did not run for a single steady state"]);
    broadloom(&["check", &short]).exits(0).complains(&["no findings in 1 kernel, watched for 8 steady states"]);
    std::fs::write(&input, &samples[..38]).unwrap();
    broadloom(&["run", &short]).exits(0).complains(&["ends with 2 bytes, less than an item of 4 bytes", "dropped"]);
    std::fs::write(&input, "").unwrap();
    broadloom(&["run", &short]).exits(0).complains(&["has no items", "check the file"]);
}

/// A program without kernels has nothing to check, and says so.
#[test]
fn a_check_without_kernels_says_so() {
    let file = program("no_kernels.str", "void->void filter Top { int n; work { println(n++); } }");
    let outcome = broadloom(&["check", &file, "-i2"]).exits(0);
    assert!(outcome.err.contains("nothing was checked: the program has no kernels"), "{}", outcome.err);
}

/// Files, formats and values come from the command line.
#[test]
fn files_and_values_are_given_on_the_command_line() {
    let text = "static { int offset = 0; }
        void->void pipeline Top(int factor) { add FileReader<int>(\"none\"); add Gain(factor); add FileWriter<int>(\"/dev/null\"); }
        int->int filter Gain(int factor) { work push 1 pop 1 { push(factor * pop() + offset); } }";
    let file = program("bound.str", text);
    for device in [&[][..], &["--device", "cpu"]] {
        let bound =
            [&["run", &file, "--input", "-", "--output", "-", "--format", "s16"], device, &["--", "factor=-3", "offset=1"]];
        let found = output_of(&bound.concat(), &[1, 0, 2, 0, 0xff, 0xff]);
        assert_eq!(found, [0xfe, 0xff, 0xfb, 0xff, 4, 0]);
        let stream = [
            &["run", &file, "--stream", "Gain", "--format", "u8", "--output-format", "s24be"],
            device,
            &["--", "Gain.factor=300"],
        ];
        assert_eq!(output_of(&stream.concat(), &[1, 255]), [0, 1, 44, 1, 42, 212]);
    }
    let refused: [(&[&str], &str); 6] = [
        (&["--", "factor=2", "wrong=1"], "is called `wrong`"),
        (&["--format", "s15", "--", "factor=1"], "there is no format `s15`"),
        (&["--input", "x", "--format", "f32", "--", "factor=1"], "a tape of int holds none"),
        (&["--stream", "Loud"], "there is no stream `Loud`"),
        (&["--latency", "20ms", "--", "factor=1"], "needs the rate of the items"),
        (&["--latency", "soon"], "`soon` is no latency"),
    ];
    for (options, message) in refused {
        broadloom(&[&["run", &file], options].concat()).exits(2).complains(&[message]);
    }
    broadloom(&["run", "examples/saxpy.ptx", "--rate", "3"]).exits(2).complains(&["--rate is for StreamIt programs"]);
}

/// Each piece of a slow pipe comes out before the next one is given, whatever its size.
#[test]
fn live_output_does_not_wait_for_more_input() {
    let filter = "add int->int filter { work push 1 pop 1 peek 2 { push(peek(1)); pop(); } }";
    let text = format!("void->void pipeline Top {{ add FileReader<short>(\"-\"); {filter} add FileWriter<short>(\"-\"); }}");
    let file = program("live.str", &text);
    for options in
        [&[][..], &["--latency", "2ms", "--rate", "8000"], &["--device", "cpu"], &["--device", "cpu", "--latency", "4items"]]
    {
        let mut child = piped(&[&["run", &file], options].concat());
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut next = 0u16;
        for count in [960, 1, 2, 700, 3, 5000, 1] {
            let items: Vec<u8> = (next..next + count).flat_map(u16::to_le_bytes).collect();
            // An item in two pieces is an item.
            let (first, rest) = items.split_at(items.len() - 1);
            input.write_all(first).unwrap();
            input.flush().unwrap();
            input.write_all(rest).unwrap();
            input.flush().unwrap();
            let expected: Vec<u8> = (next.max(1)..next + count).flat_map(u16::to_le_bytes).collect();
            let mut found = vec![0; expected.len()];
            output.read_exact(&mut found).unwrap();
            assert_eq!(found, expected, "{options:?}");
            next += count;
        }
        drop(input);
        assert!(child.wait().unwrap().success());
    }
}
