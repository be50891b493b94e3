//! Stages: the plans of a traced function, one for each evaluation inside it, and their fits to sizes.

use crate::expr::amount::Amount;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Node, State};
use crate::expr::shape::Shape;
use crate::expr::terms::{TermId, TermList};
use crate::expr::tracing::{Symbol, Tracing};
use crate::limits::MAX_FITS;
use crate::run::fit::{CachedPlan, FittedPlan, LaneOf, Scalars};
use crate::tape::bindings::Bindings;
use broadloom_device::Buffer;
use broadloom_scalar::{Lanes, Literal};
use smallvec::smallvec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Plan of a template.
#[derive(Debug)]
pub(crate) struct Stage {
    plan: Arc<CachedPlan>,
    /// Buffers that all calls share; the others are symbols.
    pub(crate) buffers: Vec<Option<Buffer<u8>>>,
    pub(crate) symbols: Vec<(u32, u32)>,
    /// Values, with those that are symbols and those that depend on extents.
    values: Vec<Lanes>,
    given: Vec<(u32, u32)>,
    amounts: Vec<(u32, TermId)>,
    shapes: Vec<TermList>,
    integers: Vec<TermId>,
    /// The sizes that the stage was fitted to last.
    sized: Mutex<Vec<Arc<SizedStage>>>,
    /// Number of the symbol of its first result.
    pub(crate) first: u32,
    pub(crate) results: u32,
    /// Symbols that are not used after the stage.
    pub(crate) dead: Vec<u32>,
}

/// Stage fitted to known sizes, for any scalars.
#[derive(Debug)]
pub(crate) struct SizedStage {
    /// The extents and integers that it was fitted to.
    sizes: Vec<i64>,
    pub(crate) plan: Arc<FittedPlan>,
    /// Scalars, with those that are lanes of symbols and those that depend on extents.
    scalars: Scalars,
    pub(crate) lanes: Vec<(LaneOf, u32)>,
    amounts: Vec<(LaneOf, TermId)>,
}

/// Stage fitted to known sizes and scalars.
#[derive(Debug)]
pub(crate) struct FittedStage {
    pub(crate) sized: Arc<SizedStage>,
    /// Scalars, if some of them depend on extents.
    scalars: Option<Scalars>,
}

impl FittedStage {
    /// Creates a stage for the values of terms; `None` if another plan is needed. A recent fit is reused if
    /// only scalars differ.
    pub(crate) fn new(stage: &Stage, terms: &[i64]) -> Result<Option<FittedStage>> {
        let lock = || stage.sized.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().iter().find(|sized| stage.sizes(terms).eq(sized.sizes.iter().copied())).cloned();
        let sized = match known {
            Some(sized) => sized,
            None => {
                let Some(sized) = SizedStage::new(stage, terms)? else { return Ok(None) };
                let (sized, mut known) = (Arc::new(sized), lock());
                if known.len() >= MAX_FITS {
                    known.remove(0);
                }
                known.push(sized.clone());
                sized
            }
        };
        let mut scalars = None;
        if !sized.amounts.is_empty() {
            let own = scalars.insert(sized.scalars.clone());
            for (lane, amount) in &sized.amounts {
                own[lane.kernel][lane.scalar] = Literal::from(terms[*amount as usize]);
            }
        }
        Ok(Some(FittedStage { sized, scalars }))
    }

    pub(crate) fn scalars(&self) -> &Scalars {
        self.scalars.as_ref().unwrap_or(&self.sized.scalars)
    }
}

impl Stage {
    /// Returns the extents and integers for the values of terms.
    fn sizes<'a>(&'a self, terms: &'a [i64]) -> impl Iterator<Item = i64> + 'a {
        self.shapes.iter().flatten().chain(&self.integers).map(|term| terms[*term as usize])
    }
}

