//! Concatenations whose parts are written in place.
//!
//! A concatenation along the first axis is stored as its parts, one after the other. As a single elementwise
//! function it would select one part at each position, and work shared by the parts would be repeated for
//! each part. If the parts share work, they become results of one kernel instead, and their memory is a slice
//! of the whole. For example, one kernel computes all components of a pixel.

use crate::limits::MAX_RESULTS;
use crate::tape::entries::{Entry, Id, Kind, Tape};
use smallvec::SmallVec;
use std::collections::HashSet;

/// Concatenation that is assembled from results of kernels.
#[derive(Clone, Debug)]
pub(crate) struct AssembledConcatenation {
    /// The concatenation.
    pub(crate) whole: Id,
    /// Its parts, in order.
    pub(crate) parts: SmallVec<[Id; 4]>,
}

/// Replaces concatenations among the outputs of a tape by their parts.
pub(crate) fn assemble(tape: &Tape) -> (Tape, Vec<AssembledConcatenation>) {
    let mut changed = tape.clone();
    let mut found: Vec<AssembledConcatenation> = vec![];
    for output in &tape.outputs {
        let whole = tape.behind(*output);
        let entry = tape.entry(whole);
        // A part has one place in memory only.
        let has_place = |part: &Id| found.iter().any(|known| known.parts.contains(part));
        let is_known = found.iter().any(|known| known.whole == whole) || entry.inputs.iter().any(has_place);
        if is_known || !is_assembled(tape, whole) {
            continue;
        }
        let parts: SmallVec<[Id; 4]> = entry.inputs.iter().copied().collect();
        changed.outputs.retain(|output| tape.behind(*output) != whole);
        changed.outputs.extend(parts.iter().copied());
        // The concatenation has no reader any more.
        changed.entries[whole as usize] = Entry { kind: Kind::Position(0), inputs: SmallVec::new(), ..entry.clone() };
        found.push(AssembledConcatenation { whole, parts });
    }
    (changed, found)
}

/// Returns whether a concatenation has no reader, and its parts share work and one domain.
fn is_assembled(tape: &Tape, whole: Id) -> bool {
    let entry = tape.entry(whole);
    let is_apart = |(number, part): (usize, &Id)| {
        let own = tape.entry(*part);
        // Elementwise parts become one kernel if they have the same domain.
        let is_made = match own.kind {
            Kind::Elementwise(_) => own.shape == tape.entry(entry.inputs[0]).shape,
            Kind::Pattern(_) => !tape.is_trap(*part) && tape.shapes[own.shape as usize].length.is_none(),
            _ => false,
        };
        is_made
            && own.ty == entry.ty
            && !entry.inputs[..number].contains(part)
            && !tape.outputs.iter().any(|output| tape.behind(*output) == *part)
    };
    let is_read =
        || tape.entries.iter().enumerate().any(|(user, own)| own.inputs.contains(&whole) && !is_shown(tape, user as Id));
    entry.kind == Kind::Concatenate(0)
        && entry.inputs.len() <= MAX_RESULTS
        && tape.shapes[entry.shape as usize].length.is_none()
        && entry.inputs.iter().enumerate().all(is_apart)
        && !is_read()
        && share(tape, &entry.inputs)
}

/// Returns whether a node is a view behind an output and has no reader.
fn is_shown(tape: &Tape, id: Id) -> bool {
    let is_view = matches!(tape.entry(id).kind, Kind::View(..) | Kind::Reshape(_));
    is_view && tape.behind(id) != id && !tape.entries.iter().any(|entry| entry.inputs.contains(&id))
}

/// Returns whether each part computes or reads something that the first part also computes or reads.
fn share(tape: &Tape, parts: &[Id]) -> bool {
    let of = |part: Id| {
        let (mut stack, mut seen) = (vec![part], HashSet::from([part]));
        while let Some(id) = stack.pop() {
            stack.extend(tape.entry(id).inputs.iter().copied().filter(|input| seen.insert(*input)));
        }
        seen.retain(|id| !matches!(tape.entry(*id).kind, Kind::Fill(_) | Kind::Position(_)));
        seen
    };
    let Some((first, rest)) = parts.split_first() else { return false };
    let first = of(*first);
    rest.iter().all(|part| !of(*part).is_disjoint(&first))
}
