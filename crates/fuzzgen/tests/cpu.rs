//! The CPU gives the interpreter's results for generated kernels, byte for byte: with vectors of every width
//! of the host and one thread at a time, optimised and not.
//!
//! `BROADLOOM_FUZZ_KERNELS=n` generates n of them, starting at the number `BROADLOOM_FUZZ_SEED`, on
//! `BROADLOOM_FUZZ_JOBS` threads, by default on all; `BROADLOOM_SWEEP=n` goes through every pure instruction
//! n times.

use broadloom_cpu::compile::Checks;
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_fuzzgen::{Config, Kernel, Random, generate, module, run, sweep};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::Verified;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and it takes a number")))
}

/// Configuration of the CPU for kernels.
struct CpuConfiguration {
    name: String,
    cpu: Cpu,
    device: Device,
}

impl CpuConfiguration {
    fn new(vectors: &str, vectorise: bool, optimise: bool) -> Option<CpuConfiguration> {
        CpuConfiguration::checked(vectors, vectorise, optimise, Checks::None)
    }

    fn checked(vectors: &str, vectorise: bool, optimise: bool, checks: Checks) -> Option<CpuConfiguration> {
        // Two workers take turns with the blocks: their order must not matter.
        let options = broadloom_cpu::Options {
            threads: 2,
            memory_bytes: 1 << 30,
            cache: CacheFolder::Nowhere,
            ..broadloom_cpu::Options::default()
        };
        let mut options = options.vectors(vectors)?;
        options.compile.vectorise = vectorise;
        options.compile.optimise = optimise;
        options.compile.checks = checks;
        let cpu = Cpu::new(options).unwrap_or_else(|error| panic!("{error}"));
        let name = format!(
            "{vectors}{}{}{}",
            if vectorise { "" } else { ", one thread at a time" },
            if optimise { "" } else { ", not optimised" },
            if checks == Checks::None { String::new() } else { format!(", {checks:?}") }
        );
        Some(CpuConfiguration { name, device: Device::new(cpu.clone()), cpu })
    }
}

/// All configurations.
struct CpuConfigurations {
    /// Vectors of each width.
    vectors: Vec<CpuConfiguration>,
    /// Vectors of each width, not optimised.
    plain: Vec<CpuConfiguration>,
    /// One thread at a time, optimised and not.
    threads: Vec<CpuConfiguration>,
    /// With checks of addresses, which must find nothing.
    checked: Vec<CpuConfiguration>,
}

impl CpuConfigurations {
    fn new() -> CpuConfigurations {
        let widths = |optimise| {
            ["avx512", "avx2", "sse4.2"].into_iter().filter_map(move |kind| CpuConfiguration::new(kind, true, optimise)).collect()
        };
        let threads = [true, false].into_iter().filter_map(|optimise| CpuConfiguration::new("host", false, optimise)).collect();
        let checked = [(true, true, Checks::Strict), (true, false, Checks::Confined), (false, false, Checks::Strict)];
        let checked = checked
            .into_iter()
            .filter_map(|(vectorise, optimise, checks)| CpuConfiguration::checked("host", vectorise, optimise, checks));
        let mut ways = CpuConfigurations { vectors: widths(true), plain: widths(false), threads, checked: checked.collect() };
        if ways.vectors.is_empty() {
            // CPU older than all widths, or of another architecture.
            ways.vectors.extend(CpuConfiguration::new("host", true, true));
            ways.plain.extend(CpuConfiguration::new("host", true, false));
        }
        ways
    }

    /// Returns the configurations for a kernel: one width, optimised; another or the same, not optimised; and
    /// for every fourth kernel one thread at a time. Every second small kernel has its addresses checked too. The widest comes most often: the others take the
    /// compiler up to ten times as long. Small kernels use another width every second time, large ones every
    /// sixteenth.
    fn of(&self, number: u64) -> impl Iterator<Item = &CpuConfiguration> {
        let (turn, widths) = (number as usize / 2, self.vectors.len());
        let pause = if is_large(number) { 16 } else { 2 };
        let width = |turn: usize| match turn.is_multiple_of(pause) {
            true if widths > 1 => 1 + turn / pause % (widths - 1),
            true | false => 0,
        };
        let thread = turn.is_multiple_of(4).then(|| &self.threads[turn / 4 % self.threads.len()]);
        let checked = (turn % 2 == 1 && !is_large(number)).then(|| &self.checked[turn / 2 % self.checked.len()]);
        [&self.vectors[width(turn)], &self.plain[width(turn + pause / 2)]].into_iter().chain(thread).chain(checked)
    }

    /// Returns each width, and for one of them the other configurations.
    fn all(&self) -> impl Iterator<Item = &CpuConfiguration> {
        self.vectors.iter().chain(self.plain.first()).chain(&self.threads)
    }
}

/// Returns the bytes that a kernel writes in a configuration.
fn output(way: &CpuConfiguration, kernel: &Kernel, module: &Arc<Verified>) -> Result<Vec<u8>, String> {
    run(&way.device, kernel, module).map(|outcome| outcome.output).map_err(|error| format!("{}: {error}", way.name))
}

