//! Recording of expressions: from nodes to the [tape](crate::tape::entries) and its bindings.
//!
//! Each node is visited once, inputs before their users, and equal nodes become one entry. A node stores its
//! own number, equal nodes are found in a hash table, and all lists are reused. Recording an expression that
//! each step of a loop builds is therefore cheap.
//!
//! The *code hash* of an entry covers everything that affects the code. The hash of a tape is made of those
//! of its entries. Hashes only select candidates: entries and tapes are compared as a whole.

mod open;

use crate::expr::amount::Amount;
use crate::expr::error::{Error, Result};
use crate::expr::kernel_settings::KernelSettings;
use crate::expr::node::{Expression, Node, State};
use crate::expr::op::{Op, Scalar};
use crate::expr::operation::{Extent, OperationResult};
use crate::expr::shape::Shape;
use crate::expr::tracing::Symbol;
use crate::expr::view::{AxisMap, View};
use crate::hash::{Quick, QuickMap};
use crate::tape::bindings::Bindings;
use crate::tape::entries::{
    DISTANT, Entry, FAR, Growth, Id, Int, Kind, RecordedAxisMap, SMALL, ShapeClass, ShapeId, Tape, is_far, is_simple,
    is_specialised,
};
use crate::tape::sizes::{Size, SizeList, Sizes};
use broadloom_device::Buffer;
use broadloom_scalar::{Lanes, Precision};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Recorder of tapes.
pub(crate) struct Recorder {
    /// Unique number of the recording, across all contexts.
    number: u64,
    tape: Tape,
    hash: Quick,
    bindings: Bindings,
    buffers: QuickMap<Leaf, u32>,
    sizes: Sizes,
    /// Nodes that become entries at their first use, because their sizes depend on the use.
    open: Vec<OpenNode>,
    /// Slots of scalars.
    scalars: QuickMap<u64, u32>,
    /// True if scalars keep their values as long as the tape is used. Equal ones may then be merged.
    constant: bool,
    /// The node behind each entry, and the hash of its operation. An entry without a node is never equal to
    /// another.
    nodes: Vec<(Option<Node>, u64)>,
    /// Hash table of entries: the entry number plus one, or zero if the slot is free. It uses linear probing,
    /// and at most half is occupied.
    known: Vec<u32>,
    /// Nodes still to be visited.
    stack: Vec<Node>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("tape", &self.tape).finish_non_exhaustive()
    }
}

/// Table slots per entry above which the table is replaced instead of cleared.
const SPARSE: usize = 16;

/// Maximum number of different shapes of an expression.
const MAX_SHAPES: usize = u16::MAX as usize;

/// First number of nodes that are not entries yet.
const OPEN: Id = 1 << 31;

/// Node whose shape is given by numbers, some of which may be sizes of other arrays: a fill, positions, a
/// view, a reshape. If it is used beside other arrays, its sizes become theirs.
#[derive(Debug)]
struct OpenNode {
    node: Node,
    input: Option<Id>,
    /// The sizes that depend on its input.
    sizes: SmallVec<[Option<Size>; 4]>,
    /// True if the node equals another with the same operation, input and extents, whatever it is used with.
    is_whole: bool,
    /// The entry of the node, once it has one.
    entry: Option<Id>,
}

/// Identity of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Leaf {
    /// Address and length.
    Memory(u64, usize),
    Symbol(u32),
}

impl Recorder {
    /// Creates a recorder for a precision of elementary functions. `joins`: kernels over one domain are
    /// joined.
    pub(crate) fn new(precision: Precision, joins: bool) -> Recorder {
        Recorder {
            number: 0,
            tape: Tape::empty(precision, joins),
            hash: Quick::default(),
            bindings: Bindings::default(),
            buffers: QuickMap::default(),
            sizes: Sizes::default(),
            open: vec![],
            scalars: QuickMap::default(),
            constant: false,
            nodes: vec![],
            known: vec![],
            stack: vec![],
        }
    }

