//! Effects: graphs of functors for the effects of the catalogue.
//!
//! Each function takes pictures and returns one, and computes nothing itself. The catalogue has the formulas. The
//! guide says which effects are approximate.

mod alpha;
mod banded;
mod blur;
pub(crate) mod calls;
mod canny;
mod clahe;
mod colour;
mod edges;
mod engine;
mod grain;
mod grid;
mod laplacian;
#[doc(hidden)]
pub mod median;
mod morphology;
mod raw;
mod resize;
mod smooth;
mod table;
mod temporal;
mod turn;
mod warp;

pub use crate::declaration::{Filter, KeyFactor, Threshold};
pub use crate::layers::Layers;
pub use alpha::{alpha_over, by_alpha, over};
pub use banded::{Band, BandedChain, ReadOrder, StagePass};
pub use blur::{box_blur, gaussian, line_mean, unsharp};
pub use canny::canny;
pub use clahe::{Clahe, clahe};
pub use colour::{ColourKey, Levels, PointCurve, color_matrix, curves, key, levels, tone_map, weighted};
pub use edges::{gradients, harris, mean_of_components, sobel};
pub use engine::{OnDevice, apply, chained, run};
pub use grain::{Shrinkage, degrain, diffusion};
pub use grid::{GridSettings, bilateral_grid};
pub use laplacian::{LocalLaplacian, detail, local_laplacian, luma};
pub use median::median;
pub use morphology::{Extreme, close, extreme, open};
pub use raw::{Bayer, Camera, camera, demosaic};
pub use resize::resize;
pub use smooth::{bilateral, nlmeans};
pub use table::{Table, lut};
pub use temporal::{Temporal, motion, temporal_degrain};
pub use turn::crop;
pub(crate) use turn::turn;
pub use warp::warp;
