//! Kernels during tracing: inputs, parameters, local state, loops and conditions.

use super::indexer::{AllowedOffsets, Axis, Indexer, Reach};
use super::traced::{Kind, Real, Term, Traced, Truth, Whole};
use broadloom_scalar::{Accessor, Array, Builder, Literal, Type, Unroll, Value, Variable};
use std::cell::{Cell, RefCell};

/// An input while its functor is traced.
#[derive(Debug)]
pub(crate) struct DeclaredInput {
    pub(crate) indexer: Indexer,
    /// Index of its first array. Frames are consecutive. Each frame has one array per component, or a single
    /// array.
    pub(crate) first: usize,
    /// Width and height of an input that is read anywhere.
    pub(crate) size: Option<[Value; 2]>,
}

/// A read whose offsets are known when the functor is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tap {
    pub(crate) array: usize,
    pub(crate) x: i32,
    pub(crate) y: i32,
}

/// The parts of a kernel that all its handles share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) inputs: Vec<DeclaredInput>,
    pub(crate) accessors: Vec<Accessor>,
    pub(crate) parameters: Vec<Value>,
    /// Component, row and column of the current pixel, counted from the corner of the region of definition.
    pub(crate) position: [Value; 3],
    /// Width and height of the region of definition.
    pub(crate) size: [Value; 2],
    /// Reads so far; `None` once a read has unknown offsets.
    pub(crate) taps: RefCell<Option<Vec<Tap>>>,
    /// True if the kernel uses the position or the size.
    pub(crate) places: Cell<bool>,
    /// True if loops are never unrolled. Such a kernel runs once per line, so its compile time matters more
    /// than its run time.
    pub(crate) rolled: bool,
    /// First read outside a declared window; only in checking mode.
    pub(crate) outside: Option<Variable>,
}

/// Number of bits of an offset in the report of a read outside its window.
const OFFSET_BITS: u32 = 22;
const OFFSET_BIAS: i64 = 1 << (OFFSET_BITS - 1);

/// Decodes a report into the input and the offsets; `None` for an empty report.
pub(crate) fn reported(code: i64) -> Option<(usize, i64, i64)> {
    let part = |shift: u32| (code >> shift & ((1 << OFFSET_BITS) - 1)) - OFFSET_BIAS;
    (code > 0).then(|| ((code >> (2 * OFFSET_BITS)) as usize - 1, part(OFFSET_BITS), part(0)))
}

/// A kernel while it is traced. Its methods emit code and compute nothing.
#[derive(Clone, Copy)]
pub struct Kernel<'k> {
    pub(crate) builder: &'k Builder,
    pub(crate) shared: &'k Shared,
}

