//! Nodes: arrays that are computed, or will be.
//!
//! A [`Node`] has a type, a shape, and either its expression or, after evaluation, the memory that holds it.
//! It never changes in any other way. The expression is dropped when the elements are computed, so a loop
//! that continues from its last result keeps no history. Nodes are reference-counted; dropping a chain of any
//! length needs no stack.
//!
//! A node is one allocation, since each step of a loop builds its expressions anew. While an expression is
//! recorded, each of its nodes stores its number in the tape.
//!
//! A node holds its [`Context`] and its [`Length`], which hold nodes or compute them: the three types are
//! here. [`Evaluator`] is what this level knows of planning and execution.

use crate::expr::amount::Amount;
use crate::expr::error::Result;
use crate::expr::expectation::Expectation;
use crate::expr::kernel_settings::KernelSettings;
use crate::expr::op::Op;
use crate::expr::shape::Shape;
use crate::expr::tracing::Symbol;
use broadloom_device::{Buffer, Device};
use broadloom_scalar::Type;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The inputs of a node.
pub type Inputs = SmallVec<[Node; 3]>;

/// A node of the graph; cheap to clone.
#[derive(Clone)]
pub struct Node(Arc<NodeData>);

impl fmt::Debug for Node {
    /// Prints no expression: it may have a million operations, and more paths through them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node<{}>{}", self.ty(), self.bound())
    }
}

struct NodeData {
    context: Context,
    shape: Shape,
    /// Extent of the first axis if only the device knows it; the shape is then a bound.
    length: Option<Length>,
    /// The array with the length that the host has learned.
    hosted: OnceLock<Node>,
    ty: Type,
    /// True if it depends on the inputs of a traced function.
    symbolic: bool,
    /// While this is alive, the node is written to memory by every plan that computes it.
    remembered: Option<Weak<()>>,
    /// True if this node is to be remembered, or is computed from such a node.
    has_remembered: bool,
    /// The last recording that saw it, and its number there. Only one recording of a context runs at a time.
    recording: AtomicU64,
    number: AtomicU32,
    state: Mutex<State>,
}

/// Computes the nodes of a context.
pub(crate) trait Evaluator: Any + fmt::Debug + Send + Sync {
    fn device(&self) -> &Device;

    /// Computes nodes, all in one plan. Returns before the work is done.
    fn evaluate(&self, context: &Context, nodes: &[Node]) -> Result<()>;

    /// Makes the work of the context wait for the lane that writes a buffer.
    fn wait_for_lane(&self, buffer: &Buffer<u8>) -> Result<()>;

    /// Reads memory to the host; waits for it.
    fn read(&self, buffer: &Buffer<u8>) -> Result<Vec<u8>>;

    /// Returns the conditions on lengths that have not been confirmed yet.
    fn expected(&self) -> MutexGuard<'_, Vec<Expectation>>;
}

/// Device with its plans and kernels; cheap to clone. Arrays of one context can be used together.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) evaluator: Arc<dyn Evaluator>,
    pub(crate) kernels: KernelSettings,
}

/// Length that only the device knows; cheap to clone. Clones are known to be equal.
#[derive(Clone, Debug)]
pub struct Length(pub(crate) Arc<LengthData>);

#[derive(Debug)]
pub(crate) struct LengthData {
    pub(crate) count: Node,
    pub(crate) bound: Amount,
    /// The number, if the host has learned it.
    pub(crate) known: OnceLock<Amount>,
    /// The length that it was derived from, and how.
    pub(crate) origin: Option<(Length, Derivation)>,
    /// A length that was promised to be equal.
    pub(crate) equal: EqualLength,
}

/// Link from a length to the one that represents it.
#[derive(Debug, Default)]
pub(crate) struct EqualLength(pub(crate) OnceLock<Length>);

impl Drop for EqualLength {
    /// Drops a chain of any length without recursion.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(length) = next {
            next = Arc::into_inner(length.0).and_then(|mut data| data.equal.0.take());
        }
    }
}

