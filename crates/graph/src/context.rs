//! A device with the plans that were made for it.
//!
//! An evaluation does not wait for the device: it finds or makes the plan, allocates memory and launches. The
//! key of a plan is the structure of the expression, so a loop that builds the same expression again neither
//! plans nor compiles. Both caches are bounded.

use crate::chain::Chains;
use crate::error::{Error, Result};
use crate::expect::Expectation;
use crate::fit::{FittedPlan, Scalars};
use crate::hash::QuickMap;
use crate::lane::{Apart, Lane};
use crate::length::WASTE;
use crate::limits::MAX_PLANS;
use crate::naive::HostArray;
use crate::node::{Node, State};
use crate::plan::{Plan, Summary};
use crate::record::Recorder;
use crate::tape::{Bindings, Tape};
use crate::template::unknown;
use broadloom_device::{Buffer, Device, Stream, trace};
use broadloom_scalar::Precision;
use broadloom_skeleton::Library;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Device with its plans and kernels; cheap to clone. Arrays of one context can be used together.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
    chains: Chains,
    /// True if each thread computes one position on machines with many threads.
    alone: bool,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    library: Library,
    desk: Mutex<Desk>,
    planned: AtomicU64,
    evaluations: AtomicU64,
    launched: AtomicU64,
    waits: AtomicU64,
    traces: AtomicU64,
    fits: AtomicU64,
    apart: Apart,
    /// Conditions on lengths that have not been confirmed yet.
    expected: Mutex<Vec<Expectation>>,
}

/// Recorder of expressions and table of their plans, used by one thread at a time.
#[derive(Debug)]
struct Desk {
    recorder: Recorder,
    plans: Plans,
}

/// Plan with the time of its last use.
type Used = (u64, Arc<Plan>);

/// Plans, keyed by the hash of their tape.
#[derive(Debug, Default)]
struct Plans {
    known: QuickMap<u64, SmallVec<[Used; 1]>>,
    count: usize,
    clock: u64,
}

impl Plans {
    fn get(&mut self, tape: &Tape, hash: u64) -> Option<Arc<Plan>> {
        self.clock += 1;
        let found = self.known.get_mut(&hash)?.iter_mut().find(|(_, plan)| plan.key == *tape);
        found.map(|(used, plan)| {
            *used = self.clock;
            plan.clone()
        })
    }

    /// Adds a plan. If another thread has added an equal plan meanwhile, that plan stays.
    fn add(&mut self, hash: u64, plan: Arc<Plan>) -> Arc<Plan> {
        if let Some(known) = self.get(&plan.key, hash) {
            return known;
        }
        if self.count >= MAX_PLANS {
            // The least recently used half is removed.
            let mut times: Vec<u64> = self.known.values().flatten().map(|(used, _)| *used).collect();
            times.sort_unstable();
            let limit = times[times.len() / 2];
            self.known.retain(|_, plans| {
                plans.retain(|(used, _)| *used > limit);
                !plans.is_empty()
            });
            self.count = self.known.values().map(|plans| plans.len()).sum();
        }
        self.known.entry(hash).or_default().push((self.clock, plan.clone()));
        self.count += 1;
        plan
    }
}

/// Counters of the work of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Evaluations that computed something.
    pub evaluations: u64,
    /// Plans that were made; all other evaluations reused one.
    pub plans: u64,
    /// Kernels that were run.
    pub kernels: u64,
    /// Programs that are ready in the library.
    pub programs: usize,
    /// Arrays that the graph read itself, each with a wait for the device: lengths needed by the host, and
    /// [`Node::read`].
    pub waits: u64,
    /// Functions that were called for tracing ([`Context::template`]).
    pub traces: u64,
    /// Sizes that templates were fitted to; all other calls reused a fit.
    pub fits: u64,
}

impl Context {
    /// Creates a context for a device.
    pub fn new(device: &Device) -> Context {
        Context::with_precision(device, Precision::Accurate)
    }

    /// Creates a context with this precision of elementary functions, divisions and square roots of `f32`.
    /// [`Precision::Fast`] uses the instructions of the hardware: the error is a few units in the last place
    /// larger, the last bits differ between devices, and subnormal numbers may be flushed to zero.
    pub fn with_precision(device: &Device, precision: Precision) -> Context {
        Context::planned(device, precision, false)
    }

