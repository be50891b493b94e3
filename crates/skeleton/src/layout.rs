//! Layouts: the mapping from the indices of an accessor to the elements of a buffer.
//!
//! A function reads and writes at positions, in windows and in queues. It does not know the places of
//! elements in memory. Binding a function ([`Source::bound`], [`Sink::bound`]) puts an [`Access`] with a
//! [`Layout`] behind each of its accessors. The result reads and writes buffers at one index. Patterns take
//! such functions, so every pattern takes bound functions.
//!
//! | memory | layout |
//! | --- | --- |
//! | contiguous rows | `Layout::strided(&[columns, 1.into()])` |
//! | an image with a pitch, or a region of a larger image | the pitch as the stride of rows, [`Layout::offset`] for the first pixel |
//! | interleaved channels, in a type of several lanes | the stride of a pixel, [`Layout::lanes_apart`] by 1 |
//! | planes in one buffer | [`Layout::lanes_apart`] by the size of a plane |
//! | planes or fields in separate buffers | [`Layout::lanes_in_buffers`] |
//! | a field of an array of records | the size of a record as stride, [`Layout::offset`] for the field, both in elements of the field |
//!
//! The numbers of a layout are constants of the code or scalars of a call. With scalars, an image with
//! another pitch compiles nothing.

use crate::{Boundary, Error, Result, Sink, Source};
use broadloom_scalar::{Accessor, AccessorDecl, AccessorKind, Binding, Builder, Function, Lanes, Literal, Type, Value, Variable};

/// A number of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// A constant of the code.
    Constant(i64),
    /// A scalar of the call, of type `i64`.
    Scalar,
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Constant(value)
    }
}

/// The placement of the lanes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Arrangement {
    /// Contiguous, aligned, accessed at once. Strides count whole elements.
    Together,
    /// At this distance from each other. Strides count lanes.
    Apart(Number),
    /// Each in a separate buffer.
    Buffers,
}

/// The places of elements in memory: the element at indices *i, j, …* is at *offset + i·stride₀ + j·stride₁ +
/// …*.
/// A stride that is larger than the extent that it steps over means padding. Strides may be zero or negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    strides: Vec<Number>,
    offset: Number,
    lanes: Arrangement,
}

impl Layout {
    /// Returns the layout of a line of contiguous elements.
    pub fn line() -> Layout {
        Layout::strided(&[Number::Constant(1)])
    }

    /// Returns a layout with a stride for each index, in elements.
    pub fn strided(strides: &[Number]) -> Layout {
        Layout { strides: strides.to_vec(), offset: Number::Constant(0), lanes: Arrangement::Together }
    }

    /// Returns a layout of rows with a pitch, in elements. The pitch is a scalar of the call.
    pub fn pitched() -> Layout {
        Layout::strided(&[Number::Scalar, Number::Constant(1)])
    }

    /// Sets the offset of the first element from the start of the buffer, in the unit of strides.
    #[must_use]
    pub fn offset(mut self, offset: impl Into<Number>) -> Layout {
        self.offset = offset.into();
        self
    }

    /// Sets the distance between the lanes of an element, as for planes. Strides and the offset then count
    /// lanes.
    #[must_use]
    pub fn lanes_apart(mut self, distance: impl Into<Number>) -> Layout {
        self.lanes = Arrangement::Apart(distance.into());
        self
    }

    /// Places each lane of an element in a separate buffer. Strides and the offset count elements of each
    /// buffer.
    #[must_use]
    pub fn lanes_in_buffers(mut self) -> Layout {
        self.lanes = Arrangement::Buffers;
        self
    }

    /// Returns the number of indices.
    pub fn rank(&self) -> usize {
        self.strides.len()
    }

    /// Returns the numbers in the order in which a call passes the scalar ones: strides, offset, distance of
    /// lanes.
    pub fn numbers(&self) -> Vec<Number> {
        let lanes = match self.lanes {
            Arrangement::Apart(distance) => Some(distance),
            Arrangement::Together | Arrangement::Buffers => None,
        };
        self.strides.iter().copied().chain([self.offset]).chain(lanes).collect()
    }

    /// Returns the number of buffers that hold elements of a type.
    pub fn buffers(&self, ty: Type) -> usize {
        if self.lanes == Arrangement::Buffers { ty.lanes() } else { 1 }
    }

    /// Returns the element type of a buffer that holds elements of a type.
    fn stored(&self, ty: Type) -> Type {
        if self.lanes == Arrangement::Together { ty } else { ty.element().into() }
    }
}

