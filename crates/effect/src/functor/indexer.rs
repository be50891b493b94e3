//! Indexers: the declarations of how a functor reads its inputs.
//!
//! An indexer is all that the optimiser knows about a read. The axis and the radius are chosen at run time, when the functor
//! is made.

/// An axis of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Along rows.
    Horizontal,
    /// Along columns.
    Vertical,
}

impl Axis {
    /// Returns the axis across this one.
    pub const fn across(self) -> Axis {
        match self {
            Axis::Horizontal => Axis::Vertical,
            Axis::Vertical => Axis::Horizontal,
        }
    }
}

/// The offsets that an indexer allows, relative to the current pixel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Freedom {
    /// The pixel itself: 0-D.
    Point,
    /// Pixels along an axis: 1-D. So many before and behind the current one.
    Line {
        /// The axis.
        axis: Axis,
        /// The number of pixels before the current one.
        before: u32,
        /// The number of pixels behind it.
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
    /// Any place along an axis through the current pixel, counted from the edge of the image.
    Along(Axis),
    /// Any place of the image, counted from its upper left corner. The whole image is needed for each result.
    Anywhere,
}

/// The offsets of a window: from the first to the last column, and from the first to the last row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reach {
    /// Columns before the current one.
    pub left: u32,
    /// Columns behind it.
    pub right: u32,
    /// Rows above the current one.
    pub above: u32,
    /// Rows below it.
    pub below: u32,
}

impl Reach {
    /// Returns the reach of a transposed image.
    pub const fn transposed(self) -> Reach {
        Reach { left: self.above, right: self.below, above: self.left, below: self.right }
    }

    /// Returns the least reach that has both.
    pub fn union(self, other: Reach) -> Reach {
        Reach {
            left: self.left.max(other.left),
            right: self.right.max(other.right),
            above: self.above.max(other.above),
            below: self.below.max(other.below),
        }
    }

    /// Returns whether it is the pixel alone.
    pub fn is_point(self) -> bool {
        self == Reach::default()
    }
}

/// The greatest offset of a window.
pub const MAX_RADIUS: u32 = 1 << 16;
/// The greatest number of offsets of a sparse indexer.
pub const MAX_SPARSE: usize = 4096;
/// The greatest number of components of a pixel that a functor reads or writes.
pub const MAX_COMPONENTS: usize = 64;
/// The greatest number of frames that an indexer sees.
pub const MAX_FRAMES: u32 = 64;

/// The declaration of an input: its freedom, its granularity and its frames.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Indexer {
    pub(crate) freedom: Freedom,
    /// The number of components of a pixel that are read together; `None` for one component at a time.
    pub(crate) pixel: Option<usize>,
    /// The number of frames before and behind the current one.
    pub(crate) frames: (u32, u32),
}

impl Indexer {
    /// Declares an input with a freedom, read component by component.
    pub const fn new(freedom: Freedom) -> Indexer {
        Indexer { freedom, pixel: None, frames: (0, 0) }
    }

    /// Declares a read of the current pixel.
    pub const fn point() -> Indexer {
        Indexer::new(Freedom::Point)
    }

    /// Declares reads along an axis, `radius` pixels before and behind the current one.
    pub const fn line(axis: Axis, radius: u32) -> Indexer {
        Indexer::new(Freedom::Line { axis, before: radius, behind: radius })
    }

    /// Declares reads along an axis, so many pixels before and behind the current one.
    pub const fn stretch(axis: Axis, before: u32, behind: u32) -> Indexer {
        Indexer::new(Freedom::Line { axis, before, behind })
    }

    /// Declares reads in a square of `2 · radius + 1` pixels.
    pub const fn square(radius: u32) -> Indexer {
        Indexer::new(Freedom::Rectangle { x: radius, y: radius })
    }

    /// Declares reads in a rectangle of `2 · x + 1` columns and `2 · y + 1` rows.
    pub const fn rectangle(x: u32, y: u32) -> Indexer {
        Indexer::new(Freedom::Rectangle { x, y })
    }

    /// Declares reads at a list of offsets, columns first.
    pub fn sparse(offsets: &[[i32; 2]]) -> Indexer {
        Indexer::new(Freedom::Sparse(offsets.to_vec()))
    }

    /// Declares reads at any place along an axis through the current pixel. Across the axis images and result have the same extent.
    pub const fn along(axis: Axis) -> Indexer {
        Indexer::new(Freedom::Along(axis))
    }

    /// Declares reads at any place.
    pub const fn anywhere() -> Indexer {
        Indexer::new(Freedom::Anywhere)
    }

    /// Reads so many components of a pixel together.
    #[must_use]
    pub fn pixel(mut self, components: usize) -> Indexer {
        self.pixel = Some(components);
        self
    }

    /// Reads frames around the current one as well. A call is given all of them, in the order of time.
    #[must_use]
    pub fn frames(mut self, before: u32, behind: u32) -> Indexer {
        self.frames = (before, behind);
        self
    }

    /// Returns the number of frames.
    pub(crate) fn frame_count(&self) -> usize {
        self.frames.0 as usize + self.frames.1 as usize + 1
    }

    /// Returns the window; `None` for [`Freedom::Along`] and [`Freedom::Anywhere`].
    pub(crate) fn reach(&self) -> Option<Reach> {
        match &self.freedom {
            Freedom::Point => Some(Reach::default()),
            Freedom::Line { axis: Axis::Horizontal, before, behind } => {
                Some(Reach { left: *before, right: *behind, ..Reach::default() })
            }
            Freedom::Line { axis: Axis::Vertical, before, behind } => {
                Some(Reach { above: *before, below: *behind, ..Reach::default() })
            }
            Freedom::Rectangle { x, y } => Some(Reach { left: *x, right: *x, above: *y, below: *y }),
            Freedom::Sparse(offsets) => {
                let far = |number: i32, sign: i32| number.saturating_mul(sign).max(0) as u32;
                let one =
                    |[x, y]: &[i32; 2]| Reach { left: far(*x, -1), right: far(*x, 1), above: far(*y, -1), below: far(*y, 1) };
                Some(offsets.iter().map(one).fold(Reach::default(), Reach::union))
            }
            Freedom::Along(_) | Freedom::Anywhere => None,
        }
    }

    /// Returns the axis of [`Freedom::Along`].
    pub(crate) fn along_axis(&self) -> Option<Axis> {
        match self.freedom {
            Freedom::Along(axis) => Some(axis),
            _ => None,
        }
    }

    /// Checks the limits. Returns the reason of a refusal.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(reach) = self.reach()
            && [reach.left, reach.right, reach.above, reach.below].iter().any(|side| *side > MAX_RADIUS)
        {
            return Err(format!("its window reaches further than {MAX_RADIUS} pixels"));
        }
        if let Freedom::Sparse(offsets) = &self.freedom
            && (offsets.is_empty() || offsets.len() > MAX_SPARSE)
        {
            return Err(format!("it has {} offsets, and 1 to {MAX_SPARSE} are possible", offsets.len()));
        }
        if self.pixel.is_some_and(|components| components == 0 || components > MAX_COMPONENTS) {
            return Err(format!("a pixel has 1 to {MAX_COMPONENTS} components"));
        }
        if self.frames.0.saturating_add(self.frames.1) >= MAX_FRAMES {
            return Err(format!("at most {MAX_FRAMES} frames are possible"));
        }
        Ok(())
    }
}

/// The declaration of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// One component at a time: as many components as the inputs have.
    Component,
    /// A pixel with so many components.
    Pixel(usize),
}
