//! Functions of arrays: traced once, called again and again.
//!
//! Building an expression costs a little for every operation, each time. A [`Function`] has that done once: a call binds arrays and
//! scalars and launches, and its cost does not depend on how many operations there are. What JAX calls `jit`. Arguments of other shapes need no
//! other trace, unless the closure would do something else for them.

use crate::array::Array;
use crate::element::Element;
use broadloom_graph::{Context, Error, Node, Result, Template};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

/// Traces that a function keeps.
const MOST: usize = 16;

/// Calls a closure with nodes.
type Trace<R> = dyn Fn(&[Node]) -> Result<R> + Send + Sync;

/// A function of arrays that is traced once for arguments of the same ranks.
///
/// It is made from a closure (or a plain function) of references to arrays that gives an array, a tuple, a `Vec` or an array of arrays, or a `Result` of these. The closure is called when
/// arguments come for which it may do something else than before, with arrays that have no elements yet; what it does with them is planned and compiled, and done in every
/// call. So:
///
/// - the closure describes a computation: what it does besides happens when it is traced only;
/// - arrays that it captures are constants, kept by the function. One that was not evaluated is computed in every call;
/// - numbers in it are constants too; a value that differs from call to call is an argument: a plain number given to [`Function::call`] is an array without axes inside;
/// - elements cannot be read inside: [`Array::to_vec`] and [`Array::item`] say so. [`Array::evaluate`] can be used to end a kernel;
/// - a function that is called inside of another becomes part of it;
/// - extents that it reads as numbers, as by [`Shape::extents`](crate::Shape::extents), tie the trace to these numbers: arguments with others are traced anew.
///   [`Amount`](crate::Amount)s do not.
///
/// ```
/// # use broadloom_array::{Array, Context, Function};
/// # let context = Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
/// let weights = Array::line(&context, &[1.0f32, 2.0, 3.0])?;
/// let weighed = Function::new(&context, move |x: &Array<f32>, scale: &Array<f32>| (x * &weights * scale).sum());
/// let (x, y) = (Array::line(&context, &[1.0f32, 1.0, 1.0])?, Array::line(&context, &[0.0f32, 1.0, 2.0])?);
/// assert_eq!(weighed.call((&x, 1.0))?.item()?, 6.0);
/// assert_eq!(weighed.call((&y, 10.0))?.item()?, 80.0);
/// // The second call neither built nor looked for anything.
/// assert_eq!(context.statistics().plans, 1);
/// # Ok::<(), broadloom_array::Error>(())
/// ```
///
/// Shapes that do not fit are told by the operation that they do not fit to, when the closure is traced for them:
///
/// ```
/// # use broadloom_array::{Array, Context, Function};
/// # let context = Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
/// let both = Function::new(&context, |a: &Array<i32>, b: &Array<i32>| Ok((a.add(b)?, a.sub(b)?)));
/// let (two, three) = (Array::line(&context, &[1, 2])?, Array::line(&context, &[1, 2, 3])?);
/// let (sum, difference) = both.call((&two, &two))?;
/// assert_eq!((sum.to_vec()?, difference.to_vec()?), (vec![2, 4], vec![0, 0]));
/// assert_eq!(both.call((&two, &three)).unwrap_err().to_string(), "`+`: the shapes [2] and [3] do not fit together");
/// # Ok::<(), broadloom_array::Error>(())
/// ```
pub struct Function<P, R> {
    context: Context,
    trace: Box<Trace<R>>,
    /// What was traced, that which was called last at the end.
    known: Mutex<Vec<Arc<Template>>>,
    parameters: PhantomData<fn(P) -> R>,
}

impl<P, R: Results> Function<P, R> {
    /// A function on the device of a context. Nothing is traced before it is called.
    pub fn new<F: Body<P, Results = R>>(context: &Context, body: F) -> Function<P, R> {
        let trace = Box::new(move |inputs: &[Node]| body.trace(inputs));
        Function { context: context.clone(), trace, known: Mutex::default(), parameters: PhantomData }
    }

    /// Computes it: one argument, or a tuple of them, each an array or a number. Does not wait for the device, but arguments that were not evaluated are.
    pub fn call(&self, arguments: impl Arguments<P>) -> Result<R> {
        let inputs = arguments.nodes(&self.context);
        if inputs.iter().any(Node::is_symbolic) {
            // Inside of another function.
            return (self.trace)(&inputs);
        }
        R::from_nodes(self.template(&inputs)?.call(&inputs)?)
    }

    fn template(&self, inputs: &[Node]) -> Result<Arc<Template>> {
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = known.iter().rposition(|template| template.fits(inputs)) {
                known[place..].rotate_left(1);
                return Ok(known[known.len() - 1].clone());
            }
        }
        // Not under the lock: the closure may call this function.
        let template = Arc::new(self.context.template(inputs, |symbols| (self.trace)(symbols).map(R::into_nodes))?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.remove(0);
        }
        known.push(template.clone());
        Ok(template)
    }
}

impl<P, R> fmt::Debug for Function<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Function").field("traced", &known.len()).finish_non_exhaustive()
    }
}

/// What a [`Function`] is made from: closures and functions of up to eight references to arrays.
pub trait Body<P>: Send + Sync + 'static {
    /// What it gives.
    type Results: Results;
    /// Calls it.
    fn trace(&self, inputs: &[Node]) -> Result<Self::Results>;
}

/// What the closure of a [`Function`] gives: [`Results`], or a `Result` of them.
pub trait Outcome {
    /// What a call gives.
    type Results: Results;
    /// As a `Result`.
    fn results(self) -> Result<Self::Results>;
}

impl<R: Results> Outcome for R {
    type Results = R;
    fn results(self) -> Result<R> {
        Ok(self)
    }
}

