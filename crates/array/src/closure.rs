//! Rust closures as device code.
//!
//! [`Array::map`], [`Array::zip_with`] and [`Array::window`] call a closure once with [`Traced`] values,
//! which record the operations on them. The result is a function that runs for every element. Numbers in the
//! closure are compiled into the code. A value that changes from call to call should be an array without axes
//! ([`Array::scalar`]), which is a parameter.

use crate::array::Array;
use crate::element::Element;
use broadloom_graph::{Boundary, Combine, Error, Node, Result};
pub use broadloom_scalar::traced::{Term, Traced};
use broadloom_scalar::{Builder, Function, Value};
use std::cell::RefCell;
use std::marker::PhantomData;

/// Neighbourhood of an element in a traced closure.
pub struct Window<'t, T> {
    builder: &'t Builder,
    rank: usize,
    /// Offsets read so far, each with its parameter.
    seen: &'t RefCell<Vec<(Vec<i64>, Value)>>,
    element: PhantomData<fn() -> T>,
}

impl<'t, T: Element> Window<'t, T> {
    /// Returns the element at an offset along each axis.
    #[must_use]
    #[track_caller]
    pub fn at(&self, offsets: &[i64]) -> Traced<'t, T> {
        if offsets.len() != self.rank {
            let problem = format!("a window of {} axes is looked at with {} offsets", self.rank, offsets.len());
            return Traced::new(self.builder, self.builder.fail(problem));
        }
        let mut seen = self.seen.borrow_mut();
        if let Some((_, value)) = seen.iter().find(|(known, _)| known == offsets) {
            return Traced::new(self.builder, *value);
        }
        let value = self.builder.parameter("x", T::TYPE);
        seen.push((offsets.to_vec(), value));
        Traced::new(self.builder, value)
    }
}

/// Traces a closure of two elements as a combining operator.
pub(crate) fn combine<T: Element>(
    name: &str,
    identity: T,
    closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, T>) -> Traced<'t, T>,
) -> Result<Combine> {
    let builder = Builder::function(name);
    let (x, y) = (builder.parameter("x", T::TYPE), builder.parameter("y", T::TYPE));
    let result = closure(Traced::new(&builder, x), Traced::new(&builder, y)).value;
    Ok(Combine::by(builder.finish_function(&[result])?, &identity.lanes())?)
}

fn call_traced<U: Element>(builder: &Builder, result: Value, inputs: &[&Node]) -> Result<Array<U>> {
    call(&builder.finish_function(&[result])?, inputs)
}

fn call<U: Element>(function: &Function, inputs: &[&Node]) -> Result<Array<U>> {
    let mut results = Node::call(function, inputs)?;
    match results.pop() {
        Some(node) => Array::from_node(node),
        None => Err(Error::Plan { what: "a closure".into(), reason: "it has no result".into() }),
    }
}

impl<T: Element> Array<T> {
    /// Applies a closure to every element.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1.0f32, 4.0, -9.0])?;
    /// let b = a.map(|x| x.lt(0.0).cond(x * x, x.sqrt()))?;
    /// assert_eq!(b.to_vec()?, [1.0, 2.0, 81.0]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    ///
    /// Values of two closures cannot be mixed, even if one closure is nested in the other:
    ///
    /// ```compile_fail
    /// # use broadloom_array::Array;
    /// fn mixed(a: &Array<f32>) {
    ///     let _ = a.map(|x| {
    ///         let _ = a.map(|y| {
    ///             let _ = y + x;
    ///             y
    ///         });
    ///         x
    ///     });
    /// }
    /// ```
    pub fn map<U: Element>(&self, closure: impl for<'t> FnOnce(Traced<'t, T>) -> Traced<'t, U>) -> Result<Array<U>> {
        let builder = Builder::function("map");
        let x = builder.parameter("x", T::TYPE);
        let result = closure(Traced::new(&builder, x)).value;
        call_traced(&builder, result, &[self.node()])
    }

    /// Applies a closure to the elements of two arrays.
    pub fn zip_with<U: Element, V: Element>(
        &self,
        other: &Array<U>,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, U>) -> Traced<'t, V>,
    ) -> Result<Array<V>> {
        let builder = Builder::function("zip");
        let (x, y) = (builder.parameter("x", T::TYPE), builder.parameter("y", U::TYPE));
        let result = closure(Traced::new(&builder, x), Traced::new(&builder, y)).value;
        call_traced(&builder, result, &[self.node(), other.node()])
    }

    /// Applies a closure to the elements of three arrays.
    pub fn zip_with_two<U: Element, V: Element, W: Element>(
        &self,
        second: &Array<U>,
        third: &Array<V>,
        closure: impl for<'t> FnOnce(Traced<'t, T>, Traced<'t, U>, Traced<'t, V>) -> Traced<'t, W>,
    ) -> Result<Array<W>> {
        let builder = Builder::function("zip");
        let (x, y, z) = (builder.parameter("x", T::TYPE), builder.parameter("y", U::TYPE), builder.parameter("z", V::TYPE));
        let result = closure(Traced::new(&builder, x), Traced::new(&builder, y), Traced::new(&builder, z)).value;
        call_traced(&builder, result, &[self.node(), second.node(), third.node()])
    }

    /// Applies a closure to the neighbourhood of every element.
    ///
    /// ```
    /// # use broadloom_array::{Array, Boundary};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1, 2, 4, 8])?;
    /// let b = a.window(Boundary::Clamp, |w| w.at(&[1]) - w.at(&[-1]))?;
    /// assert_eq!(b.to_vec()?, [1, 3, 6, 4]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn window<U: Element>(
        &self,
        outside: Boundary<T>,
        closure: impl for<'t> FnOnce(Window<'t, T>) -> Traced<'t, U>,
    ) -> Result<Array<U>> {
        let builder = Builder::function("window");
        let seen = RefCell::new(vec![]);
        let window = Window { builder: &builder, rank: self.rank(), seen: &seen, element: PhantomData };
        let result = closure(window).value;
        let function = builder.finish_function(&[result])?;
        let places: Vec<Vec<i64>> = seen.borrow().iter().map(|(offsets, _)| offsets.clone()).collect();
        let mut neighbours = vec![];
        for offsets in &places {
            let by: Vec<i64> = offsets.iter().map(|offset| offset.saturating_neg()).collect();
            neighbours.push(self.shift(&by, outside)?);
        }
        let nodes: Vec<&Node> = neighbours.iter().map(|array| array.node()).collect();
        if nodes.is_empty() {
            let reason = "the closure looks at no element".to_owned();
            return Err(Error::Range { operation: "window".into(), shape: self.shape().clone(), reason });
        }
        call(&function, &nodes)
    }
}
