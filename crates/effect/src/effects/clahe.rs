//! Local contrast: adaptive histogram equalisation with limited contrast.
//!
//! The device counts the pixels of all tiles in one histogram and makes a table of each. The host does not
//! wait.

use crate::functor::{Indexer, Output, Precise, Primitive, Real, Whole};
use crate::graph::{InRows, TakeRows};
use crate::{Boundary, Error, Picture, Rect, Result};
use broadloom_graph::{AxisMap, Combine, Elementwise, Node, Shape};
use broadloom_scalar::{BinaryOp, Builder, Element, Literal, Type, Value};
use std::sync::Arc;

/// Settings of the effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clahe {
    /// Number of tiles along each side.
    pub tiles: u32,
    /// Limit of a bin, as a multiple of the mean; 0 for no limit.
    pub clip: f64,
    /// Number of bins of a histogram.
    pub bins: u32,
    /// Minimum value.
    pub low: f64,
    /// Maximum value.
    pub high: f64,
}

/// Maximum number of bins of all histograms together.
const MAX_BINS: u64 = 1 << 26;

impl Clahe {
    fn bin<'k>(&self, value: Real<'k>) -> Precise<'k> {
        let place = (value.cast::<f64>() - self.low) / (self.high - self.low) * f64::from(self.bins);
        place.floor().max(0.0).min(f64::from(self.bins - 1))
    }

    /// Emits the index of a sample's bin as the functor computes it.
    fn bin_in(&self, f: &Builder, sample: Value) -> Value {
        let [low, extent, bins] = [self.low, self.high - self.low, f64::from(self.bins)].map(|number| f.literal(number));
        let place = f.mul(f.div(f.sub(f.convert(sample, Type::F64), low), extent), bins);
        let bin = f.min(f.max(f.floor(place), 0.0f64), f64::from(self.bins - 1));
        f.convert(bin, Type::I32)
    }

    /// Converts counts into curves, a row for each tile. Counts up to the limit are summed, and the excess is
    /// distributed evenly over all bins.
    fn curves(&self, counts: &Node, area: f64) -> Result<Node> {
        let limit = match self.clip > 0.0 {
            true => (self.clip * area / f64::from(self.bins)).floor().max(1.0),
            false => f64::INFINITY,
        };
        let context = counts.context();
        let bins = self.bins as usize;
        let rows = counts.shape().count() / bins;
        let shape = Shape::from([rows, bins]);
        let counts = counts.reshape(shape.clone())?;
        let f = Builder::function("clip");
        let count = f.convert(f.parameter("count", counts.ty()), Type::F64);
        let most = f.parameter("limit", Type::F64);
        let function = f.finish_function(&[f.min(count, most), f.max(f.sub(count, most), 0.0f64)])?;
        let scalar = |value: f64| Node::fill(context, Shape::from([]), &[Literal::from(value)]);
        let parts = Node::call(&function, &[&counts, &scalar(limit)?])?;
        // Sums of integers are exact in any order.
        let sums = parts[0].scan(Combine::Sum, 1, true)?;
        let excess = parts[1].reduce(Combine::Sum, &[1])?.affine("excess", &[AxisMap::same(0)], shape.clone(), None)?;
        let f = Builder::function("curve");
        f.keep_products();
        let [sum, excess_of, low, scale, share] =
            ["sum", "excess", "low", "scale", "share"].map(|name| f.parameter(name, Type::F64));
        let bin = f.convert(f.add(f.parameter("bin", Type::I32), 1), Type::F64);
        let height = f.add(sum, f.mul(f.mul(excess_of, share), bin));
        let function = f.finish_function(&[f.convert(f.add(low, f.mul(scale, height)), Type::F32)])?;
        let place = Node::position(context, shape, 1, Element::I32)?;
        let (scale, share) = ((self.high - self.low) / area, 1.0 / f64::from(self.bins));
        let curves = Node::call(&function, &[&sums, &excess, &scalar(self.low)?, &scalar(scale)?, &scalar(share)?, &place])?;
        Ok(curves[0].clone())
    }
}

/// Counts the pixels of all tiles and components: component by component, tile by tile, bin by bin. `first` is the number
/// of the first row.
fn counts(samples: &Node, settings: &Clahe, tile: [i32; 2], first: u32, total: usize) -> Result<Node> {
    let context = samples.context();
    let f = Builder::function("tile_and_bin");
    let bin = settings.bin_in(&f, f.parameter("sample", Type::F32));
    let [component, row, column] = ["c", "y", "x"].map(|name| f.parameter(name, Type::I32));
    let [width, height, tiles, bins, first_row] =
        ["width", "height", "tiles", "bins", "first"].map(|name| f.parameter(name, Type::I32));
    let down: Value = f.add(f.mul(component, tiles), f.div(f.add(row, first_row), height));
    let place = f.add(f.mul(down, tiles), f.div(column, width));
    let key = f.add(f.mul(place, bins), bin);
    let function = f.finish_function(&[key])?;
    let mut inputs = vec![samples.clone()];
    for axis in 0..3 {
        inputs.push(Node::position(context, samples.shape().clone(), axis, Element::I32)?);
    }
    for number in [tile[0], tile[1], settings.tiles as i32, settings.bins as i32, first as i32] {
        inputs.push(Node::fill(context, Shape::from([]), &[Literal::from(number)])?);
    }
    let keys = Node::call(&function, &inputs.iter().collect::<Vec<&Node>>())?.swap_remove(0);
    Ok(keys.histogram(total)?)
}