/// The memory of an accessor: a layout, and the mapping from the accessor's indices to those of the layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The indices of an input or output are those of the layout. All of them must be inside the buffer.
    Element(Layout),
    /// The offsets of a window are added to the position of the thread.
    Window {
        /// Place of each element in the buffer.
        layout: Layout,
        /// For each index of the layout, the index of the position to which offsets are added.
        around: Vec<usize>,
        /// The elements outside. The extents of the axes are scalars of the call, after those of the layout.
        boundary: Boundary,
    },
    /// A queue. Each firing takes or appends `rate` elements. The number of the firing is an index of the
    /// position.
    /// Elements that are peeked beyond those that a firing takes must be in the buffer too.
    Queue {
        /// The layout, of one index.
        layout: Layout,
        /// The index of the position.
        axis: usize,
        /// Number of elements per firing. As a scalar it follows those of the layout.
        rate: Number,
    },
}

impl From<Layout> for Access {
    fn from(layout: Layout) -> Access {
        Access::Element(layout)
    }
}

impl Access {
    /// Returns the map from positions to places in the buffer.
    pub fn layout(&self) -> &Layout {
        match self {
            Access::Element(layout) | Access::Window { layout, .. } | Access::Queue { layout, .. } => layout,
        }
    }

    /// Returns the number of scalars that a call passes for the access.
    pub fn scalars(&self) -> usize {
        let own = match self {
            Access::Element(_) => vec![],
            Access::Window { layout, .. } => vec![Number::Scalar; layout.rank()],
            Access::Queue { rate, .. } => vec![*rate],
        };
        self.layout().numbers().iter().chain(&own).filter(|number| **number == Number::Scalar).count()
    }

    fn check(&self, function: &Function, accessor: &AccessorDecl, axes: usize) -> Result<()> {
        let bad = |reason: String| Err(Error::Function { function: function.name().to_owned(), reason });
        let name = &accessor.name;
        let (fits, rank) = match (self, accessor.kind) {
            (Access::Element(_), AccessorKind::Input | AccessorKind::Output) => (true, usize::from(accessor.rank)),
            (Access::Window { around, .. }, AccessorKind::Window) => (around.len() == self.layout().rank(), accessor.rank.into()),
            (Access::Queue { .. }, AccessorKind::Source | AccessorKind::Sink) => (true, 1),
            _ => (false, 0),
        };
        if !fits || self.layout().rank() != rank {
            return bad(format!(
                "`{name}` is bound to a layout of {} indices in another way than it is used",
                self.layout().rank()
            ));
        }
        let positions: &[usize] = match self {
            Access::Element(_) => &[],
            Access::Window { around, .. } => around,
            Access::Queue { axis, .. } => std::slice::from_ref(axis),
        };
        if let Some(axis) = positions.iter().find(|axis| **axis >= axes) {
            return bad(format!("`{name}` is bound to index {axis} of a position with {axes} indices"));
        }
        if let Access::Window { boundary: Boundary::Constant(lanes), .. } = self {
            let given = lanes.first().and_then(|first| Type::vector(first.element(), lanes.len()));
            if given != Some(accessor.ty) || lanes.iter().any(|lane| lane.element() != accessor.ty.element()) {
                return bad(format!("the constant outside of `{name}` is no `{}`", accessor.ty));
            }
        }
        Ok(())
    }
}

/// An access inside the function that is being bound.
struct BoundAccess<'a> {
    access: &'a Access,
    ty: Type,
    buffers: Vec<Accessor>,
    strides: Vec<Value>,
    offset: Value,
    /// Distance between lanes.
    distance: Option<Value>,
    /// For each index of a window: the index of the position, and the extent.
    around: Vec<(Value, Value)>,
    /// First element of the firing, and the number of elements passed so far.
    queue: Option<(Value, Variable)>,
}

