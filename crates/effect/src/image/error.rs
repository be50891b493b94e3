//! Errors in the construction of images.

use super::Rect;

/// An image that cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// An empty image, or one whose sides or coordinates exceed the limits.
    #[error(
        "an image of {width}×{height} pixels: both sides must be from 1 to {}, and all coordinates below 2³¹",
        Rect::MAX_EXTENT
    )]
    Size {
        /// Requested width.
        width: u64,
        /// Requested height.
        height: u64,
    },
    /// An image with no planes or too many.
    #[error("an image of {0} planes: there must be from 1 to {max}", max = super::Image::MAX_PLANES)]
    Planes(usize),
    /// A plane whose rows overlap.
    #[error("plane `{name}`: rows {pitch} samples apart are shorter than {width} columns")]
    Pitch {
        /// Name of the plane.
        name: String,
        /// Distance between rows, in samples.
        pitch: usize,
        /// Number of columns.
        width: u32,
    },
    /// A plane with too few samples.
    #[error("plane `{name}`: {len} samples are too few for {width}×{height} pixels in rows {pitch} apart")]
    Samples {
        /// Name of the plane.
        name: String,
        /// Number of columns.
        width: u32,
        /// Number of rows.
        height: u32,
        /// Distance between rows, in samples.
        pitch: usize,
        /// Number of samples.
        len: usize,
    },
    /// A plane whose size differs from that of the image.
    #[error("plane `{name}` has {width}×{height} pixels, the image is {bounds}")]
    PlaneSize {
        /// Name of the plane.
        name: String,
        /// Number of columns of the plane.
        width: u32,
        /// Number of rows of the plane.
        height: u32,
        /// Region of definition of the image.
        bounds: Rect,
    },
    /// Two planes with the same name.
    #[error("two planes have the name `{0}`")]
    TwoPlanes(String),
    /// A missing plane.
    #[error("there is no plane `{name}`; there is {}", .there.join(", "))]
    NoPlane {
        /// Requested name.
        name: String,
        /// Names of the existing planes.
        there: Vec<String>,
    },
    /// A region that reaches beyond the image.
    #[error("the region {region} reaches beyond the image, which is {bounds}")]
    Region {
        /// Requested region.
        region: Rect,
        /// Region of definition of the image.
        bounds: Rect,
    },
    /// An array whose axes are not those of an image.
    #[error("an array of shape {0:?} is no image: it must have the axes plane, row, column")]
    Shape(Vec<usize>),
    /// A failed allocation, with its size in bytes.
    #[error("there is no memory for {0} bytes of an image")]
    Memory(u64),
}
