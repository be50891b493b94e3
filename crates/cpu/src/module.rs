//! Loaded module: its text, its variables in memory, and the grids of its launches.

use crate::abi::Kind;
use crate::background;
use crate::cluster::ClusterShape;
use crate::grid::{Grid, Ready, Workspace};
use crate::state::DeviceState;
use crate::statistics::Record;
use crate::variables::Variables;
use broadloom_device::texture::OpaqueTable;
use broadloom_device::{Error, Fault, FaultKind, Launch, Result};
use broadloom_diag::{Code as DiagnosticCode, Diagnostic, Diagnostics};
use broadloom_ptx::{Func, Module, Verified};
use broadloom_transform::hoist_statics;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

const REFUSED: DiagnosticCode = DiagnosticCode("C0004");
/// Maximum strands of a cooperative launch: each has a stack.
const MOST_TOGETHER: u64 = 1 << 17;

/// Launch of a kernel, as requested.
pub(crate) struct LaunchRequest<'a> {
    pub(crate) kernel: Func,
    pub(crate) launch: Launch,
    pub(crate) params: Cow<'a, [u8]>,
    pub(crate) cluster: ClusterShape,
    /// Number among all launches of the device.
    pub(crate) number: u32,
    /// Textures and surfaces at the time of the launch.
    pub(crate) opaques: OpaqueTable,
}

/// Module loaded on the CPU.
#[derive(Debug)]
pub(crate) struct CpuModule {
    device: Arc<DeviceState>,
    /// Module with all static variables at its top.
    module: Module,
    pub(crate) variables: Variables,
}

impl CpuModule {
    pub(crate) fn new(device: &Arc<DeviceState>, module: &Arc<Verified>) -> Result<CpuModule> {
        let mut module: Module = (***module).clone();
        hoist_statics::run(&mut module);
        let variables = device.retried(|| Variables::load(&module, &device.memory, &device.opaques))?;
        Ok(CpuModule { device: device.clone(), module, variables })
    }

    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    pub(crate) fn device(&self) -> &DeviceState {
        &self.device
    }

    /// Returns the addresses of the variables and functions that code names.
    pub(crate) fn addresses(&self, ready: &Ready) -> Arc<[u64]> {
        ready.code.variables.iter().map(|named| self.variables.address(*named)).collect()
    }

    /// Returns the cluster shape of a launch.
    pub(crate) fn cluster(&self, kernel: Func, launch: &Launch) -> Result<ClusterShape> {
        let function = &self.module.functions[kernel];
        let cluster = ClusterShape::of_launch(function, launch);
        cluster.check(function, launch.grid).map_err(|error| self.bad_launch(kernel, error.to_string()))?;
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
        make: impl FnOnce(&CpuModule) -> Result<LaunchableCode> + Send + 'static,
    ) -> Result<(LaunchableCode, Duration)> {
        let started = Instant::now();
        let module = self.clone();
        let name = &self.module.functions[kernel].name;
        let until = limit.and_then(|limit| started.checked_add(limit));
        let job = move || make(&module);
        let compiled = background::wait_for(name, until, self.device.options.notice.as_ref(), job);
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
    pub(crate) fn grid(&self, given: &LaunchRequest<'_>, compiled: LaunchableCode) -> Result<Box<Grid>> {
        let LaunchRequest { kernel, ref launch, ref params, cluster, number, .. } = *given;
        let LaunchableCode { ready, addresses, record } = compiled;
        let (shared_bytes, dynamic_shared_offset) = self.shared(kernel, launch, &ready)?;
        let stack = self.device.options.stack_bytes;
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
        let workspace =
            if launch.cooperative { Some(self.device.retried(|| Workspace::new(&self.device.memory))?) } else { None };
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
        let most = self.device.machine.max_shared_bytes;
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

impl Drop for CpuModule {
    fn drop(&mut self) {
        self.variables.unload(&self.device.memory, &self.device.opaques, || self.device.shared.streams.horizon());
    }
}

/// Code that a launch can run.
#[derive(Clone, Debug)]
pub(crate) struct LaunchableCode {
    pub(crate) ready: Arc<Ready>,
    pub(crate) addresses: Arc<[u64]>,
    pub(crate) record: Arc<Record>,
}
