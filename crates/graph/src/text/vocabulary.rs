//! The operations that a text may use.

use crate::expr::operations::WORDS;
use crate::expr::parsed_call::NodeMaker;
use std::collections::HashMap;

/// Operations that a text may use, by their names.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    words: HashMap<String, NodeMaker>,
}

impl Default for Vocabulary {
    /// Returns the operations of this crate.
    fn default() -> Vocabulary {
        let words = WORDS.iter().map(|(name, read)| ((*name).to_owned(), *read)).collect();
        Vocabulary { words }
    }
}

impl Vocabulary {
    /// Adds an operation of another crate, by the name of its [`Spelling`](super::Spelling).
    #[must_use]
    pub fn with(mut self, name: &str, read: NodeMaker) -> Vocabulary {
        self.words.insert(name.to_owned(), read);
        self
    }

    pub(super) fn read(&self, name: &str) -> Option<NodeMaker> {
        self.words.get(name).copied()
    }

    /// Returns the names, sorted.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.words.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}
