//! Reductions: a few numbers from all pixels of a picture.
//!
//! The picture is computed and reduced on the device. [`Picture::reduced`] and [`Picture::counted`] return
//! pictures that other functors can read. [`Picture::reduce`] and [`Picture::histogram`] copy the numbers to
//! the host; they run a plan.

use super::Picture;
use crate::{Error, Result};
use broadloom_graph::{Combine, Elementwise, Node, Shape};
use broadloom_scalar::{BinaryOp, Builder, Element, Literal, Type};

/// Operation that combines all pixels of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The minimum. NaN is ignored unless all values are NaN.
    Least,
    /// The maximum. NaN is ignored unless all values are NaN.
    Greatest,
    /// The sum, in double precision.
    Sum,
    /// The mean, in double precision.
    Mean,
}

/// Maximum number of bins of all components together.
const MAX_BINS: usize = 1 << 26;

impl Picture {
    /// Combines all pixels. Returns a picture of one pixel, rounded to `f32`. Nothing runs until an image is
    /// requested.
    pub fn reduced(&self, reduction: Reduction) -> Result<Picture> {
        let area = self.bounds().area() as f64;
        Picture::whole("reduction", &[self], [self.components(), 1, 1], move |nodes| {
            let numbers = reduction.of(&nodes[0])?;
            let numbers = match reduction {
                Reduction::Mean => {
                    let area = Node::fill(numbers.context(), Shape::from([]), &[Literal::from(area)])?;
                    Node::elementwise(Elementwise::Binary(BinaryOp::Div), &[&numbers, &area])?
                }
                Reduction::Least | Reduction::Greatest | Reduction::Sum => numbers,
            };
            let components = numbers.shape().count();
            let numbers = Node::elementwise(Elementwise::Convert(Element::F32), &[&numbers])?;
            Ok(numbers.reshape(Shape::from([components, 1, 1]))?)
        })
    }

    /// Counts the pixels of each component in equal bins from `low` to `high`, as [`Picture::histogram`]
    /// does. Returns a picture of one row with a pixel for each bin. Nothing runs until an image is
    /// requested.
    pub fn counted(&self, bins: usize, low: f32, high: f32) -> Result<Picture> {
        self.check_bins(bins, low, high)?;
        let components = self.components();
        Picture::whole("histogram", &[self], [components, 1, bins], move |nodes| {
            let counts = counts(&nodes[0], bins, low, high)?;
            let counts = Node::elementwise(Elementwise::Convert(Element::F32), &[&counts])?;
            Ok(counts.reshape(Shape::from([components, 1, bins]))?)
        })
    }

    pub(crate) fn check_bins(&self, bins: usize, low: f32, high: f32) -> Result<()> {
        if bins == 0 || bins.saturating_mul(self.components()) > MAX_BINS || low.is_nan() || high.is_nan() || low >= high {
            let reason = format!("{bins} bins from {low} to {high}; there are 1 to {MAX_BINS} for all components");
            return Err(Error::Call { name: "histogram".into(), reason });
        }
        Ok(())
    }
}

impl Reduction {
    /// Reduces rows and columns, in double precision.
    pub(crate) fn of(self, node: &Node) -> Result<Node> {
        let combine = match self {
            Reduction::Least => Combine::Min,
            Reduction::Greatest => Combine::Max,
            Reduction::Sum | Reduction::Mean => Combine::Sum,
        };
        let wide = Node::elementwise(Elementwise::Convert(Element::F64), &[node])?;
        Ok(wide.reduce(combine, &[1, 2])?)
    }
}

/// Counts the pixels of each component in bins, component by component.
pub(crate) fn counts(node: &Node, bins: usize, low: f32, high: f32) -> Result<Node> {
    let total = bins * node.shape().extents()[0];
    let f = Builder::function("bin");
    let (value, component) = (f.parameter("x", Type::F32), f.parameter("c", Type::I32));
    let [low_value, scale] = ["low", "scale"].map(|name| f.parameter(name, Type::F32));
    let count = f.parameter("bins", Type::I32);
    let place = f.floor(f.mul(f.sub(value, low_value), scale));
    // The maximum of a number and NaN is the number.
    let place = f.min(f.max(place, 0.0), f.convert(f.sub(count, 1), Type::F32));
    let key = f.add(f.mul(component, count), f.min(f.convert(place, Type::I32), f.sub(count, 1)));
    let function = f.finish_function(&[key])?;
    let context = node.context();
    let components = Node::position(context, node.shape().clone(), 0, Element::I32)?;
    let scalar = |literal: Literal| Node::fill(context, Shape::from([]), &[literal]);
    let scale = bins as f32 / (high - low);
    let [low, scale, count] = [low.into(), scale.into(), (bins as i32).into()].map(scalar);
    let keys = Node::call(&function, &[node, &components, &low?, &scale?, &count?])?;
    Ok(keys[0].histogram(total)?)
}
