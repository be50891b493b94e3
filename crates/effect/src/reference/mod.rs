//! Naive references of all effects: plain loops in `f64` that follow the formulas of the catalogue.
//!
//! They define the results of effects, and effects on devices are compared with them. They are not optimised.
//!
//! Every intermediate image has the size of the image before it and follows the boundary rule at its own
//! border.

mod blur;
mod clahe;
mod color;
mod edges;
mod field;
mod grain;
mod laplacian;
mod rank;
mod raw;
mod resize;
mod smooth;
mod warp;

use crate::catalogue::{EffectError, Inputs, Settings};
use crate::image::{Image, Plane, Rect};
pub(crate) use color::Curve;
pub use color::KeyFactor;
use field::{Edge, Field};
pub(crate) use resize::new_size;

/// Maximum number of cells of a bilateral grid from `low` to `high`.
const MAX_GRID: f64 = 4094.0;

/// Computes an effect. Samples of the result are `f32`.
pub fn run(settings: &Settings, inputs: &[Image]) -> Result<Image, EffectError> {
    let effect = settings.effect();
    settings.complete()?;
    let shapes: Vec<(Rect, Vec<&str>)> = inputs.iter().map(|image| (image.bounds(), image.names().collect())).collect();
    check(settings, &shapes)?;
    let image = &inputs[inputs.len() / 2 * usize::from(matches!(effect.inputs, Inputs::Frames(_)))];
    let edge = Edge { rule: settings.rule(), border: settings.border() };
    let each = |function: &dyn Fn(&Field) -> Field| {
        let planes = image.planes().iter().map(|plane| function(&Field::of(plane)).plane(plane.name()));
        Ok(image.with_planes(planes.collect::<Result<_, _>>()?)?)
    };
    match effect.name {
        "bilateral" => {
            let (radius, space) = (settings.integer("radius"), settings.number("sigma_space"));
            each(&|x| smooth::bilateral(x, edge, radius, space, settings.number("sigma_range")))
        }
        "bilateral_grid" => {
            let (low, high) = grid_range(settings)?;
            each(&|x| smooth::grid(x, edge, settings.integer("cell"), settings.number("range"), low, high))
        }
        "box" => each(&|x| blur::mean(x, edge, settings.integer("radius"))),
        "camera" => Ok(raw::camera(settings, image, edge)?.with_gamma(settings.number("gamma"))),
        "canny" => edges::canny(settings, image, edge),
        "clahe" => {
            let range = range(settings)?;
            let tiles = settings.integer("tiles");
            each_color(image, &|x| clahe::equalise(x, edge, tiles, settings.number("clip"), settings.integer("bins"), range))
        }
        "close" => {
            let radius = settings.integer("radius");
            each(&|x| rank::erode(&rank::dilate(x, edge, radius), edge, radius))
        }
        "color_matrix" => color::matrix(settings, image),
        "curves" => {
            let curve = color::Curve::new(settings)?;
            each_color(image, &|x| x.map(|value| curve.at(value)))
        }
        "degrain" => each(&|x| grain::degrain(x, edge, settings.integer("levels"), settings.number("threshold"))),
        "demosaic" => raw::demosaic(settings, image, edge),
        "diffusion" => each(&|x| grain::diffusion(x, edge, settings.integer("radius"), settings.number("mix"))),
        "dilate" => each(&|x| rank::dilate(x, edge, settings.integer("radius"))),
        "erode" => each(&|x| rank::erode(x, edge, settings.integer("radius"))),
        "gaussian" => each(&|x| blur::gaussian(x, edge, settings.number("sigma"))),
        "harris" => edges::harris(settings, image, edge),
        "key" => color::key(settings, image),
        "local_laplacian" => laplacian::local(settings, image, edge),
        "lut" => color::lut(settings, image),
        "median" => each(&|x| rank::median(x, edge, settings.integer("radius"))),
        "nlmeans" => {
            let (search, patch) = (settings.integer("search"), settings.integer("patch"));
            each(&|x| smooth::nlmeans(x, edge, search / 2, patch / 2, settings.number("strength")))
        }
        "open" => {
            let radius = settings.integer("radius");
            each(&|x| rank::dilate(&rank::erode(x, edge, radius), edge, radius))
        }
        "resize" => resize::resize(settings, image),
        "sobel" => each(&|x| edges::sobel(x, edge)),
        "temporal_degrain" => grain::temporal(settings, inputs, edge),
        "tone_map" => {
            let gain = settings.number("exposure").exp2();
            each_color(image, &|x| x.map(|value| gain * value / (1.0 + gain * value)))
        }
        "unsharp" => each(&|x| {
            let soft = blur::gaussian(x, edge, settings.number("sigma"));
            let amount = settings.number("amount");
            x.zip(&soft, |value, soft| value + amount * (value - soft))
        }),
        "warp" => warp::warp(settings, image, &inputs[1], edge),
        other => Err(EffectError::UnknownEffect { name: other.to_owned(), nearest: None }),
    }
}

