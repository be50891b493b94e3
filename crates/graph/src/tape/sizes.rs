//! Sizes of an expression, and which of them are known to be equal.
//!
//! A size is an extent of an array. Each leaf has sizes of its own, whatever their values. Elementwise
//! operations assert that the sizes of their inputs are equal; views keep sizes or create new ones. All axes
//! of extent 1 that a view or a reshape adds share one size ([`ONE`]); an extent that is 1 by accident is a
//! size like any other. The structure of an expression therefore says which sizes are equal, and two extents
//! that are equal by accident remain two sizes.
//!
//! Sizes that are found to be equal are united (union-find). Shapes are lists of sizes. When the expression
//! has been recorded, shapes with equal lists become one shape.

use crate::expr::shape::Shape;
use crate::hash::QuickMap;
use crate::tape::entries::{Id, ShapeId};
use smallvec::SmallVec;

/// Number of a size.
pub(crate) type Size = u32;

/// Sizes of a shape.
pub(crate) type SizeList = SmallVec<[Size; 4]>;

/// Size of added axes of extent 1.
pub(crate) const ONE: Size = 0;

/// Maximum number of shapes for linear search.
const FEW: usize = 16;

/// Sizes and shapes of an expression during recording.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// Parent of each size in the union-find forest; a root is its own parent.
    parents: Vec<Size>,
    shapes: Vec<(SizeList, Shape)>,
    /// Sizes that only the device knows, each with the entry of its number and its bound.
    lengths: Vec<(Size, Id, usize)>,
    /// Pairs of sizes, the second greater than the first by one.
    more: Vec<(Size, Size)>,
    /// True if equal extents of long one-dimensional arrays are one size.
    joins: bool,
    /// Sizes of long one-dimensional arrays, by their extents.
    lines: QuickMap<usize, Size>,
}

/// Minimum extent of a one-dimensional array at which equal extents are assumed to be one size.
const LONG_LINE: usize = 64;

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { parents: vec![ONE], shapes: vec![], lengths: vec![], more: vec![], joins: false, lines: QuickMap::default() }
    }
}

impl Sizes {
    /// Clears the sizes and shapes. `joins`: equal extents of long one-dimensional arrays are one size, so
    /// that kernels over them can be joined.
    pub(crate) fn clear(&mut self, joins: bool) {
        self.joins = joins;
        self.lines.clear();
        self.parents.truncate(1);
        self.shapes.clear();
        self.lengths.clear();
        self.more.clear();
    }

    /// Returns the size held by an entry. Memory is allocated for the bound, so arrays with different bounds
    /// have different sizes.
    pub(crate) fn length(&mut self, count: Id, bound: usize) -> Size {
        if let Some((size, ..)) = self.lengths.iter().find(|(_, known, most)| *known == count && *most == bound) {
            return *size;
        }
        let size = self.fresh();
        self.lengths.push((size, count, bound));
        size
    }

    /// Returns the first size of a shape if only the device knows it.
    pub(crate) fn length_of(&self, id: ShapeId) -> Option<Size> {
        let first = self.list(id).first()?;
        self.lengths.iter().find(|(size, ..)| size == first).map(|(size, ..)| *size)
    }

    /// Returns a new size, known to be equal to no other.
    pub(crate) fn fresh(&mut self) -> Size {
        self.parents.push(self.parents.len() as Size);
        (self.parents.len() - 1) as Size
    }

    /// Returns the size that is greater by one, such as the number of offsets for a number of segments. Equal
    /// sizes have equal successors.
    pub(crate) fn one_more(&mut self, size: Size) -> Size {
        let size = self.root(size);
        for number in 0..self.more.len() {
            let (own, more) = self.more[number];
            if self.root(own) == size {
                return more;
            }
        }
        let more = self.fresh();
        self.more.push((size, more));
        more
    }

    /// Adds a shape.
    pub(crate) fn push(&mut self, list: SizeList, shape: &Shape) -> ShapeId {
        if let ([size], [extent]) = (&list[..], shape.numbers())
            && self.joins
            && *extent >= LONG_LINE
            && !self.lengths.iter().any(|(length, ..)| length == size)
        {
            let known = *self.lines.entry(*extent).or_insert(*size);
            self.unite(known, *size);
        }
        self.shapes.push((list, shape.clone()));
        (self.shapes.len() - 1) as ShapeId
    }

    /// Adds a shape with new sizes for all axes.
    pub(crate) fn fresh_shape(&mut self, shape: &Shape) -> ShapeId {
        let list = (0..shape.rank()).map(|_| self.fresh()).collect();
        self.push(list, shape)
    }

    /// Adds a shape with new sizes. The first may be a size that only the device knows.
    pub(crate) fn fresh_shape_with(&mut self, shape: &Shape, length: Option<Size>) -> ShapeId {
        let mut list = SizeList::new();
        list.extend(length);
        while list.len() < shape.rank() {
            list.push(self.fresh());
        }
        self.push(list, shape)
    }

