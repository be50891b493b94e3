//! Runs every kernel and every stream program of the groups, tiny, on the interpreter. Each must agree with
//! its reference, kernels also with their peers. The report must state what was measured.

use broadloom_bench::{Event, Options, Report, groups, run};
use libtest_mimic::{Arguments, Completion, Trial};
use std::path::{Path, PathBuf};

fn measured(names: &[&str], no_peers: bool, trace: Option<PathBuf>) -> (Report, Vec<String>) {
    let options = Options {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        device: Some("interp".to_owned()),
        quick: true,
        no_peers,
        python: None,
        size: None,
        prefetch: None,
        trace,
        peer_folder: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers")),
        command: None,
    };
    let mut remarks = vec![];
    let report = run(&options, &mut |event| {
        if let Event::Remark(text) = event {
            remarks.push(text);
        }
    });
    (report.unwrap(), remarks)
}

fn main() {
    let arguments = Arguments::from_args();
    let trials = vec![
        Trial::ignorable_test("every_kernel_agrees_with_its_reference_and_its_peer", || {
            Ok(every_kernel_agrees_with_its_reference_and_its_peer())
        }),
        Trial::test("every_stream_program_agrees_with_its_reference", || {
            every_stream_program_agrees_with_its_reference();
            Ok(())
        }),
        Trial::test("the_json_has_the_fields_that_it_promises", || {
            the_json_has_the_fields_that_it_promises();
            Ok(())
        }),
        Trial::test("an_effect_is_measured_with_its_straight_translation", || {
            an_effect_is_measured_with_its_straight_translation();
            Ok(())
        }),
        Trial::test("programs_agree_with_their_references", || {
            programs_agree_with_their_references();
            Ok(())
        }),
        Trial::test("functions_and_programs_of_nesl_are_measured_and_checked", || {
            functions_and_programs_of_nesl_are_measured_and_checked();
            Ok(())
        }),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

fn every_kernel_agrees_with_its_reference_and_its_peer() -> Completion {
    let (report, remarks) = measured(&["kernels"], false, None);
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    let names: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
    let all = groups().into_iter().find(|(group, _)| *group == "kernels").unwrap().1;
    assert_eq!(names, all);
    assert_eq!(all.len(), 15);
    assert!(report.figures.iter().any(|figure| figure.key == "empty_launch_us" && figure.value > 0.0));
    // A host without a C++ compiler has no peers, and reports that.
    if remarks.iter().any(|remark| remark == "no peer: no C++ compiler") {
        assert!(report.against_peers().is_none());
        return Completion::ignored_with("skipped: no C++ compiler for the peers; the references agree");
    }
    assert!(remarks.iter().all(|remark| !remark.contains("no peer")), "{remarks:#?}");
    for row in &report.rows {
        assert!(row.peer_ratio().is_some_and(|ratio| ratio > 0.0), "{row:?}");
    }
    assert!(report.against_peers().is_some());
    Completion::Completed
}

fn functions_and_programs_of_nesl_are_measured_and_checked() {
    let names = ["nesl/dot", "nesl/filter_sums", "nesl/list_sort", "nesl_programs/fft", "nesl_programs/sample_sort"];
    let (report, _) = measured(&names, true, None);
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    let found: Vec<String> = report.rows.iter().map(|row| format!("{}/{}", row.group, row.name)).collect();
    assert_eq!(found, names);
    assert!(report.rows.iter().all(|row| row.ms > 0.0 && row.waits.is_some()), "{:#?}", report.rows);
    assert!(report.rows[0].launches > 0, "{:#?}", report.rows[0]);
    let json = report.to_json();
    assert!(json["results"][0]["waits"].is_u64(), "{json:#}");
    // Every program of the folder is a benchmark.
    let programs = groups().into_iter().find(|(group, _)| *group == "nesl_programs").unwrap().1;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/nesl");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "nesl"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut sorted = programs.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, files);
}

/// Checks programs of several kinds. Rows that stay are one kernel.
fn programs_agree_with_their_references() {
    let names = ["softmax", "layer_norm", "column_moments", "compact", "cholesky", "batched", "search_dense", "bin_sums"];
    let names = names.map(|name| format!("programs/{name}"));
    let (report, _) = measured(&names.each_ref().map(String::as_str), true, None);
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    assert_eq!(report.rows.len(), names.len());
    for row in report.rows.iter().filter(|row| matches!(row.name.as_str(), "softmax" | "layer_norm")) {
        assert_eq!(row.launches, 1, "{row:?}");
    }
}

fn an_effect_is_measured_with_its_straight_translation() {
    let (report, _) = measured(&["effects/separable", "effects/degrain"], true, None);
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    let json = report.to_json();
    for (row, bytes) in json["results"].as_array().unwrap().iter().zip([4.0 * 2.0 * 3.0 * 45.0 * 33.0, 4.0 * 2.0 * 40.0 * 40.0]) {
        assert_eq!(row["bytes"], bytes, "{row:#}");
        assert!(row["straight_ms"].as_f64().is_some_and(|ms| ms > 0.0) && row["fastest_ms"].is_number(), "{row:#}");
    }
}

/// Checks restructured and straight programs. The peers are compared when benchmarks are run.
fn every_stream_program_agrees_with_its_reference() {
    let (report, _) = measured(&["streams"], true, None);
    assert!(report.failures.is_empty(), "{:#?}", report.failures);
    assert_eq!(report.rows.len(), 19);
    for row in &report.rows {
        let straight = row.straight.unwrap();
        assert!(straight.launches >= row.launches && row.straight_ratio().is_some(), "{row:?}");
    }
    assert!(report.against_straight().is_some_and(|(_, count)| count == 19));
}

fn the_json_has_the_fields_that_it_promises() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("traces");
    let (report, _) = measured(&["kernels/reduction", "kernels/matrix_product"], true, Some(folder.clone()));
    let json = report.to_json();
    let mut keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["machine", "results"]);
    let trace = std::fs::read(folder.join("reduction.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&trace).unwrap();
    let launches = trace["traceEvents"].as_array().unwrap().iter().filter(|span| span["name"] == "launch reduce_sums");
    assert!(launches.count() >= 5, "{trace:#}");
    for key in ["device", "name", "cores"] {
        assert!(!json["machine"][key].is_null(), "{key} in {json:#}");
    }
    let results = json["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for (row, rate) in results.iter().zip(["gbps", "gflops"]) {
        let mut keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        let mut promised = [
            "group",
            "name",
            "size",
            "device",
            "ms",
            rate,
            "limit_share",
            "launches",
            "compile_ms",
            "peer",
            "peer_ms",
            "peer_ratio",
        ];
        promised.sort_unstable();
        assert_eq!(keys, promised);
        assert_eq!((row["group"].as_str(), row["device"].as_str()), (Some("kernels"), Some("interp")));
        assert!(row["ms"].as_f64().unwrap() > 0.0 && row[rate].as_f64().unwrap() > 0.0);
        assert!(row["peer"].is_null() && row["peer_ms"].is_null() && row["peer_ratio"].is_null());
        // A quick run has no share of a limit, because no limit was measured.
        assert!(row["limit_share"].is_null());
    }
    assert_eq!((results[0]["launches"].as_u64(), results[1]["launches"].as_u64()), (Some(2), Some(1)));
}
