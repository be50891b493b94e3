//! Compiled programs: parts of the graph as kernels, the rest on the host, stage by stage.
//!
//! ```text
//! classify → stages → sections → cuts → kernels
//! ```
//!
//! A run executes the initial schedule, and the steady states that fill what filters peek at, on the evaluator.
//! Then it runs batches of steady states: each stage does all of a batch before the next one begins, and tapes
//! between host and device cross in blocks. What nodes print is put into the order of the schedule.
//!
//! Invariants:
//! - a run prints what the evaluator prints, in the same order;
//! - where a firing fails, the evaluator repeats the run, and its message is the one that is given;
//! - the memory of tapes is bounded by the steady states of a batch.

mod explain;
mod plan;
mod run;
mod session;
mod words;

pub use session::{Ports, Session};

use crate::classify::{Classified, Placement};
use crate::eval::{Host, Outcome, Settings};
use crate::graph::NodeId;
use crate::restructure::cut::{self, Cut};
use crate::restructure::{Role, Section, emit};
use crate::translate::Reason;
use crate::{Failure, Program, codes};
use broadloom_device::Device;
use broadloom_diag::{Code, Diagnostic, Diagnostics};
use broadloom_skeleton::Loaded;
use cranelift_entity::EntityRef;
use plan::{Stage, plan};
use std::sync::atomic::{AtomicU64, Ordering};

/// A program that is ready to run on a device.
#[derive(Debug)]
pub struct Compiled<'p> {
    program: &'p Program,
    device: Device,
    classified: Vec<Classified>,
    stages: Vec<Part>,
    counters: Counters,
}

/// Counters of runs.
#[derive(Debug, Default)]
struct Counters {
    states: AtomicU64,
    batches: AtomicU64,
    repeated: AtomicU64,
    /// Nanoseconds of each stage.
    stages: Vec<AtomicU64>,
}

/// Counts and times of the runs of a compiled program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Steady states whose sections ran on the device.
    pub states: u64,
    /// Batches that they were run in.
    pub batches: u64,
    /// Runs that the evaluator repeated, because a firing failed or the input ended.
    pub repeated: u64,
}

/// A stage that is ready.
#[derive(Debug)]
enum Part {
    Host(Vec<bool>),
    Device(Vec<Ready>),
}

/// A section that is ready.
#[derive(Debug)]
struct Ready {
    section: Section,
    cuts: Vec<Cut>,
    kernels: Vec<Loaded>,
    /// Items of each buffer that a batch of one unit has in memory.
    lengths: Vec<i64>,
    /// For each input, items in memory that were taken before the batch.
    kept: Vec<i64>,
    /// Steady states that the evaluator has to run first.
    warm_up: u64,
}

/// Kernels and buffers of a compiled program, for people and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Kernels.
    pub kernels: usize,
    /// Actors that copy items.
    pub copies: usize,
    /// Filters on the device.
    pub filters: usize,
    /// Actors, copies included: equal branches are one.
    pub actors: usize,
    /// Nodes on the host.
    pub on_host: usize,
}

