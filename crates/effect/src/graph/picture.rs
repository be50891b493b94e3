//! Pictures: images that are there, or that will be computed.

use super::{Application, Whole};
use crate::image::{Image, Plane, Rect, SampleType, Samples};
use crate::plan::{Options, Plan};
use crate::{Error, Result};
use broadloom_graph::{Context, Elementwise, Node, Shape};
use broadloom_scalar::{BinaryOp, Element, Literal, Type};
use std::fmt;
use std::sync::Arc;

/// An image that is there, or that will be computed; cheap to clone.
#[derive(Clone)]
pub struct Picture(Arc<Data>);

struct Data {
    context: Context,
    bounds: Rect,
    components: usize,
    origin: Origin,
}

/// The origin of a picture.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// An array of `f32` with the axes component, row, column.
    Array(Node),
    /// An image of the host. The part that is needed is copied when it is needed.
    Host(Image),
    /// An output of a call.
    Applied(Arc<Application>, usize),
    /// An operation on whole images.
    Whole(Arc<Whole>),
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture of {} components, {}", self.components(), self.bounds())
    }
}

/// Appends the rows of a plane as bytes.
fn append(bytes: &mut Vec<u8>, plane: &Plane) {
    let (width, pitch) = (plane.width() as usize, plane.pitch());
    let rows = |row: u32| {
        let from = plane.start() + row as usize * pitch;
        from..from + width
    };
    for row in 0..plane.height() {
        match plane.samples() {
            Samples::U8(samples) => bytes.extend_from_slice(&samples[rows(row)]),
            Samples::U16(samples) => bytes.extend(samples[rows(row)].iter().flat_map(|sample| sample.to_le_bytes())),
            Samples::F16(samples) => bytes.extend(samples[rows(row)].iter().flat_map(|sample| sample.to_le_bytes())),
            Samples::F32(samples) => bytes.extend(samples[rows(row)].iter().flat_map(|sample| sample.to_le_bytes())),
        }
    }
}

/// Copies an image to the device: an array of `f32` with the axes component, row, column.
pub(crate) fn uploaded(context: &Context, image: &Image) -> Result<Node> {
    let ty = image.sample_type();
    let (components, [height, width]) = (image.planes().len(), [image.height() as usize, image.width() as usize]);
    let size = components.saturating_mul(height).saturating_mul(width).saturating_mul(ty.bytes());
    let mut bytes: Vec<u8> = vec![];
    bytes.try_reserve_exact(size).map_err(|_| crate::ImageError::Memory(size as u64))?;
    image.planes().iter().for_each(|plane| match plane.sample_type() == ty {
        true => append(&mut bytes, plane),
        false => append(&mut bytes, &plane.converted(ty)),
    });
    let shape = Shape::from([components, height, width]);
    let scale = |node: Node, most: f32| -> broadloom_graph::Result<Node> {
        let real = Node::elementwise(Elementwise::Convert(Element::F32), &[&node])?;
        let most = Node::fill(context, Shape::from([]), &[Literal::from(most)])?;
        Node::elementwise(Elementwise::Binary(BinaryOp::Div), &[&real, &most])
    };
    match ty {
        SampleType::F32 => Ok(Node::upload(context, Type::F32, shape, &bytes)?),
        SampleType::F16 => {
            let node = Node::upload(context, Type::F16, shape, &bytes)?;
            Ok(Node::elementwise(Elementwise::Convert(Element::F32), &[&node])?)
        }
        SampleType::U8 => Ok(scale(Node::upload(context, Type::U8, shape, &bytes)?, 255.0)?),
        SampleType::U16 => Ok(scale(Node::upload(context, Type::U16, shape, &bytes)?, 65535.0)?),
    }
}

impl Picture {
    /// Copies an image to the device. Integers stay what they are there; kernels scale them to 0 … 1.
    pub fn new(context: &Context, image: &Image) -> Result<Picture> {
        Picture::from_node(uploaded(context, image)?, image.bounds().x, image.bounds().y)
    }

    /// Makes a picture of an image of the host. Each plan copies the part that it needs to the device, so that images larger
    /// than its memory can be computed in tiles.
    pub fn from_image(context: &Context, image: &Image) -> Picture {
        let (bounds, components) = (image.bounds(), image.planes().len());
        Picture(Arc::new(Data { context: context.clone(), bounds, components, origin: Origin::Host(image.clone()) }))
    }

    /// Makes a picture of an array of `f32` with the axes component, row, column. Its upper left pixel is at (x, y).
    pub fn from_node(node: Node, x: i32, y: i32) -> Result<Picture> {
        let bad = |reason: &str| Error::Call { name: "picture".into(), reason: reason.to_owned() };
        let extents = node.shape().extents().to_vec();
        let &[components, height, width] = &extents[..] else {
            return Err(bad("an array with the axes component, row, column is wanted"));
        };
        if node.ty() != Type::F32 || components == 0 {
            return Err(bad("an array of `f32` with a component is wanted"));
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

    pub(super) fn of_whole(context: &Context, bounds: Rect, components: usize, whole: Whole) -> Picture {
        let origin = Origin::Whole(Arc::new(whole));
        Picture(Arc::new(Data { context: context.clone(), bounds, components, origin }))
    }

    /// Takes the inputs of the call out of a picture that nobody else has.
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

    /// Returns the context of the device.
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

    /// Computes all pixels, with the default options. Planes are named by their numbers.
    pub fn image(&self) -> Result<Image> {
        self.region(self.bounds(), &Options::default())
    }

    /// Computes a region.
    pub fn region(&self, region: Rect, options: &Options) -> Result<Image> {
        let mut images = Plan::new(&[(self.clone(), region)], options)?.run()?;
        images.pop().ok_or_else(|| Error::Call { name: "picture".into(), reason: "there is no result".into() })
    }
}
