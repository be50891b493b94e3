//! Kernel of a module, specialised for one block shape: the source of its code, and the choice of code for a launch.
//!
//! There are up to two versions. Fast code assumes that index arithmetic does not wrap around; general code
//! does not. The assumption is proved for each launch. The proof comes from the same passes as the code and
//! is stored with it in the cache, so a cached kernel needs no pass at all.
//!
//! Both versions may assume that some of the pointer parameters point to different buffers. A launch that
//! violates this gets code from another such pair without the assumption.

use crate::cache::{Cache, LookupRequest};
use crate::compile::{self, CompileError, CompileFailure, Draft};
use crate::grid::Ready;
use crate::module::{CpuModule, LaunchableCode, refused};
use crate::statistics::KernelStatistics;
use broadloom_analysis::{Facts, KnownParams, Proof, rounded_up};
use broadloom_device::cache::Miss;
use broadloom_device::{Error, Result, trace};
use broadloom_diag::{Code as DiagnosticCode, Diagnostic, Diagnostics};
use broadloom_ptx::{Directive, Func, Module};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const INTERNAL: DiagnosticCode = DiagnosticCode("C0003");

/// Launch data that decides which code it gets: its grid, and the parameters that the proof depends on.
type LaunchKey = ([u32; 3], Vec<u64>);

/// Launches that are remembered, at most.
const MAX_PROVED: usize = 256;

/// Launches that were proved or refuted.
///
/// Sizes change from launch to launch, so a proof is tried for all launches whose sizes are rounded up to the
/// same powers of two. Buffers do not matter.
#[derive(Debug, Default)]
struct ProvedLaunches {
    rounded: HashMap<LaunchKey, bool>,
    /// Launches for which that was not possible.
    exact: HashMap<LaunchKey, bool>,
}

fn remember(known: &mut HashMap<LaunchKey, bool>, launched: LaunchKey, holds: bool) {
    if known.len() >= MAX_PROVED {
        known.clear();
    }
    known.insert(launched, holds);
}

/// Kernel for one block shape.
#[derive(Debug)]
pub(crate) struct SpecialisedKernel {
    kernel: Func,
    block: [u32; 3],
    /// True if pointers may be assumed to point to different buffers.
    apart: bool,
    /// Same kernel without that assumption.
    other: OnceLock<Box<SpecialisedKernel>>,
    /// Cluster size of the launch, if the kernel has none.
    cluster: Option<[u32; 3]>,
    /// Module in which the kernel has that cluster size.
    own: OnceLock<Module>,
    start: OnceLock<Result<LookupStart>>,
    /// General code and fast code.
    codes: [OnceLock<Result<LaunchableCode>>; 2],
    /// Launches of late, and whether they could run fast code.
    proved: Mutex<ProvedLaunches>,
    /// True if a launch went ahead of its code.
    went_ahead: AtomicBool,
    /// Reason of the cache miss, until it is reported: a broken entry is deleted once it was found.
    missed: Mutex<Option<Miss>>,
}

/// Facts that are known before there is code.
#[derive(Debug)]
struct LookupStart {
    request: LookupRequest,
    /// Assumptions of fast code; `None` if there are none.
    proof: Option<Proof>,
    /// Parameters that the proof depends on.
    reads: Vec<(u64, usize)>,
    /// Parameters that are assumed to point to different buffers, by offset.
    apart: Vec<(u64, u64)>,
    /// Progress towards the code.
    made: Mutex<Option<CodeProgress>>,
    took: Duration,
}

#[derive(Debug)]
enum CodeProgress {
    /// Code from the cache, and whether it is the fast one.
    Found(Arc<Ready>, bool),
    /// Fast code that is still to be translated, and the reason of the cache miss.
    Draft(Box<Draft>, Miss),
}

/// Proof that code needs, parameters that it assumes to be apart, and the code.
type FoundCode = (Option<Proof>, Vec<(u64, u64)>, CodeProgress);

