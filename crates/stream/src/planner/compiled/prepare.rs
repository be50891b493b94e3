//! Compilation of kernels while the evaluator runs.
//!
//! A device compiles a kernel at its first launch. [`Preparation`] launches all kernels once, for one steady state of
//! zeros, on a thread of its own. The evaluator runs steady states until that is done, so output does not wait for a
//! compiler. What the kernels compute from zeros is dropped.
//!
//! The thread is never waited for: a run may end before it.

use super::program::{Compiled, CompiledIsland, CompiledPiece, CompiledSection, CompiledStage};
use crate::planner::restructure::Role;
use crate::planner::restructure::island::BorderTape;
use crate::planner::translate::CLASSES;
use broadloom_device::{Buffer, Device, Result};
use broadloom_scalar::Literal;
use broadloom_skeleton::{self as skeleton, Call};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

/// The kernels of a program, while they are compiled.
pub(super) struct Preparation(Receiver<()>);

impl Preparation {
    /// Begins to compile the kernels. Returns `None` if no thread can be started.
    pub(super) fn begin(compiled: &Compiled<'_>) -> Option<Preparation> {
        let (stages, device) = (Arc::clone(&compiled.stages), compiled.device.clone());
        let (done, ready) = channel();
        let launch = move || {
            // A failure shows again when the kernel is launched on items.
            let _ = launch_on_zeros(&stages, &device);
            let _ = done.send(());
        };
        thread::Builder::new().name("prepare".into()).spawn(launch).ok()?;
        Some(Preparation(ready))
    }

    /// Waits for the kernels. Returns false if they are not ready in time.
    pub(super) fn is_ready_within(&self, time: Duration) -> bool {
        !matches!(self.0.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// Returns whether the kernels are ready.
    pub(super) fn is_ready(&self) -> bool {
        !matches!(self.0.try_recv(), Err(TryRecvError::Empty))
    }
}

/// Launches all kernels for one steady state of zeros, and waits for them.
fn launch_on_zeros(stages: &[CompiledStage], device: &Device) -> skeleton::Result<()> {
    let flag = zeros(device, 4)?;
    for stage in stages {
        let CompiledStage::Device(pieces) = stage else { continue };
        for piece in pieces {
            match piece {
                CompiledPiece::Section(ready) => ready.launch_on_zeros(device, &flag)?,
                CompiledPiece::Island(sole) => sole.launch_on_zeros(device, &flag)?,
            }
        }
    }
    Ok(device.synchronise()?)
}

fn zeros(device: &Device, bytes: u64) -> Result<Buffer<u8>> {
    device.zeros::<u8>(bytes.max(1) as usize)
}

impl CompiledSection {
    fn launch_on_zeros(&self, device: &Device, flag: &Buffer<u8>) -> skeleton::Result<()> {
        let units = self.section.units as i64;
        let extra = self.cuts.iter().map(|cut| cut.extra).max().unwrap_or(0);
        let mut memory = vec![];
        for (index, buffer) in self.section.buffers.iter().enumerate() {
            let is_stored = buffer.role != Role::Inner || self.cuts.iter().any(|cut| cut.places[index].is_global());
            let items = (self.lengths[index] + (units + extra) * buffer.items).max(1);
            memory.push(is_stored.then(|| zeros(device, items as u64 * buffer.words.bytes())).transpose()?);
        }
        (0..self.kernels.len()).try_for_each(|kernel| self.launch(kernel, &memory, flag, units, 0))
    }
}

impl CompiledIsland {
    fn launch_on_zeros(&self, device: &Device, flag: &Buffer<u8>) -> skeleton::Result<()> {
        let units = self.island.units;
        let tape = |tape: &BorderTape| zeros(device, units * tape.items as u64 * tape.words.bytes());
        let inputs = self.island.inputs.iter().map(tape).collect::<Result<Vec<_>>>()?;
        let mut outputs = self.island.outputs.iter().map(tape).collect::<Result<Vec<_>>>()?;
        for (element, words) in CLASSES.iter().zip(self.island.state_words).filter(|(_, words)| *words > 0) {
            outputs.push(zeros(device, words * u64::from(element.bytes()))?);
        }
        outputs.push(flag.clone());
        let (scalars, sizes) = ([Literal::from(0i32)], [units]);
        self.kernel.run(&Call { inputs: &inputs, outputs: &outputs, scalars: &scalars, sizes: &sizes, ..Call::default() })
    }
}
