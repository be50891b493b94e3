//! The operations of the graph, one file each: see [`Operation`](crate::Operation).

mod call;
mod extreme;
mod histogram;
mod pack;
mod product;
mod reduce;
mod scan;
mod scatter;
mod segmented_reduce;
mod segmented_scan;
mod sort;
mod sweep;
mod window;

pub use call::Reads;
pub use sweep::Step;
