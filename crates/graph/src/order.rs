//! Nodes that put elements into another order, or count them: matrix product, sort, histogram, pack, random numbers.

use crate::build::{possible, same_context};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::node::{Inputs, Node};
use crate::op::{Combine, Elementwise, Op, pack_name};
use crate::shape::Shape;
use crate::view::Boundary;
use broadloom_device::{MachineKind, Stream};
use broadloom_scalar::{BinaryOp, Builder, Element, Literal, Type};
use broadloom_skeleton::{SortKey, random};
use smallvec::smallvec;

impl Node {
    pub(crate) fn line(&self, operation: &str) -> Result<()> {
        if self.shape().rank() == 1 {
            return Ok(());
        }
        let reason = "an array with one axis is wanted".to_owned();
        Err(Error::Range { operation: operation.to_owned(), shape: self.shape().clone(), reason })
    }

    /// The product of two matrices of numbers.
    pub fn product(&self, other: &Node) -> Result<Node> {
        let operation = || "matrix product".to_owned();
        let context = same_context("matrix product", &[self, other])?;
        if self.ty() != other.ty() {
            return Err(Error::Types { operation: operation(), left: self.ty(), right: other.ty() });
        }
        if !self.ty().is_scalar() || self.ty() == Type::BOOL {
            return Err(Error::Type { operation: operation(), ty: self.ty() });
        }
        let ([rows, common], [same, columns]) = (self.shape().extents(), other.shape().extents()) else {
            return Err(Error::Shapes { operation: operation(), left: self.shape().clone(), right: other.shape().clone() });
        };
        if common != same {
            return Err(Error::Shapes { operation: operation(), left: self.shape().clone(), right: other.shape().clone() });
        }
        let shape = Shape::from([*rows, *columns]);
        possible("matrix product", &shape)?;
        if shape.is_empty() || *common == 0 {
            return Node::fill(context, shape, &[Literal::zero(self.ty().element())]);
        }
        // To bring the right factor into another order, as a CPU does, pays where it is used for many rows and columns.
        let is_cpu = context.device().machine().kind == MachineKind::Cpu;
        if is_cpu && self.ty() != Type::F16 && (*rows == 1 || *columns == 1) {
            return self.product_of_a_line(other, shape);
        }
        Ok(Node::pending(context, self.ty(), shape, Op::Product, smallvec![self.clone(), other.clone()]))
    }

    /// A product of one row or one column: nothing of the other factor is used twice.
    fn product_of_a_line(&self, other: &Node, shape: Shape) -> Result<Node> {
        let common = other.shape().extents()[0];
        let column = other.shape().extents()[1] == 1;
        let (matrix, line, along) = match column {
            true => (self, other.reshape(Shape::from([1, common]))?, 1),
            false => (other, self.reshape(Shape::from([common, 1]))?, 0),
        };
        let line = line.broadcast_to(matrix.shape())?;
        let products = Node::elementwise(Elementwise::Binary(BinaryOp::Mul), &[matrix, &line])?;
        products.reduce(Combine::Sum, &[along])?.reshape(shape)
    }

    /// All arrays, lines of one length, in the order of keys, the first of which counts most; equal ones keep their order. Keys come first in the
    /// result. NaN is behind all numbers.
    pub fn sort(keys: &[(&Node, SortKey)], values: &[&Node]) -> Result<Vec<Node>> {
        Node::sorted(keys, values, None)
    }

    /// The same, or within segments that are no longer than the pattern takes, and their offsets.
    pub(crate) fn sorted(keys: &[(&Node, SortKey)], values: &[&Node], segments: Option<(u32, &Node)>) -> Result<Vec<Node>> {
        let all: Vec<&Node> = keys.iter().map(|(node, _)| *node).chain(values.iter().copied()).collect();
        let context = same_context("sort", &all)?;
        for (index, node) in all.iter().enumerate() {
            node.line("sort")?;
            if node.shape() != all[0].shape() {
                return Err(Error::Shapes {
                    operation: "sort".into(),
                    left: all[0].shape().clone(),
                    right: node.shape().clone(),
                });
            }
            if index < keys.len() && (!node.ty().is_scalar() || node.ty() == Type::BOOL) {
                return Err(Error::Type { operation: "sort".into(), ty: node.ty() });
            }
        }
        if keys.is_empty() || all.len() > usize::from(u8::MAX) {
            let reason = format!("{} keys and {} values", keys.len(), values.len());
            return Err(Error::Range { operation: "sort".into(), shape: all[0].shape().clone(), reason });
        }
        let how: smallvec::SmallVec<[SortKey; 2]> = keys.iter().map(|(_, key)| *key).collect();
        let (longest, offsets) = segments.unzip();
        let inputs: Inputs = all.iter().copied().chain(offsets).cloned().collect();
        let sorted = |(result, node): (usize, &&Node)| {
            let op = Op::Sort { keys: how.clone(), longest, result: result as u8 };
            Node::pending(context, node.ty(), node.shape().clone(), op, inputs.clone())
        };
        Ok(all.iter().enumerate().map(sorted).collect())
    }

