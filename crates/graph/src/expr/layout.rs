//! Foreign memory: buffers with a pitch, planes, padding or fields of records as arrays, without a copy.
//!
//! The layout is checked when the array is made, so no access is outside the buffer. If the strides are
//! multiples of each other, the array is a view of a dense one; the planner knows most about views. Otherwise
//! it is a gather whose indices are computed from the position.

use crate::expr::check::possible;
use crate::expr::elementwise::Elementwise;
use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Node};
use crate::expr::op::{Op, zeros};
use crate::expr::shape::Shape;
use crate::expr::view::AxisMap;
use broadloom_device::Buffer;
use broadloom_scalar::{Builder, Element, Literal, Type, Value};
use broadloom_skeleton::Rule;
use smallvec::smallvec;

/// Positions of the elements of an array in a buffer. All numbers count single lanes: numbers of the element
/// type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Index of the first lane of the first element.
    pub offset: i64,
    /// Distance between neighbours along each axis.
    pub strides: Vec<i64>,
    /// Distance between neighbouring lanes of an element: 1 if they are interleaved, the size of a plane if
    /// they are in planes.
    pub lanes: i64,
}

impl Layout {
    /// Returns the layout of rows of contiguous elements. `pitch` is the distance of rows in lanes, as in an
    /// image.
    pub fn pitched(ty: Type, pitch: i64) -> Layout {
        Layout { offset: 0, strides: vec![pitch, ty.lanes() as i64], lanes: 1 }
    }

    /// Returns the minimum and the maximum lane index of an array that is not empty; `None` beyond 64 bits.
    fn range(&self, ty: Type, shape: &Shape) -> Option<(i64, i64)> {
        let counts = shape.extents().iter().chain([&ty.lanes()]).map(|count| *count as i64 - 1).collect::<Vec<i64>>();
        let (mut low, mut high) = (self.offset, self.offset);
        for (count, stride) in counts.into_iter().zip(self.strides.iter().chain([&self.lanes])) {
            let way = count.checked_mul(*stride)?;
            low = low.checked_add(way.min(0))?;
            high = high.checked_add(way.max(0))?;
        }
        Some((low, high))
    }
}

impl Node {
    /// Creates an array from device memory with any layout. Nothing is copied.
    ///
    /// ```
    /// use broadloom_device::Device;
    /// use broadloom_graph::{Context, Layout, Node, Shape};
    /// use broadloom_interp::Interp;
    /// use broadloom_scalar::Type;
    ///
    /// let context = Context::new(&Device::new(Interp::new(Default::default())));
    /// // Two rows of three pixels, with two bytes of padding behind each.
    /// let buffer = context.device().upload(&[1u8, 2, 3, 0, 0, 4, 5, 6, 0, 0])?;
    /// let image = Node::from_layout(&context, Type::U8, Shape::from([2, 3]), buffer, &Layout::pitched(Type::U8, 5))?;
    /// assert_eq!(image.read()?.to_bytes(), [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), broadloom_graph::Error>(())
    /// ```
    pub fn from_layout(context: &Context, ty: Type, shape: Shape, buffer: Buffer<u8>, layout: &Layout) -> Result<Node> {
        possible("from_layout", &shape)?;
        let bad = |reason: String| Error::Range { operation: "from_layout".into(), shape: shape.clone(), reason };
        if layout.strides.len() != shape.rank() {
            return Err(bad(format!("the layout has {} strides", layout.strides.len())));
        }
        let (size, lanes) = (ty.element().bytes() as usize, ty.lanes() as i64);
        let held = buffer.len() / size;
        if !buffer.address().is_multiple_of(size as u64) {
            return Err(bad(format!("the buffer does not start at a multiple of {size} bytes")));
        }
        if shape.is_empty() {
            return Node::fill(context, shape, &zeros(ty));
        }
        match layout.range(ty, &shape) {
            Some((low, high)) if low >= 0 && (high as usize) < held => {}
            range => {
                let range = range.map_or("beyond 64 bits".into(), |(low, high)| format!("from {low} to {high}"));
                return Err(bad(format!("its layout reaches numbers {range} of a buffer that has {held}")));
            }
        }
        // Vectors are accessed as such only if each starts at a multiple of its size.
        let aligned = lanes == 1 || buffer.address().is_multiple_of(u64::from(ty.bytes()));
        if let Some(view) = dense(context, ty, &shape, &buffer, layout)?.filter(|_| aligned) {
            return Ok(view);
        }
        let whole = buffer.slice(0, held * size).ok_or_else(|| bad("the buffer has no such part".into()))?;
        let mut numbers = layout.strides.iter().chain([&layout.offset]);
        let together = lanes == 1 || layout.lanes == 1 && held as i64 % lanes == 0 && numbers.all(|n| n % lanes == 0);
        if together && aligned {
            let line = Node::from_buffer(context, ty, Shape::from(held / lanes as usize), whole)?;
            let strides: Vec<i64> = layout.strides.iter().map(|stride| stride / lanes).collect();
            return line.strided(&shape, layout.offset / lanes, &strides);
        }
        let line = Node::from_buffer(context, ty.element().into(), Shape::from(held), whole)?;
        let lane = |lane: i64| line.strided(&shape, layout.offset + lane * layout.lanes, &layout.strides);
        let lanes = (0..lanes).map(lane).collect::<Result<Vec<Node>>>()?;
        Node::elementwise(Elementwise::Vector, &lanes.iter().collect::<Vec<&Node>>())
    }

