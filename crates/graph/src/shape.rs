//! Shapes: the extents of an array along its axes, the last one running fastest in memory.

use smallvec::SmallVec;
use std::fmt;

/// Most axes that an array has.
pub const MAX_RANK: usize = 8;

/// Most elements that an array has.
pub const MAX_COUNT: usize = 1 << 40;

/// The extents of an array. No axis at all is a single element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Shape {
    /// From extents.
    pub fn new(extents: &[usize]) -> Shape {
        Shape(SmallVec::from_slice(extents))
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The extents.
    pub fn extents(&self) -> &[usize] {
        &self.0
    }

    /// How many elements; the most that a number holds if there are more.
    pub fn count(&self) -> usize {
        if self.0.contains(&0) {
            return 0;
        }
        self.0.iter().fold(1usize, |count, extent| count.saturating_mul(*extent))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.contains(&0)
    }

    /// Whether arrays can have it: not too many axes, not too many elements, also where an axis of none is left out.
    pub fn is_possible(&self) -> bool {
        self.rank() <= MAX_RANK
            && self.0.iter().try_fold(1usize, |count, e| count.checked_mul((*e).max(1))).is_some_and(|c| c <= MAX_COUNT)
    }

    /// How far apart neighbours along each axis lie, in elements.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(self.0[axis]);
        }
        strides
    }

    /// The shape that both become when axes of extent 1 stretch and missing axes in front are added; `None` if there is none.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let (long, short) = if self.rank() >= other.rank() { (self, other) } else { (other, self) };
        let missing = long.rank() - short.rank();
        let mut extents = long.0.clone();
        for (axis, extent) in short.0.iter().enumerate() {
            let own = &mut extents[missing + axis];
            match (*own, *extent) {
                (a, b) if a == b => {}
                (1, b) => *own = b,
                (_, 1) => {}
                _ => return None,
            }
        }
        Some(Shape(extents))
    }

    /// Without some axes, or with them left at extent 1.
    #[must_use]
    pub fn without(&self, axes: &[u8], keep: bool) -> Shape {
        let gone = |axis: usize| axes.contains(&(axis as u8));
        Shape(if keep {
            self.0.iter().enumerate().map(|(axis, extent)| if gone(axis) { 1 } else { *extent }).collect()
        } else {
            self.0.iter().enumerate().filter(|(axis, _)| !gone(*axis)).map(|(_, extent)| *extent).collect()
        })
    }
}

impl From<&[usize]> for Shape {
    fn from(extents: &[usize]) -> Shape {
        Shape::new(extents)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(extents: [usize; N]) -> Shape {
        Shape::new(&extents)
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(extents: &[usize; N]) -> Shape {
        Shape::new(extents)
    }
}

impl From<usize> for Shape {
    fn from(extent: usize) -> Shape {
        Shape::new(&[extent])
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Shape {
        shape.clone()
    }
}

impl From<Vec<usize>> for Shape {
    fn from(extents: Vec<usize>) -> Shape {
        Shape::new(&extents)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.extents())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stretch_as_in_numpy() {
        let broadcast = |a: &[usize], b: &[usize]| Shape::new(a).broadcast(&Shape::new(b)).map(|s| s.extents().to_vec());
        assert_eq!(broadcast(&[3, 1], &[4]), Some(vec![3, 4]));
        assert_eq!(broadcast(&[], &[2, 2]), Some(vec![2, 2]));
        assert_eq!(broadcast(&[0], &[1]), Some(vec![0]));
        assert_eq!(broadcast(&[5, 3], &[3, 5]), None);
        assert_eq!(broadcast(&[1, 7, 1], &[2, 1, 9]), Some(vec![2, 7, 9]));
    }

    #[test]
    fn counts_and_strides() {
        assert_eq!(Shape::new(&[]).count(), 1);
        assert_eq!(Shape::new(&[usize::MAX, 0]).count(), 0);
        assert!(!Shape::new(&[usize::MAX, 0, 2]).is_possible());
        assert_eq!(Shape::new(&[2, 3, 4]).strides().to_vec(), [12, 4, 1]);
    }
}
