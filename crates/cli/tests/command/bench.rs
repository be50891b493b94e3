//! Tests of `broadloom bench`: names, the table, the JSON.

use crate::harness::{broadloom, empty_folder};

#[test]
fn an_unknown_benchmark_names_what_there_is() {
    broadloom(&["bench", "mandelbort"]).exits(2).complains(&[
        "error[C0012]: there is no benchmark and no group `mandelbort`",
        "there is `mandelbrot`",
        "kernels, arrays, programs, effects, nesl, streams, nesl_programs, segments, overhead, compile, start, interp",
        "histogram",
    ]);
    broadloom(&["bench", "kernels/shuffles"]).exits(2).complains(&["`kernels/shuffles`"]);
    broadloom(&["bench", "kernels", ""]).exits(2).complains(&["no group ``"]);
}

#[test]
fn the_help_sets_every_group_apart_from_its_benchmarks() {
    let outcome = broadloom(&["help", "bench"]).exits(0);
    outcome.says(&["  kernels        vector_add ", "  nesl_programs  dot_product "]);
}

#[test]
fn an_unknown_device_is_the_machines_lack() {
    broadloom(&["bench", "vector_add", "--device", "abacus"]).exits(3).complains(&["error[C0007]", "`abacus`", "interp"]);
}

#[test]
fn the_table_has_a_row_per_benchmark() {
    let outcome =
        broadloom(&["bench", "--quick", "--device", "interp", "--no-peers", "kernels/vector_add", "kernels/scan"]).exits(0);
    let outcome = outcome.says(&["benchmark", "vector_add", "1000", "GB/s", "scan", "8192"]);
    assert_eq!(outcome.out.lines().count(), 3, "{}", outcome.out);
}

#[test]
fn expressions_of_arrays_give_what_their_references_say() {
    let outcome = broadloom(&["bench", "--quick", "--device", "cpu", "--no-peers", "arrays"]).exits(0);
    let outcome = outcome.says(&["sum_abs", "matrix_vector", "convolution", "rotation", "3×64×64"]);
    // Number of kernels of each: Life has one, motion search several.
    let header = outcome.out.lines().find(|line| line.starts_with("benchmark")).unwrap();
    let column = header.find("kernels").unwrap();
    let kernels = |name: &str| -> usize {
        let line: Vec<char> = outcome.out.lines().find(|line| line.starts_with(name)).unwrap().chars().collect();
        line[column..column + "kernels".len()].iter().collect::<String>().trim().parse().unwrap()
    };
    assert_eq!(kernels("life"), 1);
    assert!(kernels("motion") > 4);
}

#[test]
fn the_json_is_for_programs() {
    let call = ["bench", "--quick", "--device", "interp", "--no-peers", "kernels/nbody", "kernels/saxpy"];
    let file = empty_folder("bench_json").join("figures.json");
    let path = file.to_str().unwrap();
    broadloom(&[&call[..], &["--json", path]].concat()).exits(0).says(&["saxpy", "nbody"]);
    let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let shown: serde_json::Value =
        serde_json::from_str(&broadloom(&[&call[..], &["--json", "-"]].concat()).exits(0).out).unwrap();
    for report in [written, shown] {
        assert_eq!(report["machine"]["device"], "interp");
        let names: Vec<&str> = report["results"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(names, ["saxpy", "nbody"]);
    }
    broadloom(&[&call[..], &["--json", "no/such/folder.json"]].concat()).exits(3).complains(&["error[C0004]"]);
}

#[test]
fn compile_times_have_a_median_and_a_worst_with_its_kernel_both_cold_and_cached() {
    let outcome = broadloom(&["bench", "compile", "--device", "interp", "--json", "-"]).exits(0);
    let report: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    let rows = report["results"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["corpus_median", "corpus_worst", "cached_median", "cached_worst"]);
    for pair in rows.chunks(2) {
        let (median, worst) = (&pair[0], &pair[1]);
        assert!(median["size"].as_str().is_some_and(|size| size.contains(" kernels")), "{median}");
        // The slowest one is a kernel of the corpus.
        let kernel = worst["size"].as_str().unwrap();
        assert!(kernel.chars().all(|letter| letter.is_alphanumeric() || "_$".contains(letter)) && !kernel.is_empty(), "{worst}");
        let (median, worst) = (median["ms"].as_f64().unwrap(), worst["ms"].as_f64().unwrap());
        assert!(0.0 < median && median <= worst, "{median} {worst}");
    }
}

#[test]
fn help_lists_the_benchmarks() {
    broadloom(&["bench", "--help"]).exits(0).says(&["kernels", "bitonic_sort", "interp", "Examples:"]);
}