/// Returns the bytes that it must write.
fn expected(judge: &Device, kernel: &Kernel, module: &Arc<Verified>) -> Result<Vec<u8>, String> {
    run(judge, kernel, module).map(|outcome| outcome.output).map_err(|error| format!("the interpreter: {error}"))
}

/// Runs a job for each number of a range on all cores. Returns the failures, in the order of the numbers.
fn in_parallel(
    numbers: std::ops::Range<u64>,
    job: impl Fn(&Device, &CpuConfigurations, u64) -> Result<(), String> + Sync,
) -> Vec<String> {
    let next = AtomicU64::new(numbers.start);
    let failures = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..setting("BROADLOOM_FUZZ_JOBS", cores as u64) {
            scope.spawn(|| {
                let judge = Device::new(Interp::new(Options::default()));
                let ways = CpuConfigurations::new();
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

/// Returns whether the kernel of a number is a large one.
fn is_large(number: u64) -> bool {
    number % 2 == 1
}

/// Returns the kernel of a number. Every seed has two. One uses everything that the interpreter executes and
/// the manual defines, in kernels that take milliseconds to compile, sometimes more. The other uses what runs
/// the same on a GPU, in kernels of hundreds of instructions.
fn kernel(number: u64) -> Kernel {
    let seed = number / 2;
    if is_large(number) {
        return generate(seed, &Config::default());
    }
    let random = Random::new(seed).bits() as usize;
    let (statements, depth) = if random.is_multiple_of(100) { (12, 3) } else { (1 + random / 128 % 5, 2) };
    let threads = [96, 128, 40][random % 3];
    generate(seed, &Config { statements, depth, threads, portable: false, ..Config::default() })
}

/// Returns the first difference.
fn difference(kernel: &Kernel, expected: &[u8], found: &[u8]) -> Option<String> {
    let at = (0..expected.len()).find(|at| expected[*at] != found[*at])?;
    let bytes = at / 4 * 4..at / 4 * 4 + 4;
    Some(format!("{}: {:02x?} instead of {:02x?}", kernel.describe_byte(at), &found[bytes.clone()], &expected[bytes]))
}

#[test]
fn random_kernels() {
    let (first, count) = (setting("BROADLOOM_FUZZ_SEED", 0), setting("BROADLOOM_FUZZ_KERNELS", 110));
    let vectorised = AtomicUsize::new(0);
    let failures = in_parallel(first..first + count, |judge, ways, number| {
        let kernel = kernel(number);
        let name = format!("kernel {number} ({} of seed {})", if is_large(number) { "large" } else { "small" }, kernel.seed);
        let blame = |why: String| format!("{name}: {why}");
        let module = module(&kernel).map_err(|error| blame(error.to_string()))?;
        let expected = expected(judge, &kernel, &module).map_err(blame)?;
        for (index, way) in ways.of(number).enumerate() {
            let found = output(way, &kernel, &module).map_err(blame)?;
            if let Some(why) = difference(&kernel, &expected, &found) {
                return Err(blame(format!("{}: {why}", way.name)));
            }
            let not_vectorised = way.cpu.statistics().last().and_then(|kernel| kernel.not_vectorised.clone());
            if let Some(why) = not_vectorised.as_ref().filter(|why| why.contains("still divergent")) {
                return Err(blame(why.clone()));
            }
            vectorised.fetch_add(usize::from(index == 0 && not_vectorised.is_none()), Ordering::Relaxed);
        }
        Ok(())
    });
    assert_none(&failures, &format!("{count} kernels"));
    let vectorised = vectorised.into_inner();
    // Four of five do; for 160 kernels, two standard deviations are ten.
    let least = if count < 500 { 7 } else { 8 };
    assert!(count < 100 || vectorised as u64 * 10 >= count * least, "only {vectorised} of {count} kernels ran as vectors");
}

#[test]
fn every_pure_instruction() {
    let seed = setting("BROADLOOM_FUZZ_SEED", 0);
    let sweeps = sweep(seed, &Config { portable: false, ..Config::default() }, setting("BROADLOOM_SWEEP", 1) as usize);
    let failures = in_parallel(0..sweeps.len() as u64, |judge, ways, number| {
        let sweep = &sweeps[number as usize];
        let module = module(&sweep.kernel).map_err(|error| error.to_string())?;
        let mut wrong = vec![];
        for way in ways.all() {
            // Omitted threads leave zeros.
            for threads in if way.name == "avx512" { vec![64, 33, 7, 1] } else { vec![64] } {
                let kernel = Kernel { block: [threads, 1, 1], ..sweep.kernel.clone() };
                let (expected, found) = (expected(judge, &kernel, &module)?, output(way, &kernel, &module)?);
                for (slot, (expected, found)) in expected.chunks(8).zip(found.chunks(8)).enumerate() {
                    let instruction = &sweep.instructions[slot / 4 % sweep.instructions.len()];
                    // The manual does not define the payloads of these.
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
