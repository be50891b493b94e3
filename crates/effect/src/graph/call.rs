//! Calls of functors with pictures.

use super::picture::{Application, Picture};
use super::region;
use crate::functor::{Axis, Boundary, Indexer, Output, Primitive};
use crate::{Error, Rect, Result};
use std::sync::Arc;

impl Primitive {
    /// Calls the functor. Returns a picture for each output.
    ///
    /// An input with frames takes one picture per frame, in temporal order. Inputs that are read component by
    /// component have the same number of components, or one.
    pub fn apply(&self, inputs: &[&Picture]) -> Result<Vec<Picture>> {
        let bad = |reason: String| Err(Error::Call { name: self.name().to_owned(), reason });
        let wanted: usize = self.code.inputs.iter().map(Indexer::frame_count).sum();
        let (Some(first), true) = (inputs.first(), inputs.len() == wanted) else {
            return bad(format!("it takes {wanted} images, and is given {}", inputs.len()));
        };
        if inputs.iter().any(|input| !input.context().is_same(first.context())) {
            return bad("they are on different devices".into());
        }
        let mut pictures = inputs.iter();
        let (mut components, mut bounds) = (1, None);
        for (number, indexer) in self.code.inputs.iter().enumerate() {
            for picture in pictures.by_ref().take(indexer.frame_count()) {
                let own = picture.components();
                match indexer.pixel {
                    Some(count) if count == own => {}
                    Some(count) => return bad(format!("input {number} has {own} components, and {count} are declared")),
                    None if own == 1 || components == own => {}
                    None if components == 1 => components = own,
                    None => return bad(format!("input {number} has {own} components, and another has {components}")),
                }
                let Some(reach) = indexer.reach() else { continue };
                let inner = match self.boundary {
                    Boundary::Shrink => region::shrunk(picture.bounds(), reach),
                    Boundary::Clamp | Boundary::Mirror | Boundary::Wrap | Boundary::Constant(_) => Some(picture.bounds()),
                };
                let Some(inner) = inner else {
                    return bad(format!("input {number}, {}, is smaller than the window", picture.bounds()));
                };
                bounds = match bounds {
                    None => Some(inner),
                    Some(all) => match inner.intersection(all) {
                        Some(both) => Some(both),
                        None => return bad(format!("input {number}, {inner}, has no pixel in common with the others")),
                    },
                };
            }
        }
        let bounds = match self.size {
            Some([width, height]) => {
                let extent = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
                Rect::new(first.bounds().x, first.bounds().y, extent(width), extent(height)).checked()?
            }
            None => {
                let bounds = bounds.unwrap_or_else(|| first.bounds());
                let Some(larger) = region::with_margin(bounds, self.margin) else {
                    return bad(format!("a margin around {bounds} leaves all coordinates"));
                };
                larger.checked()?
            }
        };
        let mut pictures = inputs.iter();
        for (number, indexer) in self.code.inputs.iter().enumerate() {
            for picture in pictures.by_ref().take(indexer.frame_count()) {
                let own = picture.bounds();
                let is_same = match indexer.along_axis() {
                    None => true,
                    Some(Axis::Horizontal) => (own.y, own.height) == (bounds.y, bounds.height),
                    Some(Axis::Vertical) => (own.x, own.width) == (bounds.x, bounds.width),
                };
                if !is_same {
                    return bad(format!("input {number}, {own}, and the result, {bounds}, differ across the axis of its reads"));
                }
            }
        }
        let application = Application { primitive: self.clone(), inputs: inputs.iter().map(|input| (*input).clone()).collect() };
        let application = Arc::new(application);
        let picture = |(number, output): (usize, &Output)| {
            let components = match output {
                Output::Component => components,
                Output::Pixel(count) => *count,
            };
            Picture::applied(first.context(), bounds, components, application.clone(), number)
        };
        Ok(self.code.outputs.iter().enumerate().map(picture).collect())
    }

    /// Calls the functor with `I` images and returns `O` images.
    ///
    /// ```
    /// # use broadloom_effect::{Image, Picture, functor::Primitive};
    /// # use broadloom_graph::Context;
    /// # let context = Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let sum = Primitive::point("sum", 2, |x| x[0] + x[1])?;
    /// let image = Image::from_f32(2, 1, [("Y", vec![1.0, 2.0])])?;
    /// let picture = Picture::new(&context, &image)?;
    /// let [twice] = sum.call([&picture, &picture])?;
    /// assert_eq!(twice.image()?.planes()[0].to_f32(), [2.0, 4.0]);
    /// # Ok::<(), broadloom_effect::Error>(())
    /// ```
    pub fn call<const I: usize, const O: usize>(&self, inputs: [&Picture; I]) -> Result<[Picture; O]> {
        let outputs = self.apply(&inputs)?;
        let count = outputs.len();
        outputs.try_into().map_err(|_| {
            let reason = format!("it gives {count} images instead of {O}");
            Error::Call { name: self.name().to_owned(), reason }
        })
    }

    /// Calls a functor with one output.
    pub fn one(&self, inputs: &[&Picture]) -> Result<Picture> {
        let mut outputs = self.apply(inputs)?;
        match (outputs.pop(), outputs.is_empty()) {
            (Some(picture), true) => Ok(picture),
            _ => {
                let reason = format!("it gives {} images instead of one", self.code.outputs.len());
                Err(Error::Call { name: self.name().to_owned(), reason })
            }
        }
    }
}