/// Derivation of a length from another. Lengths derived in the same way from equal lengths are known to be
/// equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Derivation {
    /// Multiple of the length.
    Times(usize),
    /// Extent between two positions.
    Part(usize, usize),
    /// Length minus a number of elements, at least 0.
    Less(usize),
    /// Quotient, rounded up or down.
    Quotient(usize, bool),
}

impl Length {
    /// Returns the length as a node: a `u32` without axes.
    pub fn count(&self) -> &Node {
        &self.root().0.count
    }

    /// Returns the length that represents all lengths promised to be equal to this one.
    pub(crate) fn root(&self) -> &Length {
        let mut root = self;
        while let Some(equal) = root.0.equal.0.get() {
            root = equal;
        }
        root
    }

    /// Returns the node of the number if there is no other reference to the length.
    fn into_count(self) -> Option<Node> {
        let data = Arc::into_inner(self.0)?;
        // Origins are dropped in a loop: a chain of a million must not need a million stack frames.
        let mut origin = data.origin;
        while let Some((length, _)) = origin {
            origin = Arc::into_inner(length.0).and_then(|mut data| data.origin.take());
        }
        Some(data.count)
    }
}

/// States of the elements.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a node is one allocation")]
pub enum State {
    /// Expression that will compute them.
    Pending(Expression),
    /// Memory that holds them.
    Ready(Buffer<u8>),
    /// Elements that exist only when the traced function is called.
    Symbolic(Symbol),
}

/// An operation on nodes.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The operation.
    pub op: Op,
    /// The nodes that it is computed from.
    pub inputs: Inputs,
}

impl Drop for Expression {
    /// Drops inputs in a loop: a chain of a million nodes must not need a million stack frames.
    fn drop(&mut self) {
        let mut doomed = std::mem::take(&mut self.inputs);
        while let Some(mut node) = doomed.pop() {
            // This is the last reference. Its inputs are moved to the list, so dropping it does not recurse.
            if let Some(data) = Arc::get_mut(&mut node.0) {
                doomed.extend(data.length.take().and_then(Length::into_count));
                if let State::Pending(expression) = data.state.get_mut().unwrap_or_else(PoisonError::into_inner)
                    && !expression.inputs.is_empty()
                {
                    doomed.append(&mut expression.inputs);
                }
            }
        }
    }
}

impl Node {
    fn new(context: &Context, ty: Type, shape: Shape, symbolic: bool, state: State) -> Node {
        let (recording, number) = (AtomicU64::new(0), AtomicU32::new(0));
        let (length, hosted, context) = (None, OnceLock::new(), context.clone());
        let has_remembered = match &state {
            State::Pending(expression) => expression.inputs.iter().any(|input| input.0.has_remembered),
            State::Ready(_) | State::Symbolic(_) => false,
        };
        let (remembered, state) = (None, Mutex::new(state));
        Node(Arc::new(NodeData {
            context,
            shape,
            length,
            hosted,
            ty,
            symbolic,
            remembered,
            has_remembered,
            recording,
            number,
            state,
        }))
    }

    /// Sets the length of a new node. Its first extent is the bound.
    pub(crate) fn with_length(mut self, length: Option<Length>) -> Node {
        // A node that is used already keeps its length: the length is part of earlier checks.
        if length.is_some()
            && let Some(data) = Arc::get_mut(&mut self.0)
        {
            data.symbolic |= length.as_ref().is_some_and(|length| length.count().is_symbolic());
            data.has_remembered |= length.as_ref().is_some_and(|length| length.count().has_remembered());
            data.length = length;
        }
        self
    }

    /// Returns whether it is the result of a pattern and has no other reference.
    pub(crate) fn is_own_pattern(&self) -> bool {
        let is_pattern = matches!(&*self.lock(), State::Pending(Expression { op: Op::Pattern(_), .. }));
        is_pattern && self.0.length.is_none() && Arc::strong_count(&self.0) == 1
    }