    /// Sets the settings of the kernels of the next tapes.
    pub(crate) fn set_kernels(&mut self, kernels: KernelSettings) {
        self.tape.kernels = kernels;
    }

    /// Records some nodes and returns the parts that the tape leaves out. If scalars are `constant`, as in a
    /// traced function, equal ones are merged, and simple ones become part of the code.
    pub(crate) fn record(&mut self, nodes: &[Node], constant: bool) -> Result<Bindings> {
        self.constant = constant;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.number = NEXT.fetch_add(1, Ordering::Relaxed);
        if self.known.len() > SPARSE * self.tape.entries.len().max(64) {
            // The last expression was much smaller than an earlier one. A new table is cheaper than clearing
            // the large one.
            self.known = vec![];
        }
        self.tape.entries.clear();
        self.tape.outputs.clear();
        self.tape.shapes.clear();
        self.tape.literals.clear();
        (self.tape.wide, self.tape.distant) = (false, false);
        self.hash = Quick::default();
        self.buffers.clear();
        self.sizes.clear(self.tape.joins && !constant);
        self.open.clear();
        self.scalars.clear();
        self.known.fill(0);
        let visited: Result<()> = nodes.iter().try_for_each(|node| {
            self.visit(node)?;
            let number = node.number_in(self.number).unwrap_or_default();
            let number = self.closed(number, None)?;
            self.tape.outputs.push(number);
            Ok(())
        });
        // The recorder keeps no node alive.
        self.nodes.clear();
        self.stack.clear();
        self.open.clear();
        let bindings = std::mem::take(&mut self.bindings);
        visited?;
        let bindings = self.with_shapes(bindings)?;
        if bindings.shapes.len() > MAX_SHAPES {
            let reason = format!("the expression has more than {MAX_SHAPES} different shapes; evaluate parts of it first");
            let shape = nodes.first().map(|node| node.bound().clone()).unwrap_or_default();
            return Err(Error::Range { operation: "evaluate".to_owned(), shape, reason });
        }
        Ok(bindings)
    }

    /// Merges shapes that are known to be equal, and records the class of each.
    fn with_shapes(&mut self, mut bindings: Bindings) -> Result<Bindings> {
        let (ids, shapes) = self.sizes.finish();
        if ids.len() > shapes.len() {
            self.tape.entries.iter_mut().for_each(|entry| entry.shape = ids[entry.shape as usize]);
        }
        let specialised = is_specialised(shapes.iter().map(|(shape, _)| shape));
        for (shape, length) in shapes {
            self.tape.wide |= shape.product() >= FAR;
            self.tape.distant |= shape.numbers().iter().any(|extent| *extent >= DISTANT);
            self.tape.shapes.push(ShapeClass::of(&shape, length, specialised));
            if self.constant {
                if let Some(tracing) = shape.tracing() {
                    bindings.symbols.join_tracing(tracing)?;
                }
                bindings.symbols.shapes.push(shape.clone());
            } else {
                // The plan of a traced function was requested for inspection.
                shape.fix();
            }
            bindings.shapes.push(shape.plain());
        }
        Ok(bindings)
    }

    /// Returns the last recorded tape, with its hash.
    pub(crate) fn tape(&self) -> (&Tape, u64) {
        (&self.tape, self.hash.finish())
    }