impl SizedStage {
    /// Creates a stage for the values of terms; `None` if another plan is needed.
    fn new(stage: &Stage, terms: &[i64]) -> Result<Option<SizedStage>> {
        let Some(shapes) = stage.shapes.iter().map(|shape| shape_of(shape, terms)).collect::<Option<Vec<Shape>>>() else {
            return Ok(None);
        };
        let integers = stage.integers.iter().map(|integer| terms[*integer as usize]).collect();
        let mut values = stage.values.clone();
        for (slot, amount) in &stage.amounts {
            values[*slot as usize] = smallvec![Literal::from(terms[*amount as usize])];
        }
        let bindings = Bindings { shapes, integers, values, ..Bindings::default() };
        if !stage.plan.key().accepts(&bindings) {
            return Ok(None);
        }
        let plan = stage.plan.fitted(&bindings)?;
        let of = |own: &[(u32, u32)]| -> Vec<(LaneOf, u32)> {
            let found = |lane: &LaneOf| own.iter().find(|(slot, _)| *slot == lane.slot).map(|found| found.1);
            plan.lanes().filter_map(|lane| found(&lane).map(|number| (lane, number))).collect()
        };
        let (lanes, amounts, scalars) = (of(&stage.given), of(&stage.amounts), plan.scalars(&bindings.values));
        Ok(Some(SizedStage { sizes: stage.sizes(terms).collect(), plan, scalars, lanes, amounts }))
    }
}

/// Returns the shape with terms as its extents; `None` if it exceeds the limits of arrays.
pub(crate) fn shape_of(list: &TermList, terms: &[i64]) -> Option<Shape> {
    let extents = list.iter().map(|term| usize::try_from(terms[*term as usize]).ok()).collect::<Option<Vec<usize>>>()?;
    Some(Shape::from(extents)).filter(Shape::is_possible)
}

/// Stages of the functions that are being traced.
#[derive(Debug, Default)]
pub(crate) struct TracedStages(Mutex<Vec<TraceStages>>);

#[derive(Debug)]
struct TraceStages {
    tracing: Arc<Tracing>,
    stages: Vec<Stage>,
    /// Number of symbols so far.
    symbols: u32,
}

/// Trace under way. Its stages are dropped with it.
#[derive(Debug)]
pub(crate) struct OpenTrace<'s> {
    all: &'s TracedStages,
    pub(crate) tracing: Arc<Tracing>,
}

impl Drop for OpenTrace<'_> {
    fn drop(&mut self) {
        self.take();
    }
}

impl OpenTrace<'_> {
    /// Ends the stages of the trace, and returns them with the number of symbols.
    pub(crate) fn take(&mut self) -> (Vec<Stage>, u32) {
        let mut traces = self.all.traces();
        let own = traces.iter().position(|trace| Arc::ptr_eq(&trace.tracing, &self.tracing));
        let own = own.map(|place| traces.swap_remove(place));
        own.map_or_else(Default::default, |own| (own.stages, own.symbols))
    }
}

impl TracedStages {
    fn traces(&self) -> MutexGuard<'_, Vec<TraceStages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a trace whose inputs have this many symbols.
    pub(crate) fn begin(&self, symbols: usize) -> OpenTrace<'_> {
        let tracing = Arc::new(Tracing::new());
        self.traces().push(TraceStages { tracing: tracing.clone(), stages: vec![], symbols: symbols as u32 });
        OpenTrace { all: self, tracing }
    }

    /// Adds a plan to the traced function, and makes its results symbols.
    pub(crate) fn add(&self, nodes: &[Node], plan: Arc<CachedPlan>, bindings: Bindings) -> Result<()> {
        let Bindings { buffers, values, integers, symbols: own, .. } = bindings;
        let tracing = own.tracing.ok_or_else(|| Error::symbolic("evaluate"))?;
        let shapes = own.shapes.iter().map(|shape| shape.amounts().iter().map(|amount| amount.term_in(&tracing)).collect());
        let shapes = shapes.collect();
        let amount = |(slot, value): (usize, &i64)| {
            let traced = own.integers.iter().find(|(own, _)| *own as usize == slot);
            traced.map_or(Amount::from(*value), |(_, amount)| amount.clone()).term_in(&tracing)
        };
        let integers = integers.iter().enumerate().map(amount).collect();
        let amounts = own.amounts.iter().map(|(slot, amount)| (*slot, amount.term_in(&tracing))).collect();
        let mut traces = self.traces();
        let trace = traces.iter_mut().find(|trace| Arc::ptr_eq(&trace.tracing, &tracing));
        let trace = trace.ok_or_else(|| Error::symbolic("evaluate"))?;
        let (first, results) = (trace.symbols, nodes.len() as u32);
        trace.symbols += results;
        let (given, symbols, dead) = (own.values, own.buffers, vec![]);
        trace.stages.push(Stage {
            plan,
            buffers,
            symbols,
            values,
            given,
            amounts,
            shapes,
            integers,
            sized: Mutex::default(),
            first,
            results,
            dead,
        });
        drop(traces);
        for (number, node) in (first..).zip(nodes) {
            node.settle(State::Symbolic(Symbol::new(&tracing, number)));
        }
        Ok(())
    }
}
