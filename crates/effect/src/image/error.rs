//! Mistakes in the making of images.

use super::Rect;

/// An image that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// No pixels, or too many.
    #[error(
        "an image of {width}×{height} pixels: both sides must be from 1 to {}, and all coordinates below 2³¹",
        Rect::MAX_EXTENT
    )]
    Size {
        /// The width asked for.
        width: u64,
        /// The height asked for.
        height: u64,
    },
    /// No planes, or too many.
    #[error("an image of {0} planes: there must be from 1 to {max}", max = super::Image::MAX_PLANES)]
    Planes(usize),
    /// Rows that overlap.
    #[error("plane `{name}`: rows {pitch} samples apart are shorter than {width} columns")]
    Pitch {
        /// The plane.
        name: String,
        /// The distance of rows.
        pitch: usize,
        /// The number of columns.
        width: u32,
    },
    /// Too few samples.
    #[error("plane `{name}`: {len} samples are too few for {width}×{height} pixels in rows {pitch} apart")]
    Samples {
        /// The plane.
        name: String,
        /// The number of columns.
        width: u32,
        /// The number of rows.
        height: u32,
        /// The distance of rows.
        pitch: usize,
        /// The number of samples.
        len: usize,
    },
    /// A plane of another size.
    #[error("plane `{name}` has {width}×{height} pixels, the image is {bounds}")]
    PlaneSize {
        /// The plane.
        name: String,
        /// Its number of columns.
        width: u32,
        /// Its number of rows.
        height: u32,
        /// The region of definition.
        bounds: Rect,
    },
    /// Two planes of one name.
    #[error("two planes have the name `{0}`")]
    TwoPlanes(String),
    /// A plane that is not there.
    #[error("there is no plane `{name}`; there is {}", .there.join(", "))]
    NoPlane {
        /// The name asked for.
        name: String,
        /// The names there are.
        there: Vec<String>,
    },
    /// A region that reaches beyond the image.
    #[error("the region {region} reaches beyond the image, which is {bounds}")]
    Region {
        /// The region asked for.
        region: Rect,
        /// The region of definition.
        bounds: Rect,
    },
    /// An array whose axes are not those of an image.
    #[error("an array of shape {0:?} is no image: it must have the axes plane, row, column")]
    Shape(Vec<usize>),
    /// Too little memory.
    #[error("there is no memory for {0} bytes of an image")]
    Memory(u64),
}

/// Returns an empty vector with room for `len` samples.
pub(crate) fn reserved<T>(len: u64) -> Result<Vec<T>, ImageError> {
    let bytes = len.saturating_mul(size_of::<T>() as u64);
    let mut samples = Vec::new();
    let len = usize::try_from(len).map_err(|_| ImageError::Memory(bytes))?;
    samples.try_reserve_exact(len).map_err(|_| ImageError::Memory(bytes))?;
    Ok(samples)
}
