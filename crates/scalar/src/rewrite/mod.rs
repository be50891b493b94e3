//! Code written anew into a builder: the one mechanism behind inlining, unrolling, forwarding and the simplifier.
//!
//! Statements are walked in order. Pure nodes are made when a statement needs them, so what nobody needs is gone, and a builder that
//! simplifies as it goes simplifies everything. While walking, the value that each variable is known to have is kept; where the code
//! branches, what both sides agree on stays known, and what a loop sets is unknown inside of it and behind it.

mod branches;
mod loops;

use crate::binding::Binding;
use crate::body::{Body, Statement};
use crate::builder::{Array, Builder, Value, Variable};
use crate::id::{ArrayId, BlockId, Id, SharedId, TableId, Var};
use crate::memory::{Access, Base, Cache};
use crate::op::{BinaryOp, Op};
use crate::schedule::Schedule;
use crate::structure::{AssignedItems, LiveItems, Structure};
use crate::types::{Literal, Type};
use rustc_hash::FxHashMap;

/// Options of a rewriting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Values of variables are used where they are known, and equal reads are shared.
    pub(crate) forward: bool,
    /// Loops whose rounds are known are written out, up to so many statements and nodes in all.
    pub(crate) unroll: Option<usize>,
    /// Short conditional assignments become selections.
    pub(crate) convert_ifs: bool,
    /// Elementary functions are written out.
    pub(crate) expand: bool,
    /// Local arrays whose indices are all literals become variables.
    pub(crate) scalarise: bool,
    /// 64-bit counters whose values fit into 32 bits are narrowed.
    pub(crate) narrow: bool,
    /// Products that become part of a fused multiply-add.
    pub(crate) contract: Option<Vec<bool>>,
    /// Indices of memory become addresses.
    pub(crate) address: bool,
}

/// Flow of control behind a block.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    On,
    Ended,
}

/// The replacement of a local array.
#[derive(Clone, Copy)]
enum Elements {
    Array(Array),
    Variables(Variable),
    Dropped,
}

/// Known values of variables.
type VariableValues = FxHashMap<Var, Value>;

/// A body on its way into a builder.
pub(crate) struct Rewrite<'a, 'b> {
    source: &'a Body,
    builder: &'a Builder,
    options: Options,
    parameters: Vec<Value>,
    bindings: Option<&'a mut [&'b mut dyn Binding]>,
    structure: Structure,
    live: Option<LiveItems>,
    map: Vec<Option<Value>>,
    /// Made when they are first needed, so that nothing is left of what is not.
    vars: Vec<Option<Variable>>,
    arrays: Vec<Option<Elements>>,
    shared: Vec<Option<SharedId>>,
    tables: Vec<Option<TableId>>,
    by_home: Vec<Vec<Id>>,
    known: VariableValues,
    reads: FxHashMap<Op, Value>,
    /// Schedule of the body, where elementary functions are expanded.
    schedule: Option<Schedule>,
    /// Rounds, times sizes, that were written out.
    unrolled: usize,
}

impl<'a, 'b> Rewrite<'a, 'b> {
    pub(crate) fn new(source: &'a Body, builder: &'a Builder, parameters: Vec<Value>, options: Options) -> Self {
        if source.keeps_products {
            builder.keep_products();
        }
        let structure = Structure::of(source);
        let mut by_home = vec![vec![]; source.blocks.len()];
        for (index, home) in structure.homes.iter().enumerate() {
            if let Some(home) = home {
                by_home[home.index()].push(Id(index as u32));
            }
        }
        Rewrite {
            source,
            builder,
            options,
            parameters,
            bindings: None,
            structure,
            live: None,
            map: vec![None; source.nodes.len()],
            vars: vec![None; source.vars.len()],
            arrays: vec![None; source.arrays.len()],
            shared: vec![None; source.shared.len()],
            tables: vec![None; source.tables.len()],
            by_home,
            known: VariableValues::default(),
            reads: FxHashMap::default(),
            schedule: None,
            unrolled: 0,
        }
    }

