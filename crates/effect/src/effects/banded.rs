//! Chains that are computed band by band, for images that are read and written as they are computed.
//!
//! The graph of a chain is built once, of placeholders of its images. The plan of a band of the result tells the rows
//! that it reads; images with these rows replace the placeholders. The optimiser does not know of it: a band is a region
//! of interest. Effects that read an image anywhere need all of its rows for every band, and are computed as a whole.

use super::calls::failed;
use super::engine::{OnDevice, chained, names};
use crate::declaration::{Chain, EffectError};
use crate::image::{Image, Plane, Rect, SampleType};
use crate::layers::Layers;
use crate::plan::{Options, Plan};
use crate::{Error, Picture, Result};
use broadloom_graph::Context;
use broadloom_skeleton::cost::{band_saves_memory, smaller_band_pays};

/// Effects that compute images while their graph is built.
const COMPUTED_EARLY: [&str; 1] = ["canny"];

/// Approximate number of bytes of the samples of a band, as `f32`.
const BAND: u64 = 8 << 20;

/// Bytes of images on the device that a band may need. Bands with fewer rows need less.
const MOST_BYTES: u64 = 48 << 20;

/// Minimum number of rows of a band, unless a number is given.
const LEAST_ROWS: u32 = 4;

/// A chain that is computed band by band.
#[derive(Debug)]
pub struct BandedChain {
    name: String,
    layers: Layers,
    /// Placeholders of the images of the chain.
    sources: Vec<Image>,
    options: Options,
    rows: u32,
}

/// A band of the result, and the rows that it needs.
#[derive(Debug)]
pub struct Band {
    region: Rect,
    plan: Option<Plan>,
    needs: Vec<Option<Rect>>,
}

impl Band {
    /// Returns the rows that are needed of each image of the chain: of its inputs, then of the further ones.
    pub fn needs(&self) -> &[Option<Rect>] {
        &self.needs
    }
}

impl OnDevice {
    /// Builds the graph of a chain that is computed band by band, of placeholders of its images. `rows` is the number of
    /// rows of a band; without it, bands have a size that suits the plan. Returns `None` if a band would need all of an
    /// image.
    pub fn banded(&self, chain: &Chain<'_>, rows: Option<u32>) -> std::result::Result<Option<BandedChain>, EffectError> {
        BandedChain::new(&self.context, chain, &self.options, rows)
    }
}

impl BandedChain {
    fn new(
        context: &Context,
        chain: &Chain<'_>,
        options: &Options,
        rows: Option<u32>,
    ) -> std::result::Result<Option<BandedChain>, EffectError> {
        if chain.steps.iter().any(|step| COMPUTED_EARLY.contains(&step.effect().name)) {
            return Ok(None);
        }
        let layers = chained(context, chain, options)?;
        let sources: Vec<Image> = chain.inputs.iter().chain(chain.further).cloned().collect();
        let name = names(chain);
        let mut banded = BandedChain { name, layers, sources, options: *options, rows: rows.unwrap_or(1).max(1) };
        let height = banded.layers.bounds().height;
        if rows.is_none() {
            let line = 4 * banded.layers.names().len() as u64 * u64::from(banded.layers.bounds().width);
            banded.rows = u32::try_from(BAND / line.max(1)).unwrap_or(u32::MAX).clamp(LEAST_ROWS, height.max(LEAST_ROWS));
            let mut peak = banded.peak()?;
            while peak > MOST_BYTES && banded.rows > LEAST_ROWS {
                let before = (peak, banded.rows);
                banded.rows = (banded.rows / 2).max(LEAST_ROWS);
                peak = banded.peak()?;
                if !smaller_band_pays(peak, before.0) {
                    banded.rows = before.1;
                    break;
                }
            }
        }
        let is_part = |(need, source): (&Option<Rect>, &Image)| {
            need.is_none_or(|need| band_saves_memory(need.height, banded.rows, source.height()))
        };
        // Windows that wrap around need all rows at the edges alone.
        for region in banded.bands().next().into_iter().chain([banded.middle()]).chain(banded.bands().last()) {
            let band = banded.band(region)?;
            let fits = band.plan.as_ref().is_none_or(Plan::fits);
            if !fits || !band.needs.iter().zip(&banded.sources).all(is_part) {
                return Ok(None);
            }
        }
        Ok(Some(banded))
    }

