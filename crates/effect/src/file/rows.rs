//! Images that are read band by band.

use super::Problem;
use crate::image::{Image, Plane, Rect};

/// Decoder that gives the rows of an image in their order.
pub(super) trait ReadRows: Send {
    /// Returns the planes of the next rows. The decoder is asked for no more rows than there are.
    fn read(&mut self, rows: u32) -> Result<Vec<Plane>, Problem>;

    /// Checks what stands behind the last row.
    fn finish(&mut self) -> Result<(), Problem> {
        Ok(())
    }
}

/// An image that is open for reading.
pub(super) enum Opened {
    /// The image, where a file must be read as a whole.
    Whole(Image),
    /// A placeholder of the image, and the decoder of its rows.
    Rows(Image, Box<dyn ReadRows>),
}

impl Opened {
    /// Reads the whole image.
    pub(super) fn whole(self) -> Result<Image, Problem> {
        match self {
            Opened::Whole(image) => Ok(image),
            Opened::Rows(header, mut rows) => {
                let planes = rows.read(header.height())?;
                rows.finish()?;
                Ok(header.with_planes(planes)?)
            }
        }
    }
}

/// Returns the planes of the next rows from parts of any heights. `pending` keeps the rest of the last part.
pub(super) fn gathered(
    pending: &mut Option<Image>,
    rows: u32,
    mut next: impl FnMut() -> Result<Image, Problem>,
) -> Result<Vec<Plane>, Problem> {
    let (mut parts, mut left) = (vec![], rows);
    while left > 0 {
        let part = match pending.take() {
            Some(part) => part,
            None => next()?,
        };
        let taken = left.min(part.height());
        if taken < part.height() {
            *pending = Some(part.rows(taken..part.height()));
        }
        parts.push(part.rows(0..taken).with_origin(0, (rows - left) as i32)?);
        left -= taken;
    }
    let width = parts.first().map_or(0, Image::width);
    Ok(Image::of_bands(Rect::sized(width, rows), &parts)?.planes().to_vec())
}
