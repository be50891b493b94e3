//! Boxes of memory: pitched rows and slices that are copied or filled.

use crate::status::{Outcome, Status};

/// One side of a copy: pitched rows and slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Side {
    /// Address of the first byte.
    pub(crate) address: u64,
    /// Row pitch in bytes.
    pub(crate) pitch: usize,
    /// Slice pitch in rows.
    pub(crate) rows: usize,
}

impl Side {
    /// Creates a side of contiguous bytes.
    pub(crate) fn linear(address: u64) -> Side {
        Side { address, pitch: 0, rows: 0 }
    }

    pub(crate) fn row(&self, y: usize, z: usize) -> u64 {
        self.address.wrapping_add((z.wrapping_mul(self.rows).wrapping_add(y)).wrapping_mul(self.pitch) as u64)
    }

    /// Returns the number of bytes from the first to the last byte of a box.
    pub(crate) fn span(&self, width: usize, height: usize, depth: usize) -> Option<u64> {
        let rows = (depth - 1).checked_mul(self.rows)?.checked_add(height - 1)?;
        rows.checked_mul(self.pitch)?.checked_add(width).map(|bytes| bytes as u64)
    }
}

/// Direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// Direction inferred from the addresses.
    Default,
}

impl Direction {
    /// Converts a `cudaMemcpyKind`.
    pub(crate) fn new(kind: u32) -> Outcome<Direction> {
        Ok(match kind {
            0 => Direction::HostToHost,
            1 => Direction::HostToDevice,
            2 => Direction::DeviceToHost,
            3 => Direction::DeviceToDevice,
            4 => Direction::Default,
            _ => return Err(Status::INVALID_MEMCPY_DIRECTION),
        })
    }

    pub(crate) fn ends_on_device(self) -> bool {
        matches!(self, Direction::HostToDevice | Direction::DeviceToDevice)
    }

    pub(crate) fn starts_on_device(self) -> bool {
        matches!(self, Direction::DeviceToHost | Direction::DeviceToDevice)
    }
}

/// Copy of a box of bytes: width, height and depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyBox {
    /// Destination.
    pub(crate) to: Side,
    /// Source.
    pub(crate) from: Side,
    /// Row length in bytes.
    pub(crate) width: usize,
    /// Number of rows.
    pub(crate) height: usize,
    /// Number of slices.
    pub(crate) depth: usize,
}

impl CopyBox {
    /// Creates a copy of contiguous bytes.
    pub(crate) fn linear(to: u64, from: u64, bytes: usize) -> CopyBox {
        CopyBox { to: Side::linear(to), from: Side::linear(from), width: bytes, height: 1, depth: 1 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Merges contiguous rows and slices.
    pub(crate) fn simplified(mut self) -> CopyBox {
        if self.depth > 1 && self.to.rows == self.height && self.from.rows == self.height {
            self.height *= self.depth;
            self.depth = 1;
        }
        if self.depth == 1 && self.height > 1 && self.to.pitch == self.width && self.from.pitch == self.width {
            self.width *= self.height;
            self.height = 1;
        }
        self
    }

    pub(crate) fn rows(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.depth).flat_map(move |z| (0..self.height).map(move |y| (self.to.row(y, z), self.from.row(y, z))))
    }
}

/// Fill of a box of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FillBox {
    /// Destination.
    pub(crate) to: Side,
    /// Value to store.
    pub(crate) value: u32,
    /// Size of a value: 1, 2 or 4 bytes.
    pub(crate) size: usize,
    /// Row length in values.
    pub(crate) width: usize,
    /// Number of rows.
    pub(crate) height: usize,
    /// Number of slices.
    pub(crate) depth: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_become_lines_where_they_can() {
        let side = |pitch, rows| Side { address: 0x1000, pitch, rows };
        let whole = CopyBox { to: side(8, 4), from: side(8, 4), width: 8, height: 4, depth: 3 };
        assert_eq!(whole.simplified(), CopyBox { to: side(8, 4), from: side(8, 4), width: 96, height: 1, depth: 1 });
        let pitched = CopyBox { to: side(16, 4), ..whole };
        assert_eq!((pitched.simplified().width, pitched.simplified().height), (8, 12));
        let rows: Vec<(u64, u64)> = CopyBox { width: 4, height: 2, depth: 2, ..pitched }.rows().collect();
        assert_eq!(rows, [(0x1000, 0x1000), (0x1010, 0x1008), (0x1040, 0x1020), (0x1050, 0x1028)]);
        assert_eq!(side(16, 4).span(8, 2, 2), Some(64 + 16 + 8));
        assert_eq!(side(usize::MAX, 4).span(8, 3, 2), None);
    }

    #[test]
    fn directions_are_the_headers() {
        assert_eq!(Direction::new(3), Ok(Direction::DeviceToDevice));
        assert_eq!(Direction::new(5), Err(Status::INVALID_MEMCPY_DIRECTION));
        assert!(Direction::HostToDevice.ends_on_device() && !Direction::HostToDevice.starts_on_device());
    }
}
