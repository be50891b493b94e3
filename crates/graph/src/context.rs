//! A device with the plans that were made for it.
//!
//! Evaluating does not wait for the device: it finds or makes the plan, takes memory, launches. Plans are found by structure, so a loop that
//! builds the same expression again neither plans nor compiles. Both caches are bounded.

use crate::error::Result;
use crate::hash::QuickMap;
use crate::naive::HostArray;
use crate::node::Node;
use crate::plan::{Plan, Summary};
use crate::tape::{Bindings, Id, Kind, Tape};
use broadloom_device::{Buffer, Device, Stream};
use broadloom_scalar::Precision;
use broadloom_skeleton::{Call, Library};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A device with its plans and kernels; cheap to clone. Arrays of one context can be used together.
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    device: Device,
    library: Library,
    precision: Precision,
    plans: Mutex<Plans>,
    planned: AtomicU64,
    evaluations: AtomicU64,
    launched: AtomicU64,
}

#[derive(Debug, Default)]
struct Plans {
    known: QuickMap<Tape, (u64, Arc<Plan>)>,
    clock: u64,
}

/// Plans that are kept.
const MAX_PLANS: usize = 512;

/// What a context has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Evaluations that had something to compute.
    pub evaluations: u64,
    /// Plans that were made; all other evaluations found one.
    pub plans: u64,
    /// Kernels that were run.
    pub kernels: u64,
    /// Programs that are ready in the library.
    pub programs: usize,
}

impl Context {
    /// A context for a device.
    pub fn new(device: &Device) -> Context {
        Context::with_precision(device, Precision::Accurate)
    }

    /// A context in which elementary functions, divisions and square roots of `f32` are as exact as this says. [`Precision::Fast`] takes what the hardware has: a few units
    /// in the last place more, other last bits on other devices, and subnormal numbers may count as zero.
    pub fn with_precision(device: &Device, precision: Precision) -> Context {
        Context(Arc::new(Inner {
            precision,
            device: device.clone(),
            library: Library::new(device),
            plans: Mutex::default(),
            planned: AtomicU64::new(0),
            evaluations: AtomicU64::new(0),
            launched: AtomicU64::new(0),
        }))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Whether arrays of both can be used together.
    pub fn is_same(&self, other: &Context) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            evaluations: self.0.evaluations.load(Ordering::Relaxed),
            plans: self.0.planned.load(Ordering::Relaxed),
            kernels: self.0.launched.load(Ordering::Relaxed),
            programs: self.0.library.len(),
        }
    }

    fn plan(&self, tape: Tape, bindings: &Bindings) -> Result<Arc<Plan>> {
        {
            let mut plans = self.0.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.clock += 1;
            let now = plans.clock;
            if let Some((used, plan)) = plans.known.get_mut(&tape) {
                *used = now;
                return Ok(plan.clone());
            }
        }
        // Not under the lock: others need not wait for a compiler.
        let plan = Arc::new(Plan::new(tape.clone(), bindings, &self.0.library)?);
        self.0.planned.fetch_add(1, Ordering::Relaxed);
        let mut plans = self.0.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.known.len() >= MAX_PLANS {
            // The half that was not used for longest goes.
            let mut times: Vec<u64> = plans.known.values().map(|(used, _)| *used).collect();
            times.sort_unstable();
            let limit = times[times.len() / 2];
            plans.known.retain(|_, (used, _)| *used > limit);
        }
        let now = plans.clock;
        plans.known.insert(tape, (now, plan.clone()));
        Ok(plan)
    }

    /// Computes nodes, all in one plan. Returns before the work is done; afterwards each node is [ready](Node::buffer).
    pub fn evaluate(&self, nodes: &[Node]) -> Result<()> {
        let pending: Vec<Node> = nodes.iter().filter(|node| node.buffer().is_none()).cloned().collect();
        if pending.is_empty() {
            return Ok(());
        }
        let (tape, bindings) = Tape::record(&pending, self.0.precision);
        let plan = self.plan(tape, &bindings)?;
        let results = self.run(&plan, &bindings)?;
        for (node, buffer) in pending.iter().zip(results) {
            node.settle(buffer);
        }
        self.0.evaluations.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The plan by which nodes would be computed; nothing is run.
    pub fn explain(&self, nodes: &[Node]) -> Result<Summary> {
        let pending: Vec<Node> = nodes.iter().filter(|node| node.buffer().is_none()).cloned().collect();
        if pending.is_empty() {
            return Ok(Summary { kernels: vec![], peak_bytes: 0 });
        }
        let (tape, bindings) = Tape::record(&pending, self.0.precision);
        self.plan(tape, &bindings)?.summary(&bindings)
    }

    fn run(&self, plan: &Plan, bindings: &Bindings) -> Result<Vec<Buffer<u8>>> {
        let tape = &plan.tape;
        let mut memory: Vec<Option<Buffer<u8>>> = tape
            .entries
            .iter()
            .map(|entry| match entry.kind {
                Kind::Leaf(slot) => Some(bindings.buffers[slot as usize].clone()),
                _ => None,
            })
            .collect();
        let missing = |id: Id| crate::Error::Plan { what: "a run".into(), reason: format!("node {id} is not in memory") };
        let find = |memory: &[Option<Buffer<u8>>], id: Id| memory[id as usize].clone().ok_or_else(|| missing(id));
        for kernel in &plan.kernels {
            let inputs = kernel.codes.iter().flat_map(|code| &code.inputs);
            let inputs = inputs.map(|input| find(&memory, *input)).collect::<Result<Vec<Buffer<u8>>>>()?;
            let mut outputs = vec![];
            for (root, reused) in kernel.group.roots.iter().zip(&kernel.reused) {
                let buffer = match reused {
                    Some(input) => find(&memory, *input)?,
                    None => {
                        let entry = tape.entry(*root);
                        let count = bindings.shapes[usize::from(entry.shape)].count();
                        self.0.device.allocate::<u8>(count * entry.ty.bytes() as usize)?
                    }
                };
                outputs.push(buffer);
            }
            let scalars = plan.scalars(kernel, bindings);
            let sizes = plan.sizes(kernel, bindings);
            if !sizes.contains(&0) {
                let call =
                    Call { inputs: &inputs, outputs: &outputs, scalars: &scalars, sizes: &sizes, stream: Stream::default() };
                kernel.ready.loaded(&sizes)?.run(&call)?;
                self.0.launched.fetch_add(1, Ordering::Relaxed);
            }
            drop(inputs);
            for (root, buffer) in kernel.group.roots.iter().zip(outputs) {
                memory[*root as usize] = Some(buffer);
            }
            for dead in &kernel.dead {
                memory[*dead as usize] = None;
            }
        }
        tape.outputs.iter().map(|output| find(&memory, tape.behind(*output))).collect()
    }
}

impl Node {
    /// Computes it, if that has not been done. Returns before the work is done.
    pub fn evaluate(&self) -> Result<Buffer<u8>> {
        if let Some(buffer) = self.buffer() {
            return Ok(buffer);
        }
        self.context().evaluate(std::slice::from_ref(self))?;
        self.buffer().ok_or_else(|| crate::Error::Plan { what: "a run".into(), reason: "a result is not in memory".into() })
    }

    /// Its elements on the host; waits for them.
    pub fn read(&self) -> Result<HostArray> {
        let bytes = self.evaluate()?.read()?;
        Ok(HostArray::from_bytes(self.ty(), self.shape().clone(), &bytes))
    }
}
