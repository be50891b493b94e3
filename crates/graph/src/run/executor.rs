//! Execution of evaluations: the plans of a device, found or made, and their runs.
//!
//! An evaluation does not wait for the device: it finds or makes the plan, allocates memory and launches. The
//! key of a plan is the structure of the expression, so a loop that builds the same expression again neither
//! plans nor compiles. Both caches are bounded.

use crate::expr::error::{Error, Result};
use crate::expr::expectation::Expectation;
use crate::expr::kernel_settings::KernelSettings;
use crate::expr::node::{Context, Evaluator, Node, State};
use crate::limits::WASTE;
use crate::plan::kernels::Plan;
use crate::plan::summary::Summary;
use crate::run::fit::{CachedPlan, FittedPlan, Scalars};
use crate::run::lane_results::LaneResults;
use crate::run::plan_cache::{PlanCache, Plans};
use crate::run::stage::TracedStages;
use crate::tape::bindings::Bindings;
use crate::tape::record::Recorder;
use broadloom_device::{Buffer, Device, Stream, trace};
use broadloom_scalar::Precision;
use broadloom_skeleton::Library;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Counters of the work of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Executor of the evaluations of a context: plans nodes and runs the plans on the device.
#[derive(Debug)]
pub(crate) struct Executor {
    device: Device,
    library: Library,
    plans: Mutex<PlanCache>,
    planned: AtomicU64,
    evaluations: AtomicU64,
    launched: AtomicU64,
    waits: AtomicU64,
    traces: AtomicU64,
    fits: AtomicU64,
    lane_results: LaneResults,
    /// Stages of the functions that are being traced.
    pub(crate) stages: TracedStages,
    /// Conditions on lengths that have not been confirmed yet.
    expected: Mutex<Vec<Expectation>>,
}

impl Evaluator for Executor {
    fn device(&self) -> &Device {
        &self.device
    }

    fn evaluate(&self, context: &Context, nodes: &[Node]) -> Result<()> {
        context.evaluate_in(nodes, None)
    }

    fn wait_for_lane(&self, buffer: &Buffer<u8>) -> Result<()> {
        self.lane_results.join(Stream::default(), std::iter::once(buffer))
    }

