//! Limits of images: rectangles that an image may cover, and memory for its samples.

use super::{ImageError, Rect};

impl Rect {
    /// Returns the smallest rectangle that contains both. Fails if it exceeds the limits of an image.
    pub fn union(self, other: Rect) -> Result<Rect, ImageError> {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let width = self.right().max(other.right()) - i64::from(x);
        let height = self.bottom().max(other.bottom()) - i64::from(y);
        let too_large = ImageError::Size { width: width.unsigned_abs(), height: height.unsigned_abs() };
        match (u32::try_from(width), u32::try_from(height)) {
            (Ok(width), Ok(height)) => Rect { x, y, width, height }.checked(),
            _ => Err(too_large),
        }
    }

    /// Returns the rectangle if it is valid for an image: not empty, and all coordinates below 2³¹.
    pub fn checked(self) -> Result<Rect, ImageError> {
        let far = i64::from(i32::MAX);
        let is_sound = self.width > 0 && self.height > 0 && self.right() <= far && self.bottom() <= far;
        let too_long = self.width > Rect::MAX_EXTENT || self.height > Rect::MAX_EXTENT;
        match is_sound && !too_long {
            true => Ok(self),
            false => Err(ImageError::Size { width: u64::from(self.width), height: u64::from(self.height) }),
        }
    }
}

/// Returns an empty vector with capacity for `len` samples.
pub(crate) fn reserved<T>(len: u64) -> Result<Vec<T>, ImageError> {
    let bytes = len.saturating_mul(size_of::<T>() as u64);
    let mut samples = Vec::new();
    let len = usize::try_from(len).map_err(|_| ImageError::Memory(bytes))?;
    samples.try_reserve_exact(len).map_err(|_| ImageError::Memory(bytes))?;
    Ok(samples)
}
