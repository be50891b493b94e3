//! The state of a run: tapes, nodes, files and printed text.

use super::budget::Budget;
use super::files::{Reader, Writer, file_item};
use super::host::Host;
use super::mail::{Messages, PendingMessage};
use super::stop::{PATHS, Stop, both};
use crate::language::codes;
use crate::language::core::{Layout, Program, StreamKind, Value, facts};
use crate::language::format::{Decoder, Encoder, StreamFile};
use crate::language::graph::{Flow, Graph, Node, NodeId, NodeKind, TapeId};
use crate::language::limits::Limits;
use crate::language::schedule::Style;
use broadloom_diag::{Diagnostic, Span};
use cranelift_entity::EntityRef;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Settings of a run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Number of steady states after the initial schedule. Endless if absent.
    pub iterations: Option<u64>,
    /// Limits of memory and steps.
    pub limits: Limits,
    /// The order of firings. If absent, the program decides.
    pub style: Option<Style>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All iterations were run.
    Done,
    /// An input file ended.
    EndOfInput,
    /// Nothing can fire.
    Idle,
    /// The output is no longer read.
    OutputClosed,
}

/// Output is printed in portions of this many bytes.
const PORTION: usize = 1 << 16;

/// Longest time that output waits for more of it.
const LONGEST_WAIT: Duration = Duration::from_millis(5);

/// Help text for files that were opened and cannot be written.
const DISK: &str = "check the space on its disk, and whether its reader still runs";

fn is_standard_output(file: &StreamFile) -> bool {
    matches!(&*file.name, "-" | "/dev/stdout")
}

/// Returns the end of a run that cannot write a file. A reader of the standard output that needs no more ends the run
/// as it does for printed text.
fn not_written(name: &StreamFile, error: &std::io::Error, span: Span) -> Stop {
    if error.kind() == std::io::ErrorKind::BrokenPipe && is_standard_output(name) {
        return Stop::OutputClosed;
    }
    Stop::error(codes::FILE, format!("`{name}` cannot be written: {error}"), span)
}

/// Advances the random generator and returns a number in [0, 1).
pub(crate) fn random(state: &mut u64) -> f64 {
    let mut next = |bits: u32| {
        *state = (state.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB)) & ((1 << 48) - 1);
        *state >> (48 - bits)
    };
    let high = next(26) << 27;
    (high + next(27)) as f64 / (1u64 << 53) as f64
}

/// The text that a node printed, firing by firing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    text: String,
    /// Ends of the texts of firings.
    ends: Vec<usize>,
    /// Number of firings whose texts were returned.
    returned: usize,
}

impl Record {
    /// Moves the text of a firing into the record.
    pub(super) fn add(&mut self, text: &mut String) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
        text.clear();
    }

    /// Returns the text of the next firing. Files that pass their items in blocks have no record of their firings.
    pub(crate) fn next_text(&mut self) -> &str {
        let start = self.returned.checked_sub(1).map_or(0, |last| self.ends[last]);
        let Some(end) = self.ends.get(self.returned) else { return "" };
        self.returned += 1;
        &self.text[start..*end]
    }
}

/// The state of a node.
pub(crate) struct State {
    pub(crate) fields: Vec<Value>,
    /// Finished firings.
    pub(crate) fired: u64,
    /// Finished firings of `work`.
    pub(crate) iterations: i32,
    /// True while a firing is in progress.
    pub(super) busy: bool,
    pub(super) mail: VecDeque<PendingMessage>,
    pub(super) reader: Option<Reader>,
    pub(super) writer: Option<Writer>,
}