    /// How many elements, integers, are the number of each bin; all others are not counted.
    pub fn histogram(&self, bins: usize) -> Result<Node> {
        let shape = Shape::from(bins);
        possible("histogram", &shape)?;
        if !self.ty().is_scalar() || !self.ty().element().is_integer() {
            return Err(Error::Type { operation: "histogram".into(), ty: self.ty() });
        }
        if bins > i32::MAX as usize {
            let reason = format!("{bins} bins, and at most 2^31 - 1 are possible");
            return Err(Error::Range { operation: "histogram".into(), shape: self.shape().clone(), reason });
        }
        if self.shape().is_empty() || bins == 0 {
            return Node::fill(self.context(), shape, &[Literal::zero(Element::U32)]);
        }
        Ok(Node::pending(self.context(), Type::U32, shape, Op::Histogram, smallvec![self.clone()]))
    }

    /// The elements of a line where another is true. The host must know how many they are, as it does of all arrays: this computes them, and waits. See
    /// [`Node::pack_counted`].
    pub fn pack(&self, chosen: &Node) -> Result<Node> {
        let (values, count) = self.pack_counted(chosen)?;
        if self.shape().is_empty() {
            return Ok(values);
        }
        let context = self.context();
        context.evaluate(&[values.clone(), count.clone()])?;
        let failed = || Error::Plan { what: "pack".into(), reason: "a result is not in memory".into() };
        let found = count.read()?.lanes.first().and_then(|count| count.as_i128()).ok_or_else(failed)? as usize;
        let bytes = found * self.ty().bytes() as usize;
        let all = values.buffer().ok_or_else(failed)?;
        let mut buffer = all.slice(0, bytes).ok_or_else(failed)?;
        if bytes < all.len() / 4 {
            // Memory for many would live as long as a few do.
            let own = context.device().allocate(bytes)?;
            if bytes > 0 {
                own.copy_from(Stream::default(), &buffer)?;
            }
            buffer = own;
        }
        Node::from_buffer(context, self.ty(), Shape::from(found), buffer)
    }

    /// The elements of a line where another is true, at the start of a line as long as this one, and how many they are, a `u32`. What follows them is anything. Nothing
    /// waits.
    pub fn pack_counted(&self, chosen: &Node) -> Result<(Node, Node)> {
        self.packed(chosen, false)
    }

    /// The elements of a line where another is true, then all others, both in their order; and how many the former are, a `u32`. Nothing waits.
    pub fn partition(&self, chosen: &Node) -> Result<(Node, Node)> {
        self.packed(chosen, true)
    }

    fn packed(&self, chosen: &Node, rest: bool) -> Result<(Node, Node)> {
        let operation = || pack_name(rest).to_owned();
        let context = same_context(pack_name(rest), &[self, chosen])?;
        self.line(pack_name(rest))?;
        if chosen.ty() != Type::BOOL {
            return Err(Error::Types { operation: operation(), left: Type::BOOL, right: chosen.ty() });
        }
        if chosen.shape() != self.shape() {
            return Err(Error::Shapes { operation: operation(), left: self.shape().clone(), right: chosen.shape().clone() });
        }
        if self.shape().count() > u32::MAX as usize {
            let reason = "fewer than 2^32 elements can be counted".to_owned();
            return Err(Error::Range { operation: operation(), shape: self.shape().clone(), reason });
        }
        if self.shape().is_empty() {
            return Ok((self.clone(), Node::fill(context, Shape::from([]), &[Literal::zero(Element::U32)])?));
        }
        let inputs: Inputs = smallvec![chosen.clone(), self.clone()];
        let values = Node::pending(context, self.ty(), self.shape().clone(), Op::Pack { rest, count: false }, inputs.clone());
        Ok((values, Node::pending(context, Type::U32, Shape::from([]), Op::Pack { rest, count: true }, inputs)))
    }

    /// The elements of a line where another is true, then a value up to the length of the line; and how many there are, a `u32`. Nothing waits.
    pub fn pack_padded(&self, chosen: &Node, value: &[Literal]) -> Result<(Node, Node)> {
        let (values, count) = self.pack_counted(chosen)?;
        if self.shape().is_empty() {
            return Ok((values, count));
        }
        let f = Builder::function("packed");
        let (place, found) = (f.parameter("place", Type::I64), f.parameter("count", Type::U32));
        let place = f.select(f.lt(place, f.convert(found, Type::I64)), place, -1i64);
        let function = f.finish_function(&[place])?;
        let places = Node::position(self.context(), self.shape().clone(), 0, Element::I64)?;
        let places = Node::elementwise(Elementwise::Call(function, 0), &[&places, &count])?;
        Ok((values.gather(&[&places], &Boundary::Constant(value.into()))?, count))
    }

    /// Random numbers from 0 up to but not including 1, `f32` or `f64`: the same for the same seed on every device.
    pub fn random(context: &Context, shape: Shape, element: Element, seed: u64) -> Result<Node> {
        possible("random", &shape)?;
        let f = Builder::function("random");
        let (position, key) = (f.parameter("position", Type::U64), f.parameter("seed", Type::U64));
        let words = random::words_at(&f, position, key, 0);
        let result = match element {
            Element::F32 => random::uniform_f32(&f, words[0]),
            Element::F64 => random::uniform_f64(&f, words[0], words[1]),
            other => return Err(Error::Type { operation: "random".into(), ty: other.into() }),
        };
        let function = f.finish_function(&[result])?;
        let places = Node::position(context, Shape::from(shape.count()), 0, Element::U64)?;
        let seed = Node::fill(context, Shape::from([]), &[seed.into()])?;
        Node::elementwise(Elementwise::Call(function, 0), &[&places, &seed])?.reshape(shape)
    }
}
