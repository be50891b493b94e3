//! Loaded module: its variables in memory, its kernels compiled on launch.
//!
//! A kernel is compiled on its first launch with a block shape. That launch goes ahead if it can
//! (`crate::ahead`); else it waits for the code. Other launches of the kernel meanwhile wait for the same
//! code. The waiting time of a launch counts towards its time limit.

use crate::abi::Kind;
use crate::ahead;
use crate::background;
use crate::cluster::Shape;
use crate::device::Inner;
use crate::grid::{Grid, Ready, Workspace};
use crate::registers;
use crate::shaped::{Compiled, Shaped};
use crate::stream::{Limit, Work};
use crate::variables::Variables;
use broadloom_device::texture::{self, OpaqueTable, Surface, Texture};
use broadloom_device::{Error, Fault, FaultKind, GlobalVariable, KernelAttributes, Launch, LoadedModule, Result};
use broadloom_diag::{Code as DiagnosticCode, Diagnostic, Diagnostics};
use broadloom_ptx::{Func, Module, Verified};
use broadloom_transform::hoist_statics;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const REFUSED: DiagnosticCode = DiagnosticCode("C0004");
/// Maximum strands of a cooperative launch: each has a stack.
const MOST_TOGETHER: u64 = 1 << 17;

/// Kernels by block shape, and by the cluster size of the launch.
type Kernels = HashMap<(Func, [u32; 3], Option<[u32; 3]>), Arc<Shaped>>;

/// Launch as requested.
pub(crate) struct Given<'a> {
    pub(crate) kernel: Func,
    pub(crate) launch: Launch,
    pub(crate) params: Cow<'a, [u8]>,
    pub(crate) cluster: Shape,
    /// Number among all launches of the device.
    pub(crate) number: u32,
    /// Textures and surfaces at the time of the launch.
    pub(crate) opaques: OpaqueTable,
}

/// Handle of a loaded module, for launches. Compilations share it.
#[derive(Debug)]
pub(crate) struct Handle(pub(crate) Arc<Loaded>);

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Loaded {
    inner: Arc<Inner>,
    /// Module with all static variables at its top.
    module: Module,
    variables: Variables,
    kernels: Mutex<Kernels>,
    /// Register estimates, by function.
    registers: Mutex<HashMap<Func, u32>>,
}

impl Loaded {
    pub(crate) fn new(inner: &Arc<Inner>, module: &Arc<Verified>) -> Result<Loaded> {
        let mut module: Module = (***module).clone();
        hoist_statics::run(&mut module);
        let variables = Variables::load(&module, &inner.memory, &inner.opaques)?;
        Ok(Loaded { inner: inner.clone(), module, variables, kernels: Mutex::default(), registers: Mutex::default() })
    }

    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Returns the addresses of the variables and functions that code names.
    pub(crate) fn addresses(&self, ready: &Ready) -> Arc<[u64]> {
        ready.code.variables.iter().map(|named| self.variables.address(*named)).collect()
    }

    fn shaped(&self, kernel: Func, launch: &Launch) -> Arc<Shaped> {
        let own = self.module.functions[kernel].directive("reqnctapercluster").is_some();
        let (block, cluster) = (launch.block, launch.cluster.filter(|_| !own));
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.entry((kernel, block, cluster)).or_insert_with(|| Arc::new(Shaped::new(kernel, block, cluster))).clone()
    }

    /// Returns the cluster shape of a launch.
    fn cluster(&self, kernel: Func, launch: &Launch) -> Result<Shape> {
        let function = &self.module.functions[kernel];
        let cluster = Shape::of_launch(function, launch);
        cluster.check(function, launch.grid).map_err(|reason| self.bad_launch(kernel, reason))?;
        Ok(cluster)
    }

    fn bad_launch(&self, kernel: Func, reason: String) -> Error {
        Error::BadLaunch { kernel: self.module.functions[kernel].name.clone(), reason }
    }

    /// Compiles code on a separate thread. Also returns the time taken.
    pub(crate) fn compiled(
        self: &Arc<Self>,
        kernel: Func,
        limit: Option<Duration>,
        make: impl FnOnce(&Loaded) -> Result<Compiled> + Send + 'static,
    ) -> Result<(Compiled, Duration)> {
        let started = Instant::now();
        let module = self.clone();
        let name = &self.module.functions[kernel].name;
        let until = limit.and_then(|limit| started.checked_add(limit));
        let job = move || make(&module);
        let compiled = background::wait_for(name, until, self.inner.options.notice.as_ref(), job);
        let compiled = compiled.map_err(|late| self.late(kernel, limit.unwrap_or_default(), late.stage))??;
        Ok((compiled, started.elapsed()))
    }

