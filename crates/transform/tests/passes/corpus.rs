//! Every kernel of the corpus, inlined and linearised, gives the results of its reference.
//!
//! The code is generated for the block shape of a kernel's first launch, as an executor would do. Code that
//! cannot run in lockstep is run as written. The number of such kernels is part of the test, so that a newly
//! rejected kernel is noticed.

use crate::interpreted::all_but_load;
use broadloom_analysis::Facts;
use broadloom_conformance::{DeviceUnderTest, SUITE, VARIANTS};
use broadloom_device::{Backend, Device, EventId, GlobalVariable, Launch, LoadedModule, Machine, MemoryUse, Result, Stream};
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{Func, Function, Module, Space, Verified, verify};
use broadloom_transform::pipeline::{BACK, STAGES, Verification, run_pass};
use broadloom_transform::{check, hoist_statics, linearise};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Kernels with a block shape that ran in lockstep, and those that did not, with the reason.
#[derive(Debug, Default)]
struct Tally {
    taken: usize,
    refused: BTreeMap<String, BTreeSet<String>>,
}

/// Interpreter that runs linearised modules.
#[derive(Debug)]
struct InStep {
    interp: Interp,
    tally: Arc<Mutex<Tally>>,
}

/// Module whose code is generated when its block shape is known.
#[derive(Debug)]
struct Loaded {
    interp: Interp,
    module: Module,
    tally: Arc<Mutex<Tally>>,
    /// False if variables of the module must keep their identity; then no shape is used.
    shaped: bool,
    made: Mutex<HashMap<[u32; 3], Arc<dyn LoadedModule>>>,
}

impl Loaded {
    fn for_block(&self, block: [u32; 3]) -> Result<Arc<dyn LoadedModule>> {
        let block = if self.shaped { block } else { [0; 3] };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made.get(&block) {
            return Ok(found.clone());
        }
        let mut changed = self.module.clone();
        for (func, function) in self.module.functions.iter().filter(|(_, function)| function.is_kernel && function.has_body) {
            let mut function = function.clone();
            let refused = self.in_step(&mut function, block).unwrap_or_else(|why| panic!("{}: {why}", function.name));
            let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            match refused {
                Some(reason) => drop(tally.refused.entry(reason).or_default().insert(function.name.clone())),
                None => tally.taken += 1,
            }
            changed.functions[func] = function;
        }
        let changed = verify(changed).unwrap_or_else(|errors| panic!("{errors:?}"));
        let loaded = self.interp.load(&Arc::new(changed))?;
        made.insert(block, loaded.clone());
        Ok(loaded)
    }

    /// Runs all passes on a kernel. Returns the reason why it is not in lockstep, if it is not.
    fn in_step(&self, function: &mut Function, block: [u32; 3]) -> std::result::Result<Option<String>, String> {
        let module = &self.module;
        let facts = broadloom_transform::Facts { block: self.shaped.then_some(block), grid: None };
        let pass = |function: &mut Function, pass| {
            run_pass(pass, module, function, &facts, Verification::Always).map_err(|failure| failure.to_string())
        };
        STAGES.iter().flat_map(|stage| stage.passes).try_for_each(|next| pass(function, *next))?;
        let refused = match self.shaped {
            true => linearise::run_for(module, function, &Facts::new(block)),
            false => linearise::run(module, function, &|_| true, linearise::Blocks::Any),
        };
        check(linearise::NAME, module, function).map_err(|broken| broken.to_string())?;
        STAGES.last().into_iter().chain([&BACK]).flat_map(|stage| stage.passes).try_for_each(|next| pass(function, *next))?;
        Ok(refused.err().map(|reason| reason.text))
    }
}

impl LoadedModule for Loaded {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.for_block([0; 3]).ok()?.variable(name)
    }
    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        self.for_block(launch.block)?.launch(kernel, launch, params)
    }
}

impl Backend for InStep {
    all_but_load!();
    fn load(&self, module: &Arc<Verified>) -> Result<Arc<dyn LoadedModule>> {
        let mut module = Module::clone(module);
        hoist_statics::run(&mut module);
        let shaped = !module.variables.values().any(|variable| matches!(variable.space, Space::Global | Space::Const));
        let (interp, tally) = (self.interp.clone(), self.tally.clone());
        Ok(Arc::new(Loaded { interp, module, tally, shaped, made: Mutex::new(HashMap::new()) }))
    }
}

/// Runs all cases in a variant and returns the tally.
fn corpus(variant: &str) -> Tally {
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut wrong = vec![];
    for case in SUITE {
        let printed = Arc::new(Mutex::new(String::new()));
        let sink = printed.clone();
        let output = Arc::new(move |text: &[u8]| {
            sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
        });
        let interp = Interp::new(Options { output, ..Options::default() });
        let subject = DeviceUnderTest { device: Device::new(InStep { interp, tally: tally.clone() }), printed };
        if let Err(failure) = case.run(&subject, variant) {
            wrong.push(format!("{}: {failure}", case.kernel));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn optimised_code_gives_what_the_reference_gives() {
    let tally = corpus(VARIANTS[2]);
    assert!(tally.taken > 15 * tally.refused.values().map(BTreeSet::len).sum::<usize>(), "{tally:#?}");
}

#[test]
fn code_for_a_debugger_gives_what_the_reference_gives() {
    let tally = corpus(VARIANTS[1]);
    assert!(tally.taken > 12 * tally.refused.values().map(BTreeSet::len).sum::<usize>(), "{tally:#?}");
}