    /// Returns the elements of a one-dimensional array at an offset and strides, all of which are inside it.
    fn strided(&self, shape: &Shape, offset: i64, strides: &[i64]) -> Result<Node> {
        let context = self.context();
        let f = Builder::function("place");
        let position: Vec<Value> = strides.iter().map(|_| f.parameter("i", Type::I64)).collect();
        let numbers: Vec<Value> = (0..=strides.len()).map(|_| f.parameter("stride", Type::I64)).collect();
        let place =
            position.iter().zip(&numbers[1..]).fold(numbers[0], |sum, (index, stride)| f.add(sum, f.mul(*index, *stride)));
        let place = Elementwise::Call(f.finish_function(&[place])?, 0);
        let mut inputs = vec![];
        for axis in 0..strides.len() {
            inputs.push(Node::position(context, shape.clone(), axis, Element::I64)?);
        }
        for number in std::iter::once(&offset).chain(strides) {
            inputs.push(Node::fill(context, shape.clone(), &[Literal::from(*number)])?);
        }
        let place = Node::elementwise(place, &inputs.iter().collect::<Vec<&Node>>())?;
        Ok(Node::pending(context, self.ty(), shape.clone(), Op::Gather(Rule::Inside, None), smallvec![self.clone(), place]))
    }
}

/// Returns the array as a view of a dense one, if strides are multiples of each other and lanes are
/// contiguous; else `None`.
fn dense(context: &Context, ty: Type, shape: &Shape, buffer: &Buffer<u8>, layout: &Layout) -> Result<Option<Node>> {
    let (size, lanes) = (ty.bytes() as usize, ty.lanes() as i64);
    if lanes > 1 && layout.lanes != 1 || layout.offset % lanes != 0 {
        return Ok(None);
    }
    // Extents of the dense array: the first extent is that of the array, the others are quotients of
    // neighbouring strides.
    let mut extents: Vec<usize> = shape.extents().iter().copied().take(1).collect();
    for (axis, pair) in layout.strides.windows(2).enumerate() {
        let fits = pair[1] > 0 && pair[0] % pair[1] == 0 && pair[0] / pair[1] >= shape.extents()[axis + 1] as i64;
        if !fits {
            return Ok(None);
        }
        extents.push((pair[0] / pair[1]) as usize);
    }
    // If neighbours along the last axis are not adjacent, the dense array has one more axis.
    let apart = layout.strides.last().map_or(1, |last| last / lanes);
    if apart < 1 || layout.strides.last().is_some_and(|last| last % lanes != 0) {
        return Ok(None);
    }
    let mut maps: Vec<AxisMap> = (0..shape.rank()).map(AxisMap::same).collect();
    if apart > 1 {
        extents.push(apart as usize);
        maps.push(AxisMap::fixed(0));
    }
    let whole = Shape::from(extents);
    if !whole.is_possible() {
        return Ok(None);
    }
    let Some(part) = buffer.slice(layout.offset as usize / lanes as usize * size, whole.count() * size) else {
        return Ok(None);
    };
    let whole = Node::from_buffer(context, ty, whole, part)?;
    Ok(Some(whole.affine("from_layout", &maps, shape.clone(), None)?))
}
