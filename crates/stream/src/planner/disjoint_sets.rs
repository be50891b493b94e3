//! Disjoint sets of numbers, each named by its least member.

/// Disjoint sets of the numbers below a count.
pub(crate) struct DisjointSets(Vec<usize>);

impl DisjointSets {
    /// Makes a set of each number below `count`.
    pub(crate) fn new(count: usize) -> DisjointSets {
        DisjointSets((0..count).collect())
    }

    /// Returns the least member of the set of a number.
    pub(crate) fn first(&mut self, member: usize) -> usize {
        let mut at = member;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    /// Unites the sets of two numbers.
    pub(crate) fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b);
    }
}
