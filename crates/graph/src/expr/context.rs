//! Contexts as nodes see them: the device, and evaluation and reading of nodes through an [`Evaluator`].
//!
//! [`Evaluator`]: crate::expr::node::Evaluator

use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::kernel_settings::{Chains, KernelSettings};
use crate::expr::node::{Context, Node, State};
use broadloom_device::{Buffer, Device};
use std::collections::HashSet;
use std::sync::Arc;

impl Context {
    /// Returns this context with another use of chains in its plans. Arrays of both contexts can be used
    /// together.
    pub fn with_chains(&self, chains: Chains) -> Context {
        Context { kernels: KernelSettings { chains, ..self.kernels }, ..self.clone() }
    }

    /// Returns this context with one position per thread on machines with many threads. Loads and work that
    /// neighbouring positions share are then repeated for each position. This mode exists for comparison.
    pub fn with_single_positions(&self, single_positions: bool) -> Context {
        Context { kernels: KernelSettings { single_positions, ..self.kernels }, ..self.clone() }
    }

    /// Returns whether arrays of both can be used together.
    pub fn is_same(&self, other: &Context) -> bool {
        Arc::ptr_eq(&self.evaluator, &other.evaluator)
    }

    /// Returns the device that computes nodes of this context.
    pub fn device(&self) -> &Device {
        self.evaluator.device()
    }

    /// Computes nodes, all in one plan. Returns before the work is done; afterwards each node is
    /// [ready](Node::buffer). Inside a traced function, nodes that depend on its inputs are computed when the
    /// function is called.
    pub fn evaluate(&self, nodes: &[Node]) -> Result<()> {
        self.evaluator.evaluate(self, nodes)
    }

    /// Checks that a node belongs to this context.
    pub(crate) fn owns(&self, operation: &str, node: &Node) -> Result<()> {
        if self.is_same(node.context()) {
            return Ok(());
        }
        let (left, right) = (self.device().machine().id.clone(), node.context().device().machine().id.clone());
        Err(Error::Devices { operation: operation.to_owned(), left, right })
    }
}

impl Node {
    /// Returns whether this node is not computed yet, and is one of the nodes or an input of their
    /// computation.
    pub(crate) fn is_below(&self, nodes: &[Node]) -> bool {
        let mut stack: Vec<Node> = nodes.to_vec();
        let mut seen: HashSet<usize> = HashSet::new();
        while let Some(node) = stack.pop() {
            if !seen.insert(node.identity()) {
                continue;
            }
            let state = node.lock();
            let State::Pending(expression) = &*state else { continue };
            if node.is_same(self) {
                return true;
            }
            stack.extend(expression.inputs.iter().cloned());
            stack.extend(node.length().map(|length| length.count().clone()));
        }
        false
    }

    /// Computes the array unless that has been done. Returns before the work is done. The memory has room for
    /// the [bound](Node::bound) of the array.
    pub fn evaluate(&self) -> Result<Buffer<u8>> {
        if let Some(buffer) = self.buffer() {
            self.context().evaluator.wait_for_lane(&buffer)?;
            return Ok(buffer);
        }
        if self.is_symbolic() {
            return Err(Error::symbolic("read"));
        }
        self.context().evaluate(std::slice::from_ref(self))?;
        self.buffer().ok_or_else(|| Error::Plan { what: "a run".into(), reason: "a result is not in memory".into() })
    }

    /// Reads the elements to the host; waits for them.
    pub fn read(&self) -> Result<HostArray> {
        let array = self.hosted()?;
        let buffer = array.evaluate()?;
        self.context().confirm()?;
        let bytes = self.context().evaluator.read(&buffer)?;
        Ok(HostArray::from_bytes(self.ty(), array.bound().clone(), &bytes))
    }
}
