//! Chains that are computed band by band, for images that are read and written as they are computed.
//!
//! The graph of a chain is built once, of placeholders of its images. The plan of a band of the result tells the rows
//! that it reads; images with these rows replace the placeholders. The optimiser does not know of it: a band is a region
//! of interest.
//!
//! Pictures that are computed from all rows of others, such as the tables of `clahe`, are stages of their own before the
//! bands of the result. Effects that read an image anywhere need all of its rows for every band, and are computed as a
//! whole.

use super::calls::failed;
use super::engine::{OnDevice, chained, names};
use crate::declaration::{Chain, EffectError};
use crate::graph::WholeCall;
use crate::image::{Image, Plane, Rect, SampleType};
use crate::layers::Layers;
use crate::plan::{Options, Plan, RowPass, bands, unknown};
use crate::{Error, Picture, Result};
use broadloom_graph::Context;
use broadloom_skeleton::cost::{band_saves_memory, smaller_band_pays};
use std::sync::Arc;

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
    /// Pictures that are computed before the result, and the result.
    stages: Vec<Stage>,
}

/// A picture that is computed from the rows of another, or the result.
#[derive(Debug)]
struct Stage {
    /// Pictures whose bands are computed.
    wanted: Vec<Picture>,
    bounds: Rect,
    /// Rows of a band.
    rows: u32,
    /// Call that takes the rows; `None` for the result.
    whole: Option<Arc<WholeCall>>,
    /// Order of the rows that are read of each image of the chain; `None` if it is not read.
    reads: Vec<Option<ReadOrder>>,
}

/// Order in which bands read the rows of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    /// From the first row to the last.
    Forward,
    /// In another order, or some columns of all rows.
    Any,
}

/// A band of a stage, and the rows that it needs.
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

