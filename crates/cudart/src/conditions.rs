//! Conditional nodes of graphs. A value in device memory, set by kernels, selects the body to run.
//!
//! A handle is the address of its value, so `cudaGraphSetConditional` in a kernel is a store
//! ([`crate::device_runtime`]). At a conditional node a launch waits for the preceding work and reads the
//! value. Therefore **the launch of a graph with conditions returns only when its last condition is
//! decided**.

use crate::objects::streams::Stream;
use crate::objects::work::{Choice, Conditional, Decision, Graph};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use std::sync::Arc;

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
