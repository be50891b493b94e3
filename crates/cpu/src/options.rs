//! Options of the device, and the description of its machine.

use crate::background::Notice;
use crate::compile;
use crate::execute::Output;
use crate::memory::Foreign;
use broadloom_device::cache::CACHE_BYTES;
use broadloom_device::{CacheFolder, Machine, MachineKind, memory_limit, settings};
use broadloom_ptx::IsaVersion;
use std::fmt;
use std::sync::Arc;

/// Options of the device.
#[derive(Clone)]
pub struct Options {
    /// Number of threads that run blocks. `BROADLOOM_THREADS`, or as many as the host runs at once.
    pub threads: usize,
    /// Total bytes of memory. `BROADLOOM_MEMORY_LIMIT` (with suffix `K`, `M` or `G`), or the memory of the
    /// host.
    pub memory_bytes: u64,
    /// Maximum bytes that kernels may allocate with `malloc`.
    pub heap_bytes: u64,
    /// Bytes before and after buffers that kernels may access although they belong to no buffer. 0 finds most
    /// stray accesses. Programs that were only ever run on GPUs, with pages of 2 MiB, may need more.
    pub slack_bytes: usize,
    /// Memory beyond the device's own that kernels may access, if their accesses are checked
    /// ([`compile::CompileOptions::checks`]).
    pub foreign: Option<Foreign>,
    /// Maximum bytes of stack and local memory of a thread.
    pub stack_bytes: u64,
    /// Folder of compiled kernels.
    pub cache: CacheFolder,
    /// Maximum bytes in that folder, for all devices.
    pub cache_bytes: u64,
    /// Compile options of kernels.
    pub compile: compile::CompileOptions,
    /// Receiver of the output of `printf`.
    pub output: Output,
    /// Receiver of reports of compilations that take longer than a second.
    pub notice: Option<Notice>,
    /// True if a launch may return before its kernel is compiled. Kernels of one stream are then compiled in
    /// parallel. A compile error is reported when the stream is waited for.
    pub ahead: bool,
}

impl Default for Options {
    fn default() -> Self {
        let threads = settings::threads();
        Options {
            threads: threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            memory_bytes: memory_limit().unwrap_or_else(host_memory),
            heap_bytes: 64 << 20,
            slack_bytes: 0,
            foreign: None,
            stack_bytes: 1 << 20,
            cache: CacheFolder::Default,
            cache_bytes: CACHE_BYTES,
            compile: compile::CompileOptions::default(),
            output: Arc::new(|_| {}),
            notice: None,
            ahead: true,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("threads", &self.threads)
            .field("memory_bytes", &self.memory_bytes)
            .field("cache", &self.cache)
            .field("compile", &self.compile)
            .finish_non_exhaustive()
    }
}

/// Name of the CPU device in strict mode.
pub const STRICT: &str = "cpu:strict";

impl Options {
    /// Returns the default options of a device by its name: `cpu`, or `cpu:strict`, which checks every access.
    pub fn of(name: &str) -> Option<Options> {
        let mut options = Options::default();
        match name {
            "cpu" => {}
            STRICT => options.compile.checks = compile::Checks::Strict,
            "cpu:confined" => options.compile.checks = compile::Checks::Confined,
            _ => return None,
        }
        Some(options)
    }

    /// Selects a vector instruction set: `host`, `avx512`, `avx2`, `sse4.2`. Returns `None` if the name is
    /// unknown or the host does not have it.
    #[must_use]
    pub fn vectors(mut self, kind: &str) -> Option<Options> {
        let host = compile::Machine::host();
        let part = |machine: compile::Machine| machine.beyond(host).is_empty().then_some(machine);
        self.compile.machine = match kind {
            "host" => host.clone(),
            "avx512" if ["avx512f", "avx512bw", "avx512vl", "avx512dq"].iter().all(|name| host.has(name)) => host.clone(),
            "avx2" => part(compile::Machine::avx2())?,
            "sse4.2" => part(compile::Machine::sse())?,
            _ => return None,
        };
        Some(self)
    }
}

/// Returns the memory that this process may use: that of the host, or the limit of a container.
fn host_memory() -> u64 {
    // SAFETY: sysconf only reads.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let host = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page).unwrap_or(0));
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    match (host, container) {
        (0, None) => 4 << 30,
        (0, Some(container)) => container,
        (host, container) => host.min(container.unwrap_or(u64::MAX)),
    }
}

/// Host features that matter to vector code, widest first.
const VECTOR_FEATURES: [&str; 9] = ["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "sse4.2", "neon"];

impl Options {
    /// Returns the machine description for planners, without opening the device.
    pub fn machine(&self) -> Machine {
        machine(self)
    }

    /// Returns the vector features of the target machine.
    pub fn vector_features(&self) -> Vec<&'static str> {
        VECTOR_FEATURES.into_iter().filter(|feature| self.compile.machine.has(feature)).collect()
    }
}

/// Returns the machine description for planners.
pub(crate) fn machine(options: &Options) -> Machine {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned()));
    Machine {
        kind: MachineKind::Cpu,
        id: "cpu".into(),
        name: model.unwrap_or_else(|| compile::Machine::host().cpu.clone()),
        warp_size: 32,
        multiprocessors: u32::try_from(options.threads).unwrap_or(u32::MAX),
        max_threads_per_block: 1024,
        max_block: [1024, 1024, 64],
        max_grid: [i32::MAX as u32, 65535, 65535],
        max_shared_bytes: 227 << 10,
        registers: None,
        resident_threads: None,
        vector_registers: Some(vector_registers(&options.compile.machine)),
        memory_bytes: options.memory_bytes,
        cache_bytes: crate::host::cache_bytes(),
        core_cache_bytes: crate::host::core_cache_bytes(),
        peak_operations: None,
        peak_bandwidth: None,
        bandwidth: None,
        launch_cost: None,
        isa: IsaVersion::new(9, 4),
        sm: 90,
    }
}

/// Returns the width of the vector registers of a machine in bytes, and their number.
fn vector_registers(machine: &compile::Machine) -> (u32, u32) {
    if machine.has("avx512f") {
        (64, 32)
    } else if machine.has("avx") {
        (32, 16)
    } else {
        (16, 16)
    }
}
