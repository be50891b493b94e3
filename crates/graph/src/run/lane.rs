//! Lanes: evaluations that run concurrently, each in a stream of its own.
//!
//! Work of a context runs in one stream, in the order of submission. A [`Lane`] is another stream. An
//! evaluation in a lane starts after all earlier work of the context, and runs concurrently with later work.
//! A user of a lane's result elsewhere, in the context itself or in another lane, waits for an event on the
//! device. The graph inserts these events, and the host never waits for them.
//!
//! Arrays do not change once they are computed, so nothing else needs an order. The device reuses memory that
//! is freed while several streams have work only after that work is done.

use crate::expr::error::Result;
use crate::expr::node::{Context, Node};
use crate::run::template::Template;
use broadloom_device::OwnedStream;

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
        self.context.evaluate_in(nodes, Some(self.stream.id()))
    }

    /// Calls a template in this lane. Returns before the work is done.
    pub fn call(&self, template: &Template, inputs: &[Node]) -> Result<Vec<Node>> {
        template.call_in(inputs, Some(self.stream.id()))
    }

    /// Waits until all work of the lane is done.
    pub fn synchronise(&self) -> Result<()> {
        Ok(self.stream.synchronise()?)
    }
}
