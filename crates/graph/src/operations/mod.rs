//! The operations of the graph, one file each: see [`Operation`](crate::Operation).

mod call;
mod extreme;
mod histogram;
mod pack;
mod product;
mod reduce;
mod scan;
mod scatter;
mod segment_numbers;
mod segmented_extreme;
mod segmented_reduce;
mod segmented_scan;
mod sort;
mod sweep;
mod trap;
mod window;

pub use call::Reads;
pub use sweep::Step;

use crate::text::Read;

/// The operations by their names in the textual form.
pub(crate) const WORDS: &[(&str, Read)] = &[
    ("argmax", extreme::read),
    ("argmin", extreme::read),
    ("compute", call::read),
    ("histogram", histogram::read),
    ("pack", pack::read),
    ("partition", pack::read),
    ("product", product::read),
    ("reduce", reduce::read),
    ("scan", scan::read),
    ("scatter", scatter::read),
    ("segment_numbers", segment_numbers::read),
    ("segmented_argmax", segmented_extreme::read),
    ("segmented_argmin", segmented_extreme::read),
    ("segmented_reduce", segmented_reduce::read),
    ("segmented_scan", segmented_scan::read),
    ("segmented_sort", sort::read_segmented),
    ("sort", sort::read),
    ("sweep", sweep::read),
    ("trap", trap::read),
    ("window", window::read),
];
