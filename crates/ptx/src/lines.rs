//! Lines of the high-level source that instructions come from, as debug information names them.

use crate::module::{Function, Item, Loc, Module};
use std::collections::HashMap;

/// Longest chain of inlined calls that is followed.
const MOST_CALLS: usize = 32;

/// Longest name that is read from a section.
const MOST_NAME: usize = 4096;

/// A line of the source, and the function it stands in when that function was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'m> {
    /// The file, when a `.file` names it.
    pub file: Option<&'m str>,
    /// The line.
    pub line: u32,
    /// The mangled name of the inlined function that the line is part of. `None` in a function that was not
    /// inlined.
    pub function: Option<String>,
}

/// The files and function names that the lines of a module refer to.
#[derive(Debug)]
pub struct Lines<'m> {
    files: HashMap<u32, &'m str>,
    /// Lines of the sections, each from a label on.
    labels: HashMap<&'m str, &'m [String]>,
}

impl<'m> Lines<'m> {
    /// Indexes a module.
    pub fn of(module: &'m Module) -> Self {
        let (mut files, mut labels) = (HashMap::new(), HashMap::new());
        for item in &module.items {
            match item {
                Item::File(file) => {
                    files.entry(file.number).or_insert(file.name.as_str());
                }
                Item::Section(section) => {
                    for (index, line) in section.lines.iter().enumerate() {
                        if let Some(label) = line.strip_suffix(':') {
                            labels.entry(label).or_insert(&section.lines[index + 1..]);
                        }
                    }
                }
                Item::Variable(_) | Item::Declaration(_) | Item::Definition(_) | Item::Alias(_) | Item::Pragma(_) => {}
            }
        }
        Lines { files, labels }
    }

    /// Returns the lines that lead to a place: the innermost first, then the line that each was inlined at.
    pub fn chain(&self, function: &Function, loc: Loc) -> Vec<Line<'m>> {
        let mut chain = vec![];
        let mut next = Some(loc);
        while let Some(data) = next.and_then(|loc| function.locs.get(loc))
            && chain.len() <= MOST_CALLS
        {
            let name = data.inlined.as_ref().map(|inlined| {
                let (label, offset) = &inlined.function;
                self.text(label, *offset).unwrap_or_else(|| label.clone())
            });
            chain.push(Line { file: self.files.get(&data.file).copied(), line: data.line, function: name });
            next = data.inlined.as_ref().map(|inlined| inlined.at);
        }
        chain
    }

    /// Reads the text that ends with a zero, so many bytes behind a label of a section.
    fn text(&self, label: &str, offset: u64) -> Option<String> {
        let lines = self.labels.get(label)?;
        let bytes = lines
            .iter()
            .map_while(|line| line.strip_prefix(".b8 "))
            .flat_map(|list| list.split(','))
            .map(|byte| byte.trim().parse::<u8>().ok());
        let text: Option<Vec<u8>> =
            bytes.skip(usize::try_from(offset).ok()?).take_while(|byte| *byte != Some(0)).take(MOST_NAME).collect();
        String::from_utf8(text?).ok().filter(|text| !text.is_empty())
    }
}
