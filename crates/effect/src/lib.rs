//! Image effects.
//!
//! An [`Image`] is a set of named planes over a rectangle. Copies and views share their samples.
//!
//! ```
//! use broadloom_effect::{Image, Rect};
//!
//! let image = Image::from_f32(3, 2, [("Y", vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5])])?;
//! let right = image.view(Rect::new(1, 0, 2, 2))?;
//! assert_eq!(right.plane("Y").unwrap().to_f32(), [0.1, 0.2, 0.4, 0.5]);
//! # Ok::<(), broadloom_effect::ImageError>(())
//! ```
//!
//! Modules use only those before them: `image`, `functor`, `graph`, `plan`, `layers`; `file`, which stands on `image`
//! alone; `declaration`, the parameters of effects and the interface of engines; `effects` and `reference`, which do not
//! know each other; `catalogue`, the table of all effects.

pub mod catalogue;
mod declaration;
pub mod effects;
pub mod file;
pub mod functor;
pub mod graph;
pub mod image;
mod layers;
pub mod plan;
pub mod reference;

pub use declaration::EffectError;
pub use file::FileError;
pub use functor::{Boundary, Error, Result};
pub use graph::{Picture, Reduction};
pub use image::{Alpha, ColorSpace, Image, ImageError, Metadata, Orientation, Plane, Rect, Sample, SampleType, Samples};
