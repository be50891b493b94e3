//! The array type: creation, evaluation, reading.

use crate::element::{Element, Integer};
use broadloom_graph::{Context, Elementwise, Error, Node, Result, Shape, Summary};
use std::fmt;
use std::marker::PhantomData;

/// Lazy array; cheap to clone. See the [crate](crate).
pub struct Array<T> {
    node: Node,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        Array { node: self.node.clone(), element: PhantomData }
    }
}

/// Unwraps the result of an operation whose types Rust has already checked. The remaining error is an
/// incompatible shape under an operator, which can only panic.
#[track_caller]
pub(crate) fn or_panic<T>(result: Result<Array<T>>) -> Array<T> {
    match result {
        Ok(array) => array,
        Err(error) => panic!("{error}"),
    }
}

impl<T: Element> Array<T> {
    /// Creates an array from values in row-major order.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::new(&context, &[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(a.shape().extents(), [2, 3]);
    /// assert_eq!(a.to_vec()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn new(context: &Context, values: &[T], shape: impl Into<Shape>) -> Result<Array<T>> {
        let shape = shape.into();
        if values.len() != shape.count() {
            return Err(Error::Count { operation: "new".into(), count: values.len(), shape });
        }
        Node::upload(context, T::TYPE, shape, &T::to_bytes(values)).map(Array::from_node_unchecked)
    }

    /// Creates a one-dimensional array from values.
    pub fn line(context: &Context, values: &[T]) -> Result<Array<T>> {
        Array::new(context, values, values.len())
    }

    /// Creates an array with one value at all indices.
    pub fn full(context: &Context, shape: impl Into<Shape>, value: T) -> Result<Array<T>> {
        Node::fill(context, shape.into(), &value.lanes()).map(Array::from_node_unchecked)
    }

    /// Creates a single value: an array without axes, compatible with every shape. Unlike a number inside a
    /// closure, it is not compiled into the kernel.
    pub fn scalar(context: &Context, value: T) -> Array<T> {
        or_panic(Array::full(context, [], value))
    }

    /// Wraps a node as an array, if its elements have this type.
    pub fn from_node(node: Node) -> Result<Array<T>> {
        if node.ty() == T::TYPE {
            return Ok(Array::from_node_unchecked(node));
        }
        Err(Error::Types { operation: "from_node".into(), left: T::TYPE, right: node.ty() })
    }

    pub(crate) fn from_node_unchecked(node: Node) -> Array<T> {
        Array { node, element: PhantomData }
    }

    /// Returns the node of the graph.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the context that the array was made in.
    pub fn context(&self) -> &Context {
        self.node.context()
    }

    /// Returns the shape. If only the device knows the number of elements, as after [`Array::pack`], this
    /// computes the array and waits.
    pub fn shape(&self) -> &Shape {
        self.node.shape()
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.node.bound().rank()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape().count()
    }

    /// Tests if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape().is_empty()
    }

    /// Computes the array if necessary, without waiting for the device. Later uses start from the result.
    /// Inside a [`Function`](crate::Function) it marks the boundary between two plans.
    pub fn evaluate(&self) -> Result<()> {
        self.context().evaluate(std::slice::from_ref(&self.node))
    }

    /// Returns the elements in row-major order. Waits for them.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let buffer = self.node.hosted()?.evaluate()?;
        self.context().confirm()?;
        let count = buffer.len() / T::TYPE.bytes() as usize;
        T::read(count, |bytes| Ok(buffer.read_into(Default::default(), bytes)?))
    }

    /// Returns the only element of an array. Waits for it.
    pub fn item(&self) -> Result<T> {
        let refused = |count: usize| Error::Count { operation: "item".into(), count, shape: Shape::from([]) };
        if self.len() != 1 {
            return Err(refused(self.len()));
        }
        self.to_vec()?.pop().ok_or_else(|| refused(0))
    }

    /// Returns the plan that would compute the array, as text, with the estimated time of each kernel on other
    /// devices than the interpreter. The array is not computed. The first call for a device measures its
    /// bandwidth and the cost of a launch.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let x = Array::line(&context, &[1.0f32, -2.0, 3.0])?;
    /// let y = &x * 2.0 + 1.0;
    /// assert!(y.explain()?.starts_with("1 kernel, 24 bytes moved"));
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn explain(&self) -> Result<String> {
        Ok(self.plan()?.text_on(self.context().device()))
    }

    /// Returns the plan that would compute the array, as data.
    pub fn plan(&self) -> Result<Summary> {
        self.context().explain(std::slice::from_ref(&self.node))
    }

    /// Copies the array to the device of another context, through the host.
    pub fn to_context(&self, context: &Context) -> Result<Array<T>> {
        let buffer = self.node.hosted()?.evaluate()?;
        self.context().confirm()?;
        let bytes = buffer.read()?;
        Node::upload(context, T::TYPE, self.shape().clone(), &bytes).map(Array::from_node_unchecked)
    }

    /// Converts elements to another type with the same number of lanes, like Rust's `as`. The conversion to
    /// `bool` tests for non-zero.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let a = Array::line(&context, &[1.9f32, -2.5, 300.0])?;
    /// assert_eq!(a.cast::<u8>()?.to_vec()?, [1, 0, 255]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn cast<U: Element>(&self) -> Result<Array<U>> {
        if U::TYPE == T::TYPE {
            return Array::from_node(self.node.clone());
        }
        if U::TYPE.lanes() != T::TYPE.lanes() {
            return Err(Error::Types { operation: "cast".into(), left: T::TYPE, right: U::TYPE });
        }
        Array::apply(Elementwise::Convert(U::TYPE.element()), &[&self.node])
    }

    pub(crate) fn apply(op: Elementwise, inputs: &[&Node]) -> Result<Array<T>> {
        Array::from_node(Node::elementwise(op, inputs)?)
    }

    /// Creates an array of one value with the shape of this array.
    #[track_caller]
    pub(crate) fn filled_like<U: Element>(&self, value: U) -> Array<U> {
        or_panic(self.node.fill_like(&value.lanes()).map(Array::from_node_unchecked))
    }

    /// Creates a single value in the context of this array.
    pub(crate) fn scalar_in_context<U: Element>(&self, value: U) -> Array<U> {
        Array::scalar(self.context(), value)
    }
}

