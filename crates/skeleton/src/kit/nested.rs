//! Sources inside functions: composition of functions before they become part of a pattern.

use crate::Source;
use broadloom_scalar::{Accessor, AccessorKind, Binding, Builder, Value, reading};

/// A [`Source`] inside a function under construction. Its scalars and inputs become those of the function,
/// declared in the order of nesting. The function must declare its position first.
#[derive(Clone, Debug)]
pub struct NestedSource<'a> {
    source: &'a Source,
    scalars: Vec<Value>,
    inputs: Vec<Accessor>,
}

impl<'a> NestedSource<'a> {
    /// Declares the scalars and inputs.
    pub fn new(f: &Builder, source: &'a Source) -> NestedSource<'a> {
        let scalars = source.function().parameters()[source.axes()..].iter().map(|own| f.parameter(&own.name, own.ty)).collect();
        let declare = |own: &broadloom_scalar::AccessorDecl| f.accessor(&own.name, AccessorKind::Input, own.ty, 1);
        NestedSource { source, scalars, inputs: source.function().accessors().iter().map(declare).collect() }
    }

    /// Computes the values at a position.
    pub fn at(&self, f: &Builder, position: &[Value]) -> Vec<Value> {
        let mut arguments: Vec<Value> = position.iter().map(|index| f.convert(*index, self.source.index())).collect();
        arguments.extend(&self.scalars);
        let bind = |input: &Accessor| {
            let input = *input;
            reading(move |f: &Builder, position: &[Value]| f.read(input, &[position[0].into()]))
        };
        let mut bindings: Vec<_> = self.inputs.iter().map(bind).collect();
        let mut bindings: Vec<&mut dyn Binding> = bindings.iter_mut().map(|binding| binding as &mut dyn Binding).collect();
        f.inline(self.source.function(), &arguments, &mut bindings)
    }
}
