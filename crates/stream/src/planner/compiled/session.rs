//! Sessions: a compiled program fed in pieces.
//!
//! The `FileReader` of a program is its input and the `FileWriter` its output. The names of the files do not
//! matter. A session takes items as they come, runs as many steady states as there are items for, and returns
//! the output. It keeps the remaining items, so memory stays bounded by the size of the pieces.
//!
//! If the reader feeds a kernel and the writer follows one, items are copied as raw bytes.

use super::batch_end::BatchEnd;
use super::device_state::DeviceState;
use super::program::Compiled;
use super::run::{batch, begin};
use crate::language::codes;
use crate::language::core::Type;
use crate::language::eval::{Host, Machine, Settings, with_stack};
use crate::language::graph::{NodeId, NodeKind};
use crate::language::program::Failure;
use broadloom_device::{Buffer, Element};
use broadloom_diag::Diagnostics;
use cranelift_entity::EntityRef;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The host of a session: its input and output in memory, and what the program printed.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    input: Arc<Mutex<VecDeque<u8>>>,
    output: Arc<Mutex<Vec<u8>>>,
    /// The printed text.
    pub printed: String,
}

struct InputQueue(Arc<Mutex<VecDeque<u8>>>);
struct OutputQueue(Arc<Mutex<Vec<u8>>>);

impl Read for InputQueue {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(buffer)
    }
}

impl Write for OutputQueue {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Host for Ports {
    fn print(&mut self, text: &str) -> io::Result<()> {
        self.printed.push_str(text);
        Ok(())
    }

    fn open(&mut self, _: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(InputQueue(self.input.clone())))
    }

    fn create(&mut self, _: &str) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(OutputQueue(self.output.clone())))
    }

    fn passes_words(&self) -> bool {
        true
    }
}

/// The delays of a session, in input items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Items that must be fed before kernels run: those of the initial schedule, of the steady states that
    /// fill the peeked items, and of the first steady state after them.
    pub start: u64,
    /// Items of a steady state. Output appears whenever this many more items were fed, and fewer than this
    /// many are held.
    pub step: u64,
    /// Items produced by each step.
    pub output: u64,
}

/// A running program that is fed in pieces.
pub struct Session<'s> {
    compiled: &'s Compiled<'s>,
    machine: Machine<'s>,
    input: Arc<Mutex<VecDeque<u8>>>,
    output: Arc<Mutex<Vec<u8>>>,
    reader: NodeId,
    writer: NodeId,
    /// Bytes of an item of the input and of the output.
    item: (usize, usize),
    types: (Type, Type),
    /// Items that were fed.
    fed: u64,
    live: DeviceState,
    done: Option<u64>,
}

