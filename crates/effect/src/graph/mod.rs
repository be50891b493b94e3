//! Effect graphs: pictures that functors make from pictures.
//!
//! A [`Picture`] is an image in memory, or one that will be computed. Calling a [`Primitive`] with pictures
//! checks that they fit and computes nothing. [`Picture::image`] requests the pixels. [`crate::plan`]
//! describes how they are computed.
//!
//! [`Primitive`]: crate::functor::Primitive

mod call;
mod picture;
mod reduce;
#[doc(hidden)]
pub mod region;
mod upload;
mod whole;

pub use picture::Picture;
pub(crate) use picture::{Frame, InRows, Origin, TakeRows, WholeCall, Window};
pub use reduce::Reduction;
pub(crate) use reduce::counts;
pub(crate) use upload::{allocated, uploaded};
