//! Index spaces, and their distribution over threads.

use crate::{Count, Error, Result, Sink, Source};
use broadloom_scalar::Type;

/// The shape of an index space as far as code depends on it: the number of axes, a flag for a long last axis,
/// and the lengths of short last axes that are constants of the code. Other sizes are not part of it.
/// The sizes of a call are the lengths of the axes. The last axis varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Domain {
    axes: usize,
    rows: bool,
    device: bool,
    /// Lengths of the last axes that are constants of the code, the last axis first; 0 for others.
    known: [u8; KNOWN],
}

/// Maximum number of axes whose lengths are constants.
const KNOWN: usize = 3;

/// Minimum length of a last axis that gets its own threads.
const LONG: u64 = crate::cost::LANES as u64;

impl Domain {
    /// One axis.
    pub const LINE: Domain = Domain::with_axes(1);

    /// Returns the domain that is fastest for these sizes.
    ///
    /// ```
    /// use broadloom_skeleton::Domain;
    /// assert_eq!(Domain::of(&[480, 640]), Domain::of(&[1080, 1920]));
    /// assert_ne!(Domain::of(&[480, 640]), Domain::of(&[480 * 640, 3]));
    /// ```
    pub fn of(sizes: &[u64]) -> Domain {
        match sizes {
            [] | [_] => Domain::with_axes(sizes.len()),
            [.., last] => Domain { rows: *last >= LONG, ..Domain::with_axes(sizes.len()) },
        }
    }

    /// Returns a domain with this number of axes and a long last axis.
    pub const fn with_axes(axes: usize) -> Domain {
        Domain { axes, rows: true, device: false, known: [0; KNOWN] }
    }

    /// Returns the domain with a length in device memory. The first size of a call is then an upper bound of
    /// the length of the first axis. The length itself is a `u32` in memory, the last of all inputs. Only a
    /// map has such a domain.
    #[must_use]
    pub const fn counted_on_device(self) -> Domain {
        Domain { device: true, ..self }
    }

    /// Returns true if the length of the first axis is in device memory.
    pub const fn is_counted_on_device(self) -> bool {
        self.device
    }

    /// Returns the domain with lengths of axes that are constants of the code, at the end. All calls have these
    /// sizes.
    #[must_use]
    pub fn with_known(self, lengths: &[Option<u64>]) -> Domain {
        let mut known = [0; KNOWN];
        let last = lengths.iter().rev().map_while(|length| length.and_then(|length| u8::try_from(length).ok()));
        known.iter_mut().zip(last).for_each(|(known, length)| *known = length);
        Domain { known, ..self }
    }

    /// Returns the length of an axis.
    pub fn size(self, axis: usize) -> Count {
        let known = self.axes.checked_sub(axis + 1).and_then(|back| self.known.get(back)).copied();
        known.filter(|length| *length > 0).map_or(Count::size(axis), |length| Count::Constant(length.into()))
    }

    /// Returns the product of the lengths of axes in a range.
    pub fn product(self, axes: std::ops::Range<usize>) -> Count {
        axes.map(|axis| self.size(axis)).reduce(|a, b| a * b).unwrap_or(Count::Constant(1))
    }

    /// Returns the number of axes.
    pub const fn axes(self) -> usize {
        self.axes
    }

    /// Returns true if the last axis is long, so that neighbouring threads can work along it.
    pub const fn has_rows(self) -> bool {
        self.rows
    }

    /// Returns the number of positions.
    pub fn count(self) -> Count {
        self.product(0..self.axes)
    }

    /// Checks that sources have as many axes as the domain. Returns the index type that the sources and the
    /// sink need, `u32` or `u64`.
    pub fn check(self, pattern: &'static str, sources: &[&Source], sink: &Sink) -> Result<Type> {
        if let Some(source) = sources.iter().find(|source| !source.given().is_empty()) {
            let reason = format!("`{}` takes values with a position, and none are given", source.function().name());
            return Err(Error::Pattern { pattern, reason });
        }
        self.check_positions(pattern, sources, sink)
    }

    /// Checks the axes, for a pattern that passes values with positions.
    pub(crate) fn check_positions(self, pattern: &'static str, sources: &[&Source], sink: &Sink) -> Result<Type> {
        let mut wide = sink.written().is_some_and(|written| written.index().element().bits() == 64);
        for source in sources {
            if source.axes() != self.axes {
                let name = source.function().name();
                let reason = format!("positions of `{name}` have {} indices, and the domain has {}", source.axes(), self.axes);
                return Err(Error::Pattern { pattern, reason });
            }
            wide |= source.index().element().bits() == 64;
        }
        Ok(if wide { Type::U64 } else { Type::U32 })
    }
}
