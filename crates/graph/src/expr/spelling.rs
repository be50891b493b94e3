//! Spelling of operations in the [textual form](crate::text) of graphs.

use broadloom_scalar::{Function, Lanes};
use broadloom_skeleton::{Boundary, Combine, Rule};

/// Operation in its textual form: its name, and settings after its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Spelling {
    pub(crate) name: String,
    pub(crate) settings: Vec<(&'static str, Setting)>,
    /// The inputs that are printed; `None` for all.
    pub(crate) inputs: Option<Vec<usize>>,
}

/// Value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// Number, such as an axis.
    Number(i64),
    /// Numbers in brackets.
    Numbers(Vec<i64>),
    /// A name without quotes.
    Word(String),
    /// Words in brackets.
    Words(Vec<String>),
    /// Value of an element, lane by lane.
    Value(Lanes),
    /// Values in brackets.
    Values(Vec<Lanes>),
    /// Function of elements; it is printed before the nodes.
    Function(Function),
}

impl Spelling {
    /// Creates an operation without settings. The name consists of letters, digits and `_`.
    pub fn new(name: impl Into<String>) -> Spelling {
        Spelling { name: name.into(), settings: vec![], inputs: None }
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, key: &'static str, setting: Setting) -> Spelling {
        self.settings.push((key, setting));
        self
    }

    /// Sets the inputs that are printed, by their numbers. All others are derived from them when the text is
    /// read.
    #[must_use]
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = usize>) -> Spelling {
        self.inputs = Some(inputs.into_iter().collect());
        self
    }

    /// Adds a boundary: `outside: clamp`, or `outside: constant` with a value for each array in `fills`.
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

    /// Adds a combination: `combine: sum`, or `combine: @function, identity: 0`, with `commutative: true` if
    /// the function is commutative.
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

/// Returns the word of a boundary rule.
pub(crate) fn rule_text(rule: Rule) -> &'static str {
    match rule {
        Rule::Inside => "",
        Rule::Clamp => "clamp",
        Rule::Wrap => "wrap",
        Rule::Mirror => "mirror",
        Rule::Constant => "constant",
    }
}
