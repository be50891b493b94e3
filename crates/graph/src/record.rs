//! Expressions written down: from nodes to the [tape](crate::tape) and to what it leaves out.
//!
//! Each node is looked at once, inputs before what uses them, and equal nodes become one entry. A node keeps its number itself, equal ones are found in a table of hashes,
//! and all lists are used again: an expression that is built in every step of a loop costs little besides.
//!
//! The *code hash* of an entry is of what shapes the code; the tape's is made of those of its entries. Hashes only lead to candidates: entries and tapes are compared as
//! a whole.

use crate::error::{Error, Result};
use crate::hash::{Quick, QuickMap};
use crate::node::{Expression, Node, State};
use crate::op::{Op, Scalar};
use crate::operation::Applied;
use crate::shape::Shape;
use crate::tape::{Along, Bindings, DISTANT, Entry, FAR, Growth, Id, Int, Kind, LONG, SMALL, ShapeClass, ShapeId, TALL, Tape};
use crate::template::Symbol;
use crate::view::View;
use broadloom_device::Buffer;
use broadloom_scalar::{Lanes, Precision};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes tapes.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// No other recording has it, of any context.
    number: u64,
    tape: Tape,
    hash: Quick,
    bindings: Bindings,
    buffers: QuickMap<Leaf, u32>,
    /// Numbers of shapes behind the first few.
    shapes: QuickMap<Shape, ShapeId>,
    /// Slots of scalars.
    scalars: QuickMap<u64, u32>,
    /// Whether scalars keep their values for as long as the tape is used, so that equal ones may be one.
    constant: bool,
    /// The node behind each entry, and the hash of what it does; entries without one are never equal to another.
    nodes: Vec<(Option<Node>, u64)>,
    /// Numbers of entries, each one up, at the places that their hashes say or behind; zero where there is none. At most half is taken.
    known: Vec<u32>,
    /// What is still to be looked at.
    stack: Vec<Node>,
}

/// Places of the table for each entry that are too many to be cleared.
const SPARSE: usize = 16;

/// Shapes that are looked through one by one.
const FEW: usize = 16;

/// Different shapes that an expression has at most.
const MAX_SHAPES: usize = ShapeId::MAX as usize;

/// What tells memory apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Leaf {
    /// An address and a length.
    Memory(u64, usize),
    Symbol(u32),
}

impl Recorder {
    pub(crate) fn new(precision: Precision) -> Recorder {
        Recorder {
            number: 0,
            tape: Tape::empty(precision),
            hash: Quick::default(),
            bindings: Bindings::default(),
            buffers: QuickMap::default(),
            shapes: QuickMap::default(),
            scalars: QuickMap::default(),
            constant: false,
            nodes: vec![],
            known: vec![],
            stack: vec![],
        }
    }

    /// Writes down some nodes, and gives what the tape leaves out. Where scalars are `constant`, as in a function that is traced, equal ones become one.
    pub(crate) fn record(&mut self, nodes: &[Node], constant: bool) -> Result<Bindings> {
        self.constant = constant;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        self.number = NEXT.fetch_add(1, Ordering::Relaxed);
        if self.known.len() > SPARSE * self.tape.entries.len().max(64) {
            // The last expression was much smaller than some before it: to clear such a table costs more than to make one.
            self.known = vec![];
        }
        self.tape.entries.clear();
        self.tape.outputs.clear();
        self.tape.shapes.clear();
        (self.tape.wide, self.tape.distant) = (false, false);
        self.hash = Quick::default();
        self.buffers.clear();
        self.shapes.clear();
        self.scalars.clear();
        self.known.fill(0);
        let visited = nodes.iter().try_for_each(|node| {
            self.visit(node)?;
            let number = node.number_in(self.number).unwrap_or_default();
            self.tape.outputs.push(number);
            Ok(())
        });
        // Nodes live no longer than those who use them.
        self.nodes.clear();
        self.stack.clear();
        let bindings = std::mem::take(&mut self.bindings);
        if bindings.shapes.len() > MAX_SHAPES {
            let reason = format!("the expression has more than {MAX_SHAPES} different shapes; evaluate parts of it first");
            let shape = nodes.first().map(|node| node.shape().clone()).unwrap_or_default();
            return Err(Error::Range { operation: "evaluate".to_owned(), shape, reason });
        }
        visited.map(|()| bindings)
    }