    fn visit(&mut self, root: &Node) -> Result<()> {
        self.stack.push(root.clone());
        while let Some(node) = self.stack.pop() {
            if node.number_in(self.number).is_some() {
                continue;
            }
            let mut missing: SmallVec<[Node; 4]> = SmallVec::new();
            if let Some(length) = node.length()
                && length.count().number_in(self.number).is_none()
            {
                self.stack.push(node.clone());
                self.stack.push(length.count().clone());
                continue;
            }
            let state = node.lock();
            let number = match &*state {
                State::Ready(buffer) => self.memory(&node, buffer)?,
                State::Symbolic(symbol) => self.symbol(&node, symbol)?,
                State::Pending(expression) => {
                    let unseen = expression.inputs.iter().filter(|input| input.number_in(self.number).is_none());
                    missing.extend(unseen.rev().cloned());
                    if missing.is_empty() { self.add(&node, expression)? } else { 0 }
                }
            };
            drop(state);
            if missing.is_empty() {
                node.set_number(self.number, number);
                if let Some((own, _)) = self.nodes.get_mut(number as usize)
                    && own.is_none()
                {
                    *own = Some(node);
                }
            } else {
                self.stack.push(node);
                self.stack.extend(missing);
            }
        }
        Ok(())
    }

    /// Adds an entry; `code` is the hash of everything that affects its code.
    fn push(&mut self, entry: Entry, code: u64, identity: u64) -> Id {
        self.hash.write_u64(code);
        self.tape.entries.push(entry);
        self.nodes.push((None, identity));
        (self.tape.entries.len() - 1) as Id
    }

    fn memory(&mut self, node: &Node, buffer: &Buffer<u8>) -> Result<Id> {
        let (slot, is_known) = self.slot(Leaf::Memory(buffer.address(), buffer.len()));
        if !is_known {
            self.bindings.buffers.push(Some(buffer.clone()));
        }
        self.leaf(node, slot, is_known)
    }

    fn symbol(&mut self, node: &Node, symbol: &Symbol) -> Result<Id> {
        self.bindings.symbols.join(symbol)?;
        let (slot, is_known) = self.slot(Leaf::Symbol(symbol.number()));
        if !is_known {
            self.bindings.buffers.push(None);
            self.bindings.symbols.buffers.push((slot, symbol.number()));
        }
        self.leaf(node, slot, is_known)
    }

    /// Returns the size of the first axis of a node if only the device knows it.
    fn length(&mut self, node: &Node) -> Result<Option<Size>> {
        let Some(length) = node.length() else { return Ok(None) };
        // Another thread may have promised that the length is equal to one that was not visited.
        let changed = || Error::Plan { what: "a length".into(), reason: "it changed while the plan was made".into() };
        let number = length.count().number_in(self.number).ok_or_else(changed)?;
        let count = self.closed(number, None)?;
        let bound = node.bound().numbers().first().copied().unwrap_or_default();
        Ok(Some(self.sizes.length(count, bound)))
    }

    /// Returns the slot of a buffer, and whether the buffer had a slot before.
    fn slot(&mut self, leaf: Leaf) -> (u32, bool) {
        let next = self.bindings.buffers.len() as u32;
        let slot = *self.buffers.entry(leaf).or_insert(next);
        (slot, slot != next)
    }

    fn leaf(&mut self, node: &Node, slot: u32, is_known: bool) -> Result<Id> {
        let kind = Kind::Leaf(slot);
        let length = self.length(node)?;
        if is_known {
            // A second use of memory with one type and shape is the node of the first.
            let is_same = |entry: &Entry| {
                entry.kind == kind
                    && entry.ty == node.ty()
                    && self.sizes.shape(entry.shape).is_identical(node.bound())
                    && self.sizes.length_of(entry.shape) == length
            };
            if let Some(same) = self.tape.entries.iter().position(is_same) {
                return Ok(same as Id);
            }
        }
        let shape = self.sizes.fresh_shape_with(node.bound(), length);
        let code = u64::from(slot) << 8 | node.bound().rank() as u64;
        Ok(self.push(Entry { kind, ty: node.ty(), shape, inputs: SmallVec::new() }, code, 0))
    }

    fn value(&mut self, lanes: &Lanes) -> u32 {
        self.bindings.values.push(lanes.clone());
        (self.bindings.values.len() - 1) as u32
    }

    fn int(&mut self, value: i64) -> Int {
        if value.abs() <= SMALL {
            return Int::Known(value);
        }
        self.given(value)
    }

