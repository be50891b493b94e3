//! File tests with launches, on the GPU.

use crate::files::FILE_TESTS;
use crate::isolate;
use crate::part::{Options, Summary, say};
use broadloom_filetest::{DEVICES, PTX, PrintedText, TestFile, judge, left_out_on_gpus, source_name};
use std::path::Path;

/// Runs all tests.
pub(crate) fn run(options: &Options) -> Summary {
    let mut summary = Summary::default();
    let Some(device) = DEVICES.iter().find(|device| device.name == "cuda") else { return summary };
    let mut lost = false;
    for (file, content) in FILE_TESTS {
        let name = format!("run/{file}");
        if !name.contains(&options.filter) {
            continue;
        }
        if lost && !options.alone {
            summary.add(&name, isolate::run(&["tests", "--filter", &name], isolate::LIMIT));
            continue;
        }
        let cases = match TestFile::parse(content, &PTX) {
            Ok(parsed) => parsed.cases,
            Err(error) => {
                summary.failed.push((name, error.to_string()));
                continue;
            }
        };
        let runs = cases.iter().filter_map(|case| {
            let run = case.settings.commands.iter().find(|command| command.name == "run");
            run.map(|run| (case, *run))
        });
        for (case, run) in runs {
            let case_name = case.name.as_ref().map_or_else(|| name.clone(), |part| format!("{name}::{part}"));
            if let Some(why) = left_out_on_gpus(&case_name, case) {
                summary.skipped.push((case_name, why.to_owned()));
                continue;
            }
            match judge(run, case, &source_name(&name, case), Path::new("."), device) {
                Ok(()) => summary.passed += 1,
                Err(why) => {
                    say(&format!("FAILED {case_name}"));
                    summary.failed.push((case_name, why.0));
                    // A fault destroys the context of this process: the rest runs in other processes.
                    lost = device.open(&PrintedText::default()).is_err();
                }
            }
        }
    }
    summary
}
