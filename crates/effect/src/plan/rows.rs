//! Pictures that are computed from the rows of others, band by band, before the plan that reads them.

use super::items::{Items, Work};
use super::quantise::quantised;
use super::{Plan, image};
use crate::graph::{Origin, Picture, TakeRows, WholeCall, uploaded};
use crate::image::{Image, Rect, SampleType};
use crate::{Error, Result};
use broadloom_graph::Node;
use std::sync::Arc;

/// Minimum number of rows of a band.
const LEAST_ROWS: u32 = 16;

/// Bands of a picture from whose rows another one is computed.
#[derive(Debug)]
pub(crate) struct RowPass {
    whole: Arc<WholeCall>,
    taker: Box<dyn TakeRows>,
}

impl RowPass {
    /// Begins a pass.
    pub(crate) fn begin(whole: &Arc<WholeCall>) -> Result<RowPass> {
        let Some(rows) = &whole.rows else {
            return Err(Error::Call { name: whole.name.clone(), reason: "it takes no rows".into() });
        };
        Ok(RowPass { whole: whole.clone(), taker: (rows.begin)()? })
    }

    /// Takes the next rows of the input.
    pub(crate) fn take(&mut self, rows: &Node, first: u32) -> Result<()> {
        self.taker.take(rows, first)
    }

    /// Computes the picture. Plans that are made later read it.
    pub(crate) fn finish(self) -> Result<()> {
        let picture = self.taker.finish()?;
        if let Origin::Array(node) = picture.origin() {
            node.evaluate()?;
        }
        self.whole.know(picture);
        Ok(())
    }
}

/// Returns the bands of a picture, of so many rows each. The last one may have more, so that it has at least `least`.
pub(crate) fn bands(bounds: Rect, rows: u32, least: u32) -> Vec<Rect> {
    let mut bands = vec![];
    let mut first = 0;
    while first < bounds.height {
        let rest = bounds.height - first;
        let height = if rest < rows.saturating_add(least) { rest } else { rows };
        bands.push(Rect { y: bounds.y + first as i32, height, ..bounds });
        first += height;
    }
    bands
}

/// Returns the calls behind pictures that can be computed band by band and are not known, inputs first.
pub(crate) fn unknown(pictures: &[Picture]) -> Vec<Arc<WholeCall>> {
    let of_rows = |work: Work| match work {
        Work::Whole(whole) if whole.rows.is_some() => Some(whole),
        Work::Whole(_) | Work::Source(_) | Work::Host(_) | Work::Functor(_) | Work::Transpose => None,
    };
    Items::new(pictures).items.into_iter().filter_map(|item| of_rows(item.work)).collect()
}

impl Plan {
    /// Makes the plan return results that are computed when they are read.
    pub(crate) fn lazy(mut self) -> Plan {
        self.is_lazy = true;
        self
    }

    /// Computes the pictures that can be computed from the rows of others, in bands that fit into memory.
    pub(super) fn compute_rows(&self) -> Result<()> {
        let pictures: Vec<Picture> = self.results.iter().map(|(picture, _)| picture.clone()).collect();
        for whole in unknown(&pictures) {
            let (Some(rows), Some(input)) = (&whole.rows, whole.inputs.first()) else { continue };
            let planned = |band: Rect| Plan::new(&[(input.clone(), band)], &self.options);
            let (bounds, least) = (input.bounds(), rows.least.max(LEAST_ROWS));
            let mut height = bounds.height;
            while height > least {
                let top = bounds.y + ((bounds.height - height) / 2) as i32;
                if planned(Rect { y: top, height, ..bounds })?.fits() {
                    break;
                }
                height = (height / 2).max(least);
            }
            let mut pass = RowPass::begin(&whole)?;
            for band in bands(bounds, height, rows.least) {
                let plan = planned(band)?;
                let first = (band.y - bounds.y) as u32;
                match plan.fits() {
                    true => plan.nodes()?.iter().try_for_each(|node| pass.take(node, first))?,
                    false => {
                        let images = plan.run()?;
                        images.iter().try_for_each(|image| pass.take(&uploaded(&self.context, image, true)?, first))?;
                    }
                }
            }
            pass.finish()?;
        }
        Ok(())
    }
}

/// Reads an array as an image of integers of 8 bits, as files have them.
pub(crate) fn read_u8(node: &Node, region: Rect) -> Result<Image> {
    image(&quantised(node, Some(SampleType::U8))?, region)
}