    /// Makes every plan that computes this new node write it to memory while `somebody` is alive.
    pub(crate) fn remembered_by(mut self, somebody: Weak<()>) -> Node {
        // A node that is used already is computed as planned by its users.
        if let Some(data) = Arc::get_mut(&mut self.0) {
            data.remembered = Some(somebody);
            data.has_remembered = true;
        }
        self
    }

    /// Returns whether it is written to memory by every plan that computes it.
    pub(crate) fn is_remembered(&self) -> bool {
        self.0.remembered.as_ref().is_some_and(|somebody| somebody.strong_count() > 0)
    }

    /// Returns whether it was to be remembered, or is computed from such a node.
    pub(crate) fn has_remembered(&self) -> bool {
        self.0.has_remembered
    }

    /// Creates a node whose operation is known to be valid.
    pub(crate) fn pending(context: &Context, ty: Type, shape: Shape, op: Op, inputs: Inputs) -> Node {
        let given = matches!(&op, Op::Fill(scalar) if scalar.symbol().is_some() || scalar.amount().is_some());
        let symbolic = given || shape.is_traced() || inputs.iter().any(Node::is_symbolic);
        Node::new(context, ty, shape, symbolic, State::Pending(Expression { op, inputs }))
    }

    /// Creates a node whose elements are in memory, contiguous, the last axis fastest.
    pub(crate) fn ready(context: &Context, ty: Type, shape: Shape, buffer: Buffer<u8>) -> Node {
        Node::new(context, ty, shape, false, State::Ready(buffer))
    }

    /// Creates a node whose elements come with a call.
    pub(crate) fn symbolic(context: &Context, ty: Type, shape: Shape, symbol: Symbol) -> Node {
        Node::new(context, ty, shape, true, State::Symbolic(symbol))
    }

    /// Returns the context of the node.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Returns the type of the elements.
    pub fn ty(&self) -> Type {
        self.0.ty
    }

    /// Returns the shape, or an upper bound of it if only the device knows the length. Does not wait.
    pub fn bound(&self) -> &Shape {
        &self.0.shape
    }

    /// Returns the extent of the first axis if only the device knows it.
    pub fn length(&self) -> Option<&Length> {
        self.0.length.as_ref()
    }

    /// Returns the array with the length that the host has learned.
    pub(crate) fn hosted_cell(&self) -> &OnceLock<Node> {
        &self.0.hosted
    }

    /// Returns whether it depends on the inputs of a function being traced. Its elements cannot be read.
    pub fn is_symbolic(&self) -> bool {
        self.0.symbolic
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // The state is replaced as a whole, so it is consistent even after a panic of another thread.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current state of the elements. During tracing, the trace becomes valid only for the
    /// numbers of a view.
    pub fn state(&self) -> State {
        let state = self.lock().clone();
        if let State::Pending(Expression { op: Op::View(view), .. }) = &state {
            view.fix();
        }
        state
    }

    /// Returns whether its elements are still to be computed.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(&*self.lock(), State::Pending(_))
    }

    /// Returns the memory that holds it, if it was evaluated.
    pub fn buffer(&self) -> Option<Buffer<u8>> {
        match &*self.lock() {
            State::Ready(buffer) => Some(buffer.clone()),
            State::Pending(_) | State::Symbolic(_) => None,
        }
    }

    /// Replaces the state by memory or a symbol and drops the expression.
    pub(crate) fn settle(&self, state: State) {
        let before = std::mem::replace(&mut *self.lock(), state);
        drop(before);
    }

    /// Returns whether both are the same node.
    pub fn is_same(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns a number that no other living node has.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Returns its number in a recording, if the recording has seen it.
    pub(crate) fn number_in(&self, recording: u64) -> Option<u32> {
        (self.0.recording.load(Ordering::Relaxed) == recording).then(|| self.0.number.load(Ordering::Relaxed))
    }

    /// Sets its number in a recording.
    pub(crate) fn set_number(&self, recording: u64, number: u32) {
        self.0.number.store(number, Ordering::Relaxed);
        self.0.recording.store(recording, Ordering::Relaxed);
    }
}
