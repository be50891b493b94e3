//! Primitives: functors that are checked and traced.

use super::boundary::Boundary;
use super::indexer::{AllowedOffsets, Axis, Indexer, MAX_COMPONENTS, MAX_RADIUS, Output, Reach};
use super::kernel::Kernel;
use super::trace::{Body, Slot, Subject, Trace, slots, trace};
use super::traced::{Real, Traced};
use super::{Functor, Moving};
use crate::{Error, Rect, Result};
use broadloom_scalar::{Type, Value};
use std::ops::Range;
use std::sync::Arc;

/// A functor that is checked and traced; cheap to clone.
#[derive(Clone, Debug)]
pub struct Primitive {
    pub(crate) code: Arc<Code>,
    pub(crate) parameters: Arc<[f32]>,
    pub(crate) boundary: Boundary,
    /// Size of the result, for a functor whose inputs are read anywhere.
    pub(crate) size: Option<[usize; 2]>,
    /// Pixels around the region of definition of the inputs for which the result is also defined.
    pub(crate) margin: Reach,
    /// Places that are read along the axis of an input that is read anywhere along it.
    pub(crate) span: Option<Span>,
    /// Place of the only pixel that is read of inputs that are read anywhere.
    pub(crate) placement: Option<Placement>,
}

/// Place of the pixel that a pixel of the result reads: reflected, with rows and columns exchanged, then moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// True for columns and for rows of the result if they are counted from their ends.
    pub(crate) reversed: [bool; 2],
    /// True if columns and rows are exchanged.
    pub(crate) is_transposed: bool,
    /// Column and row of the input that are added.
    pub(crate) corner: [i32; 2],
}

impl Placement {
    /// Returns the part of an input that a part of the result reads; `None` if the input does not contain it.
    pub(crate) fn of(self, part: Rect, result: Rect, input: Rect) -> Option<Rect> {
        let along = |is_reversed: bool, first: i32, extent: u32, origin: i32, whole: u32| {
            let first = i64::from(first) - i64::from(origin);
            if is_reversed { i64::from(whole) - first - i64::from(extent) } else { first }
        };
        let x = along(self.reversed[0], part.x, part.width, result.x, result.width);
        let y = along(self.reversed[1], part.y, part.height, result.y, result.height);
        let ((x, width), (y, height)) = match self.is_transposed {
            true => ((y, part.height), (x, part.width)),
            false => ((x, part.width), (y, part.height)),
        };
        let place = |at: i64, corner: i32, origin: i32| i32::try_from(at + i64::from(corner) + i64::from(origin)).ok();
        let (x, y) = (place(x, self.corner[0], input.x)?, place(y, self.corner[1], input.y)?);
        Some(Rect { x, y, width, height }).filter(|read| input.contains(*read))
    }
}

/// Places that a pixel reads along an axis: those up to `reach` away from the pixel's centre times `scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) scale: f64,
    pub(crate) reach: f64,
}

impl Span {
    /// Returns the places of 0 … `extent` that pixels read, with one more on both sides for rounding.
    pub(crate) fn of(self, pixels: Range<i64>, extent: u32) -> Range<i64> {
        let first = ((pixels.start as f64 + 0.5) * self.scale - self.reach).floor() as i64 - 1;
        let end = ((pixels.end as f64 - 0.5) * self.scale + self.reach).ceil() as i64 + 1;
        let first = first.clamp(0, i64::from(extent) - 1);
        first..end.clamp(first + 1, i64::from(extent))
    }
}

/// The part of a primitive that does not depend on its boundary and its parameters.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Indexer>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) nature: PixelDependence,
}

/// Dependence between pixels.
#[derive(Debug)]
pub(crate) enum PixelDependence {
    /// Pixels are independent.
    Parallel(Trace),
    /// A state is carried along an axis.
    Moving(Motion),
}

