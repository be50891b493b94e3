//! Colours and alpha: multiplication, division, and one image over another.

use crate::declaration::KeyFactor;
use crate::functor::{Indexer, Output, Primitive, Real};
use crate::{Picture, Result};

/// Multiplies or divides the first components by the last one, which is alpha. Colours are not divided by 0.
pub fn by_alpha(picture: &Picture, factor: KeyFactor) -> Result<Picture> {
    let count = picture.components();
    let inputs = [Indexer::point().pixel(count)];
    let functor = Primitive::from_kernel("by_alpha", &inputs, &[Output::Pixel(count)], &[], |k| {
        let value = |component: usize| k.input(0).component(component).centre();
        let alpha = value(count - 1);
        let changed = |component: usize| match factor {
            KeyFactor::One | KeyFactor::Opacity => value(component),
            KeyFactor::NewAlpha => value(component) * alpha,
            KeyFactor::PerOldAlpha => value(component) / alpha.eq(0.0).select::<f32>(1.0, alpha),
        };
        (0..count - 1).map(changed).chain([alpha]).collect()
    })?;
    functor.one(&[picture])
}

/// Puts a colour over another one. Each picture has a colour, and its alpha if it is not opaque. Straight colours are
/// multiplied by alpha.
pub fn over(front: &Picture, back: &Picture, are_straight: [bool; 2]) -> Result<Picture> {
    let counts = [front.components(), back.components()];
    let inputs = counts.map(|count| Indexer::point().pixel(count));
    let functor = Primitive::from_kernel("over", &inputs, &[Output::Pixel(1)], &[], |k| {
        let value = |input: usize, component: usize| k.input(input).component(component).centre();
        let color = |input: usize| match are_straight[input] && counts[input] == 2 {
            true => value(input, 0) * value(input, 1),
            false => value(input, 0),
        };
        vec![match counts[0] {
            2 => color(0) + color(1) * (1.0 - value(0, 1)),
            _ => color(0),
        }]
    })?;
    functor.one(&[front, back])
}

/// Computes the alpha of one image over another.
pub fn alpha_over(front: &Picture, back: &Picture) -> Result<Picture> {
    Primitive::point("alpha_over", 2, |x: &[Real<'_>]| x[0] + x[1] * (1.0 - x[0]))?.one(&[front, back])
}