impl<'s> Session<'s> {
    /// Begins a session. The program must have one `FileReader` and one `FileWriter`, of `int`, `float`,
    /// `double` or `complex`.
    pub fn new(compiled: &'s Compiled<'s>, ports: &'s mut Ports) -> Result<Session<'s>, Failure> {
        let graph = &compiled.program.graph;
        let find = |reads: bool| {
            let mut found = graph.nodes.iter().filter_map(|(id, node)| match &node.kind {
                NodeKind::FileReader(layout, _) if reads => Some((id, layout.ty())),
                NodeKind::FileWriter(layout, _) if !reads => Some((id, layout.ty())),
                _ => None,
            });
            let word = if reads { "FileReader" } else { "FileWriter" };
            match (found.next(), found.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => Err(compiled.refused(codes::BAD_SHAPE, format!("a session needs a `{word}`, and there is none"))),
                (Some(_), Some(_)) => {
                    Err(compiled.refused(codes::BAD_SHAPE, format!("a session needs one `{word}`, and there are several")))
                }
            }
        };
        let ((reader, input), (writer, output)) = (find(true)?, find(false)?);
        let bytes = |ty: &Type| match ty {
            Type::Int | Type::Float => Ok(4),
            Type::Double | Type::Complex => Ok(8),
            _ => Err(compiled.refused(codes::BAD_SHAPE, "a session takes and gives int, float, double or complex".into())),
        };
        if compiled.program.schedule.is_none() {
            return Err(compiled.refused(codes::BAD_SHAPE, "a session needs a program whose rates are all known".into()));
        }
        let item = (bytes(&input)?, bytes(&output)?);
        let (input_bytes, output_bytes) = (ports.input.clone(), ports.output.clone());
        let settings = Settings::default();
        let machine = Machine::new(&compiled.program.core, graph, ports, &settings);
        Ok(Session {
            compiled,
            machine,
            input: input_bytes,
            output: output_bytes,
            reader,
            writer,
            item,
            types: (input, output),
            fed: 0,
            live: DeviceState::default(),
            done: None,
        })
    }

    /// Returns how long items stay in the session. Items that filters peek beyond those they pop add a delay;
    /// it belongs to the program itself.
    pub fn latency(&self) -> Latency {
        let Some(schedule) = &self.compiled.program.schedule else { return Latency { start: 0, step: 0, output: 0 } };
        let warm_up = self.compiled.sections().map(|ready| ready.warm_up).max().unwrap_or(0);
        let step = schedule.repetition(self.reader);
        let start = schedule.init_firings[self.reader.index()] + (warm_up + 1) * step;
        Latency { start, step, output: schedule.repetition(self.writer) }
    }

    /// Returns the number of items that were fed and not yet passed to a steady state.
    pub fn held_items(&self) -> u64 {
        let (Some(schedule), Some(done)) = (&self.compiled.program.schedule, self.done) else { return self.fed };
        let taken = schedule.init_firings[self.reader.index()] + done * schedule.repetition(self.reader);
        self.fed.saturating_sub(taken)
    }

    /// Feeds items and returns the produced items. `complex` items are pairs of `f32`.
    pub fn feed<I: Element, O: Element>(&mut self, items: &[I]) -> Result<Vec<O>, Failure> {
        let compiled = self.compiled;
        if !holds::<I>(&self.types.0) || !holds::<O>(&self.types.1) {
            return Err(compiled.refused(codes::MISMATCH, "the items of the session have another type".into()));
        }
        let mut bytes = vec![0; items.len() * I::BYTES];
        items.iter().zip(bytes.chunks_exact_mut(I::BYTES)).for_each(|(item, place)| item.to_bytes(place));
        self.fed += (bytes.len() / self.item.0) as u64;
        self.input.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        let ended = with_stack(|| self.advance());
        self.ended(ended)?;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let result = output.chunks_exact(O::BYTES).map(O::from_bytes).collect();
        output.clear();
        Ok(result)
    }

    /// Feeds items on the device and returns the produced items, also on the device. The items must form
    /// whole steady states, and no items may be left from earlier calls. The first call uploads the items
    /// that the program looks back at.
    pub fn feed_buffer<I: Element, O: Element>(&mut self, items: &Buffer<I>) -> Result<Vec<Buffer<O>>, Failure> {
        let compiled = self.compiled;
        let refused = |reason: &str| compiled.refused(codes::MISMATCH, reason.to_owned());
        if !holds::<I>(&self.types.0) || !holds::<O>(&self.types.1) {
            return Err(refused("the items of the session have another type"));
        }
        let schedule = compiled.program.schedule.as_ref().ok_or_else(|| refused("the program has dynamic rates"))?;
        let rate = schedule.repetition(self.reader) as usize * self.item.0;
        let bytes = items.len() * I::BYTES;
        let states = (bytes / rate.max(1)) as u64;
        let view = items.view::<u8>().ok_or_else(|| refused("the buffer is not aligned"))?;
        if !bytes.is_multiple_of(rate.max(1)) || states == 0 {
            return Err(refused(&format!("the buffer does not hold whole steady states of {rate} bytes")));
        }
        if states > compiled.indexed_batch() {
            return Err(refused(&format!("the buffer holds more than {} steady states", compiled.indexed_batch())));
        }
        let tape = compiled.program.graph.nodes[self.reader].outputs[0];
        let files = [self.reader, self.writer];
        let result = with_stack(|| -> Result<(), BatchEnd> {
            self.advance()?;
            let Some(done) =
                self.done.filter(|_| self.held_items() == 0 && files.iter().all(|file| self.live.files.contains(file)))
            else {
                return Err(BatchEnd::Device(
                    "items on the device need a kernel behind the reader and before the writer, and what it looks back at first"
                        .into(),
                ));
            };
            self.live.given = Some((tape, view));
            self.live.made = Some(vec![]);
            batch(compiled, schedule, &mut self.machine, states, done, false, &mut self.live)?;
            self.done = Some(done + states);
            self.fed += states * schedule.repetition(self.reader);
            Ok(())
        });
        let made = self.live.made.take().unwrap_or_default();
        self.ended(result)?;
        made.iter().map(|buffer| buffer.view::<O>().ok_or_else(|| refused("the output is not aligned"))).collect()
    }

    /// Returns the failure with which a piece ended.
    fn ended(&self, ended: io::Result<Result<(), BatchEnd>>) -> Result<(), Failure> {
        let compiled = self.compiled;
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(BatchEnd::Repeat(Some(error)) | BatchEnd::Stopped(error))) => {
                let sources = compiled.program.sources.clone();
                Err(Failure { sources, diagnostics: Diagnostics::from(*error) })
            }
            Ok(Err(BatchEnd::Device(error))) => Err(compiled.refused(codes::DEVICE, error)),
            Ok(Err(BatchEnd::Closed | BatchEnd::Repeat(None))) => {
                let message = "a firing failed: an index outside of an array, a division by zero or a rate that is not kept";
                Err(compiled.refused(codes::RUN_TIME, message.into()))
            }
            Err(error) => Err(compiled.refused(codes::DEVICE, error.to_string())),
        }
    }

    /// Runs as many steady states as the pending items allow.
    fn advance(&mut self) -> Result<(), BatchEnd> {
        let compiled = self.compiled;
        self.machine.budget.start_stack();
        let Some(schedule) = &compiled.program.schedule else { return Ok(()) };
        let warm_up = compiled.sections().map(|ready| ready.warm_up).max().unwrap_or(0);
        if self.done.is_none() {
            if self.fed < schedule.init_firings[self.reader.index()] + warm_up * schedule.repetition(self.reader) {
                return Ok(());
            }
            begin(compiled, schedule, &mut self.machine, warm_up)?;
            self.live.take_over(compiled, &mut self.machine, warm_up)?;
        }
        let mut done = self.done.unwrap_or(warm_up);
        self.done = Some(done);
        let mut left = self.held_items() / schedule.repetition(self.reader).max(1);
        let most = compiled.largest_batch();
        while left > 0 {
            let states = self.machine.read_ahead(schedule, left.min(most));
            if states == 0 {
                return Err(BatchEnd::Device("an item that was fed is not there".into()));
            }
            batch(compiled, schedule, &mut self.machine, states, done, false, &mut self.live)?;
            done += states;
            left -= states;
            self.done = Some(done);
        }
        self.machine.commit()?;
        Ok(())
    }
}

/// Returns whether a host type represents the items of a tape.
fn holds<T: Element>(ty: &Type) -> bool {
    let is = |wanted: std::any::TypeId| std::any::TypeId::of::<T>() == wanted;
    match ty {
        Type::Int => is(std::any::TypeId::of::<i32>()),
        Type::Float | Type::Complex => is(std::any::TypeId::of::<f32>()),
        Type::Double => is(std::any::TypeId::of::<f64>()),
        _ => false,
    }
}
