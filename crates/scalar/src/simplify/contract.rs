//! Products that are used by one sum or difference and nothing else.

use crate::body::Body;
use crate::id::Id;
use crate::op::{BinaryOp, Op};
use crate::schedule::Schedule;
use crate::structure::Structure;

/// Returns for each node: true if it is a product of floats that is used once, by a sum or difference in the
/// block where it is computed.
pub(super) fn products(body: &Body, results: &[Id]) -> Vec<bool> {
    let structure = Structure::of(body);
    let schedule = Schedule::of(body, &structure, results);
    let is_product = |id: Id| {
        let node = body.node(id);
        matches!(node.op, Op::Binary(BinaryOp::Mul, ..)) && node.ty.element().is_float() && schedule.uses[id.index()] == 1
    };
    let mut found = vec![false; body.nodes.len()];
    for (id, node) in body.nodes() {
        if let Op::Binary(BinaryOp::Add | BinaryOp::Sub, x, y) = node.op {
            for part in [x, y] {
                // A loop-invariant product stays outside of the loop.
                let together =
                    schedule.place_of[part.index()].map(|place| place.0) == schedule.place_of[id.index()].map(|place| place.0);
                found[part.index()] |= is_product(part) && together;
            }
        }
    }
    found
}
