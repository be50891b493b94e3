//! Declarations of effects: parameters, settings, calls, and the interface of the engines that run them.
//!
//! An [`Effect`] is a row of the catalogue. [`Settings`] are the values of its parameters, and a [`Step`] is an
//! effect with its settings. An [`Engine`] runs chains of steps. The functors and the references of effects
//! stand on these declarations; the table of all effects stands on both.

mod choice;
mod engine;
mod error;
mod meaning;
mod nearest;
mod parameter;
mod settings;

pub(crate) use choice::{Angle, Choice, CurveShape, FlipAxis, Interpolation, Pattern, Premultiply};
pub use choice::{Filter, Threshold};
pub use engine::{Chain, Engine};
pub(crate) use engine::{chosen_planes, only_named, other_size};
pub use error::EffectError;
pub use meaning::KeyFactor;
pub(crate) use meaning::{
    Curve, Turn, alpha_name, channel, check, colors, cropped, grid_range, is_color, layer, levels, new_size, range, thresholds,
};
pub use nearest::nearest;
pub(crate) use parameter::InvalidValue;
pub use parameter::{Kind, Parameter, PlaneChoice, PlaneSource, Value};
pub use settings::{Settings, Step};

use crate::image::Image;
use crate::layers::Layers;
use broadloom_graph::Context;

/// Images that an effect takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Images with these roles. All of them cover the same pixels.
    Images(&'static [&'static str]),
    /// Frames around the current one, with equal numbers before and after it. The named parameter is that
    /// number.
    Frames(&'static str),
}

/// Effect: a name with its parameters, their meaning, and the functions that compute it.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// Name in the command.
    pub name: &'static str,
    /// One line of documentation.
    pub summary: &'static str,
    /// Definition of the result.
    pub formula: &'static str,
    /// Images that it takes.
    pub inputs: Inputs,
    /// Its own parameters, without those of the boundary rule.
    pub parameters: &'static [Parameter],
    /// Default boundary rule; `None` if only the pixel at the current position is read.
    pub boundary: Option<&'static str>,
    /// Builds the graph of functors that computes the effect on a device.
    pub functor: fn(&DeviceCall<'_>) -> Result<Layers, EffectError>,
    /// Computes the effect by its naive reference.
    pub reference: fn(&ReferenceCall<'_>) -> Result<Image, EffectError>,
}

/// Call of an effect on a device: settings that are complete, and images that fit.
#[derive(Clone, Copy, Debug)]
pub struct DeviceCall<'a> {
    pub(crate) context: &'a Context,
    pub(crate) settings: &'a Settings,
    pub(crate) inputs: &'a [Layers],
    /// Image that the effect changes; for frames, the middle one.
    pub(crate) image: &'a Layers,
}

/// Call of the reference of an effect: settings that are complete, and images that fit.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceCall<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) inputs: &'a [Image],
    /// Image that the effect changes; for frames, the middle one.
    pub(crate) image: &'a Image,
}

impl Effect {
    /// Returns all parameters: its own, then those of the boundary rule.
    pub fn all_parameters(&self) -> impl Iterator<Item = Parameter> {
        let rule = self.boundary.map(|default| Parameter { default: Some(default), ..parameter::BOUNDARY });
        let border = self.boundary.map(|_| parameter::BORDER);
        self.parameters.iter().copied().chain(rule).chain(border)
    }
}