/// Counts of the rows that were taken.
#[derive(Debug)]
struct TileCounts {
    settings: Clahe,
    rule: broadloom_skeleton::Boundary,
    /// Columns and rows of a tile.
    tile: [i32; 2],
    /// Rows of the image.
    rows: usize,
    /// Number of bins of all histograms.
    total: usize,
    counts: Option<Node>,
}

impl TakeRows for TileCounts {
    fn take(&mut self, rows: &Node, first: u32) -> Result<()> {
        let tiles = self.settings.tiles as usize;
        let &[components, own, _] = rows.shape().extents() else { return Ok(()) };
        // Tiles at the right and lower edges are complete: the boundary rule supplies the pixels beyond the image.
        let is_last = first as usize + own == self.rows;
        let height = if is_last { self.tile[1] as usize * tiles - first as usize } else { own };
        let shape = Shape::from([components, height, self.tile[0] as usize * tiles]);
        let samples = rows.affine("tiles", &[0, 1, 2].map(AxisMap::same), shape, Some(&self.rule))?;
        let counts = counts(&samples, &self.settings, self.tile, first, self.total)?;
        let sum = match self.counts.take() {
            None => counts,
            Some(before) => Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&before, &counts])?,
        };
        if own < self.rows {
            sum.evaluate()?;
        }
        self.counts = Some(sum);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Picture> {
        let Some(counts) = &self.counts else {
            return Err(Error::Call { name: "clahe".into(), reason: "no rows were counted".into() });
        };
        let area = f64::from(self.tile[0]) * f64::from(self.tile[1]);
        let (tiles, bins) = ((self.settings.tiles * self.settings.tiles) as usize, self.settings.bins as usize);
        let shape = Shape::from([self.total / (tiles * bins), tiles, bins]);
        Picture::from_node(self.settings.curves(counts, area)?.reshape(shape)?, 0, 0)
    }
}

/// Equalises the histogram of every component.
pub fn clahe(picture: &Picture, settings: &Clahe, boundary: Boundary) -> Result<Picture> {
    let (bounds, components) = (picture.bounds(), picture.components());
    let Clahe { tiles, bins, low, high, .. } = *settings;
    let total = components as u64 * u64::from(tiles) * u64::from(tiles) * u64::from(bins);
    let bad = |reason| Error::Functor { name: "clahe".into(), reason };
    if tiles == 0 || bins < 2 || high <= low || high.is_nan() {
        return Err(bad(format!("{tiles} tiles along each side with {bins} bins from {low} to {high} are not possible")));
    }
    if total > MAX_BINS {
        let all = format!("{tiles} tiles along each side and {bins} bins of {components} planes");
        return Err(bad(format!("{all} make {total} bins, and {MAX_BINS} are possible: set tiles or bins to less")));
    }
    let tile = [bounds.width.div_ceil(tiles), bounds.height.div_ceil(tiles)];
    let (rows, rule) = (bounds.height, boundary.rule());
    // Rows beyond the image are those of the last band, unless they wrap around.
    let beyond = tile[1] * tiles - rows;
    let least = if boundary == Boundary::Wrap && beyond > 0 { rows } else { beyond.saturating_add(1) };
    let tile = tile.map(|side| side as i32);
    let own = *settings;
    let begin = move || -> Result<Box<dyn TakeRows>> {
        let (settings, rule, rows, total) = (own, rule.clone(), rows as usize, total as usize);
        Ok(Box::new(TileCounts { settings, rule, tile, rows, total, counts: None }))
    };
    let size = Rect::sized(bins, tiles * tiles).checked()?;
    let tables = picture.of_rows("tables", InRows::new(size, components, Arc::new(begin)).at_least(least));
    let inputs = [Indexer::point(), Indexer::anywhere()];
    let apply = Primitive::from_kernel("equalise", &inputs, &[Output::Component], &[], |k| {
        let bin = settings.bin(k.input(0).centre()).cast::<i32>();
        let last = tiles as i32 - 1;
        let ((left, right, fx), (top, bottom, fy)) = (near(k.x(), tile[0], last), near(k.y(), tile[1], last));
        let table = |column: usize, row: usize| {
            let (column, row) = ([left, right][column], [top, bottom][row]);
            k.input(1).pick(bin, row * (last + 1) + column)
        };
        let upper = (1.0 - fx) * table(0, 0) + fx * table(1, 0);
        let lower = (1.0 - fx) * table(0, 1) + fx * table(1, 1);
        vec![(1.0 - fy) * upper + fy * lower]
    })?;
    apply.with_boundary(Boundary::Clamp).one(&[picture, &tables])
}

/// Returns the nearest two tiles along an axis, and the weight of the second.
fn near<'k>(place: Whole<'k>, side: i32, last: i32) -> (Whole<'k>, Whole<'k>, Real<'k>) {
    let at = place.cast::<f32>() / side as f32 - 0.5;
    let first = at.floor();
    let tile = first.cast::<i32>();
    (tile.max(0).min(last), (tile + 1).max(0).min(last), at - first)
}
