//! Code in memory: nodes, and the statements that give them places.
//!
//! Invariants, kept by the [`Builder`](crate::Builder):
//! - the operands of a node have smaller numbers than it, so walks over nodes need no recursion;
//! - a placed node stands in exactly one [`Statement::Define`] (the counter of a loop: in its [`Statement::For`]), and is used
//!   behind it in the same block or in blocks inside of it only;
//! - equal pure nodes are one node, and but for parameters, loads and the like all nodes have one lane;
//! - blocks are nested at most [`MAX_NESTING`] deep.

use crate::id::{AccessorId, ArrayId, BlockId, Id, Ids, SharedId, TableId, Var};
use crate::memory::{Access, Base, Level, Scope};
use crate::op::Node;
use crate::types::{Element, Literal, Type};
use std::sync::Arc;

/// Maximum nesting depth of blocks.
pub const MAX_NESTING: usize = 96;
/// Maximum number of nodes of a body.
pub const MAX_NODES: usize = 1 << 22;

/// Unrolling of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unroll {
    /// Wholly where the rounds are known and few, else not.
    #[default]
    Auto,
    /// The loop stays a loop.
    Never,
    /// Wholly, if the rounds are known, however many (up to a bound).
    Full,
    /// This many rounds at a time.
    By(u8),
}

/// An action at a position of the code: a store, an assignment, control flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// The placed node happens here.
    Define(Id),
    /// A variable gets a value.
    Set(Var, Id),
    /// An element of a local array gets a value.
    SetElement {
        /// The local array that is written.
        array: ArrayId,
        /// The element's place in the array.
        index: Id,
        /// The number that is stored.
        value: Id,
    },
    /// Memory at an index gets a value.
    Store {
        /// Start of the access.
        base: Base,
        /// The index, in elements.
        index: Id,
        /// The value; with several lanes, several elements side by side.
        value: Id,
        /// Kind of the access.
        access: Access,
        /// Condition of the store; without one it always happens.
        condition: Option<Id>,
    },
    /// Memory at an index will be read soon: it may be brought nearer.
    Prefetch {
        /// Start of the access.
        base: Base,
        /// The index, in elements.
        index: Id,
        /// Of what size, and how far behind the index.
        access: Access,
        /// Level of the cache.
        level: Level,
    },
    /// An output at a position gets a value.
    Write {
        /// The output.
        accessor: AccessorId,
        /// The position.
        indices: Ids,
        /// The number that is assigned.
        value: Id,
    },
    /// A value goes to the end of a queue.
    Push {
        /// The queue.
        accessor: AccessorId,
        /// The number that is stored.
        value: Id,
    },
    /// All threads of the block wait for each other.
    Barrier,
    /// The lanes of the warp in the mask wait for each other, and see each other's accesses.
    WarpBarrier(Id),
    /// Accesses before come before accesses behind, for the threads of the scope.
    Fence(Scope),
    /// One of two blocks.
    If {
        /// Which.
        condition: Id,
        /// The block when it is true.
        then: BlockId,
        /// The block when it is not.
        otherwise: BlockId,
    },
    /// Counts from `start` by `step` while it is less than `end` (greater, when the step is a negative literal); the counter wraps
    /// as its type does.
    For {
        /// The counter: a node that is defined by this.
        counter: Id,
        /// The first value.
        start: Id,
        /// The value that is not reached.
        end: Id,
        /// Step of the counter.
        step: Id,
        /// Body of the loop.
        body: BlockId,
        /// Unrolling of the loop.
        unroll: Unroll,
    },
    /// Repeats as long as the condition is true.
    While {
        /// Computes the condition.
        head: BlockId,
        /// The condition, seen from the end of the head.
        condition: Id,
        /// Body of the loop; it sees the values that the head defines.
        body: BlockId,
    },
    /// Leaves the innermost loop.
    Break,
    /// Ends this round of the innermost loop.
    Continue,
}

/// A list of statements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    /// Actions in their order.
    pub statements: Vec<Statement>,
    /// The block around it; none around the first. The body of a `while` stands in its head.
    pub parent: Option<BlockId>,
    /// Number of loops around it.
    pub loops: u32,
}

/// A local array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArrayDecl {
    /// The type of its elements.
    pub element: Element,
    /// Number of elements.
    pub length: u32,
}

/// An array in shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedDecl {
    /// The type of its elements.
    pub element: Element,
    /// Number of elements; `None` if the launch says it.
    pub length: Option<u32>,
}