impl<'k> Kernel<'k> {
    /// Returns the input with the given index.
    #[track_caller]
    pub fn input(&self, number: usize) -> Input<'k> {
        if number >= self.shared.inputs.len() {
            self.builder.fail(format!("input {number} of a functor with {} inputs", self.shared.inputs.len()));
        }
        Input { kernel: *self, number, frame: 0, component: None }
    }

    /// Returns the parameter with the given index. Its value can change without a new compilation.
    #[track_caller]
    pub fn parameter(&self, number: usize) -> Real<'k> {
        let value = self.shared.parameters.get(number).copied();
        let missing = || self.builder.fail(format!("parameter {number} of {}", self.shared.parameters.len()));
        Traced::new(self.builder, value.unwrap_or_else(missing))
    }

    fn place(&self, value: Value) -> Whole<'k> {
        self.shared.places.set(true);
        Traced::new(self.builder, value)
    }

    /// Returns the column of the current pixel, 0 at the left edge of the region of definition.
    pub fn x(&self) -> Whole<'k> {
        self.place(self.shared.position[2])
    }

    /// Returns the row of the current pixel, 0 at the upper edge of the region of definition.
    pub fn y(&self) -> Whole<'k> {
        self.place(self.shared.position[1])
    }

    /// Returns the index of the current component; 0 for a functor of whole pixels.
    pub fn component(&self) -> Whole<'k> {
        self.place(self.shared.position[0])
    }

    /// Returns the width of the region of definition.
    pub fn width(&self) -> Whole<'k> {
        self.place(self.shared.size[0])
    }

    /// Returns the height of the region of definition.
    pub fn height(&self) -> Whole<'k> {
        self.place(self.shared.size[1])
    }

    /// Returns a number that is known when the kernel is traced.
    pub fn constant<T: Kind>(&self, value: T) -> Traced<'k, T> {
        Traced::new(self.builder, value.term(self.builder))
    }

    /// Declares a local variable with an initial value.
    #[track_caller]
    pub fn local<T: Kind>(&self, value: impl Term<'k, T>) -> Local<'k, T> {
        let value = value.term(self.builder);
        Local { builder: self.builder, variable: self.builder.variable_with(value), value: Traced::new(self.builder, value) }
    }

    /// Declares a local array of samples, initially zero. Out-of-range indices are clamped.
    #[track_caller]
    pub fn array(&self, length: u32) -> LocalArray<'k> {
        let array = self.builder.array(f32::TYPE, length);
        let zero = self.builder.literal(0.0f32);
        self.builder.for_step(0, self.builder.literal(length as i32), 1, Unroll::Auto, |index| {
            self.builder.set_element(array, index, zero);
        });
        LocalArray { builder: self.builder, array, length }
    }

    /// Repeats a body for all integers from `start` up to, but not including, `end`.
    #[track_caller]
    pub fn repeat(&self, start: impl Term<'k, i32>, end: impl Term<'k, i32>, body: impl FnOnce(Whole<'k>)) {
        let (start, end) = (start.term(self.builder), end.term(self.builder));
        let unroll = if self.shared.rolled { Unroll::Never } else { Unroll::Auto };
        self.builder.for_step(start, end, 1, unroll, |index| body(Traced::new(self.builder, index)));
    }

    /// Runs a body if a condition holds.
    #[track_caller]
    pub fn when(&self, condition: Truth<'k>, body: impl FnOnce()) {
        self.builder.if_then(condition.value, body);
    }

    /// Selects one of two values of the same type. Only the selected one is computed.
    #[track_caller]
    pub fn choose<T: Kind>(
        &self,
        condition: Truth<'k>,
        yes: impl FnOnce() -> Traced<'k, T>,
        no: impl FnOnce() -> Traced<'k, T>,
    ) -> Traced<'k, T> {
        Traced::new(self.builder, self.builder.choose(condition.value, || yes().value, || no().value))
    }

    /// Returns an entry of a table of constants. Out-of-range indices are clamped.
    #[track_caller]
    pub fn table(&self, entries: &[f32], index: Whole<'k>) -> Real<'k> {
        if entries.is_empty() {
            return Traced::new(self.builder, self.builder.fail("a table without entries"));
        }
        let literals: Vec<Literal> = entries.iter().map(|entry| Literal::from(*entry)).collect();
        let table = self.builder.table(&literals);
        let index = self.builder.convert(held(self.builder, index.value, entries.len()), Type::U32);
        Traced::new(self.builder, self.builder.lookup(table, index))
    }
}

/// Clamps an index to the range of an array. Emits nothing if the index is known to be in range.
fn held(builder: &Builder, index: Value, length: usize) -> Value {
    let last = length.saturating_sub(1).min(i32::MAX as usize) as i32;
    match builder.range(index) {
        (low, high) if low >= 0 && high <= i128::from(last) => index,
        _ => builder.max(builder.min(index, last), 0),
    }
}

/// A local variable of a kernel.
pub struct Local<'k, T> {
    builder: &'k Builder,
    variable: Variable,
    value: Traced<'k, T>,
}

impl<T> Clone for Local<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Local<'_, T> {}

