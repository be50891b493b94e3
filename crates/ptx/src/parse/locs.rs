//! `.loc` directives of a body: the source line of each instruction, and the location that it was inlined at.
//!
//! `inlined_at` gives a location by its numbers and means the latest `.loc` before it with these numbers,
//! which may itself be inlined. Only the lines of instructions and the lines that they were inlined at are
//! kept. An outer line always comes before the inner one.

use crate::ids::Loc;
use crate::module::{Inlined, LocData};
use cranelift_entity::PrimaryMap;
use std::collections::HashMap;

/// File, line and column.
pub(super) type FilePosition = (u32, u32, u32);

/// `.loc` as written in the text.
#[derive(Debug)]
pub(super) struct LocText {
    pub(super) place: FilePosition,
    /// Label that names the inlined function, with an offset, and the location that it was inlined at.
    pub(super) inlined: Option<((String, u64), FilePosition)>,
}

/// `.loc` directive of the text. `kept` is its place in the module if an instruction uses it.
#[derive(Debug)]
struct LocDirective {
    text: LocText,
    /// Index of the directive that it was inlined at.
    outer: Option<usize>,
    kept: Option<Loc>,
}

/// All directives so far.
#[derive(Debug, Default)]
pub(super) struct Locs {
    seen: Vec<LocDirective>,
    latest: HashMap<FilePosition, usize>,
    kept: HashMap<LocData, Loc>,
    /// Last directive, until an instruction uses it.
    fresh: Option<usize>,
    current: Option<Loc>,
}

impl Locs {
    /// Adds a directive.
    pub(super) fn read(&mut self, text: LocText) {
        let outer = text.inlined.as_ref().map(|(_, place)| match self.latest.get(place) {
            Some(outer) => *outer,
            // Only the numbers of that location are known.
            None => self.add(LocText { place: *place, inlined: None }, None),
        });
        let index = self.add(text, outer);
        self.fresh = Some(index);
    }

    fn add(&mut self, text: LocText, outer: Option<usize>) -> usize {
        self.latest.insert(text.place, self.seen.len());
        self.seen.push(LocDirective { text, outer, kept: None });
        self.seen.len() - 1
    }

    /// Returns the line of the next instruction.
    pub(super) fn current(&mut self, table: &mut PrimaryMap<Loc, LocData>) -> Option<Loc> {
        if let Some(fresh) = self.fresh.take() {
            let mut chain = vec![fresh];
            while let Some(outer) = self.seen[chain[chain.len() - 1]].outer.filter(|outer| self.seen[*outer].kept.is_none()) {
                chain.push(outer);
            }
            for index in chain.into_iter().rev() {
                let at = self.seen[index].outer.and_then(|outer| self.seen[outer].kept);
                let text = &self.seen[index].text;
                let (file, line, column) = text.place;
                let inlined = text.inlined.as_ref().zip(at).map(|((function, _), at)| Inlined { function: function.clone(), at });
                let data = LocData { file, line, column, inlined };
                let loc = *self.kept.entry(data).or_insert_with_key(|data| table.push(data.clone()));
                self.seen[index].kept = Some(loc);
                self.current = Some(loc);
            }
        }
        self.current
    }
}
