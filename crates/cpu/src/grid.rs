//! Loaded kernels, and launches of them.

use crate::abi::Kind;
use crate::cluster::ClusterShape;
use crate::code::{Code, FaultSite, RareInstruction};
use crate::memory::{Memory, Owner};
use crate::object::{Entry, Object, ObjectError};
use crate::statistics::Record;
use broadloom_device::texture::OpaqueTable;
use broadloom_device::{Fault, FaultKind};
use broadloom_eval::matrix::Product;
use broadloom_eval::{Function, Operation, inputs};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Instruction that the runtime evaluates.
#[derive(Debug)]
pub(crate) enum EvaluatedInstruction {
    /// Function of the inputs of a lane, with their number.
    Function { operation: Operation, function: Function, inputs: usize },
    /// Matrix product of all lanes.
    Product(Product),
}

/// Kernel in memory, ready to be called.
#[derive(Debug)]
pub struct Ready {
    /// Name of the kernel.
    pub(crate) name: String,
    pub code: Code,
    pub(crate) object: Object,
    pub(crate) operations: Vec<Option<EvaluatedInstruction>>,
    /// Time of a block in nanoseconds, a moving average; zero if unknown.
    block_time: AtomicU64,
}

impl Ready {
    /// Loads code. The object file is not needed afterwards and is dropped from `code`.
    pub fn new(name: &str, mut code: Code) -> Result<Ready, ObjectError> {
        let object = Object::load(&code.object)?;
        code.object = vec![];
        let operations = code.operations.iter().map(evaluated).collect();
        Ok(Ready { name: name.to_owned(), code, object, operations, block_time: AtomicU64::new(0) })
    }

    /// Returns the average time of a block, if known.
    pub(crate) fn block_time(&self) -> Option<Duration> {
        Some(self.block_time.load(Ordering::Relaxed)).filter(|time| *time != 0).map(Duration::from_nanos)
    }

    /// Records the time that blocks took.
    pub(crate) fn note_time(&self, blocks: u64, time: Duration) {
        let each = (time.as_nanos() as u64 / blocks.max(1)).max(1);
        let before = self.block_time.load(Ordering::Relaxed);
        self.block_time.store(if before == 0 { each } else { (3 * before + each) / 4 }, Ordering::Relaxed);
    }
}

fn evaluated(rare: &RareInstruction) -> Option<EvaluatedInstruction> {
    let inst = rare.instruction()?;
    if let Some(product) = Product::of(&inst) {
        return Some(EvaluatedInstruction::Product(product));
    }
    let operation = Operation::of(&inst)?;
    let function = operation.function()?;
    let inputs = inputs(&inst).count().min(6);
    Some(EvaluatedInstruction::Function { operation, function, inputs })
}

/// A launch.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) ready: Arc<Ready>,
    /// Parameter block, in words so that it is aligned.
    pub(crate) params: Vec<u128>,
    /// Addresses of the variables and functions that the code names.
    pub(crate) variables: Arc<[u64]>,
    /// Record in which the launch is counted.
    pub(crate) record: Arc<Record>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) threads: u32,
    pub(crate) cluster: ClusterShape,
    pub(crate) shared_bytes: u64,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) dynamic_shared_offset: u32,
    pub(crate) cooperative: bool,
    /// State of grid-wide barriers, in a cooperative launch.
    pub(crate) workspace: Option<Workspace>,
    pub(crate) number: u32,
    /// Textures and surfaces.
    pub(crate) opaques: OpaqueTable,
    /// Stack bytes of one lane.
    pub(crate) stack_bytes: usize,
}

/// Memory by which the blocks of a cooperative launch synchronise.
#[derive(Debug)]
pub(crate) struct Workspace {
    memory: Arc<Memory>,
    address: u64,
}

impl Workspace {
    const BYTES: u64 = 64;

    pub(crate) fn new(memory: &Arc<Memory>) -> broadloom_device::Result<Workspace> {
        let address = memory.allocate_zeroed(Self::BYTES, Owner::Workspace)?;
        Ok(Workspace { memory: memory.clone(), address })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // The launch is over: nothing accesses it.
        if let Ok(freed) = self.memory.free(self.address) {
            self.memory.release_after(freed, None);
        }
    }
}

impl Grid {
    pub(crate) fn workspace_address(&self) -> u64 {
        self.workspace.as_ref().map_or(0, |workspace| workspace.address)
    }

    /// Returns the number of concurrent calls of the code in a block.
    pub(crate) fn strands(&self) -> usize {
        match self.ready.code.kind {
            Kind::Block => 1,
            Kind::Warps => self.threads.div_ceil(32) as usize,
            Kind::Threads => self.threads as usize,
        }
    }

    /// Returns whether one strand can run several blocks, one after the other.
    pub(crate) fn runs_in_rows(&self) -> bool {
        self.ready.code.kind == Kind::Block && !self.cluster.has_others()
    }

    /// Returns whether the launch touches more memory than the cache holds, as far as that is known.
    pub(crate) fn streams(&self) -> bool {
        let blocks = self.grid.iter().fold(u64::from(self.threads), |product, count| product.saturating_mul(u64::from(*count)));
        let touched = blocks.saturating_mul(self.ready.code.stream_bytes);
        self.runs_in_rows() && touched > 0 && crate::host::cache_bytes().is_some_and(|cache| touched >= cache)
    }

    /// Returns the number of lanes of one call.
    pub(crate) fn lanes(&self) -> u32 {
        match self.ready.code.kind {
            Kind::Block | Kind::Warps => 32,
            Kind::Threads => 1,
        }
    }

    pub(crate) fn entry(&self) -> Entry {
        self.ready.object.entry()
    }

    /// Returns the index of a block by its number.
    pub(crate) fn ctaid(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }

    /// Returns the index of a thread by its number in the block.
    pub(crate) fn tid(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [number % x, number / x % y, number / x / y]
    }

    /// Builds the error of a kernel, with all that is known about its place.
    pub(crate) fn fault(&self, failure: &Failure, ctaid: Option<[u32; 3]>) -> Fault {
        let site = failure.site.as_ref();
        Fault {
            kind: failure.kind,
            message: failure.message.clone(),
            kernel: self.ready.name.clone(),
            function: None,
            block: failure.ctaid.or(ctaid),
            thread: failure.thread.map(|thread| self.tid(thread)),
            instruction: site.map(|site| site.instruction.clone()),
            span: site.and_then(|site| site.span),
            source: site.and_then(|site| site.source.clone()),
            address: failure.address,
        }
    }
}

/// Reason why a block did not end.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FaultKind,
    pub(crate) message: String,
    /// Number of the thread in its block.
    pub(crate) thread: Option<u32>,
    /// Block, if it is not the one that ran last.
    pub(crate) ctaid: Option<[u32; 3]>,
    pub(crate) site: Option<Box<FaultSite>>,
    pub(crate) address: Option<u64>,
}

impl Failure {
    pub(crate) fn new(kind: FaultKind, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), thread: None, ctaid: None, site: None, address: None }
    }
}
