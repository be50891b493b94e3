//! Conditional nodes of graphs. A value in device memory, set by kernels, selects the body to run.
//!
//! A handle is the address of its value, so `cudaGraphSetConditional` in a kernel is a store
//! ([`crate::device_runtime`]). At a conditional node a launch waits for the preceding work and reads the
//! value. Therefore **the launch of a graph with conditions returns only when its last condition is
//! decided**.

use crate::graphs::Graph;
use crate::handles::Handle;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::streams::Stream;
use crate::work::{FillBox, Side, Work};
use std::sync::Arc;

/// Kind of a conditional node. The values are the headers' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Runs the first body if the value is not 0, otherwise the second one if it exists.
    If = 0,
    /// Repeats the first body while the value is not 0.
    While = 1,
    /// Runs the body whose index is the value.
    Switch = 2,
}

/// A conditional node.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    /// Address of the value.
    pub(crate) address: u64,
    /// Kind of the node.
    pub(crate) choice: Choice,
    /// Graphs to select from.
    pub(crate) bodies: Vec<Arc<Graph>>,
    /// Handles of the bodies.
    pub(crate) handles: Arc<[Handle]>,
}

/// Conditional node of an instantiated graph.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    address: u64,
    choice: Choice,
    bodies: Vec<Vec<Work>>,
}

/// Value that conditional nodes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Address of the value.
    pub(crate) address: u64,
    /// Value assigned at the start of every launch, if any.
    pub(crate) default: Option<u32>,
}

impl Condition {
    /// Returns the work that assigns the default value.
    pub(crate) fn assign(&self) -> Option<Work> {
        let to = Side::linear(self.address);
        self.default.map(|value| Work::Fill(FillBox { to, value, size: 4, width: 1, height: 1, depth: 1 }))
    }
}

impl Conditional {
    /// Creates a node with empty bodies.
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

    /// Freezes the node with the current work of its bodies.
    pub(crate) fn frozen(&self) -> Outcome<Decision> {
        let bodies = self.bodies.iter().map(|body| body.work()).collect::<Outcome<_>>()?;
        Ok(Decision { address: self.address, choice: self.choice, bodies })
    }
}

impl Decision {
    /// Reads the value and runs the selected body.
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
