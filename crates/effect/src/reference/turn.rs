//! `crop`, `rotate` and `flip`.

use super::field::Field;
use crate::declaration::{EffectError, ReferenceCall, Turn, cropped};
use crate::image::{Image, Plane, Rect};

/// Moves all pixels. `place` returns the column and the row of the pixel that comes to a place.
fn moved(image: &Image, width: u32, height: u32, place: impl Fn(i64, i64) -> (i64, i64)) -> Result<Image, EffectError> {
    let bounds = Rect { width, height, ..image.bounds() }.checked()?;
    let planes = image.planes().iter().map(|plane| {
        let x = Field::of(plane);
        let moved = Field::from_fn(i64::from(width), i64::from(height), |i, j| {
            let (column, row) = place(i, j);
            x.get(column, row)
        });
        moved.plane(plane.name())
    });
    Ok(image.replaced(bounds, planes.collect::<Result<Vec<Plane>, _>>()?)?)
}

/// Computes `crop`.
pub(crate) fn crop(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    let part = cropped(call.settings, call.image.bounds())?;
    moved(call.image, part.width, part.height, |i, j| (i + i64::from(part.x), j + i64::from(part.y)))
}

fn turned(image: &Image, turn: Turn) -> Result<Image, EffectError> {
    let (old_width, old_height) = (image.width(), image.height());
    let (width, height) = if turn.is_transposed { (old_height, old_width) } else { (old_width, old_height) };
    moved(image, width, height, |i, j| {
        let x = if turn.reversed[0] { i64::from(width) - 1 - i } else { i };
        let y = if turn.reversed[1] { i64::from(height) - 1 - j } else { j };
        if turn.is_transposed { (y, x) } else { (x, y) }
    })
}

/// Computes `rotate`.
pub(crate) fn rotate(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    turned(call.image, Turn::rotation(call.settings))
}

/// Computes `flip`.
pub(crate) fn flip(call: &ReferenceCall<'_>) -> Result<Image, EffectError> {
    turned(call.image, Turn::reflection(call.settings))
}
