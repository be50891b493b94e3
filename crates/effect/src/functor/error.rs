//! Errors of functors, effect graphs and their evaluation.

use crate::image::ImageError;
use broadloom_scalar::Error as Scalar;

/// An effect that cannot be built or computed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A functor whose kernel does not keep to its declarations, or that has too many parts.
    #[error("functor `{name}`: {reason}")]
    Functor {
        /// The functor.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A call with images that do not fit.
    #[error("functor `{name}` cannot be called with these images: {reason}")]
    Call {
        /// The functor.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A read outside of a declared window, found in checking mode.
    #[error("functor `{name}`, input {input}: a read at ({x}, {y}) is outside of its declared window: {window}")]
    Outside {
        /// The functor.
        name: String,
        /// The input.
        input: usize,
        /// Columns from the current pixel; large offsets are reduced.
        x: i64,
        /// Rows from the current pixel; large offsets are reduced.
        y: i64,
        /// The window.
        window: String,
    },
    /// A region without pixels, or beyond the image.
    #[error("the region {region} is not part of the image, which is {bounds}")]
    Region {
        /// The region.
        region: crate::Rect,
        /// The region of definition.
        bounds: crate::Rect,
    },
    /// Images that do not fit into the memory that may be used, even in tiles.
    #[error("a tile of {width}×{height} pixels needs {needed} bytes of the device's memory, and {allowed} may be used")]
    Memory {
        /// Columns of the smallest tile.
        width: u32,
        /// Rows of the smallest tile.
        height: u32,
        /// The bytes that it needs, with the images that are read as a whole.
        needed: u64,
        /// The bytes that may be used.
        allowed: u64,
    },
    /// An image that cannot be made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The planner or the device.
    #[error(transparent)]
    Graph(#[from] broadloom_graph::Error),
}

impl Error {
    /// The mistakes of a kernel, without the name of the function twice.
    pub(crate) fn functor(name: &str, error: Scalar) -> Error {
        let reason = match error {
            Scalar::Invalid { problems, .. } => problems.join("; "),
            other => other.to_string(),
        };
        let prefix = format!("functor `{name}`, ");
        Error::Functor { name: name.to_owned(), reason: reason.replace(&prefix, "") }
    }
}

impl From<Scalar> for Error {
    fn from(error: Scalar) -> Error {
        Error::Graph(error.into())
    }
}

/// The result of building or computing an effect.
pub type Result<T> = std::result::Result<T, Error>;
