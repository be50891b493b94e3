//! Variables, local arrays, tables, global and shared memory.

use super::{Builder, Operand, Value};
use crate::body::{ArrayDecl, SharedDecl, Statement, Table};
use crate::id::{ArrayId, Id, SharedId, TableId, Var};
use crate::memory::{Access, Base, Cache, Level, Order, Scope};
use crate::op::{AtomicOp, Op};
use crate::types::{Element, Literal, Type};

/// A variable that can be set again and again. One of several lanes is as many variables, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    pub(crate) first: Var,
    pub(crate) ty: Type,
    pub(crate) owner: u32,
}

impl Variable {
    /// Its type.
    pub const fn ty(self) -> Type {
        self.ty
    }
}

/// An array of a thread's own, of a length that is known. One of vectors has their lanes one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Array {
    pub(crate) id: ArrayId,
    pub(crate) ty: Type,
    pub(crate) length: u32,
    pub(crate) owner: u32,
}

impl Array {
    /// Returns the number of elements.
    pub const fn length(self) -> u32 {
        self.length
    }
}

/// A place in global or shared memory from which elements are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    pub(crate) base: Base,
    pub(crate) element: Element,
    pub(crate) owner: u32,
}

impl Memory {
    /// The type of its elements.
    pub const fn element(self) -> Element {
        self.element
    }
}

/// Bytes of shared memory that a kernel may declare; what goes beyond is asked for at launch.
const MAX_SHARED: u64 = 48 << 10;
/// Local arrays are at most this long.
const MAX_ARRAY: u64 = 1 << 16;

impl Builder {
    // Variables.

    /// A variable, zero at first.
    pub fn variable(&self, ty: impl Into<Type>) -> Variable {
        let ty = ty.into();
        let mut state = self.state.borrow_mut();
        let first = Var(state.body.vars.len() as u32);
        state.body.vars.extend(std::iter::repeat_n(ty.element(), ty.lanes()));
        Variable { first, ty, owner: self.owner }
    }

    /// A variable with a value.
    #[track_caller]
    pub fn variable_with(&self, value: Value) -> Variable {
        let variable = self.variable(self.type_of(value));
        self.set(variable, value);
        variable
    }

    /// The value of a variable here and now.
    #[track_caller]
    pub fn get(&self, variable: Variable) -> Value {
        if variable.owner != self.owner {
            return self.fail("a variable of another function is used");
        }
        let element = variable.ty.element();
        let lanes: Vec<Value> =
            (0..variable.ty.lanes()).map(|lane| self.place(Op::Get(Var(variable.first.0 + lane as u32)), element)).collect();
        self.vector(&lanes)
    }

    /// Gives a variable a value.
    #[track_caller]
    pub fn set(&self, variable: Variable, value: impl Into<Operand>) {
        if variable.owner != self.owner {
            self.fail("a variable of another function is set");
            return;
        }
        let Some(value) = self.resolve(value.into(), variable.ty) else { return };
        for (lane, value) in self.lanes(value).into_iter().enumerate() {
            self.statement(Statement::Set(Var(variable.first.0 + lane as u32), value.id));
        }
    }

    // Local arrays.

    /// An array of the thread's own, with at most 65,536 elements. An element must be set before it is read.
    #[track_caller]
    pub fn array(&self, ty: impl Into<Type>, length: u32) -> Array {
        let ty = ty.into();
        let elements = u64::from(length) * ty.lanes() as u64;
        if elements == 0 || elements > MAX_ARRAY {
            self.fail(format!("a local array of {length} `{ty}`"));
        }
        let mut state = self.state.borrow_mut();
        let id = ArrayId(state.body.arrays.len() as u32);
        state.body.arrays.push(ArrayDecl { element: ty.element(), length: elements.clamp(1, MAX_ARRAY) as u32 });
        Array { id, ty, length: length.max(1), owner: self.owner }
    }

    #[track_caller]
    fn array_index(&self, array: Array, index: Operand) -> Option<Value> {
        if array.owner != self.owner {
            self.fail("an array of another function is used");
            return None;
        }
        let index = self.resolve_index(index)?;
        let literal = self.as_literal(index).and_then(Literal::as_i128);
        if literal.is_some_and(|index| index < 0 || index >= i128::from(array.length)) {
            self.fail(format!("index {} of a local array of {}", literal.unwrap_or(0), array.length));
            return None;
        }
        Some(index)
    }

