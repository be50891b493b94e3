//! Rectangles of pixels.

use std::fmt;

/// A rectangle of pixels with an origin. `x` grows to the right, `y` downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rect {
    /// Leftmost column.
    pub x: i32,
    /// Topmost row.
    pub y: i32,
    /// Number of columns.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

impl Rect {
    /// Maximum width and height.
    pub const MAX_EXTENT: u32 = i32::MAX as u32;

    /// Creates a rectangle.
    pub const fn new(x: i32, y: i32, width: u32, height: u32) -> Rect {
        Rect { x, y, width, height }
    }

    /// Creates a rectangle whose origin is (0, 0).
    pub const fn sized(width: u32, height: u32) -> Rect {
        Rect::new(0, 0, width, height)
    }

    /// Returns the first column to the right of the rectangle.
    pub fn right(self) -> i64 {
        i64::from(self.x) + i64::from(self.width)
    }

    /// Returns the first row below the rectangle.
    pub fn bottom(self) -> i64 {
        i64::from(self.y) + i64::from(self.height)
    }

    /// Returns the number of pixels.
    pub fn area(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Returns whether `other` lies inside.
    pub fn contains(self, other: Rect) -> bool {
        other.x >= self.x && other.y >= self.y && other.right() <= self.right() && other.bottom() <= self.bottom()
    }

    /// Returns the intersection, if it has pixels.
    pub fn intersection(self, other: Rect) -> Option<Rect> {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let width = self.right().min(other.right()) - i64::from(x);
        let height = self.bottom().min(other.bottom()) - i64::from(y);
        match (u32::try_from(width), u32::try_from(height)) {
            (Ok(width @ 1..), Ok(height @ 1..)) => Some(Rect { x, y, width, height }),
            _ => None,
        }
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}×{} at ({}, {})", self.width, self.height, self.x, self.y)
    }
}