/// The kernel of a moving average.
#[derive(Debug)]
pub(crate) struct Motion {
    pub(crate) axis: Axis,
    pub(crate) backwards: bool,
    pub(crate) states: usize,
    /// Computes the state before a position.
    pub(crate) start: Trace,
    /// Computes the next state, then the outputs.
    pub(crate) step: Trace,
    /// Computes the outputs of a position from its window alone: start and step combined.
    pub(crate) whole: Trace,
}

/// Maximum number of inputs, outputs, parameters and states.
const MAX_PARTS: usize = 64;

fn check(name: &str, inputs: &[Indexer], outputs: &[Output], parameters: usize) -> Result<()> {
    let bad = |reason: String| Err(Error::Functor { name: name.to_owned(), reason });
    if inputs.is_empty() || outputs.is_empty() {
        return bad("a functor has an input and an output".into());
    }
    let arrays = slots(inputs).len();
    if arrays > MAX_PARTS || outputs.len() > MAX_PARTS || parameters > MAX_PARTS {
        return bad(format!(
            "{arrays} components and frames of inputs, {} outputs, {parameters} parameters; at most {MAX_PARTS} of each are possible",
            outputs.len()
        ));
    }
    for (number, indexer) in inputs.iter().enumerate() {
        if let Err(reason) = indexer.check() {
            return bad(format!("input {number}: {reason}"));
        }
    }
    let pixels = outputs.iter().filter_map(|output| match output {
        Output::Component => None,
        Output::Pixel(count) => Some(*count),
    });
    let pixels: Vec<usize> = pixels.collect();
    if !pixels.is_empty() && pixels.len() != outputs.len() {
        return bad("outputs of components and of whole pixels cannot be mixed".into());
    }
    if pixels.iter().any(|count| *count == 0 || *count > MAX_COMPONENTS) {
        return bad(format!("a pixel has 1 to {MAX_COMPONENTS} components"));
    }
    if !pixels.is_empty() && inputs.iter().any(|indexer| indexer.pixel.is_none()) {
        return bad("outputs of whole pixels need inputs of whole pixels".into());
    }
    Ok(())
}

impl Primitive {
    fn new(code: Code, parameters: Vec<f32>) -> Primitive {
        Primitive {
            code: Arc::new(code),
            parameters: parameters.into(),
            boundary: Boundary::default(),
            size: None,
            margin: Reach::default(),
            span: None,
            placement: None,
        }
    }

    pub(super) fn parallel(functor: &impl Functor) -> Result<Primitive> {
        let (name, inputs, outputs) = (functor.name(), functor.inputs(), functor.outputs());
        let parameters = functor.parameters();
        check(&name, &inputs, &outputs, parameters.len())?;
        let count = outputs.iter().map(|output| match output {
            Output::Component => 1,
            Output::Pixel(count) => *count,
        });
        let results = vec![Type::F32; count.sum()];
        let subject =
            Subject { name: &name, inputs: &inputs, parameters: parameters.len(), states: 0, results: &results, rolled: false };
        let body: &Body<'_> = &|k, _| functor.kernel(k).into_iter().map(|result| result.value).collect();
        let trace = trace(&subject, body)?;
        let slots = slots(&inputs);
        Ok(Primitive::new(Code { name, inputs, outputs, slots, nature: PixelDependence::Parallel(trace) }, parameters))
    }

