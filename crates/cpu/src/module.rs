//! A loaded module: its variables in memory, its kernels compiled as they are launched.
//!
//! A kernel is compiled by the thread that first launches it with a shape of block, so that what cannot be compiled is told by that
//! launch; others who launch it meanwhile wait for the same code.

use crate::abi::Kind;
use crate::cluster::Shape;
use crate::compile::{self, CompileError, Prover, compile};
use crate::device::Inner;
use crate::grid::{Grid, Ready, Workspace};
use crate::statistics::{KernelStatistics, Record};
use crate::stream::Work;
use crate::variables::Variables;
use broadloom_device::{Error, GlobalVariable, Launch, LoadedModule, Result};
use broadloom_diag::{Code as DiagnosticCode, Diagnostic, Diagnostics};
use broadloom_ptx::{Class, Func, InstData, Modifier, Module, Opcode, Verified};
use broadloom_transform::hoist_statics;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

const INTERNAL: DiagnosticCode = DiagnosticCode("C0003");
const REFUSED: DiagnosticCode = DiagnosticCode("C0004");
/// Most strands of a cooperative launch: each has a stack.
const MOST_TOGETHER: u64 = 1 << 17;

/// A kernel for one shape of block.
#[derive(Clone, Debug)]
struct Compiled {
    ready: Arc<Ready>,
    addresses: Arc<[u64]>,
    record: Arc<Record>,
}

/// A place for a kernel that is compiled once.
type Slot = Arc<OnceLock<Result<Compiled>>>;

/// Kernels by shape of block, and whether they take for granted what is promised.
type Kernels = HashMap<(Func, [u32; 3], bool), Slot>;
/// What kernels take for granted, by shape of block.
type Promises = HashMap<(Func, [u32; 3]), Arc<Promise>>;

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Loaded {
    inner: Arc<Inner>,
    /// With all static variables at its top.
    module: Module,
    variables: Variables,
    kernels: Mutex<Kernels>,
    promises: Mutex<Promises>,
}

/// What the fast code of a kernel takes for granted of its launches, and whether it held for the last one.
#[derive(Debug, Default)]
struct Promise {
    prover: OnceLock<Option<Prover>>,
    last: Mutex<Option<(Launched, bool)>>,
}

/// What a launch is judged by: its grid and its parameters.
type Launched = ([u32; 3], Vec<u8>);

impl Promise {
    fn holds(&self, prove: impl FnOnce() -> Option<Prover>, grid: [u32; 3], params: &[u8]) -> bool {
        let Some(prover) = self.prover.get_or_init(prove) else { return true };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(((old_grid, old_params), holds)) if *old_grid == grid && old_params == params => *holds,
            _ => {
                let holds = prover.proves(grid, params);
                *last = Some(((grid, params.to_vec()), holds));
                holds
            }
        }
    }
}

impl Loaded {
    pub(crate) fn new(inner: &Arc<Inner>, module: &Arc<Verified>) -> Result<Loaded> {
        let mut module: Module = (***module).clone();
        hoist_statics::run(&mut module);
        let variables = Variables::load(&module, &inner.memory)?;
        Ok(Loaded { inner: inner.clone(), module, variables, kernels: Mutex::new(HashMap::new()), promises: Mutex::default() })
    }

    /// Whether a launch keeps what the fast code of its kernel takes for granted.
    fn keeps_promises(&self, kernel: Func, launch: &Launch, params: &[u8]) -> bool {
        let promise = {
            let mut promises = self.promises.lock().unwrap_or_else(PoisonError::into_inner);
            promises.entry((kernel, launch.block)).or_default().clone()
        };
        let prove = || Prover::new(&self.module, kernel, launch.block, &self.inner.options.compile);
        promise.holds(prove, launch.grid, params)
    }

    fn compiled(&self, kernel: Func, block: [u32; 3], assume_no_wrap: bool) -> Result<Compiled> {
        let slot = {
            let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
            kernels.entry((kernel, block, assume_no_wrap)).or_default().clone()
        };
        slot.get_or_init(|| self.make(kernel, block, assume_no_wrap)).clone()
    }

    fn make(&self, kernel: Func, block: [u32; 3], assume_no_wrap: bool) -> Result<Compiled> {
        let started = Instant::now();
        let options = compile::Options { assume_no_wrap, ..self.inner.options.compile.clone() };
        let name = &self.module.functions[kernel].name;
        let refused = refused(&self.module, kernel);
        if refused.has_errors() {
            return Err(Error::Unsupported(refused));
        }
        let key = self.inner.cache.key(&self.module, kernel, block, &options);
        let internal = |reason: String| {
            let error = CompileError { kernel: name.clone(), reason };
            let mut diagnostics = Diagnostics::new();
            diagnostics
                .push(Diagnostic::error(INTERNAL, error.to_string()).at(self.module.functions[kernel].span, "this kernel"));
            Error::Unsupported(diagnostics)
        };
        let (ready, from_cache) = match self.inner.cache.find(&key, name, &self.module.functions[kernel]) {
            Some(ready) => (ready, true),
            None => {
                let code = compile(&self.module, kernel, block, &options);
                let code = code.map_err(|error| internal(error.reason))?;
                self.inner.cache.store(&key, &code);
                let ready = Arc::new(Ready::new(name, code).map_err(|error| internal(error.to_string()))?);
                self.inner.cache.keep(&key, &ready);
                (ready, false)
            }
        };
        let code = &ready.code;
        let record = self.inner.note_kernel(KernelStatistics {
            kernel: name.clone(),
            block,
            kind: code.kind,
            not_vectorised: code.not_vectorised.clone(),
            loads: code.loads,
            stores: code.stores,
            compile_time: started.elapsed(),
            from_cache,
            code_bytes: ready.object.bytes(),
            launches: 0,
            run_time: std::time::Duration::ZERO,
        });
        let addresses = code.variables.iter().map(|named| self.variables.address(*named)).collect();
        Ok(Compiled { ready, addresses, record })
    }

