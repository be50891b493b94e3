//! Conditional nodes of graphs: a value in the device's memory, which kernels set, chooses what is done.
//!
//! A handle is the address of its value, so that `cudaGraphSetConditional` of a kernel is a store ([`crate::device_runtime`]). When a launch comes to a
//! conditional node it waits for what came before, looks at the value and goes on, so **the launch of a graph with conditions returns when its last
//! condition is decided**.

use crate::graphs::Graph;
use crate::handles::Handle;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::streams::Stream;
use crate::work::{FillBox, Side, Work};
use std::sync::Arc;

/// How a value chooses, by the headers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The first when it is not 0, and else the second, where there is one.
    If = 0,
    /// The first, as long as it is not 0.
    While = 1,
    /// The one of its number.
    Switch = 2,
}

/// A conditional node.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    /// Where the value is.
    pub(crate) address: u64,
    /// How it chooses.
    pub(crate) choice: Choice,
    /// What is chosen from.
    pub(crate) bodies: Vec<Arc<Graph>>,
    /// What the program calls them.
    pub(crate) handles: Arc<[Handle]>,
}

/// A conditional node of a graph that is ready.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    address: u64,
    choice: Choice,
    bodies: Vec<Vec<Work>>,
}

/// A value that conditional nodes look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Where it is.
    pub(crate) address: u64,
    /// What it is at the start of every launch, if anything.
    pub(crate) default: Option<u32>,
}

impl Condition {
    /// Sets the value that it starts with.
    pub(crate) fn assign(&self) -> Option<Work> {
        let to = Side::linear(self.address);
        self.default.map(|value| Work::Fill(FillBox { to, value, size: 4, width: 1, height: 1, depth: 1 }))
    }
}

impl Conditional {
    /// A node with graphs that are still empty.
    pub(crate) fn new(runtime: &Runtime, address: u64, choice: u32, count: u32) -> Outcome<Conditional> {
        let (choice, fits) = match choice {
            0 => (Choice::If, (1..=2).contains(&count)),
            1 => (Choice::While, count == 1),
            2 => (Choice::Switch, count >= 1),
            _ => return Err(Status::INVALID_VALUE),
        };
        if !fits {
            return Err(Status::INVALID_VALUE);
        }
        let bodies: Vec<Arc<Graph>> = (0..count).map(|_| Arc::new(Graph::default())).collect();
        let handle = |body: &Arc<Graph>| {
            let handle = runtime.graphs.reserve();
            runtime.graphs.put(handle, body.clone());
            handle
        };
        let handles = bodies.iter().map(handle).collect();
        Ok(Conditional { address, choice, bodies, handles })
    }

    /// The same with the work that its graphs have now.
    pub(crate) fn frozen(&self) -> Outcome<Decision> {
        let bodies = self.bodies.iter().map(|body| body.work()).collect::<Outcome<_>>()?;
        Ok(Decision { address: self.address, choice: self.choice, bodies })
    }
}

impl Decision {
    /// Decides, and does what was chosen.
    pub(crate) fn perform(&self, runtime: &Runtime, stream: &Stream) -> Outcome {
        let backend = runtime.device()?.backend();
        loop {
            runtime.judge(backend.synchronise_stream(stream.id()))?;
            let mut bytes = [0; 4];
            runtime.judge(backend.read(stream.id(), self.address, &mut bytes))?;
            let value = u32::from_le_bytes(bytes) as usize;
            let chosen = match self.choice {
                Choice::If => self.bodies.get(usize::from(value == 0)),
                Choice::While => self.bodies.first().filter(|_| value != 0),
                Choice::Switch => self.bodies.get(value),
            };
            let Some(body) = chosen else { return Ok(()) };
            body.iter().try_for_each(|work| work.perform(runtime, stream, true))?;
            if self.choice != Choice::While {
                return Ok(());
            }
        }
    }
}
