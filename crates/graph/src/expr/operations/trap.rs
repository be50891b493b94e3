//! Trap: a word in memory that is written if a condition is true.
//!
//! A reduction of conditions needs a pass of its own, or a part of one. A trap costs only its condition: a
//! kernel over the same positions tests it, and writes only if it is true.

use crate::expr::apply::Typing;
use crate::expr::error::{Error, Result};
use crate::expr::host_array::HostArray;
use crate::expr::node::Node;
use crate::expr::operation::{Application, Feed, Operation, OperationPattern, PatternParts};
use crate::expr::parsed_call::ParsedCall;
use crate::expr::shape::Shape;
use crate::expr::spelling::Spelling;
use broadloom_scalar::{Lanes, Literal, Type};
use smallvec::{SmallVec, smallvec};

/// Write of 1 to the second input if an element of the first is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Trap;

impl Node {
    /// Returns the word after all elements of this array, bools, have been tested: 1 if one of them is true,
    /// else its old value. The word, a `u32` without axes, is changed in place, so one word serves many
    /// arrays. It keeps a 1 until the caller takes another word.
    pub fn trap(&self, word: &Node) -> Result<Node> {
        if self.bound().is_empty() {
            return Ok(word.clone());
        }
        Trap.results(&[self, word])?;
        word.evaluate()?;
        Node::apply_one(Trap, &[self, word])
    }
}

/// Reads `trap(x, word)`.
pub(super) fn read(call: &ParsedCall<'_>) -> Result<Vec<Node>> {
    let [conditions, word] = call.exactly()?;
    Ok(vec![conditions.trap(word)?])
}

impl Typing for Trap {
    fn results(&self, inputs: &[&Node]) -> Result<Vec<(Type, Shape)>> {
        let [conditions, word] = inputs else {
            return Err(Error::Plan { what: self.name(), reason: "expected a condition and a word".into() });
        };
        for (input, ty) in [(conditions, Type::BOOL), (word, Type::U32)] {
            input.check_type(&self.name(), ty)?;
        }
        if word.bound().rank() != 0 {
            return Err(word.refused(&self.name(), "expected a word without axes"));
        }
        Ok(vec![(Type::U32, Shape::from([]))])
    }
}

impl Operation for Trap {
    fn name(&self) -> String {
        "trap".into()
    }

    fn spelling(&self) -> Option<Spelling> {
        Some(Spelling::new("trap"))
    }

    fn absent(&self, _: &[Type]) -> SmallVec<[Option<Lanes>; 4]> {
        smallvec![Some(smallvec![Literal::from(false)]), None]
    }

    fn naive(&self, _: u8, inputs: &[&HostArray], ty: Type, shape: &Shape) -> Result<HostArray> {
        let is_set = inputs[0].lanes.iter().any(|lane| lane.bits() != 0);
        let lanes = if is_set { vec![Literal::from(1u32)] } else { inputs[1].lanes.clone() };
        Ok(HostArray { ty, shape: shape.clone(), lanes })
    }

    fn feeds(&self, _: &Application) -> Vec<Feed> {
        vec![Feed::new([0], true)]
    }

    /// Fails. A trap has no pattern: the planner places it into kernels with patterns of their own.
    fn pattern(&self, _: PatternParts) -> Result<OperationPattern> {
        Err(Error::Plan { what: self.name(), reason: "a trap is a part of another kernel".into() })
    }

    fn is_trap(&self) -> bool {
        true
    }
}
