//! Source lines of instructions, from debug information.

use crate::ids::Loc;
use crate::module::{Function, Item, Module};
use std::collections::HashMap;

/// Maximum length of a chain of inlined calls.
const MOST_CALLS: usize = 32;

/// Maximum length of a name read from a section.
const MOST_NAME: usize = 4096;

/// Source line, and its function if that function was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'m> {
    /// File, if a `.file` names it.
    pub file: Option<&'m str>,
    /// Line number.
    pub line: u32,
    /// Mangled name of the inlined function that contains the line. `None` if the function was not inlined.
    pub function: Option<String>,
}

/// Files and function names that the lines of a module refer to.
#[derive(Debug)]
pub struct Lines<'m> {
    files: HashMap<u32, &'m str>,
    /// Lines of the sections, by the label before them.
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

    /// Returns the chain of lines of a location: the innermost first, then the line that each was inlined at.
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

    /// Reads a zero-terminated text at an offset from a label of a section.
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
