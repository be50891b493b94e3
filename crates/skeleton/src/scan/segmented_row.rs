//! Scan of a row of a warp within segments.
//!
//! The heads of a row are one 32-bit integer ([`scan_from_heads`]).

use crate::kit::{Writer, broadcast, choose, scan_from_heads};
use crate::operator::InSegments;
use broadloom_scalar::Value;

/// Scans a row of a warp. Returns the inclusive results, and the prefix for the next row.
pub(super) fn scan_in_segments(
    k: &Writer,
    parts: &[InSegments<'_>],
    so_far: &[Value],
    own: &[Value],
    lane: Value,
) -> (Vec<Value>, Vec<Value>) {
    let (mut results, mut next) = (vec![], vec![]);
    for part in parts {
        let heads = k.ballot(own[part.head], None);
        let (values, has_head) = scan_from_heads(k, part.operator, &own[part.values.clone()], heads, lane);
        let carried = part.operator.combine(k, &so_far[part.values.clone()], &values);
        let values = choose(k, has_head, &values, &carried);
        results.push(k.or(so_far[part.head], has_head));
        next.push(k.or(so_far[part.head], k.ne(heads, 0)));
        next.extend(broadcast(k, &values, 31));
        results.extend(values);
    }
    (results, next)
}
