//! The operations of the graph, one file each: see [`Operation`](crate::Operation).

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
