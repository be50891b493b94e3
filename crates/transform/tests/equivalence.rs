//! Passes keep the meaning of kernels. Every kernel of the corpus and a hundred random ones go through the
//! passes and back to text, and are run by the interpreter. Every pure instruction is tested in this way too,
//! with partly known inputs.
//!
//! `BROADLOOM_FUZZ_KERNELS=n` generates n kernels, starting at the seed `BROADLOOM_FUZZ_SEED`. Without it
//! each file of the corpus takes two of the four ways, so that each kernel takes all of them in two of its
//! variants.

mod interpreted;

use broadloom_conformance::{Case, DeviceUnderTest, SUITE, VARIANTS};
use broadloom_device::{Backend, Device, EventId, GlobalVariable, Launch, LoadedModule, Machine, MemoryUse, Result, Stream};
use broadloom_diag::Sources;
use broadloom_fuzzgen::{Config, Kernel, Random, module, run, survey, sweep};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{Func, Function, Module, Printer, Verified, parse, print, verify};
use broadloom_transform::pipeline::{BACK, Pass, STAGES, Stage, Verification, run_pass};
use broadloom_transform::{Facts, check, hoist_statics, linearise, unify_exits};
use interpreted::all_but_load;
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Function that runs passes and converts back to registers; the error is a text.
type Passes = fn(&Module, &mut Function, &Facts) -> std::result::Result<(), String>;

/// Named passes, and whether the resulting text can be parsed again: after inlining, a function may call one
/// that stands after it.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    passes: Passes,
    text: bool,
}

const WAYS: &[Way] = &[
    Way { name: "ssa", passes: ssa, text: true },
    Way { name: "pipeline", passes: pipeline, text: true },
    Way { name: "inlined", passes: inlined, text: false },
    Way { name: "linear", passes: linear, text: false },
];

/// Returns the stages that keep calls in place. In a text, a function must stand before its callers.
fn kept() -> impl Iterator<Item = &'static Stage> {
    STAGES.iter().filter(|stage| stage.name != "inlined")
}

/// Converts to SSA form and back.
fn ssa(module: &Module, function: &mut Function, facts: &Facts) -> std::result::Result<(), String> {
    let passes = kept().take(2).chain([&BACK]).flat_map(|stage| stage.passes);
    run_all(passes, module, function, facts)
}

/// Runs the whole pipeline and converts back.
fn pipeline(module: &Module, function: &mut Function, facts: &Facts) -> std::result::Result<(), String> {
    run_all(kept().chain([&BACK]).flat_map(|stage| stage.passes), module, function, facts)
}

/// Inlines calls and promotes variables.
fn inlined(module: &Module, function: &mut Function, facts: &Facts) -> std::result::Result<(), String> {
    run_all(STAGES.iter().filter(|stage| stage.name == "inlined").flat_map(|stage| stage.passes), module, function, facts)
}

/// Runs the whole pipeline, linearises kernels with every branch assumed divergent, and converts back. Code
/// that cannot run in lockstep stays unchanged.
fn linear(module: &Module, function: &mut Function, facts: &Facts) -> std::result::Result<(), String> {
    run_all(STAGES.iter().flat_map(|stage| stage.passes), module, function, facts)?;
    if function.is_kernel {
        unify_exits::run(module, function);
        check(unify_exits::NAME, module, function).map_err(|broken| broken.to_string())?;
        // A rejection leaves the function unchanged.
        let _ = linearise::run(module, function, &|_| true, linearise::Blocks::Any);
        check(linearise::NAME, module, function).map_err(|broken| broken.to_string())?;
    }
    let last = STAGES.last().into_iter().chain([&BACK]);
    run_all(last.flat_map(|stage| stage.passes), module, function, facts)
}

fn run_all<'p>(
    passes: impl Iterator<Item = &'p Pass>,
    module: &Module,
    function: &mut Function,
    facts: &Facts,
) -> std::result::Result<(), String> {
    for pass in passes {
        run_pass(*pass, module, function, facts, Verification::Always)
            .map_err(|failure| format!("{failure}\n{}", Printer::new(module).body(function)))?;
    }
    Ok(())
}

/// Runs passes over a module, and prints and parses the result if possible.
fn transformed(module: &Module, way: Way, facts: &Facts) -> std::result::Result<Verified, String> {
    let mut hoisted = module.clone();
    hoist_statics::run(&mut hoisted);
    let mut changed = hoisted.clone();
    for func in module.functions.keys() {
        let mut function = hoisted.functions[func].clone();
        (way.passes)(&hoisted, &mut function, facts)?;
        changed.functions[func] = function;
    }
    let changed = verify(changed).map_err(|errors| format!("does not verify: {errors:?}"))?;
    if !way.text {
        return Ok(changed);
    }
    let text = print(&changed);
    let mut sources = Sources::new();
    let id = sources.add("printed", text.as_str());
    let again = parse(&sources, id).and_then(verify).map_err(|errors| format!("{}\n{text}", sources.render_all(&errors)))?;
    if print(&again) != text {
        return Err(format!("the print is not a fixed point:\n{text}"));
    }
    Ok(again)
}

