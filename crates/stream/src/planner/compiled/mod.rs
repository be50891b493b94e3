//! Compiled programs: parts of the graph as kernels, the rest on the host, stage by stage.
//!
//! ```text
//! classify → stages → sections → cuts → kernels
//! ```
//!
//! A run first uses the evaluator for the initial schedule and for the steady states that fill the peeked
//! items. Then it runs batches of steady states: each stage runs a whole batch before the next stage begins.
//! Tapes between host and device are copied in blocks. Files at kernels do so too: no node of the host fires
//! for their items. Tapes between kernels and the state of filters stay on the device. Printed output is put
//! into the order of the schedule, and written when the batch is complete.
//!
//! A batch has as many steady states as the input files have items for. The evaluator runs what is left of
//! them, as far as the input goes, from the state that the kernels leave. It also runs a batch again in which
//! a firing failed, from the state before the batch.
//!
//! Invariants:
//! - a run prints and writes what the evaluator prints and writes, in the same order;
//! - if a firing fails, the error shown is the evaluator's;
//! - the memory of tapes is bounded by the steady states of a batch.

mod batch_end;
mod device_state;
mod explain;
mod hand_back;
mod launch;
mod picture;
mod plan;
mod prepare;
mod program;
mod refill;
mod regions;
mod resident;
mod run;
mod session;
mod techniques;
#[doc(hidden)]
pub mod words;

pub use program::{Compiled, Options};
pub use resident::Resident;
pub use session::{Latency, Ports, Session};

use crate::language::codes;
use crate::language::eval::{Host, Outcome, Settings};
use crate::language::graph::{NodeId, NodeKind};
use crate::language::program::{Failure, Program};
use crate::planner::classify::{ClassifiedNode, Placement};
use crate::planner::recurrence::Recurrence;
use crate::planner::restructure::cut::Shape;
use crate::planner::restructure::emit::{self, EmitOptions, ahead};
use crate::planner::restructure::firing::KernelTarget;
use crate::planner::restructure::{Island, Role, Section, cutter, firing, refine, scan, sequential, spectrum};
use crate::planner::translate::Reason;
use broadloom_device::{Device, trace};
pub use broadloom_scalar::Precision;
use broadloom_skeleton::LoadedProgram;
use cranelift_entity::EntityRef;
use plan::{Piece, Stage, plan};
use program::{CompiledIsland, CompiledPiece, CompiledSection, CompiledStage, Counters, refused};
use refill::Refill;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts and times of the runs of a compiled program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Steady states whose sections ran on the device.
    pub states: u64,
    /// Number of batches of these steady states.
    pub batches: u64,
    /// Runs that the evaluator finished because a firing failed or the input ended.
    pub handed_back: u64,
}

/// Counts of kernels and buffers of a compiled program, for display and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of kernels of the program.
    pub kernels: usize,
    /// Actors that copy items.
    pub copies: usize,
    /// Filters on the device.
    pub filters: usize,
    /// Actors, copies included. Equal branches are merged into one actor.
    pub actors: usize,
    /// Nodes on the host.
    pub on_host: usize,
    /// Stateful filters and feedbackloops on the device. Neighbours count as one.
    pub islands: usize,
    /// Stateful filters whose firings are combined.
    pub scans: usize,
}

