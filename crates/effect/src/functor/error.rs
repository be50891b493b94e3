//! Errors of functors, effect graphs and their evaluation.

use crate::image::ImageError;
use broadloom_scalar::Error as Scalar;

/// An effect that cannot be built or computed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A functor whose kernel contradicts its declarations, or that has too many parts.
    #[error("functor `{name}`: {reason}")]
    Functor {
        /// Name of the functor.
        name: String,
        /// Reason of the refusal.
        reason: String,
    },
    /// A call with images that do not fit the functor.
    #[error("functor `{name}` cannot be called with these images: {reason}")]
    Call {
        /// Name of the functor.
        name: String,
        /// Reason of the refusal.
        reason: String,
    },
    /// An image for which even a small tile needs more memory than allowed.
    #[error("a tile of {width}×{height} pixels needs {needed} bytes of memory, and {allowed} may be used: allow more memory")]
    Memory {
        /// Columns of the tile.
        width: u32,
        /// Rows of the tile.
        height: u32,
        /// Bytes that the images of the tile need.
        needed: u64,
        /// Bytes that the plan may use.
        allowed: u64,
    },
    /// A read outside a declared window, found in checking mode.
    #[error("functor `{name}`, input {input}: a read at ({x}, {y}) is outside of its declared window: {window}")]
    Outside {
        /// Name of the functor.
        name: String,
        /// Index of the input.
        input: usize,
        /// Column offset from the current pixel. Large offsets are clamped.
        x: i64,
        /// Row offset from the current pixel. Large offsets are clamped.
        y: i64,
        /// Declared window, as text.
        window: String,
    },
    /// A region that is empty or reaches beyond the image.
    #[error("the region {region} is not part of the image, which is {bounds}")]
    Region {
        /// Requested region.
        region: crate::Rect,
        /// Region of definition of the image.
        bounds: crate::Rect,
    },
    /// An image that cannot be created.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A failure of the planner or the device.
    #[error(transparent)]
    Graph(#[from] broadloom_graph::Error),
}

impl Error {
    /// Converts an error of a kernel. Removes the functor's name from the reasons, because the error itself
    /// states it.
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
