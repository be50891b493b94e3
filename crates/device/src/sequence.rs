//! A fixed sequence of work, given once and done many times.
//!
//! A device that can (a CUDA graph) takes the whole sequence with one call; any other does one step after the other. Either way a replay is
//! one piece of a stream: its steps are done in the order in which they were recorded.

use crate::{
    Argument, Backend, Buffer, Device, Element, Error, Kernel, Launch, LoadedModule, MatrixProduct, RawBuffer, Result, Stream,
    trace,
};
use broadloom_ptx::Func;
use std::fmt::Debug;
use std::sync::Arc;

/// A step of a sequence.
#[derive(Clone, Debug)]
pub enum Step {
    /// A launch. Its stream is the one that the sequence is replayed on.
    Launch {
        /// The module of the kernel.
        module: Arc<dyn LoadedModule>,
        /// The kernel.
        kernel: Func,
        /// Its shape.
        launch: Launch,
        /// Its parameter block.
        params: Vec<u8>,
    },
    /// A copy within the device.
    Copy {
        /// The first byte written.
        to: u64,
        /// The first byte read.
        from: u64,
        /// How many.
        bytes: u64,
    },
    /// Sets bytes.
    Fill {
        /// The first byte.
        address: u64,
        /// The value of each byte.
        byte: u8,
        /// How many.
        bytes: u64,
    },
    /// A product of matrices by the device's library.
    Product(MatrixProduct),
}

/// A sequence that an executor made ready.
pub trait Sequence: Debug + Send + Sync {
    /// Does all steps behind the earlier work of a stream.
    fn replay(&self, backend: &dyn Backend, stream: Stream) -> Result<()>;
}

/// Steps that are done by one call each.
#[derive(Debug)]
pub(crate) struct OneByOne(pub(crate) Vec<Step>);

impl Sequence for OneByOne {
    fn replay(&self, backend: &dyn Backend, stream: Stream) -> Result<()> {
        for step in &self.0 {
            match step {
                Step::Launch { module, kernel, launch, params } => {
                    module.launch(*kernel, &Launch { stream, ..launch.clone() }, params)?;
                }
                Step::Copy { to, from, bytes } => backend.copy(stream, *to, *from, *bytes)?,
                Step::Fill { address, byte, bytes } => backend.fill(stream, *address, *byte, *bytes)?,
                Step::Product(product) => backend.product(stream, product)?,
            }
        }
        Ok(())
    }
}

/// Collects the steps of a sequence.
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

    /// Adds a launch. Arguments are checked as for [`Kernel::launch`]; buffers behind addresses are the caller's to [`Recorder::keep`].
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

    /// Adds the setting of every byte of a buffer, and keeps the buffer.
    pub fn fill_bytes<T: Element>(&mut self, buffer: &Buffer<T>, byte: u8) -> &mut Self {
        self.steps.push(Step::Fill { address: buffer.address(), byte, bytes: (buffer.len() * T::BYTES) as u64 });
        self.keep(buffer)
    }

    /// Adds a product of matrices, for a device that has a library for them; buffers behind addresses are the caller's to [`Recorder::keep`].
    pub fn product(&mut self, product: MatrixProduct) -> &mut Self {
        self.steps.push(Step::Product(product));
        self
    }

    /// Keeps the memory of a buffer for as long as the sequence lives.
    pub fn keep<T: Element>(&mut self, buffer: &Buffer<T>) -> &mut Self {
        self.kept.push(buffer.raw().clone());
        self
    }

    /// The sequence, ready to be replayed.
    pub fn finish(self) -> Result<Recording> {
        let mut span = trace::span("record a sequence");
        span.note("steps", self.steps.len());
        let sequence = self.device.backend().record(self.steps)?;
        Ok(Recording { device: self.device, sequence, _kept: self.kept.into() })
    }
}

/// A sequence of work that can be done again and again; cheap to clone.
#[derive(Clone, Debug)]
pub struct Recording {
    device: Device,
    sequence: Arc<dyn Sequence>,
    _kept: Arc<[Arc<RawBuffer>]>,
}

impl Recording {
    /// Does all steps behind the earlier work of a stream.
    pub fn replay(&self, stream: Stream) -> Result<()> {
        let _span = trace::span("replay a sequence");
        self.sequence.replay(self.device.backend().as_ref(), stream)
    }
}
