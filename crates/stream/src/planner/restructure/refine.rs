//! Refinement: divides a unit into parts that do not depend on each other.
//!
//! A unit is the smallest part of a steady state with whole numbers of firings of all nodes. Splitters and
//! joiners are index arithmetic, but they can make a unit far larger than the filters need. For example, the
//! blocks of 8×8 points of an image are independent, but a splitter that collects them fires once for a whole
//! row of blocks. If the tapes of such a unit do not fit into a kernel, the unit is divided.
//!
//! A part has the same share of the firings of all actors. On tapes between actors, its items are contiguous
//! and used by no other part. Tapes of the host may be read and written anywhere: index arithmetic there
//! begins with numbers that count from the start of the batch ([`Port::absolute`]).

use super::section::{Port, Role, Section};
use super::wiring::{Range, preimage, shift};
use crate::language::schedule::gcd;

/// Divides the units of a section into as many parts as possible. Returns the section whose units are the
/// parts, and the number of parts in a unit.
pub(crate) fn refine(section: &Section) -> Option<(Section, i64)> {
    let all = section.actors.len();
    let needs = section.needs(0..all, section.outputs(1));
    // Checks that units compute nothing of their neighbours.
    let exact = |index: usize| {
        let actor = &section.actors[index];
        let ports = [&actor.input, &actor.output].into_iter().flatten();
        let whole = actor.output.as_ref().is_some_and(|port| {
            let buffer = &section.buffers[port.buffer];
            let items = Range::new(buffer.start, buffer.start + buffer.items);
            buffer.role != Role::Output || preimage(&port.steps, items) == port.items(Range::new(0, actor.firings))
        });
        needs.firings[index] == Some(Range::new(0, actor.firings)) && ports.clone().all(|port| port.seen == port.rate) && whole
    };
    if !(0..all).all(exact) {
        return None;
    }
    let shared = section.actors.iter().fold(0, |shared, actor| gcd(shared, actor.firings));
    (2..=shared).filter(|parts| shared % parts == 0).rev().find_map(|parts| Some((divided(section, parts)?, parts)))
}

/// Returns the section whose units are `parts` parts of each original unit.
fn divided(section: &Section, parts: i64) -> Option<Section> {
    let mut made = section.clone();
    made.units *= parts as u64;
    for buffer in &mut made.buffers {
        if buffer.items % parts != 0 {
            return None;
        }
        buffer.items /= parts;
    }
    let buffers = &made.buffers;
    for actor in &mut made.actors {
        actor.firings /= parts;
        let firings = actor.firings;
        let place = |port: &mut Port| {
            let buffer = &buffers[port.buffer];
            port.absolute = shift(&port.steps, firings * port.rate) != Some(buffer.items);
            !port.absolute || buffer.role != Role::Inner
        };
        if ![&mut actor.input, &mut actor.output].into_iter().flatten().all(place) {
            return None;
        }
    }
    Some(made)
}
