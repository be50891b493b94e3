//! Random kernels on the interpreter, the CPU and the GPU, compared byte by byte, and every pure instruction
//! separately.

use crate::part::{Options, Summary, say};
use crate::{isolate, saved};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_cuda::Cuda;
use broadloom_device::{Device, Result};
use broadloom_filetest::Failure;
use broadloom_fuzzgen::{Config, Kernel, generate, module, run as run_kernel, sweep};
use broadloom_interp::Interp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The three executors.
struct Executors {
    interp: Device,
    cpu: Device,
    cuda: Device,
}

impl Executors {
    fn new() -> Result<Executors> {
        let options = broadloom_cpu::Options {
            threads: 1,
            memory_bytes: 1 << 30,
            cache: CacheFolder::Nowhere,
            ..broadloom_cpu::Options::default()
        };
        Ok(Executors {
            interp: Device::new(Interp::new(broadloom_interp::Options::default())),
            cpu: Device::new(Cpu::new(options)?),
            cuda: Device::new(Cuda::new(broadloom_cuda::Options::default())?),
        })
    }

    /// Compares the results. Returns a description of the differences as an error.
    fn compare(&self, kernel: &Kernel) -> std::result::Result<(), Failure> {
        let code = module(kernel)?;
        let expected = run_kernel(&self.interp, kernel, &code).map_err(|error| format!("interp: {error}"))?.output;
        let mut wrong = vec![];
        for (name, device) in [("cuda", &self.cuda), ("cpu", &self.cpu)] {
            let found = match run_kernel(device, kernel, &code) {
                Ok(outcome) => outcome.output,
                Err(error) => {
                    wrong.push(format!("{name}: {error:?}"));
                    continue;
                }
            };
            if let Some(at) = (0..expected.len()).find(|at| expected[*at] != found[*at]) {
                let bytes = at / 4 * 4..(at / 4 * 4 + 4).min(expected.len());
                let place = kernel.describe_byte(at);
                wrong.push(format!("{name}: {place}: {:02x?} instead of {:02x?}", &found[bytes.clone()], &expected[bytes]));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
    }
}

/// Compares all kernels, a batch per process.
pub(crate) fn run(options: &Options) -> Summary {
    if options.kernel.is_some() {
        return saved_kernel(options);
    }
    if options.alone {
        return batch(options);
    }
    let mut summary = Summary::default();
    let end = options.seed + options.kernels;
    for seed in (options.seed..end).step_by(BATCH) {
        let count = (end - seed).min(BATCH as u64);
        let found = isolated(seed, count);
        summary.passed += found.passed;
        summary.failed.extend(found.failed);
        say(&format!("seeds to {}: {} passed, {} failed", seed + count, summary.passed, summary.failed.len()));
    }
    let plain = without_optimisations(&mut summary);
    let (passed, kernels) = (summary.passed, options.kernels);
    summary.lines.push(format!("{passed} of {kernels} random kernels give the same bytes on interp, cpu and cuda"));
    let of = |name: &str| summary.failed.iter().filter(|(_, why)| why.contains(name)).count();
    summary.lines.push(format!("cuda differs from interp on {}, cpu on {}", of("cuda: "), of("cpu: ")));
    summary.lines.push(format!("of those on cuda {plain} agree when the assembler does not optimise"));
    summary
}

/// Runs kernels with consecutive seeds in a separate process.
fn processed(seed: u64, count: u64, limit: Duration, level: Option<u8>) -> std::result::Result<Summary, Failure> {
    isolate::run_at(&["kernels", "--kernels", &count.to_string(), "--seed", &seed.to_string()], limit, level)
}

/// Runs kernels with consecutive seeds. Kernels affected by another one's fault or hang are run again
/// separately, and so is a whole batch without a report.
fn isolated(seed: u64, count: u64) -> Summary {
    let (mut summary, again) = match processed(seed, count, BATCH_LIMIT, None) {
        Err(_) => (Summary::default(), (seed..seed + count).collect()),
        Ok(mut some) => {
            let taken_along = |why: &str| ["Lost", "Fault", "is not here"].iter().any(|word| why.contains(word));
            let again: Vec<u64> =
                some.failed.iter().filter(|(_, why)| taken_along(why)).filter_map(|(name, _)| seed_of(name)).collect();
            some.failed.retain(|(_, why)| !taken_along(why));
            (some, again)
        }
    };
    for (seed, outcome) in singly(again, None) {
        summary.add(&format!("seed {seed}"), outcome);
    }
    summary
}

/// Runs kernels in one process each, some of them concurrently.
fn singly(seeds: Vec<u64>, level: Option<u8>) -> Vec<(u64, std::result::Result<Summary, Failure>)> {
    let work = Mutex::new((seeds, vec![]));
    let lock = || work.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                loop {
                    let next = lock().0.pop();
                    let Some(seed) = next else { break };
                    let outcome = processed(seed, 1, KERNEL_LIMIT, level);
                    lock().1.push((seed, outcome));
                }
            });
        }
    });
    work.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

