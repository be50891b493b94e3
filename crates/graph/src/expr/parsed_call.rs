//! An operation that was parsed from the [textual form](crate::text): inputs and settings.

use crate::expr::error::{Error, Result};
use crate::expr::node::{Context, Node};
use crate::expr::shape::Shape;
use broadloom_diag::Span;
use broadloom_scalar::text::literal;
use broadloom_scalar::{Function, Lanes, Type};
use broadloom_skeleton::{Boundary, Combine};
use std::cell::{Cell, RefCell};

/// Parsed operation, passed to the [`NodeMaker`] that makes its nodes. Its errors point at the
/// setting in the text.
#[derive(Debug)]
pub struct ParsedCall<'t> {
    pub(crate) context: &'t Context,
    pub(crate) name: &'t str,
    pub(crate) inputs: Vec<Node>,
    pub(crate) settings: Vec<ParsedSetting<'t>>,
    /// Types and shapes of the results that are stated in the text.
    pub(crate) stated: Vec<Option<(Type, Shape)>>,
    /// Flags of the settings that were read.
    used: RefCell<Vec<bool>>,
    /// Place of the last setting with an error.
    blamed: Cell<Option<Span>>,
}

/// Function that makes the nodes of a parsed operation, one for each result.
pub type NodeMaker = fn(&ParsedCall<'_>) -> Result<Vec<Node>>;

#[derive(Clone, Debug)]
pub(crate) struct ParsedSetting<'t> {
    pub(crate) key: &'t str,
    pub(crate) value: RawValue<'t>,
    pub(crate) span: Span,
}