    pub(super) fn moving(functor: &impl Moving) -> Result<Primitive> {
        let (name, inputs, axis) = (functor.name(), functor.inputs(), functor.axis());
        let (outputs, parameters) = (vec![Output::Component; functor.outputs()], functor.parameters());
        check(&name, &inputs, &outputs, parameters.len())?;
        let fits = |indexer: &Indexer| match &indexer.freedom {
            AllowedOffsets::Point => true,
            AllowedOffsets::Line { axis: own, .. } => *own == axis,
            AllowedOffsets::Rectangle { .. }
            | AllowedOffsets::Sparse(_)
            | AllowedOffsets::Along(_)
            | AllowedOffsets::Anywhere => false,
        };
        if !inputs.iter().all(|indexer| fits(indexer) && indexer.pixel.is_none()) {
            let reason = "inputs of a moving average are components at points or along its axis".to_owned();
            return Err(Error::Functor { name, reason });
        }
        fn values<T>(list: Vec<Traced<'_, T>>) -> Vec<Value> {
            list.into_iter().map(|traced| traced.value).collect()
        }
        // The start determines the number of states.
        let states = std::cell::Cell::new(0);
        let start_body: &Body<'_> = &|k, _| values(functor.start(k));
        let counting: &Body<'_> = &|k, _| {
            let list = functor.start(k);
            states.set(list.len());
            vec![]
        };
        let count = parameters.len();
        let subject = Subject { name: &name, inputs: &inputs, parameters: count, states: 0, results: &[], rolled: false };
        trace(&subject, counting)?;
        let states = states.get();
        if states == 0 || states > MAX_PARTS {
            let reason = format!("its state has {states} numbers, and 1 to {MAX_PARTS} are possible");
            return Err(Error::Functor { name, reason });
        }
        let wide = vec![Type::F64; states];
        let narrow = vec![Type::F32; outputs.len()];
        let start = trace(&Subject { results: &wide, rolled: true, ..subject }, start_body)?;
        let stepped = |k: Kernel<'_>, state: &[Value]| -> (Vec<Value>, Vec<Value>) {
            let state: Vec<Traced<'_, f64>> = state.iter().map(|value| Traced::new(k.builder, *value)).collect();
            let (next, results) = functor.step(k, &state);
            if next.len() != states {
                k.builder.fail(format!("a step gives a state of {} numbers, and the start one of {states}", next.len()));
            }
            (values(next), values::<f32>(results))
        };
        let step_body: &Body<'_> = &|k, state| {
            let (next, results) = stepped(k, state);
            [next, results].concat()
        };
        let all = [wide.clone(), narrow.clone()].concat();
        let step = trace(&Subject { states, results: &all, ..subject }, step_body)?;
        let whole_body: &Body<'_> = &|k, _| {
            let state = values(functor.start(k));
            stepped(k, &state).1
        };
        let whole = trace(&Subject { results: &narrow, ..subject }, whole_body)?;
        let slots = slots(&inputs);
        let motion = Motion { axis, backwards: functor.backwards(), states, start, step, whole };
        Ok(Primitive::new(Code { name, inputs, outputs, slots, nature: PixelDependence::Moving(motion) }, parameters))
    }

    /// Builds a functor that reads one component of the current pixel of each of `inputs` images.
    pub fn point(name: &str, inputs: usize, kernel: impl for<'k> Fn(&[Real<'k>]) -> Real<'k>) -> Result<Primitive> {
        struct Point<'a, F>(&'a str, usize, F);
        impl<F: for<'k> Fn(&[Real<'k>]) -> Real<'k>> Functor for Point<'_, F> {
            fn name(&self) -> String {
                self.0.to_owned()
            }
            fn inputs(&self) -> Vec<Indexer> {
                vec![Indexer::point(); self.1]
            }
            fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
                let samples: Vec<Real<'k>> = (0..self.1).map(|input| k.input(input).centre()).collect();
                vec![(self.2)(&samples)]
            }
        }
        Point(name, inputs, kernel).build()
    }

    /// Builds a functor from its declarations and a closure.
    pub fn from_kernel(
        name: &str,
        inputs: &[Indexer],
        outputs: &[Output],
        parameters: &[f32],
        kernel: impl for<'k> Fn(Kernel<'k>) -> Vec<Real<'k>>,
    ) -> Result<Primitive> {
        struct Closure<'a, F> {
            name: &'a str,
            inputs: &'a [Indexer],
            outputs: &'a [Output],
            parameters: &'a [f32],
            kernel: F,
        }
        impl<F: for<'k> Fn(Kernel<'k>) -> Vec<Real<'k>>> Functor for Closure<'_, F> {
            fn name(&self) -> String {
                self.name.to_owned()
            }
            fn inputs(&self) -> Vec<Indexer> {
                self.inputs.to_vec()
            }
            fn outputs(&self) -> Vec<Output> {
                self.outputs.to_vec()
            }
            fn parameters(&self) -> Vec<f32> {
                self.parameters.to_vec()
            }
            fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
                (self.kernel)(k)
            }
        }
        Closure { name, inputs, outputs, parameters, kernel }.build()
    }

    /// Returns the name that plans and messages show.
    pub fn name(&self) -> &str {
        &self.code.name
    }

    /// Returns the functor with another boundary rule.
    #[must_use]
    pub fn with_boundary(mut self, boundary: Boundary) -> Primitive {
        self.boundary = boundary;
        self
    }

    /// Returns the functor with other parameter values. Nothing is traced or compiled again.
    pub fn with_parameters(mut self, parameters: &[f32]) -> Result<Primitive> {
        if parameters.len() != self.parameters.len() {
            let reason = format!("it has {} parameters, and is given {}", self.parameters.len(), parameters.len());
            return Err(Error::Functor { name: self.code.name.clone(), reason });
        }
        self.parameters = parameters.into();
        Ok(self)
    }

    /// Returns the functor with a result of another size. Its inputs must be read anywhere, or at the current
    /// pixel alone. Inputs read at the current pixel have the size of the result.
    pub fn with_size(mut self, width: usize, height: usize) -> Result<Primitive> {
        if self.code.inputs.iter().filter_map(Indexer::reach).any(|reach| !reach.is_point()) {
            let reason = "its result has the size of its inputs, because they are read in windows".to_owned();
            return Err(Error::Functor { name: self.code.name.clone(), reason });
        }
        self.size = Some([width, height]);
        Ok(self)
    }

    /// Returns the functor with a declaration of the places that it reads along an axis.
    #[must_use]
    pub(crate) fn with_span(self, span: Span) -> Primitive {
        Primitive { span: Some(span), ..self }
    }

    /// Returns the functor with a declaration of the pixel that it reads.
    #[must_use]
    pub(crate) fn with_placement(self, placement: Placement) -> Primitive {
        Primitive { placement: Some(placement), ..self }
    }

    /// Returns the functor with a result that is larger than its inputs by a margin. In the margin the inputs
    /// follow the boundary rule.
    pub fn with_margin(mut self, margin: Reach) -> Result<Primitive> {
        let sides = [margin.left, margin.right, margin.above, margin.below];
        if self.reach().is_none() || sides.iter().any(|side| *side > MAX_RADIUS) {
            let reason = format!("a margin of at most {MAX_RADIUS} pixels is possible where inputs are read in windows");
            return Err(Error::Functor { name: self.code.name.clone(), reason });
        }
        self.margin = margin;
        Ok(self)
    }

    /// Returns the union of the windows of all inputs; `None` if one input is read anywhere.
    pub(crate) fn reach(&self) -> Option<Reach> {
        let mut each = self.code.inputs.iter().map(Indexer::reach);
        each.try_fold(Reach::default(), |all, one| one.map(|one| all.union(one)))
    }

    /// Returns whether the functor reads the current pixel alone and has no state.
    pub(crate) fn is_point(&self) -> bool {
        matches!(self.code.nature, PixelDependence::Parallel(_)) && self.reach().is_some_and(Reach::is_point)
    }
}

impl Primitive {
    /// Returns the axis along which a picture of a call is read anywhere.
    pub(crate) fn along_in(&self, picture: usize) -> Option<Axis> {
        self.code.slots.iter().find(|slot| slot.picture == picture)?.along
    }

    /// Returns the union of the windows of all inputs, for a picture of a call; `None` if that picture is
    /// read anywhere.
    pub(crate) fn reach_of(&self, picture: usize) -> Option<Reach> {
        let own = self.code.slots.iter().find(|slot| slot.picture == picture)?.reach?;
        let each = self.code.inputs.iter().filter_map(Indexer::reach);
        Some(each.fold(own, Reach::union))
    }
}