    /// Returns the extents of a shape.
    pub(crate) fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id as usize].1
    }

    /// Returns the sizes of a shape.
    pub(crate) fn list(&self, id: ShapeId) -> &SizeList {
        &self.shapes[id as usize].0
    }

    /// Returns the root of a size: the representative of all sizes that are known to be equal to it.
    fn root(&mut self, mut size: Size) -> Size {
        while self.parents[size as usize] != size {
            let above = self.parents[self.parents[size as usize] as usize];
            self.parents[size as usize] = above;
            size = above;
        }
        size
    }

    /// Unites two sizes.
    pub(crate) fn unite(&mut self, a: Size, b: Size) {
        let (a, b) = (self.root(a), self.root(b));
        let (first, second) = (a.min(b), a.max(b));
        self.parents[second as usize] = first;
    }

    /// Unites two shapes, axis by axis.
    pub(crate) fn unite_shapes(&mut self, a: ShapeId, b: ShapeId) {
        if a == b {
            return;
        }
        for axis in 0..self.list(a).len().min(self.list(b).len()) {
            self.unite(self.list(a)[axis], self.list(b)[axis]);
        }
    }

    /// Returns whether two shapes are known to be equal.
    pub(crate) fn are_equal(&self, a: ShapeId, b: ShapeId) -> bool {
        let root = |mut size: Size| {
            while self.parents[size as usize] != size {
                size = self.parents[size as usize];
            }
            size
        };
        let (left, right) = (self.list(a), self.list(b));
        a == b || left.len() == right.len() && left.iter().zip(right).all(|(a, b)| root(*a) == root(*b))
    }

    /// Returns the distinct shapes, and for each recorded shape its index among them. A shape comes with the
    /// entry of its first extent if only the device knows that extent.
    pub(crate) fn finish(&mut self) -> (Vec<ShapeId>, Vec<(Shape, Option<Id>)>) {
        // Sizes may have been united since their successors were created.
        for (size, more) in std::mem::take(&mut self.more) {
            let known = self.one_more(size);
            self.unite(known, more);
        }
        for number in 0..self.lengths.len() {
            self.lengths[number].0 = self.root(self.lengths[number].0);
        }
        let (mut ids, mut shapes, mut lists) = (Vec::with_capacity(self.shapes.len()), vec![], Vec::<SizeList>::new());
        let mut more: QuickMap<SizeList, ShapeId> = QuickMap::default();
        for number in 0..self.shapes.len() {
            let mut list = std::mem::take(&mut self.shapes[number].0);
            list.iter_mut().for_each(|size| *size = self.root(*size));
            let first_size = list.first().copied();
            let first = lists.iter().take(FEW).position(|known| *known == list).map(|known| known as ShapeId);
            let id = first.or_else(|| more.get(&list).copied()).unwrap_or_else(|| {
                let id = lists.len() as ShapeId;
                if lists.len() >= FEW {
                    more.insert(list.clone(), id);
                }
                lists.push(list);
                let count = |size: &Size| self.lengths.iter().find(|(own, ..)| own == size).map(|(_, count, _)| *count);
                shapes.push((std::mem::take(&mut self.shapes[number].1), first_size.as_ref().and_then(count)));
                id
            });
            ids.push(id);
        }
        (ids, shapes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_one_where_their_sizes_are_known_to_be_equal() {
        let mut sizes = Sizes::default();
        let shape = Shape::from([7, 1]);
        let [a, b, c] = [(); 3].map(|()| sizes.fresh_shape(&shape));
        assert!(!sizes.are_equal(a, b));
        sizes.unite_shapes(a, c);
        assert!(sizes.are_equal(c, a));
        let (ids, shapes) = sizes.finish();
        assert_eq!((ids.as_slice(), shapes.len()), ([0, 1, 0].as_slice(), 2));
        sizes.clear(false);
        let (a, b) = (sizes.fresh(), sizes.fresh());
        assert!(a != ONE && a != b);
    }

    #[test]
    fn long_lines_of_one_extent_have_one_size_where_kernels_are_joined() {
        let mut sizes = Sizes::default();
        for (joins, extent, are_equal) in [(true, 100, true), (true, 7, false), (false, 100, false)] {
            sizes.clear(joins);
            let [a, b] = [(); 2].map(|()| sizes.fresh_shape(&Shape::from(extent)));
            assert_eq!(sizes.are_equal(a, b), are_equal, "{joins} {extent}");
        }
        // A length that only the device knows is not an extent, whatever its bound.
        sizes.clear(true);
        let length = sizes.length(3, 100);
        let [a, b] = [Some(length), None].map(|length| sizes.fresh_shape_with(&Shape::from(100), length));
        assert!(!sizes.are_equal(a, b));
    }

    #[test]
    fn many_shapes_are_found_by_their_sizes() {
        let mut sizes = Sizes::default();
        let all: Vec<ShapeId> = (0..100).map(|_| sizes.fresh_shape(&Shape::from(5))).collect();
        all.chunks(2).for_each(|pair| sizes.unite_shapes(pair[0], pair[1]));
        let (ids, shapes) = sizes.finish();
        assert_eq!(shapes.len(), 50);
        assert!(ids.chunks(2).enumerate().all(|(number, pair)| pair == [number as ShapeId; 2]));
    }
}