impl<'k, T: Kind> Local<'k, T> {
    /// Returns the current value.
    #[must_use]
    #[track_caller]
    pub fn get(self) -> Traced<'k, T> {
        Traced::new(self.value.builder, self.builder.get(self.variable))
    }

    /// Assigns a value.
    #[track_caller]
    pub fn set(self, value: impl Term<'k, T>) {
        self.builder.set(self.variable, value.term(self.builder));
    }
}

/// A local array of samples.
#[derive(Clone, Copy)]
pub struct LocalArray<'k> {
    builder: &'k Builder,
    array: Array,
    length: u32,
}

impl<'k> LocalArray<'k> {
    /// Returns an element.
    #[must_use]
    #[track_caller]
    pub fn get(self, index: impl Term<'k, i32>) -> Real<'k> {
        let index = held(self.builder, index.term(self.builder), self.length as usize);
        Traced::new(self.builder, self.builder.element(self.array, index))
    }

    /// Assigns a value to an element.
    #[track_caller]
    pub fn set(self, index: impl Term<'k, i32>, value: impl Term<'k, f32>) {
        let index = held(self.builder, index.term(self.builder), self.length as usize);
        self.builder.set_element(self.array, index, value.term(self.builder));
    }
}

/// An input of a kernel: one of its frames, and one component if pixels are read as a whole.
#[derive(Clone, Copy)]
pub struct Input<'k> {
    kernel: Kernel<'k>,
    number: usize,
    frame: i32,
    component: Option<usize>,
}

