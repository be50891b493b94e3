//! Elements combined with those before them, or behind them, in their segment.

use super::{Segments, choose};
use crate::error::Result;
use crate::node::Node;
use crate::op::Combine;
use crate::shape::Shape;
use crate::view::Boundary;
use broadloom_scalar::Literal;
use smallvec::smallvec;

/// The order in which elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the first to the last.
    Forwards,
    /// From the last to the first.
    Backwards,
}

impl Segments {
    /// Combines each element with all before it in its segment, each line in its own way, and with itself where the scan is inclusive. The first of an
    /// exclusive scan is the combination's identity. Backwards elements are combined with those behind them, the last one first. All lines are read in one pass.
    pub fn scan(&self, values: &[(&Node, Combine)], inclusive: bool, direction: Direction) -> Result<Vec<Node>> {
        let mut found = vec![];
        for (line, combine) in values {
            let operation = format!("segmented {} scan", combine.name());
            self.check_elements(&operation, line)?;
            line.check_combined(&operation, combine)?;
            let heads = self.heads()?;
            let first = match direction {
                Direction::Forwards => heads,
                // A segment ends where the next one begins, or the line ends.
                Direction::Backwards => heads.moved("scan", &[-1], &Boundary::Constant(smallvec![Literal::from(true)]))?,
            };
            let mut line = (*line).clone();
            if !inclusive {
                // A segment starts with nothing, and each place has what is before it.
                let identity = combine.identity(line.ty());
                let by = if direction == Direction::Forwards { 1 } else { -1 };
                let before = line.moved("scan", &[by], &Boundary::Constant(identity.clone()))?;
                let nothing = Node::fill(line.context(), Shape::from([]), &identity)?;
                line = choose(&first, &nothing, &before)?;
            }
            found.push(match direction {
                Direction::Forwards => line.segmented_scan(&first, combine.clone(), 0)?,
                Direction::Backwards => {
                    let [line, first] = [&line, &first].map(|line| line.reversed("reverse", &[0]));
                    line?.segmented_scan(&first?, combine.clone(), 0)?.reversed("reverse", &[0])?
                }
            });
        }
        Ok(found)
    }
}
