//! Values of an effect's parameters.

use super::{Choice, Effect, EffectError, InvalidValue, Parameter, PlaneChoice, Value, nearest, parameter};
use broadloom_skeleton::Rule;
use std::path::Path;

/// An effect with its settings.
pub type Step = Settings;

/// Values of the parameters of one effect: defaults, and values that were set.
#[derive(Clone, Debug)]
pub struct Settings {
    effect: &'static Effect,
    values: Vec<(Parameter, Option<Value>)>,
}

impl Settings {
    /// Creates settings in which every parameter has its default.
    pub fn new(effect: &'static Effect) -> Settings {
        let value = |parameter: Parameter| {
            let value = parameter.default.and_then(|text| parameter.kind.parse(text).ok());
            (parameter, value)
        };
        Settings { effect, values: effect.all_parameters().map(value).collect() }
    }

    /// Returns the row of the catalogue that the values belong to.
    pub fn effect(&self) -> &'static Effect {
        self.effect
    }

    /// Sets a parameter to a value given as text. Every effect accepts `boundary` and `border`. Effects that
    /// read nothing outside the image ignore them.
    ///
    /// ```
    /// use broadloom_effect::catalogue::{Effect, Settings};
    ///
    /// let mut settings = Settings::new(Effect::find("gaussian")?);
    /// settings.set("sigma", "3.5")?;
    /// assert_eq!(settings.number("sigma"), 3.5);
    /// let error = settings.set("sgma", "1").unwrap_err().to_string();
    /// assert!(error.ends_with("; did you mean `sigma`?"), "{error}");
    /// # Ok::<(), broadloom_effect::catalogue::EffectError>(())
    /// ```
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), EffectError> {
        let effect = self.effect.name.to_owned();
        let shown = || text.chars().take(80).collect();
        let bad = |error: InvalidValue| EffectError::BadValue {
            effect: self.effect.name.to_owned(),
            name: name.to_owned(),
            value: shown(),
            reason: error.to_string(),
        };
        let Some((parameter, value)) = self.values.iter_mut().find(|(parameter, _)| parameter.name == name) else {
            // An effect that reads nothing outside the image has no rule to change.
            if let Some(rule) = [parameter::BOUNDARY, parameter::BORDER].iter().find(|rule| rule.name == name) {
                return rule.kind.parse(text).map(|_| ()).map_err(bad);
            }
            let there: Vec<&str> = self.values.iter().map(|(parameter, _)| parameter.name).collect();
            return Err(EffectError::UnknownParameter {
                effect,
                name: name.to_owned(),
                nearest: nearest(name, there.iter().copied()).map(str::to_owned),
                there: there.into_iter().map(str::to_owned).collect(),
            });
        };
        *value = Some(parameter.kind.parse(text).map_err(bad)?);
        Ok(())
    }

    /// Returns whether there is a parameter with this name.
    pub fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(parameter, _)| parameter.name == name)
    }

    /// Returns the parameters with their values.
    pub fn values(&self) -> impl Iterator<Item = (&Parameter, Option<&Value>)> {
        self.values.iter().map(|(parameter, value)| (parameter, value.as_ref()))
    }

    /// Fails if a parameter without a default has no value.
    pub fn complete(&self) -> Result<(), EffectError> {
        match self.values.iter().find(|(_, value)| value.is_none()) {
            None => Ok(()),
            Some((parameter, _)) => {
                Err(EffectError::Missing { effect: self.effect.name, name: parameter.name, doc: parameter.doc })
            }
        }
    }

    /// Returns the value of a parameter.
    ///
    /// # Panics
    ///
    /// Panics if the effect has no such parameter, or the parameter has neither a default nor a value.
    pub fn value(&self, name: &str) -> &Value {
        let found = self.values.iter().find(|(parameter, _)| parameter.name == name);
        let value = found.and_then(|(_, value)| value.as_ref());
        value.unwrap_or_else(|| panic!("the effect `{}` has no value for `{name}`", self.effect.name))
    }

    /// Returns the value of an integer parameter. Panics as [`Settings::value`] does.
    pub fn integer(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Integer(value) => *value,
            other => panic!("`{name}` of `{}` is {other}, no integer", self.effect.name),
        }
    }

    /// Returns the value of a number parameter. Panics as [`Settings::value`] does.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(value) => *value,
            other => panic!("`{name}` of `{}` is {other}, no number", self.effect.name),
        }
    }

    /// Returns the value of a choice parameter. Panics as [`Settings::value`] does.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            other => panic!("`{name}` of `{}` is {other}, no choice", self.effect.name),
        }
    }

    /// Returns the meaning of the word of a choice parameter. Panics as [`Settings::value`] does.
    pub(crate) fn chosen<C: Choice>(&self, name: &str) -> C {
        let word = self.choice(name);
        let meaning = C::WORDS.iter().zip(C::MEANINGS).find(|(own, _)| **own == word).map(|(_, meaning)| *meaning);
        meaning.unwrap_or_else(|| panic!("`{name}` of `{}` is {word}, a word of another choice", self.effect.name))
    }

    /// Returns the value of a parameter with several numbers. Panics as [`Settings::value`] does.
    pub fn numbers(&self, name: &str) -> &[f64] {
        match self.value(name) {
            Value::Numbers(values) => values,
            other => panic!("`{name}` of `{}` is {other}, no list of numbers", self.effect.name),
        }
    }

    /// Returns the value of a parameter with planes. Panics as [`Settings::value`] does.
    pub fn planes(&self, name: &str) -> &[PlaneChoice] {
        match self.value(name) {
            Value::Planes(planes) => planes,
            other => panic!("`{name}` of `{}` is {other}, no list of planes", self.effect.name),
        }
    }

    /// Returns the value of a file parameter. Panics as [`Settings::value`] does.
    pub fn file(&self, name: &str) -> &Path {
        match self.value(name) {
            Value::File(path) => path,
            other => panic!("`{name}` of `{}` is {other}, no file", self.effect.name),
        }
    }

    /// Returns the boundary rule; [`Rule::Clamp`] if the effect has none.
    pub fn rule(&self) -> Rule {
        if self.has("boundary") { self.chosen("boundary") } else { Rule::Clamp }
    }

    /// Returns the value outside the image for [`Rule::Constant`].
    pub fn border(&self) -> f64 {
        if self.has("border") { self.number("border") } else { 0.0 }
    }
}