    /// Returns the error for a time limit that ran out during compilation.
    fn late(&self, kernel: Func, limit: Duration, stage: &str) -> Error {
        let function = &self.module.functions[kernel];
        let message = format!("it was not compiled within {limit:?}, and was at `{stage}`");
        Error::Fault(Box::new(Fault {
            kind: FaultKind::TimeLimit,
            message,
            kernel: function.name.clone(),
            function: None,
            block: None,
            thread: None,
            instruction: None,
            span: Some(function.span),
            source: None,
            address: None,
        }))
    }

    /// Builds the grid of a launch, once there is code for it.
    pub(crate) fn grid(&self, given: &Given<'_>, compiled: Compiled) -> Result<Box<Grid>> {
        let Given { kernel, ref launch, ref params, cluster, number, .. } = *given;
        let Compiled { ready, addresses, record } = compiled;
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
        Ok(Box::new(Grid {
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
            number,
            opaques: given.opaques.clone(),
            stack_bytes: usize::try_from(stack).unwrap_or(usize::MAX),
        }))
    }

    /// Returns the total bytes of shared memory, and the offset of the dynamic part.
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

/// Returns the instructions reachable from a kernel that this device does not run, each with its span.
pub fn refused(module: &Module, kernel: Func) -> Diagnostics {
    let mut refused = Diagnostics::new();
    for func in crate::cache::reachable(module, kernel) {
        for (_, data) in module.functions[func].instructions() {
            let class = data.class();
            if broadloom_eval::is_run(data) {
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

impl Drop for Loaded {
    fn drop(&mut self) {
        self.variables.unload(&self.inner.memory, &self.inner.opaques, || self.inner.shared.streams.horizon());
    }
}

impl LoadedModule for Handle {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.0.variables.by_name(name)
    }

    fn bind_texture(&self, name: &str, texture: Option<&Texture>) -> Result<()> {
        let inside = |address, bytes| self.0.inner.inside(address, bytes);
        let opaque = texture.map(|texture| texture::checked_texture(texture, inside)).transpose()?;
        self.0.variables.references.bind(&self.0.inner.opaques, name, opaque)
    }

    fn bind_surface(&self, name: &str, surface: Option<&Surface>) -> Result<()> {
        let inside = |address, bytes| self.0.inner.inside(address, bytes);
        let opaque = surface.map(|surface| texture::checked_surface(surface, inside)).transpose()?;
        self.0.variables.references.bind(&self.0.inner.opaques, name, opaque)
    }

    fn attributes(&self, kernel: Func) -> Result<KernelAttributes> {
        let mut known = self.0.registers.lock().unwrap_or_else(PoisonError::into_inner);
        let registers = *known.entry(kernel).or_insert_with(|| registers::estimate(&self.0.module, kernel));
        Ok(KernelAttributes { registers: Some(registers), ..KernelAttributes::default() })
    }

    fn prepare(&self, kernel: Func, launch: &Launch) -> Result<()> {
        self.0.cluster(kernel, launch)?;
        let shaped = self.0.shaped(kernel, launch);
        if let Some(code) = shaped.known_code(&self.0, true) {
            return code.map(drop);
        }
        self.0.compiled(kernel, launch.time_limit, move |module| shaped.code(module, true)).map(drop)
    }

    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        let inner = &self.0.inner;
        inner.shared.streams.check(launch.stream)?;
        let cluster = self.0.cluster(kernel, launch)?;
        let shaped = self.0.shaped(kernel, launch);
        let number = inner.launches.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let (params, opaques) = (Cow::Borrowed(params), inner.opaques.table());
        let given = Given { kernel, launch: launch.clone(), params, cluster, number, opaques };
        let (compiled, spent) = match shaped.known_code_for(&self.0, launch.grid, &given.params) {
            Some(code) => (code?, Duration::ZERO),
            None if ahead::may_go(&self.0, &given, &shaped) => return ahead::launch(&self.0, &shaped, given),
            None => {
                let (grid, params) = (launch.grid, given.params.to_vec());
                self.0.compiled(kernel, launch.time_limit, move |module| shaped.code_for(module, grid, &params))?
            }
        };
        let work = Work::Launch(self.0.grid(&given, compiled)?);
        let limit = launch.time_limit.map(|total| Limit { total, spent });
        inner.shared.streams.submit(launch.stream, work, limit, &|| Ok(()))
    }
}
