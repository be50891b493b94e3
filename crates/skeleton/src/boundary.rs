//! Boundary rules: values for reads outside of an array.

use broadloom_scalar::{Builder, Lanes, Value};

/// The boundary rule of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Every index is inside.
    Inside,
    /// The nearest element.
    Clamp,
    /// Periodic: the index wraps around.
    Wrap,
    /// Reflection at the ends. The elements at the ends are not repeated.
    Mirror,
    /// Positions outside of the array have a constant value.
    Constant,
}

impl Rule {
    /// Returns the index inside of the axis that replaces `index`. Returns `None` if the constant replaces
    /// the element, or if the axis has no elements.
    ///
    /// ```
    /// use broadloom_skeleton::Rule;
    /// let around = |rule: Rule| [-2, 0, 4].map(|index| rule.index(index, 3));
    /// assert_eq!(around(Rule::Clamp), [Some(0), Some(0), Some(2)]);
    /// assert_eq!(around(Rule::Wrap), [Some(1), Some(0), Some(1)]);
    /// assert_eq!(around(Rule::Mirror), [Some(2), Some(0), Some(0)]);
    /// assert_eq!(around(Rule::Constant), [None, Some(0), None]);
    /// ```
    pub fn index(self, index: i64, extent: i64) -> Option<i64> {
        if extent <= 0 {
            return None;
        }
        match self {
            Rule::Inside | Rule::Clamp => Some(index.clamp(0, extent - 1)),
            Rule::Wrap => Some(index.rem_euclid(extent)),
            Rule::Mirror => {
                let period = (2 * (extent - 1)).max(1);
                let rest = index.rem_euclid(period);
                Some(rest.min(period - rest))
            }
            Rule::Constant => (0..extent).contains(&index).then_some(index),
        }
    }

    /// Emits the code that applies the rule to a signed index of an axis with `extent` elements, at least
    /// one. Returns an index that is safe to read. For [`Rule::Constant`] it also returns a condition: the
    /// original index is inside.
    pub fn place(self, b: &Builder, index: Value, extent: Value) -> (Value, Option<Value>) {
        let cycle = |period: Value| {
            let rest = b.rem(index, period);
            b.select(b.lt(rest, 0), b.add(rest, period), rest)
        };
        let held = || b.max(b.min(index, b.sub(extent, 1)), 0);
        match self {
            Rule::Inside => (index, None),
            Rule::Clamp => (held(), None),
            Rule::Wrap => (cycle(extent), None),
            Rule::Mirror => {
                let period = b.max(b.mul(b.sub(extent, 1), 2), 1);
                let rest = cycle(period);
                (b.min(rest, b.sub(period, rest)), None)
            }
            Rule::Constant => (held(), Some(b.and(b.ge(index, 0), b.lt(index, extent)))),
        }
    }
}

/// The values of elements outside of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary<T = Lanes> {
    /// The nearest element.
    Clamp,
    /// Periodic: the array repeats.
    Wrap,
    /// Reflection at the ends. The elements at the ends are not repeated.
    Mirror,
    /// This value.
    Constant(T),
}

impl<T> Boundary<T> {
    /// Returns the rule for an axis.
    pub fn rule(&self) -> Rule {
        match self {
            Boundary::Clamp => Rule::Clamp,
            Boundary::Wrap => Rule::Wrap,
            Boundary::Mirror => Rule::Mirror,
            Boundary::Constant(_) => Rule::Constant,
        }
    }

    /// Returns the constant, if it is one.
    pub fn constant(&self) -> Option<&T> {
        match self {
            Boundary::Constant(value) => Some(value),
            Boundary::Clamp | Boundary::Wrap | Boundary::Mirror => None,
        }
    }

    /// Returns the same rule with a converted constant.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Boundary<U> {
        match self {
            Boundary::Clamp => Boundary::Clamp,
            Boundary::Wrap => Boundary::Wrap,
            Boundary::Mirror => Boundary::Mirror,
            Boundary::Constant(value) => Boundary::Constant(change(value)),
        }
    }
}