    fn given(&mut self, value: i64) -> Int {
        self.bindings.integers.push(value);
        Int::Given((self.bindings.integers.len() - 1) as u32)
    }

    fn view(&mut self, view: &View, input: &Shape, from: Id) -> Kind {
        let mut maps = SmallVec::new();
        for (axis, (map, extent)) in view.axes.iter().zip(input.numbers()).enumerate() {
            self.tape.wide |= is_far(map.offset, map.stride, map.source, &view.shape);
            let offset = if view.is_traced(axis) {
                self.bindings.symbols.integers.push((self.bindings.integers.len() as u32, view.offset(axis)));
                self.given(map.offset)
            } else if is_reversal(map, *extent, &view.shape) {
                self.given(map.offset)
            } else {
                self.int(map.offset)
            };
            let stride = self.int(map.stride);
            maps.push(RecordedAxisMap { source: map.source, offset, stride, rule: map.rule });
        }
        let fill = view.fill.as_ref().map(|fill| self.value(fill));
        let growth = if self.tape.grows(from, &maps) { Growth::of(view.growth(input)) } else { Growth::None };
        Kind::View(maps, fill, growth)
    }

    /// Returns an equal entry, or the first free slot, by linear probing from the hash.
    fn find(&self, identity: u64, is_same: impl Fn(Id) -> bool) -> std::result::Result<Id, usize> {
        let mask = self.known.len() - 1;
        let mut place = identity as usize & mask;
        loop {
            match self.known[place].checked_sub(1) {
                None => return Err(place),
                Some(id) if self.nodes[id as usize].1 == identity && is_same(id) => return Ok(id),
                Some(_) => place = (place + 1) & mask,
            }
        }
    }

    /// Makes room in the table for one more entry.
    fn reserve(&mut self) {
        // Half of the slots stay free.
        let free = self.known.len().saturating_sub(self.nodes.len() + 1);
        if free > self.nodes.len() {
            return;
        }
        let size = (self.known.len() * 2).max(64);
        let before = std::mem::replace(&mut self.known, vec![0; size]);
        for number in before.into_iter().filter(|number| *number > 0) {
            if let Err(free) = self.find(self.nodes[number as usize - 1].1, |_| false) {
                self.known[free] = number;
            }
        }
    }

    /// Returns the entry of a node, or the number of an open one. All its inputs have a number.
    fn add(&mut self, node: &Node, expression: &Expression) -> Result<Id> {
        let numbers: SmallVec<[Id; 3]> =
            expression.inputs.iter().map(|input| input.number_in(self.number).unwrap_or_default()).collect();
        match &expression.op {
            Op::Fill(_) | Op::Position(_) | Op::View(_) | Op::Reshape => self.open(node, expression, &numbers),
            Op::Elementwise(_) => {
                let (inputs, shape) = self.aligned(&numbers, node.bound())?;
                self.entry(node, expression, inputs, |_| shape)
            }
            Op::Gather(..) => {
                let (indices, shape) = self.aligned(&numbers[1..], node.bound())?;
                let data = self.closed(numbers[0], None)?;
                self.entry(node, expression, std::iter::once(data).chain(indices).collect(), |_| shape)
            }
            Op::Concatenate(axis) => {
                let inputs = numbers.iter().map(|number| self.closed(*number, None)).collect::<Result<SmallVec<[Id; 3]>>>()?;
                let parts: SmallVec<[ShapeId; 4]> = inputs.iter().map(|id| self.tape.entry(*id).shape).collect();
                let axis = usize::from(*axis);
                let length = self.length(node)?.filter(|_| axis == 0);
                let result = |sizes: &mut Sizes| {
                    let mut list = sizes.list(parts[0]).clone();
                    for part in &parts[1..] {
                        for other in (0..list.len()).filter(|other| *other != axis) {
                            sizes.unite(list[other], sizes.list(*part)[other]);
                        }
                    }
                    list[axis] = length.unwrap_or_else(|| sizes.fresh());
                    sizes.push(list, node.bound())
                };
                self.entry(node, expression, inputs, result)
            }
            Op::Pattern(applied) => self.pattern(node, expression, applied, &numbers),
        }
    }