/// Interpreter that runs transformed modules.
#[derive(Debug)]
struct Behind {
    interp: Interp,
    way: Way,
    facts: Facts,
}

impl Backend for Behind {
    all_but_load!();
    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        let changed = transformed(module, self.way, &self.facts).unwrap_or_else(|why| panic!("{why}"));
        // Functions are the same in the same order, so their ids are too.
        let names = |module: &Module| module.functions.values().map(|function| function.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&changed), names(module));
        Ok(Arc::new(Loaded(self.interp.load(&Arc::new(changed))?)))
    }
}

#[derive(Debug)]
struct Loaded(Arc<dyn LoadedModule>);

impl LoadedModule for Loaded {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.0.variable(name)
    }
    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        self.0.launch(kernel, launch, params)
    }
}

fn subject(way: Way, facts: Facts) -> DeviceUnderTest {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let output = Arc::new(move |text: &[u8]| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
    });
    let interp = Interp::new(Options { output, ..Options::default() });
    DeviceUnderTest { device: Device::new(Behind { interp, way, facts }), printed }
}

fn corpus(case: &Case, variant: &str, way: Way) -> std::result::Result<(), Failed> {
    Ok(case.run(&subject(way, Facts::default()), variant)?)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and it takes a number")))
}

/// Runs a kernel with and without the passes, which know its launch or not. Returns whether it does anything.
fn compare(kernel: &Kernel, module: &Arc<Verified>, way: Way, facts: Facts) -> std::result::Result<bool, String> {
    let plain = Device::new(Interp::new(Options::default()));
    let expected = run(&plain, kernel, module).map_err(|error| format!("{error}\n{}", kernel.text))?;
    let behind = subject(way, facts).device;
    let found = run(&behind, kernel, module).map_err(|error| format!("{error}\n{}", kernel.text))?;
    if found.output == expected.output { Ok(found.useful) } else { Err(format!("another result\n{}", kernel.text)) }
}

/// Tests random kernels starting at a seed; every other one with its launch known.
fn fuzz(first: u64, count: u64, way: Way) -> std::result::Result<(), Failed> {
    let config = Config { portable: false, nan_payloads: true, ..Config::default() };
    survey(first..first + count, &config, |kernel, module| {
        let known = |shape: [u32; 3]| (kernel.seed % 2 == 0).then_some(shape);
        compare(kernel, module, way, Facts { block: known(kernel.block), grid: known(kernel.grid) })
    })?;
    Ok(())
}

/// Tests every pure instruction with some inputs known and chosen to make it simpler.
fn known(seed: u64, way: Way) -> std::result::Result<(), Failed> {
    let config = Config { portable: false, nan_payloads: true, ..Config::default() };
    for sweep in sweep(seed, &config, 4) {
        let mut kernel = sweep.kernel;
        let mut random = Random::new(seed);
        kernel.text = kernel.text.lines().map(|line| with_number(line, &mut random) + "\n").collect();
        let module = module(&kernel)?;
        compare(&kernel, &module, way, Facts::default())?;
    }
    Ok(())
}

/// Replaces a line that loads an input by one that sets it to a number, or keeps it.
fn with_number(line: &str, random: &mut Random) -> String {
    let load = line.trim().strip_prefix("ld.global.").and_then(|rest| rest.split_once(' '));
    let Some((ty, (name, _))) = load.and_then(|(ty, rest)| Some((ty, rest.split_once(',')?))) else { return line.to_owned() };
    let bits: u32 = ty[1..].parse().unwrap_or(32);
    let ones = u64::MAX >> (64 - bits);
    let corners = [0, 1, ones, ones / 2 + 1, 31, u64::from(bits)];
    match random.below(corners.len() * 2) {
        index if index < corners.len() => format!("\tmov.b{bits} {name}, {:#x};", corners[index]),
        _ => line.to_owned(),
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![];
    let is_campaign = std::env::var_os("BROADLOOM_FUZZ_KERNELS").is_some();
    let (first, kernels) = (setting("BROADLOOM_FUZZ_SEED", 0), setting("BROADLOOM_FUZZ_KERNELS", 60));
    for (turn, way) in WAYS.iter().copied().enumerate() {
        let name = way.name;
        for case in SUITE {
            let taken = VARIANTS.into_iter().enumerate().filter(|(index, _)| is_campaign || (index + turn).is_multiple_of(2));
            for (_, variant) in taken {
                trials.push(Trial::test(format!("{name}::{}::{variant}", case.kernel), move || corpus(case, variant, way)));
            }
        }
        for seed in first..first + if is_campaign { 6 } else { 3 } {
            trials.push(Trial::test(format!("{name}::known::{seed}"), move || known(seed, way)));
        }
        for start in (0..kernels).step_by(25) {
            let count = 25.min(kernels - start);
            trials.push(Trial::test(format!("{name}::fuzz::{}", first + start), move || fuzz(first + start, count, way)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
