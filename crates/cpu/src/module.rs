//! A loaded module: its variables in memory, its kernels compiled as they are launched.
//!
//! A kernel is compiled by the thread that first launches it with a shape of block, so that what cannot be compiled is told by that
//! launch; others who launch it meanwhile wait for the same code.

use crate::abi::Kind;
use crate::cluster::Shape;
use crate::device::Inner;
use crate::grid::{Grid, Ready, Workspace};
use crate::shaped::{Compiled, Shaped};
use crate::stream::Work;
use crate::variables::Variables;
use broadloom_device::texture::{self, Surface, Texture};
use broadloom_device::{Error, GlobalVariable, Launch, LoadedModule, Result};
use broadloom_diag::{Code as DiagnosticCode, Diagnostic, Diagnostics};
use broadloom_ptx::{Func, Module, Verified};
use broadloom_transform::hoist_statics;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

const REFUSED: DiagnosticCode = DiagnosticCode("C0004");
/// Most strands of a cooperative launch: each has a stack.
const MOST_TOGETHER: u64 = 1 << 17;

/// Kernels by shape of block, and by the clusters that launches ask for.
type Kernels = HashMap<(Func, [u32; 3], Option<[u32; 3]>), Arc<Shaped>>;

/// A loaded module.
#[derive(Debug)]
pub(crate) struct Loaded {
    inner: Arc<Inner>,
    /// With all static variables at its top.
    module: Module,
    variables: Variables,
    kernels: Mutex<Kernels>,
}

impl Loaded {
    pub(crate) fn new(inner: &Arc<Inner>, module: &Arc<Verified>) -> Result<Loaded> {
        let mut module: Module = (***module).clone();
        hoist_statics::run(&mut module);
        let variables = Variables::load(&module, &inner.memory, &inner.opaques)?;
        Ok(Loaded { inner: inner.clone(), module, variables, kernels: Mutex::default() })
    }

    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Addresses of what code names.
    pub(crate) fn addresses(&self, ready: &Ready) -> Arc<[u64]> {
        ready.code.variables.iter().map(|named| self.variables.address(*named)).collect()
    }

    fn shaped(&self, kernel: Func, launch: &Launch) -> Arc<Shaped> {
        let own = self.module.functions[kernel].directive("reqnctapercluster").is_some();
        let (block, cluster) = (launch.block, launch.cluster.filter(|_| !own));
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.entry((kernel, block, cluster)).or_insert_with(|| Arc::new(Shaped::new(kernel, block, cluster))).clone()
    }

    /// The clusters of a launch.
    fn cluster(&self, kernel: Func, launch: &Launch) -> Result<Shape> {
        let function = &self.module.functions[kernel];
        let cluster = Shape::of_launch(function, launch);
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

impl LoadedModule for Loaded {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.variables.by_name(name)
    }

    fn bind_texture(&self, name: &str, texture: Option<&Texture>) -> Result<()> {
        let inside = |address, bytes| self.inner.inside(address, bytes);
        let opaque = texture.map(|texture| texture::checked_texture(texture, inside)).transpose()?;
        self.variables.references.bind(&self.inner.opaques, name, opaque)
    }

    fn bind_surface(&self, name: &str, surface: Option<&Surface>) -> Result<()> {
        let inside = |address, bytes| self.inner.inside(address, bytes);
        let opaque = surface.map(|surface| texture::checked_surface(surface, inside)).transpose()?;
        self.variables.references.bind(&self.inner.opaques, name, opaque)
    }

    fn prepare(&self, kernel: Func, launch: &Launch) -> Result<()> {
        self.cluster(kernel, launch)?;
        self.shaped(kernel, launch).code(self, true).map(drop)
    }

    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        self.inner.shared.streams.check(launch.stream)?;
        let cluster = self.cluster(kernel, launch)?;
        let Compiled { ready, addresses, record } = self.shaped(kernel, launch).code_for(self, launch.grid, params)?;
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
            opaques: self.inner.opaques.table(),
            stack_bytes: usize::try_from(stack).unwrap_or(usize::MAX),
        };
        let work = Work::Launch(Box::new(grid));
        self.inner.shared.streams.submit(launch.stream, work, launch.time_limit, &|| Ok(()))
    }
}
