//! Limits of reading, and the size of an image against them.

use super::error::Problem;
use crate::image::{Rect, reserved};

/// Limits of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of all samples of an image, in bytes.
    pub bytes: u64,
}

impl Default for Limits {
    /// Returns a limit of 16 GiB.
    fn default() -> Limits {
        Limits { bytes: 16 << 30 }
    }
}

/// Checks the size of an image before its memory is allocated.
pub(super) fn check_size(width: u64, height: u64, bytes_per_pixel: u64, limits: Limits) -> Result<(u32, u32), Problem> {
    let area = width.checked_mul(height);
    let bytes = area.and_then(|area| area.checked_mul(bytes_per_pixel)).unwrap_or(u64::MAX);
    let sides = (u32::try_from(width), u32::try_from(height));
    let (Ok(columns), Ok(rows)) = sides else { return Err(Problem::Size { width, height }) };
    if Rect::sized(columns, rows).checked().is_err() {
        return Err(Problem::Size { width, height });
    }
    if bytes > limits.bytes {
        return Err(Problem::TooLarge { width, height, bytes, limit: limits.bytes });
    }
    // Pages are not touched. This only tests whether the system would allocate the memory.
    reserved::<u8>(bytes)?;
    Ok((columns, rows))
}