impl<'k> Input<'k> {
    fn builder(&self) -> &'k Builder {
        self.kernel.builder
    }

    #[track_caller]
    fn fail(&self, problem: &str) -> Value {
        self.builder().fail(format!("functor `{}`, input {}: {problem}", self.kernel.shared.name, self.number))
    }

    /// Selects a component of the pixel, for an input whose pixels are read as a whole.
    #[must_use]
    pub fn component(self, component: usize) -> Input<'k> {
        Input { component: Some(component), ..self }
    }

    /// Selects a frame, counted from the current one.
    #[must_use]
    pub fn frame(self, frame: i32) -> Input<'k> {
        Input { frame, ..self }
    }

    /// Returns the index of the array that is read, with its declaration.
    #[track_caller]
    fn array(&self) -> Option<(usize, &'k DeclaredInput)> {
        let Some(declared) = self.kernel.shared.inputs.get(self.number) else {
            self.fail("there is no such input");
            return None;
        };
        let (before, behind) = declared.indexer.frames;
        if i64::from(self.frame) < -i64::from(before) || i64::from(self.frame) > i64::from(behind) {
            self.fail(&format!("frame {} is read, and {before} before and {behind} behind are declared", self.frame));
            return None;
        }
        let frame = (i64::from(self.frame) + i64::from(before)) as usize;
        match (declared.indexer.pixel, self.component) {
            (None, None) => Some((declared.first + frame, declared)),
            (Some(count), component) if component.unwrap_or(0) < count => {
                Some((declared.first + frame * count + component.unwrap_or(0), declared))
            }
            (Some(count), component) => {
                self.fail(&format!("component {} of a pixel with {count}", component.unwrap_or(0)));
                None
            }
            (None, Some(_)) => {
                self.fail("a component is named, and the input is declared component by component");
                None
            }
        }
    }

    /// Reads the current pixel.
    #[must_use]
    #[track_caller]
    pub fn centre(self) -> Real<'k> {
        self.at(0, 0)
    }

    /// Reads along the axis of a 1-D indexer.
    #[must_use]
    #[track_caller]
    pub fn along(self, offset: impl Term<'k, i32>) -> Real<'k> {
        let axis = self.kernel.shared.inputs.get(self.number).map(|declared| &declared.indexer.freedom);
        let offset = Traced::new(self.builder(), offset.term(self.builder()));
        match axis {
            Some(AllowedOffsets::Line { axis: Axis::Horizontal, .. }) => self.at(offset, 0),
            Some(AllowedOffsets::Line { axis: Axis::Vertical, .. }) => self.at(0, offset),
            _ => Traced::new(self.builder(), self.fail("it is read along an axis, and declares none")),
        }
    }

    /// Reads at an offset from the current pixel: columns to the right, rows down.
    ///
    /// An offset outside the declared window is an error of the functor if it is known when the functor is
    /// built. Otherwise it is clamped to the window, and reported in checking mode.
    #[must_use]
    #[track_caller]
    pub fn at(self, x: impl Term<'k, i32>, y: impl Term<'k, i32>) -> Real<'k> {
        let (x, y) = (x.term(self.builder()), y.term(self.builder()));
        Traced::new(self.builder(), self.read(x, y))
    }

    #[track_caller]
    fn read(&self, x: Value, y: Value) -> Value {
        let b = self.builder();
        let Some((array, declared)) = self.array() else { return b.poison() };
        let Some(reach) = declared.indexer.reach() else {
            return self.fail("it is read at an offset, and declared to be read anywhere");
        };
        let known = |value: Value| b.as_literal(value).and_then(Literal::as_i128);
        if let (AllowedOffsets::Sparse(offsets), Some(x), Some(y)) = (&declared.indexer.freedom, known(x), known(y))
            && !offsets.iter().any(|[own_x, own_y]| (i128::from(*own_x), i128::from(*own_y)) == (x, y))
        {
            return self.fail(&format!("the read at ({x}, {y}) is not one of its declared offsets"));
        }
        let across = self.within(x, reach.left, reach.right, "columns", &reach);
        let down = self.within(y, reach.above, reach.below, "rows", &reach);
        let (Some((across, is_held)), Some((down, is_held_too))) = (across, down) else { return b.poison() };
        if let Some(outside) = self.kernel.shared.outside.filter(|_| is_held || is_held_too) {
            let differs = b.or(b.ne(across, x), b.ne(down, y));
            let part = |value: Value| {
                let value = b.convert(value, Type::I64);
                b.add(b.max(b.min(value, OFFSET_BIAS - 1), -OFFSET_BIAS), OFFSET_BIAS)
            };
            let input = (self.number as i64 + 1) << (2 * OFFSET_BITS);
            let code = b.add(b.add(b.mul(part(x), 1i64 << OFFSET_BITS), part(y)), input);
            b.set(outside, b.select(differs, code, b.get(outside)));
        }
        let mut taps = self.kernel.shared.taps.borrow_mut();
        match (known(across), known(down), &mut *taps) {
            (Some(x), Some(y), Some(taps)) => {
                let tap = Tap { array, x: x as i32, y: y as i32 };
                if !taps.contains(&tap) {
                    taps.push(tap);
                }
            }
            _ => *taps = None,
        }
        drop(taps);
        b.window(self.kernel.shared.accessors[array], &[0.into(), down.into(), across.into()])
    }

    /// Clamps an offset to bounds. Also returns whether the offset had to be clamped; `None` if it is known
    /// to lie outside.
    #[track_caller]
    fn within(&self, offset: Value, before: u32, behind: u32, what: &str, reach: &Reach) -> Option<(Value, bool)> {
        let b = self.builder();
        if b.is_poison(offset) {
            return None;
        }
        let (low, high) = b.range(offset);
        let (least, most) = (-i128::from(before), i128::from(behind));
        if low >= least && high <= most {
            return Some((offset, false));
        }
        if high < least || low > most {
            let which = if low == high { format!("{low}") } else { format!("{low} to {high}") };
            self.fail(&format!(
                "a read {which} {what} away is outside of its declared window: {} left, {} right, {} above, {} below",
                reach.left, reach.right, reach.above, reach.below
            ));
            return None;
        }
        Some((b.max(b.min(offset, behind as i32), -(before as i32)), true))
    }

    /// Reads at one of the offsets of a sparse indexer, selected by its index.
    #[must_use]
    #[track_caller]
    pub fn tap(self, number: impl Term<'k, i32>) -> Real<'k> {
        let b = self.builder();
        let number = number.term(b);
        let offsets = match self.kernel.shared.inputs.get(self.number).map(|declared| &declared.indexer.freedom) {
            Some(AllowedOffsets::Sparse(offsets)) => offsets,
            _ => return Traced::new(b, self.fail("an offset is named by its number, and it declares no list of them")),
        };
        let entry = b.as_literal(number).and_then(Literal::as_i128);
        let value = match entry {
            Some(entry) => match usize::try_from(entry).ok().and_then(|entry| offsets.get(entry)) {
                Some([x, y]) => self.read(b.literal(*x), b.literal(*y)),
                None => self.fail(&format!("offset {entry} of {} is read", offsets.len())),
            },
            None => {
                let number = b.convert(held(b, number, offsets.len()), Type::U32);
                let table = |axis: usize| {
                    let entries: Vec<Literal> = offsets.iter().map(|offset| Literal::from(offset[axis])).collect();
                    b.lookup(b.table(&entries), number)
                };
                self.read(table(0), table(1))
            }
        };
        Traced::new(b, value)
    }

    /// Reads any position of an input that is declared to be read anywhere, counted from its upper left
    /// corner. The boundary rule applies outside the image.
    #[must_use]
    #[track_caller]
    pub fn pick(self, x: impl Term<'k, i32>, y: impl Term<'k, i32>) -> Real<'k> {
        if self.kernel.shared.inputs.get(self.number).is_some_and(|declared| declared.indexer.along_axis().is_some()) {
            return Traced::new(self.builder(), self.fail("it is read anywhere, and declared to be read along an axis"));
        }
        self.picked(x, y)
    }

    #[track_caller]
    fn picked(self, x: impl Term<'k, i32>, y: impl Term<'k, i32>) -> Real<'k> {
        let b = self.builder();
        let (x, y) = (x.term(b), y.term(b));
        let Some((array, declared)) = self.array() else { return Traced::new(b, b.poison()) };
        if declared.size.is_none() {
            return Traced::new(b, self.fail("it is read anywhere, and declares a window"));
        }
        *self.kernel.shared.taps.borrow_mut() = None;
        let plane = match declared.indexer.pixel {
            Some(_) => b.literal(0i32),
            None => self.kernel.shared.position[0],
        };
        Traced::new(b, b.read(self.kernel.shared.accessors[array], &[plane.into(), y.into(), x.into()]))
    }

    /// Reads any position along the axis of an input that is declared to be read along an axis. Positions
    /// count from the left or upper edge. The boundary rule applies outside the image.
    #[must_use]
    #[track_caller]
    pub fn pick_along(self, place: impl Term<'k, i32>) -> Real<'k> {
        let axis = self.kernel.shared.inputs.get(self.number).and_then(|declared| declared.indexer.along_axis());
        let place = Traced::new(self.builder(), place.term(self.builder()));
        let [_, row, column] = self.kernel.shared.position.map(|value| Traced::new(self.builder(), value));
        match axis {
            Some(Axis::Horizontal) => self.picked(place, row),
            Some(Axis::Vertical) => self.picked(column, place),
            None => Traced::new(self.builder(), self.fail("it is read anywhere along an axis, and declares none")),
        }
    }

    /// Returns width and height of an input that is read anywhere.
    #[track_caller]
    pub fn size(self) -> [Whole<'k>; 2] {
        let b = self.builder();
        let size = self.kernel.shared.inputs.get(self.number).and_then(|declared| declared.size);
        size.unwrap_or_else(|| [self.fail("its size is used, but the indexer does not declare reads anywhere"); 2])
            .map(|value| Traced::new(b, value))
    }
}