    /// The clusters of a launch.
    fn cluster(&self, kernel: Func, launch: &Launch) -> Result<Shape> {
        let function = &self.module.functions[kernel];
        let cluster = Shape::of(function);
        cluster.check(function, launch.grid).map_err(|reason| self.bad_launch(kernel, reason))?;
        Ok(cluster)
    }

    fn bad_launch(&self, kernel: Func, reason: String) -> Error {
        Error::BadLaunch { kernel: self.module.functions[kernel].name.clone(), reason }
    }

    /// Shared memory: bytes in all, and where the dynamic part starts.
    fn shared(&self, kernel: Func, launch: &Launch, ready: &Ready) -> Result<(u64, u32)> {
        let most = self.inner.machine.max_shared_bytes;
        let start = ready.code.shared_bytes.saturating_add(15) & !15;
        let total = match launch.shared_bytes {
            0 => ready.code.shared_bytes,
            dynamic => start.saturating_add(u64::from(dynamic)),
        };
        match u32::try_from(start) {
            Ok(start) if total <= u64::from(most) => Ok((total, start)),
            _ => {
                let reason = format!("it needs {total} bytes of shared memory, a block has at most {most}");
                Err(self.bad_launch(kernel, reason))
            }
        }
    }
}

/// Instructions which this device does not run and a kernel reaches, each with its place.
pub fn refused(module: &Module, kernel: Func) -> Diagnostics {
    let mut refused = Diagnostics::new();
    for func in crate::cache::reachable(module, kernel) {
        for (_, data) in module.functions[func].instructions() {
            let class = data.class();
            if class.is_some_and(|class| class.is_general()) && !is_beyond(data) {
                continue;
            }
            let why = match class {
                Some(class) => format!("an instruction of the class `{class:?}`").to_lowercase(),
                None => "not an instruction that Broadloom knows".to_owned(),
            };
            let message = format!("the CPU does not run `{}`", data.mnemonic_text());
            refused.push(Diagnostic::error(REFUSED, message).at(data.span, why));
        }
    }
    refused
}

/// Of mbarriers what there is since ISA 9.3 (a second layout, phases of two types, arrivals at several at once) is not run; whether
/// an mbarrier has the second layout can be asked.
fn is_beyond(data: &InstData) -> bool {
    let beyond = [Modifier::LayoutV1, Modifier::PhaseTypePrimary, Modifier::PhaseTypeConditional, Modifier::MulticastCluster32b];
    data.class() == Some(Class::Mbarrier)
        && data.opcode() != Some(Opcode::MbarrierCheckLayout)
        && beyond.iter().any(|modifier| data.has(*modifier))
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.variables.unload(&self.inner.memory, || self.inner.shared.streams.horizon());
    }
}

impl LoadedModule for Loaded {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.variables.by_name(name)
    }

    fn prepare(&self, kernel: Func, launch: &Launch) -> Result<()> {
        self.cluster(kernel, launch)?;
        self.compiled(kernel, launch.block, true).map(drop)
    }

    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        self.inner.shared.streams.check(launch.stream)?;
        let cluster = self.cluster(kernel, launch)?;
        let assume_no_wrap = self.keeps_promises(kernel, launch, params);
        let Compiled { ready, addresses, record } = self.compiled(kernel, launch.block, assume_no_wrap)?;
        let (shared_bytes, dynamic_shared_offset) = self.shared(kernel, launch, &ready)?;
        let stack = self.inner.options.stack_bytes;
        if ready.code.local_bytes > stack {
            let needs = ready.code.local_bytes;
            let reason = format!("a thread needs {needs} bytes of local memory, more than the {stack} it has");
            return Err(self.bad_launch(kernel, reason));
        }
        let threads = u32::try_from(launch.threads_per_block()).unwrap_or(u32::MAX);
        if launch.cooperative {
            let strands = match ready.code.kind {
                Kind::Block => 1,
                Kind::Warps => threads.div_ceil(32),
                Kind::Threads => threads,
            };
            let most = (MOST_TOGETHER / u64::from(strands.max(1))).max(1);
            if launch.blocks() > most {
                let reason = format!("at most {most} of its blocks run at the same time, not {}", launch.blocks());
                return Err(self.bad_launch(kernel, reason));
            }
        }
        let mut words = vec![0u128; params.len().div_ceil(16)];
        for (word, bytes) in words.iter_mut().zip(params.chunks(16)) {
            let mut whole = [0; 16];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u128::from_le_bytes(whole);
        }
        let workspace = if launch.cooperative { Some(Workspace::new(&self.inner.memory)?) } else { None };
        let grid = Grid {
            ready,
            params: words,
            variables: addresses,
            record,
            grid: launch.grid,
            block: launch.block,
            threads,
            cluster,
            shared_bytes,
            dynamic_shared_bytes: launch.shared_bytes,
            dynamic_shared_offset,
            cooperative: launch.cooperative,
            workspace,
            number: self.inner.launches.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            stack_bytes: usize::try_from(stack).unwrap_or(usize::MAX),
        };
        let work = Work::Launch(Box::new(grid));
        self.inner.shared.streams.submit(launch.stream, work, launch.time_limit, &|| Ok(()))
    }
}
