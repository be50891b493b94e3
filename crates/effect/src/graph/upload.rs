//! Copies of images on a device.

use super::Picture;
use crate::Result;
use crate::image::{Image, Plane, Sample, SampleType};
use broadloom_device::Buffer;
use broadloom_graph::{Context, Elementwise, Node, Shape};
use broadloom_scalar::{BinaryOp, Element, Literal, Type};

/// Maximum number of samples per copy of an image whose rows are not contiguous.
const COPIED: usize = 1 << 20;

/// Copies a plane to a part of the device's memory. Contiguous rows are copied in place, without a temporary
/// buffer.
fn copy<T: Sample + broadloom_device::Element>(plane: &Plane, to: &Buffer<T>) -> broadloom_device::Result<()> {
    let (width, height, pitch) = (plane.width() as usize, plane.height() as usize, plane.pitch());
    let (start, Some(samples)) = (plane.start(), T::unwrap(plane.samples())) else { return Ok(()) };
    if pitch == width || height == 1 {
        return to.write(&samples[start..start + width * height]);
    }
    let rows = (COPIED / width.max(1)).clamp(1, height);
    let mut copied: Vec<T> = Vec::with_capacity(rows * width);
    for first in (0..height).step_by(rows) {
        copied.clear();
        for row in first..(first + rows).min(height) {
            copied.extend_from_slice(&samples[start + row * pitch..start + row * pitch + width]);
        }
        if let Some(part) = to.slice(first * width, copied.len()) {
            part.write(&copied)?;
        }
    }
    Ok(())
}

/// Copies the planes of an image to the device, one after the other. Samples are converted to the type `T` if
/// they have another one.
fn copied<T: Sample + broadloom_device::Element>(to: &Buffer<u8>, image: &Image) -> Result<()> {
    let Some(all) = to.view::<T>() else { return Ok(()) };
    let area = image.bounds().area() as usize;
    for (number, plane) in image.planes().iter().enumerate() {
        let Some(part) = all.slice(number * area, area) else { continue };
        let done = match plane.sample_type() == <T as Sample>::TYPE {
            true => copy(plane, &part),
            false => copy(&plane.converted(<T as Sample>::TYPE), &part),
        };
        done.map_err(broadloom_graph::Error::from)?;
    }
    Ok(())
}

/// Returns an array in device memory with uninitialised elements.
pub(crate) fn allocated(context: &Context, ty: Type, shape: Shape) -> Result<Node> {
    let bytes = shape.count() * ty.bytes() as usize;
    let buffer = context.device().allocate::<u8>(bytes).map_err(broadloom_graph::Error::from)?;
    Ok(Node::from_buffer(context, ty, shape, buffer)?)
}

/// Creates an array of `f32` with the axes component, row, column from an image. Copies its samples to the
/// device if `is_copied` is set.
pub(crate) fn uploaded(context: &Context, image: &Image, is_copied: bool) -> Result<Node> {
    // Identifiers that an effect is told to take are numbers.
    let ty = if image.sample_type() == SampleType::U32 { SampleType::F32 } else { image.sample_type() };
    let (components, [height, width]) = (image.planes().len(), [image.height() as usize, image.width() as usize]);
    let element = match ty {
        SampleType::U8 => Type::U8,
        SampleType::U16 => Type::U16,
        SampleType::F16 => Type::F16,
        SampleType::F32 | SampleType::U32 => Type::F32,
    };
    let node = allocated(context, element, Shape::from([components, height, width]))?;
    if let Some(buffer) = node.buffer().filter(|_| is_copied) {
        match ty {
            SampleType::U8 => copied::<u8>(&buffer, image)?,
            SampleType::U16 => copied::<u16>(&buffer, image)?,
            SampleType::F16 => copied::<half::f16>(&buffer, image)?,
            SampleType::F32 | SampleType::U32 => copied::<f32>(&buffer, image)?,
        }
    }
    let scale = |node: Node, most: f32| -> broadloom_graph::Result<Node> {
        let real = Node::elementwise(Elementwise::Convert(Element::F32), &[&node])?;
        let most = Node::fill(context, Shape::from([]), &[Literal::from(most)])?;
        Node::elementwise(Elementwise::Binary(BinaryOp::Div), &[&real, &most])
    };
    match ty {
        SampleType::F32 | SampleType::U32 => Ok(node),
        SampleType::F16 => Ok(Node::elementwise(Elementwise::Convert(Element::F32), &[&node])?),
        SampleType::U8 => Ok(scale(node, 255.0)?),
        SampleType::U16 => Ok(scale(node, 65535.0)?),
    }
}

impl Picture {
    /// Copies an image to the device. Integers keep their type there. Kernels scale them to 0 … 1.
    pub fn new(context: &Context, image: &Image) -> Result<Picture> {
        Picture::from_node(uploaded(context, image, true)?, image.bounds().x, image.bounds().y)
    }
}
