//! Naive references of all effects: plain loops in `f64` that follow the formulas of the catalogue.
//!
//! They define the results of effects, and effects on devices are compared with them. They are not optimised.
//!
//! Every intermediate image has the size of the image before it and follows the boundary rule at its own
//! border.

pub(crate) mod alpha;
pub(crate) mod blur;
pub(crate) mod clahe;
pub(crate) mod color;
pub(crate) mod edges;
mod engine;
mod field;
pub(crate) mod grain;
pub(crate) mod laplacian;
pub(crate) mod rank;
pub(crate) mod raw;
pub(crate) mod resize;
pub(crate) mod smooth;
pub(crate) mod turn;
pub(crate) mod warp;

use crate::declaration::{EffectError, Inputs, ReferenceCall, Settings, check};
use crate::image::{Image, Plane, Rect};
pub use engine::Reference;
use field::{Edge, Field};

/// Computes an effect. Samples of the result are `f32`.
pub fn run(settings: &Settings, inputs: &[Image]) -> Result<Image, EffectError> {
    let effect = settings.effect();
    settings.complete()?;
    let shapes: Vec<(Rect, Vec<&str>)> = inputs.iter().map(|image| (image.bounds(), image.names().collect())).collect();
    check(settings, &shapes)?;
    let image = &inputs[inputs.len() / 2 * usize::from(matches!(effect.inputs, Inputs::Frames(_)))];
    (effect.reference)(&ReferenceCall { settings, inputs, image })
}

impl ReferenceCall<'_> {
    /// Returns the value of an integer parameter.
    pub(crate) fn integer(&self, name: &str) -> i64 {
        self.settings.integer(name)
    }

    /// Returns the value of a number parameter.
    pub(crate) fn number(&self, name: &str) -> f64 {
        self.settings.number(name)
    }

    /// Returns the boundary rule and the value outside the image.
    pub(crate) fn edge(&self) -> Edge {
        Edge { rule: self.settings.rule(), border: self.settings.border() }
    }

    /// Applies a function to all planes.
    pub(crate) fn each(&self, function: impl Fn(&Field, Edge) -> Field) -> Result<Image, EffectError> {
        let planes = self.image.planes().iter().map(|plane| function(&Field::of(plane), self.edge()).plane(plane.name()));
        Ok(self.image.with_planes(planes.collect::<Result<_, _>>()?)?)
    }

    /// Applies a function to all planes except alpha.
    pub(crate) fn each_color(&self, function: impl Fn(&Field, Edge) -> Field) -> Result<Image, EffectError> {
        let planes = self.image.planes().iter().map(|plane| match plane.channel() {
            "A" => Field::of(plane).plane(plane.name()),
            _ => function(&Field::of(plane), self.edge()).plane(plane.name()),
        });
        Ok(self.image.with_planes(planes.collect::<Result<_, _>>()?)?)
    }
}

/// Returns the mean of all planes.
fn mean_of_planes(image: &Image) -> Field {
    let mut sum = Field::of(&image.planes()[0]);
    for plane in &image.planes()[1..] {
        sum = sum.zip(&Field::of(plane), |a, b| a + b);
    }
    let count = image.planes().len() as f64;
    sum.map(|value| value / count)
}

/// Returns the image with new values in some planes. All planes become `f32`.
fn replaced(image: &Image, changed: &[(usize, Field)]) -> Result<Image, EffectError> {
    let planes = image.planes().iter().enumerate().map(|(index, plane)| {
        let field = changed.iter().find(|(changed, _)| *changed == index).map(|(_, field)| field);
        field.map_or_else(|| Field::of(plane).plane(plane.name()), |field| field.plane(plane.name()))
    });
    Ok(image.with_planes(planes.collect::<Result<Vec<Plane>, _>>()?)?)
}
