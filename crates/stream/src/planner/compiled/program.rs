//! A compiled program, as data: stages, their pieces, and counters of runs.

use super::refill::Refill;
use crate::language::graph::{NodeId, TapeId};
use crate::language::program::{Failure, Program};
use crate::planner::classify::ClassifiedNode;
use crate::planner::recurrence::Recurrence;
use crate::planner::restructure::cut::Cut;
use crate::planner::restructure::firing::Loops;
use crate::planner::restructure::island::BorderTape;
use crate::planner::restructure::{Buffer, Island, Role, Section};
use crate::planner::translate::Words;
use broadloom_device::Device;
use broadloom_diag::{Code, Diagnostic, Diagnostics};
use broadloom_scalar::Precision;
use broadloom_skeleton::LoadedProgram;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Options of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of steady states in a batch, which bounds the delay of output. By default the machine
    /// decides.
    pub latency: Option<u64>,
    /// The straight translation: a kernel for each filter, a thread for each firing, all tapes in global
    /// memory. It is the baseline for measuring restructuring.
    pub straight: bool,
    /// True if each kernel is waited for and timed, for [`Compiled::report`].
    pub timed: bool,
    /// The accuracy of floats. With [`Precision::Fast`], stateless filters use the machine's approximations
    /// of elementary functions, divisions and square roots, and products are not rounded before they are
    /// added. Linear filters are combined, and long convolutions are transformed. Otherwise floats are added in
    /// the written order, except those that threads of a GPU share.
    pub precision: Precision,
    /// Enables prefetch. Loops shared by threads prefetch the words of their next rounds, and blocks that
    /// stage inputs prefetch those of their next tiles. By default the cost model decides.
    pub prefetch: Option<bool>,
    /// Longest time that a run without a number of steady states waits for kernels that are compiled. The evaluator then
    /// runs steady states until they are ready. Without it, a run waits.
    pub patience: Option<Duration>,
}

/// A program that is ready to run on a device.
#[derive(Debug)]
pub struct Compiled<'p> {
    pub(super) program: &'p Program,
    pub(super) device: Device,
    pub(super) options: Options,
    pub(super) classified: Vec<ClassifiedNode>,
    pub(super) stages: Arc<[CompiledStage]>,
    pub(super) counters: Counters,
}

/// Counters of runs.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) states: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) handed_back: AtomicU64,
    /// Nanoseconds of each stage.
    pub(super) stages: Vec<AtomicU64>,
}

/// A stage that is ready to run.
#[derive(Debug)]
pub(super) enum CompiledStage {
    Host(Vec<bool>),
    Device(Vec<CompiledPiece>),
}

/// A piece that is ready to run.
#[derive(Debug)]
pub(super) enum CompiledPiece {
    Section(Box<CompiledSection>),
    Island(Box<CompiledIsland>),
}

/// An island that is ready to run.
#[derive(Debug)]
pub(super) struct CompiledIsland {
    pub(super) island: Island,
    /// The recurrence of the island, if its firings are combined.
    pub(super) scan: Option<Arc<Recurrence>>,
    pub(super) kernel: LoadedProgram,
    /// Launches and nanoseconds of the kernel. The time is only measured if kernels are timed.
    pub(super) counted: (AtomicU64, AtomicU64),
}

/// A section that is ready to run.
#[derive(Debug)]
pub(super) struct CompiledSection {
    pub(super) section: Section,
    /// The section as kernels see it. Its units are parts of the units of the section.
    pub(super) fine: Section,
    /// Number of parts in a unit.
    pub(super) parts: i64,
    pub(super) cuts: Vec<Cut>,
    pub(super) kernels: Vec<LoadedProgram>,
    /// Loop choices for each kernel that runs by firing.
    pub(super) loops: Vec<Option<Loops>>,
    /// Maximum number of blocks, for each kernel that prefetches staged words.
    pub(super) ahead: Vec<Option<u64>>,
    /// Variants of the kernels for unaligned buffers, made when first needed.
    pub(super) narrow: Vec<OnceLock<LoadedProgram>>,
    /// Launches and nanoseconds of each kernel. The time is only measured if kernels are timed.
    pub(super) counted: Vec<(AtomicU64, AtomicU64)>,
    /// For each buffer, the number of its first item in memory, for a batch at the start.
    pub(super) starts: Vec<i64>,
    /// For each buffer, the items in memory for a batch of one unit.
    pub(super) lengths: Vec<i64>,
    /// For each input, the items in memory that were popped before the batch.
    pub(super) kept: Vec<i64>,
    /// Steady states that the evaluator must run first.
    pub(super) warm_up: u64,
    /// Firings that give the items on inner tapes back to the evaluator.
    pub(super) refill: Refill,
    pub(super) precision: Precision,
}