/// A stage before the result that has begun.
#[derive(Debug)]
pub struct StagePass(RowPass);

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
        let layers = chained(context, chain)?;
        let sources: Vec<Image> = chain.inputs.iter().chain(chain.further).cloned().collect();
        let name = names(chain);
        let mut banded = BandedChain { name, layers, sources, options: *options, stages: vec![] };
        let pictures = banded.layers.pictures();
        for whole in unknown(&pictures) {
            let Some(input) = whole.inputs.first() else { continue };
            let (wanted, bounds) = (vec![input.clone()], input.bounds());
            banded.stages.push(Stage { wanted, bounds, rows: 1, whole: Some(whole.clone()), reads: vec![] });
        }
        let bounds = banded.layers.bounds();
        banded.stages.push(Stage { wanted: pictures, bounds, rows: 1, whole: None, reads: vec![] });
        for number in 0..banded.stages.len() {
            let fitting = rows.map_or_else(|| banded.fitting_rows(number), |rows| Ok(rows.max(1)))?;
            banded.stages[number].rows = fitting;
            let Some(reads) = banded.reads_of(number)? else { return Ok(None) };
            banded.stages[number].reads = reads;
            if let Some(whole) = &banded.stages[number].whole {
                // The stages behind are planned as if the picture were known.
                let picture = banded.placeholder_of(whole)?;
                whole.know(picture);
            }
        }
        Ok(Some(banded))
    }

    /// Returns a placeholder of the picture of a stage.
    fn placeholder_of(&self, whole: &Arc<WholeCall>) -> std::result::Result<Picture, EffectError> {
        let rows = whole.rows.as_ref().map(|rows| (rows.bounds, rows.components));
        let (bounds, components) = rows.unwrap_or((Rect::sized(1, 1), 1));
        let planes: Vec<(String, SampleType)> = (0..components).map(|number| (number.to_string(), SampleType::F32)).collect();
        let context = whole.inputs[0].context();
        Ok(Picture::from_image(context, &Image::placeholder(bounds, &planes)?))
    }

    /// Returns the number of rows of a band that suits a stage.
    fn fitting_rows(&self, stage: usize) -> std::result::Result<u32, EffectError> {
        let Stage { bounds, wanted, .. } = &self.stages[stage];
        let components: usize = match self.stages[stage].whole {
            Some(_) => wanted.iter().map(Picture::components).sum(),
            None => self.layers.names().len(),
        };
        let line = 4 * components as u64 * u64::from(bounds.width);
        let mut rows = u32::try_from(BAND / line.max(1)).unwrap_or(u32::MAX).clamp(LEAST_ROWS, bounds.height.max(LEAST_ROWS));
        let mut peak = self.peak(stage, rows)?;
        while peak > MOST_BYTES && rows > LEAST_ROWS {
            let smaller = (rows / 2).max(LEAST_ROWS);
            let below = self.peak(stage, smaller)?;
            if !smaller_band_pays(below, peak) {
                break;
            }
            (rows, peak) = (smaller, below);
        }
        Ok(rows)
    }

    /// Returns the order in which a stage reads each image; `None` if a band needs most of an image.
    fn reads_of(&self, number: usize) -> std::result::Result<Option<Vec<Option<ReadOrder>>>, EffectError> {
        let stage = &self.stages[number];
        let all = self.bands(number);
        // Windows that wrap around need all rows at the edges alone.
        let (first, last) = (all[0], all[all.len() - 1]);
        let mut reads: Vec<Option<ReadOrder>> = vec![None; self.sources.len()];
        let mut tops = vec![i64::MIN; self.sources.len()];
        for region in [first, middle(stage.bounds, stage.rows), last] {
            let band = self.band(number, region)?;
            if !band.plan.as_ref().is_none_or(Plan::fits) {
                return Ok(None);
            }
            for (place, (need, source)) in band.needs.iter().zip(&self.sources).enumerate() {
                let Some(need) = need else { continue };
                // Rows of the image with as many samples as are needed.
                let rows = need.area().div_ceil(u64::from(source.width())) as u32;
                if !band_saves_memory(rows, region.height, source.height()) {
                    return Ok(None);
                }
                let is_forward =
                    i64::from(need.y) >= tops[place] && band_saves_memory(need.height, region.height, source.height());
                tops[place] = need.y.into();
                let order = if is_forward { ReadOrder::Forward } else { ReadOrder::Any };
                reads[place] = Some(match reads[place] {
                    Some(ReadOrder::Any) => ReadOrder::Any,
                    Some(ReadOrder::Forward) | None => order,
                });
            }
        }
        Ok(Some(reads))
    }

    /// Returns the bytes of the images that a band of so many rows needs on the device.
    fn peak(&self, stage: usize, rows: u32) -> std::result::Result<u64, EffectError> {
        let band = self.band(stage, middle(self.stages[stage].bounds, rows))?;
        Ok(band.plan.as_ref().map_or(0, Plan::peak))
    }

    /// Returns a placeholder of the result.
    pub fn header(&self) -> std::result::Result<Image, EffectError> {
        Ok(self.layers.placeholder()?)
    }

    /// Returns the number of stages. The last one computes the result.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Returns the number of rows of a band of a stage.
    pub fn rows(&self, stage: usize) -> u32 {
        self.stages[stage].rows
    }

    /// Returns the order in which a stage reads each image of the chain; `None` if it does not.
    pub fn reads(&self, stage: usize) -> &[Option<ReadOrder>] {
        &self.stages[stage].reads
    }

    /// Returns the bands of a stage, from the first row to the last.
    pub fn bands(&self, stage: usize) -> Vec<Rect> {
        let Stage { bounds, rows, whole, .. } = &self.stages[stage];
        let least = whole.as_ref().and_then(|whole| whole.rows.as_ref()).map_or(0, |rows| rows.least);
        bands(*bounds, *rows, least)
    }

    /// Plans a band of a stage. The stages before must have ended, unless nothing is computed.
    pub fn band(&self, stage: usize, region: Rect) -> std::result::Result<Band, EffectError> {
        self.planned(&self.stages[stage], region).map_err(|error| failed(&self.name, error))
    }

    fn planned(&self, stage: &Stage, region: Rect) -> Result<Band> {
        let wanted: Vec<(Picture, Rect)> = stage.wanted.iter().map(|picture| (picture.clone(), region)).collect();
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
        if stage.whole.is_none() {
            self.layers.host_planes().for_each(|plane| need(plane, region));
        }
        Ok(Band { region, plan, needs })
    }

    /// Returns the image and the number of the plane that a plane stands for; `None` if it has its samples.
    fn place(&self, plane: &Plane) -> Option<(usize, usize)> {
        self.sources.iter().enumerate().find_map(|(number, source)| {
            let index = source.planes().iter().position(|own| own.shares_memory(plane))?;
            Some((number, index))
        })
    }

    /// Begins a stage before the last.
    pub fn begin(&self, stage: usize) -> std::result::Result<StagePass, EffectError> {
        let begin = || match &self.stages[stage].whole {
            Some(whole) => Ok(StagePass(RowPass::begin(whole)?)),
            None => Err(Error::Call { name: self.name.clone(), reason: "the last stage computes the result".into() }),
        };
        begin().map_err(|error| failed(&self.name, error))
    }

    /// Computes a band of a stage before the last. `images` hold at least the needed rows of each image of the chain.
    pub fn take(
        &self,
        stage: usize,
        pass: &mut StagePass,
        band: Band,
        images: &[Option<Image>],
    ) -> std::result::Result<(), EffectError> {
        let Band { region, plan, .. } = band;
        let first = (region.y - self.stages[stage].bounds.y) as u32;
        let take = || {
            let nodes = plan
                .map_or(Ok(vec![]), |plan| plan.lazy().nodes_with_hosts(|image, region| self.replaced(images, image, region)))?;
            nodes.iter().try_for_each(|node| pass.0.take(node, first))
        };
        take().map_err(|error| failed(&self.name, error))
    }

    /// Ends a stage before the last.
    pub fn end(&self, pass: StagePass) -> std::result::Result<(), EffectError> {
        pass.0.finish().map_err(|error| failed(&self.name, error))
    }

    /// Returns rows of a plane, from the images that were read.
    fn read_plane(&self, images: &[Option<Image>], plane: &Plane, bounds: Rect, region: Rect) -> Result<Plane> {
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
    }

    /// Returns the part of an image that replaces its placeholder.
    fn replaced(&self, images: &[Option<Image>], image: &Image, region: Rect) -> Result<Image> {
        let planes = image.planes().iter().map(|plane| self.read_plane(images, plane, image.bounds(), region));
        Ok(Image::new(region, planes.collect::<Result<Vec<Plane>>>()?)?)
    }

    /// Computes a band of the result. `images` hold at least the needed rows of each image of the chain. Samples of
    /// computed planes are integers if `samples` is a type of 8 or 16 bits, and else `f32`.
    pub fn compute(
        &self,
        band: Band,
        images: &[Option<Image>],
        samples: Option<SampleType>,
    ) -> std::result::Result<Image, EffectError> {
        let Band { region, plan, .. } = band;
        let compute = || {
            let replace = |image: &Image, region: Rect| self.replaced(images, image, region);
            let computed = plan.map_or(Ok(vec![]), |plan| plan.run_with_hosts(samples, replace))?;
            self.layers.assembled(region, &computed, |plane| self.read_plane(images, plane, self.layers.bounds(), region))
        };
        compute().map_err(|error| failed(&self.name, error))
    }
}

/// Returns the rows in the middle of an image.
fn middle(bounds: Rect, rows: u32) -> Rect {
    let height = rows.min(bounds.height);
    Rect { y: bounds.y + ((bounds.height - height) / 2) as i32, height, ..bounds }
}
