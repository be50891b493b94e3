//! Every kernel of the corpus, in every variant, on every device: one trial each, named
//! `device::kernel::variant`.
//!
//! `interp` runs the kernels; `check` runs them in the interpreter's checking mode, which must find nothing,
//! since the corpus is correct. `cuda` is the first GPU; if there is none, its trials are ignored.
//!
//! Most kernels have the same code for both targets. Only a GPU runs such code for each: the other devices do
//! not depend on the target, and verify the module.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use broadloom_conformance::{Case, DeviceUnderTest, SUITE, VARIANTS, corpus};
use broadloom_device::Device;
use broadloom_interp::{Interp, Options};
use libtest_mimic::{Arguments, Failed, Trial};

/// Function that runs one variant of a case on a fresh device.
type RunCase = fn(&Case, &str) -> Result<(), Failed>;

const DEVICES: &[(&str, RunCase)] =
    &[("interp", interp), ("check", check), ("cpu", cpu), ("cpu-threads", cpu_threads), ("cuda", cuda)];

/// Kernels whose cases make them fail on purpose: the failure itself is a finding.
const FAULTY: [&str; 2] = ["device_assert", "device_trap"];

fn main() {
    let arguments = Arguments::from_args();
    let no_gpu = broadloom_cuda::machines().is_err();
    let mut trials = vec![Trial::test("suite::covers_the_corpus", covers_the_corpus)];
    for (device, run) in DEVICES {
        for case in SUITE {
            // The slow path differs little between compilations of one source: one of them is enough.
            let variants = if *device == "cpu-threads" { &VARIANTS[..1] } else { &VARIANTS[..] };
            for variant in variants {
                let trial = Trial::test(format!("{device}::{}::{variant}", case.kernel), move || {
                    if *device != "cuda" && case.is_repeated(variant)? { Ok(()) } else { run(case, variant) }
                });
                trials.push(trial.with_ignored_flag(*device == "cuda" && no_gpu));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn interpreter(check: bool) -> (Interp, DeviceUnderTest) {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let output = Arc::new(move |text: &[u8]| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
    });
    let interp = Interp::new(Options { check, output, ..Options::default() });
    let device = Device::new(interp.clone());
    (interp, DeviceUnderTest { device, printed })
}

fn interp(case: &Case, variant: &str) -> Result<(), Failed> {
    Ok(case.run(&interpreter(false).1, variant)?)
}

/// Opens the CPU, vectorised or one thread at a time.
fn processor(vectorise: bool) -> Result<DeviceUnderTest, Failed> {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let output = Arc::new(move |text: &[u8]| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
    });
    let mut options = broadloom_cpu::Options {
        threads: 2,
        memory_bytes: 8 << 30,
        cache: broadloom_cpu::CacheFolder::Nowhere,
        output,
        ..broadloom_cpu::Options::default()
    };
    options.compile.vectorise = vectorise;
    Ok(DeviceUnderTest { device: Device::new(broadloom_cpu::Cpu::new(options)?), printed })
}

fn cpu(case: &Case, variant: &str) -> Result<(), Failed> {
    Ok(case.run(&processor(true)?, variant)?)
}

fn cpu_threads(case: &Case, variant: &str) -> Result<(), Failed> {
    Ok(case.run(&processor(false)?, variant)?)
}

/// Runs a case on the first GPU, one at a time: a fault affects all of them.
fn cuda(case: &Case, variant: &str) -> Result<(), Failed> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let output: broadloom_cuda::Output = Arc::new(move |text: &[u8]| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
    });
    let options = broadloom_cuda::Options { output: Some(output), ..broadloom_cuda::Options::default() };
    let device = Device::new(broadloom_cuda::Cuda::new(options)?);
    Ok(case.run(&DeviceUnderTest { device, printed }, variant)?)
}

fn check(case: &Case, variant: &str) -> Result<(), Failed> {
    let (interp, subject) = interpreter(true);
    let outcome = case.run(&subject, variant);
    let findings = interp.findings();
    if !FAULTY.contains(&case.kernel) {
        outcome?;
        if !findings.is_empty() {
            return Err(format!("{} finding(s) on a correct kernel, the first: {:#?}", findings.len(), findings[0]).into());
        }
    } else if findings.len() != 1 {
        return Err(format!("one fault on purpose, but {} finding(s)", findings.len()).into());
    }
    Ok(())
}

fn covers_the_corpus() -> Result<(), Failed> {
    let mut sources = BTreeSet::new();
    for entry in std::fs::read_dir(corpus().join("cuda"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        sources.extend(name.strip_suffix(".cu").map(str::to_owned));
    }
    let cases: BTreeSet<String> = SUITE.iter().map(|case| case.kernel.to_owned()).collect();
    let missing: Vec<_> = sources.symmetric_difference(&cases).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("in the corpus or the suite alone: {missing:?}").into()) }
}
