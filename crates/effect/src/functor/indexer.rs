//! Indexers: the declarations of how a functor reads its inputs.
//!
//! Indexers are all that the optimiser knows about reads. The axis and the radius are chosen at run time,
//! when the functor is created.

/// An axis of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Along rows.
    Horizontal,
    /// Along columns.
    Vertical,
}

impl Axis {
    /// Returns the other axis.
    pub const fn across(self) -> Axis {
        match self {
            Axis::Horizontal => Axis::Vertical,
            Axis::Vertical => Axis::Horizontal,
        }
    }
}

/// The offsets that an indexer allows, relative to the current pixel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AllowedOffsets {
    /// The current pixel alone: 0-D.
    Point,
    /// Pixels along an axis, before and after the current one: 1-D.
    Line {
        /// The axis along which offsets are allowed.
        axis: Axis,
        /// Number of pixels before the current one.
        before: u32,
        /// Number of pixels after the current one.
        behind: u32,
    },
    /// A rectangle around the current pixel: 2-D.
    Rectangle {
        /// Columns on each side.
        x: u32,
        /// Rows on each side.
        y: u32,
    },
    /// A list of offsets, columns first.
    Sparse(Vec<[i32; 2]>),
    /// Any position along an axis through the current pixel, counted from the edge of the image.
    Along(Axis),
    /// Any position of the image, counted from its upper left corner. Every result needs the whole image.
    Anywhere,
}

/// Extents of a window: from its first to its last column, and from its first to its last row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reach {
    /// Columns to the left of the current one.
    pub left: u32,
    /// Columns to the right of the current one.
    pub right: u32,
    /// Rows above the current one.
    pub above: u32,
    /// Rows below the current one.
    pub below: u32,
}

impl Reach {
    /// Returns the reach of a transposed image.
    pub const fn transposed(self) -> Reach {
        Reach { left: self.above, right: self.below, above: self.left, below: self.right }
    }

    /// Returns the smallest reach that contains both.
    pub fn union(self, other: Reach) -> Reach {
        Reach {
            left: self.left.max(other.left),
            right: self.right.max(other.right),
            above: self.above.max(other.above),
            below: self.below.max(other.below),
        }
    }

    /// Returns whether the window is the current pixel alone.
    pub fn is_point(self) -> bool {
        self == Reach::default()
    }
}

/// Maximum offset of a window.
pub const MAX_RADIUS: u32 = 1 << 16;
/// Maximum number of offsets of a sparse indexer.
pub const MAX_SPARSE: usize = 4096;
/// Maximum number of components of a pixel that a functor reads or writes.
pub const MAX_COMPONENTS: usize = 64;
/// Maximum number of frames of an indexer.
pub const MAX_FRAMES: u32 = 64;

/// Declaration of an input: its freedom, its granularity and its frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Indexer {
    pub(crate) freedom: AllowedOffsets,
    /// Number of components of a pixel that are read together; `None` for one component at a time.
    pub(crate) pixel: Option<usize>,
    /// Number of frames before and after the current one.
    pub(crate) frames: (u32, u32),
}

impl Indexer {
    /// Declares an input with a freedom, read component by component.
    pub const fn new(freedom: AllowedOffsets) -> Indexer {
        Indexer { freedom, pixel: None, frames: (0, 0) }
    }

    /// Declares a read of the current pixel.
    pub const fn point() -> Indexer {
        Indexer::new(AllowedOffsets::Point)
    }

    /// Declares reads along an axis, up to `radius` pixels before and after the current one.
    pub const fn line(axis: Axis, radius: u32) -> Indexer {
        Indexer::new(AllowedOffsets::Line { axis, before: radius, behind: radius })
    }

    /// Declares reads along an axis, up to `before` pixels before and `behind` pixels after the current one.
    pub const fn stretch(axis: Axis, before: u32, behind: u32) -> Indexer {
        Indexer::new(AllowedOffsets::Line { axis, before, behind })
    }

    /// Declares reads in a square of `2 · radius + 1` pixels.
    pub const fn square(radius: u32) -> Indexer {
        Indexer::new(AllowedOffsets::Rectangle { x: radius, y: radius })
    }