/// A tape that a piece reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceInput {
    pub(super) tape: TapeId,
    pub(super) words: Words,
    /// Popped items that kernels look back at.
    pub(super) kept: i64,
    /// Items in a unit.
    pub(super) items: i64,
    /// Minimum number of items in memory for a batch of one unit.
    pub(super) length: i64,
}

impl Compiled<'_> {
    pub(super) fn refused(&self, code: Code, message: String) -> Failure {
        refused(self.program, code, message)
    }

    pub(super) fn pieces(&self) -> impl Iterator<Item = &CompiledPiece> {
        self.stages.iter().flat_map(|stage| match stage {
            CompiledStage::Host(_) => &[][..],
            CompiledStage::Device(pieces) => pieces,
        })
    }

    pub(super) fn sections(&self) -> impl Iterator<Item = &CompiledSection> {
        self.pieces().filter_map(|piece| match piece {
            CompiledPiece::Section(ready) => Some(&**ready),
            CompiledPiece::Island(_) => None,
        })
    }

    pub(super) fn islands(&self) -> impl Iterator<Item = &CompiledIsland> {
        self.pieces().filter_map(|piece| match piece {
            CompiledPiece::Section(_) => None,
            CompiledPiece::Island(sole) => Some(&**sole),
        })
    }
}

pub(super) fn refused(program: &Program, code: Code, message: String) -> Failure {
    Failure { sources: program.sources.clone(), diagnostics: Diagnostics::from(Diagnostic::error(code, message)) }
}

impl CompiledPiece {
    pub(super) fn nodes(&self) -> &[NodeId] {
        match self {
            CompiledPiece::Section(ready) => &ready.section.nodes,
            CompiledPiece::Island(sole) => &sole.island.nodes,
        }
    }

    /// Returns the input tapes.
    pub(super) fn inlets(&self) -> Vec<PieceInput> {
        match self {
            CompiledPiece::Section(ready) => ready.inlets(),
            CompiledPiece::Island(sole) => sole.inlets(),
        }
    }

    /// Returns the output tapes, each with the number of items that kernels write behind those of a batch.
    pub(super) fn extras(&self) -> Vec<(TapeId, i64)> {
        match self {
            CompiledPiece::Section(ready) => {
                let extra = ready.cuts.iter().map(|cut| cut.extra).max().unwrap_or(0);
                let outputs = ready.section.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Output);
                let behind = |index: usize, items: i64| (extra * items).max(ready.lengths[index] - items);
                outputs.map(|(index, buffer)| (buffer.tape, behind(index, buffer.items))).collect()
            }
            CompiledPiece::Island(sole) => sole.island.outputs.iter().map(|output| (output.tape, 0)).collect(),
        }
    }
}

impl CompiledIsland {
    pub(super) fn inlets(&self) -> Vec<PieceInput> {
        let inlet = |input: &BorderTape| {
            let BorderTape { tape, words, items } = *input;
            PieceInput { tape, words, kept: 0, items, length: items }
        };
        self.island.inputs.iter().map(inlet).collect()
    }
}

impl CompiledSection {
    pub(super) fn inlets(&self) -> Vec<PieceInput> {
        let inlet = |(index, buffer): (usize, &Buffer)| PieceInput {
            tape: buffer.tape,
            words: buffer.words,
            kept: self.kept[index],
            items: buffer.items,
            length: self.lengths[index],
        };
        let inputs = self.section.buffers.iter().enumerate().filter(|(_, buffer)| buffer.role == Role::Input);
        inputs.map(inlet).collect()
    }
}
