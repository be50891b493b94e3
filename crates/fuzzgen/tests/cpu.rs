//! The CPU gives the interpreter's answers to generated kernels, byte for byte: as vectors of every width that the host has and one
//! thread at a time, optimised and not.
//!
//! `BROADLOOM_FUZZ_KERNELS=n` makes n of them, from the seed `BROADLOOM_FUZZ_SEED` on; `BROADLOOM_SWEEP=n` goes through every pure
//! instruction n times.

use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_fuzzgen::{Config, Kernel, Random, generate, module, run, sweep};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::Verified;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A way to run kernels on the CPU.
struct Way {
    name: String,
    cpu: Cpu,
    device: Device,
}

impl Way {
    fn new(vectors: &str, vectorise: bool, optimise: bool) -> Option<Way> {
        // Blocks are taken in turns by two workers: their order must not matter.
        let options = broadloom_cpu::Options {
            threads: 2,
            memory_bytes: 1 << 30,
            cache: CacheFolder::Nowhere,
            ..broadloom_cpu::Options::default()
        };
        let mut options = options.vectors(vectors)?;
        options.compile.vectorise = vectorise;
        options.compile.optimise = optimise;
        let cpu = Cpu::new(options).unwrap_or_else(|error| panic!("{error}"));
        let name = format!(
            "{vectors}{}{}",
            if vectorise { "" } else { ", one thread at a time" },
            if optimise { "" } else { ", not optimised" }
        );
        Some(Way { name, device: Device::new(cpu.clone()), cpu })
    }
}

/// All ways, those with vectors first.
struct Ways {
    vectors: Vec<Way>,
    others: Vec<Way>,
}

impl Ways {
    fn new() -> Ways {
        let vectors: Vec<Way> = ["avx512", "avx2", "sse4.2"].into_iter().filter_map(|kind| Way::new(kind, true, true)).collect();
        assert!(!vectors.is_empty(), "a host without vectors that are known here");
        let others = [(true, false), (false, true), (false, false)];
        Ways {
            vectors,
            others: others.into_iter().filter_map(|(vectorise, optimise)| Way::new("host", vectorise, optimise)).collect(),
        }
    }

    /// One width for each seed, in turn, and now and then another way.
    fn of(&self, seed: u64) -> impl Iterator<Item = &Way> {
        let (seed, widths) = (seed as usize, self.vectors.len());
        let other = self.others.get(seed / widths % (2 * self.others.len()));
        std::iter::once(&self.vectors[seed % widths]).chain(other)
    }

    fn all(&self) -> impl Iterator<Item = &Way> {
        self.vectors.iter().chain(&self.others)
    }
}

/// What the interpreter and a way say to a kernel; `Err` when one of them fails.
fn both(judge: &Device, way: &Way, kernel: &Kernel, module: &Arc<Verified>) -> Result<(Vec<u8>, Vec<u8>), String> {
    let expected = run(judge, kernel, module).map_err(|error| format!("the interpreter: {error}"))?;
    let found = run(&way.device, kernel, module).map_err(|error| format!("{}: {error}", way.name))?;
    Ok((expected.output, found.output))
}

/// Runs a job for each number below a limit on all cores; what went wrong, in the order of the numbers.
fn in_parallel(numbers: std::ops::Range<u64>, job: impl Fn(&Device, &Ways, u64) -> Result<(), String> + Sync) -> Vec<String> {
    let next = AtomicU64::new(numbers.start);
    let failures = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let judge = Device::new(Interp::new(Options::default()));
                let ways = Ways::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        break;
                    }
                    if let Err(why) = job(&judge, &ways, number) {
                        failures.lock().unwrap().push((number, why));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    failures.into_iter().map(|(_, why)| why).collect()
}

fn assert_none(failures: &[String], of: &str) {
    let shown: Vec<&str> = failures.iter().take(20).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} of {of} differ:\n{}", failures.len(), shown.join("\n"));
}

/// Everything that the interpreter executes and the manual fixes, in kernels that take milliseconds to compile, now and then more.
fn config(seed: u64) -> Config {
    let random = Random::new(seed).bits() as usize;
    let (statements, depth) = if random.is_multiple_of(100) { (12, 3) } else { (1 + random / 128 % 5, 2) };
    Config { statements, depth, threads: [96, 128, 40][random % 3], portable: false, ..Config::default() }
}

#[test]
fn random_kernels() {
    let (first, count) = (setting("BROADLOOM_FUZZ_SEED", 0), setting("BROADLOOM_FUZZ_KERNELS", 500));
    let vectorised = AtomicUsize::new(0);
    let failures = in_parallel(first..first + count, |judge, ways, seed| {
        let kernel = generate(seed, &config(seed));
        let module = module(&kernel).map_err(|why| format!("seed {seed}: {why}"))?;
        for (number, way) in ways.of(seed).enumerate() {
            let (expected, found) = both(judge, way, &kernel, &module).map_err(|why| format!("seed {seed}: {why}"))?;
            if let Some(at) = (0..expected.len()).find(|at| expected[*at] != found[*at]) {
                let (bytes, place) = (at / 4 * 4..at / 4 * 4 + 4, kernel.place(at));
                let (expected, found) = (&expected[bytes.clone()], &found[bytes]);
                return Err(format!("seed {seed} on {}: {place}: {found:02x?} instead of {expected:02x?}", way.name));
            }
            let as_vectors = way.cpu.statistics().last().is_some_and(|kernel| kernel.not_vectorised.is_none());
            vectorised.fetch_add(usize::from(number == 0 && as_vectors), Ordering::Relaxed);
        }
        Ok(())
    });
    assert_none(&failures, &format!("{count} kernels"));
    let vectorised = vectorised.into_inner();
    assert!(vectorised as u64 * 10 >= count * 8, "only {vectorised} of {count} kernels ran as vectors");
}

#[test]
fn every_pure_instruction() {
    let seed = setting("BROADLOOM_FUZZ_SEED", 0);
    let sweeps = sweep(seed, &Config { portable: false, ..Config::default() }, setting("BROADLOOM_SWEEP", 1) as usize);
    let failures = in_parallel(0..sweeps.len() as u64, |judge, ways, number| {
        let sweep = &sweeps[number as usize];
        let module = module(&sweep.kernel)?;
        let mut wrong = vec![];
        for way in ways.all() {
            // Threads that are left out leave zeros.
            for threads in if way.name == "avx512" { vec![64, 33, 7, 1] } else { vec![64] } {
                let kernel = Kernel { block: [threads, 1, 1], ..sweep.kernel.clone() };
                let (expected, found) = both(judge, way, &kernel, &module)?;
                for (slot, (expected, found)) in expected.chunks(8).zip(found.chunks(8)).enumerate() {
                    let instruction = &sweep.instructions[slot / 4 % sweep.instructions.len()];
                    // Of the payloads of these the manual says nothing.
                    let is_double = instruction.contains(" %go");
                    let is_nan = |bytes: &[u8]| bytes.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan());
                    if expected != found && !(is_double && is_nan(expected) && is_nan(found)) {
                        let thread = slot / 4 / sweep.instructions.len();
                        wrong.push(format!(
                            "{} in blocks of {threads}: thread {thread}: `{instruction}`: {found:02x?} instead of {expected:02x?}",
                            way.name
                        ));
                        break;
                    }
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    });
    assert_none(&failures, &format!("{} sweeps", sweeps.len()));
}