    fn array_lane(&self, array: Array, index: Value, lane: usize) -> Value {
        match array.ty.lanes() {
            1 => index,
            lanes => self.add(self.mul(index, lanes as i32), lane as i32),
        }
    }

    /// An element of a local array. The index must be less than its length.
    #[track_caller]
    pub fn element(&self, array: Array, index: impl Into<Operand>) -> Value {
        let Some(index) = self.array_index(array, index.into()) else { return self.poison() };
        let lanes: Vec<Value> = (0..array.ty.lanes())
            .map(|lane| self.place(Op::Element(array.id, self.array_lane(array, index, lane).id), array.ty.element()))
            .collect();
        self.vector(&lanes)
    }

    /// Gives an element of a local array a value. The index must be less than its length.
    #[track_caller]
    pub fn set_element(&self, array: Array, index: impl Into<Operand>, value: impl Into<Operand>) {
        let Some(index) = self.array_index(array, index.into()) else { return };
        let Some(value) = self.resolve(value.into(), array.ty) else { return };
        for (lane, value) in self.lanes(value).into_iter().enumerate() {
            let index = self.array_lane(array, index, lane);
            self.statement(Statement::SetElement { array: array.id, index: index.id, value: value.id });
        }
    }

    // Tables.

    /// A constant table: `b.table(&[…])` gives what [`lookup`](Self::lookup) takes. All entries have one type, and there is one at least.
    #[track_caller]
    pub fn table(&self, entries: &[Literal]) -> TableId {
        let element = entries.first().map_or(Element::I32, |entry| entry.element());
        if entries.is_empty() || entries.len() > 1 << 16 || entries.iter().any(|entry| entry.element() != element) {
            self.fail("a table has 1 to 65,536 entries of one type");
            return self.add_table(Table { element, entries: [Literal::zero(element)].into() });
        }
        self.add_table(Table { element, entries: entries.into() })
    }

    pub(crate) fn add_table(&self, table: Table) -> TableId {
        let mut state = self.state.borrow_mut();
        let known = state.body.tables.iter().position(|own| *own == table);
        let index = known.unwrap_or(state.body.tables.len());
        if known.is_none() {
            state.body.tables.push(table);
        }
        TableId(index as u32)
    }

    /// The entry of a table at a `u32` index; the last one beyond its end.
    #[track_caller]
    pub fn lookup(&self, table: TableId, index: impl Into<Operand>) -> Value {
        let Some(index) = self.resolve(index.into(), Type::U32) else { return self.poison() };
        let element = self.state.borrow().body.tables.get(table.index()).map(|table| table.element);
        match element {
            Some(element) => self.pure(Op::Table(table, index.id), element),
            None => self.fail("a table of another function is used"),
        }
    }

    pub(crate) fn table_entry(&self, table: TableId, index: u64) -> Option<Literal> {
        let state = self.state.borrow();
        let entries = &state.body.tables.get(table.index())?.entries;
        entries.get(usize::try_from(index).unwrap_or(usize::MAX).min(entries.len() - 1)).copied()
    }

    // Memory.

    /// The address of global memory, a `u64`.
    #[track_caller]
    pub fn address(&self, memory: Memory) -> Value {
        match memory.base {
            Base::Global(id) if memory.owner == self.owner => self.wrap(id),
            _ => self.fail("the address of memory that is not global, or of another kernel"),
        }
    }

    pub(crate) fn add_shared(&self, element: Element, length: Option<u32>) -> SharedId {
        let mut state = self.state.borrow_mut();
        let id = SharedId(state.body.shared.len() as u32);
        state.body.shared.push(SharedDecl { element, length });
        id
    }

    /// An array in shared memory, 16-byte aligned. All of them together have at most 48 KiB.
    #[track_caller]
    pub fn shared(&self, element: Element, length: u32) -> Memory {
        self.kernel_only("shared memory");
        let others: u64 = self.state.borrow().body.shared.iter().map(|shared| shared.bytes().next_multiple_of(16)).sum();
        let bytes = u64::from(length) * u64::from(element.bytes());
        if length == 0 || others + bytes > MAX_SHARED {
            self.fail(format!(
                "an array of {length} `{element}` in shared memory beside {others} bytes; there are {MAX_SHARED}, more only as dynamic ones"
            ));
        }
        let id = self.add_shared(element, Some(length.max(1)));
        Memory { base: Base::Shared(id, None), element, owner: self.owner }
    }

