//! Bindings: the code of the accessors of an inlined function.

use crate::builder::{Builder, Value};

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