/// Looks up code in the cache: fast code, or general code.
fn find(module: &CpuModule, request: &LookupRequest) -> std::result::Result<FoundCode, Miss> {
    let find = |fast: bool| {
        let found = module.device().cache.find(request, fast);
        found.map(|ready| (ready.code.proof.clone(), ready.code.apart.clone(), CodeProgress::Found(ready, fast)))
    };
    find(true).or_else(|miss| find(false).map_err(|_| miss))
}

impl SpecialisedKernel {
    pub(crate) fn new(kernel: Func, block: [u32; 3], cluster: Option<[u32; 3]>) -> SpecialisedKernel {
        SpecialisedKernel::taking(kernel, block, cluster, true)
    }

    fn taking(kernel: Func, block: [u32; 3], cluster: Option<[u32; 3]>, apart: bool) -> SpecialisedKernel {
        let (own, other, start) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        SpecialisedKernel {
            kernel,
            block,
            apart,
            other,
            cluster,
            own,
            start,
            codes: Default::default(),
            proved: Mutex::default(),
            went_ahead: AtomicBool::new(false),
            missed: Mutex::default(),
        }
    }

    /// Returns the module that code is compiled from.
    fn text<'a>(&'a self, module: &'a CpuModule) -> &'a Module {
        let Some(size) = self.cluster else { return module.module() };
        self.own.get_or_init(|| {
            let mut own = module.module().clone();
            own.functions[self.kernel].directives.push(Directive::Words("reqnctapercluster", size.to_vec()));
            own
        })
    }

    /// Returns whether a launch may go ahead of its code: only the first call returns true.
    pub(crate) fn goes_ahead(&self) -> bool {
        !self.went_ahead.swap(true, Ordering::Relaxed)
    }

    /// Returns the code for a launch. Concurrent requests for the same code wait.
    pub(crate) fn code_for(&self, module: &CpuModule, grid: [u32; 3], params: &[u8]) -> Result<LaunchableCode> {
        if !self.are_apart(module, params)? {
            let other =
                self.other.get_or_init(|| Box::new(SpecialisedKernel::taking(self.kernel, self.block, self.cluster, false)));
            return other.code_for(module, grid, params);
        }
        let fast = self.may_run_fast_code(module, grid, params)?;
        self.code(module, fast)
    }

    /// Returns the code for a launch, if it is compiled or in the cache.
    pub(crate) fn known_code_for(&self, module: &CpuModule, grid: [u32; 3], params: &[u8]) -> Option<Result<LaunchableCode>> {
        if let Err(error) = self.known_start(module)? {
            return Some(Err(error));
        }
        let known = |this: &SpecialisedKernel| -> Result<Option<Result<LaunchableCode>>> {
            if !this.are_apart(module, params)? {
                return Ok(this.other.get().and_then(|other| other.known_code_for(module, grid, params)));
            }
            Ok(this.known_code(module, this.may_run_fast_code(module, grid, params)?))
        };
        known(self).unwrap_or_else(|error| Some(Err(error)))
    }

