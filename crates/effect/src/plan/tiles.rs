//! Images that need more memory than available: the result is computed tile by tile.
//!
//! A tile is a region of interest. Its needs propagate backwards through the windows, and only the needed
//! parts of host images are copied. Tiles are strips of rows as long as strips are sufficient.

use super::Plan;
use crate::graph::Picture;
use crate::image::{Image, Plane, Rect, reserved};
use crate::{Error, Result};

/// Minimum side of a tile, in pixels. Smaller tiles are not divided.
const LEAST_SIDE: u32 = 16;

impl Plan {
    /// Returns the bytes of the device's memory that the plan may use.
    pub(super) fn memory(&self) -> u64 {
        self.options.memory.unwrap_or(self.context.device().machine().memory_bytes / 4 * 3)
    }

    /// Returns whether the images fit into the allowed memory.
    pub fn fits(&self) -> bool {
        self.items.peak() <= self.memory()
    }

    /// Computes the images tile by tile.
    pub(super) fn run_tiles(&self, progress: &mut dyn FnMut(usize, usize)) -> Result<Vec<Image>> {
        let Some(region) = self.results.first().map(|(_, region)| *region) else { return Ok(vec![]) };
        if self.results.iter().any(|(_, other)| *other != region) {
            // Tiles of results with equal regions are computed together. Other results are computed one after
            // the other.
            let mut images = vec![];
            for (picture, region) in &self.results {
                images.extend(Plan::new(&[(picture.clone(), *region)], &self.options)?.run_with(progress)?);
            }
            return Ok(images);
        }
        self.compute_rows()?;
        let tiles = self.tiles(region)?;
        let area = region.area();
        let mut found: Vec<Vec<Vec<f32>>> = vec![];
        for (picture, _) in &self.results {
            let mut planes = vec![];
            for _ in 0..picture.components() {
                let mut plane = reserved::<f32>(area)?;
                plane.resize(area as usize, 0.0);
                planes.push(plane);
            }
            found.push(planes);
        }
        for (number, tile) in tiles.iter().enumerate() {
            let images = self.of(*tile)?.computed()?;
            for (planes, image) in found.iter_mut().zip(&images) {
                for (plane, part) in planes.iter_mut().zip(image.planes()) {
                    place(plane, region, &part.to_f32(), *tile);
                }
            }
            progress(number + 1, tiles.len());
        }
        let image = |planes: Vec<Vec<f32>>| {
            let plane =
                |(number, samples): (usize, Vec<f32>)| Plane::new(&number.to_string(), region.width, region.height, samples);
            let planes = planes.into_iter().enumerate().map(plane).collect::<std::result::Result<Vec<Plane>, _>>()?;
            Ok(Image::new(region, planes)?)
        };
        found.into_iter().map(image).collect()
    }

    /// Plans the given region of all results.
    fn of(&self, region: Rect) -> Result<Plan> {
        let wanted: Vec<(Picture, Rect)> = self.results.iter().map(|(picture, _)| (picture.clone(), region)).collect();
        Plan::new(&wanted, &self.options)
    }

    /// Cuts a region into tiles that fit into memory.
    fn tiles(&self, region: Rect) -> Result<Vec<Rect>> {
        let (mut columns, mut rows) = (1u32, 1u32);
        loop {
            let side = |extent: u32, count: u32| extent.div_ceil(count);
            let (width, height) = (side(region.width, columns), side(region.height, rows));
            // The middle tile has windows on all sides.
            let middle = |from: i32, extent: u32, size: u32| from + ((extent - size) / 2) as i32;
            let tile = Rect::new(middle(region.x, region.width, width), middle(region.y, region.height, height), width, height);
            let plan = self.of(tile)?;
            if plan.fits() {
                return Ok(grid(region, width, height));
            }
            // Rows are divided first, and columns once the strips are flat.
            match (height > LEAST_SIDE.max(width / 8), width > LEAST_SIDE) {
                (true, _) => rows *= 2,
                (false, true) => columns *= 2,
                (false, false) if height > LEAST_SIDE => rows *= 2,
                (false, false) => {
                    let (needed, allowed) = (plan.items.peak(), self.memory());
                    return Err(Error::Memory { width, height, needed, allowed });
                }
            }
        }
    }

    /// Computes the images in one piece.
    fn computed(&self) -> Result<Vec<Image>> {
        let nodes = self.nodes()?;
        nodes.iter().zip(&self.results).map(|(node, (_, region))| super::image(node, *region)).collect()
    }
}

/// Returns the tiles of a region, row by row.
fn grid(region: Rect, width: u32, height: u32) -> Vec<Rect> {
    let mut tiles = vec![];
    for top in (0..region.height).step_by(height as usize) {
        for left in (0..region.width).step_by(width as usize) {
            let (width, height) = (width.min(region.width - left), height.min(region.height - top));
            tiles.push(Rect::new(region.x + left as i32, region.y + top as i32, width, height));
        }
    }
    tiles
}

/// Copies the samples of a tile to their position in a plane.
fn place(plane: &mut [f32], region: Rect, samples: &[f32], tile: Rect) {
    let (from, width) = ((tile.x - region.x) as usize, tile.width as usize);
    for (row, samples) in samples.chunks_exact(width.max(1)).enumerate() {
        let start = ((tile.y - region.y) as usize + row) * region.width as usize + from;
        plane[start..start + width].copy_from_slice(samples);
    }
}
