//! Scans within segments, forwards or backwards.

use super::descriptor::Segments;
use super::elements::choose;
use crate::expr::error::Result;
use crate::expr::node::Node;
use crate::expr::shape::Shape;
use broadloom_scalar::Literal;
use broadloom_skeleton::{Boundary, Combine};
use smallvec::smallvec;

/// Order in which elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the first to the last.
    Forwards,
    /// From the last to the first.
    Backwards,
}

impl Segments {
    /// Combines each element with all elements before it in its segment, each line with its own operator. An
    /// inclusive scan includes the element itself; an exclusive one begins with the operator's identity.
    /// Backwards, elements are combined with those after them, beginning with the last. All lines are read in
    /// one pass.
    pub fn scan(&self, values: &[(&Node, Combine)], inclusive: bool, direction: Direction) -> Result<Vec<Node>> {
        let mut found = vec![];
        for (line, combine) in values {
            let operation = format!("segmented {} scan", combine.name());
            self.check_elements(&operation, line)?;
            line.check_combined(&operation, combine)?;
            let heads = self.heads()?;
            let first = match direction {
                Direction::Forwards => heads,
                // A segment ends where the next one begins, or at the end of the line.
                Direction::Backwards => heads.moved("scan", &[-1], &Boundary::Constant(smallvec![Literal::from(true)]))?,
            };
            let mut line = (*line).clone();
            if !inclusive {
                // An exclusive scan is an inclusive one of the shifted line: the identity at the start of a
                // segment, else the element before.
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
