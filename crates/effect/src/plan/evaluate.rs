//! Pixels and numbers of pictures, computed by plans.

use super::{Options, Plan};
use crate::graph::{Picture, counts};
use crate::image::{Image, Rect};
use crate::{Error, Reduction, Result};
use broadloom_graph::Node;

impl Picture {
    /// Computes all pixels, with the default options. Planes are named by their numbers.
    pub fn image(&self) -> Result<Image> {
        self.region(self.bounds(), &Options::default())
    }

    /// Computes a region.
    pub fn region(&self, region: Rect, options: &Options) -> Result<Image> {
        let mut images = Plan::new(&[(self.clone(), region)], options)?.run()?;
        images.pop().ok_or_else(|| Error::Call { name: "picture".into(), reason: "there is no result".into() })
    }

    fn computed(&self, options: &Options) -> Result<Node> {
        let nodes = Plan::new(&[(self.clone(), self.bounds())], options)?.nodes()?;
        nodes.into_iter().next().ok_or_else(|| Error::Call { name: "reduction".into(), reason: "there is no image".into() })
    }

    /// Combines all pixels. Returns a number for each component. Waits for the device.
    ///
    /// ```
    /// # use broadloom_effect::{Image, Picture, Reduction, plan::Options};
    /// # use broadloom_graph::Context;
    /// # let context = Context::new(&broadloom_device::Device::new(broadloom_interp::Interp::new(Default::default())));
    /// let image = Image::from_f32(2, 2, [("Y", vec![1.0, 2.0, 4.0, -3.0])])?;
    /// let picture = Picture::new(&context, &image)?;
    /// assert_eq!(picture.reduce(Reduction::Mean, &Options::default())?, [1.0]);
    /// assert_eq!(picture.histogram(2, -4.0, 4.0, &Options::default())?, [[1, 3]]);
    /// # Ok::<(), broadloom_effect::Error>(())
    /// ```
    pub fn reduce(&self, reduction: Reduction, options: &Options) -> Result<Vec<f64>> {
        let node = self.computed(options)?;
        let scale = match reduction {
            Reduction::Least | Reduction::Greatest | Reduction::Sum => 1.0,
            Reduction::Mean => 1.0 / self.bounds().area() as f64,
        };
        let numbers = reduction.of(&node)?.read()?;
        Ok(numbers.lanes.iter().map(|lane| lane.as_f64().unwrap_or(f64::NAN) * scale).collect())
    }

    /// Counts the pixels of each component in equal bins from `low` to `high`. Values outside are counted in
    /// the first or the last bin, and NaN in the first. Waits for the device.
    pub fn histogram(&self, bins: usize, low: f32, high: f32, options: &Options) -> Result<Vec<Vec<u32>>> {
        self.check_bins(bins, low, high)?;
        let counts = counts(&self.computed(options)?, bins, low, high)?.read()?;
        let counts: Vec<u32> = counts.lanes.iter().map(|lane| lane.as_i128().unwrap_or(0) as u32).collect();
        Ok(counts.chunks(bins).map(<[u32]>::to_vec).collect())
    }
}