    /// Returns fast or general code, if it is compiled or in the cache.
    pub(crate) fn known_code(&self, module: &CpuModule, fast: bool) -> Option<Result<LaunchableCode>> {
        if let Some(code) = self.codes[usize::from(fast)].get() {
            return Some(code.clone());
        }
        let start = match self.known_start(module)? {
            Ok(start) => start,
            Err(error) => return Some(Err(error)),
        };
        let is_found = match &*start.made.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(CodeProgress::Found(_, found)) => *found == fast || start.proof.is_none(),
            Some(CodeProgress::Draft(..)) | None => false,
        };
        is_found.then(|| self.code(module, fast))
    }

    /// Returns the start, if there is one or the cache has it.
    fn known_start(&self, module: &CpuModule) -> Option<Result<&LookupStart>> {
        if self.start.get().is_none() {
            let started = Instant::now();
            let request = self.request(module).ok()?;
            let keep = |miss| *self.missed.lock().unwrap_or_else(PoisonError::into_inner) = Some(miss);
            let (proof, apart, made) = find(module, &request).map_err(keep).ok()?;
            let reads = proof.as_ref().map(Proof::params).unwrap_or_default();
            let start = LookupStart { request, proof, reads, apart, made: Mutex::new(Some(made)), took: started.elapsed() };
            // Another thread may have been faster.
            let _ = self.start.set(Ok(start));
        }
        Some(self.start.get()?.as_ref().map_err(Clone::clone))
    }

    /// Returns fast or general code.
    pub(crate) fn code(&self, module: &CpuModule, fast: bool) -> Result<LaunchableCode> {
        self.codes[usize::from(fast)].get_or_init(|| self.make(module, fast)).clone()
    }

    /// Returns whether pointers point to different buffers where that was assumed. Buffers come and go, so
    /// each launch is checked.
    fn are_apart(&self, module: &CpuModule, params: &[u8]) -> Result<bool> {
        let pairs = &self.start(module)?.apart;
        if pairs.is_empty() {
            return Ok(true);
        }
        let params = KnownParams::block(params);
        let buffer = |offset: u64| module.device().memory.start_of(params.get(offset, 8)?);
        Ok(pairs.iter().all(|(a, b)| matches!((buffer(*a), buffer(*b)), (Some(a), Some(b)) if a != b)))
    }

    fn may_run_fast_code(&self, module: &CpuModule, grid: [u32; 3], params: &[u8]) -> Result<bool> {
        let start = self.start(module)?;
        let Some(proof) = &start.proof else { return Ok(true) };
        let known = KnownParams::block(params);
        let read: Vec<u64> = start.reads.iter().map(|(offset, bytes)| known.get(*offset, *bytes).unwrap_or(0)).collect();
        let rounded = (
            grid.map(|blocks| u32::try_from(rounded_up(blocks.into())).unwrap_or(u32::MAX)),
            read.iter().map(|value| rounded_up(*value)).collect(),
        );
        let mut proved = self.proved.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = || {
            module.device().proofs.fetch_add(1, Ordering::Relaxed);
            Facts::new(self.block).with_grid(grid).with_params(known.clone())
        };
        let all = match proved.rounded.get(&rounded) {
            Some(holds) => *holds,
            None => {
                let holds = proof.holds(&facts().with_rounded_sizes());
                remember(&mut proved.rounded, rounded, holds);
                holds
            }
        };
        if all {
            return Ok(true);
        }
        let launched = (grid, read);
        if let Some(holds) = proved.exact.get(&launched) {
            return Ok(*holds);
        }
        let holds = proof.holds(&facts());
        remember(&mut proved.exact, launched, holds);
        Ok(holds)
    }

    fn start(&self, module: &CpuModule) -> Result<&LookupStart> {
        self.start.get_or_init(|| self.begin(module)).as_ref().map_err(Clone::clone)
    }

    /// Finds the assumptions of fast code: from the cache, else by running the passes.
    fn begin(&self, module: &CpuModule) -> Result<LookupStart> {
        let mut span = trace::span_with(|| format!("find {}", self.text(module).functions[self.kernel].name));
        let started = Instant::now();
        let request = self.request(module)?;
        let missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (proof, apart, made) = match missed.map_or_else(|| find(module, &request), Err) {
            Ok(found) => found,
            Err(miss) => {
                span.note_with("not in the cache", || miss.to_string());
                let draft = self.draft(module, true)?;
                (draft.proof().cloned(), draft.apart(), CodeProgress::Draft(Box::new(draft), miss))
            }
        };
        let reads = proof.as_ref().map(Proof::params).unwrap_or_default();
        Ok(LookupStart { request, proof, reads, apart, made: Mutex::new(Some(made)), took: started.elapsed() })
    }

    /// Returns the cache key of its code, or an error if there can be no code.
    fn request(&self, module: &CpuModule) -> Result<LookupRequest> {
        let text = self.text(module);
        let refused = refused(text, self.kernel);
        if refused.has_errors() {
            return Err(Error::Unsupported(refused));
        }
        Ok(Cache::request(text, self.kernel, self.block, &self.options(module, true)))
    }

    fn options(&self, module: &CpuModule, fast: bool) -> compile::CompileOptions {
        compile::CompileOptions { assume_no_wrap: fast, assume_apart: self.apart, ..module.device().options.compile.clone() }
    }

    fn draft(&self, module: &CpuModule, fast: bool) -> Result<Draft> {
        let _span = trace::span("passes");
        module.device().drafts.fetch_add(1, Ordering::Relaxed);
        Draft::new(self.text(module), self.kernel, self.block, &self.options(module, fast))
            .map_err(|error| self.told(module, &error))
    }

    /// Reports an internal error at the launched kernel, or that kernels are not compiled any more.
    fn told(&self, module: &CpuModule, error: &CompileError) -> Error {
        if compile::is_over() {
            let kernel = &error.kernel;
            let reason = format!("the process ends, and kernel `{kernel}` is launched for the first time");
            return Error::NotHere { device: "cpu".to_owned(), reason };
        }
        let span = self.text(module).functions[self.kernel].span;
        let mut diagnostics = Diagnostics::new();
        diagnostics.push(Diagnostic::error(INTERNAL, error.to_string()).at(span, "this kernel"));
        Error::Unsupported(diagnostics)
    }

    fn make(&self, module: &CpuModule, fast: bool) -> Result<LaunchableCode> {
        let start = self.start(module)?;
        let started = Instant::now();
        let (ready, miss, before) = self.ready(module, start, fast)?;
        module.device().cache.count(miss.map_or(Ok(()), Err));
        let code = &ready.code;
        let record = module.device().note_kernel(KernelStatistics {
            kernel: ready.name.clone(),
            block: self.block,
            kind: code.kind,
            not_vectorised: code.not_vectorised.clone(),
            loads: code.loads,
            stores: code.stores,
            compile_time: before + started.elapsed(),
            from_cache: miss.is_none(),
            miss,
            code_bytes: ready.object.bytes(),
            launches: 0,
            run_time: Duration::ZERO,
        });
        Ok(LaunchableCode { addresses: module.addresses(&ready), ready, record })
    }

    /// Returns the code, the reason of a cache miss, and the time that its start took.
    fn ready(&self, module: &CpuModule, start: &LookupStart, fast: bool) -> Result<(Arc<Ready>, Option<Miss>, Duration)> {
        let (cache, request) = (&module.device().cache, &start.request);
        let function = &self.text(module).functions[self.kernel];
        let mut before = start.took;
        let (draft, miss) = match start.made.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Without assumptions, both versions are the same code.
            Some(CodeProgress::Found(ready, found)) if found == fast || start.proof.is_none() => {
                return Ok((ready, None, before));
            }
            Some(CodeProgress::Draft(draft, miss)) if fast => (*draft, miss),
            Some(_) | None => {
                before = Duration::ZERO;
                match cache.find(request, fast) {
                    Ok(ready) => return Ok((ready, None, before)),
                    Err(miss) => (self.draft(module, fast)?, miss),
                }
            }
        };
        let mut span = trace::span_with(|| format!("compile {}", function.name));
        span.note_with("not in the cache", || miss.to_string());
        let (text, options) = (self.text(module), self.options(module, fast));
        if let Some(machine) = options.machine.whole() {
            let options = compile::CompileOptions { machine: machine.clone(), ..options.clone() };
            draft.clone().compile(text, &options).map_err(|error| self.told(module, &error))?;
        }
        let mut code = draft.compile(text, &options).map_err(|error| self.told(module, &error))?;
        // A reader of this entry must know whether there is a faster version.
        (code.proof, code.apart) = (start.proof.clone(), start.apart.clone());
        crate::background::count();
        cache.store(request, fast, &code);
        let broken = |source: CompileFailure| self.told(module, &CompileError { kernel: function.name.clone(), source });
        let ready = Arc::new(Ready::new(&function.name, code).map_err(|error| broken(error.into()))?);
        cache.keep(request, fast, &ready);
        Ok((ready, Some(miss), before))
    }
}
