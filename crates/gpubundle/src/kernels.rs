//! Random kernels on the interpreter, the CPU and the GPU, byte for byte; and every pure instruction by itself.

use crate::{Options, Summary, say};
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_cuda::Cuda;
use broadloom_device::{Device, Result};
use broadloom_fuzzgen::{Config, Kernel, generate, module, run as run_kernel};
use broadloom_interp::Interp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The three executors.
struct Three {
    interp: Device,
    cpu: Device,
    cuda: Device,
}

impl Three {
    fn new() -> Result<Three> {
        let options = broadloom_cpu::Options {
            threads: 1,
            memory_bytes: 1 << 30,
            cache: CacheFolder::Nowhere,
            ..broadloom_cpu::Options::default()
        };
        Ok(Three {
            interp: Device::new(Interp::new(broadloom_interp::Options::default())),
            cpu: Device::new(Cpu::new(options)?),
            cuda: Device::new(Cuda::new(broadloom_cuda::Options { measure: false, ..broadloom_cuda::Options::default() })?),
        })
    }

    /// What differs.
    fn compare(&self, kernel: &Kernel) -> std::result::Result<(), String> {
        let code = module(kernel)?;
        let expected = run_kernel(&self.interp, kernel, &code).map_err(|error| format!("interp: {error}"))?.output;
        for (name, device) in [("cpu", &self.cpu), ("cuda", &self.cuda)] {
            let found = run_kernel(device, kernel, &code).map_err(|error| format!("{name}: {error:?}"))?.output;
            if let Some(at) = (0..expected.len()).find(|at| expected[*at] != found[*at]) {
                let bytes = at / 4 * 4..(at / 4 * 4 + 4).min(expected.len());
                let place = kernel.place(at);
                return Err(format!("{name}: {place}: {:02x?} instead of {:02x?}", &found[bytes.clone()], &expected[bytes]));
            }
        }
        Ok(())
    }
}

/// Compares them all, on as many threads as there are cores.
pub(crate) fn run(options: &Options) -> Summary {
    let next = AtomicU64::new(options.seed);
    let end = options.seed + options.kernels;
    let summary = Mutex::new(Summary::default());
    let note = |seed: u64, outcome: std::result::Result<(), String>| {
        let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(()) => summary.passed += 1,
            Err(why) => {
                say(&format!("FAILED seed {seed}: {}", why.lines().next().unwrap_or_default()));
                summary.failed.push((format!("seed {seed}"), why));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut three = Three::new();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    let config = Config::default();
                    let outcome = match &three {
                        Ok(three) => three.compare(&generate(seed, &config)),
                        Err(error) => Err(error.to_string()),
                    };
                    if outcome.is_err() {
                        three = Three::new();
                    }
                    note(seed, outcome);
                }
            });
        }
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.lines.push(format!("seeds {} to {}, portable, compared on interp, cpu and cuda", options.seed, end));
    summary
}