fn seed_of(name: &str) -> Option<u64> {
    name.strip_prefix("seed ")?.parse().ok()
}

/// Repeats kernels with wrong GPU results without the assembler's optimisations. If the results then agree,
/// the error is the optimiser's. Returns the number of such kernels.
fn without_optimisations(summary: &mut Summary) -> usize {
    let differs = |why: &str| why.contains("cuda: ") || why.contains("did not end");
    let seeds = summary.failed.iter().filter(|(_, why)| differs(why)).filter_map(|(name, _)| seed_of(name)).collect();
    let agree = |outcome: std::result::Result<Summary, Failure>| {
        outcome.is_ok_and(|summary| summary.failed.iter().all(|(_, why)| !differs(why)))
    };
    let plain: Vec<u64> =
        singly(seeds, Some(0)).into_iter().filter_map(|(seed, outcome)| agree(outcome).then_some(seed)).collect();
    for (name, why) in &mut summary.failed {
        if seed_of(name).is_some_and(|seed| plain.contains(&seed)) {
            why.insert_str(0, "when the assembler does not optimise it agrees\n");
        }
    }
    plain.len()
}

/// Compares a saved kernel.
fn saved_kernel(options: &Options) -> Summary {
    let mut summary = Summary::default();
    let compared = saved::wanted(options).and_then(|kernel| {
        let three = Executors::new()?;
        three.compare(&kernel)
    });
    match compared {
        Ok(()) => summary.passed += 1,
        Err(why) => summary.failed.push((options.kernel.clone().unwrap_or_default(), why.0)),
    }
    summary
}

/// Kernels per process.
const BATCH: usize = 50;
/// Time limits of a batch's process and of a single kernel's process.
const BATCH_LIMIT: Duration = Duration::from_secs(40);
const KERNEL_LIMIT: Duration = Duration::from_secs(15);
/// Maximum number of concurrent processes with single kernels.
const BESIDE: usize = 6;

fn batch(options: &Options) -> Summary {
    let next = AtomicU64::new(options.seed);
    let end = options.seed + options.kernels;
    let summary = Mutex::new(Summary::default());
    let note = |seed: u64, outcome: std::result::Result<(), Failure>| {
        let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(()) => summary.passed += 1,
            Err(Failure(why)) => {
                say(&format!(
                    "FAILED seed {seed}: {}",
                    why.lines().map(|line| line.chars().take(120).collect()).collect::<Vec<String>>().join("; ")
                ));
                summary.failed.push((format!("seed {seed}"), why));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut three = Executors::new();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let config = Config::default();
                    let outcome = match &three {
                        Ok(three) => three.compare(&generate(seed, &config)),
                        Err(error) => Err(error.into()),
                    };
                    if outcome.is_err() {
                        three = Executors::new();
                    }
                    note(seed, outcome);
                }
            });
        }
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Tests every pure instruction separately, several times.
pub(crate) fn run_sweeps(options: &Options) -> Summary {
    let mut summary = Summary::default();
    let sweeps = sweep(options.seed, &Config::default(), options.sweeps);
    let three = match Executors::new() {
        Ok(three) => three,
        Err(error) => {
            summary.failed.push(("instructions".to_owned(), error.to_string()));
            return summary;
        }
    };
    for sweep in &sweeps {
        let ran = module(&sweep.kernel).map_err(|error| error.to_string()).and_then(|code| {
            let output = |device: &Device| run_kernel(device, &sweep.kernel, &code).map(|outcome| outcome.output);
            let all = (output(&three.interp), output(&three.cpu), output(&three.cuda));
            match all {
                (Ok(interp), Ok(cpu), Ok(cuda)) => Ok((interp, cpu, cuda)),
                (interp, cpu, cuda) => Err(format!("{:?} {:?} {:?}", interp.err(), cpu.err(), cuda.err())),
            }
        });
        let (expected, cpu, cuda) = match ran {
            Ok(outputs) => outputs,
            Err(why) => {
                summary.failed.push((format!("sweep {}", sweep.kernel.seed), why));
                continue;
            }
        };
        for (index, instruction) in sweep.instructions.iter().enumerate() {
            // The manual does not specify the bits of a double NaN.
            let is_double = instruction.contains(" %go");
            let is_nan = |bytes: &[u8]| bytes.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan());
            let mut wrong = vec![];
            for (name, found) in [("cuda", &cuda), ("cpu", &cpu)] {
                let slots = expected.chunks(8).zip(found.chunks(8)).enumerate();
                let mut mine = slots.filter(|(slot, _)| slot / 4 % sweep.instructions.len() == index);
                let differs = mine.find(|(_, (a, b))| a != b && !(is_double && is_nan(a) && is_nan(b)));
                if let Some((slot, (expected, found))) = differs {
                    let thread = slot / 4 / sweep.instructions.len();
                    wrong.push(format!("{name}: thread {thread}: {found:02x?} instead of {expected:02x?}"));
                }
            }
            match wrong.is_empty() {
                true => summary.passed += 1,
                false => summary.failed.push((instruction.clone(), wrong.join("\n"))),
            }
        }
    }
    summary
}