    fn pattern(&mut self, node: &Node, expression: &Expression, applied: &OperationResult, numbers: &[Id]) -> Result<Id> {
        let operation = applied.operation();
        let alike: SmallVec<[usize; 4]> = operation.alike(numbers.len());
        if let [first, _, ..] = &alike[..] {
            let numbers: SmallVec<[Id; 4]> = alike.iter().map(|input| numbers[*input]).collect();
            self.aligned(&numbers, expression.inputs[*first].bound())?;
        }
        let inputs = numbers.iter().map(|number| self.closed(*number, None)).collect::<Result<SmallVec<[Id; 3]>>>()?;
        let shapes: SmallVec<[ShapeId; 4]> = inputs.iter().map(|id| self.tape.entry(*id).shape).collect();
        let ranks: SmallVec<[usize; 4]> = expression.inputs.iter().map(|input| input.bound().rank()).collect();
        let extents = operation.extents(applied.result(), &ranks, node.bound().rank());
        // Another result of the same application may share sizes with this one.
        let same = |entry: &Entry| match &entry.kind {
            Kind::Pattern(other) if entry.inputs == inputs && other.is_same_operation(applied) => {
                Some((other.result(), entry.shape))
            }
            _ => None,
        };
        let others: SmallVec<[(u8, ShapeId); 4]> = match extents.iter().any(|extent| matches!(extent, Extent::New(_))) {
            true => self.tape.entries.iter().filter_map(same).collect(),
            false => SmallVec::new(),
        };
        let own = self.length(node)?;
        let result = |sizes: &mut Sizes| {
            let mut list = SizeList::new();
            list.extend(own);
            for extent in extents.iter().take(node.bound().rank()).skip(list.len()) {
                let known = match extent {
                    Extent::Of(input, axis) => shapes.get(*input).and_then(|shape| sizes.list(*shape).get(*axis)).copied(),
                    Extent::New(_) => others.iter().find_map(|(result, shape)| {
                        let theirs = operation.extents(*result, &ranks, sizes.list(*shape).len());
                        theirs.iter().position(|other| other == extent).map(|axis| sizes.list(*shape)[axis])
                    }),
                };
                list.push(known.unwrap_or_else(|| sizes.fresh()));
            }
            while list.len() < node.bound().rank() {
                list.push(sizes.fresh());
            }
            sizes.push(list, node.bound())
        };
        self.entry(node, expression, inputs.clone(), result)
    }

    /// Returns an entry whose shape depends on its operation and inputs only.
    fn entry(
        &mut self,
        node: &Node,
        expression: &Expression,
        inputs: SmallVec<[Id; 3]>,
        shape: impl FnOnce(&mut Sizes) -> ShapeId,
    ) -> Result<Id> {
        let shape = shape(&mut self.sizes);
        self.entry_in(node, expression, inputs, shape, true)
    }