    /// What was written last, with its hash.
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
            let state = node.lock();
            let number = match &*state {
                State::Ready(buffer) => self.memory(&node, buffer),
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

    fn shape(&mut self, shape: &Shape) -> ShapeId {
        let first = self.bindings.shapes.iter().take(FEW).position(|own| own == shape);
        if let Some(known) = first.map(|known| known as ShapeId).or_else(|| self.shapes.get(shape).copied()) {
            return known;
        }
        self.tape.wide |= shape.count() >= FAR;
        self.tape.distant |= shape.extents().iter().any(|extent| *extent >= DISTANT);
        let rows = shape.rank() < 2 || shape.extents().last().is_some_and(|last| *last >= LONG);
        let tall = shape.rank() >= 2 && shape.extents()[shape.rank() - 2] >= TALL;
        self.tape.shapes.push(ShapeClass { rank: shape.rank() as u8, rows, tall });
        let id = self.bindings.shapes.len() as ShapeId;
        if self.bindings.shapes.len() >= FEW {
            self.shapes.insert(shape.clone(), id);
        }
        self.bindings.shapes.push(shape.clone());
        id
    }

    /// Adds an entry; `code` is the hash of what shapes the code of it.
    fn push(&mut self, entry: Entry, code: u64, identity: u64) -> Id {
        self.hash.write_u64(code);
        self.tape.entries.push(entry);
        self.nodes.push((None, identity));
        (self.tape.entries.len() - 1) as Id
    }

    fn memory(&mut self, node: &Node, buffer: &Buffer<u8>) -> Id {
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
        Ok(self.leaf(node, slot, is_known))
    }

    /// The slot of a buffer, and whether it had one before.
    fn slot(&mut self, leaf: Leaf) -> (u32, bool) {
        let next = self.bindings.buffers.len() as u32;
        let slot = *self.buffers.entry(leaf).or_insert(next);
        (slot, slot != next)
    }

    fn leaf(&mut self, node: &Node, slot: u32, is_known: bool) -> Id {
        let shape = self.shape(node.shape());
        let kind = Kind::Leaf(slot);
        if is_known {
            // The same memory in the same shape is the same node.
            let is_same = |entry: &Entry| entry.kind == kind && entry.ty == node.ty() && entry.shape == shape;
            if let Some(same) = self.tape.entries.iter().position(is_same) {
                return same as Id;
            }
        }
        let code = u64::from(slot) << 32 | u64::from(shape);
        self.push(Entry { kind, ty: node.ty(), shape, inputs: SmallVec::new() }, code, 0)
    }

    fn value(&mut self, lanes: &Lanes) -> u32 {
        self.bindings.values.push(lanes.clone());
        (self.bindings.values.len() - 1) as u32
    }

    fn int(&mut self, value: i64) -> Int {
        if value.abs() <= SMALL {
            return Int::Known(value);
        }
        self.bindings.integers.push(value);
        Int::Given((self.bindings.integers.len() - 1) as u32)
    }

    fn view(&mut self, view: &View, input: &Shape) -> Kind {
        let mut maps = SmallVec::new();
        for map in &view.axes {
            let last = map.source.map_or(0, |axis| view.shape.extents()[usize::from(axis)].saturating_sub(1) as i64);
            let end = map.offset.saturating_add(map.stride.saturating_mul(last));
            self.tape.wide |= map.offset.abs().max(end.abs()).max(map.stride.abs()) >= 1 << 30;
            let (offset, stride) = (self.int(map.offset), self.int(map.stride));
            maps.push(Along { source: map.source, offset, stride, rule: map.rule });
        }
        let fill = view.fill.as_ref().map(|fill| self.value(fill));
        Kind::View(maps, fill, Growth::of(view.growth(input)))
    }

    /// An entry that does the same, at the place in the table that its hash leads to; or the first free place.
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
        if (self.nodes.len() + 1) * 2 <= self.known.len() {
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

    fn add(&mut self, node: &Node, expression: &Expression) -> Result<Id> {
        let op = &expression.op;
        let inputs: SmallVec<[Id; 3]> =
            expression.inputs.iter().map(|input| input.number_in(self.number).unwrap_or_default()).collect();
        let shape = self.shape(node.shape());
        let (mut code, mut rest) = (Quick::default(), Quick::default());
        hash(op, &mut code, &mut rest);
        for input in &inputs {
            code.write_u32(*input);
        }
        code.write_u16(shape);
        node.ty().hash(&mut code);
        rest.write_u64(code.finish());
        let (code, identity) = (code.finish(), rest.finish());
        self.reserve();
        let found = self.find(identity, |id| {
            let entry = &self.tape.entries[id as usize];
            let is_same = |known: &Node| matches!(&*known.lock(), State::Pending(known) if known.op == *op);
            entry.inputs == inputs
                && entry.ty == node.ty()
                && entry.shape == shape
                && self.nodes[id as usize].0.as_ref().is_some_and(is_same)
        });
        let free = match found {
            Ok(id) => return Ok(id),
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
        let kind = self.kind(node, expression)?;
        let id = self.push(Entry { kind, ty: node.ty(), shape, inputs: inputs.clone() }, code, identity);
        self.known[free] = id + 1;
        // What the kernel gives in any case is part of every plan that has it.
        if let Some((own, ty, shape)) = always
            && self.result(&own, &inputs).is_none()
        {
            let shape = self.shape(&shape);
            self.push(Entry { kind: Kind::Pattern(own), ty, shape, inputs }, code, 0);
        }
        Ok(id)
    }

    /// The slot of a constant that is the same, bit by bit.
    fn equal_constant(&self, scalar: &Scalar) -> Option<u32> {
        if !self.constant || scalar.symbol().is_some() {
            return None;
        }
        let symbols = &self.bindings.symbols.values;
        let is_same = |(slot, lanes): (u32, &Lanes)| {
            let mut pairs = lanes.iter().zip(scalar.lanes());
            let equal =
                lanes.len() == scalar.lanes().len() && pairs.all(|(a, b)| a.element() == b.element() && a.bits() == b.bits());
            equal && !symbols.iter().any(|(symbol, _)| *symbol == slot)
        };
        (0..).zip(&self.bindings.values).find(|value| is_same(*value)).map(|(slot, _)| slot)
    }

    fn kind(&mut self, node: &Node, expression: &Expression) -> Result<Kind> {
        Ok(match &expression.op {
            Op::Fill(scalar) => {
                let next = self.bindings.values.len() as u32;
                let same = self.equal_constant(scalar);
                let slot = *self.scalars.entry(scalar.number()).or_insert(same.unwrap_or(next));
                if slot == next {
                    self.value(scalar.lanes());
                    if let Some(symbol) = scalar.symbol() {
                        self.bindings.symbols.join(symbol)?;
                        self.bindings.symbols.values.push((slot, symbol.number()));
                    }
                }
                Kind::Fill(slot)
            }
            Op::Elementwise(op) => Kind::Elementwise(op.clone()),
            Op::View(view) => self.view(view, expression.inputs[0].shape()),
            Op::Reshape => Kind::Reshape(splits(expression.inputs[0].shape().extents(), node.shape().extents())),
            Op::Position(axis) => Kind::Position(*axis),
            Op::Gather(rule, fill) => {
                let growth = Growth::of(node.shape().count() / expression.inputs[0].shape().count().max(1));
                Kind::Gather(*rule, fill.as_ref().map(|fill| self.value(fill)), growth)
            }
            Op::Concatenate(axis) => Kind::Concatenate(*axis),
            Op::Pattern(applied) => {
                let shapes: SmallVec<[&Shape; 4]> = expression.inputs.iter().map(|input| input.shape()).collect();
                self.tape.wide |= applied.operation().counted(&shapes) >= FAR;
                Kind::Pattern(applied.clone())
            }
        })
    }

    /// The node that is this result of an operation on these inputs.
    fn result(&self, applied: &Applied, inputs: &[Id]) -> Option<Id> {
        let is_it =
            |entry: &Entry| entry.inputs.as_slice() == inputs && matches!(&entry.kind, Kind::Pattern(own) if own == applied);
        self.tape.entries.iter().position(is_it).map(|id| id as Id)
    }
}

/// Into how many axes of a shape each axis of another is split, where nothing else happens to it; else nothing.
fn splits(from: &[usize], to: &[usize]) -> SmallVec<[u8; 4]> {
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

/// Adds what shapes the code to one hash; to the other what does not, but tells operations apart.
fn hash(op: &Op, code: &mut Quick, rest: &mut Quick) {
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
            for map in &view.axes {
                let mut word = map.source.map_or(0xff, u64::from) << 8 | (map.rule as u64) << 16;
                for (place, number) in [(24, map.offset), (32, map.stride)] {
                    if number.abs() <= SMALL {
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
    use crate::{Context, Elementwise};
    use broadloom_device::Device;
    use broadloom_interp::Interp;
    use broadloom_scalar::{BinaryOp, Literal};

    /// A large expression does not make small ones behind it dear.
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
        let mut recorder = Recorder::new(Precision::Accurate);
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
        let mut recorder = Recorder::new(Precision::Accurate);
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
