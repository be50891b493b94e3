//! Images of the host that stand for images that are read band by band.

use super::items::Work;
use super::quantise::quantised;
use super::{Plan, image};
use crate::image::{Image, Rect, SampleType};
use crate::{Error, Result};
use broadloom_graph::Node;

impl Plan {
    /// Returns the images of the host that the plan reads, each with the region that it reads.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (&Image, Rect)> {
        self.items.items.iter().filter_map(|item| match &item.work {
            Work::Host(image) => Some((image, item.needed?)),
            Work::Source(_) | Work::Functor(_) | Work::Whole(_) | Work::Transpose => None,
        })
    }

    /// Returns an upper bound of the bytes of images that are in memory at any time.
    pub(crate) fn peak(&self) -> u64 {
        self.items.peak()
    }

    /// Computes the images with other images of the host. These hold at least the regions of [`Plan::hosts`]. Results are
    /// integers if `samples` is a type of 8 or 16 bits, and else `f32`.
    pub(crate) fn run_with_hosts(
        self,
        samples: Option<SampleType>,
        replace: impl Fn(&Image, Rect) -> Result<Image>,
    ) -> Result<Vec<Image>> {
        let (context, results) = (self.context.clone(), self.results.clone());
        // Kernels write integers where these are wanted.
        let nodes = self.lazy().nodes_with_hosts(replace)?;
        let nodes = nodes.iter().map(|node| quantised(node, samples)).collect::<Result<Vec<Node>>>()?;
        context.evaluate(&nodes)?;
        nodes.iter().zip(&results).map(|(node, (_, region))| image(node, *region)).collect()
    }

    /// Computes the images as [`Plan::run_with_hosts`] does, as arrays on the device.
    pub(crate) fn nodes_with_hosts(mut self, replace: impl Fn(&Image, Rect) -> Result<Image>) -> Result<Vec<Node>> {
        for item in &mut self.items.items {
            if let (Work::Host(image), Some(needed)) = (&item.work, item.needed) {
                item.work = Work::Host(replace(image, needed)?);
            }
        }
        if !self.fits() {
            let (region, needed) = (self.results[0].1, self.items.peak());
            return Err(Error::Memory { width: region.width, height: region.height, needed, allowed: self.memory() });
        }
        self.nodes()
    }
}
