//! Functions that read arrays: windows, queues, computed indices, sweeps; and arrays with any memory layout.

use super::{Generator, Known};
use broadloom_graph::{HostArray, Layout, Node, Reads, Result, Shape, Step};
use broadloom_scalar::{Accessor, AccessorKind, Builder, Element, Function, Lanes, Literal, Operand, Type, Value};
use broadloom_skeleton::{Staging, Tile};

/// Maximum number of elements of arrays that functions read: the oracle evaluates a function for each.
const MOST: usize = 500;

/// Combines two values: exact for exact operands, and never larger than inexact ones.
fn mix(f: &Builder, x: Value, y: Value) -> Value {
    match f.type_of(x).element() {
        Element::Bool => f.xor(x, y),
        element if element.is_float() => f.max(x, y),
        _ => f.add(f.shl(x, 1), y),
    }
}

/// Returns a function of a firing that takes some elements, peeks at more, and appends two.
pub(crate) fn firing(ty: Type, rate: usize) -> Result<Function> {
    let f = Builder::function("fire");
    let number = f.parameter("firing", Type::U32);
    let x = f.accessor("x", AccessorKind::Source, ty, 0);
    let out = f.accessor("out", AccessorKind::Sink, ty, 0);
    let sum = f.variable_with(f.peek(x, 2));
    f.for_range(0, rate as i32, |_| f.set(sum, mix(&f, f.get(sum), f.pop(x))));
    f.push(out, f.get(sum));
    f.push(out, f.peek(x, 0));
    Ok(f.finish_function(&[f.add(number, 1)])?)
}

