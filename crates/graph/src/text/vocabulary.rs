//! The words of the textual form: how operations are written, and who reads them.

use super::Call;
use crate::error::Result;
use crate::node::Node;
use crate::op::Combine;
use crate::text::print::rule_text;
use crate::view::Boundary;
use broadloom_scalar::{Function, Lanes};
use std::collections::HashMap;

/// An operation as it is written: its name, and settings behind its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelling {
    pub(super) name: String,
    pub(super) settings: Vec<(&'static str, Setting)>,
    /// The inputs that are written, where those are not all.
    pub(super) inputs: Option<Vec<usize>>,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number, such as an axis.
    Number(i64),
    /// Numbers in brackets.
    Numbers(Vec<i64>),
    /// A word.
    Word(String),
    /// Words in brackets.
    Words(Vec<String>),
    /// A value of an element, lane by lane.
    Value(Lanes),
    /// Values in brackets.
    Values(Vec<Lanes>),
    /// A function of elements; it stands in the text before the nodes.
    Function(Function),
}

impl Spelling {
    /// An operation without settings. The name is letters, digits and `_`.
    pub fn new(name: impl Into<String>) -> Spelling {
        Spelling { name: name.into(), settings: vec![], inputs: None }
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, key: &'static str, setting: Setting) -> Spelling {
        self.settings.push((key, setting));
        self
    }

    /// Says which inputs are written, by their numbers: all others follow from them when the text is read.
    #[must_use]
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = usize>) -> Spelling {
        self.inputs = Some(inputs.into_iter().collect());
        self
    }

    /// Adds what stands outside of arrays: `outside: clamp`, or `outside: constant` with a value for each
    /// array in `fills`.
    #[must_use]
    pub fn boundary(self, boundary: &Boundary<Vec<Lanes>>) -> Spelling {
        let spelling = self.with("outside", Setting::Word(rule_text(boundary.rule()).to_owned()));
        match boundary.constant() {
            None => spelling,
            Some(values) => spelling.with("fills", Setting::Values(values.clone())),
        }
    }

    /// Adds a number.
    #[must_use]
    pub fn number(self, key: &'static str, number: usize) -> Spelling {
        self.with(key, Setting::Number(number as i64))
    }

    /// Adds a list of axes.
    #[must_use]
    pub fn axes(self, axes: &[u8]) -> Spelling {
        self.with("axes", Setting::Numbers(axes.iter().map(|axis| i64::from(*axis)).collect()))
    }

    /// Adds how elements are combined: `combine: sum`, or `combine: @function, identity: 0`, and `commutative: true` for
    /// a function that is.
    #[must_use]
    pub fn combine(self, combine: &Combine) -> Spelling {
        match combine {
            Combine::By(operator) => {
                let identity = Lanes::from_slice(operator.identity());
                let spelling = self.with("combine", Setting::Function(operator.function().clone()));
                let spelling = spelling.with("identity", Setting::Value(identity));
                match operator.is_commutative() {
                    true => spelling.with("commutative", Setting::Word("true".to_owned())),
                    false => spelling,
                }
            }
            named => self.with("combine", Setting::Word(named.name().to_owned())),
        }
    }
}

/// Makes the nodes of an operation from what is written: one for each result.
pub type Read = fn(&Call<'_>) -> Result<Vec<Node>>;

/// The operations that a text may name, by their names.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    words: HashMap<String, Read>,
}

impl Default for Vocabulary {
    /// The operations of this crate.
    fn default() -> Vocabulary {
        let words = crate::operations::WORDS.iter().map(|(name, read)| ((*name).to_owned(), *read)).collect();
        Vocabulary { words }
    }
}

impl Vocabulary {
    /// Adds an operation of another crate, by the name of its [`Spelling`].
    #[must_use]
    pub fn with(mut self, name: &str, read: Read) -> Vocabulary {
        self.words.insert(name.to_owned(), read);
        self
    }

    pub(super) fn read(&self, name: &str) -> Option<Read> {
        self.words.get(name).copied()
    }

    /// The names, sorted.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.words.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}
