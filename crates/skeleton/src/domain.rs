//! Index spaces, and their distribution over threads.

use crate::{Count, Error, Result, Sink, Source};
use broadloom_scalar::Type;

/// The shape of an index space as far as code depends on it: the number of axes, and a flag for a long last
/// axis. Sizes are not part of it.
/// The sizes of a call are the lengths of the axes. The last axis varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Domain {
    axes: usize,
    rows: bool,
    device: bool,
}

/// Minimum length of a last axis that gets its own threads.
const LONG: u64 = crate::cost::LANES as u64;

impl Domain {
    /// One axis.
    pub const LINE: Domain = Domain { axes: 1, rows: true, device: false };

    /// Returns the domain that is fastest for these sizes.
    ///
    /// ```
    /// use broadloom_skeleton::Domain;
    /// assert_eq!(Domain::of(&[480, 640]), Domain::of(&[1080, 1920]));
    /// assert_ne!(Domain::of(&[480, 640]), Domain::of(&[480 * 640, 3]));
    /// ```
    pub fn of(sizes: &[u64]) -> Domain {
        match sizes {
            [] | [_] => Domain { axes: sizes.len(), rows: true, device: false },
            [.., last] => Domain { axes: sizes.len(), rows: *last >= LONG, device: false },
        }
    }

    /// Returns a domain with this number of axes and a long last axis.
    pub const fn with_axes(axes: usize) -> Domain {
        Domain { axes, rows: true, device: false }
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
        Count::product(0..self.axes)
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