impl Generator<'_> {
    pub(super) fn functions_of_arrays(&mut self) -> Result<()> {
        let kind = self.random.below(5);
        self.kind = ["window", "queue", "place", "sweep", "layout"][kind];
        let made = match kind {
            0 => self.windows(),
            1 => self.queues(),
            2 => {
                self.places()?;
                self.kind = "line";
                self.lines()
            }
            3 => self.sweeps(),
            _ => self.layouts(),
        };
        self.kind = "";
        made
    }

    /// Returns a small array that is not empty, of a suitable rank.
    fn small(&mut self, rank: impl Fn(usize) -> bool) -> Option<Known> {
        let fits = |known: &&Known| {
            let shape = known.node.shape();
            rank(shape.rank()) && (1..MOST).contains(&shape.count())
        };
        let fitting: Vec<Known> = self.pool.iter().filter(fits).cloned().collect();
        if fitting.is_empty() { None } else { Some(self.random.pick(&fitting).clone()) }
    }

    fn radius(&mut self) -> Result<Node> {
        Node::fill(self.context, Shape::from([]), &[Literal::from(self.random.below(3))])
    }

    /// Makes a function of elements within a radius along the last axis, in a loop, and of a neighbour on the
    /// other axes; with or without a declared window.
    fn windows(&mut self) -> Result<()> {
        let Some(a) = self.small(|rank| rank > 0) else { return Ok(()) };
        let (shape, boundary) = (a.node.shape().clone(), self.boundary(a.ty()));
        let rank = shape.rank();
        let index = *self.random.pick(&[Type::I32, Type::I64]);
        let f = Builder::function("window");
        let position: Vec<Value> = (0..rank).map(|_| f.parameter("i", index)).collect();
        let radius = f.parameter("radius", Type::I32);
        let x = f.accessor("x", AccessorKind::Window, a.ty(), rank as u8);
        let by: Vec<i64> = (1..rank).map(|_| self.random.between(-2, 2)).collect();
        let at = |last: Operand| f.window(x, &by.iter().map(|by| f.literal(*by).into()).chain([last]).collect::<Vec<Operand>>());
        let sum = f.variable_with(at(0.into()));
        f.for_range(f.neg(radius), f.add(radius, 1), |offset| f.set(sum, mix(&f, f.get(sum), at(offset.into()))));
        let function = f.finish_function(&[f.get(sum), f.convert(position[rank - 1], Type::I32)])?;
        let radius = self.radius()?;
        let results = if self.random.one_in(2) {
            Node::compute(&function, &shape, &[&radius], &[(&a.node, Reads::Window(boundary))], &[])?
        } else {
            let reach = vec![(1, 2); rank];
            let tile = Staging::Tile(Tile { columns: 1, rows: 2 });
            let staging = if self.random.one_in(2) { tile } else { Staging::Chosen };
            Node::window_in(&function, &[&a.node], &[&radius], &reach, &boundary.map(|lanes| vec![lanes]), staging)?
        };
        self.push(results[0].clone(), a.bound.max(4.0), a.exact);
        self.push(results[1].clone(), 1e30, true);
        Ok(())
    }

    fn queues(&mut self) -> Result<()> {
        let Some(a) = self.small(|rank| rank == 1) else { return Ok(()) };
        let rate = 1 + self.random.below(3);
        let firings = Shape::from(a.node.shape().count() / rate);
        let results = Node::compute(&firing(a.ty(), rate)?, &firings, &[], &[(&a.node, Reads::Queue(rate))], &[2])?;
        self.push(results[0].clone(), 1e30, true);
        self.push(results[1].clone(), a.bound, a.exact);
        Ok(())
    }

    /// Makes a function that reads at indices computed from its position.
    fn places(&mut self) -> Result<()> {
        let Some(a) = self.small(|_| true) else { return Ok(()) };
        let shape = self.shape();
        if shape.count() > MOST {
            return Ok(());
        }
        let boundary = self.boundary(a.ty());
        let (rank, from) = (shape.rank(), a.node.shape().rank());
        let f = Builder::function("places");
        let position: Vec<Value> = (0..rank).map(|_| f.parameter("i", Type::I32)).collect();
        let x: Accessor = f.accessor("x", AccessorKind::Input, a.ty(), from as u8);
        let mut indices = vec![];
        for axis in 0..from {
            let own = position.get(axis % rank.max(1)).copied().unwrap_or(f.literal(3i32));
            let (stride, offset) = (self.random.between(-2, 3), self.random.between(-4, 4));
            indices.push(Operand::from(f.add(f.mul(own, stride as i32), offset as i32)));
        }
        let value = f.read(x, &indices);
        let function = f.finish_function(&[mix(&f, value, value)])?;
        let results = Node::compute(&function, &shape, &[], &[(&a.node, Reads::At(boundary))], &[])?;
        self.push(results[0].clone(), a.bound.max(4.0), a.exact);
        Ok(())
    }

    /// Makes lines that one function computes and another reads, in memory or not.
    fn lines(&mut self) -> Result<()> {
        let Some(a) = self.small(|rank| rank > 0) else { return Ok(()) };
        let (mut shape, boundary) = (a.node.shape().extents().to_vec(), self.boundary(a.ty()));
        let rank = shape.len();
        let along = |name: &str, reverse: bool| {
            let f = Builder::function(name);
            let position: Vec<Value> = (0..rank).map(|_| f.parameter("i", Type::I32)).collect();
            let x = f.accessor("x", AccessorKind::Input, a.ty(), 1);
            let last = position[rank - 1];
            let place = if reverse { f.sub(7, last) } else { f.div(f.mul(last, 2), 3) };
            let both = mix(&f, f.read(x, &[place.into()]), f.read(x, &[f.add(place, 1).into()]));
            f.finish_function(&[both])
        };
        shape[rank - 1] = 1 + self.random.below(50);
        let inner = Shape::from(shape.clone());
        let line =
            Node::compute(&along("inner", true)?, &inner, &[], &[(&a.node, Reads::Along(rank - 1, boundary.clone()))], &[])?;
        shape[rank - 1] = 1 + self.random.below(50);
        let (function, shape) = (along("outer", false)?, Shape::from(shape));
        if shape.count().max(inner.count()) > 4 * MOST {
            return Ok(());
        }
        let inputs = [(&line[0], Reads::Along(rank - 1, boundary))];
        let relayed = if self.random.one_in(4) { None } else { Node::relay(&function, &shape, &[], &inputs)? };
        let results = match relayed {
            Some(results) => results,
            None => Node::compute(&function, &shape, &[], &inputs, &[])?,
        };
        self.push(results[0].clone(), a.bound.max(16.0), a.exact);
        Ok(())
    }

    /// Makes a sweep along any axis, in either direction.
    fn sweeps(&mut self) -> Result<()> {
        let Some(a) = self.small(|rank| rank > 0) else { return Ok(()) };
        let axis = self.random.below(a.node.shape().rank());
        let f = Builder::function("step");
        let (state, radius) = (f.parameter("state", a.ty()), f.parameter("radius", Type::I32));
        let x = f.accessor("x", AccessorKind::Window, a.ty(), 1);
        let next = mix(&f, f.window(x, &[0.into()]), state);
        let result = mix(&f, next, f.window(x, &[f.neg(radius).into()]));
        let function = f.finish_function(&[next, result])?;
        let boundary = self.boundary(a.ty()).map(|lanes| vec![lanes]);
        let (reach, backwards) = ((2, self.random.below(3) as u32), self.random.one_in(2));
        let start = self.value(a.ty());
        // Whole lines, or parts with their own starts.
        let mut extents = a.node.shape().extents().to_vec();
        extents[axis] = 1 + self.random.below(4);
        let shape = if self.random.one_in(2) { Shape::from([]) } else { Shape::from(extents) };
        let start = Node::fill(self.context, shape, &start)?;
        let radius = self.radius()?;
        let step = Step { function, states: 1, reach, backwards, boundary, split: None };
        let results = Node::sweep(&step, axis, &[&a.node], &[&start, &radius])?;
        self.push(results[0].clone(), a.bound.max(4.0), a.exact);
        Ok(())
    }

    /// Makes an array with a pitch, padding, planes, or reversed axes.
    fn layouts(&mut self) -> Result<()> {
        let (ty, shape) = (self.ty(), self.shape());
        if shape.count() > MOST || shape.is_empty() {
            return Ok(());
        }
        let lanes = ty.lanes() as i64;
        let planes = lanes > 1 && self.random.one_in(2);
        let mut size = if planes { 1 } else { lanes };
        let mut strides = vec![];
        let mut offset = self.random.between(0, 5);
        for extent in shape.extents().iter().rev() {
            let pad = if self.random.one_in(2) { 0 } else { self.random.between(0, 3) };
            let stride = size + pad;
            size = stride * *extent as i64;
            let backwards = self.random.one_in(5);
            offset += if backwards { stride * (*extent as i64 - 1) } else { 0 };
            strides.insert(0, if backwards { -stride } else { stride });
        }
        let layout = Layout { offset, strides, lanes: if planes { size + 1 } else { 1 } };
        let all = offset + size + if planes { (size + 1) * (lanes - 1) } else { 0 } + self.random.between(0, 9);
        let numbers: Vec<Literal> = (0..all).map(|_| self.literal(ty.element())).collect();
        let line = HostArray { ty: ty.element().into(), shape: Shape::from(numbers.len()), lanes: numbers.clone() };
        let buffer = self.context.device().upload(&line.to_bytes())?;
        let node = Node::from_layout(self.context, ty, shape.clone(), buffer, &layout)?;
        // The oracle reads the same expression; its elements are compared here.
        let mut expected: Vec<Literal> = vec![];
        for number in 0..shape.count() {
            let indices = shape
                .strides()
                .iter()
                .zip(shape.extents())
                .map(|(stride, extent)| (number / stride % extent) as i64)
                .collect::<Vec<i64>>();
            let first = indices.iter().zip(&layout.strides).fold(layout.offset, |sum, (index, stride)| sum + index * stride);
            expected.extend((0..lanes).map(|lane| numbers[(first + lane * layout.lanes) as usize]));
        }
        let found: Lanes = broadloom_graph::naive::evaluate(&node)?.lanes.into_iter().collect();
        assert_eq!(found.as_slice(), expected, "{layout:?} of {shape}");
        self.push(node, 4.0, true);
        Ok(())
    }
}
