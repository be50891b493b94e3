//! `warp`.

use super::field::{Edge, Field};
use crate::declaration::{EffectError, ReferenceCall};
use crate::image::Image;

/// Maximum coordinate that is read. Larger coordinates and NaN are replaced by it.
const FAR: f64 = 1e9;

/// Interpolates bilinearly between the four pixels around a position.
fn bilinear(x: &Field, column: f64, row: f64, edge: Edge) -> f64 {
    let near = |value: f64| if value.is_nan() { FAR } else { value.clamp(-FAR, FAR) };
    let (column, row) = (near(column), near(row));
    let (i, j) = (column.floor(), row.floor());
    let (fx, fy) = (column - i, row - j);
    let (i, j) = (i as i64, j as i64);
    let line = |j: i64| (1.0 - fx) * x.at(i, j, edge) + fx * x.at(i + 1, j, edge);
    (1.0 - fy) * line(j) + fy * line(j + 1)
}

/// Computes `warp`: x(p + scale · d(p)).
pub(crate) fn warp(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let (ReferenceCall { settings, image, inputs }, edge) = (*call, call.edge());
    let [dx, dy] = match inputs[1].planes() {
        [dx, dy, ..] => [Field::of(dx), Field::of(dy)],
        _ => {
            let reason = "its field needs two planes: the displacement along x and along y".to_owned();
            return Err(EffectError::Inputs { effect: settings.effect().name, reason });
        }
    };
    let scale = settings.number("scale");
    let planes = image.planes().iter().map(|plane| {
        let x = Field::of(plane);
        let moved = x.around(|i, j| bilinear(&x, i as f64 + scale * dx.get(i, j), j as f64 + scale * dy.get(i, j), edge));
        moved.plane(plane.name())
    });
    Ok(image.with_planes(planes.collect::<Result<_, _>>()?)?)
}
