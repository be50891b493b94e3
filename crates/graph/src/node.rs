//! Nodes: arrays that are computed, or will be.
//!
//! A [`Node`] has a type, a shape, and either what it will be computed by or, once it was evaluated, the memory that holds it. It never
//! changes in any other way: the operation is forgotten when the elements are there, so that a loop that goes on from its last result keeps
//! nothing of its past. Nodes are shared by counting; dropping a chain of any length needs no stack.

use crate::context::Context;
use crate::op::Op;
use crate::shape::Shape;
use broadloom_device::Buffer;
use broadloom_scalar::Type;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The inputs of a node.
pub type Inputs = SmallVec<[Node; 3]>;

/// A node of the graph; cheap to clone.
#[derive(Clone, Debug)]
pub struct Node(Arc<Data>);

#[derive(Debug)]
struct Data {
    context: Context,
    ty: Type,
    shape: Shape,
    state: Mutex<State>,
}

/// What is known of the elements.
#[derive(Clone, Debug)]
pub enum State {
    /// What they will be computed by.
    Pending(Arc<Expression>),
    /// Where they are.
    Ready(Buffer<u8>),
}

/// An operation on nodes.
#[derive(Debug)]
pub struct Expression {
    /// The operation.
    pub op: Op,
    /// Its inputs.
    pub inputs: Inputs,
}

impl Drop for Expression {
    /// One after the other: a chain of a million nodes must not need a million frames.
    fn drop(&mut self) {
        let mut doomed = std::mem::take(&mut self.inputs);
        while let Some(node) = doomed.pop() {
            let Some(data) = Arc::into_inner(node.0) else { continue };
            let state = data.state.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let State::Pending(expression) = state
                && let Some(mut expression) = Arc::into_inner(expression)
            {
                doomed.extend(std::mem::take(&mut expression.inputs));
            }
        }
    }
}

impl Node {
    /// A node whose operation is known to fit.
    pub(crate) fn pending(context: &Context, ty: Type, shape: Shape, op: Op, inputs: Inputs) -> Node {
        let state = Mutex::new(State::Pending(Arc::new(Expression { op, inputs })));
        Node(Arc::new(Data { context: context.clone(), ty, shape, state }))
    }

    /// A node whose elements are in memory, one behind the other, the last axis fastest.
    pub(crate) fn ready(context: &Context, ty: Type, shape: Shape, buffer: Buffer<u8>) -> Node {
        Node(Arc::new(Data { context: context.clone(), ty, shape, state: Mutex::new(State::Ready(buffer)) }))
    }

    /// Where it is computed.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The type of its elements.
    pub fn ty(&self) -> Type {
        self.0.ty
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is replaced as a whole, so what another thread left when it panicked is whole too.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of its elements right now.
    pub fn state(&self) -> State {
        self.lock().clone()
    }

    /// The memory that holds it, if it was evaluated.
    pub fn buffer(&self) -> Option<Buffer<u8>> {
        match &*self.lock() {
            State::Ready(buffer) => Some(buffer.clone()),
            State::Pending(_) => None,
        }
    }

    /// The operation, while it has not been evaluated.
    pub fn expression(&self) -> Option<Arc<Expression>> {
        match &*self.lock() {
            State::Ready(_) => None,
            State::Pending(expression) => Some(expression.clone()),
        }
    }

    /// Its elements are there; what they were computed by is forgotten.
    pub(crate) fn settle(&self, buffer: Buffer<u8>) {
        let before = std::mem::replace(&mut *self.lock(), State::Ready(buffer));
        drop(before);
    }

    /// Whether both are the same node.
    pub fn is_same(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A number that no other living node has.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}
