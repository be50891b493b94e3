//! Every kernel of the group, tiny, on the interpreter: the kernel, its reference and its peer agree, and the report is what it says.

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
        Trial::test("the_json_has_the_fields_that_it_promises", || {
            the_json_has_the_fields_that_it_promises();
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
    // A host without a C++ compiler has no peers, and says so.
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
        // A quick run is no measurement: no share of a limit that nobody measured.
        assert!(row["limit_share"].is_null());
    }
    assert_eq!((results[0]["launches"].as_u64(), results[1]["launches"].as_u64()), (Some(2), Some(1)));
}
