//! Operations on whole images: reductions, and functors that use their results.
//!
//! These operations are the third kind of functor, beside functors without a state and functors with one. A
//! result is a picture, so the host need not wait for it. For example, a histogram becomes a table, and the
//! next functor reads the table.
//!
//! An operation that declares a window computes any region of its result from the pixels around it. Regions
//! of interest therefore propagate through the operation.

use super::picture::{Frame, InRows, Origin, Picture, WholeCall, Window};
use super::region::shrunk;
use super::upload::uploaded;
use crate::functor::{Boundary, MAX_RADIUS, Reach};
use crate::{Error, Rect, Result};
use broadloom_graph::Node;

impl Picture {
    /// Creates a picture from all pixels of some pictures, by operations on arrays with the axes component,
    /// row, column. The result of `make` is an array of `f32` with these axes and the given size. Nothing
    /// runs until an image is requested.
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
        let whole =
            WholeCall { name: name.to_owned(), inputs: inputs_of, make: Box::new(make), window: None, scratch, rows: None };
        Ok(Picture::of_whole(first.context(), bounds, components, whole))
    }

    /// Creates a picture from the rows of this one. Images that do not fit into memory are taken in bands. Nothing runs
    /// until an image is requested.
    pub(crate) fn of_rows(&self, name: &str, rows: InRows) -> Picture {
        let (begin, bounds, components) = (rows.begin.clone(), rows.bounds, rows.components);
        let make = move |nodes: &[Node], _: &Frame| {
            let mut taker = begin()?;
            nodes.iter().try_for_each(|node| taker.take(node, 0))?;
            let picture = taker.finish()?;
            match picture.origin() {
                Origin::Array(node) => Ok(node.clone()),
                Origin::Host(image) => uploaded(picture.context(), image, true),
                Origin::Applied(..) | Origin::Whole(_) => {
                    Err(Error::Call { name: "rows".into(), reason: "their picture is not computed".into() })
                }
            }
        };
        let (name, inputs, scratch) = (name.to_owned(), vec![self.clone()], Box::new(|_, _| 0));
        let whole = WholeCall { name, inputs, make: Box::new(make), window: None, scratch, rows: Some(rows) };
        Picture::of_whole(self.context(), bounds, components, whole)
    }

    /// Creates a picture with the components of this one, by operations on arrays that read a window around
    /// each pixel. The arguments of `make` are the part of the picture that a region needs, and the position
    /// of the region in it. The boundary rule applies to that part.
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
        let whole = WholeCall { name: name.to_owned(), inputs, make, window: Some(window), scratch, rows: None };
        Ok(Picture::of_whole(self.context(), bounds, self.components(), whole))
    }
}
