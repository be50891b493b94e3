//! `premultiply`, `channels` and `composite`.

use super::field::Field;
use super::replaced;
use crate::declaration::{EffectError, PlaneSource, ReferenceCall, alpha_name, channel, is_color};
use crate::image::{Alpha, Image, ImageError, Plane};

/// Computes `premultiply`.
pub(crate) fn premultiply(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let image = call.image;
    let label: Alpha = call.settings.chosen("alpha");
    let is_associated = label == Alpha::Associated;
    let was_associated = image.alpha() == Alpha::Associated;
    if is_associated == was_associated {
        return Ok(image.clone().with_alpha(label));
    }
    let mut changed = vec![];
    for (index, plane) in image.planes().iter().enumerate().filter(|(_, plane)| is_color(plane.name())) {
        if let Some(alpha) = image.plane(&alpha_name(plane.name())) {
            let function = |color: f64, alpha: f64| match (is_associated, alpha == 0.0) {
                (true, _) => color * alpha,
                (false, true) => color,
                (false, false) => color / alpha,
            };
            changed.push((index, Field::of(plane).zip(&Field::of(alpha), function)));
        }
    }
    Ok(replaced(image, &changed)?.with_alpha(label))
}

/// Computes `channels`.
pub(crate) fn channels(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let image = call.image;
    let planes = call.settings.planes("planes").iter().map(|plane| match &plane.source {
        PlaneSource::Value(value) => Ok(Image::filled(image.bounds(), &[&plane.name], *value as f32)?.planes()[0].clone()),
        PlaneSource::Plane(name) => {
            let there = || image.names().map(str::to_owned).collect();
            let found = image.plane(name).ok_or_else(|| ImageError::NoPlane { name: name.clone(), there: there() })?;
            Ok(found.clone().renamed(&plane.name))
        }
    });
    Ok(image.with_planes(planes.collect::<Result<Vec<Plane>, ImageError>>()?)?)
}

/// Computes `composite`.
pub(crate) fn composite(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let [image, background] = call.inputs else { return Ok(call.image.clone()) };
    let premultiplied = |image: &Image, plane: &Plane| {
        let color = Field::of(plane);
        match image.plane(&alpha_name(plane.name())).filter(|_| is_color(plane.name()) && image.alpha() != Alpha::Associated) {
            Some(alpha) => color.zip(&Field::of(alpha), |color, alpha| color * alpha),
            None => color,
        }
    };
    let mut planes = vec![];
    for plane in image.planes().iter().filter(|plane| plane.channel() != "A") {
        let Some(below) = background.plane(plane.name()) else {
            let there = background.names().collect::<Vec<&str>>().join(", ");
            let reason = format!("the background has no plane `{}`; it has {there}", plane.name());
            return Err(EffectError::Inputs { effect: call.settings.effect().name, reason });
        };
        let front = premultiplied(image, plane);
        let over = match image.plane(&alpha_name(plane.name())).filter(|_| is_color(plane.name())) {
            None => front,
            Some(alpha) => {
                let behind = premultiplied(background, below).zip(&Field::of(alpha), |back, alpha| back * (1.0 - alpha));
                front.zip(&behind, |front, behind| front + behind)
            }
        };
        planes.push(over.plane(plane.name())?);
    }
    for below in background.planes().iter().filter(|plane| channel(plane.name()) == "A") {
        let back = Field::of(below);
        let over = match image.plane(below.name()) {
            None => back.map(|_| 1.0),
            Some(front) => Field::of(front).zip(&back, |front, back| front + back * (1.0 - front)),
        };
        planes.push(over.plane(below.name())?);
    }
    Ok(image.with_planes(planes)?.with_alpha(Alpha::Associated))
}
