//! Functors: small computations on images that declare how they read.
//!
//! A [`Functor`] is a Rust type with *indexers* for its inputs and a kernel. The kernel is Rust code over
//! symbolic values. It is called once, when the functor is built, and becomes the code that runs for every
//! pixel. A [`Moving`] average carries a state along an axis. [`Functor::build`] checks the declarations
//! against the kernel and returns a [`Primitive`]. Calling a primitive with [pictures](crate::graph::Picture)
//! builds an effect.
//!
//! The optimiser knows the indexers and whether there is a state. It never looks into a kernel.

mod boundary;
mod error;
mod indexer;
mod kernel;
mod primitive;
pub(crate) mod trace;
mod traced;

pub use boundary::Boundary;
pub use error::{Error, Result};
pub use indexer::{AllowedOffsets, Axis, Indexer, MAX_COMPONENTS, MAX_FRAMES, MAX_RADIUS, MAX_SPARSE, Output, Reach};
pub(crate) use kernel::reported;
pub use kernel::{Input, Kernel, Local, LocalArray};
pub use primitive::Primitive;
pub(crate) use primitive::{Motion, PixelDependence, Placement, Span};
pub use traced::{Floating, Kind, Number, Precise, Real, Term, Traced, Truth, Whole};

/// A functor whose pixels are independent of each other.
pub trait Functor {
    /// Returns the name that plans and errors show.
    fn name(&self) -> String;

    /// Returns the declarations of the inputs.
    fn inputs(&self) -> Vec<Indexer>;

    /// Returns the declarations of the outputs.
    fn outputs(&self) -> Vec<Output> {
        vec![Output::Component]
    }

    /// Returns the values of the parameters. They are small read-only numbers that change without a new
    /// compilation.
    fn parameters(&self) -> Vec<f32> {
        vec![]
    }

    /// Computes a pixel: one value for each output, and for each component of an output of whole pixels.
    fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>>;

    /// Checks the declarations and traces the kernel.
    fn build(&self) -> Result<Primitive>
    where
        Self: Sized,
    {
        Primitive::parallel(self)
    }
}

/// A functor that carries a state along an axis, such as a moving average. The state need not be a mean.
///
/// The state before a position must follow from the window around it, because lines can be split anywhere.
/// [`Moving::start`] computes the state at such a position.
pub trait Moving {
    /// Returns the name that plans and errors show.
    fn name(&self) -> String;

    /// Returns the axis along which the state is carried.
    fn axis(&self) -> Axis;

    /// Returns whether lines are swept from end to start.
    fn backwards(&self) -> bool {
        false
    }

    /// Returns the declarations of the inputs: points, or lines along the axis.
    fn inputs(&self) -> Vec<Indexer>;

    /// Returns the number of outputs. Each output has one component at a time.
    fn outputs(&self) -> usize {
        1
    }

    /// Returns the values of the parameters.
    fn parameters(&self) -> Vec<f32> {
        vec![]
    }

    /// Computes the state before the step at the current pixel.
    fn start<'k>(&self, k: Kernel<'k>) -> Vec<Precise<'k>>;

    /// Computes the next state and the outputs of the current pixel.
    fn step<'k>(&self, k: Kernel<'k>, state: &[Precise<'k>]) -> (Vec<Precise<'k>>, Vec<Real<'k>>);

    /// Checks the declarations and traces the kernel.
    fn build(&self) -> Result<Primitive>
    where
        Self: Sized,
    {
        Primitive::moving(self)
    }
}
