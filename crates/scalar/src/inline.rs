//! Inlining: emits the code of a function into another builder and replaces its accessors by bindings.

use crate::builder::{Builder, Value};
use crate::function::Function;
use crate::rewrite::{Options, Rewrite};

/// The code of an accessor of an inlined function: it emits the reads or writes.
///
/// Closures suffice in most cases: see [`reading`], [`windowing`], [`writing`], [`pushing`].
#[allow(unused_variables, reason = "the defaults refuse")]
pub trait Binding {
    /// Emits a read of the element at a position.
    fn read(&mut self, builder: &Builder, position: &[Value]) -> Value {
        builder.fail("this binding does not read at positions")
    }
    /// Emits a read of the element at offsets from the position of the thread.
    fn window(&mut self, builder: &Builder, offsets: &[Value]) -> Value {
        builder.fail("this binding is no window")
    }
    /// Emits a write of an element at a position.
    fn write(&mut self, builder: &Builder, position: &[Value], value: Value) {
        builder.fail("this binding does not write at positions");
    }
    /// Emits code that takes the next element.
    fn pop(&mut self, builder: &Builder) -> Value {
        builder.fail("this binding is no queue to read")
    }
    /// Emits a read of an element, counted from the next one.
    fn peek(&mut self, builder: &Builder, offset: Value) -> Value {
        builder.fail("this binding is no queue to read")
    }
    /// Emits code that appends an element.
    fn push(&mut self, builder: &Builder, value: Value) {
        builder.fail("this binding is no queue to write");
    }
}

macro_rules! adapters {
    ($($(#[$doc:meta])* $function:ident $adapter:ident $method:ident ($($argument:ident: $ty:ty),*) $(-> $result:ty)?;)*) => {
        $(struct $adapter<F>(F);

        impl<F: FnMut(&Builder, $($ty),*) $(-> $result)?> Binding for $adapter<F> {
            fn $method(&mut self, builder: &Builder, $($argument: $ty),*) $(-> $result)? {
                (self.0)(builder, $($argument),*)
            }
        }

        $(#[$doc])*
        pub fn $function<'f>(emit: impl FnMut(&Builder, $($ty),*) $(-> $result)? + 'f) -> impl Binding + 'f {
            $adapter(emit)
        })*
    };
}

adapters! {
    /// Makes a binding from a closure that reads at a position.
    reading Reading read(position: &[Value]) -> Value;
    /// Makes a binding from a closure that reads at offsets from the position of the thread.
    windowing Windowing window(offsets: &[Value]) -> Value;
    /// Makes a binding from a closure that writes at a position.
    writing Writing write(position: &[Value], value: Value);
    /// Makes a binding from a closure that takes the next element of a queue.
    popping Popping pop() -> Value;
    /// Makes a binding from a closure that appends to a queue.
    pushing Pushing push(value: Value);
}

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