pub(crate) struct Machine<'a> {
    pub(super) program: &'a Program,
    pub(super) graph: &'a Graph,
    host: &'a mut dyn Host,
    pub(crate) tapes: Vec<VecDeque<Value>>,
    /// For each tape, how many popped items are kept, and those items.
    pub(crate) past: Vec<(usize, VecDeque<Value>)>,
    pub(crate) nodes: Vec<State>,
    /// The memory of the locals of a firing, for the next one.
    pub(super) stack: Vec<Value>,
    pub(super) flows: Vec<Flow>,
    pub(crate) budget: Budget,
    pub(super) random: u64,
    /// True if firings pull the items they need.
    pub(super) on_demand: bool,
    pub(super) text: String,
    /// True if text and items of files are kept back until [`commit`](Self::commit).
    pub(crate) holds: bool,
    /// The output of each node, if output is put into order later.
    pub(crate) records: Option<Vec<Record>>,
    pub(super) messages: Messages,
    /// Steady states that the run should have, endless if absent, and those that are left.
    pub(super) states_wanted: Option<u64>,
    pub(super) states_left: Option<u64>,
    /// The time of the last output.
    written_at: Instant,
    /// True if a filter prints.
    prints: bool,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(program: &'a Program, graph: &'a Graph, host: &'a mut dyn Host, settings: &Settings) -> Self {
        let state = |node: &Node| State {
            fields: match &node.kind {
                NodeKind::Filter(instance) => instance.fields.to_vec(),
                _ => vec![],
            },
            fired: 0,
            iterations: 0,
            busy: false,
            mail: VecDeque::new(),
            reader: None,
            writer: None,
        };
        let prints = program.streams.values().any(|stream| match &stream.kind {
            StreamKind::Filter(filter) => facts(program, filter).prints,
            StreamKind::Composite(..) => false,
        });
        Machine {
            program,
            graph,
            host,
            tapes: graph.tapes.values().map(|tape| tape.enqueued.iter().cloned().collect()).collect(),
            past: vec![(0, VecDeque::new()); graph.tapes.len()],
            nodes: graph.nodes.values().map(state).collect(),
            stack: vec![],
            flows: graph.nodes.values().map(Node::flow).collect(),
            budget: Budget::new(settings.limits.clone()),
            random: graph.random,
            on_demand: false,
            text: String::new(),
            holds: false,
            records: None,
            messages: Messages::default(),
            states_wanted: settings.iterations,
            states_left: settings.iterations,
            written_at: Instant::now(),
            prints,
        }
    }

    pub(super) fn pass(&mut self, from: TapeId, to: TapeId, count: u32, id: NodeId) -> Result<(), Stop> {
        for _ in 0..count {
            let value = self.take(from, id)?;
            self.put(to, value, self.graph.nodes[id].span)?;
        }
        Ok(())
    }

    pub(crate) fn take(&mut self, tape: TapeId, id: NodeId) -> Result<Value, Stop> {
        let value = self.tapes[tape.index()].pop_front();
        let value = value.ok_or_else(|| {
            let message = format!("{} is empty", self.graph.describe(tape));
            Stop::error(codes::RATE_BROKEN, message, self.graph.nodes[id].span).help("pop fewer items, or push more before")
        })?;
        self.budget.cells = self.budget.cells.saturating_sub(value.cells());
        let (limit, past) = &mut self.past[tape.index()];
        if *limit > 0 {
            if past.len() >= *limit {
                past.pop_front();
            }
            past.push_back(value.clone());
        }
        Ok(value)
    }

    pub(crate) fn put(&mut self, tape: TapeId, value: Value, span: Span) -> Result<(), Stop> {
        self.charge_cells(tape, value.cells(), span)?;
        self.tapes[tape.index()].push_back(value);
        Ok(())
    }

    /// Counts the memory of items that are put onto a tape. Fails at the limit.
    pub(super) fn charge(&mut self, tape: TapeId, items: usize, span: Span) -> Result<(), Stop> {
        let cells = self.graph.tapes[tape].layout.cells();
        self.charge_cells(tape, cells.saturating_mul(items as u64), span)
    }

    fn charge_cells(&mut self, tape: TapeId, cells: u64, span: Span) -> Result<(), Stop> {
        self.budget.cells = self.budget.cells.saturating_add(cells);
        if self.budget.cells > self.budget.limits.cells {
            let message =
                format!("{} holds too many items: the limit is {} scalars", self.graph.describe(tape), self.budget.limits.cells);
            return Err(Stop::error(codes::MEMORY, message, span).help("push fewer items for each one that is taken"));
        }
        Ok(())
    }

    /// Prints what a function appends to a text.
    pub(crate) fn print(&mut self, append: &dyn Fn(&mut String)) -> Result<(), Stop> {
        append(&mut self.text);
        if self.text.len() >= PORTION && self.records.is_none() && !self.holds { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        if self.text.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.text);
        self.host.print(&text).map_err(|_| Stop::OutputClosed)
    }

    pub(super) fn warn(&mut self, warning: Diagnostic) {
        self.host.warn(warning);
    }

    pub(super) fn read_item(&mut self, id: NodeId, layout: &Layout, name: &StreamFile) -> Result<Value, Stop> {
        let span = self.graph.nodes[id].span;
        let failed =
            |error: std::io::Error| Stop::error(codes::FILE, format!("`{name}` cannot be read: {error}"), span).help(PATHS);
        let keeps = self.holds;
        if !keeps && !self.nodes[id.index()].reader.as_ref().is_some_and(|reader| reader.has_item(&layout.ty())) {
            // Nothing that was computed waits for the input.
            self.write_pending()?;
        }
        let reader = self.reader(id, layout, name).map_err(failed)?;
        reader.read(&layout.ty(), keeps).map_err(failed)?.ok_or(Stop::EndOfInput)
    }

    /// Returns the reader of a file. Opens the file first.
    pub(super) fn reader(&mut self, id: NodeId, layout: &Layout, file: &StreamFile) -> std::io::Result<&mut Reader> {
        let state = &mut self.nodes[id.index()];
        Ok(match &mut state.reader {
            Some(reader) => reader,
            absent => {
                let opened = self.host.open(&file.name)?;
                let decoder = match file_item(&layout.ty()).filter(|_| !self.host.passes_words()) {
                    Some(item) => Decoder::new(opened, &file.name, &file.format, item)?,
                    None => Decoder::plain(opened),
                };
                absent.insert(Reader::new(decoder, self.host.has_file_threads())?)
            }
        })
    }

    pub(super) fn write_item(&mut self, id: NodeId, layout: &Layout, name: &StreamFile, value: &Value) -> Result<(), Stop> {
        let (span, holds) = (self.graph.nodes[id].span, self.holds);
        self.writer(id, layout, name)?.write(value, holds).map_err(|error| not_written(name, &error, span).help(DISK))
    }

    /// Returns the writer of a file. Creates the file first.
    pub(super) fn writer(&mut self, id: NodeId, layout: &Layout, name: &StreamFile) -> Result<&mut Writer, Stop> {
        let (span, state) = (self.graph.nodes[id].span, &mut self.nodes[id.index()]);
        Ok(match &mut state.writer {
            Some(writer) => writer,
            absent => {
                let failed = |error| not_written(name, &error, span).help(PATHS);
                let file = self.host.create(&name.name).map_err(failed)?;
                let encoder = match file_item(&layout.ty()).filter(|_| !self.host.passes_words()) {
                    Some(item) => Encoder::new(file, &name.name, &name.format, item).map_err(failed)?,
                    None => Encoder::plain(file),
                };
                if let (true, Some(header)) = (encoder.needs_its_size(), encoder.final_header().map_err(failed)?)
                    && !self.host.amend(&name.name, &header).map_err(failed)?
                {
                    let message = format!("`{name}` is a pipe, and a `.npy` file begins with its length");
                    return Err(Stop::error(codes::FILE, message, span).help("write it to a file, or as `raw` or `wav`"));
                }
                // Text and items of the same output keep their order.
                let is_shared = is_standard_output(name) && self.prints;
                let behind = self.host.has_file_threads() && !is_shared;
                absent.insert(Writer::new(encoder, behind).map_err(failed)?)
            }
        })
    }

    /// Creates the files that no item was written to.
    pub(super) fn create_files(&mut self) -> Result<(), Stop> {
        let graph = self.graph;
        for (id, node) in graph.nodes.iter() {
            if let NodeKind::FileWriter(layout, name) = &node.kind {
                self.writer(id, layout, name)?;
            }
        }
        Ok(())
    }

    /// Writes the text and the items so far.
    fn write_pending(&mut self) -> Result<(), Stop> {
        self.written_at = Instant::now();
        self.flush()?;
        self.each_writer(Writer::commit)
    }

    /// Writes the text and the items so far if they have waited long. Called between steady states.
    pub(super) fn write_in_time(&mut self) -> Result<(), Stop> {
        if self.holds || self.records.is_some() || self.written_at.elapsed() < LONGEST_WAIT {
            Ok(())
        } else {
            self.write_pending()
        }
    }

    /// Writes the last items of all files, and the sizes in their headers. A file that fails does not keep the others
    /// from being written.
    pub(crate) fn close(&mut self) -> Result<(), Stop> {
        let mut closed = self.each_writer(Writer::close);
        for (id, node) in self.graph.nodes.iter() {
            if let (NodeKind::FileWriter(_, file), Some(writer)) = (&node.kind, &self.nodes[id.index()].writer) {
                let failed = |error| not_written(file, &error, node.span).help(DISK);
                // The header of a pipe keeps its unknown size.
                let amended = match writer.final_header() {
                    Ok(Some(header)) => self.host.amend(&file.name, &header).map(drop),
                    other => other.map(drop),
                };
                closed = both(closed, amended.map_err(failed));
            }
        }
        closed
    }

    pub(super) fn each_writer(&mut self, write: fn(&mut Writer) -> std::io::Result<()>) -> Result<(), Stop> {
        let mut written = Ok(());
        for (id, node) in self.graph.nodes.iter() {
            if let (NodeKind::FileWriter(_, name), Some(writer)) = (&node.kind, &mut self.nodes[id.index()].writer) {
                written = both(written, write(writer).map_err(|error| not_written(name, &error, node.span).help(DISK)));
            }
        }
        written
    }
}
