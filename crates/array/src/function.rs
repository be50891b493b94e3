//! Array functions: traced once, called many times.
//!
//! Building an expression costs time for every operation, each time. A [`Function`] is built once. A call
//! only binds arrays and scalars and launches kernels, so its cost does not depend on the number of
//! operations. JAX calls this `jit`. Arguments of other shapes need a new trace only if the closure would
//! behave differently for them.

use crate::array::Array;
use crate::element::Element;
use broadloom_graph::{Context, Error, Node, Result, Template};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of traces that a function keeps.
const MOST: usize = 16;

/// Closure called with nodes.
type NodeClosure<R> = dyn Fn(&[Node]) -> Result<R> + Send + Sync;

/// Array function that is traced once for arguments of the same ranks.
///
/// It is created from a closure (or a plain function) that takes references to arrays. The closure returns an
/// array, a tuple, a `Vec` or an array of arrays, or a `Result` of these. It is called with arrays without
/// elements when new arguments may change its behaviour. Its operations are planned and compiled, and run in
/// every call. Therefore:
///
/// - The closure describes a computation: its side effects happen only during tracing.
/// - Captured arrays are constants, kept by the function. A captured array that was not evaluated is computed
///   in every call.
/// - Numbers in the closure are constants too. A value that differs from call to call is an argument: a plain
///   number given to [`Function::call`] is an array without axes inside the closure.
/// - Elements cannot be read inside: [`Array::to_vec`] and [`Array::item`] return an error.
///   [`Array::evaluate`] ends a kernel.
/// - A function that is called inside another becomes part of it.
/// - Reading extents as numbers, for example with [`Shape::extents`](crate::Shape::extents), ties the trace
///   to these numbers: arguments with other extents are traced again. [`Amount`](crate::Amount)s do not.
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
/// Incompatible shapes are reported by the operation concerned, when the closure is traced for them:
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
    trace: Box<NodeClosure<R>>,
    /// Traces, most recently used last.
    known: Mutex<Vec<Arc<Template>>>,
    parameters: PhantomData<fn(P) -> R>,
}

impl<P, R: Results> Function<P, R> {
    /// Creates a function on the device of a context. Nothing is traced before the first call.
    pub fn new<F: FunctionBody<P, Results = R>>(context: &Context, body: F) -> Function<P, R> {
        let trace = Box::new(move |inputs: &[Node]| body.trace(inputs));
        Function { context: context.clone(), trace, known: Mutex::default(), parameters: PhantomData }
    }

    /// Calls the function with one argument or a tuple of arguments, each an array or a number. Evaluates
    /// arguments that were not evaluated. Does not wait for the device.
    pub fn call(&self, arguments: impl Arguments<P>) -> Result<R> {
        let inputs = arguments.nodes(&self.context);
        if inputs.iter().any(Node::is_symbolic) {
            // A call inside another function.
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
        // The lock is not held here, because the closure may call this function.
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

/// Body of a [`Function`]: closures and functions of up to eight references to arrays.
pub trait FunctionBody<P>: Send + Sync + 'static {
    /// Results of the body.
    type Results: Results;
    /// Calls the body.
    fn trace(&self, inputs: &[Node]) -> Result<Self::Results>;
}

/// Return type of a [`Function`]'s closure: [`Results`], or a `Result` of them.
pub trait ClosureResult {
    /// Results of a call.
    type Results: Results;
    /// Converts to a `Result`.
    fn results(self) -> Result<Self::Results>;
}

impl<R: Results> ClosureResult for R {
    type Results = R;
    fn results(self) -> Result<R> {
        Ok(self)
    }
}

impl<R: Results> ClosureResult for Result<R> {
    type Results = R;
    fn results(self) -> Result<R> {
        self
    }
}

/// Arrays that a [`Function`] returns: one, a tuple of any types, or several of one type.
pub trait Results: Sized + 'static {
    /// Returns the node of each result, in order.
    fn into_nodes(self) -> Vec<Node>;
    /// Creates the arrays from the same number of nodes.
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

/// Argument of a [`Function`]: an array or a number.
pub trait Argument<T: Element> {
    /// Returns its node in a context.
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

/// Arguments of a [`Function`] with parameters of the element types `P`: one, or a tuple.
pub trait Arguments<P> {
    /// Returns their nodes in a context.
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
        $(impl<F, O, $($T),*> FunctionBody<($($T,)*)> for F
        where
            F: Fn($(&Array<$T>),*) -> O + Send + Sync + 'static,
            O: ClosureResult,
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
