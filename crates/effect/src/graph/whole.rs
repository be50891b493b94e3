//! Operations on whole images: reductions, and what is made of their results.
//!
//! They are the third kind of functor, beside those without a state and those with one. A result is a picture of its own, so
//! the host need not wait for it: a histogram becomes a table, and the table is read by the next functor.
//!
//! An operation that declares a window makes any region of its result from the pixels around it, so regions of interest flow
//! through it.

use super::region::shrunk;
use super::{Boundary, Picture};
use crate::functor::{MAX_RADIUS, Reach};
use crate::{Error, Rect, Result};
use broadloom_graph::Node;
use std::fmt;

/// Place of the region that is made, in the arrays that it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Row and column of the region's first pixel in the arrays.
    pub(crate) origin: [i64; 2],
    /// Rows and columns of the region.
    pub(crate) size: [usize; 2],
}

/// Makes an array of arrays: each has the axes component, row, column.
type Make = dyn Fn(&[Node], &Frame) -> Result<Node> + Send + Sync;

/// Window of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) reach: Reach,
    pub(crate) boundary: Boundary,
}

/// Returns the bytes of temporary arrays, about, for so many components with so many rows and columns.
type Scratch = dyn Fn(usize, [usize; 2]) -> u64 + Send + Sync;

/// A call of an operation on whole images.
pub(crate) struct Whole {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Picture>,
    pub(crate) make: Box<Make>,
    /// The pixels around a result that it is made of; `None` if all pixels are needed.
    pub(crate) window: Option<Window>,
    /// The memory that it takes besides its inputs and its result.
    pub(crate) scratch: Box<Scratch>,
}

impl fmt::Debug for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of whole images", self.name)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        super::drop_pictures(std::mem::take(&mut self.inputs));
    }
}

impl Picture {
    /// Makes a picture of all pixels of some pictures, by operations on arrays with the axes component, row, column. The
    /// result is an array of `f32` with these axes and the given size. Nothing runs until an image is asked for.
    pub fn whole(
        name: &str,
        inputs: &[&Picture],
        [components, height, width]: [usize; 3],
        make: impl Fn(&[Node]) -> Result<Node> + Send + Sync + 'static,
    ) -> Result<Picture> {
        let bad = |reason: &str| Error::Call { name: name.to_owned(), reason: reason.to_owned() };
        let first = inputs.first().ok_or_else(|| bad("it takes at least one image"))?;
        if inputs.iter().any(|input| !input.context().is_same(first.context())) {
            return Err(bad("they are on different devices"));
        }
        if components == 0 {
            return Err(bad("a picture has at least one component"));
        }
        let extent = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let bounds = Rect::sized(extent(width), extent(height)).checked()?;
        let inputs_of = inputs.iter().map(|input| (*input).clone()).collect();
        let make = move |nodes: &[Node], _: &Frame| make(nodes);
        let scratch = Box::new(|_, _| 0);
        let whole = Whole { name: name.to_owned(), inputs: inputs_of, make: Box::new(make), window: None, scratch };
        Ok(Picture::of_whole(first.context(), bounds, components, whole))
    }

    /// Makes a picture with the components of another, by operations on arrays that see a window around each pixel. `make` is given
    /// the part of the picture that a region needs, and the place of the region in it. The boundary rule holds for that part.
    pub(crate) fn windowed(
        &self,
        name: &str,
        window: Window,
        scratch: impl Fn(usize, [usize; 2]) -> u64 + Send + Sync + 'static,
        make: impl Fn(&Node, &Frame) -> Result<Node> + Send + Sync + 'static,
    ) -> Result<Picture> {
        let Reach { left, right, above, below } = window.reach;
        let bad = |reason: String| Error::Call { name: name.to_owned(), reason };
        if [left, right, above, below].iter().any(|side| *side > MAX_RADIUS) {
            return Err(bad(format!("a window of at most {MAX_RADIUS} pixels on each side is possible")));
        }
        let bounds = match window.boundary {
            Boundary::Shrink => shrunk(self.bounds(), window.reach)
                .ok_or_else(|| bad(format!("its window is larger than the image, {}", self.bounds())))?,
            Boundary::Clamp | Boundary::Mirror | Boundary::Wrap | Boundary::Constant(_) => self.bounds(),
        };
        let make = move |nodes: &[Node], frame: &Frame| make(&nodes[0], frame);
        let (inputs, make, scratch) = (vec![self.clone()], Box::new(make), Box::new(scratch));
        let whole = Whole { name: name.to_owned(), inputs, make, window: Some(window), scratch };
        Ok(Picture::of_whole(self.context(), bounds, self.components(), whole))
    }
}
