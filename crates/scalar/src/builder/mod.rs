//! The builder: programs write code with its methods.
//!
//! Invariants: a method does not borrow the state while it calls foreign code. A node that is handed out is
//! in the body. Operands of a node are usable where it is made, so its home is the innermost of theirs.

mod arith;
mod control;
mod divide;
mod fold;
mod interface;
mod memory;
mod narrow;
mod operand;
mod vector;
mod warp;

pub use divide::{Divisor, FastDivisor};
pub use interface::Accessor;
pub use memory::{Array, Memory, Variable};
pub(crate) use narrow::narrow_bounds;
pub use operand::Operand;

use crate::body::{Block, Body, MAX_NESTING, MAX_NODES, Statement, Unroll};
use crate::declaration::{AccessorDecl, ParameterDecl};
use crate::id::{BlockId, Id, Ids};
use crate::kernel::LaunchBounds;
use crate::math_function::Precision;
use crate::op::{Node, Op};
use crate::range::{self, Range};
use crate::types::{Element, Literal, Type};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

/// A value of the code under construction: a handle that its [`Builder`] understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    pub(crate) id: Id,
    pub(crate) owner: u32,
}

/// An open block around the current place.
enum Frame {
    If { condition: Id, then: BlockId, otherwise: Option<BlockId> },
    For { counter: Id, start: Id, end: Id, step: Id, body: BlockId, unroll: Unroll },
    WhileHead { head: BlockId },
    WhileBody { head: BlockId, condition: Id, body: BlockId },
}

struct State {
    body: Body,
    interned: FxHashMap<Node, Id>,
    /// The block in which all operands of a node are available.
    homes: Vec<BlockId>,
    /// The range of each node.
    ranges: Vec<Range>,
    open: Vec<bool>,
    depths: Vec<u32>,
    current: BlockId,
    frames: Vec<Frame>,
    /// Number of frames that were refused because the nesting was too deep.
    refused: usize,
    parameters: Vec<ParameterDecl>,
    accessors: Vec<AccessorDecl>,
    problems: Vec<String>,
    bounds: LaunchBounds,
    folding: bool,
}

/// A builder of one [`Function`](crate::Function) or [`Kernel`](crate::Kernel).
/// Its methods take `&self`, so calls nest: `b.add(b.mul(x, x), 1.0)`. A [`Value`] is a small copyable
/// handle. Numbers of Rust become literals of the required type. Operations on vectors work lane by lane. A
/// plain value combined with a vector is broadcast to all lanes.
///
/// A mistake never panics. It is recorded together with the place of the call, and the call returns a
/// *poisoned* value. All values computed from it are poisoned too. [`finish_function`](Self::finish_function)
/// and [`finish_kernel`](Self::finish_kernel) return all mistakes.
///
/// ```
/// use broadloom_scalar::{Builder, Type};
/// let b = Builder::function("norm");
/// let (x, n) = (b.parameter("x", Type::F32), b.parameter("n", Type::I32));
/// let bad = b.sqrt(b.add(b.mul(x, x), n));
/// let error = b.finish_function(&[bad]).unwrap_err().to_string();
/// assert!(error.contains("expected `f32`, found `i32`"));
/// ```
pub struct Builder {
    state: RefCell<State>,
    name: String,
    owner: u32,
    is_kernel: bool,
    /// True if nodes are simplified when they are made.
    pub(crate) folding: bool,
    /// True if elementary functions are built in their fast form, for any requested precision.
    fast: Cell<bool>,
}

const POISON: Id = Id(u32::MAX);
/// Maximum number of mistakes that are recorded.
const MAX_PROBLEMS: usize = 16;

impl Builder {
    fn with(name: &str, is_kernel: bool, folding: bool) -> Builder {
        static OWNERS: AtomicU32 = AtomicU32::new(0);
        Builder {
            state: RefCell::new(State {
                body: Body::new(),
                interned: FxHashMap::default(),
                homes: vec![],
                ranges: vec![],
                folding,
                open: vec![true],
                depths: vec![0],
                current: Body::ENTRY,
                frames: vec![],
                refused: 0,
                parameters: vec![],
                accessors: vec![],
                problems: vec![],
                bounds: LaunchBounds::default(),
            }),
            name: name.to_owned(),
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
            is_kernel,
            folding,
            fast: Cell::new(false),
        }
    }

