//! Sessions: a compiled program fed in pieces.
//!
//! The `FileReader` of a program is its input and the `FileWriter` its output; the names of the files do not matter.
//! A session takes items as they come, runs as many steady states as there are items for, and returns what came out.
//! It keeps the rest, so memory stays bounded by the pieces that it is given.
//!
//! Where the reader feeds a kernel and the writer follows one, items cross as bytes, untouched.

use super::Compiled;
use super::run::{Raw, Trouble, batch, begin};
use super::words::encode;
use crate::core::Type;
use crate::eval::{Host, Machine, Settings, with_stack};
use crate::graph::{NodeId, NodeKind};
use crate::restructure::Role;
use crate::{Failure, codes};
use broadloom_device::Element;
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

struct Inlet(Arc<Mutex<VecDeque<u8>>>);
struct Outlet(Arc<Mutex<Vec<u8>>>);

impl Read for Inlet {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(buffer)
    }
}

impl Write for Outlet {
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
        Ok(Box::new(Inlet(self.input.clone())))
    }

    fn create(&mut self, _: &str) -> io::Result<Box<dyn Write + Send>> {
        Ok(Box::new(Outlet(self.output.clone())))
    }
}

/// A program under way that is fed in pieces.
pub struct Session<'s> {
    compiled: &'s Compiled<'s>,
    machine: Machine<'s>,
    input: Arc<Mutex<VecDeque<u8>>>,
    output: Arc<Mutex<Vec<u8>>>,
    reader: NodeId,
    /// Bytes of an item of the input, and of the output.
    item: (usize, usize),
    types: (Type, Type),
    pending: VecDeque<u8>,
    raw: Raw,
    done: Option<u64>,
}

impl<'s> Session<'s> {
    /// Begins a session. The program has one `FileReader` and one `FileWriter`, of `int`, `float`, `double` or
    /// `complex`.
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
        let ((reader, input), (_, output)) = (find(true)?, find(false)?);
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
            item,
            types: (input, output),
            pending: VecDeque::new(),
            raw: Raw::default(),
            done: None,
        })
    }

    /// Takes items and returns those that came out. `complex` items are pairs of `f32`.
    pub fn feed<I: Element, O: Element>(&mut self, items: &[I]) -> Result<Vec<O>, Failure> {
        let compiled = self.compiled;
        if !holds::<I>(&self.types.0) || !holds::<O>(&self.types.1) {
            return Err(compiled.refused(codes::MISMATCH, "the items of the session have another type".into()));
        }
        let mut bytes = vec![0; I::BYTES];
        for item in items {
            item.to_bytes(&mut bytes);
            self.pending.extend(&bytes);
        }
        let ended = with_stack(|| self.advance());
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(Trouble::Repeat(Some(error)))) => {
                let sources = compiled.program.sources.clone();
                return Err(Failure { sources, diagnostics: Diagnostics::from(*error) });
            }
            Ok(Err(Trouble::Device(error))) => return Err(compiled.refused(codes::DEVICE, error)),
            Ok(Err(Trouble::Closed | Trouble::Repeat(None))) => {
                let message = "a firing failed: an index outside of an array, a division by zero or a rate that is not kept";
                return Err(compiled.refused(codes::RUN_TIME, message.into()));
            }
            Err(error) => return Err(compiled.refused(codes::DEVICE, error.to_string())),
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let result = output.chunks_exact(O::BYTES).map(O::from_bytes).collect();
        output.clear();
        Ok(result)
    }

    /// Runs what the pending items allow.
    fn advance(&mut self) -> Result<(), Trouble> {
        let compiled = self.compiled;
        self.machine.budget.start_stack();
        let Some(schedule) = &compiled.program.schedule else { return Ok(()) };
        let warm_up = compiled.sections().map(|ready| ready.warm_up).max().unwrap_or(0);
        let rate = schedule.repetition(self.reader) as usize * self.item.0;
        let mut done = match self.done {
            Some(done) => done,
            None => {
                let needed = schedule.init_firings[self.reader.index()] as usize * self.item.0 + warm_up as usize * rate;
                if self.pending.len() < needed {
                    return Ok(());
                }
                self.give(needed);
                begin(compiled, schedule, &mut self.machine, warm_up)?;
                self.take_over();
                warm_up
            }
        };
        self.done = Some(done);
        let mut left = (self.pending.len() / rate.max(1)) as u64;
        let most = compiled.largest_batch();
        while left > 0 {
            let states = left.min(most);
            let tape = compiled.program.graph.nodes[self.reader].outputs[0];
            match self.raw.inputs.iter_mut().find(|(own, _)| *own == tape) {
                Some((_, bytes)) => bytes.extend(self.pending.drain(..states as usize * rate)),
                None => self.give(states as usize * rate),
            }
            batch(compiled, schedule, &mut self.machine, (states, done), false, &mut self.raw)?;
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, bytes) in &mut self.raw.outputs {
                output.append(bytes);
            }
            drop(output);
            done += states;
            left -= states;
            self.done = Some(done);
        }
        self.machine.flush()?;
        Ok(())
    }

    /// Moves pending bytes to where the evaluator reads them.
    fn give(&mut self, bytes: usize) {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).extend(self.pending.drain(..bytes));
    }

    /// Hands tapes between files and kernels over from the evaluator.
    fn take_over(&mut self) {
        let graph = &self.compiled.program.graph;
        let kind = |node: NodeId| &graph.nodes[node].kind;
        for ready in self.compiled.sections() {
            for buffer in &ready.section.buffers {
                let tape = &graph.tapes[buffer.tape];
                match buffer.role {
                    Role::Input if matches!(kind(tape.from.0), NodeKind::FileReader(..)) => {
                        let mut bytes = vec![];
                        let items =
                            self.machine.past[buffer.tape.index()].1.iter().chain(&self.machine.tapes[buffer.tape.index()]);
                        items.for_each(|item| encode(&tape.layout, buffer.words, item, &mut bytes));
                        self.raw.inputs.push((buffer.tape, bytes));
                        self.raw.files.push(tape.from.0);
                    }
                    Role::Output if matches!(kind(tape.to.0), NodeKind::FileWriter(..)) => {
                        self.raw.outputs.push((buffer.tape, vec![]));
                        self.raw.files.push(tape.to.0);
                    }
                    Role::Input | Role::Output | Role::Inner => {}
                }
            }
        }
    }
}

/// Returns whether a type of the host stands for items of a tape.
fn holds<T: Element>(ty: &Type) -> bool {
    let is = |wanted: std::any::TypeId| std::any::TypeId::of::<T>() == wanted;
    match ty {
        Type::Int => is(std::any::TypeId::of::<i32>()),
        Type::Float | Type::Complex => is(std::any::TypeId::of::<f32>()),
        Type::Double => is(std::any::TypeId::of::<f64>()),
        _ => false,
    }
}