impl<'p> Compiled<'p> {
    /// Compiles a program for a device.
    pub fn new(program: &'p Program, device: &Device) -> Result<Compiled<'p>, Failure> {
        Compiled::with(program, device, Options::default())
    }

    /// Compiles a program for a device with the given options.
    pub fn with(program: &'p Program, device: &Device, options: Options) -> Result<Compiled<'p>, Failure> {
        let failed = |error: String| {
            let message = format!("the program cannot be compiled for `{}`: {error}", device.machine().id);
            refused(program, codes::DEVICE, message)
        };
        // A section whose kernels are not accepted stays on the host.
        let mut refused: Vec<(NodeId, Reason)> = vec![];
        let (classified, stages) = loop {
            let schedule = program.schedule.as_ref();
            let planning = trace::span("plan the kernels");
            let planned = crate::language::eval::with_stack(|| {
                plan(&program.core, &program.graph, schedule, &refused, device.machine(), options)
            });
            let planned = planned.map_err(|error| failed(error.to_string()))?;
            drop(planning);
            let _making = trace::span("make the kernels");
            let before = refused.len();
            let mut stages = vec![];
            for stage in planned.stages {
                stages.push(match stage {
                    Stage::Host(nodes) => {
                        let mut chosen = vec![false; program.graph.nodes.len()];
                        nodes.iter().for_each(|node| chosen[node.index()] = true);
                        CompiledStage::Host(chosen)
                    }
                    Stage::Device(pieces) => {
                        let mut ready = vec![];
                        for piece in pieces {
                            let (nodes, made) = match piece {
                                Piece::Section(section) => {
                                    let nodes = section.nodes.clone();
                                    (
                                        nodes,
                                        CompiledSection::new(program, section, device, options)
                                            .map(|made| CompiledPiece::Section(made.into())),
                                    )
                                }
                                Piece::Island(island) => {
                                    let nodes = island.nodes.clone();
                                    let scan = match &planned.classified[nodes[0].index()].placement {
                                        Placement::Scan(recurrence) => Some(recurrence.clone()),
                                        _ => None,
                                    };
                                    (
                                        nodes,
                                        CompiledIsland::new(program, island, scan, device)
                                            .map(|made| CompiledPiece::Island(made.into())),
                                    )
                                }
                            };
                            match made {
                                Ok(made) => ready.push(made),
                                Err(reason) => {
                                    let reason = format!("its kernel is not accepted: {reason}");
                                    refused.extend(nodes.into_iter().map(|node| (node, reason.clone().into())));
                                }
                            }
                        }
                        CompiledStage::Device(ready)
                    }
                });
            }
            if refused.len() == before {
                break (planned.classified, stages);
            }
        };
        let counters = Counters { stages: stages.iter().map(|_| AtomicU64::new(0)).collect(), ..Counters::default() };
        Ok(Compiled { program, device: device.clone(), options, classified, stages: stages.into(), counters })
    }

    /// Returns the class and placement of each node, by index.
    pub fn nodes(&self) -> &[ClassifiedNode] {
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
        for sole in self.islands() {
            let is_filter = |node: &&NodeId| matches!(self.program.graph.nodes[**node].kind, NodeKind::Filter(_));
            let filters = sole.island.nodes.iter().filter(is_filter).count();
            summary.kernels += if sole.scan.is_some() { 3 } else { 1 };
            summary.islands += 1;
            summary.scans += usize::from(sole.scan.is_some());
            summary.actors += filters;
            summary.filters += filters;
        }
        summary
    }

    /// Returns the PTX of all kernels, as passed to the device.
    pub fn ptx(&self) -> Result<String, Failure> {
        let kernels = self.pieces().flat_map(|piece| match piece {
            CompiledPiece::Section(ready) => &ready.kernels[..],
            CompiledPiece::Island(sole) => std::slice::from_ref(&sole.kernel),
        });
        let texts = kernels.map(LoadedProgram::ptx).collect::<Result<Vec<String>, _>>();
        texts.map(|texts| texts.join("\n")).map_err(|error| self.refused(codes::DEVICE, error.to_string()))
    }

    /// Returns the counters of the runs so far.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics { states: get(&counters.states), batches: get(&counters.batches), handed_back: get(&counters.handed_back) }
    }

    /// Runs the program from its start.
    pub fn run(&self, host: &mut dyn Host, settings: &Settings) -> Result<Outcome, Failure> {
        run::run(self, host, settings)
    }
}

impl CompiledIsland {
    fn new(program: &Program, island: Island, scan: Option<Arc<Recurrence>>, device: &Device) -> Result<CompiledIsland, Reason> {
        let made = match &scan {
            Some(recurrence) => scan::program(&island, recurrence, "stream_scan")?,
            None => sequential::program(&program.core, &program.graph, &island, "stream_in_order")?,
        };
        let kernel = made.load(device)?;
        Ok(CompiledIsland { island, scan, kernel, counted: Default::default() })
    }
}

impl CompiledSection {
    fn new(program: &Program, section: Section, device: &Device, options: Options) -> Result<CompiledSection, Reason> {
        let (graph, schedule) = (&program.graph, program.schedule.as_ref().ok_or("it has no schedule")?);
        let needs = section.needs(0..section.actors.len(), section.outputs(1));
        let refill = Refill::new(graph, schedule, &section);
        let (mut starts, mut lengths, mut kept) = (vec![], vec![], vec![]);
        for (buffer, items) in section.buffers.iter().zip(&needs.items) {
            let range = items.unwrap_or(crate::planner::restructure::wiring::Range::new(0, 0));
            let mut start = range.start;
            let mut keep = 0;
            if buffer.role == Role::Input {
                // The first item that the consumer has not popped.
                let (to, port) = graph.tapes[buffer.tape].to;
                let node = &graph.nodes[to];
                let number = |flow: &crate::language::graph::Flow| i64::from(flow.pop[port].max.unwrap_or(0));
                let pop = number(&node.flow());
                let shift = node.first_flow().map_or(0, |first| number(&first) - pop);
                let front = schedule.init_firings[to.index()] as i64 * pop + shift;
                start = start.min(front - refill.popped_items(buffer.tape) as i64);
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
        for (node, firings) in refill.firings() {
            let per_unit = (schedule.repetition(node) / section.units) as i64;
            let before = schedule.init_firings[node.index()] as i64;
            wait(before - firings as i64, per_unit, i64::from(graph.nodes[node].first_flow().is_some()));
        }
        let large = !options.straight && cutter::is_large(&section);
        let (fine, parts) = large.then(|| refine(&section)).flatten().unwrap_or_else(|| (section.clone(), 1));
        // A filter whose loops cannot be shared, or that cannot be transformed after all, is cut like the
        // others.
        let mut refused = vec![];
        let (cuts, kernels, loops, ahead) = loop {
            let cuts = match options.straight {
                true => cutter::straight(&fine, device.machine()),
                false => cutter::cut(&fine, device.machine(), &refused),
            };
            let (mut kernels, mut loops, mut ahead, before) = (vec![], vec![], vec![], refused.len());
            for (number, cut) in cuts.iter().enumerate() {
                let name = format!("stream_{number}");
                let alone = match cut.shape {
                    Shape::Firing => {
                        let Options { precision, prefetch, .. } = options;
                        let target = KernelTarget { machine: device.machine(), precision, prefetch };
                        Some(
                            firing::program(&program.core, graph, &fine, cut, &name, &starts, target)
                                .map(|(made, own)| (made, Some(own))),
                        )
                    }
                    Shape::Spectrum(points) => {
                        Some(spectrum::program(&fine, cut, &name, &starts, points).map(|made| (made, None)))
                    }
                    Shape::Thread | Shape::Block(_) => None,
                };
                let mut blocks = None;
                let (made, own) = match alone {
                    None => {
                        let wish = if options.straight { Some(false) } else { options.prefetch };
                        blocks = ahead::blocks(&fine, cut, &starts, device.machine(), wish);
                        let emitted = EmitOptions { wide: true, precision: options.precision, blocks };
                        let made = emit::program(&fine, cut, &name, &starts, emitted);
                        (made?, None)
                    }
                    Some(Ok(made)) => made,
                    Some(Err(_)) => {
                        // Of a filter and the actor that adds up its firings, the latter is refused.
                        refused.extend(cut.actors.last());
                        break;
                    }
                };
                kernels.push(made.load(device)?);
                loops.push(own);
                ahead.push(blocks);
            }
            if refused.len() == before {
                break (cuts, kernels, loops, ahead);
            }
        };
        let counted = kernels.iter().map(|_| Default::default()).collect();
        let narrow = kernels.iter().map(|_| OnceLock::new()).collect();
        Ok(CompiledSection {
            section,
            fine,
            parts,
            cuts,
            kernels,
            loops,
            ahead,
            narrow,
            counted,
            starts,
            lengths,
            kept,
            warm_up,
            refill,
            precision: options.precision,
        })
    }
}