    /// Gives the bindings of the accessors; without them they stay accessors.
    pub(crate) fn bind(&mut self, bindings: &'a mut [&'b mut dyn Binding]) {
        self.bindings = Some(bindings);
    }

    /// Variables are zero where the code begins, also when it is reached more than once.
    pub(crate) fn reset_variables(&mut self) {
        for (index, element) in self.source.vars.iter().enumerate() {
            let zero = self.builder.literal(Literal::zero(*element));
            let variable = self.variable(Var(index as u32));
            self.builder.set(variable, zero);
        }
    }

    fn variable(&mut self, var: Var) -> Variable {
        let element = self.source.variable(var);
        *self.vars[var.index()].get_or_insert_with(|| self.builder.variable(element))
    }

    /// Writes everything, and gives what became of the results.
    pub(crate) fn run(mut self, results: &[Id]) -> Vec<Value> {
        if self.options.forward {
            self.live = Some(LiveItems::of(self.source, &self.structure, results));
            for (index, element) in self.source.vars.iter().enumerate() {
                self.known.insert(Var(index as u32), self.builder.literal(Literal::zero(*element)));
            }
        }
        if self.options.expand {
            self.schedule = Some(Schedule::of(self.source, &self.structure, results));
        }
        self.block(Body::ENTRY);
        results.iter().map(|id| self.value(*id)).collect()
    }

    // Nodes.

    fn mapped(&self, id: Id) -> Option<Value> {
        self.map[id.index()].filter(|value| self.builder.is_usable(*value) || self.builder.is_poison(*value))
    }

    /// Returns the new value of a node; pure ones are made now, operands first, without recursion.
    fn value(&mut self, id: Id) -> Value {
        if let Some(value) = self.mapped(id) {
            return value;
        }
        let mut stack = vec![id];
        while let Some(top) = stack.last().copied() {
            if self.mapped(top).is_some() {
                stack.pop();
                continue;
            }
            let node = self.source.node(top);
            if !node.op.is_pure() {
                self.map[top.index()] = Some(self.builder.fail("a value is used outside of the block that defines it"));
                continue;
            }
            let before = stack.len();
            node.op.each_operand(|operand| {
                if self.mapped(operand).is_none() {
                    stack.push(operand);
                }
            });
            if stack.len() == before {
                let value = self.pure(top);
                self.map[top.index()] = Some(value);
                stack.pop();
            }
        }
        self.mapped(id).unwrap_or_else(|| self.builder.poison())
    }

    /// A pure node whose operands are there.
    fn pure(&mut self, id: Id) -> Value {
        let source = self.source;
        let node = source.node(id);
        let builder = self.builder;
        let mut poisoned = false;
        node.op.each_operand(|operand| poisoned |= self.map[operand.index()].is_none_or(|value| builder.is_poison(value)));
        if poisoned {
            return builder.poison();
        }
        let op = node.op.with_operands(|operand| self.map[operand.index()].map_or(operand, |value| value.id));
        let op = match op {
            Op::Parameter(index) => return self.parameters.get(index as usize).copied().unwrap_or_else(|| builder.poison()),
            Op::Vector(lanes) => {
                let lanes: Vec<Value> = lanes.iter().map(|lane| builder.wrap(*lane)).collect();
                return builder.vector(&lanes);
            }
            Op::Lane(vector, lane) => return builder.lane(builder.wrap(vector), usize::from(lane)),
            Op::Table(table, index) => Op::Table(self.table(table), index),
            Op::SharedAddress(shared) => Op::SharedAddress(self.shared(shared)),
            Op::LocalAddress(array) => match self.array(array) {
                Elements::Array(array) => Op::LocalAddress(array.id),
                Elements::Variables(_) | Elements::Dropped => return builder.fail("the address of an array that is gone"),
            },
            Op::Math(function, precision, arguments) if self.options.expand => {
                let arguments: Vec<Value> = arguments.iter().map(|argument| builder.wrap(*argument)).collect();
                return crate::math::expand(builder, function, precision, &arguments)
                    .unwrap_or_else(|| builder.fail(format!("`{function}` of `{}` is not available", node.ty)));
            }
            op => op,
        };
        if let Some(fused) = self.contracted(&node.op) {
            return fused;
        }
        builder.pure(op, node.ty)
    }

    /// A sum or difference with a product that is used nowhere else.
    fn contracted(&self, op: &Op) -> Option<Value> {
        let products = self.options.contract.as_ref()?;
        let (b, mapped) = (self.builder, |id: Id| self.map[id.index()]);
        let factors = |id: Id| match self.source.node(id).op {
            Op::Binary(BinaryOp::Mul, x, y) if products[id.index()] => Some((mapped(x)?, mapped(y)?)),
            _ => None,
        };
        match op {
            Op::Binary(BinaryOp::Add, x, y) => match (factors(*x), factors(*y)) {
                (Some((p, q)), _) => Some(b.fma(p, q, mapped(*y)?)),
                (None, Some((p, q))) => Some(b.fma(p, q, mapped(*x)?)),
                (None, None) => None,
            },
            Op::Binary(BinaryOp::Sub, x, y) => match (factors(*x), factors(*y)) {
                (Some((p, q)), _) => Some(b.fma(p, q, b.neg(mapped(*y)?))),
                (None, Some((p, q))) => Some(b.fma(b.neg(p), q, mapped(*x)?)),
                (None, None) => None,
            },
            _ => None,
        }
    }

    fn table(&mut self, table: TableId) -> TableId {
        let source = self.source;
        *self.tables[table.index()].get_or_insert_with(|| self.builder.add_table(source.table(table).clone()))
    }

    fn shared(&mut self, shared: SharedId) -> SharedId {
        let decl = self.source.shared(shared);
        *self.shared[shared.index()].get_or_insert_with(|| match decl.length {
            Some(_) => self.builder.add_shared(decl.element, decl.length),
            // There is one dynamic array; whoever else names it means the same memory.
            None => match self.builder.dynamic_shared(decl.element).base {
                Base::Shared(id, _) => id,
                Base::Global(_) | Base::SharedAt(_) => shared,
            },
        })
    }

    /// Returns whether all indices of an array are literals.
    fn is_indexed_by_literals(&self, array: ArrayId) -> bool {
        let literal = |id: Id| self.source.literal(id).is_some();
        let addressed = self.source.nodes().any(|(_, node)| node.op == Op::LocalAddress(array));
        !addressed
            && self.structure.order.iter().all(|block| {
                self.source.block(*block).statements.iter().all(|statement| match statement {
                    Statement::Define(id) => match &self.source.node(*id).op {
                        Op::Element(own, index) if *own == array => literal(*index),
                        _ => true,
                    },
                    Statement::SetElement { array: own, index, .. } if *own == array => literal(*index),
                    _ => true,
                })
            })
    }

    /// Returns whether an index is known to be outside of its array. Unrolling makes such accesses; they are never reached.
    fn is_outside(&mut self, array: ArrayId, index: Id) -> bool {
        let index = self.value(index);
        let length = i128::from(self.source.array(array).length);
        self.builder.as_literal(index).and_then(Literal::as_i128).is_some_and(|index| index < 0 || index >= length)
    }

    fn array(&mut self, array: ArrayId) -> Elements {
        if let Some(elements) = self.arrays[array.index()] {
            return elements;
        }
        let decl = self.source.array(array);
        let dropped = self.live.as_ref().is_some_and(|live| !live.arrays[array.index()]);
        let elements = if dropped {
            Elements::Dropped
        } else if self.options.scalarise && decl.length <= 1024 && self.is_indexed_by_literals(array) {
            let first = self.builder.variable(decl.element);
            (1..decl.length).for_each(|_| {
                self.builder.variable(decl.element);
            });
            Elements::Variables(first)
        } else {
            Elements::Array(self.builder.array(decl.element, decl.length))
        };
        self.arrays[array.index()] = Some(elements);
        elements
    }

    fn base(&mut self, base: Base) -> Base {
        match base {
            Base::Global(id) => Base::Global(self.value(id).id),
            Base::SharedAt(id) => Base::SharedAt(self.value(id).id),
            Base::Shared(shared, offset) => {
                let shared = self.shared(shared);
                Base::Shared(shared, offset.map(|offset| self.value(offset).id))
            }
        }
    }

    /// A place in memory, written anew.
    fn place(&mut self, base: Base, index: Id, access: Access) -> (Base, Id, Access) {
        let (base, index) = (self.base(base), self.value(index));
        if self.options.address {
            return crate::address::place(self.builder, base, index, access);
        }
        (base, index.id, access)
    }

    fn values(&mut self, ids: &[Id]) -> Vec<Value> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    // Variables.

    fn get(&mut self, var: Var) -> Value {
        if self.options.forward
            && let Some(value) = self.known.get(&var)
            && self.builder.is_usable(*value)
        {
            return *value;
        }
        let variable = self.variable(var);
        let value = self.builder.get(variable);
        if self.options.forward {
            self.known.insert(var, value);
        }
        value
    }

    fn set(&mut self, var: Var, value: Value) {
        let variable = self.variable(var);
        self.builder.set(variable, value);
        if self.options.forward {
            self.known.insert(var, value);
        }
    }

    /// The variable that an element of an array became; it is one of the vars from here on.
    fn element_variable(&mut self, first: Variable, index: Id) -> Variable {
        let offset = self.source.literal(index).and_then(Literal::as_i128).unwrap_or(0);
        Variable { first: Var(first.first.0 + offset as u32), ..first }
    }

    fn forget(&mut self, blocks: &[BlockId]) {
        if !self.options.forward {
            return;
        }
        for var in AssignedItems::within(self.source, blocks).vars {
            self.known.remove(&var);
        }
    }

    // Placed nodes.

    fn define(&mut self, id: Id) {
        if self.live.as_ref().is_some_and(|live| !live.nodes[id.index()]) {
            return;
        }
        let source = self.source;
        let node = source.node(id);
        let (builder, ty) = (self.builder, node.ty);
        let value = match &node.op {
            Op::Get(var) => self.get(*var),
            Op::Element(array, index) => match self.array(*array) {
                Elements::Dropped => builder.poison(),
                _ if self.is_outside(*array, *index) => builder.literal(Literal::zero(ty.element())),
                Elements::Array(array) => {
                    let index = self.value(*index);
                    builder.element(array, index)
                }
                Elements::Variables(first) => {
                    let variable = self.element_variable(first, *index);
                    builder.get(variable)
                }
            },
            Op::Read(accessor, position) => {
                let position = self.values(position);
                match &mut self.bindings {
                    Some(bindings) => bindings[accessor.index()].read(builder, &position),
                    None => self.share(Op::Read(*accessor, position.iter().map(|value| value.id).collect()), ty),
                }
            }
            Op::Window(accessor, offsets) => {
                let offsets = self.values(offsets);
                match &mut self.bindings {
                    Some(bindings) => bindings[accessor.index()].window(builder, &offsets),
                    None => self.share(Op::Window(*accessor, offsets.iter().map(|value| value.id).collect()), ty),
                }
            }
            Op::Pop(accessor) => match &mut self.bindings {
                Some(bindings) => bindings[accessor.index()].pop(builder),
                None => builder.place(Op::Pop(*accessor), ty),
            },
            Op::Peek(accessor, offset) => {
                let offset = self.value(*offset);
                match &mut self.bindings {
                    Some(bindings) => bindings[accessor.index()].peek(builder, offset),
                    None => builder.place(Op::Peek(*accessor, offset.id), ty),
                }
            }
            Op::Load(base, index, access) => {
                let (base, index, access) = self.place(*base, *index, *access);
                let op = Op::Load(base, index, access);
                match access.cache {
                    Cache::ReadOnly | Cache::ReadOnlyStreaming => self.share(op, ty),
                    Cache::Normal | Cache::Streaming => builder.place(op, ty),
                }
            }
            Op::Atomic(op, base, index, access, value, expected) => {
                let (base, index, access) = self.place(*base, *index, *access);
                let expected = expected.map(|expected| self.value(expected).id);
                builder.place(Op::Atomic(*op, base, index, access, self.value(*value).id, expected), ty)
            }
            other => {
                let mut operands = vec![];
                other.each_operand(|operand| operands.push(operand));
                self.values(&operands);
                let op = other.with_operands(|operand| self.mapped(operand).map_or(operand, |value| value.id));
                builder.place(op, ty)
            }
        };
        let value = builder.resolve(value.into(), ty).unwrap_or_else(|| builder.poison());
        self.map[id.index()] = Some(value);
    }

    /// A read of what nobody writes: the one that was made before, if it can be seen from here.
    fn share(&mut self, op: Op, ty: Type) -> Value {
        if !self.options.forward {
            return self.builder.place(op, ty);
        }
        if let Some(value) = self.reads.get(&op)
            && self.builder.is_usable(*value)
        {
            return *value;
        }
        let value = self.builder.place(op.clone(), ty);
        self.reads.insert(op, value);
        value
    }

    // Statements.

    fn block(&mut self, block: BlockId) -> Flow {
        let source = self.source;
        let statements = &source.block(block).statements;
        for (index, statement) in statements.iter().enumerate() {
            self.expand_before(block, index);
            if self.statement(statement) == Flow::Ended {
                return Flow::Ended;
            }
        }
        self.expand_before(block, statements.len());
        Flow::On
    }

    /// Elementary functions may have statements of their own, so they are written out where they belong: in front of the loops that
    /// do not change them.
    fn expand_before(&mut self, block: BlockId, place: usize) {
        let Some(schedule) = &self.schedule else { return };
        let is_live = |id: &Id| self.live.as_ref().is_none_or(|live| live.nodes[id.index()]);
        let is_math = |id: &Id| matches!(self.source.node(*id).op, Op::Math(..)) && is_live(id);
        let calls: Vec<Id> = schedule.before(block, place).iter().copied().filter(is_math).collect();
        for call in calls {
            self.value(call);
        }
    }

    fn statement(&mut self, statement: &Statement) -> Flow {
        let builder = self.builder;
        match statement {
            Statement::Define(id) => self.define(*id),
            Statement::Set(var, value) => {
                if self.live.as_ref().is_none_or(|live| live.vars[var.index()]) {
                    let value = self.value(*value);
                    self.set(*var, value);
                }
            }
            Statement::SetElement { array, index, value } => match self.array(*array) {
                Elements::Dropped => {}
                _ if self.is_outside(*array, *index) => {}
                Elements::Array(array) => {
                    let (index, value) = (self.value(*index), self.value(*value));
                    builder.set_element(array, index, value);
                }
                Elements::Variables(first) => {
                    let value = self.value(*value);
                    let variable = self.element_variable(first, *index);
                    builder.set(variable, value);
                }
            },
            Statement::Store { base, index, value, access, condition } => {
                let condition = condition.map(|condition| self.value(condition));
                let known = condition.and_then(|condition| builder.as_literal(condition));
                if known == Some(Literal::from(false)) {
                    return Flow::On;
                }
                let (base, index, access) = self.place(*base, *index, *access);
                let value = self.value(*value);
                let usable = [builder.wrap(index), value].into_iter().chain(condition).all(|value| !builder.is_poison(value));
                if usable {
                    let condition = condition.filter(|_| known.is_none()).map(|condition| condition.id);
                    builder.statement(Statement::Store { base, index, value: value.id, access, condition });
                }
            }
            Statement::Prefetch { base, index, access, level } => {
                let (base, index, access) = self.place(*base, *index, *access);
                if !builder.is_poison(builder.wrap(index)) {
                    builder.statement(Statement::Prefetch { base, index, access, level: *level });
                }
            }
            Statement::Write { accessor, indices, value } => {
                let (indices, value) = (self.values(indices), self.value(*value));
                match &mut self.bindings {
                    Some(bindings) => bindings[accessor.index()].write(builder, &indices, value),
                    None => builder.statement(Statement::Write {
                        accessor: *accessor,
                        indices: indices.iter().map(|value| value.id).collect(),
                        value: value.id,
                    }),
                }
            }
            Statement::Push { accessor, value } => {
                let value = self.value(*value);
                match &mut self.bindings {
                    Some(bindings) => bindings[accessor.index()].push(builder, value),
                    None => builder.statement(Statement::Push { accessor: *accessor, value: value.id }),
                }
            }
            Statement::Barrier | Statement::Fence(_) => builder.statement(statement.clone()),
            Statement::WarpBarrier(members) => {
                let members = self.value(*members);
                builder.statement(Statement::WarpBarrier(members.id));
            }
            Statement::If { condition, then, otherwise } => return self.condition(*condition, *then, *otherwise),
            Statement::For { .. } => self.count(statement),
            Statement::While { head, condition, body } => self.repeat(*head, *condition, *body),
            Statement::Break => {
                builder.break_loop();
                return Flow::Ended;
            }
            Statement::Continue => {
                builder.continue_loop();
                return Flow::Ended;
            }
        }
        Flow::On
    }
}