impl BoundAccess<'_> {
    /// Returns the place of an element in each buffer, or of its first lane.
    fn place(&self, b: &Builder, indices: &[Value]) -> Value {
        if let ([index], [stride]) = (indices, &self.strides[..])
            && is_literal(b, *stride, 1)
            && is_literal(b, self.offset, 0)
        {
            return *index;
        }
        let each = indices.iter().zip(&self.strides);
        each.fold(self.offset, |sum, (index, stride)| b.add(sum, b.mul(b.convert(*index, Type::I64), *stride)))
    }

    /// Returns the buffer and the place of each lane. Returns `None` if all lanes are accessed at once.
    fn lanes(&self, b: &Builder, place: Value) -> Option<Vec<(Accessor, Value)>> {
        let lanes = 0..self.ty.lanes();
        match self.access.layout().lanes {
            Arrangement::Together => None,
            Arrangement::Buffers => Some(lanes.map(|lane| (self.buffers[lane], place)).collect()),
            Arrangement::Apart(_) => {
                let distance = self.distance.unwrap_or(b.literal(1i64));
                let place = b.convert(place, Type::I64);
                Some(lanes.map(|lane| (self.buffers[0], b.add(place, b.mul(distance, lane)))).collect())
            }
        }
    }

    fn load(&self, b: &Builder, indices: &[Value]) -> Value {
        let place = self.place(b, indices);
        match self.lanes(b, place) {
            None => b.read(self.buffers[0], &[place.into()]),
            Some(lanes) => {
                let lanes: Vec<Value> = lanes.into_iter().map(|(buffer, place)| b.read(buffer, &[place.into()])).collect();
                if self.ty.is_scalar() { lanes[0] } else { b.vector(&lanes) }
            }
        }
    }

    fn store(&self, b: &Builder, indices: &[Value], value: Value) {
        let place = self.place(b, indices);
        match self.lanes(b, place) {
            None => b.write(self.buffers[0], &[place.into()], value),
            Some(lanes) => {
                for (lane, (buffer, place)) in lanes.into_iter().enumerate() {
                    let value = if self.ty.is_scalar() { value } else { b.lane(value, lane) };
                    b.write(buffer, &[place.into()], value);
                }
            }
        }
    }

    /// Returns the place of the queue element `offset` after the next one. Advances the queue if `passes` is
    /// true.
    fn next(&self, b: &Builder, offset: Option<Value>, passes: bool) -> Option<Value> {
        let (first, passed) = self.queue?;
        let so_far = b.get(passed);
        if passes {
            b.set(passed, b.add(so_far, 1));
        }
        let next = b.add(first, so_far);
        Some(offset.map_or(next, |offset| b.add(next, b.convert(offset, Type::I64))))
    }
}

fn is_literal(b: &Builder, value: Value, wanted: i64) -> bool {
    value == b.literal(wanted)
}

impl Binding for BoundAccess<'_> {
    fn read(&mut self, b: &Builder, position: &[Value]) -> Value {
        self.load(b, position)
    }

    fn write(&mut self, b: &Builder, position: &[Value], value: Value) {
        self.store(b, position, value);
    }

    fn window(&mut self, b: &Builder, offsets: &[Value]) -> Value {
        let Access::Window { boundary, .. } = self.access else { return b.fail("no window is bound") };
        let (mut indices, mut inside) = (vec![], None);
        for (offset, (centre, extent)) in offsets.iter().zip(&self.around) {
            let (index, holds) = boundary.rule().place(b, b.add(*centre, b.convert(*offset, Type::I64)), *extent);
            indices.push(index);
            inside = match (inside, holds) {
                (Some(all), Some(one)) => Some(b.and(all, one)),
                (all, one) => all.or(one),
            };
        }
        match (inside, boundary) {
            (Some(inside), Boundary::Constant(outside)) => {
                b.choose(inside, || self.load(b, &indices), || constant(b, outside, self.ty))
            }
            _ => self.load(b, &indices),
        }
    }

    fn pop(&mut self, b: &Builder) -> Value {
        match self.next(b, None, true) {
            Some(place) => self.load(b, &[place]),
            None => b.fail("no queue is bound"),
        }
    }

    fn peek(&mut self, b: &Builder, offset: Value) -> Value {
        match self.next(b, Some(offset), false) {
            Some(place) => self.load(b, &[place]),
            None => b.fail("no queue is bound"),
        }
    }

    fn push(&mut self, b: &Builder, value: Value) {
        match self.next(b, None, true) {
            Some(place) => self.store(b, &[place], value),
            None => {
                b.fail("no queue is bound");
            }
        }
    }
}

/// Returns a constant as a value of a type.
pub(crate) fn constant(b: &Builder, lanes: &Lanes, ty: Type) -> Value {
    let values: Vec<Value> = lanes.iter().map(|lane: &Literal| b.literal(*lane)).collect();
    if ty.is_scalar() { values[0] } else { b.vector(&values) }
}