    /// Returns the bytes of the images that a band needs on the device.
    fn peak(&self) -> std::result::Result<u64, EffectError> {
        Ok(self.band(self.middle())?.plan.as_ref().map_or(0, Plan::peak))
    }

    /// Returns a placeholder of the result.
    pub fn header(&self) -> std::result::Result<Image, EffectError> {
        Ok(self.layers.placeholder()?)
    }

    /// Returns the number of rows of a band.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns the bands of the result, from the first row to the last.
    pub fn bands(&self) -> impl Iterator<Item = Rect> {
        let (bounds, rows) = (self.layers.bounds(), self.rows);
        (0..bounds.height.div_ceil(rows)).map(move |number| {
            let first = number * rows;
            Rect { y: bounds.y + first as i32, height: rows.min(bounds.height - first), ..bounds }
        })
    }

    fn middle(&self) -> Rect {
        let bounds = self.layers.bounds();
        let height = self.rows.min(bounds.height);
        Rect { y: bounds.y + ((bounds.height - height) / 2) as i32, height, ..bounds }
    }

    /// Plans a band.
    pub fn band(&self, region: Rect) -> std::result::Result<Band, EffectError> {
        self.planned(region).map_err(|error| failed(&self.name, error))
    }

    fn planned(&self, region: Rect) -> Result<Band> {
        let wanted: Vec<(Picture, Rect)> = self.layers.pictures().into_iter().map(|picture| (picture, region)).collect();
        let plan = if wanted.is_empty() { None } else { Some(Plan::new(&wanted, &self.options)?) };
        let mut needs: Vec<Option<Rect>> = vec![None; self.sources.len()];
        let mut need = |plane: &Plane, region: Rect| {
            if let Some((source, _)) = self.place(plane) {
                let own = &mut needs[source];
                *own = own.map_or(Some(region), |own| own.union(region).ok());
            }
        };
        for (image, region) in plan.iter().flat_map(Plan::hosts) {
            image.planes().iter().for_each(|plane| need(plane, region));
        }
        self.layers.host_planes().for_each(|plane| need(plane, region));
        Ok(Band { region, plan, needs })
    }

    /// Returns the image and the number of the plane that a plane stands for; `None` if it has its samples.
    fn place(&self, plane: &Plane) -> Option<(usize, usize)> {
        self.sources.iter().enumerate().find_map(|(number, source)| {
            let index = source.planes().iter().position(|own| own.shares_memory(plane))?;
            Some((number, index))
        })
    }

    /// Computes a band. `images` hold at least the needed rows of each image of the chain. Samples of computed planes are
    /// integers if `samples` is a type of 8 or 16 bits, and else `f32`.
    pub fn compute(
        &self,
        band: Band,
        images: &[Option<Image>],
        samples: Option<SampleType>,
    ) -> std::result::Result<Image, EffectError> {
        let Band { region, plan, .. } = band;
        let rows = |plane: &Plane, bounds: Rect, region: Rect| -> Result<Plane> {
            let image = match self.place(plane) {
                None => Image::new(bounds, vec![plane.clone()])?,
                Some((source, index)) => {
                    let image = images.get(source).and_then(Option::as_ref);
                    let image =
                        image.ok_or_else(|| Error::Call { name: self.name.clone(), reason: "its rows are not read".into() })?;
                    image.with_planes(vec![image.planes()[index].clone().renamed(plane.name())])?
                }
            };
            Ok(image.view(region)?.planes()[0].clone())
        };
        let replaced = |image: &Image, region: Rect| -> Result<Image> {
            let planes = image.planes().iter().map(|plane| rows(plane, image.bounds(), region));
            Ok(Image::new(region, planes.collect::<Result<Vec<Plane>>>()?)?)
        };
        let compute = || {
            let images = plan.map_or(Ok(vec![]), |plan| plan.run_with_hosts(samples, replaced))?;
            self.layers.assembled(region, &images, |plane| rows(plane, self.layers.bounds(), region))
        };
        compute().map_err(|error| failed(&self.name, error))
    }
}