/// Value whose kind is not known yet.
#[derive(Clone, Debug)]
pub(crate) enum RawValue<'t> {
    Literal(&'t str),
    Word(&'t str),
    List(Vec<RawValue<'t>>),
    Lanes(Vec<&'t str>),
    Function(Function),
}

impl<'t> ParsedCall<'t> {
    pub(crate) fn new(
        context: &'t Context,
        name: &'t str,
        inputs: Vec<Node>,
        settings: Vec<ParsedSetting<'t>>,
        stated: Vec<Option<(Type, Shape)>>,
    ) -> ParsedCall<'t> {
        let used = RefCell::new(vec![false; settings.len()]);
        ParsedCall { context, name, inputs, settings, stated, used, blamed: Cell::new(None) }
    }

    /// Returns the name in the text.
    pub fn name(&self) -> &'t str {
        self.name
    }

    /// Returns the context of the graph.
    pub fn context(&self) -> &Context {
        self.context
    }

    /// Returns all inputs.
    pub fn inputs(&self) -> Vec<&Node> {
        self.inputs.iter().collect()
    }

    /// Returns the inputs; their number must be `N`.
    pub fn exactly<const N: usize>(&self) -> Result<[&Node; N]> {
        let inputs = self.inputs();
        let count = inputs.len();
        inputs.try_into().map_err(|_| self.error(format!("expected {N} inputs, not {count}")))
    }

    /// Returns an error of the operation.
    pub fn error(&self, reason: impl Into<String>) -> Error {
        Error::Text { operation: self.name.to_owned(), reason: reason.into() }
    }

    fn find(&self, key: &str) -> Option<&ParsedSetting<'t>> {
        let index = self.settings.iter().position(|setting| setting.key == key)?;
        self.used.borrow_mut()[index] = true;
        Some(&self.settings[index])
    }

    fn wanted(&self, key: &str) -> Result<&ParsedSetting<'t>> {
        self.find(key).ok_or_else(|| self.error(format!("the setting `{key}` is missing")))
    }

    fn wrong(&self, given: &ParsedSetting<'_>, what: &str) -> Error {
        self.blamed.set(Some(given.span));
        self.error(format!("`{}` is {what}", given.key))
    }

    /// Returns whether a setting exists.
    pub fn has(&self, key: &str) -> bool {
        self.settings.iter().any(|setting| setting.key == key)
    }

    /// Reads a number that is not negative.
    pub fn number(&self, key: &str) -> Result<usize> {
        let given = self.wanted(key)?;
        let number = |raw: &RawValue<'_>| match raw {
            RawValue::Literal(text) => text.parse().ok(),
            _ => None,
        };
        number(&given.value).ok_or_else(|| self.wrong(given, "a number"))
    }

    /// Reads a list of axes.
    pub fn axes(&self) -> Result<Vec<usize>> {
        let given = self.wanted("axes")?;
        let wrong = || self.wrong(given, "a list of axes, such as `[0, 1]`");
        let RawValue::List(list) = &given.value else { return Err(wrong()) };
        let axis = |raw: &RawValue<'_>| match raw {
            RawValue::Literal(text) => text.parse().ok(),
            _ => None,
        };
        list.iter().map(|raw| axis(raw).ok_or_else(wrong)).collect()
    }

    /// Reads a list of numbers that are not negative; an empty one if the setting is missing.
    pub fn numbers(&self, key: &str) -> Result<Vec<usize>> {
        let Some(given) = self.find(key) else { return Ok(vec![]) };
        let wrong = || self.wrong(given, "a list of numbers, such as `[1, 2]`");
        let RawValue::List(list) = &given.value else { return Err(wrong()) };
        let number = |raw: &RawValue<'_>| match raw {
            RawValue::Literal(text) => text.parse().ok(),
            _ => None,
        };
        list.iter().map(|raw| number(raw).ok_or_else(wrong)).collect()
    }

    /// Reads a list of values, one of each type.
    pub fn values(&self, key: &str, types: &[Type]) -> Result<Vec<Lanes>> {
        let given = self.wanted(key)?;
        let wrong = || self.wrong(given, &format!("a list of {} values in brackets, of the expected types", types.len()));
        let RawValue::List(list) = &given.value else { return Err(wrong()) };
        if list.len() != types.len() {
            return Err(wrong());
        }
        let value = |(raw, ty): (&RawValue<'_>, &Type)| match raw {
            RawValue::Literal(text) => value_of(*ty, std::slice::from_ref(text)),
            RawValue::Lanes(texts) => value_of(*ty, texts),
            RawValue::Word(_) | RawValue::List(_) | RawValue::Function(_) => None,
        };
        list.iter().zip(types).map(|pair| value(pair).ok_or_else(wrong)).collect()
    }

    /// Reads the reach of a window: two numbers for each axis.
    pub fn reach(&self) -> Result<Vec<(u32, u32)>> {
        let numbers = self.numbers("reach")?;
        let wrong =
            || self.error("`reach` has two numbers for each axis, how far before and behind the position a window reaches");
        let pair = |pair: &[usize]| match pair {
            [before, behind] => u32::try_from(*before).ok().zip(u32::try_from(*behind).ok()),
            _ => None,
        };
        numbers.chunks(2).map(|numbers| pair(numbers).ok_or_else(wrong)).collect()
    }

    /// Reads a function.
    pub fn function(&self, key: &str) -> Result<Function> {
        let given = self.wanted(key)?;
        match &given.value {
            RawValue::Function(function) => Ok(function.clone()),
            _ => Err(self.wrong(given, "a function, such as `@f`")),
        }
    }

    /// Reads the boundary of arrays of these types: `outside: clamp`, or `outside: constant` with a value for
    /// each in `fills`.
    pub fn boundary(&self, types: &[Type]) -> Result<Boundary<Vec<Lanes>>> {
        match self.word("outside")? {
            "clamp" => Ok(Boundary::Clamp),
            "wrap" => Ok(Boundary::Wrap),
            "mirror" => Ok(Boundary::Mirror),
            "constant" => Ok(Boundary::Constant(self.values("fills", types)?)),
            other => Err(self.error(format!("`{other}` is not `clamp`, `wrap`, `mirror` or `constant`"))),
        }
    }

    /// Reads a word.
    pub fn word(&self, key: &str) -> Result<&'t str> {
        let given = self.wanted(key)?;
        match given.value {
            RawValue::Word(word) => Ok(word),
            _ => Err(self.wrong(given, "a word")),
        }
    }

    /// Reads a list of words.
    pub fn words(&self, key: &str) -> Result<Vec<&'t str>> {
        let given = self.wanted(key)?;
        let wrong = || self.wrong(given, "a list of words in brackets");
        let RawValue::List(list) = &given.value else { return Err(wrong()) };
        let word = |raw: &RawValue<'t>| match raw {
            RawValue::Word(word) => Ok(*word),
            _ => Err(wrong()),
        };
        list.iter().map(word).collect()
    }

    /// Reads `true` or `false`; `false` if the setting is missing.
    pub fn flag(&self, key: &str) -> Result<bool> {
        let Some(given) = self.find(key) else { return Ok(false) };
        match given.value {
            RawValue::Literal("true") => Ok(true),
            RawValue::Literal("false") => Ok(false),
            _ => Err(self.wrong(given, "`true` or `false`")),
        }
    }

    /// Reads a value of a type.
    pub fn value(&self, key: &str, ty: Type) -> Result<Lanes> {
        let given = self.wanted(key)?;
        let lanes = match &given.value {
            RawValue::Literal(text) => value_of(ty, std::slice::from_ref(text)),
            RawValue::Lanes(texts) => value_of(ty, texts),
            RawValue::Word(_) | RawValue::List(_) | RawValue::Function(_) => None,
        };
        lanes.ok_or_else(|| self.wrong(given, &format!("a value of `{ty}`")))
    }

    /// Reads a value of a type, or a word as the inner error.
    pub(crate) fn value_or_word(&self, key: &str, ty: Type) -> Result<std::result::Result<Lanes, &'t str>> {
        match self.wanted(key)?.value {
            RawValue::Word(word) => Ok(Err(word)),
            _ => self.value(key, ty).map(Ok),
        }
    }

    /// Reads a combination of elements of a type: `combine: sum`, or `combine: @function, identity: 0`.
    pub fn combine(&self, ty: Type) -> Result<Combine> {
        let given = self.wanted("combine")?;
        match &given.value {
            RawValue::Function(function) => {
                let identity = self.value("identity", ty)?;
                Ok(match self.flag("commutative")? {
                    true => Combine::commutative(function.clone(), &identity)?,
                    false => Combine::by(function.clone(), &identity)?,
                })
            }
            RawValue::Word(word) => {
                let named = Combine::EVERY.iter().find(|combine| combine.name() == *word).cloned();
                let names = || Combine::EVERY.iter().map(|combine| combine.name().to_owned()).collect::<Vec<_>>().join(", ");
                named.ok_or_else(|| self.wrong(given, &format!("one of {}, or a function", names())))
            }
            RawValue::Literal(_) | RawValue::List(_) | RawValue::Lanes(_) => Err(self.wrong(given, "a word or a function")),
        }
    }

    /// Returns the stated type and shape of the first result, for operations whose result does not depend on
    /// their inputs alone.
    pub fn stated(&self) -> Result<(Type, &Shape)> {
        let none = || self.error("the type and the shape of the result must be stated, such as `x: f32[4, 4] = …`");
        self.stated.first().and_then(Option::as_ref).map(|(ty, shape)| (*ty, shape)).ok_or_else(none)
    }

    /// Returns the first setting that was not read.
    pub(crate) fn unused(&self) -> Option<&ParsedSetting<'t>> {
        self.settings.iter().zip(&*self.used.borrow()).find(|(_, used)| !**used).map(|(setting, _)| setting)
    }

    /// Returns the place of the setting with an error, if there is one.
    pub(crate) fn blamed(&self) -> Option<Span> {
        self.blamed.get()
    }
}

/// Parses a value of a type from literals; a single literal is broadcast to all lanes.
pub(crate) fn value_of(ty: Type, texts: &[&str]) -> Option<Lanes> {
    let lanes: Option<Lanes> = texts.iter().map(|text| literal(ty.element(), text)).collect();
    match lanes? {
        one if one.len() == 1 => Some(Lanes::from_elem(one[0], ty.lanes())),
        all => (all.len() == ty.lanes()).then_some(all),
    }
}
