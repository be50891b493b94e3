//! Lanes: evaluations that run concurrently, each in a stream of its own.
//!
//! Work of a context runs in one stream, in the order of submission. A [`Lane`] is another stream. An
//! evaluation in a lane starts after all earlier work of the context, and runs concurrently with later work.
//! A user of a lane's result elsewhere, in the context itself or in another lane, waits for an event on the
//! device. The graph inserts these events, and the host never waits for them.
//!
//! Arrays do not change once they are computed, so nothing else needs an order. The device reuses memory that
//! is freed while several streams have work only after that work is done.

use crate::context::Context;
use crate::error::Result;
use crate::node::Node;
use crate::template::Template;
use broadloom_device::{Buffer, Device, Event, OwnedStream, RawBuffer, Stream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Separate stream for evaluations. See [`Context::lane`].
#[derive(Debug)]
pub struct Lane {
    context: Context,
    stream: OwnedStream,
}

impl Context {
    /// Opens a lane: a stream whose work runs concurrently with that of the context and of other lanes.
    ///
    /// ```
    /// use broadloom_graph::{Combine, Context, Node, Shape};
    /// use broadloom_device::Device;
    /// use broadloom_interp::Interp;
    /// use broadloom_scalar::Type;
    ///
    /// let context = Context::new(&Device::new(Interp::new(Default::default())));
    /// let x = Node::upload(&context, Type::U8, Shape::from(4), &[1, 2, 3, 4])?;
    /// let (left, right) = (context.lane()?, context.lane()?);
    /// let (sum, greatest) = (x.reduce(Combine::Sum, &[0])?, x.reduce(Combine::Max, &[0])?);
    /// left.evaluate(&[sum.clone()])?;
    /// right.evaluate(&[greatest.clone()])?;
    /// // Both are joined where they are used.
    /// assert_eq!((sum.read()?.to_bytes(), greatest.read()?.to_bytes()), (vec![10], vec![4]));
    /// # Ok::<(), broadloom_graph::Error>(())
    /// ```
    pub fn lane(&self) -> Result<Lane> {
        Ok(Lane { context: self.clone(), stream: self.device().stream()? })
    }
}

impl Lane {
    /// Computes nodes in this lane, all in one plan. Returns before the work is done.
    pub fn evaluate(&self, nodes: &[Node]) -> Result<()> {
        self.context.evaluate_in(nodes, Some(self))
    }

    /// Calls a template in this lane. Returns before the work is done.
    pub fn call(&self, template: &Template, inputs: &[Node]) -> Result<Vec<Node>> {
        template.call_in(inputs, Some(self))
    }

    /// Waits until all work of the lane is done.
    pub fn synchronise(&self) -> Result<()> {
        Ok(self.stream.synchronise()?)
    }

    pub(crate) fn stream(&self) -> Stream {
        self.stream.id()
    }
}

/// Results of lanes that the stream of the context has not waited for yet.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// True if there are any. Without lanes, no lock is taken.
    some: AtomicBool,
    known: Mutex<Vec<Made>>,
}

/// Memory that a lane writes.
#[derive(Debug)]
struct Made {
    memory: Weak<RawBuffer>,
    stream: Stream,
    event: Arc<Event>,
}

impl Apart {
    /// Makes a lane wait for all work that its context has submitted so far.
    pub(crate) fn fork(&self, device: &Device, lane: &Lane) -> Result<()> {
        let event = device.event()?;
        event.record(Stream::default())?;
        Ok(event.hold_up(lane.stream())?)
    }

    /// Records the buffers that a lane writes.
    pub(crate) fn note(&self, device: &Device, lane: &Lane, buffers: &[Buffer<u8>]) -> Result<()> {
        let event = Arc::new(device.event()?);
        event.record(lane.stream())?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|made| made.memory.strong_count() > 0);
        let made =
            |buffer: &Buffer<u8>| Made { memory: Arc::downgrade(buffer.raw()), stream: lane.stream(), event: event.clone() };
        known.extend(buffers.iter().map(made));
        self.some.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes a stream wait for the lanes that write the buffers it is about to read.
    pub(crate) fn join<'b>(&self, stream: Stream, buffers: impl Iterator<Item = &'b Buffer<u8>>) -> Result<()> {
        if !self.some.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for buffer in buffers {
            let is_it = |made: &Made| std::ptr::eq(made.memory.as_ptr(), Arc::as_ptr(buffer.raw())) && made.stream != stream;
            for made in known.iter().filter(|made| is_it(made)) {
                made.event.hold_up(stream)?;
            }
            if stream == Stream::default() {
                // Later work of the context runs after it, and so do lanes: they start after the work of the
                // context.
                known.retain(|made| !is_it(made));
            }
        }
        self.some.store(!known.is_empty(), Ordering::Release);
        Ok(())
    }
}