    /// Declares reads in a rectangle of `2 · x + 1` columns and `2 · y + 1` rows.
    pub const fn rectangle(x: u32, y: u32) -> Indexer {
        Indexer::new(AllowedOffsets::Rectangle { x, y })
    }

    /// Declares reads at a list of offsets, columns first.
    pub fn sparse(offsets: &[[i32; 2]]) -> Indexer {
        Indexer::new(AllowedOffsets::Sparse(offsets.to_vec()))
    }

    /// Declares reads at any position along an axis through the current pixel. The images and the result have
    /// the same extent across the axis.
    pub const fn along(axis: Axis) -> Indexer {
        Indexer::new(AllowedOffsets::Along(axis))
    }

    /// Declares reads at any position of the image.
    pub const fn anywhere() -> Indexer {
        Indexer::new(AllowedOffsets::Anywhere)
    }

    /// Reads `components` components of a pixel together.
    #[must_use]
    pub fn pixel(mut self, components: usize) -> Indexer {
        self.pixel = Some(components);
        self
    }

    /// Also reads frames around the current one. A call takes all frames in temporal order.
    #[must_use]
    pub fn frames(mut self, before: u32, behind: u32) -> Indexer {
        self.frames = (before, behind);
        self
    }

    /// Returns the number of frames, including the current one.
    pub(crate) fn frame_count(&self) -> usize {
        self.frames.0 as usize + self.frames.1 as usize + 1
    }

    /// Returns the window; `None` for [`AllowedOffsets::Along`] and [`AllowedOffsets::Anywhere`].
    pub(crate) fn reach(&self) -> Option<Reach> {
        match &self.freedom {
            AllowedOffsets::Point => Some(Reach::default()),
            AllowedOffsets::Line { axis: Axis::Horizontal, before, behind } => {
                Some(Reach { left: *before, right: *behind, ..Reach::default() })
            }
            AllowedOffsets::Line { axis: Axis::Vertical, before, behind } => {
                Some(Reach { above: *before, below: *behind, ..Reach::default() })
            }
            AllowedOffsets::Rectangle { x, y } => Some(Reach { left: *x, right: *x, above: *y, below: *y }),
            AllowedOffsets::Sparse(offsets) => {
                let far = |number: i32, sign: i32| number.saturating_mul(sign).max(0) as u32;
                let one =
                    |[x, y]: &[i32; 2]| Reach { left: far(*x, -1), right: far(*x, 1), above: far(*y, -1), below: far(*y, 1) };
                Some(offsets.iter().map(one).fold(Reach::default(), Reach::union))
            }
            AllowedOffsets::Along(_) | AllowedOffsets::Anywhere => None,
        }
    }

    /// Returns the axis of [`AllowedOffsets::Along`].
    pub(crate) fn along_axis(&self) -> Option<Axis> {
        match self.freedom {
            AllowedOffsets::Along(axis) => Some(axis),
            _ => None,
        }
    }

    /// Checks the limits.
    pub(crate) fn check(&self) -> Result<(), InvalidIndexer> {
        if let Some(reach) = self.reach()
            && [reach.left, reach.right, reach.above, reach.below].iter().any(|side| *side > MAX_RADIUS)
        {
            return Err(InvalidIndexer::Window);
        }
        if let AllowedOffsets::Sparse(offsets) = &self.freedom
            && (offsets.is_empty() || offsets.len() > MAX_SPARSE)
        {
            return Err(InvalidIndexer::Offsets(offsets.len()));
        }
        if self.pixel.is_some_and(|components| components == 0 || components > MAX_COMPONENTS) {
            return Err(InvalidIndexer::Components);
        }
        if self.frames.0.saturating_add(self.frames.1) >= MAX_FRAMES {
            return Err(InvalidIndexer::Frames);
        }
        Ok(())
    }
}

/// Indexer beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidIndexer {
    #[error("its window reaches further than {MAX_RADIUS} pixels")]
    Window,
    #[error("it has {0} offsets, and 1 to {MAX_SPARSE} are possible")]
    Offsets(usize),
    #[error("a pixel has 1 to {MAX_COMPONENTS} components")]
    Components,
    #[error("at most {MAX_FRAMES} frames are possible")]
    Frames,
}

/// The declaration of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// One component at a time. The output has as many components as the inputs.
    Component,
    /// A pixel with the given number of components.
    Pixel(usize),
}