    /// Starts a function.
    pub fn function(name: &str) -> Builder {
        Builder::with(name, false, false)
    }

    /// Starts a kernel.
    pub fn kernel(name: &str) -> Builder {
        Builder::with(name, true, false)
    }

    pub(crate) fn rewriting(name: &str, is_kernel: bool, folding: bool) -> Builder {
        Builder::with(name, is_kernel, folding)
    }

    /// Returns the name of the function or kernel under construction.
    pub fn name(&self) -> &str {
        &self.name
    }

    // Mistakes.

    /// Records a mistake and returns a poisoned value.
    #[track_caller]
    pub fn fail(&self, problem: impl Into<String>) -> Value {
        let place = Location::caller();
        let mut state = self.state.borrow_mut();
        if state.problems.len() < MAX_PROBLEMS {
            state.problems.push(format!("{} ({}:{})", problem.into(), place.file(), place.line()));
        }
        self.poison()
    }

    /// Returns a poisoned value, which replaces the result of a mistake.
    pub fn poison(&self) -> Value {
        Value { id: POISON, owner: self.owner }
    }

    /// Returns true if a value is the result of a recorded mistake.
    pub fn is_poison(&self, value: Value) -> bool {
        value.id == POISON
    }

    /// Returns true if a mistake was recorded.
    pub fn has_failed(&self) -> bool {
        !self.state.borrow().problems.is_empty()
    }

