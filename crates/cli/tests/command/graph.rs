//! Tests of graphs in textual form on the command line.

use crate::harness::broadloom;
use std::path::Path;

fn file(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const SUM: &str = "x: i32[2, 3] = input iota\ny = x + x\ns: i32[2] = reduce(y, combine: sum, axes: [1])\noutput y, s\n";

#[test]
fn a_graph_is_computed() {
    let file = file("sum.graph", SUM);
    for device in ["interp", "cpu"] {
        let outcome = broadloom(&["run", &file, "--device", device]).exits(0);
        assert_eq!(outcome.out, "y: i32[2,3]\n  0: 0 2 4\n  3: 6 8 10\ns: i32[2]\n  0: 6 24\n", "{device}");
        assert_eq!(outcome.err, "");
    }
}

#[test]
fn a_plan_has_estimated_times_and_statistics_measured_ones() {
    let file = file("plan.graph", SUM);
    let outcome = broadloom(&["explain", &file, "--device", "cpu"]).exits(0);
    assert!(outcome.out.contains("kernel") && outcome.out.contains(", estimated "), "{}", outcome.out);
    // The interpreter's time is not estimated.
    let outcome = broadloom(&["explain", &file, "--device", "interp"]).exits(0);
    assert!(outcome.out.contains("a result") && !outcome.out.contains("estimated"), "{}", outcome.out);
    let outcome = broadloom(&["run", &file, "--device", "cpu", "--stats"]).exits(0);
    assert!(outcome.err.contains(", estimated ") && outcome.err.contains(", took "), "{}", outcome.err);
    assert!(outcome.out.ends_with("s: i32[2]\n  0: 6 24\n"), "{}", outcome.out);
}

#[test]
fn the_kernels_of_a_plan_are_ptx_that_can_be_read_back() {
    let nesl = file("emitted.nesl", "sum({float(x) * 0.5 : x in [0:100]});\n");
    for source in [&file("emitted.graph", SUM), &nesl] {
        let outcome = broadloom(&["explain", source, "--device", "cpu", "--emit", "ptx"]).exits(0);
        let modules: Vec<&str> = outcome.out.split("// kernel ").skip(1).collect();
        assert!(!modules.is_empty(), "{}", outcome.out);
        for module in modules {
            let copy = file("emitted.ptx", &format!("// kernel {module}"));
            broadloom(&["explain", &copy]).exits(0).says(&["kernel"]);
        }
    }
}

#[test]
fn mistakes_of_graphs_have_places() {
    let wrong = file("wrong.graph", "x: f32[4] = input iota\ny = x + z\noutput y\n");
    broadloom(&["run", &wrong]).exits(2).complains(&["wrong.graph:2:9", "there is no node `z`"]);
    let right = file("right.graph", SUM);
    broadloom(&["run", &right, "--grid", "4"]).exits(2).complains(&["--grid is for kernels", "leave --grid out"]);
    broadloom(&["explain", &right, "--emit", "llvm"]).exits(2).complains(&["this form is not for graphs", "use --emit ptx"]);
    broadloom(&["explain", "no-such.graph"]).exits(2).complains(&["no-such.graph"]);
}

/// Memory behind the count of a pack is not shown: it differs from device to device.
#[test]
fn results_of_a_pack_end_at_its_count() {
    let text = "x: f32[10] = input iota\nk: f32[] = fill(5)\nc = k < x\nv, n = pack(c, x)\nw = v + v\noutput v, n, w\n";
    let file = file("packed.graph", text);
    for device in ["interp", "cpu"] {
        let outcome = broadloom(&["run", &file, "--device", device]).exits(0);
        let expected = "v (4 of 10 elements): f32[4]\n  0: 6.0 7.0 8.0 9.0\nn: u32[]\n  0: 4\n\
            w (4 of 10 elements): f32[4]\n  0: 12.0 14.0 16.0 18.0\n";
        assert_eq!(outcome.out, expected, "{device}");
    }
}

#[test]
fn a_graph_is_checked() {
    let outcome = broadloom(&["check", &file("checked.graph", SUM)]).exits(0).complains(&["checked.graph`: no findings"]);
    assert!(outcome.out.ends_with("s: i32[2]\n  0: 6 24\n"), "{}", outcome.out);
    broadloom(&["check", &file("unchecked.graph", "y = x + x\n")]).exits(2).complains(&["there is no node `x`"]);
}
