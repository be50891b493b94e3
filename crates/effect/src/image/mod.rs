//! Images: named planes over a rectangle.
//!
//! The rectangle of an [`Image`] is its *region of definition*: the pixels that exist. Its origin may be
//! negative. All planes cover it. Each plane has its own memory, sample type and pitch. Memory is shared: a
//! copy, a view of a region and a selection of planes cost a few words.
//!
//! Integer samples of 8 and 16 bits represent values scaled to 0 … 1. Floating-point samples and integers of 32 bits
//! represent themselves.
//!
//! [`Metadata`] is what a file says beside the pixels: colours, orientation, resolution, alpha and more.
//!
//! Invariants:
//!
//! - An image has at least one pixel and one plane.
//! - Its coordinates fit into `i32`.
//! - Names of planes differ.
//! - Every row of every plane lies inside the plane's memory.

mod alpha;
mod color;
mod error;
mod host;
mod limits;
mod metadata;
mod noise;
mod orientation;
mod placeholder;
mod plane;
mod profile;
mod rect;
mod space;
mod tables;

pub use alpha::Alpha;
pub use color::{ColorSpace, linear_to_srgb, srgb_to_linear};
pub use error::ImageError;
pub use metadata::{ColorDescription, Length, Metadata, Profile, Resolution};
pub use noise::NoiseEstimate;
pub use orientation::Orientation;
pub use plane::{Plane, Sample, SampleType, Samples};
pub use rect::Rect;
pub use space::{SpaceError, TargetSpace, UnknownColors};

pub(crate) use limits::reserved;
pub(crate) use metadata::{Attributes, Chunk, Field, FieldValue, Page, Part, PartChannel, Segment};
pub(crate) use plane::with_samples;
pub(crate) use profile::is_srgb_gamma;
pub(crate) use space::srgb_of_inks;

use std::collections::HashSet;
use std::sync::Arc;

/// Named planes over a rectangle.
#[derive(Clone, Debug)]
pub struct Image {
    bounds: Rect,
    planes: Arc<Vec<Plane>>,
    color: ColorSpace,
    /// Displayed rectangle, if it differs from the region of definition.
    display: Option<Rect>,
    metadata: Arc<Metadata>,
}

impl Image {
    /// Maximum number of planes.
    pub const MAX_PLANES: usize = 1024;

    /// Creates an image from planes that cover `bounds`. Its colour space is linear; [`Image::with_color`]
    /// changes that.
    pub fn new(bounds: Rect, planes: Vec<Plane>) -> Result<Image, ImageError> {
        bounds.checked()?;
        if planes.is_empty() || planes.len() > Image::MAX_PLANES {
            return Err(ImageError::Planes(planes.len()));
        }
        let mut names = HashSet::new();
        for plane in &planes {
            if (plane.width(), plane.height()) != (bounds.width, bounds.height) {
                let name = plane.name().to_owned();
                return Err(ImageError::PlaneSize { name, width: plane.width(), height: plane.height(), bounds });
            }
            if !names.insert(plane.name()) {
                return Err(ImageError::TwoPlanes(plane.name().to_owned()));
            }
        }
        drop(names);
        let planes = Arc::new(planes);
        Ok(Image { bounds, planes, color: ColorSpace::default(), display: None, metadata: Arc::default() })
    }

    /// Creates an image at the origin from planes of `f32`, row by row.
    pub fn from_f32<'a>(
        width: u32,
        height: u32,
        planes: impl IntoIterator<Item = (&'a str, Vec<f32>)>,
    ) -> Result<Image, ImageError> {
        let planes = planes.into_iter().map(|(name, samples)| Plane::new(name, width, height, samples));
        Image::new(Rect::sized(width, height), planes.collect::<Result<_, _>>()?)
    }

    /// Creates an image of one value. Fails if there is too little memory.
    pub fn filled<T: Sample>(bounds: Rect, names: &[&str], value: T) -> Result<Image, ImageError> {
        bounds.checked()?;
        let area = bounds.area();
        let plane = |name: &&str| {
            let mut samples = reserved::<T>(area)?;
            samples.resize(area as usize, value);
            Plane::new(name, bounds.width, bounds.height, samples)
        };
        Image::new(bounds, names.iter().map(plane).collect::<Result<_, _>>()?)
    }