    /// Returns the entry of a node with a shape. If `is_whole`, it equals another with the same operation,
    /// inputs and extents.
    fn entry_in(
        &mut self,
        node: &Node,
        expression: &Expression,
        inputs: SmallVec<[Id; 3]>,
        shape: ShapeId,
        is_whole: bool,
    ) -> Result<Id> {
        let op = &expression.op;
        let (mut code, mut rest) = (Quick::default(), Quick::default());
        hash(op, expression, &mut code, &mut rest);
        for input in &inputs {
            code.write_u32(*input);
        }
        node.ty().hash(&mut code);
        node.bound().numbers().hash(&mut rest);
        rest.write_u64(code.finish());
        let (code, identity) = (code.finish(), rest.finish());
        self.reserve();
        let found = self.find(identity, |id| {
            let entry = &self.tape.entries[id as usize];
            let is_same = |known: &Node| match &*known.lock() {
                State::Pending(Expression { op: Op::View(known), .. }) => matches!(op, Op::View(own) if own.is_identical(known)),
                State::Pending(known) => known.op == *op,
                State::Ready(_) | State::Symbolic(_) => false,
            };
            entry.inputs == inputs
                && entry.ty == node.ty()
                && self.sizes.shape(entry.shape).is_identical(node.bound())
                && (is_whole || self.sizes.are_equal(entry.shape, shape))
                && self.nodes[id as usize].0.as_ref().is_some_and(is_same)
        });
        let free = match found {
            Ok(id) => {
                self.sizes.unite_shapes(self.tape.entry(id).shape, shape);
                return Ok(id);
            }
            Err(free) => free,
        };
        let always = match op {
            Op::Pattern(applied) => {
                applied.operation().always().map(|(result, ty, shape)| (applied.with_result(result), ty, shape))
            }
            _ => None,
        };
        if let (Op::Pattern(applied), Some((own, ..))) = (op, &always)
            && applied == own
            && let Some(known) = self.result(own, &inputs)
        {
            return Ok(known);
        }
        let kind = self.kind(node, expression, &inputs)?;
        let id = self.push(Entry { kind, ty: node.ty(), shape, inputs: inputs.clone() }, code, identity);
        self.known[free] = id + 1;
        // Values that the kernel produces in any case are part of every plan that contains it.
        if let Some((own, ty, shape)) = always
            && self.result(&own, &inputs).is_none()
        {
            let shape = self.sizes.fresh_shape(&shape);
            self.push(Entry { kind: Kind::Pattern(own), ty, shape, inputs }, code, 0);
        }
        Ok(id)
    }

    /// Returns the slot of a bitwise equal constant.
    fn equal_constant(&self, scalar: &Scalar) -> Option<u32> {
        if !self.constant || scalar.symbol().is_some() || scalar.amount().is_some() {
            return None;
        }
        let (symbols, amounts) = (&self.bindings.symbols.values, &self.bindings.symbols.amounts);
        let is_same = |(slot, lanes): (u32, &Lanes)| {
            let mut pairs = lanes.iter().zip(scalar.lanes());
            let equal =
                lanes.len() == scalar.lanes().len() && pairs.all(|(a, b)| a.element() == b.element() && a.bits() == b.bits());
            equal && !symbols.iter().any(|(symbol, _)| *symbol == slot) && !amounts.iter().any(|(own, _)| *own == slot)
        };
        (0..).zip(&self.bindings.values).find(|value| is_same(*value)).map(|(slot, _)| slot)
    }

    /// Makes a constant part of the code if that makes the code shorter.
    fn literal(&mut self, slot: u32, scalar: &Scalar) {
        if !self.constant || scalar.symbol().is_some() || scalar.amount().is_some() {
            return;
        }
        if let [literal] = scalar.lanes()[..]
            && is_simple(literal)
        {
            self.hash.write_u64(literal.bits());
            self.tape.literals.push((slot, literal));
        }
    }

