//! Concatenations whose parts are written in place.
//!
//! A concatenation along the first axis is stored as its parts, one after the other. As a function of a position it would compute one of
//! them, and work that the parts share would be repeated for each part. Where parts share work, they are results of one kernel instead, and
//! their memory is a slice of the whole. The components of a pixel therefore come from one kernel.

use crate::limits::MAX_RESULTS;
use crate::tape::{Entry, Id, Kind, Tape};
use smallvec::SmallVec;
use std::collections::HashSet;

/// A concatenation that is assembled from results of kernels.
#[derive(Clone, Debug)]
pub(crate) struct Assembled {
    /// The concatenation.
    pub(crate) whole: Id,
    /// Its parts, in order.
    pub(crate) parts: SmallVec<[Id; 4]>,
}

/// Replaces concatenations among the outputs of a tape by their parts.
pub(crate) fn assemble(tape: &Tape) -> (Tape, Vec<Assembled>) {
    let mut changed = tape.clone();
    let mut found: Vec<Assembled> = vec![];
    for output in &tape.outputs {
        let whole = tape.behind(*output);
        let entry = tape.entry(whole);
        // A part has one place.
        let has_place = |part: &Id| found.iter().any(|known| known.parts.contains(part));
        let is_known = found.iter().any(|known| known.whole == whole) || entry.inputs.iter().any(has_place);
        if is_known || !is_assembled(tape, whole) {
            continue;
        }
        let parts: SmallVec<[Id; 4]> = entry.inputs.iter().copied().collect();
        changed.outputs.retain(|output| tape.behind(*output) != whole);
        changed.outputs.extend(parts.iter().copied());
        // Nothing reads it any more.
        changed.entries[whole as usize] = Entry { kind: Kind::Position(0), inputs: SmallVec::new(), ..entry.clone() };
        found.push(Assembled { whole, parts });
    }
    (changed, found)
}

/// Returns whether a concatenation is read by nothing, and its parts are computed over one domain and share work.
fn is_assembled(tape: &Tape, whole: Id) -> bool {
    let entry = tape.entry(whole);
    let is_apart = |(number, part): (usize, &Id)| {
        let own = tape.entry(*part);
        // Functions of elements become one kernel if they have one domain.
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

/// Returns whether a node is a view that an output shows, and nothing else reads.
fn is_shown(tape: &Tape, id: Id) -> bool {
    let is_view = matches!(tape.entry(id).kind, Kind::View(..) | Kind::Reshape(_));
    is_view && tape.behind(id) != id && !tape.entries.iter().any(|entry| entry.inputs.contains(&id))
}

/// Returns whether each part computes or reads something that the first one does.
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
