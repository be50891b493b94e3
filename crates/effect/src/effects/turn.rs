//! Parts of images, and images that are turned by right angles or reflected.

use crate::declaration::Turn;
use crate::functor::{Indexer, Output, Placement, Primitive};
use crate::image::Rect;
use crate::{Picture, Result};

/// Returns a part, with columns and rows from the corner of the picture.
pub fn crop(picture: &Picture, part: Rect) -> Result<Picture> {
    let functor = Primitive::from_kernel("crop", &[Indexer::anywhere()], &[Output::Component], &[], |k| {
        vec![k.input(0).pick(k.x() + part.x, k.y() + part.y)]
    })?;
    let placement = Placement { reversed: [false; 2], is_transposed: false, corner: [part.x, part.y] };
    functor.with_placement(placement).with_size(part.width as usize, part.height as usize)?.one(&[picture])
}

/// Turns a picture.
pub(crate) fn turn(picture: &Picture, turn: Turn) -> Result<Picture> {
    let bounds = picture.bounds();
    let (width, height) = match turn.is_transposed {
        true => (bounds.height, bounds.width),
        false => (bounds.width, bounds.height),
    };
    let functor = Primitive::from_kernel("turn", &[Indexer::anywhere()], &[Output::Component], &[], |k| {
        let x = if turn.reversed[0] { width as i32 - 1 - k.x() } else { k.x() };
        let y = if turn.reversed[1] { height as i32 - 1 - k.y() } else { k.y() };
        vec![if turn.is_transposed { k.input(0).pick(y, x) } else { k.input(0).pick(x, y) }]
    })?;
    let placement = Placement { reversed: turn.reversed, is_transposed: turn.is_transposed, corner: [0, 0] };
    functor.with_placement(placement).with_size(width as usize, height as usize)?.one(&[picture])
}