    /// Creates a context for programs of many short kernels. To save launches, kernels over one domain are
    /// joined even if they share neither memory nor work.
    pub fn with_few_launches(device: &Device, precision: Precision) -> Context {
        Context::planned(device, precision, true)
    }

    fn planned(device: &Device, precision: Precision, joins: bool) -> Context {
        let inner = Inner {
            device: device.clone(),
            library: Library::new(device),
            desk: Mutex::new(Desk { recorder: Recorder::new(precision, joins), plans: Plans::default() }),
            planned: AtomicU64::new(0),
            evaluations: AtomicU64::new(0),
            launched: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            traces: AtomicU64::new(0),
            fits: AtomicU64::new(0),
            apart: Apart::default(),
            expected: Mutex::default(),
        };
        Context { inner: Arc::new(inner), chains: Chains::default(), alone: false }
    }

    /// Returns this context with another use of chains in its plans. Arrays of both contexts can be used
    /// together.
    pub fn with_chains(&self, chains: Chains) -> Context {
        Context { chains, ..self.clone() }
    }

    /// Returns this context with one position per thread on machines with many threads. Loads and work that
    /// neighbouring positions share are then repeated for each position. This mode exists for comparison.
    pub fn with_single_positions(&self, alone: bool) -> Context {
        Context { alone, ..self.clone() }
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Returns whether arrays of both can be used together.
    pub fn is_same(&self, other: &Context) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the counters of the work done so far.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            evaluations: self.inner.evaluations.load(Ordering::Relaxed),
            plans: self.inner.planned.load(Ordering::Relaxed),
            kernels: self.inner.launched.load(Ordering::Relaxed),
            programs: self.inner.library.len(),
            waits: self.inner.waits.load(Ordering::Relaxed),
            traces: self.inner.traces.load(Ordering::Relaxed),
            fits: self.inner.fits.load(Ordering::Relaxed),
        }
    }

    /// Counts a traced function.
    pub(crate) fn note_trace(&self) {
        self.inner.traces.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the fit of a template to sizes.
    pub(crate) fn note_fit(&self) {
        self.inner.fits.fetch_add(1, Ordering::Relaxed);
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // The next recording clears the leftovers of an interrupted one.
        self.inner.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the plan of some nodes, found or made, and its bindings. `constant`: the scalars will never
    /// change.
    fn plan(&self, nodes: &[Node], constant: bool) -> Result<(Arc<Plan>, Bindings)> {
        let (tape, hash, bindings) = {
            let desk = &mut *self.desk();
            desk.recorder.set_kernels(self.chains, self.alone);
            let bindings = desk.recorder.record(nodes, constant)?;
            let (tape, hash) = desk.recorder.tape();
            if let Some(plan) = desk.plans.get(tape, hash) {
                return Ok((plan, bindings));
            }
            (tape.clone(), hash, bindings)
        };
        // Planning happens outside the lock, so that other threads need not wait for the compiler.
        let _span = trace::span("plan a graph");
        let plan = Arc::new(Plan::new(tape, &bindings, &self.inner.library)?);
        self.inner.planned.fetch_add(1, Ordering::Relaxed);
        Ok((self.desk().plans.add(hash, plan), bindings))
    }

    /// Checks that a node belongs to this context.
    pub(crate) fn owns(&self, operation: &str, node: &Node) -> Result<()> {
        if self.is_same(node.context()) {
            return Ok(());
        }
        let (left, right) = (self.device().machine().id.clone(), node.context().device().machine().id.clone());
        Err(Error::Devices { operation: operation.to_owned(), left, right })
    }

    /// Returns the nodes that are not computed yet. With `remembers`, intermediate nodes to be remembered are
    /// added.
    fn pending(&self, operation: &str, nodes: &[Node], symbolic: bool, remembers: bool) -> Result<SmallVec<[Node; 4]>> {
        nodes.iter().try_for_each(|node| self.owns(operation, node))?;
        let mut pending: SmallVec<[Node; 4]> =
            nodes.iter().filter(|node| node.is_symbolic() == symbolic && node.is_pending()).cloned().collect();
        if remembers {
            with_remembered(&mut pending, symbolic);
        }
        with_lengths(&mut pending);
        Ok(pending)
    }

    /// Computes nodes, all in one plan. Returns before the work is done; afterwards each node is
    /// [ready](Node::buffer). Inside a traced function, nodes that depend on its inputs are computed when the
    /// function is called.
    pub fn evaluate(&self, nodes: &[Node]) -> Result<()> {
        self.evaluate_in(nodes, None)
    }

    /// Computes the results of a traced function. Intermediate nodes are not remembered.
    pub(crate) fn evaluate_last(&self, nodes: &[Node]) -> Result<()> {
        self.evaluate_plans(nodes, None, false)
    }

    /// Returns the conditions on lengths that have not been confirmed yet.
    pub(crate) fn expected(&self) -> MutexGuard<'_, Vec<Expectation>> {
        self.inner.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn evaluate_in(&self, nodes: &[Node], lane: Option<&Lane>) -> Result<()> {
        self.evaluate_plans(nodes, lane, true)
    }

    fn evaluate_plans(&self, nodes: &[Node], lane: Option<&Lane>, remembers: bool) -> Result<()> {
        for symbolic in [false, true] {
            let pending = self.pending("evaluate", nodes, symbolic, remembers || !symbolic)?;
            if pending.is_empty() {
                continue;
            }
            let (plan, bindings) = self.plan(&pending, symbolic)?;
            if !bindings.symbols.is_empty() {
                self.stage(&pending, plan, bindings)?;
                continue;
            }
            let fitted = plan.fitted(&bindings)?;
            let results = self.run(&fitted, &bindings.buffers, &fitted.scalars(&bindings.values), lane)?;
            let (mut large, limit) = (SmallVec::<[&Node; 2]>::new(), self.device().machine().memory_bytes / WASTE);
            for (node, buffer) in pending.iter().zip(results) {
                large.extend((node.length().is_some() && buffer.len() as u64 > limit).then_some(node));
                node.settle(State::Ready(buffer));
            }
            // Waiting for the length is cheaper than memory for the bound of a large array.
            large.iter().try_for_each(|node| node.hosted().map(|_| ()))?;
        }
        Ok(())
    }

    /// Makes the plan of an evaluation of nodes unless it exists already; runs nothing.
    pub fn plan_only(&self, nodes: &[Node]) -> Result<()> {
        nodes.iter().try_for_each(|node| self.owns("plan_only", node))?;
        let mut pending: SmallVec<[Node; 4]> = nodes.iter().filter(|node| node.is_pending()).cloned().collect();
        with_remembered(&mut pending, false);
        with_lengths(&mut pending);
        if !pending.is_empty() {
            self.plan(&pending, false)?;
        }
        Ok(())
    }

    /// Returns the number of kernels that an evaluation of nodes would launch; runs nothing.
    pub fn launches(&self, nodes: &[Node]) -> Result<u64> {
        let pending = self.pending("launches", nodes, false, true)?;
        if pending.is_empty() {
            return Ok(0);
        }
        let (plan, bindings) = self.plan(&pending, false)?;
        Ok(plan.fitted(&bindings)?.launches())
    }

    /// Returns the plan of an evaluation of nodes; runs nothing.
    pub fn explain(&self, nodes: &[Node]) -> Result<Summary> {
        nodes.iter().try_for_each(|node| self.owns("explain", node))?;
        let mut pending: SmallVec<[Node; 4]> = nodes.iter().filter(|node| node.is_pending()).cloned().collect();
        with_remembered(&mut pending, false);
        with_lengths(&mut pending);
        if pending.is_empty() {
            return Ok(Summary { kernels: vec![], peak_bytes: 0 });
        }
        let (plan, bindings) = self.plan(&pending, false)?;
        plan.summary(&bindings)
    }

    /// Computes nodes and measures the kernels of their plan. Returns the plan and the time of each kernel.
    /// The kernels run twice: once to warm up, then one by one.
    pub fn measure(&self, nodes: &[Node]) -> Result<(Summary, Vec<Duration>)> {
        let pending = self.pending("measure", nodes, false, true)?;
        if pending.is_empty() {
            return Ok((Summary { kernels: vec![], peak_bytes: 0 }, vec![]));
        }
        let (plan, bindings) = self.plan(&pending, false)?;
        let fitted = plan.fitted(&bindings)?;
        let scalars = fitted.scalars(&bindings.values);
        let device = self.device();
        drop(self.run(&fitted, &bindings.buffers, &scalars, None)?);
        device.synchronise()?;
        let (mut times, mut start) = (vec![], Instant::now());
        let results = fitted.run_watched(device, &bindings.buffers, &scalars, Stream::default(), || {
            device.synchronise()?;
            times.push(start.elapsed());
            start = Instant::now();
            Ok(())
        })?;
        for (node, buffer) in pending.iter().zip(results) {
            node.settle(State::Ready(buffer));
        }
        Ok((plan.summary(&bindings)?, times))
    }

    pub(crate) fn run(
        &self,
        fitted: &FittedPlan,
        buffers: &[Option<Buffer<u8>>],
        scalars: &Scalars,
        lane: Option<&Lane>,
    ) -> Result<SmallVec<[Buffer<u8>; 2]>> {
        let stream = lane.map_or(Stream::default(), Lane::stream);
        if let Some(lane) = lane {
            self.inner.apart.fork(&self.inner.device, lane)?;
        }
        self.inner.apart.join(stream, buffers.iter().flatten())?;
        let results = fitted.run(&self.inner.device, buffers, scalars, stream)?;
        if let Some(lane) = lane {
            self.inner.apart.note(&self.inner.device, lane, &results)?;
        }
        self.inner.evaluations.fetch_add(1, Ordering::Relaxed);
        self.inner.launched.fetch_add(fitted.launches(), Ordering::Relaxed);
        Ok(results)
    }
}

/// Adds intermediate nodes to be remembered, either those with or those without symbols.
fn with_remembered(pending: &mut SmallVec<[Node; 4]>, symbolic: bool) {
    let mut stack: Vec<Node> = pending.iter().filter(|node| node.has_remembered()).cloned().collect();
    if stack.is_empty() {
        return;
    }
    let wanted: HashSet<usize> = pending.iter().map(Node::identity).collect();
    let mut seen: HashSet<usize> = HashSet::new();
    while let Some(node) = stack.pop() {
        if !seen.insert(node.identity()) {
            continue;
        }
        if let State::Pending(expression) = &*node.lock() {
            stack.extend(expression.inputs.iter().filter(|input| input.has_remembered()).cloned());
        } else {
            continue;
        }
        stack.extend(node.length().map(|length| length.count().clone()).filter(Node::has_remembered));
        if node.is_remembered() && node.is_symbolic() == symbolic && !wanted.contains(&node.identity()) {
            pending.push(node);
        }
    }
}

/// Adds the lengths of arrays; they are computed with the arrays.
fn with_lengths(pending: &mut SmallVec<[Node; 4]>) {
    for number in 0..pending.len() {
        if let Some(length) = pending[number].length().cloned()
            && length.count().is_pending()
            && !pending.iter().any(|known| known.is_same(length.count()))
        {
            pending.push(length.count().clone());
        }
    }
}

impl Node {
    /// Returns whether this node is not computed yet, and is one of the nodes or an input of their
    /// computation.
    pub(crate) fn is_below(&self, nodes: &[Node]) -> bool {
        let mut stack: Vec<Node> = nodes.to_vec();
        let mut seen: HashSet<usize> = HashSet::new();
        while let Some(node) = stack.pop() {
            if !seen.insert(node.identity()) {
                continue;
            }
            let state = node.lock();
            let State::Pending(expression) = &*state else { continue };
            if node.is_same(self) {
                return true;
            }
            stack.extend(expression.inputs.iter().cloned());
            stack.extend(node.length().map(|length| length.count().clone()));
        }
        false
    }

    /// Computes the array unless that has been done. Returns before the work is done. The memory has room for
    /// the [bound](Node::bound) of the array.
    pub fn evaluate(&self) -> Result<Buffer<u8>> {
        if let Some(buffer) = self.buffer() {
            self.context().inner.apart.join(Stream::default(), std::iter::once(&buffer))?;
            return Ok(buffer);
        }
        if self.is_symbolic() {
            return Err(unknown("read"));
        }
        self.context().evaluate(std::slice::from_ref(self))?;
        self.buffer().ok_or_else(|| crate::Error::Plan { what: "a run".into(), reason: "a result is not in memory".into() })
    }

    /// Reads the elements to the host; waits for them.
    pub fn read(&self) -> Result<HostArray> {
        let array = self.hosted()?;
        let buffer = array.evaluate()?;
        self.context().confirm()?;
        self.context().inner.waits.fetch_add(1, Ordering::Relaxed);
        let bytes = buffer.read()?;
        Ok(HostArray::from_bytes(self.ty(), array.bound().clone(), &bytes))
    }
}
