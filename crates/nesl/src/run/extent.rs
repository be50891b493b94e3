//! Numbers of elements.

use broadloom_graph::{Amount, Length, Shape};

/// Number of elements of a vector.
///
/// The bound of a number that only the device knows is at least 2: a node of one element represents equal
/// elements.
#[derive(Clone, Debug)]
pub(crate) enum Extent {
    /// Number known to the host. During the trace of a call it may depend on the sizes of columns.
    Host(Amount),
    /// Number that only the device knows.
    Device(Length),
}

/// Returns the shape of a line.
pub(crate) fn line(count: &Amount) -> Shape {
    Shape::from_amounts(std::slice::from_ref(count))
}

impl Extent {
    /// Returns the number of elements, or an upper bound.
    pub(crate) fn bound(&self) -> &Amount {
        match self {
            Extent::Host(count) => count,
            Extent::Device(length) => length.amount(),
        }
    }

    /// Makes a number of the host.
    pub(crate) fn host(count: usize) -> Extent {
        Extent::Host(Amount::from(count))
    }

    pub(crate) fn is_host(&self, count: usize) -> bool {
        matches!(self, Extent::Host(known) if known.equals(&count.into()))
    }

    /// Returns the number as one of the host if the host has learned it.
    pub(crate) fn learned(&self) -> Extent {
        match self {
            Extent::Device(length) => length.known_amount().map_or_else(|| self.clone(), Extent::Host),
            Extent::Host(_) => self.clone(),
        }
    }

    /// Returns the number if the host knows it.
    pub(crate) fn number(&self) -> Option<Amount> {
        match self {
            Extent::Host(count) => Some(count.clone()),
            Extent::Device(length) => length.known_amount(),
        }
    }

    /// Returns the length if the host has not learned it.
    pub(crate) fn unknown(&self) -> Option<&Length> {
        match self {
            Extent::Device(length) if length.known_amount().is_none() => Some(length),
            _ => None,
        }
    }
}