impl<R: Results> Outcome for Result<R> {
    type Results = R;
    fn results(self) -> Result<R> {
        self
    }
}

/// Arrays that a [`Function`] gives: one, several of any types as a tuple, or several of one type.
pub trait Results: Sized + 'static {
    /// The nodes behind them.
    fn into_nodes(self) -> Vec<Node>;
    /// From as many nodes.
    fn from_nodes(nodes: Vec<Node>) -> Result<Self>;
}

fn miscounted(count: usize) -> Error {
    Error::Plan { what: "a function".into(), reason: format!("{count} results") }
}

impl<T: Element> Results for Array<T> {
    fn into_nodes(self) -> Vec<Node> {
        vec![self.node().clone()]
    }

    fn from_nodes(mut nodes: Vec<Node>) -> Result<Self> {
        let count = nodes.len();
        Array::from_node(nodes.pop().filter(|_| count == 1).ok_or_else(|| miscounted(count))?)
    }
}

impl<T: Element> Results for Vec<Array<T>> {
    fn into_nodes(self) -> Vec<Node> {
        self.iter().map(|array| array.node().clone()).collect()
    }

    fn from_nodes(nodes: Vec<Node>) -> Result<Self> {
        nodes.into_iter().map(Array::from_node).collect()
    }
}

impl<T: Element, const N: usize> Results for [Array<T>; N] {
    fn into_nodes(self) -> Vec<Node> {
        self.iter().map(|array| array.node().clone()).collect()
    }

    fn from_nodes(nodes: Vec<Node>) -> Result<Self> {
        let arrays: Vec<Array<T>> = Results::from_nodes(nodes)?;
        arrays.try_into().map_err(|arrays: Vec<Array<T>>| miscounted(arrays.len()))
    }
}

/// An argument of a [`Function`]: an array or a number.
pub trait Argument<T: Element> {
    /// The node behind it, in a context.
    fn argument(self, context: &Context) -> Node;
}

impl<T: Element> Argument<T> for &Array<T> {
    fn argument(self, _: &Context) -> Node {
        self.node().clone()
    }
}

impl<T: Element> Argument<T> for Array<T> {
    fn argument(self, _: &Context) -> Node {
        self.node().clone()
    }
}

impl<T: Element> Argument<T> for T {
    fn argument(self, context: &Context) -> Node {
        Array::scalar(context, self).node().clone()
    }
}

/// The arguments of a [`Function`] whose parameters have the element types `P`: one, or a tuple.
pub trait Arguments<P> {
    /// The nodes behind them, in a context.
    fn nodes(self, context: &Context) -> Vec<Node>;
}

impl<T: Element, A: Argument<T>> Arguments<(T,)> for A {
    fn nodes(self, context: &Context) -> Vec<Node> {
        vec![self.argument(context)]
    }
}

macro_rules! tuples {
    ($($($T:ident $A:ident $x:ident),*;)*) => {
        $(
            impl<$($T: Element, $A: Argument<$T>),*> Arguments<($($T,)*)> for ($($A,)*) {
                fn nodes(self, context: &Context) -> Vec<Node> {
                    let ($($x,)*) = self;
                    vec![$($x.argument(context)),*]
                }
            }

            impl<$($T: Element),*> Results for ($(Array<$T>,)*) {
                fn into_nodes(self) -> Vec<Node> {
                    let ($($x,)*) = self;
                    vec![$($x.node().clone()),*]
                }

                fn from_nodes(nodes: Vec<Node>) -> Result<Self> {
                    let count = nodes.len();
                    let mut nodes = nodes.into_iter();
                    Ok(($(Array::<$T>::from_node(nodes.next().ok_or_else(|| miscounted(count))?)?,)*))
                }
            }
        )*
    };
}

tuples! {
    T1 A1 x1, T2 A2 x2;
    T1 A1 x1, T2 A2 x2, T3 A3 x3;
    T1 A1 x1, T2 A2 x2, T3 A3 x3, T4 A4 x4;
    T1 A1 x1, T2 A2 x2, T3 A3 x3, T4 A4 x4, T5 A5 x5;
    T1 A1 x1, T2 A2 x2, T3 A3 x3, T4 A4 x4, T5 A5 x5, T6 A6 x6;
    T1 A1 x1, T2 A2 x2, T3 A3 x3, T4 A4 x4, T5 A5 x5, T6 A6 x6, T7 A7 x7;
    T1 A1 x1, T2 A2 x2, T3 A3 x3, T4 A4 x4, T5 A5 x5, T6 A6 x6, T7 A7 x7, T8 A8 x8;
}

macro_rules! bodies {
    ($($($T:ident $x:ident),*;)*) => {
        $(impl<F, O, $($T),*> Body<($($T,)*)> for F
        where
            F: Fn($(&Array<$T>),*) -> O + Send + Sync + 'static,
            O: Outcome,
            $($T: Element,)*
        {
            type Results = O::Results;
            fn trace(&self, inputs: &[Node]) -> Result<O::Results> {
                let [$($x),*] = inputs else { return Err(miscounted(inputs.len())) };
                self($(&Array::from_node($x.clone())?),*).results()
            }
        })*
    };
}

bodies! {
    T1 x1;
    T1 x1, T2 x2;
    T1 x1, T2 x2, T3 x3;
    T1 x1, T2 x2, T3 x3, T4 x4;
    T1 x1, T2 x2, T3 x3, T4 x4, T5 x5;
    T1 x1, T2 x2, T3 x3, T4 x4, T5 x5, T6 x6;
    T1 x1, T2 x2, T3 x3, T4 x4, T5 x5, T6 x6, T7 x7;
    T1 x1, T2 x2, T3 x3, T4 x4, T5 x5, T6 x6, T7 x7, T8 x8;
}