impl<T: Integer> Array<T> {
    /// Returns each element's index along an axis.
    ///
    /// ```
    /// # use broadloom_array::{Array};
    /// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let columns = Array::<i32>::positions(&context, [2, 3], 1)?;
    /// assert_eq!(columns.to_vec()?, [0, 1, 2, 0, 1, 2]);
    /// # Ok::<(), broadloom_array::Error>(())
    /// ```
    pub fn positions(context: &Context, shape: impl Into<Shape>, axis: usize) -> Result<Array<T>> {
        Array::from_node(Node::position(context, shape.into(), axis, T::TYPE.element())?)
    }

    /// Returns 0, 1, 2, …
    pub fn iota(context: &Context, count: usize) -> Result<Array<T>> {
        Array::positions(context, count, 0)
    }
}

/// Computes several arrays in one plan, so that they share passes over memory. Does not wait for the device.
///
/// ```
/// # use broadloom_array::{evaluate_all, Array};
/// # let context = broadloom_array::Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
/// let x = Array::line(&context, &[1.0f32, 2.0, 3.0])?;
/// let (double, square) = (&x * 2.0, &x * &x);
/// evaluate_all(&[double.node(), square.node()])?;
/// assert_eq!(square.to_vec()?, [1.0, 4.0, 9.0]);
/// # Ok::<(), broadloom_array::Error>(())
/// ```
pub fn evaluate_all(nodes: &[&Node]) -> Result<()> {
    let Some(first) = nodes.first() else { return Ok(()) };
    for other in nodes {
        if !other.context().is_same(first.context()) {
            return Err(Error::Devices {
                operation: "evaluate_all".into(),
                left: first.context().device().machine().id.clone(),
                right: other.context().device().machine().id.clone(),
            });
        }
    }
    first.context().evaluate(&nodes.iter().map(|node| (*node).clone()).collect::<Vec<Node>>())
}

impl<T: Element> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array<{}>{}", T::TYPE, self.node.bound())
    }
}
