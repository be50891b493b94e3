//! Images whose planes are in memory or will be computed.
//!
//! Effects of the catalogue take some planes of an image and keep the others. [`Layers`] keeps each plane
//! where it is: on the host, or as a component of a [`Picture`]. A chain of effects is therefore one graph,
//! and planes that no effect takes are never copied.

use crate::functor::{Indexer, Output, Primitive};
use crate::image::{Alpha, ColorDescription, ColorSpace, Image, ImageError, Metadata, Plane, Rect, SampleType};
use crate::plan::{Options, Plan};
use crate::{Picture, Result};
use broadloom_graph::Context;
use std::sync::Arc;

/// An image whose planes are in memory or will be computed; cheap to clone.
#[derive(Clone, Debug)]
pub struct Layers {
    bounds: Rect,
    planes: Vec<Layer>,
    color: ColorSpace,
    metadata: Arc<Metadata>,
}

/// A plane with its name.
#[derive(Clone, Debug)]
struct Layer {
    name: String,
    content: PlaneContent,
}

/// Samples of a plane.
#[derive(Clone, Debug)]
enum PlaneContent {
    /// Samples of the host.
    Host(Plane),
    /// A component of a picture.
    Device(Picture, usize),
}

impl From<&Image> for Layers {
    fn from(image: &Image) -> Layers {
        let layer = |plane: &Plane| Layer { name: plane.name().to_owned(), content: PlaneContent::Host(plane.clone()) };
        let planes = image.planes().iter().map(layer).collect();
        Layers { bounds: image.bounds(), planes, color: image.color(), metadata: image.shared_metadata().clone() }
    }
}

impl Layers {
    /// Creates an image without metadata from the components of a picture.
    pub fn new<S: AsRef<str>>(picture: &Picture, names: &[S], color: ColorSpace) -> Layers {
        let layer = |(component, name): (usize, &S)| Layer {
            name: name.as_ref().to_owned(),
            content: PlaneContent::Device(picture.clone(), component),
        };
        let planes = names.iter().take(picture.components()).enumerate().map(layer).collect();
        Layers { bounds: picture.bounds(), planes, color, metadata: Arc::default() }
    }

    /// Returns an image of the components of a picture, with the colour space and the metadata of this one.
    pub(crate) fn with_picture(&self, picture: &Picture, names: &[&str]) -> Layers {
        Layers { metadata: self.metadata.clone(), ..Layers::new(picture, names, self.color) }
    }

    /// Returns the region of definition.
    pub fn bounds(&self) -> Rect {
        self.bounds
    }

    /// Returns the encoding of light in the samples.
    pub fn color(&self) -> ColorSpace {
        self.color
    }

    /// Returns the relation of colours to alpha.
    pub(crate) fn alpha(&self) -> Alpha {
        self.metadata.alpha
    }

    /// Returns the image with another relation of colours to alpha.
    pub(crate) fn with_alpha(mut self, alpha: Alpha) -> Layers {
        Arc::make_mut(&mut self.metadata).alpha = alpha;
        self
    }

    /// Returns the image with samples that are described as light to the power of 1/`gamma`.
    pub(crate) fn with_gamma(mut self, gamma: f64) -> Layers {
        self.color = ColorSpace::of_gamma(gamma);
        Arc::make_mut(&mut self.metadata).color = ColorDescription::of_gamma(gamma);
        self
    }

    /// Returns the names of the planes that are no integers of 32 bits.
    pub(crate) fn numeric(&self) -> Vec<String> {
        let is_numeric = |layer: &&Layer| match &layer.content {
            PlaneContent::Host(plane) => plane.sample_type() != SampleType::U32,
            PlaneContent::Device(..) => true,
        };
        self.planes.iter().filter(is_numeric).map(|layer| layer.name.clone()).collect()
    }

    /// Returns the names of the planes.
    pub fn names(&self) -> Vec<&str> {
        self.planes.iter().map(|layer| layer.name.as_str()).collect()
    }

    /// Returns the distinct pictures behind the planes.
    pub fn pictures(&self) -> Vec<Picture> {
        let mut found: Vec<Picture> = vec![];
        for layer in &self.planes {
            if let PlaneContent::Device(picture, _) = &layer.content
                && !found.iter().any(|known| known.identity() == picture.identity())
            {
                found.push(picture.clone());
            }
        }
        found
    }

    /// Returns an image of some planes.
    pub(crate) fn select(&self, indices: &[usize]) -> Layers {
        let planes = indices.iter().map(|index| self.planes[*index].clone()).collect();
        Layers { planes, ..self.clone() }
    }

    /// Returns the image with an additional plane of one value.
    pub(crate) fn with_filled(&self, name: &str, value: f32) -> Result<Layers> {
        // All rows are one row in memory.
        let row = Image::filled(Rect { height: 1, ..self.bounds }, &[name], value)?;
        let image = row.repeated(self.bounds)?;
        let mut result = self.clone();
        result.planes.extend(Layers::from(&image).planes);
        Ok(result)
    }

    /// Returns an image of one plane under another name.
    pub(crate) fn renamed(mut self, name: &str) -> Layers {
        self.planes.iter_mut().for_each(|layer| layer.name = name.to_owned());
        self
    }

    /// Returns the image with the planes of another behind its own.
    pub(crate) fn with_planes_of(&self, other: &Layers) -> Layers {
        let mut result = self.clone();
        result.planes.extend(other.planes.iter().cloned());
        result
    }