    fn kind(&mut self, node: &Node, expression: &Expression, inputs: &[Id]) -> Result<Kind> {
        Ok(match &expression.op {
            Op::Fill(scalar) => {
                let next = self.bindings.values.len() as u32;
                let same = self.equal_constant(scalar);
                let slot = *self.scalars.entry(scalar.number()).or_insert(same.unwrap_or(next));
                if slot == next {
                    self.value(scalar.traced_lanes());
                    self.literal(slot, scalar);
                    if let Some(amount) = scalar.amount() {
                        if let Some(tracing) = amount.tracing() {
                            self.bindings.symbols.join_tracing(tracing)?;
                        }
                        self.bindings.symbols.amounts.push((slot, amount.clone()));
                    }
                    if let Some(symbol) = scalar.symbol() {
                        self.bindings.symbols.join(symbol)?;
                        self.bindings.symbols.values.push((slot, symbol.number()));
                    }
                }
                Kind::Fill(slot)
            }
            Op::Elementwise(op) => Kind::Elementwise(op.clone()),
            Op::View(view) => self.view(view, expression.inputs[0].bound(), inputs[0]),
            Op::Reshape => {
                let (from, to) = (expression.inputs[0].bound(), node.bound());
                let splits = splits(from.numbers(), to.numbers());
                if from.is_traced() || to.is_traced() {
                    rely_on(&splits, from, to);
                }
                Kind::Reshape(splits)
            }
            Op::Position(axis) => Kind::Position(*axis),
            Op::Gather(rule, fill) => {
                let growth = match self.tape.grows(inputs[0], &[]) {
                    true => Growth::of(node.bound().product() / expression.inputs[0].bound().product().max(1)),
                    false => Growth::None,
                };
                Kind::Gather(*rule, fill.as_ref().map(|fill| self.value(fill)), growth)
            }
            Op::Concatenate(axis) => Kind::Concatenate(*axis),
            Op::Pattern(applied) => {
                let plain: SmallVec<[Shape; 4]> = match self.constant {
                    true => expression.inputs.iter().map(|input| input.bound().clone().plain()).collect(),
                    false => SmallVec::new(),
                };
                let shapes: SmallVec<[&Shape; 4]> = match self.constant {
                    true => plain.iter().collect(),
                    false => expression.inputs.iter().map(|input| input.bound()).collect(),
                };
                self.tape.wide |= applied.operation().counted(&shapes) >= FAR;
                Kind::Pattern(applied.clone())
            }
        })
    }

    /// Returns the node for this result of an operation on these inputs.
    fn result(&self, applied: &OperationResult, inputs: &[Id]) -> Option<Id> {
        let is_it =
            |entry: &Entry| entry.inputs.as_slice() == inputs && matches!(&entry.kind, Kind::Pattern(own) if own == applied);
        self.tape.entries.iter().position(is_it).map(|id| id as Id)
    }
}

/// Returns whether a map reverses an axis. Its offset then depends on a size, however small it is.
fn is_reversal(map: &AxisMap, extent: usize, shape: &Shape) -> bool {
    map.stride == -1
        && map.offset == extent as i64 - 1
        && map.source.is_some_and(|axis| shape.numbers()[usize::from(axis)] == extent)
}

/// Records the condition of a trace that axes are split like this.
fn rely_on(splits: &[u8], from: &Shape, to: &Shape) {
    let mut axis = 0;
    for (own, count) in splits.iter().enumerate() {
        let parts = (axis..axis + usize::from(*count)).map(|axis| to.amount(axis));
        let _ = parts.fold(Amount::from(1), |product, part| product.times(&part)).equals(&from.amount(own));
        axis += usize::from(*count);
    }
}

/// Returns the number of axes that each axis is split into; an empty list if the reshape does anything else.
pub(crate) fn splits(from: &[usize], to: &[usize]) -> SmallVec<[u8; 4]> {
    let (mut splits, mut rest) = (SmallVec::new(), to);
    for extent in from {
        let products = rest.iter().scan(1usize, |product, extent| {
            *product = product.saturating_mul(*extent);
            Some(*product)
        });
        let Some(count) = products.take(u8::MAX.into()).position(|product| product >= *extent).map(|last| last + 1) else {
            return SmallVec::new();
        };
        let (own, others) = rest.split_at(count);
        if own.iter().product::<usize>() != *extent {
            return SmallVec::new();
        }
        splits.push(count as u8);
        rest = others;
    }
    if rest.is_empty() { splits } else { SmallVec::new() }
}

