//! Pictures: images in memory, and images that will be computed.

use crate::functor::{Boundary, Primitive, Reach};
use crate::image::{Image, Rect};
use crate::{Error, Result};
use broadloom_graph::{Context, Node};
use broadloom_scalar::Type;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// An image in memory, or one that will be computed; cheap to clone.
#[derive(Clone)]
pub struct Picture(Arc<Data>);

struct Data {
    context: Context,
    bounds: Rect,
    components: usize,
    origin: Origin,
}

/// Origin of a picture.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// An array of `f32` with the axes component, row, column.
    Array(Node),
    /// An image of the host. The part that a plan needs is copied when it is needed.
    Host(Image),
    /// An output of a call.
    Applied(Arc<Application>, usize),
    /// An operation on whole images.
    Whole(Arc<WholeCall>),
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture of {} components, {}", self.components(), self.bounds())
    }
}

/// A call of a functor.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) primitive: Primitive,
    pub(crate) inputs: Vec<Picture>,
}

impl Drop for Application {
    /// Drops pictures iteratively: a long chain must not need a deep stack.
    fn drop(&mut self) {
        drop_pictures(std::mem::take(&mut self.inputs));
    }
}

/// Drops pictures and their inputs iteratively.
fn drop_pictures(mut doomed: Vec<Picture>) {
    while let Some(picture) = doomed.pop() {
        doomed.append(&mut picture.into_inputs());
    }
}

/// Position of the computed region in the input arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Row and column of the region's first pixel in the arrays.
    pub(crate) origin: [i64; 2],
    /// Rows and columns of the region.
    pub(crate) size: [usize; 2],
}

/// Computes an array from arrays with the axes component, row, column.
type ArrayMaker = dyn Fn(&[Node], &Frame) -> Result<Node> + Send + Sync;

/// Window of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) reach: Reach,
    pub(crate) boundary: Boundary,
}

/// Estimate of the bytes of temporary arrays, from the number of components and the rows and columns.
type Scratch = dyn Fn(usize, [usize; 2]) -> u64 + Send + Sync;

/// Computes a picture from the rows of another, which come from the first to the last.
pub(crate) trait TakeRows: Send + fmt::Debug {
    /// Takes the next rows: an array with the axes component, row, column. `first` is the number of its first row. If the
    /// array does not have all rows, what they give is computed before the call returns.
    fn take(&mut self, rows: &Node, first: u32) -> Result<()>;

    /// Returns the picture. All rows were taken.
    fn finish(self: Box<Self>) -> Result<Picture>;
}

/// Begins to take rows.
pub(crate) type RowTaker = dyn Fn() -> Result<Box<dyn TakeRows>> + Send + Sync;

/// An operation on whole images that takes the rows of its only input band by band.
pub(crate) struct InRows {
    pub(crate) begin: Arc<RowTaker>,
    /// Minimum number of rows of a band.
    pub(crate) least: u32,
    /// True if the host needs the samples of the input.
    pub(crate) on_host: bool,
    /// Region of definition of the result.
    pub(crate) bounds: Rect,
    /// Number of components of the result.
    pub(crate) components: usize,
    /// The result, after it was computed.
    result: Mutex<Option<Picture>>,
}

impl InRows {
    /// Describes a result with these bounds and components.
    pub(crate) fn new(bounds: Rect, components: usize, begin: Arc<RowTaker>) -> InRows {
        InRows { begin, least: 1, on_host: false, bounds, components, result: Mutex::default() }
    }

    /// Sets the minimum number of rows of a band.
    pub(crate) fn at_least(self, least: u32) -> InRows {
        InRows { least, ..self }
    }

    /// Says that the host needs the samples of the input.
    pub(crate) fn on_host(self) -> InRows {
        InRows { on_host: true, ..self }
    }
}

/// A call of an operation on whole images.
pub(crate) struct WholeCall {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Picture>,
    pub(crate) make: Box<ArrayMaker>,
    /// Window around each pixel of the result; `None` if all pixels are needed.
    pub(crate) window: Option<Window>,
    /// Memory needed besides the inputs and the result.
    pub(crate) scratch: Box<Scratch>,
    /// How the rows of the input can be taken band by band.
    pub(crate) rows: Option<InRows>,
}

impl WholeCall {
    /// Returns the result if it is known already.
    pub(crate) fn known(&self) -> Option<Picture> {
        let rows = self.rows.as_ref()?;
        rows.result.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the result. Plans that are made later do not compute it.
    pub(crate) fn know(&self, result: Picture) {
        if let Some(rows) = &self.rows {
            *rows.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    }
}

impl fmt::Debug for WholeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of whole images", self.name)
    }
}

impl Drop for WholeCall {
    fn drop(&mut self) {
        drop_pictures(std::mem::take(&mut self.inputs));
    }
}

impl Picture {
    /// Creates a picture from an image of the host. Each plan copies the part that it needs to the device.
    /// Images larger than device memory can therefore be computed in tiles.
    pub fn from_image(context: &Context, image: &Image) -> Picture {
        let (bounds, components) = (image.bounds(), image.planes().len());
        Picture(Arc::new(Data { context: context.clone(), bounds, components, origin: Origin::Host(image.clone()) }))
    }

    /// Creates a picture from an array of `f32` with the axes component, row, column. Its upper left pixel is
    /// at (x, y).
    pub fn from_node(node: Node, x: i32, y: i32) -> Result<Picture> {
        let bad = |reason: &str| Error::Call { name: "picture".into(), reason: reason.to_owned() };
        let extents = node.shape().extents().to_vec();
        let &[components, height, width] = &extents[..] else {
            return Err(bad("expected an array with the axes component, row, column"));
        };
        if node.ty() != Type::F32 || components == 0 {
            return Err(bad("expected an array of `f32` with a component"));
        }
        let extent = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        let bounds = Rect::new(x, y, extent(width), extent(height)).checked()?;
        let context = node.context().clone();
        Ok(Picture(Arc::new(Data { context, bounds, components, origin: Origin::Array(node) })))
    }

    pub(super) fn applied(
        context: &Context,
        bounds: Rect,
        components: usize,
        application: Arc<Application>,
        output: usize,
    ) -> Picture {
        let origin = Origin::Applied(application, output);
        Picture(Arc::new(Data { context: context.clone(), bounds, components, origin }))
    }

    pub(super) fn of_whole(context: &Context, bounds: Rect, components: usize, whole: WholeCall) -> Picture {
        let origin = Origin::Whole(Arc::new(whole));
        Picture(Arc::new(Data { context: context.clone(), bounds, components, origin }))
    }

    /// Takes the inputs of the call out of a picture that is not shared.
    pub(super) fn into_inputs(self) -> Vec<Picture> {
        match Arc::into_inner(self.0).map(|data| data.origin) {
            Some(Origin::Applied(application, _)) => {
                Arc::into_inner(application).map_or_else(Vec::new, |mut call| std::mem::take(&mut call.inputs))
            }
            Some(Origin::Whole(whole)) => {
                Arc::into_inner(whole).map_or_else(Vec::new, |mut whole| std::mem::take(&mut whole.inputs))
            }
            Some(Origin::Array(_) | Origin::Host(_)) | None => vec![],
        }
    }

    /// Returns the context of the picture's device.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Returns the region of definition.
    pub fn bounds(&self) -> Rect {
        self.0.bounds
    }

    /// Returns the number of components.
    pub fn components(&self) -> usize {
        self.0.components
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Returns a number that no other living picture has.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}
