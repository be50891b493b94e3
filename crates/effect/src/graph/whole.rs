//! Operations on whole images: reductions, and what is made of their results.
//!
//! They are the third kind of functor, beside those without a state and those with one. A result is a picture of its own, so
//! the host need not wait for it: a histogram becomes a table, and the table is read by the next functor.

use super::Picture;
use crate::{Error, Rect, Result};
use broadloom_graph::Node;
use std::fmt;

/// Makes an array of arrays: each has the axes component, row, column.
type Make = dyn Fn(&[Node]) -> Result<Node> + Send + Sync;

/// A call of an operation on whole images.
pub(crate) struct Whole {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Picture>,
    pub(crate) make: Box<Make>,
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
        let whole = Whole { name: name.to_owned(), inputs: inputs_of, make: Box::new(make) };
        Ok(Picture::of_whole(first.context(), bounds, components, whole))
    }
}
