//! The operations of the graph, one file for each: see [`Operation`](crate::Operation).

mod call;
mod histogram;
mod pack;
mod product;
mod reduce;
mod reduction;
mod relay;
mod scan;
mod scatter;
mod segment_numbers;
mod segmented_reduce;
mod sort;
mod sweep;
mod trap;
mod window;

pub use call::Reads;
pub use sweep::Step;

use crate::expr::parsed_call::NodeMaker;

/// Operations by their names in the textual form.
pub(crate) const WORDS: &[(&str, NodeMaker)] = &[
    ("argmax", reduce::read_extreme),
    ("argmin", reduce::read_extreme),
    ("compute", call::read),
    ("histogram", histogram::read),
    ("pack", pack::read),
    ("partition", pack::read),
    ("product", product::read),
    ("reduce", reduce::read),
    ("relay", relay::read),
    ("scan", scan::read),
    ("scatter", scatter::read),
    ("segment_numbers", segment_numbers::read),
    ("segmented_argmax", segmented_reduce::read_extreme),
    ("segmented_argmin", segmented_reduce::read_extreme),
    ("segmented_reduce", segmented_reduce::read),
    ("segmented_scan", scan::read_segmented),
    ("segmented_sort", sort::read),
    ("sort", sort::read),
    ("sweep", sweep::read),
    ("trap", trap::read),
    ("window", window::read),
];