impl SharedDecl {
    /// Its bytes; 0 when the launch says them.
    pub fn bytes(&self) -> u64 {
        u64::from(self.length.unwrap_or(0)) * u64::from(self.element.bytes())
    }
}

/// A constant table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    /// The type of its entries.
    pub element: Element,
    /// Its entries; there is at least one.
    pub entries: Arc<[Literal]>,
}

/// The code of a function or kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Body {
    pub(crate) nodes: Vec<Node>,
    pub(crate) vars: Vec<Element>,
    pub(crate) arrays: Vec<ArrayDecl>,
    pub(crate) shared: Vec<SharedDecl>,
    pub(crate) tables: Vec<Table>,
    pub(crate) blocks: Vec<Block>,
    /// True if products and sums are not fused: [`Builder::keep_products`](crate::Builder::keep_products).
    pub(crate) keeps_products: bool,
}

impl Body {
    /// The first block.
    pub const ENTRY: BlockId = BlockId(0);

    pub(crate) fn new() -> Body {
        Body { blocks: vec![Block::default()], ..Body::default() }
    }

    /// Returns the definition of a value.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.index()]
    }

    /// All nodes, in order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (Id, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(index, node)| (Id(index as u32), node))
    }

    /// The type of a node.
    pub fn type_of(&self, id: Id) -> Type {
        self.node(id).ty
    }

    /// Returns the statements of a block.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// All blocks.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        self.blocks.iter().enumerate().map(|(index, block)| (BlockId(index as u32), block))
    }

    /// The type of a variable.
    pub fn variable(&self, var: Var) -> Element {
        self.vars[var.index()]
    }

    /// A local array.
    pub fn array(&self, array: ArrayId) -> &ArrayDecl {
        &self.arrays[array.index()]
    }

    /// An array in shared memory.
    pub fn shared(&self, shared: SharedId) -> &SharedDecl {
        &self.shared[shared.index()]
    }

    /// A constant table.
    pub fn table(&self, table: TableId) -> &Table {
        &self.tables[table.index()]
    }

    /// The literal that a node is, if it is one.
    pub fn literal(&self, id: Id) -> Option<Literal> {
        match self.node(id).op {
            crate::op::Op::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// Returns the nesting depth of a block.
    pub fn depth(&self, block: BlockId) -> usize {
        std::iter::successors(Some(block), |block| self.block(*block).parent).count()
    }
}

impl Statement {
    /// Shows the nodes that it uses itself, not those in its blocks. The condition of a `while` is used at the end of its head, and a
    /// defined node's operands where it is defined: neither is shown.
    pub fn each_operand(&self, mut see: impl FnMut(Id)) {
        match self {
            Statement::Define(_) | Statement::Barrier | Statement::Fence(_) | Statement::While { .. } => {}
            Statement::Break | Statement::Continue => {}
            Statement::Set(_, value) | Statement::Push { value, .. } | Statement::WarpBarrier(value) => see(*value),
            Statement::SetElement { index, value, .. } => [*index, *value].into_iter().for_each(see),
            Statement::Store { base, index, value, condition, .. } => {
                base.each_operand(&mut see);
                see(*index);
                see(*value);
                condition.iter().copied().for_each(see);
            }
            Statement::Prefetch { base, index, .. } => {
                base.each_operand(&mut see);
                see(*index);
            }
            Statement::Write { indices, value, .. } => {
                indices.iter().copied().for_each(&mut see);
                see(*value);
            }
            Statement::If { condition, .. } => see(*condition),
            Statement::For { start, end, step, .. } => [*start, *end, *step].into_iter().for_each(see),
        }
    }

    /// The blocks inside of it.
    pub fn blocks(&self) -> [Option<BlockId>; 2] {
        match self {
            Statement::If { then, otherwise, .. } => [Some(*then), Some(*otherwise)],
            Statement::For { body, .. } => [Some(*body), None],
            Statement::While { head, body, .. } => [Some(*head), Some(*body)],
            Statement::Define(_)
            | Statement::Set(..)
            | Statement::SetElement { .. }
            | Statement::Store { .. }
            | Statement::Prefetch { .. }
            | Statement::Write { .. }
            | Statement::Push { .. }
            | Statement::Barrier
            | Statement::WarpBarrier(_)
            | Statement::Fence(_)
            | Statement::Break
            | Statement::Continue => [None, None],
        }
    }
}