    /// The shared memory whose size the launch says, 16-byte aligned. All such arrays are the same memory.
    #[track_caller]
    pub fn dynamic_shared(&self, element: Element) -> Memory {
        self.kernel_only("shared memory");
        let known = self.state.borrow().body.shared.iter().position(|shared| shared.length.is_none());
        let id = known.map_or_else(|| self.add_shared(Element::U8, None), |index| SharedId(index as u32));
        Memory { base: Base::Shared(id, None), element, owner: self.owner }
    }

    /// Shared memory seen as another type, from so many bytes (a `u32`) behind its start.
    #[track_caller]
    pub fn shared_view(&self, memory: Memory, element: Element, bytes: impl Into<Operand>) -> Memory {
        let Some(bytes) = self.resolve(bytes.into(), Type::U32) else { return memory };
        match memory.base {
            Base::Shared(id, offset) if memory.owner == self.owner => {
                let bytes = offset.map_or(bytes, |offset| self.add(self.wrap(offset), bytes));
                Memory { base: Base::Shared(id, Some(bytes.id)), element, ..memory }
            }
            _ => {
                self.fail("a view of memory that is not shared, or of another kernel");
                memory
            }
        }
    }

    #[track_caller]
    fn place_in(&self, memory: Memory, index: Operand) -> Option<Id> {
        self.kernel_only("memory");
        if memory.owner != self.owner {
            self.fail("memory of another kernel is used");
            return None;
        }
        Some(self.resolve_index(index)?.id)
    }

    /// The element at an index: any integer.
    #[track_caller]
    pub fn load(&self, memory: Memory, index: impl Into<Operand>) -> Value {
        self.load_as(memory, index, 1, Order::Weak, Cache::Normal)
    }

    /// Several elements side by side from an index on; for 2, 4, 8 and 16 lanes the place is promised to be aligned to their size, up to
    /// 16 bytes.
    #[track_caller]
    pub fn load_vector(&self, memory: Memory, index: impl Into<Operand>, lanes: usize) -> Value {
        self.load_as(memory, index, lanes, Order::Weak, Cache::Normal)
    }

    /// Loads with an order and a hint for the caches.
    #[track_caller]
    pub fn load_as(&self, memory: Memory, index: impl Into<Operand>, lanes: usize, order: Order, cache: Cache) -> Value {
        let Some(index) = self.place_in(memory, index.into()) else { return self.poison() };
        let Some(ty) = Type::vector(memory.element, lanes) else { return self.fail(format!("a load of {lanes} elements")) };
        if matches!(order, Order::Release(_) | Order::AcquireRelease(_)) {
            return self.fail("a load that releases");
        }
        if order != Order::Weak && cache != Cache::Normal {
            return self.fail("a load with an order takes no hint for the caches");
        }
        let access = Access::of(memory.element).order(order).cache(cache);
        self.place(Op::Load(memory.base, index, access), ty)
    }

    /// Gives the element at an index a value; a value of several lanes goes to as many elements side by side, aligned as for
    /// [`load_vector`](Self::load_vector).
    #[track_caller]
    pub fn store(&self, memory: Memory, index: impl Into<Operand>, value: impl Into<Operand>) {
        self.store_as(memory, index, value, Order::Weak, Cache::Normal);
    }

    /// Stores with an order and a hint for the caches.
    #[track_caller]
    pub fn store_as(&self, memory: Memory, index: impl Into<Operand>, value: impl Into<Operand>, order: Order, cache: Cache) {
        self.store_where(None, memory, index.into(), value.into(), order, cache);
    }

    /// Stores where a condition holds. The index and the value are computed either way, so this is for conditions that few threads fail.
    #[track_caller]
    pub fn store_if(&self, condition: Value, memory: Memory, index: impl Into<Operand>, value: impl Into<Operand>) {
        self.store_where(Some(condition), memory, index.into(), value.into(), Order::Weak, Cache::Normal);
    }