/// Fails if the number or the sizes of images do not fit the effect.
pub(crate) fn check(settings: &Settings, inputs: &[(Rect, Vec<&str>)]) -> Result<(), EffectError> {
    let effect = settings.effect();
    let wanted = match effect.inputs {
        Inputs::Images(roles) => roles.len(),
        Inputs::Frames(parameter) => 2 * settings.integer(parameter) as usize + 1,
    };
    let fail = |reason| Err(EffectError::Inputs { effect: effect.name, reason });
    if inputs.len() != wanted {
        let plural = if wanted == 1 { "" } else { "s" };
        return fail(format!("it takes {wanted} image{plural}, and there are {}", inputs.len()));
    }
    let (first, names) = &inputs[0];
    if let Some((other, _)) = inputs.iter().find(|(bounds, _)| bounds != first) {
        return fail(format!("its images must cover the same pixels; one is {first}, another {other}"));
    }
    if matches!(effect.inputs, Inputs::Frames(_)) && inputs.iter().any(|(_, own)| own != names) {
        return fail("its frames must have the same planes".to_owned());
    }
    Ok(())
}

/// Returns `black` and `white` of a sensor. Fails if they are equal in `f32`.
pub(crate) fn levels(settings: &Settings) -> Result<(f64, f64), EffectError> {
    let (black, white) = (settings.number("black"), settings.number("white"));
    match black as f32 != white as f32 {
        true => Ok((black, white)),
        false => Err(EffectError::BadValue {
            effect: settings.effect().name.to_owned(),
            name: "white".to_owned(),
            value: white.to_string(),
            reason: format!("it must differ from black, which is {black}, as an f32"),
        }),
    }
}

/// Returns `low` and `high`. Fails unless `low` is less than `high` in `f32`.
pub(crate) fn range(settings: &Settings) -> Result<(f64, f64), EffectError> {
    let (low, high) = (settings.number("low"), settings.number("high"));
    match (low as f32) < high as f32 {
        true => Ok((low, high)),
        false => Err(EffectError::BadValue {
            effect: settings.effect().name.to_owned(),
            name: "high".to_owned(),
            value: high.to_string(),
            reason: format!("it must be greater than low, which is {low}, as an f32"),
        }),
    }
}

/// Returns `low` and `high` of a bilateral grid. Fails if the grid has too many cells.
pub(crate) fn grid_range(settings: &Settings) -> Result<(f64, f64), EffectError> {
    let (low, high) = range(settings)?;
    if (high - low) / settings.number("range") <= MAX_GRID {
        return Ok((low, high));
    }
    let (effect, name) = (settings.effect().name.to_owned(), "range".to_owned());
    let reason = format!("it must be at least 1/{MAX_GRID} of high − low, which are {high} and {low}");
    Err(EffectError::BadValue { effect, name, value: settings.value("range").to_string(), reason })
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

/// Applies a function to all planes except alpha.
fn each_color(image: &Image, function: &dyn Fn(&Field) -> Field) -> Result<Image, EffectError> {
    let planes = image.planes().iter().map(|plane| match plane.channel() {
        "A" => Field::of(plane).plane(plane.name()),
        _ => function(&Field::of(plane)).plane(plane.name()),
    });
    Ok(image.with_planes(planes.collect::<Result<_, _>>()?)?)
}

/// Returns the layer of a plane: its name before the last dot; empty if there is no dot.
pub(crate) fn layer(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(layer, _)| layer)
}

/// Returns the channel of a plane: its name after the last dot.
pub(crate) fn channel(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, channel)| channel)
}

/// Returns the indices of red, green and blue: the planes of these names in the layer of the first `R`;
/// otherwise the first three planes.
pub(crate) fn colors(effect: &'static str, names: &[&str]) -> Result<[usize; 3], EffectError> {
    if let Some(red) = names.iter().position(|name| channel(name) == "R") {
        let of = |wanted: &str| names.iter().position(|name| layer(name) == layer(names[red]) && channel(name) == wanted);
        if let (Some(green), Some(blue)) = (of("G"), of("B")) {
            return Ok([red, green, blue]);
        }
    }
    match names.len() {
        3.. => Ok([0, 1, 2]),
        count => {
            let reason = format!("it needs red, green and blue; the image has {count} of them");
            Err(EffectError::Inputs { effect, reason })
        }
    }
}

/// Returns the image with new values in some planes. All planes become `f32`.
fn replaced(image: &Image, changed: &[(usize, Field)]) -> Result<Image, EffectError> {
    let planes = image.planes().iter().enumerate().map(|(index, plane)| {
        let field = changed.iter().find(|(changed, _)| *changed == index).map(|(_, field)| field);
        field.map_or_else(|| Field::of(plane).plane(plane.name()), |field| field.plane(plane.name()))
    });
    Ok(image.with_planes(planes.collect::<Result<Vec<Plane>, _>>()?)?)
}