/// Binds the accessors of a function to accesses.
fn bind(function: &Function, axes: usize, accesses: &[Access]) -> Result<Function> {
    let accessors = function.accessors();
    if accessors.len() != accesses.len() {
        let reason = format!("it has {} accessors, and {} are bound", accessors.len(), accesses.len());
        return Err(Error::Function { function: function.name().to_owned(), reason });
    }
    crate::source::index_type(function, axes)?;
    for (access, accessor) in accesses.iter().zip(accessors) {
        access.check(function, accessor, axes)?;
    }
    let f = Builder::function(function.name());
    let parameters: Vec<Value> = function.parameters().iter().map(|own| f.parameter(&own.name, own.ty)).collect();
    let centre = |axis: usize| f.convert(parameters[axis], Type::I64);
    let mut bound = vec![];
    for (access, accessor) in accesses.iter().zip(accessors) {
        let layout = access.layout();
        let kind = match accessor.kind {
            AccessorKind::Output | AccessorKind::Sink => AccessorKind::Output,
            AccessorKind::Input | AccessorKind::Window | AccessorKind::Source => AccessorKind::Input,
        };
        let stored = layout.stored(accessor.ty);
        let number = |number: Number, name: &str| match number {
            Number::Constant(value) => f.literal(value),
            Number::Scalar => f.parameter(&format!("{}_{name}", accessor.name), Type::I64),
        };
        let strides = layout.strides.iter().map(|stride| number(*stride, "stride")).collect();
        let offset = number(layout.offset, "offset");
        let distance = match layout.lanes {
            Arrangement::Apart(distance) => Some(number(distance, "lane")),
            Arrangement::Together | Arrangement::Buffers => None,
        };
        let around = match access {
            Access::Window { around, .. } => {
                around.iter().map(|axis| (centre(*axis), number(Number::Scalar, "extent"))).collect()
            }
            Access::Element(_) | Access::Queue { .. } => vec![],
        };
        let queue = match access {
            Access::Queue { axis, rate, .. } => {
                let first = f.mul(centre(*axis), number(*rate, "rate"));
                Some((first, f.variable_with(f.literal(0i64))))
            }
            Access::Element(_) | Access::Window { .. } => None,
        };
        let buffers = (0..layout.buffers(accessor.ty)).map(|_| f.accessor(&accessor.name, kind, stored, 1)).collect();
        bound.push(BoundAccess { access, ty: accessor.ty, buffers, strides, offset, distance, around, queue });
    }
    let mut bindings: Vec<&mut dyn Binding> = bound.iter_mut().map(|bound| bound as &mut dyn Binding).collect();
    let results = f.inline(function, &parameters, &mut bindings);
    Ok(f.finish_function(&results)?)
}

impl Source {
    /// Binds a function of a position with `axes` indices: accessors of any rank, windows, and queues that
    /// are read. There is one [`Access`] for each accessor, in order.
    /// The inputs are the buffers of the accesses, in order. The scalars are those of the function, then
    /// those of the accesses, in order.
    ///
    /// ```
    /// use broadloom_scalar::{AccessorKind, Builder, Type};
    /// use broadloom_skeleton::{Access, Boundary, Layout, Source};
    /// // The mean of the pixels around a position, within a radius that a call says.
    /// let f = Builder::function("blur");
    /// f.parameter("y", Type::I32);
    /// f.parameter("x", Type::I32);
    /// let radius = f.parameter("radius", Type::I32);
    /// let image = f.accessor("image", AccessorKind::Window, Type::F32, 2);
    /// let sum = f.variable_with(f.literal(0.0f32));
    /// let (low, high) = (f.neg(radius), f.add(radius, 1));
    /// f.for_range(low, high, |dy| {
    ///     f.for_range(low, high, |dx| f.set(sum, f.add(f.get(sum), f.window(image, &[dy.into(), dx.into()]))));
    /// });
    /// let side = f.convert(f.add(f.mul(radius, 2), 1), Type::F32);
    /// let blur = f.finish_function(&[f.div(f.get(sum), f.mul(side, side))]).unwrap();
    ///
    /// let access = Access::Window { layout: Layout::pitched(), around: vec![0, 1], boundary: Boundary::Clamp };
    /// let blur = Source::bound(&blur, 2, &[access]).unwrap();
    /// // The radius, the pitch, the height and the width.
    /// assert_eq!(blur.scalars(), [Type::I32, Type::I64, Type::I64, Type::I64]);
    /// ```
    pub fn bound(function: &Function, axes: usize, accesses: &[Access]) -> Result<Source> {
        Source::new(bind(function, axes, accesses)?, axes)
    }
}

impl Sink {
    /// Binds a function of a position with `axes` indices and of `values` values, like [`Source::bound`].
    /// Outputs and queues that are written have accesses too.
    /// Its results are stored at the position. Threads must write different elements, unless any of the
    /// written values may remain.
    pub fn bound(function: &Function, axes: usize, values: usize, accesses: &[Access]) -> Result<Sink> {
        Sink::new(bind(function, axes, accesses)?, axes, values)
    }
}
