//! Access to elements by their index within the segment.

use super::descriptor::Segments;
use super::elements::{binary, call, choose, convert, integers, scalar};
use super::measure::Total;
use crate::expr::error::Result;
use crate::expr::node::Node;
use crate::expr::op::zeros;
use broadloom_scalar::{BinaryOp, Builder, Element, Type};
use broadloom_skeleton::{Boundary, Combine};

/// Lines that were read or written at indices within segments, with a flag for indices outside.
#[derive(Clone, Debug)]
pub struct IndexedLines {
    /// The lines. For an index outside its segment, the element is zero, or stays as it is.
    pub values: Vec<Node>,
    /// Flag, a `bool` without axes: true if any index is outside its segment. It is computed only if it is
    /// used.
    pub outside: Node,
}

/// Returns the indices on the line for indices within segments, -1 for those outside their segment; and flags
/// of the latter.
pub(super) fn within(starts: &Node, ends: &Node, index: &Node) -> Result<[Node; 2]> {
    let f = Builder::function("within");
    let (start, end) = (f.parameter("start", Type::I64), f.parameter("end", Type::I64));
    let index_in = f.parameter("index", Type::I64);
    let is_in = f.and(f.ge(index_in, 0i64), f.lt(index_in, f.sub(end, start)));
    let place = f.select(is_in, f.add(start, index_in), -1i64);
    call(&f.finish_function(&[place, f.not(is_in)])?, &[starts, ends, &convert(index, Element::I64)?])
}

/// Returns whether any flag is true.
fn any(flags: &Node) -> Result<Node> {
    flags.reduce(Combine::Any, &[0])
}

impl Segments {
    /// Gathers elements of each segment at indices within it. The indices are a line with segments of its
    /// own, as many as here: indices in segment `k` of `to` refer to segment `k`.
    pub fn gather(&self, values: &[&Node], to: &Segments, index: &Node) -> Result<IndexedLines> {
        self.check_alike("segmented gather", to)?;
        to.check_elements("segmented gather", index)?;
        index.check_integers("segmented gather")?;
        values.iter().try_for_each(|line| self.check_elements("segmented gather", line))?;
        if self.data.count.is_none() {
            let nothing = |line: &&Node| to.data.total.filled(&zeros(line.ty()));
            let values = values.iter().map(nothing).collect::<Result<_>>()?;
            return Ok(IndexedLines { values, outside: scalar(self.context(), false)? });
        }
        let starts = to.spread_offsets(&self.padded_starts()?)?;
        let ends = to.spread_offsets(&self.padded_ends()?)?;
        let [places, outside] = within(&starts, &ends, index)?;
        Ok(IndexedLines { values: at_places(values, &places)?, outside: any(&outside)? })
    }

    /// Scatters each element to an index within its segment. If several go to one index, the last one stays.
    /// Elements at other indices are zero.
    pub fn permute(&self, values: &[&Node], index: &Node) -> Result<IndexedLines> {
        self.check_elements("segmented permute", index)?;
        index.check_integers("segmented permute")?;
        values.iter().try_for_each(|line| self.check_elements("segmented permute", line))?;
        let total = &self.data.total;
        if total.is_none() || self.data.count.is_none() {
            let values = values.iter().map(|line| (*line).clone()).collect();
            return Ok(IndexedLines { values, outside: scalar(self.context(), false)? });
        }
        let [starts, ends] = [self.padded_starts()?, self.padded_ends()?].map(|offsets| self.spread_offsets(&offsets));
        let [places, outside] = within(&starts?, &ends?, index)?;
        let send = |line: &&Node| {
            let nothing = Node::fill(self.context(), total.shape(), &zeros(line.ty()))?;
            total.cut(nothing.scatter(&[&places], line, None)?)
        };
        let values = values.iter().map(send).collect::<Result<_>>()?;
        Ok(IndexedLines { values, outside: any(&outside)? })
    }

    /// Returns the element at one index within each segment.
    pub fn extract(&self, values: &[&Node], index: &Node) -> Result<IndexedLines> {
        self.check_segments("extract", index)?;
        index.check_integers("extract")?;
        values.iter().try_for_each(|line| self.check_elements("extract", line))?;
        let [places, outside] = within(&self.starts()?, &self.ends()?, index)?;
        Ok(IndexedLines { values: at_places(values, &places)?, outside: any(&outside)? })
    }

    /// Returns the first element of each segment.
    pub fn first(&self, values: &[&Node]) -> Result<IndexedLines> {
        self.extract(values, &self.data.count.filled(&[0i64.into()])?)
    }

    /// Returns the last element of each segment.
    pub fn last(&self, values: &[&Node]) -> Result<IndexedLines> {
        self.extract(values, &binary(BinaryOp::Sub, &self.lengths()?, &scalar(self.context(), 1i64)?)?)
    }

    /// Replaces the element at one index within each segment by another.
    pub fn replace(&self, line: &Node, index: &Node, with: &Node) -> Result<IndexedLines> {
        self.check_elements("replace", line)?;
        self.check_segments("replace", index)?;
        self.check_segments("replace", with)?;
        index.check_integers("replace")?;
        with.check_type("replace", line.ty())?;
        let [places, outside] = within(&self.starts()?, &self.ends()?, index)?;
        let outside = any(&outside)?;
        if self.data.total.is_none() || self.data.count.is_none() {
            return Ok(IndexedLines { values: vec![line.clone()], outside });
        }
        let f = Builder::function("here");
        let (place, wanted) = (f.parameter("place", Type::I64), f.parameter("wanted", Type::I64));
        let function = f.finish_function(&[f.eq(place, wanted)])?;
        let [here] = call(&function, &[&self.data.total.places(Element::I64)?, &self.distribute(&places)?])?;
        Ok(IndexedLines { values: vec![choose(&here, &self.distribute(with)?, line)?], outside })
    }

    /// Returns whole segments by their numbers, which may repeat. A number that does not exist gives an empty
    /// segment. The total is that of the result.
    pub fn take(&self, numbers: &Node, total: Total, values: &[&Node]) -> Result<(Segments, Vec<Node>)> {
        integers("take", numbers)?;
        values.iter().try_for_each(|line| self.check_elements("take", line))?;
        let numbers = convert(numbers, Element::I64)?;
        let lengths = self.lengths()?.gather(&[&numbers], &Boundary::Constant(zeros(Type::I64)))?;
        let taken = Segments::from_lengths(&lengths, total)?;
        if self.data.count.is_none() || taken.data.count.is_none() {
            let nothing = |line: &&Node| taken.data.total.filled(&zeros(line.ty()));
            let values = values.iter().map(nothing).collect::<Result<_>>()?;
            return Ok((taken, values));
        }
        let starts = taken.distribute(&self.padded_starts()?.gather(&[&numbers], &Boundary::Clamp)?)?;
        let places = binary(BinaryOp::Add, &convert(&starts, Element::I64)?, &taken.places()?)?;
        Ok((taken, at_places(values, &places)?))
    }
}

/// Gathers lines at indices; zero for indices outside.
pub(super) fn at_places(values: &[&Node], places: &Node) -> Result<Vec<Node>> {
    let at = |line: &&Node| line.gather(&[places], &Boundary::Constant(zeros(line.ty())));
    values.iter().map(at).collect()
}