    /// Returns the region of definition.
    pub fn bounds(&self) -> Rect {
        self.bounds
    }

    /// Returns the number of columns.
    pub fn width(&self) -> u32 {
        self.bounds.width
    }

    /// Returns the number of rows.
    pub fn height(&self) -> u32 {
        self.bounds.height
    }

    /// Returns the planes, in their order.
    pub fn planes(&self) -> &[Plane] {
        &self.planes
    }

    /// Returns the plane with the given name.
    pub fn plane(&self, name: &str) -> Option<&Plane> {
        self.planes.iter().find(|plane| plane.name() == name)
    }

    /// Returns the names of the planes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.planes.iter().map(Plane::name)
    }

    /// Returns the smallest sample type that represents all planes exactly.
    pub fn sample_type(&self) -> SampleType {
        let types = self.planes.iter().map(Plane::sample_type);
        types.reduce(SampleType::join).unwrap_or(SampleType::F32)
    }

    /// Returns the size of all samples in bytes, without padding.
    pub fn bytes(&self) -> u64 {
        self.planes.iter().map(|plane| self.bounds.area() * plane.sample_type().bytes() as u64).sum()
    }

    /// Returns the encoding of light in the samples.
    pub fn color(&self) -> ColorSpace {
        self.color
    }

    /// Returns the image with another colour space. Samples are not converted. Files describe the image so: the
    /// description of its colours is replaced, except for chromaticities.
    pub fn with_color(mut self, color: ColorSpace) -> Image {
        self.color = color;
        let chromaticities = self.metadata.color.chromaticities;
        self.metadata_mut().color = match color {
            ColorSpace::Linear => ColorDescription { gamma: Some(100_000), chromaticities, ..ColorDescription::default() },
            ColorSpace::Srgb => ColorDescription { srgb: Some(0), ..ColorDescription::default() },
        };
        self
    }

    /// Returns the image with samples that are described as light to the power of 1/`gamma`. Samples are not converted.
    pub(crate) fn with_gamma(mut self, gamma: f64) -> Image {
        self.color = ColorSpace::of_gamma(gamma);
        self.metadata_mut().color = ColorDescription::of_gamma(gamma);
        self
    }

    /// Returns the image with a colour space that its file implies or describes. The description is not changed.
    pub(crate) fn with_implied_color(mut self, color: ColorSpace) -> Image {
        self.color = color;
        self
    }

    /// Returns what the file says beside the pixels.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the metadata for changes.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        Arc::make_mut(&mut self.metadata)
    }

    /// Returns the metadata without a copy.
    pub(crate) fn shared_metadata(&self) -> &Arc<Metadata> {
        &self.metadata
    }

    /// Returns the image with other metadata.
    pub fn with_metadata(mut self, metadata: impl Into<Arc<Metadata>>) -> Image {
        self.metadata = metadata.into();
        self
    }

    /// Returns how the stored rows and columns are to be turned for display.
    pub fn orientation(&self) -> Orientation {
        self.metadata.orientation.unwrap_or_default()
    }

    /// Returns the image with another orientation. Pixels are not moved.
    pub fn with_orientation(mut self, orientation: Option<Orientation>) -> Image {
        self.metadata_mut().orientation = orientation;
        self
    }

    /// Returns the relation of colours to alpha.
    pub fn alpha(&self) -> Alpha {
        self.metadata.alpha
    }

    /// Returns the image with another relation of colours to alpha. Samples are not converted.
    pub fn with_alpha(mut self, alpha: Alpha) -> Image {
        if self.metadata.alpha != alpha {
            self.metadata_mut().alpha = alpha;
        }
        self
    }

    /// Returns the displayed rectangle: the region of definition, unless a file names another one. Pixels may
    /// lie outside it, and it may contain positions without a pixel.
    pub fn display(&self) -> Rect {
        self.display.unwrap_or(self.bounds)
    }

    /// Returns the image with another displayed rectangle. Samples are not changed.
    pub fn with_display(mut self, display: Rect) -> Result<Image, ImageError> {
        self.display = Some(display.checked()?);
        Ok(self)
    }

    /// Moves the image to another origin. Its region of definition becomes the displayed rectangle.
    pub fn with_origin(mut self, x: i32, y: i32) -> Result<Image, ImageError> {
        self.display = None;
        self.bounds = Rect { x, y, ..self.bounds }.checked()?;
        Ok(self)
    }

    /// Returns a region of the image. The samples are shared.
    pub fn view(&self, region: Rect) -> Result<Image, ImageError> {
        region.checked()?;
        if !self.bounds.contains(region) {
            return Err(ImageError::Region { region, bounds: self.bounds });
        }
        let x = (i64::from(region.x) - i64::from(self.bounds.x)) as usize;
        let y = (i64::from(region.y) - i64::from(self.bounds.y)) as usize;
        let (width, height) = (region.width as usize, region.height as usize);
        let planes = self.planes.iter().map(|plane| plane.part(x, y, width, height)).collect();
        Ok(Image { bounds: region, planes: Arc::new(planes), ..self.clone() })
    }

    /// Returns an image of the planes with these names, in this order. The samples are shared.
    pub fn select(&self, names: &[&str]) -> Result<Image, ImageError> {
        let find = |name: &&str| {
            let there = || self.names().map(str::to_owned).collect();
            self.plane(name).cloned().ok_or_else(|| ImageError::NoPlane { name: (*name).to_owned(), there: there() })
        };
        self.with_planes(names.iter().map(find).collect::<Result<Vec<_>, _>>()?)
    }

    /// Returns the image with other planes over the same rectangle.
    pub fn with_planes(&self, planes: Vec<Plane>) -> Result<Image, ImageError> {
        Ok(Image { display: self.display, ..self.replaced(self.bounds, planes)? })
    }

    /// Returns an image of other pixels with the colour space and the metadata of this one.
    pub(crate) fn replaced(&self, bounds: Rect, planes: Vec<Plane>) -> Result<Image, ImageError> {
        Ok(Image { color: self.color, metadata: self.metadata.clone(), ..Image::new(bounds, planes)? })
    }

    /// Returns the image with samples of another type. Integers saturate. Planes that already have the type
    /// are shared.
    pub fn converted(&self, target: SampleType) -> Image {
        let planes = self.planes.iter().map(|plane| plane.converted(target)).collect();
        Image { planes: Arc::new(planes), ..self.clone() }
    }

    /// Returns the image in linear light, as `f32`. Planes of alpha (`A`), depth (`Z`) and integers of 32 bits keep
    /// their values. Associated colours are divided by alpha before, and multiplied behind.
    pub fn to_linear(&self) -> Image {
        match self.color {
            ColorSpace::Linear => self.clone(),
            ColorSpace::Srgb => self.mapped(srgb_to_linear).with_color(ColorSpace::Linear),
        }
    }

    /// Returns the image encoded in sRGB, as `f32`. Planes of alpha (`A`), depth (`Z`) and integers of 32 bits keep
    /// their values. Associated colours are divided by alpha before, and multiplied behind.
    pub fn to_srgb(&self) -> Image {
        match self.color {
            ColorSpace::Srgb => self.clone(),
            ColorSpace::Linear => self.mapped(linear_to_srgb).with_color(ColorSpace::Srgb),
        }
    }

    /// Applies a function to the values of colour planes.
    fn mapped(&self, function: fn(f32) -> f32) -> Image {
        let planes = self.planes.iter().map(|plane| {
            if plane.sample_type() == SampleType::U32 {
                return plane.clone();
            }
            if matches!(plane.channel(), "A" | "Z") {
                return plane.converted(SampleType::F32);
            }
            let alpha = self.alpha_of(plane).filter(|_| self.alpha() == Alpha::Associated).map(Plane::to_f32);
            let mut samples = plane.to_f32();
            for (index, value) in samples.iter_mut().enumerate() {
                let factor = alpha.as_ref().map_or(1.0, |alpha| if alpha[index] == 0.0 { 1.0 } else { alpha[index] });
                *value = function(*value / factor) * factor;
            }
            let (width, pitch) = (plane.width(), plane.width() as usize);
            Plane::from_samples(plane.name(), width, plane.height(), pitch, Samples::new(samples)).unwrap_or(plane.clone())
        });
        Image { planes: Arc::new(planes.collect()), ..self.clone() }
    }
}
