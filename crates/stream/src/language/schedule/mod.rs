//! Schedules: how often and in which order nodes fire.
//!
//! A *steady state* fires every node a fixed number of times and leaves every tape with as many items as
//! before. The *initial schedule* runs before it. It fires every `prework` and fills the tapes with the items
//! that filters peek beyond those they pop.
//!
//! - [`balance`] finds the repetitions of the steady state, or reports the tape that cannot be balanced.
//! - `phased` orders firings by hierarchical phases, like the original compiler, so that output appears in
//!   the same order.
//! - `pull` fires a node only when its items are needed. It detects deadlock, and serves programs whose
//!   messages travel upstream.

mod balance;
mod branches;
mod levels;
mod phased;
mod pull;

pub use balance::balance;
pub(crate) use levels::Firing;
pub(crate) use phased::gcd;
pub use phased::{Entry, Phase};

use crate::language::codes;
use crate::language::graph::{Graph, NodeId, TapeId};
use crate::language::limits::Limits;
use broadloom_diag::Diagnostic;
use cranelift_entity::EntityRef;
use levels::Levels;
use std::sync::Arc;

/// A schedule of a graph with known rates.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Firings of each node in a steady state, by the index of the node.
    pub repetitions: Vec<u64>,
    /// Firings of each node in the initial schedule.
    pub init_firings: Vec<u64>,
    /// The initial schedule.
    pub init: Vec<Arc<Phase>>,
    /// The steady state.
    pub steady: Vec<Arc<Phase>>,
    /// Maximum number of items that each tape holds at one time, by the index of the tape.
    pub bounds: Vec<u64>,
    /// Items that remain on each tape between steady states.
    pub remaining: Vec<u64>,
}

impl Schedule {
    /// Returns the maximum number of items that a tape holds at one time.
    pub fn bound(&self, tape: TapeId) -> u64 {
        self.bounds.get(cranelift_entity::EntityRef::index(tape)).copied().unwrap_or(0)
    }

    /// Returns the firings of a node in a steady state.
    pub fn repetition(&self, node: NodeId) -> u64 {
        self.repetitions.get(cranelift_entity::EntityRef::index(node)).copied().unwrap_or(0)
    }
}

/// The order of firings to use if several are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The order of the original compiler.
    Phased,
    /// A node fires only when its items are needed.
    Pull,
}

/// Makes the schedule of a graph. All rates must be known.
pub fn schedule(graph: &Graph, limits: &Limits, style: Style) -> Result<Schedule, Box<Diagnostic>> {
    let repetitions = balance(graph)?;
    let firings = repetitions.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
    if firings > limits.schedule {
        let message = format!("a steady state has {firings} firings, more than the limit of {}", limits.schedule);
        let most = graph.nodes.iter().max_by_key(|(id, _)| repetitions[id.index()]);
        let error = Diagnostic::error(codes::TOO_LARGE, message);
        let error = match most {
            Some((id, node)) => error.at(node.span, format!("`{}` fires {} times", node.name, repetitions[id.index()])),
            None => error,
        };
        return Err(Box::new(error.help("rates without a common factor multiply; make the rates of neighbours alike")));
    }
    if style == Style::Phased
        && let Some((init, steady)) = phased::phases(graph, &repetitions, limits)
        && let Some(schedule) = verify(graph, &repetitions, init, steady)
    {
        return Ok(schedule);
    }
    let mut levels = Levels::new(graph);
    let init = pull::init_counts(graph, &levels, limits)?;
    let first = pull::order(graph, &mut levels, &init)?;
    let steady = pull::order(graph, &mut levels, &repetitions)?;
    verify(graph, &repetitions, vec![first], vec![steady]).ok_or_else(|| {
        Box::new(Diagnostic::error(
            codes::TOO_LARGE,
            "internal error: the schedule does not pass its own check; please report it",
        ))
    })
}

/// Simulates a schedule on numbers of items. Returns the schedule with its bounds if it is valid.
fn verify(graph: &Graph, repetitions: &[u64], init: Vec<Arc<Phase>>, steady: Vec<Arc<Phase>>) -> Option<Schedule> {
    let mut levels = Levels::new(graph);
    init.iter().all(|phase| levels.run(phase)).then_some(())?;
    let init_firings = levels.fired.clone();
    let remaining = levels.items.clone();
    steady.iter().all(|phase| levels.run(phase)).then_some(())?;
    let exact = levels.fired.iter().zip(&init_firings).zip(repetitions).all(|((after, before), count)| after - before == *count);
    let preworks = graph
        .nodes
        .iter()
        .all(|(id, node)| node.first_flow().is_none() || init_firings[cranelift_entity::EntityRef::index(id)] > 0);
    (exact && preworks && levels.items == remaining).then_some(())?;
    let repetitions = repetitions.to_vec();
    Some(Schedule { repetitions, init_firings, init, steady, bounds: levels.most, remaining })
}