    #[track_caller]
    fn store_where(&self, condition: Option<Value>, memory: Memory, index: Operand, value: Operand, order: Order, cache: Cache) {
        let condition = match condition.map(|condition| self.resolve(condition.into(), Type::BOOL)) {
            None => None,
            Some(Some(condition)) => Some(condition.id),
            Some(None) => return,
        };
        let Some(index) = self.place_in(memory, index) else { return };
        let ty = match value {
            Operand::Value(value) => Type::of(memory.element).with_lanes_of(self.type_of(value)),
            Operand::Integer(_) | Operand::Float(_) | Operand::Bool(_) => memory.element.into(),
        };
        let Some(value) = self.resolve(value, ty) else { return };
        if matches!(order, Order::Acquire(_) | Order::AcquireRelease(_)) {
            self.fail("a store that acquires");
            return;
        }
        if matches!(cache, Cache::ReadOnly | Cache::ReadOnlyStreaming) || (order != Order::Weak && cache != Cache::Normal) {
            self.fail("a store with a hint for loads, or with an order and a hint");
            return;
        }
        let access = Access::of(memory.element).order(order).cache(cache);
        self.statement(Statement::Store { base: memory.base, index, value: value.id, access, condition });
    }

    /// Says that the element at an index will be read soon, and which cache it should be in by then. The index may lie outside of the memory.
    #[track_caller]
    pub fn prefetch(&self, memory: Memory, index: impl Into<Operand>, level: Level) {
        let Some(index) = self.place_in(memory, index.into()) else { return };
        self.statement(Statement::Prefetch { base: memory.base, index, access: Access::of(memory.element), level });
    }

    /// An atomic operation on the element at an index; gives what it held before.
    #[track_caller]
    pub fn atomic(
        &self,
        op: AtomicOp,
        memory: Memory,
        index: impl Into<Operand>,
        value: impl Into<Operand>,
        order: Order,
    ) -> Value {
        if op == AtomicOp::CompareExchange {
            return self.fail("`atomic_compare_exchange` takes what is expected");
        }
        let (Some(index), Some(value)) = (self.place_in(memory, index.into()), self.resolve(value.into(), memory.element.into()))
        else {
            return self.poison();
        };
        self.atomic_node(op, memory, index, value, None, order)
    }

    /// Puts the value at an index if it held what is expected; gives what it held before.
    #[track_caller]
    pub fn atomic_compare_exchange(
        &self,
        memory: Memory,
        index: impl Into<Operand>,
        expected: impl Into<Operand>,
        value: impl Into<Operand>,
        order: Order,
    ) -> Value {
        let ty = Type::of(memory.element);
        let (Some(index), Some(expected), Some(value)) =
            (self.place_in(memory, index.into()), self.resolve(expected.into(), ty), self.resolve(value.into(), ty))
        else {
            return self.poison();
        };
        self.atomic_node(AtomicOp::CompareExchange, memory, index, value, Some(expected), order)
    }

    #[track_caller]
    fn atomic_node(&self, op: AtomicOp, memory: Memory, index: Id, value: Value, expected: Option<Value>, order: Order) -> Value {
        let element = memory.element;
        let (bits, integer) = (element.bits(), element.is_integer());
        let takes = match op {
            AtomicOp::Add => bits >= 32 || element == Element::F16,
            AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => integer && bits >= 32,
            AtomicOp::Exchange => bits >= 32,
            AtomicOp::CompareExchange => integer && bits >= 16,
        };
        if !takes || order == Order::Volatile {
            return self.fail(format!("there is no such atomic operation on `{element}`"));
        }
        let order = if order == Order::Weak { Order::Relaxed(Scope::Device) } else { order };
        let access = Access::of(element).order(order);
        self.place(Op::Atomic(op, memory.base, index, access, value.id, expected.map(|value| value.id)), element)
    }

    #[track_caller]
    pub(crate) fn kernel_only(&self, what: &str) {
        if !self.is_kernel {
            self.fail(format!("{what} in a function; only kernels have it"));
        }
    }
}

impl Type {
    /// This element type with the lanes of another type.
    fn with_lanes_of(self, other: Type) -> Type {
        other.with(self.element())
    }
}
