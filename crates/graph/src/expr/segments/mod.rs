//! Ragged data: lines whose elements are grouped into segments of any length.
//!
//! A [`Segments`] is a descriptor. It defines where each segment of a line begins and ends, and is used with
//! any number of lines of that length. Its forms are made on first use and kept in the descriptor:
//!
//! | form | element | one for each |
//! | --- | --- | --- |
//! | [lengths](Segments::lengths) | `i64` | segment |
//! | [offsets](Segments::offsets) | `i64` | segment, and one more |
//! | [head flags](Segments::heads) | `bool` | element |
//! | [ids](Segments::ids) | `i32` | element |
//!
//! Forms are nodes, so nothing is computed before it is used. A form that a plan computes anyway is written
//! to memory while the descriptor is alive, and no later evaluation computes it again.
//!
//! The number of elements and the number of segments are each known on the host, or a [`Length`] that only
//! the device knows. Nothing waits for a length. If a line is not known to have the length of the descriptor,
//! the numbers are compared, which waits.
//!
//! Work is spread over elements. An empty segment costs at most as much as an element.

mod arrange;
mod descriptor;
mod elements;
mod form_cache;
mod forms;
mod measure;
mod offsets;
mod order;
mod pack;
mod pick;
mod reduce;
mod scan;

pub use descriptor::Segments;
pub use form_cache::StoredForms;
pub use measure::Total;
pub use pick::IndexedLines;
pub use scan::Direction;