    fn read(&self, buffer: &Buffer<u8>) -> Result<Vec<u8>> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        Ok(buffer.read()?)
    }

    fn expected(&self) -> MutexGuard<'_, Vec<Expectation>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor {
    fn new(device: &Device, precision: Precision, joins: bool) -> Executor {
        Executor {
            device: device.clone(),
            library: Library::new(device),
            plans: Mutex::new(PlanCache { recorder: Recorder::new(precision, joins), plans: Plans::default() }),
            planned: AtomicU64::new(0),
            evaluations: AtomicU64::new(0),
            launched: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            traces: AtomicU64::new(0),
            fits: AtomicU64::new(0),
            lane_results: LaneResults::default(),
            stages: TracedStages::default(),
            expected: Mutex::default(),
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            evaluations: self.evaluations.load(Ordering::Relaxed),
            plans: self.planned.load(Ordering::Relaxed),
            kernels: self.launched.load(Ordering::Relaxed),
            programs: self.library.len(),
            waits: self.waits.load(Ordering::Relaxed),
            traces: self.traces.load(Ordering::Relaxed),
            fits: self.fits.load(Ordering::Relaxed),
        }
    }

    /// Counts a traced function.
    pub(crate) fn note_trace(&self) {
        self.traces.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the fit of a template to sizes.
    pub(crate) fn note_fit(&self) {
        self.fits.fetch_add(1, Ordering::Relaxed);
    }

    fn plans(&self) -> MutexGuard<'_, PlanCache> {
        // The next recording clears the leftovers of an interrupted one.
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the plan of some nodes, found or made, and its bindings. `constant`: the scalars will never
    /// change.
    fn plan(&self, nodes: &[Node], kernels: KernelSettings, constant: bool) -> Result<(Arc<CachedPlan>, Bindings)> {
        let (tape, hash, bindings) = {
            let cache = &mut *self.plans();
            cache.recorder.set_kernels(kernels);
            let bindings = cache.recorder.record(nodes, constant)?;
            let (tape, hash) = cache.recorder.tape();
            if let Some(plan) = cache.plans.get(tape, hash) {
                return Ok((plan, bindings));
            }
            (tape.clone(), hash, bindings)
        };
        // Planning happens outside the lock, so that other threads need not wait for the compiler.
        let _span = trace::span("plan a graph");
        let plan = Arc::new(CachedPlan::new(Plan::new(tape, &bindings, &self.library)?));
        self.planned.fetch_add(1, Ordering::Relaxed);
        Ok((self.plans().plans.add(hash, plan), bindings))
    }

    /// Runs a fitted plan, in a lane if one is given. Returns before the work is done.
    pub(crate) fn run(
        &self,
        fitted: &FittedPlan,
        buffers: &[Option<Buffer<u8>>],
        scalars: &Scalars,
        lane: Option<Stream>,
    ) -> Result<SmallVec<[Buffer<u8>; 2]>> {
        let stream = lane.unwrap_or_default();
        if let Some(lane) = lane {
            self.lane_results.fork(&self.device, lane)?;
        }
        self.lane_results.join(stream, buffers.iter().flatten())?;
        let results = fitted.run(&self.device, buffers, scalars, stream)?;
        if let Some(lane) = lane {
            self.lane_results.note(&self.device, lane, &results)?;
        }
        self.evaluations.fetch_add(1, Ordering::Relaxed);
        self.launched.fetch_add(fitted.launches(), Ordering::Relaxed);
        Ok(results)
    }
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
        Context { evaluator: Arc::new(Executor::new(device, precision, joins)), kernels: KernelSettings::default() }
    }

    /// Returns the executor of the evaluations.
    pub(crate) fn executor(&self) -> Result<&Executor> {
        let evaluator: &dyn Any = &*self.evaluator;
        let unknown = || Error::Plan { what: "a context".into(), reason: "it has another evaluator".into() };
        evaluator.downcast_ref().ok_or_else(unknown)
    }

    /// Returns the counters of the work done so far.
    pub fn statistics(&self) -> Statistics {
        self.executor().map(Executor::statistics).unwrap_or_default()
    }

    fn plan(&self, nodes: &[Node], constant: bool) -> Result<(Arc<CachedPlan>, Bindings)> {
        self.executor()?.plan(nodes, self.kernels, constant)
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

    /// Computes the results of a traced function. Intermediate nodes are not remembered.
    pub(crate) fn evaluate_last(&self, nodes: &[Node]) -> Result<()> {
        self.evaluate_plans(nodes, None, false)
    }

    /// Computes nodes, in a lane if one is given.
    pub(crate) fn evaluate_in(&self, nodes: &[Node], lane: Option<Stream>) -> Result<()> {
        self.evaluate_plans(nodes, lane, true)
    }

    fn evaluate_plans(&self, nodes: &[Node], lane: Option<Stream>, remembers: bool) -> Result<()> {
        for symbolic in [false, true] {
            let pending = self.pending("evaluate", nodes, symbolic, remembers || !symbolic)?;
            if pending.is_empty() {
                continue;
            }
            let (plan, bindings) = self.plan(&pending, symbolic)?;
            if !bindings.symbols.is_empty() {
                self.executor()?.stages.add(&pending, plan, bindings)?;
                continue;
            }
            let fitted = plan.fitted(&bindings)?;
            let results = self.executor()?.run(&fitted, &bindings.buffers, &fitted.scalars(&bindings.values), lane)?;
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
        drop(self.executor()?.run(&fitted, &bindings.buffers, &scalars, None)?);
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