    pub(crate) fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut self.state.borrow_mut().problems)
    }

    // Inspection of values.

    /// Returns the type of a value, or `i32` for a poisoned one.
    pub fn type_of(&self, value: Value) -> Type {
        let state = self.state.borrow();
        match state.body.nodes.get(value.id.index()) {
            Some(node) if value.owner == self.owner => node.ty,
            _ => Type::I32,
        }
    }

    /// Returns the literal of a value, if it is one.
    pub fn as_literal(&self, value: Value) -> Option<Literal> {
        match self.op(value)? {
            Op::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// Returns the operation that makes a value.
    pub(crate) fn op(&self, value: Value) -> Option<Op> {
        let state = self.state.borrow();
        state.body.nodes.get(value.id.index()).filter(|_| value.owner == self.owner).map(|node| node.op.clone())
    }

    pub(crate) fn wrap(&self, id: Id) -> Value {
        Value { id, owner: self.owner }
    }

    /// Returns true if a value can be used here: it belongs to this builder, and its block is still open.
    pub fn is_usable(&self, value: Value) -> bool {
        let state = self.state.borrow();
        let home = state.homes.get(value.id.index()).filter(|_| value.owner == self.owner);
        home.is_some_and(|home| state.open[home.index()])
    }

    /// Returns the value if it can be used here. Otherwise records a mistake and returns `None`. Returns
    /// `None` for a poisoned value without recording it.
    #[track_caller]
    pub(crate) fn checked(&self, value: Value) -> Option<Value> {
        if value.id == POISON && value.owner == self.owner {
            return None;
        }
        if value.owner != self.owner {
            self.fail("a value of another function is used");
            return None;
        }
        if !self.is_usable(value) {
            self.fail("a value is used behind the end of the block that it belongs to");
            return None;
        }
        Some(value)
    }

    // Creation of nodes.

    /// Limits the precision of all code that is built or [inlined](Builder::inline) from here on. With
    /// [`Precision::Fast`], elementary functions are the fast ones, and divisions and square roots of `f32`
    /// are those of the hardware.
    pub fn prefer(&self, precision: Precision) {
        self.fast.set(precision == Precision::Fast);
    }

    /// Prevents contraction of float products and sums, in this code and in all code that it is inlined into.
    /// Results then do not depend on the surrounding code.
    pub fn keep_products(&self) {
        self.state.borrow_mut().body.keeps_products = true;
    }

    /// Adds a node without simplifying it.
    #[track_caller]
    pub(crate) fn intern(&self, op: Op, ty: Type) -> Value {
        let mut state = self.state.borrow_mut();
        let node = Node { op, ty };
        if let Some(id) = state.interned.get(&node) {
            return self.wrap(*id);
        }
        let mut home = Body::ENTRY;
        node.op.each_operand(|operand| {
            let other = state.homes[operand.index()];
            if state.depths[other.index()] > state.depths[home.index()] {
                home = other;
            }
        });
        let Some(id) = state.push(node.clone(), home) else {
            drop(state);
            return self.fail("there is too much code");
        };
        state.interned.insert(node, id);
        self.wrap(id)
    }

    /// Adds a placed node, defined by a statement at this place. Its operands must be usable.
    #[track_caller]
    pub(crate) fn place(&self, op: Op, ty: impl Into<Type>) -> Value {
        let mut state = self.state.borrow_mut();
        let current = state.current;
        let Some(id) = state.push(Node { op, ty: ty.into() }, current) else {
            drop(state);
            return self.fail("there is too much code");
        };
        state.statement(Statement::Define(id));
        self.wrap(id)
    }

    pub(crate) fn statement(&self, statement: Statement) {
        self.state.borrow_mut().statement(statement);
    }

    /// Returns a literal: `b.literal(1.5f32)`.
    pub fn literal(&self, literal: impl Into<Literal>) -> Value {
        let literal = literal.into();
        self.intern(Op::Literal(literal), literal.element().into())
    }

    /// Returns a number as a value of a type: `b.constant(Type::U8, 255)`. For a vector type, it is broadcast
    /// to all lanes.
    #[track_caller]
    pub fn constant(&self, ty: impl Into<Type>, number: impl Into<Operand>) -> Value {
        self.resolve(number.into(), ty.into()).unwrap_or_else(|| self.poison())
    }

    fn ids(&self, values: &[Value]) -> Ids {
        values.iter().map(|value| value.id).collect()
    }

    /// Returns the known bounds of an integer, both included. The bounds of a float are meaningless. Facts
    /// about launches affect nodes that are made after [`launch_bounds`](Self::launch_bounds).
    pub fn range(&self, value: Value) -> (i128, i128) {
        let state = self.state.borrow();
        let known = state.ranges.get(value.id.index()).copied();
        known.unwrap_or_else(|| range::whole(Element::I64))
    }

    /// Returns the number of loops around the home of a value.
    pub(crate) fn loops_around(&self, value: Value) -> u32 {
        let state = self.state.borrow();
        state.body.block(state.homes[value.id.index()]).loops
    }

    /// Returns the facts about the launches of the kernel.
    pub(crate) fn bounds(&self) -> LaunchBounds {
        self.state.borrow().bounds.clone()
    }

    pub(crate) fn current_block(&self) -> BlockId {
        self.state.borrow().current
    }
}

impl State {
    /// Takes the code out and leaves the builder empty.
    fn take_body(&mut self) -> Body {
        self.interned.clear();
        self.homes.clear();
        self.ranges.clear();
        self.open = vec![true];
        self.depths = vec![0];
        self.current = Body::ENTRY;
        std::mem::replace(&mut self.body, Body::new())
    }

    fn push(&mut self, node: Node, home: BlockId) -> Option<Id> {
        if self.body.nodes.len() >= MAX_NODES {
            return None;
        }
        let id = Id(self.body.nodes.len() as u32);
        let look = |id: Id| self.ranges[id.index()];
        let found = range::of(&node, &self.bounds, look, |id| self.body.type_of(id).element());
        self.ranges.push(found);
        self.body.nodes.push(node);
        self.homes.push(home);
        Some(id)
    }

    fn statement(&mut self, statement: Statement) {
        let current = self.current;
        self.body.blocks[current.index()].statements.push(statement);
    }

    /// Opens a block inside another one. Returns `None` if the nesting is too deep.
    fn open_block(&mut self, parent: BlockId, is_loop: bool) -> Option<BlockId> {
        let depth = self.depths[parent.index()] + 1;
        if depth as usize > MAX_NESTING {
            return None;
        }
        let id = BlockId(self.body.blocks.len() as u32);
        let loops = self.body.block(parent).loops + u32::from(is_loop);
        self.body.blocks.push(Block { statements: vec![], parent: Some(parent), loops });
        self.depths.push(depth);
        self.open.push(true);
        self.current = id;
        Some(id)
    }

    fn close_block(&mut self, block: BlockId, back_to: BlockId) {
        self.open[block.index()] = false;
        self.current = back_to;
    }
}

/// Returns the type `bool` with the same number of lanes.
fn truth(ty: Type) -> Type {
    ty.with(Element::Bool)
}