impl<'p> Compiled<'p> {
    /// Compiles a program for a device.
    pub fn new(program: &'p Program, device: &Device) -> Result<Compiled<'p>, Failure> {
        let failed = |error: String| {
            let message = format!("the program cannot be compiled for `{}`: {error}", device.machine().id);
            refused(program, codes::DEVICE, message)
        };
        // A section whose kernels are not accepted stays on the host.
        let mut refused: Vec<(NodeId, Reason)> = vec![];
        let (classified, stages) = loop {
            let schedule = program.schedule.as_ref();
            let planned = crate::eval::with_stack(|| plan(&program.core, &program.graph, schedule, &refused));
            let planned = planned.map_err(|error| failed(error.to_string()))?;
            let before = refused.len();
            let mut stages = vec![];
            for stage in planned.stages {
                stages.push(match stage {
                    Stage::Host(nodes) => {
                        let mut chosen = vec![false; program.graph.nodes.len()];
                        nodes.iter().for_each(|node| chosen[node.index()] = true);
                        Part::Host(chosen)
                    }
                    Stage::Device(sections) => {
                        let mut ready = vec![];
                        for section in sections {
                            let nodes = section.nodes.clone();
                            match Ready::new(program, section, device) {
                                Ok(section) => ready.push(section),
                                Err(reason) => {
                                    let reason = format!("its kernel is not accepted: {reason}");
                                    refused.extend(nodes.into_iter().map(|node| (node, reason.clone())));
                                }
                            }
                        }
                        Part::Device(ready)
                    }
                });
            }
            if refused.len() == before {
                break (planned.classified, stages);
            }
        };
        let counters = Counters { stages: stages.iter().map(|_| AtomicU64::new(0)).collect(), ..Counters::default() };
        Ok(Compiled { program, device: device.clone(), classified, stages, counters })
    }

    /// Returns the class and place of each node, by index.
    pub fn nodes(&self) -> &[Classified] {
        &self.classified
    }

    /// Counts kernels, copies and filters.
    pub fn summary(&self) -> Summary {
        let on_host = self.classified.iter().filter(|node| matches!(node.placement, Placement::Host(_))).count();
        let mut summary = Summary { on_host, ..Summary::default() };
        for ready in self.sections() {
            summary.kernels += ready.cuts.len();
            let (copies, filters): (Vec<_>, Vec<_>) = ready.section.actors.iter().partition(|actor| actor.nodes.is_empty());
            summary.copies += copies.len();
            summary.actors += ready.section.actors.len();
            summary.filters += filters.iter().map(|actor| actor.nodes.len()).sum::<usize>();
        }
        summary
    }

    /// Returns what the runs so far did.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics { states: get(&counters.states), batches: get(&counters.batches), repeated: get(&counters.repeated) }
    }

    fn refused(&self, code: Code, message: String) -> Failure {
        refused(self.program, code, message)
    }

    fn sections(&self) -> impl Iterator<Item = &Ready> {
        self.stages.iter().flat_map(|stage| match stage {
            Part::Host(_) => &[][..],
            Part::Device(sections) => sections,
        })
    }

    /// Runs the program from its start.
    pub fn run(&self, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Failure> {
        run::run(self, host, settings)
    }
}

fn refused(program: &Program, code: Code, message: String) -> Failure {
    Failure { sources: program.sources.clone(), diagnostics: Diagnostics::from(Diagnostic::error(code, message)) }
}

impl Ready {
    fn new(program: &Program, section: Section, device: &Device) -> Result<Ready, String> {
        let (graph, schedule) = (&program.graph, program.schedule.as_ref().ok_or("it has no schedule")?);
        let needs = section.needs(0..section.actors.len(), section.outputs(1));
        let (mut starts, mut lengths, mut kept) = (vec![], vec![], vec![]);
        for (buffer, items) in section.buffers.iter().zip(&needs.items) {
            let range = items.unwrap_or(crate::restructure::wiring::Range::new(0, 0));
            let mut start = range.start;
            let mut keep = 0;
            if buffer.role == Role::Input {
                // The first item that the consumer has not taken.
                let (to, port) = graph.tapes[buffer.tape].to;
                let node = &graph.nodes[to];
                let number = |flow: &crate::graph::Flow| i64::from(flow.pop[port].max.unwrap_or(0));
                let pop = number(&node.flow());
                let shift = node.first_flow().map_or(0, |first| number(&first) - pop);
                let front = schedule.init_firings[to.index()] as i64 * pop + shift;
                start = start.min(front);
                keep = front - start;
            }
            starts.push(start);
            lengths.push(range.end.max(start) - start);
            kept.push(keep);
        }
        let mut warm_up = 0u64;
        let steady = section.units as i64;
        let mut wait = |number: i64, per_unit: i64, least: i64| {
            if number < least && per_unit > 0 {
                let per_state = per_unit * steady;
                warm_up = warm_up.max(((least - number + per_state - 1) / per_state) as u64);
            }
        };
        for (actor, firings) in section.actors.iter().zip(&needs.firings) {
            if let Some(firings) = firings {
                wait(actor.before + firings.start, actor.firings, i64::from(actor.has_prework));
            }
        }
        for (buffer, start) in section.buffers.iter().zip(&starts) {
            if buffer.role == Role::Input {
                wait(*start, buffer.items, 0);
            }
        }
        let cuts = cut::cut(&section, device.machine());
        let mut kernels = vec![];
        for (number, cut) in cuts.iter().enumerate() {
            let name = format!("stream_{number}");
            let made = emit::program(&section, cut, &name, &starts).map_err(|error| error.to_string())?;
            kernels.push(made.load(device).map_err(|error| error.to_string())?);
        }
        Ok(Ready { section, cuts, kernels, lengths, kept, warm_up })
    }
}
