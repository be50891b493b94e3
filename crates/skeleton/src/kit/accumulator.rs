//! Running results of an operator.

use crate::Operator;
use broadloom_scalar::{Builder, Value, Variable};

/// The running result of an [`Operator`] in variables of a kernel or function.
#[derive(Debug)]
pub struct Accumulator<'a> {
    operator: &'a Operator,
    variables: Vec<Variable>,
}

impl<'a> Accumulator<'a> {
    /// Declares the variables and sets them to the identity.
    pub fn new(k: &Builder, operator: &'a Operator) -> Accumulator<'a> {
        let variables = operator.nothing(k).into_iter().map(|value| k.variable_with(value)).collect();
        Accumulator { operator, variables }
    }

    /// Returns the values so far.
    pub fn get(&self, k: &Builder) -> Vec<Value> {
        self.variables.iter().map(|variable| k.get(*variable)).collect()
    }

    /// Replaces the values.
    pub fn set(&self, k: &Builder, values: &[Value]) {
        self.variables.iter().zip(values).for_each(|(variable, value)| k.set(*variable, *value));
    }

    /// Combines the values so far, on the left, with more values.
    pub fn add(&self, k: &Builder, values: &[Value]) {
        let sum = self.operator.combine(k, &self.get(k), values);
        self.set(k, &sum);
    }
}
