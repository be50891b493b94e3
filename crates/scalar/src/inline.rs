//! Inlining: emits the code of a function into another builder and replaces its accessors by bindings.

use crate::binding::Binding;
use crate::builder::{Builder, Value};
use crate::function::Function;
use crate::rewrite::{Options, Rewrite};

impl Builder {
    /// Emits the code of a function here and returns its results. `arguments` are its parameters and
    /// `bindings` its accessors, both in order of declaration.
    ///
    /// ```
    /// use broadloom_scalar::{AccessorKind, Builder, Type, reading};
    /// // A function that adds two neighbours of its input …
    /// let f = Builder::function("neighbours");
    /// let i = f.parameter("i", Type::I32);
    /// let input = f.accessor("input", AccessorKind::Input, Type::F32, 1);
    /// let sum = f.add(f.read(input, &[i.into()]), f.read(input, &[f.add(i, 1).into()]));
    /// let neighbours = f.finish_function(&[sum]).unwrap();
    ///
    /// // … inlined where the input is computed from the position.
    /// let b = Builder::function("squares");
    /// let i = b.parameter("i", Type::I32);
    /// let mut square = reading(|b, position| {
    ///     let x = b.convert(position[0], Type::F32);
    ///     b.mul(x, x)
    /// });
    /// let sum = b.inline(&neighbours, &[i], &mut [&mut square]);
    /// let squares = b.finish_function(&sum).unwrap();
    /// assert_eq!(squares.evaluate(&[3i32.into()]).unwrap(), [25.0f32.into()]);
    /// ```
    #[track_caller]
    pub fn inline(&self, function: &Function, arguments: &[Value], bindings: &mut [&mut dyn Binding]) -> Vec<Value> {
        let poison = || vec![self.poison(); function.results().len()];
        let (parameters, accessors) = (function.parameters(), function.accessors());
        if arguments.len() != parameters.len() || bindings.len() != accessors.len() {
            self.fail(format!(
                "`{}` has {} parameters and {} accessors, and is given {} and {}",
                function.name(),
                parameters.len(),
                accessors.len(),
                arguments.len(),
                bindings.len()
            ));
            return poison();
        }
        let mut resolved = vec![];
        for (argument, parameter) in arguments.iter().zip(parameters) {
            match self.resolve((*argument).into(), parameter.ty) {
                Some(value) => resolved.push(value),
                None => return poison(),
            }
        }
        let mut rewrite = Rewrite::new(function.body(), self, resolved, Options::default());
        rewrite.bind(bindings);
        rewrite.reset_variables();
        rewrite.run(function.results())
    }
}
