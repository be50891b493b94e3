//! Corpus on the GPU: every kernel in every variant, compared with its reference.

use crate::files::CORPUS;
use crate::isolate;
use crate::part::{Options, Summary, say};
use broadloom_conformance::{DeviceUnderTest, SUITE, VARIANTS};
use broadloom_cuda::Cuda;
use broadloom_device::{Device, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Kernels whose cases fail on purpose.
const FAULTY: [&str; 2] = ["device_assert", "device_trap"];

/// Opens a device that prints to a string.
fn subject() -> Result<DeviceUnderTest> {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let output: broadloom_cuda::Output = Arc::new(move |text: &[u8]| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
    });
    let options = broadloom_cuda::Options { output: Some(output), ..broadloom_cuda::Options::default() };
    Ok(DeviceUnderTest { device: Device::new(Cuda::new(options)?), printed })
}

/// Runs all cases.
pub(crate) fn run(options: &Options) -> Summary {
    let mut summary = Summary::default();
    // The device is kept, so that the context is created once. After a fault it is opened anew.
    let mut kept = subject();
    for case in SUITE {
        for variant in VARIANTS {
            let file = format!("{}.{variant}.ptx", case.kernel);
            let name = format!("corpus/{file}");
            if !name.contains(&options.filter) {
                continue;
            }
            if FAULTY.contains(&case.kernel) && !options.alone {
                summary.add(&name, isolate::run(&["corpus", "--filter", &name], isolate::LIMIT));
                continue;
            }
            if kept.as_ref().is_ok_and(|kept| kept.device.synchronise().is_err()) {
                kept = subject();
            }
            let text = CORPUS.iter().find(|(other, _)| *other == file).map(|(_, text)| *text);
            let outcome = match (subject(), text) {
                (Ok(subject), Some(text)) => case.run_text(&subject, &name, text).map_err(|failure| failure.to_string()),
                (Err(error), _) => Err(error.to_string()),
                (_, None) => Err("its text is not in the bundle".to_owned()),
            };
            match outcome {
                Ok(()) => summary.passed += 1,
                Err(why) => {
                    say(&format!("FAILED {name}"));
                    summary.failed.push((name, why));
                }
            }
        }
    }
    summary
}
