//! Fixed sequences of work, recorded once and replayed many times.
//!
//! A device with support for it (a CUDA graph) replays the whole sequence with one call; others perform one
//! step after the other. Either way a replay is one piece of work of a stream, with the steps in recording
//! order.

use crate::{
    Argument, Buffer, Device, Element, Error, Kernel, Launch, MatrixProduct, RawBuffer, Result, Sequence, Step, Stream, trace,
};
use std::fmt::Debug;
use std::sync::Arc;

/// Recorder of a sequence.
#[derive(Debug)]
pub struct Recorder {
    device: Device,
    steps: Vec<Step>,
    kept: Vec<Arc<RawBuffer>>,
}

impl Recorder {
    pub(crate) fn new(device: &Device) -> Recorder {
        Recorder { device: device.clone(), steps: vec![], kept: vec![] }
    }

    /// Adds a launch. Arguments are checked as for [`Kernel::launch`]. The caller must [`Recorder::keep`] the
    /// buffers of its addresses.
    pub fn launch(&mut self, kernel: &Kernel, launch: &Launch, arguments: &[Argument]) -> Result<&mut Self> {
        self.steps.push(kernel.step(launch, arguments)?);
        Ok(self)
    }

    /// Adds a copy between two buffers of the same length, and keeps both.
    pub fn copy<T: Element>(&mut self, to: &Buffer<T>, from: &Buffer<T>) -> Result<&mut Self> {
        let bytes = (from.len() * T::BYTES) as u64;
        if to.len() != from.len() {
            return Err(Error::BadAddress { call: "copy", address: to.address(), bytes });
        }
        self.steps.push(Step::Copy { to: to.address(), from: from.address(), bytes });
        self.keep(to);
        Ok(self.keep(from))
    }

    /// Adds a fill of a buffer, and keeps the buffer.
    pub fn fill_bytes<T: Element>(&mut self, buffer: &Buffer<T>, byte: u8) -> &mut Self {
        self.steps.push(Step::Fill { address: buffer.address(), byte, bytes: (buffer.len() * T::BYTES) as u64 });
        self.keep(buffer)
    }

    /// Adds a matrix product, for a device with a matrix library. The caller must [`Recorder::keep`] the
    /// buffers of its addresses.
    pub fn product(&mut self, product: MatrixProduct) -> &mut Self {
        self.steps.push(Step::Product(product));
        self
    }

    /// Keeps the memory of a buffer as long as the sequence lives.
    pub fn keep<T: Element>(&mut self, buffer: &Buffer<T>) -> &mut Self {
        self.kept.push(buffer.raw().clone());
        self
    }

    /// Returns the sequence, ready for replay.
    pub fn finish(self) -> Result<Recording> {
        let mut span = trace::span("record a sequence");
        span.note("steps", self.steps.len());
        let sequence = self.device.backend().record(self.steps)?;
        Ok(Recording { device: self.device, sequence, _kept: self.kept.into() })
    }
}

/// Recorded sequence of work; cheap to clone.
#[derive(Clone, Debug)]
pub struct Recording {
    device: Device,
    sequence: Arc<dyn Sequence>,
    _kept: Arc<[Arc<RawBuffer>]>,
}

impl Recording {
    /// Replays all steps in stream order.
    pub fn replay(&self, stream: Stream) -> Result<()> {
        let _span = trace::span("replay a sequence");
        self.sequence.replay(self.device.backend().as_ref(), stream)
    }
}
