//! Gradients, and effects that use them.

use super::blur::box_blur;
use crate::functor::{Indexer, Kernel, Output, Primitive, Real};
use crate::{Boundary, Picture, Result};

/// Returns the gradients by [1 2 1]ᵀ·[−1 0 1] and its transpose.
fn at_pixel<'k>(k: &Kernel<'k>) -> (Real<'k>, Real<'k>) {
    let s = |x: i32, y: i32| k.input(0).at(x, y);
    let across = (s(1, -1) - s(-1, -1)) + (s(1, 0) - s(-1, 0)) * 2.0 + (s(1, 1) - s(-1, 1));
    let down = (s(-1, 1) - s(-1, -1)) + (s(0, 1) - s(0, -1)) * 2.0 + (s(1, 1) - s(1, -1));
    (across, down)
}

/// Computes the gradients along x and y.
pub fn gradients(picture: &Picture, boundary: Boundary) -> Result<[Picture; 2]> {
    let outputs = [Output::Component; 2];
    let functor = Primitive::from_kernel("gradients", &[Indexer::square(1)], &outputs, &[], |k| {
        let (across, down) = at_pixel(&k);
        vec![across, down]
    })?;
    functor.with_boundary(boundary).call([picture])
}

/// Computes the magnitude of the gradient.
pub fn sobel(picture: &Picture, boundary: Boundary) -> Result<Picture> {
    let functor = Primitive::from_kernel("sobel", &[Indexer::square(1)], &[Output::Component], &[], |k| {
        let (across, down) = at_pixel(&k);
        vec![(across * across + down * down).sqrt()]
    })?;
    functor.with_boundary(boundary).one(&[picture])
}

/// Computes the mean of all components.
pub fn mean_of_components(picture: &Picture) -> Result<Picture> {
    let count = picture.components();
    if count == 1 {
        return Ok(picture.clone());
    }
    let inputs = [Indexer::point().pixel(count)];
    let functor = Primitive::from_kernel("mean_of_components", &inputs, &[Output::Pixel(1)], &[], |k| {
        let mut sum = k.input(0).component(0).centre();
        for component in 1..count {
            sum = sum + k.input(0).component(component).centre();
        }
        vec![sum / count as f32]
    })?;
    functor.one(&[picture])
}

/// Computes the corner strength: det − k·trace² of the sums of gradient products over the square.
pub fn harris(picture: &Picture, radius: u32, k: f32, boundary: Boundary) -> Result<Picture> {
    let mean = mean_of_components(picture)?;
    let outputs = [Output::Component; 3];
    let products = Primitive::from_kernel("products", &[Indexer::square(1)], &outputs, &[], |k| {
        let (across, down) = at_pixel(&k);
        vec![across * across, down * down, across * down]
    })?;
    let products = products.with_boundary(boundary).apply(&[&mean])?;
    let sums = products.iter().map(|product| box_blur(product, radius, boundary)).collect::<Result<Vec<Picture>>>()?;
    let inputs = [Indexer::point(), Indexer::point(), Indexer::point()];
    let side = (2 * radius + 1) as f32;
    let response = Primitive::from_kernel("harris", &inputs, &[Output::Component], &[k, side * side], |k| {
        let [a, b, c] = [0, 1, 2].map(|input| k.input(input).centre() * k.parameter(1));
        let trace = a + b;
        vec![(a * b - c * c) - k.parameter(0) * trace * trace]
    })?;
    response.one(&sums.iter().collect::<Vec<&Picture>>())
}