/// Adds everything that affects the code to one hash. The other hash gets the rest that distinguishes
/// operations.
fn hash(op: &Op, expression: &Expression, code: &mut Quick, rest: &mut Quick) {
    let tag = |code: &mut Quick, tag: u64, more: u64| code.write_u64(more << 8 | tag);
    match op {
        Op::Fill(scalar) => {
            tag(code, 0, 0);
            rest.write_u64(scalar.number());
        }
        Op::Elementwise(op) => {
            tag(code, 1, 0);
            op.hash(code);
        }
        Op::View(view) => {
            for (axis, map) in view.axes.iter().enumerate() {
                let mut word = map.source.map_or(0xff, u64::from) << 8 | (map.rule as u64) << 16;
                let extent = expression.inputs[0].bound().numbers()[axis];
                let is_given = view.is_traced(axis) || is_reversal(map, extent, &view.shape);
                for (place, number, is_given) in [(24, map.offset, is_given), (32, map.stride, false)] {
                    if number.abs() <= SMALL && !is_given {
                        word |= u64::from(number as u8) << place;
                    } else {
                        word |= 0x80 << place;
                        rest.write_i64(number);
                    }
                }
                tag(code, 2, word);
            }
        }
        Op::Reshape => tag(code, 3, 0),
        Op::Position(axis) => tag(code, 4, u64::from(*axis)),
        Op::Gather(rule, _) => tag(code, 5, *rule as u64),
        Op::Concatenate(axis) => tag(code, 6, u64::from(*axis)),
        Op::Pattern(applied) => {
            tag(code, 7, 0);
            applied.hash(code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::elementwise::Elementwise;
    use crate::expr::node::Context;
    use broadloom_device::Device;
    use broadloom_interp::Interp;
    use broadloom_scalar::{BinaryOp, Literal};

    /// A large expression does not slow down later small ones.
    #[test]
    fn the_table_of_a_large_expression_is_given_up() -> Result<()> {
        let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
        let sum = |operations: u32| {
            (0..operations).try_fold(Node::fill(&context, Shape::from(4), &[Literal::from(0u32)])?, |sum, i| {
                Node::elementwise(
                    Elementwise::Binary(BinaryOp::Add),
                    &[&sum, &Node::fill(&context, Shape::from(4), &[Literal::from(i)])?],
                )
            })
        };
        let mut recorder = Recorder::new(Precision::Accurate, false);
        let (large, small) = (sum(5000)?, sum(5)?);
        recorder.record(&[large], false)?;
        assert!(recorder.known.len() >= 10_000);
        for _ in 0..2 {
            recorder.record(std::slice::from_ref(&small), false)?;
        }
        assert!(recorder.known.len() <= 1024, "{}", recorder.known.len());
        Ok(())
    }

    #[test]
    fn equal_constants_are_one_where_they_stay_what_they_are() -> Result<()> {
        let context = Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())));
        let fill = |value: f32| Node::fill(&context, Shape::from(4), &[Literal::from(value)]);
        let add = |a: f32, b: f32| Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&fill(a)?, &fill(b)?]);
        let nodes = [add(2.0, 2.0)?, add(0.0, -0.0)?];
        let mut recorder = Recorder::new(Precision::Accurate, false);
        assert_eq!(recorder.record(&nodes, false)?.values.len(), 4);
        assert_eq!(recorder.record(&nodes, true)?.values.len(), 3);
        Ok(())
    }

    #[test]
    fn axes_that_are_split_are_known() {
        let splits = |from: &[usize], to: &[usize]| splits(from, to).to_vec();
        assert_eq!(splits(&[128, 128], &[32, 4, 32, 4]), [2, 2]);
        assert_eq!(splits(&[5, 12], &[5, 3, 4]), [1, 2]);
        assert_eq!(splits(&[5, 6], &[5, 6]), [1, 1]);
        let no_splits: [(&[usize], &[usize]); 5] =
            [(&[6, 4], &[4, 6]), (&[3, 4], &[12]), (&[6], &[6, 1]), (&[0], &[0, 3]), (&[], &[1])];
        for (from, to) in no_splits {
            assert!(splits(from, to).is_empty(), "{from:?} {to:?}");
        }
    }
}