    /// Replaces planes by planes of a result with the same names. Additional planes of the result are
    /// appended. Planes that are `taken` and have no replacement are removed.
    pub(crate) fn replaced(&self, taken: &[&str], result: Layers) -> Layers {
        let mut new: Vec<Option<Layer>> = result.planes.into_iter().map(Some).collect();
        let mut planes = vec![];
        for layer in &self.planes {
            let successor = new.iter_mut().find(|other| other.as_ref().is_some_and(|other| other.name == layer.name));
            match successor.and_then(Option::take) {
                Some(changed) => planes.push(changed),
                None if taken.contains(&layer.name.as_str()) => {}
                None => planes.push(layer.clone()),
            }
        }
        planes.extend(new.into_iter().flatten());
        Layers { bounds: result.bounds, planes, color: result.color, metadata: result.metadata }
    }

    /// Returns a picture whose components are all planes of the image.
    pub fn picture(&self, context: &Context) -> Result<Picture> {
        let on_host = |layer: &Layer| match &layer.content {
            PlaneContent::Host(plane) => Some(plane.clone().renamed(&layer.name)),
            PlaneContent::Device(..) => None,
        };
        let host: Vec<Plane> = self.planes.iter().filter_map(on_host).collect();
        let uploaded = match host.is_empty() {
            true => None,
            false => Some(Picture::from_image(context, &Image::new(self.bounds, host)?)),
        };
        let mut sources = self.pictures();
        if let Some(uploaded) = &uploaded {
            sources.push(uploaded.clone());
        }
        let mut taken = 0;
        let place = |layer: &Layer| match &layer.content {
            PlaneContent::Host(_) => {
                taken += 1;
                (sources.len() - 1, taken - 1)
            }
            PlaneContent::Device(picture, component) => {
                let known = sources.iter().position(|source| source.identity() == picture.identity());
                (known.unwrap_or(0), *component)
            }
        };
        let places: Vec<(usize, usize)> = self.planes.iter().map(place).collect();
        if let [only] = &sources[..]
            && only.components() == places.len()
            && places.iter().enumerate().all(|(number, place)| place.1 == number)
        {
            return Ok(only.clone());
        }
        let inputs: Vec<Indexer> = sources.iter().map(|source| Indexer::point().pixel(source.components())).collect();
        let planes = Primitive::from_kernel("planes", &inputs, &[Output::Pixel(places.len())], &[], |k| {
            places.iter().map(|(source, component)| k.input(*source).component(*component).centre()).collect()
        })?;
        planes.one(&sources.iter().collect::<Vec<&Picture>>())
    }

    /// Returns a part of the image. Nothing outside the part is computed.
    pub fn within(mut self, region: Rect) -> std::result::Result<Layers, ImageError> {
        region.checked()?;
        if !self.bounds.contains(region) {
            return Err(ImageError::Region { region, bounds: self.bounds });
        }
        for layer in &mut self.planes {
            if let PlaneContent::Host(plane) = &layer.content {
                let part = Image::new(self.bounds, vec![plane.clone()])?.view(region)?;
                layer.content = PlaneContent::Host(part.planes()[0].clone());
            }
        }
        self.bounds = region;
        Ok(self)
    }

    /// Computes the image. Samples of computed planes are `f32`; the others keep theirs.
    pub fn image(&self, options: &Options) -> Result<Image> {
        self.image_with(options, &mut |_, _| {})
    }

    /// Returns the image without its samples.
    pub(crate) fn placeholder(&self) -> std::result::Result<Image, ImageError> {
        let typed = |layer: &Layer| match &layer.content {
            PlaneContent::Host(plane) => (layer.name.clone(), plane.sample_type()),
            PlaneContent::Device(..) => (layer.name.clone(), SampleType::F32),
        };
        let planes: Vec<(String, SampleType)> = self.planes.iter().map(typed).collect();
        self.described(Image::placeholder(self.bounds, &planes)?)
    }

    /// Returns an image with the colours and the metadata of this one.
    fn described(&self, image: Image) -> std::result::Result<Image, ImageError> {
        Ok(image.with_implied_color(self.color).with_metadata(self.metadata.clone()))
    }

    /// Returns the planes in memory that are results.
    pub(crate) fn host_planes(&self) -> impl Iterator<Item = &Plane> {
        self.planes.iter().filter_map(|layer| match &layer.content {
            PlaneContent::Host(plane) => Some(plane),
            PlaneContent::Device(..) => None,
        })
    }

    /// Returns rows of the image. `images` are the rows of [`Layers::pictures`], and `host` returns those of a plane in
    /// memory.
    pub(crate) fn assembled(&self, region: Rect, images: &[Image], host: impl Fn(&Plane) -> Result<Plane>) -> Result<Image> {
        let pictures = self.pictures();
        let plane = |layer: &Layer| match &layer.content {
            PlaneContent::Host(plane) => Ok(host(plane)?.renamed(&layer.name)),
            PlaneContent::Device(picture, component) => {
                let known = pictures.iter().position(|own| own.identity() == picture.identity()).unwrap_or(0);
                Ok(images[known].planes()[*component].clone().renamed(&layer.name))
            }
        };
        Ok(self.described(Image::new(region, self.planes.iter().map(plane).collect::<Result<_>>()?)?)?)
    }

    /// Computes the image. After each tile, calls `progress` with the number of finished tiles and the total.
    pub fn image_with(&self, options: &Options, progress: &mut dyn FnMut(usize, usize)) -> Result<Image> {
        let pictures = self.pictures();
        let images = match pictures.is_empty() {
            true => vec![],
            false => {
                let wanted: Vec<(Picture, Rect)> = pictures.iter().map(|picture| (picture.clone(), self.bounds)).collect();
                Plan::new(&wanted, options)?.run_with(progress)?
            }
        };
        self.assembled(self.bounds, &images, |plane| Ok(plane.clone()))
    }
}
