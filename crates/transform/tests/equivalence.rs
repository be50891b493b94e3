//! What comes out of the passes computes what went in: every file of the corpus and a few hundred random kernels, through the
//! passes and back to text, run by the interpreter.
//!
//! `BROADLOOM_FUZZ_KERNELS=n` makes n kernels, from the seed `BROADLOOM_FUZZ_SEED` on.

use broadloom_conformance::{Case, SUITE, Subject, VARIANTS};
use broadloom_device::{Backend, Device, GlobalVariable, Launch, LoadedModule, Machine, Result, Stream};
use broadloom_diag::Sources;
use broadloom_fuzzgen::{Config, run, survey};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{Func, Function, Module, Printer, Verified, parse, print, verify};
use broadloom_transform::pipeline::{BACK, Pass, STAGES, Verification, run_pass};
use broadloom_transform::{Facts, check, hoist_statics, inline_calls, linearise, promote_locals, unify_exits};
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::{Arc, Mutex, PoisonError};

/// Takes a function through passes and back to registers; what is wrong as text.
type Passes = fn(&Module, &mut Function) -> std::result::Result<(), String>;

/// Each with whether its text can be read again: where calls are inlined, a function may call one that stands behind it.
const PASSES: &[(&str, Passes, bool)] =
    &[("ssa", ssa, true), ("pipeline", pipeline, true), ("inlined", inlined, false), ("linear", linear, false)];

/// Through SSA form and back.
fn ssa(module: &Module, function: &mut Function) -> std::result::Result<(), String> {
    let passes = STAGES.iter().take(2).chain([&BACK]).flat_map(|stage| stage.passes);
    run_all(passes, module, function)
}

/// Through everything and back.
fn pipeline(module: &Module, function: &mut Function) -> std::result::Result<(), String> {
    run_all(STAGES.iter().chain([&BACK]).flat_map(|stage| stage.passes), module, function)
}

/// Calls inlined, and variables in registers.
fn inlined(module: &Module, function: &mut Function) -> std::result::Result<(), String> {
    inline_calls::run(module, function);
    check(inline_calls::NAME, module, function).map_err(|broken| broken.to_string())?;
    promote_locals::run(module, function);
    check(promote_locals::NAME, module, function).map_err(|broken| broken.to_string())
}

/// Through everything and back, kernels in step, with every branch taken to be divergent; what cannot run in step stays as it is.
fn linear(module: &Module, function: &mut Function) -> std::result::Result<(), String> {
    inlined(module, function)?;
    run_all(STAGES.iter().flat_map(|stage| stage.passes), module, function)?;
    if function.is_kernel {
        unify_exits::run(module, function);
        check(unify_exits::NAME, module, function).map_err(|broken| broken.to_string())?;
        // A reason not to leaves the function as it was.
        let _ = linearise::run(module, function, &|_| true, None);
        check(linearise::NAME, module, function).map_err(|broken| broken.to_string())?;
    }
    let last = STAGES.last().into_iter().chain([&BACK]);
    run_all(last.flat_map(|stage| stage.passes), module, function)
}

fn run_all<'p>(
    passes: impl Iterator<Item = &'p Pass>,
    module: &Module,
    function: &mut Function,
) -> std::result::Result<(), String> {
    for pass in passes {
        run_pass(*pass, module, function, &Facts::default(), Verification::Always)
            .map_err(|failure| format!("{failure}\n{}", Printer::new(module).body(function)))?;
    }
    Ok(())
}

/// A module through passes, printed and read again if `text` is set.
fn transformed(module: &Module, passes: Passes, text: bool) -> std::result::Result<Verified, String> {
    let mut hoisted = module.clone();
    hoist_statics::run(&mut hoisted);
    let mut changed = hoisted.clone();
    for func in module.functions.keys() {
        let mut function = hoisted.functions[func].clone();
        passes(&hoisted, &mut function)?;
        changed.functions[func] = function;
    }
    let changed = verify(changed).map_err(|errors| format!("does not verify: {errors:?}"))?;
    if !text {
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

/// The interpreter behind passes.
#[derive(Debug)]
struct Behind {
    interp: Interp,
    passes: Passes,
    text: bool,
}

impl Backend for Behind {
    fn machine(&self) -> &Machine {
        self.interp.machine()
    }
    fn allocate(&self, bytes: u64) -> Result<u64> {
        self.interp.allocate(bytes)
    }
    fn free(&self, address: u64) -> Result<()> {
        self.interp.free(address)
    }
    fn write(&self, stream: Stream, address: u64, bytes: &[u8]) -> Result<()> {
        self.interp.write(stream, address, bytes)
    }
    fn read(&self, stream: Stream, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.interp.read(stream, address, bytes)
    }
    fn copy(&self, stream: Stream, to: u64, from: u64, bytes: u64) -> Result<()> {
        self.interp.copy(stream, to, from, bytes)
    }
    fn fill(&self, stream: Stream, address: u64, byte: u8, bytes: u64) -> Result<()> {
        self.interp.fill(stream, address, byte, bytes)
    }
    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        let changed = transformed(module, self.passes, self.text).unwrap_or_else(|why| panic!("{why}"));
        // Functions are the same ones in the same order, so their ids are too.
        let names = |module: &Module| module.functions.values().map(|function| function.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&changed), names(module));
        Ok(Arc::new(Loaded(self.interp.load(&Arc::new(changed))?)))
    }
    fn create_stream(&self) -> Result<Stream> {
        self.interp.create_stream()
    }
    fn synchronise_stream(&self, stream: Stream) -> Result<()> {
        self.interp.synchronise_stream(stream)
    }
    fn synchronise(&self) -> Result<()> {
        self.interp.synchronise()
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

fn subject(passes: Passes, text: bool) -> Subject {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink = printed.clone();
    let output = Arc::new(move |text: &[u8]| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
    });
    let interp = Interp::new(Options { output, ..Options::default() });
    Subject { device: Device::new(Behind { interp, passes, text }), printed }
}

fn corpus(case: &Case, variant: &str, passes: Passes, text: bool) -> std::result::Result<(), Failed> {
    Ok(case.run(&subject(passes, text), variant)?)
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Random kernels from one seed on, plain and through the passes.
fn fuzz(first: u64, count: u64, passes: Passes, text: bool) -> std::result::Result<(), Failed> {
    let plain = Device::new(Interp::new(Options::default()));
    let behind = subject(passes, text).device;
    let config = Config { portable: false, ..Config::default() };
    survey(first..first + count, &config, |kernel, module| {
        let expected = run(&plain, kernel, module).map_err(|error| format!("{error}\n{}", kernel.text))?;
        let found = run(&behind, kernel, module).map_err(|error| format!("{error}\n{}", kernel.text))?;
        if found.output == expected.output { Ok(found.useful) } else { Err(format!("another result\n{}", kernel.text)) }
    })?;
    Ok(())
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![];
    let (first, kernels) = (setting("BROADLOOM_FUZZ_SEED", 0), setting("BROADLOOM_FUZZ_KERNELS", 200));
    for (name, passes, text) in PASSES.iter().copied() {
        for case in SUITE {
            for variant in VARIANTS {
                trials.push(Trial::test(format!("{name}::{}::{variant}", case.kernel), move || {
                    corpus(case, variant, passes, text)
                }));
            }
        }
        for start in (0..kernels).step_by(25) {
            let count = 25.min(kernels - start);
            trials
                .push(Trial::test(format!("{name}::fuzz::{}", first + start), move || fuzz(first + start, count, passes, text)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
