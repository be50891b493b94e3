//! Plans: how an effect is computed.
//!
//! A [`Plan`] lists the functors behind some pictures as items, and changes the list: regions of interest flow backwards,
//! horizontal moving averages are transposed, pairs of transpositions cancel. Then every item is lowered to nodes of the graph
//! in the form that suits its indexers. What fuses into one kernel is up to the planner of the graph, except where an item
//! ends a stage: then its images are computed before the next item is lowered.
//!
//! Each technique has a switch in [`Options`], and [`Plan::explain`] says where it was used.

mod items;
mod lower;
mod options;
mod order;
mod regions;
mod transpose;

pub use options::{Options, Switch};

use crate::functor::{Axis, Nature, Primitive, Reach, reported};
use crate::graph::Picture;
use crate::image::{Image, Plane, Rect};
use crate::{Error, Result};
use broadloom_graph::{AxisMap, Combine, Context, Node, Shape, Summary};
use broadloom_scalar::{Literal, Type};
use broadloom_skeleton::Tile;
use broadloom_skeleton::cost::{Costs, Each};
use items::{Items, Port, Work};
use lower::{Part, Site, axes, cropped};
use std::fmt::Write;

/// An effect that is ready to be computed.
#[derive(Debug)]
pub struct Plan {
    context: Context,
    options: Options,
    items: Items,
    wanted: Vec<Rect>,
    notes: Vec<String>,
}

/// A plan as text: a line for each decision, and the kernels.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Decisions of the optimiser, in the order of the functors.
    pub notes: Vec<String>,
    /// The kernels of each stage.
    pub stages: Vec<Summary>,
}

impl Explanation {
    /// Returns the number of kernels.
    pub fn kernels(&self) -> usize {
        self.stages.iter().map(|stage| stage.kernels.len()).sum()
    }

    /// Returns the bytes that all kernels read and write.
    pub fn bytes_moved(&self) -> u64 {
        self.stages.iter().map(Summary::bytes_moved).sum()
    }

    /// Returns the explanation as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        for (number, stage) in self.stages.iter().enumerate() {
            let _ = write!(text, "stage {number}: {}", stage.text());
        }
        text
    }
}

/// Computes stages, or explains them.
enum Mode<'a> {
    Run,
    Explain(&'a mut Vec<Summary>),
}

impl Mode<'_> {
    /// Ends a stage: these arrays are in memory afterwards.
    fn stage(&mut self, context: &Context, nodes: &mut [Node]) -> Result<()> {
        match self {
            Mode::Run => Ok(context.evaluate(nodes)?),
            Mode::Explain(summaries) => {
                summaries.push(context.explain(nodes)?);
                for node in nodes.iter_mut() {
                    let bytes = node.shape().count() * node.ty().bytes() as usize;
                    let buffer = context.device().allocate::<u8>(bytes).map_err(broadloom_graph::Error::from)?;
                    *node = Node::from_buffer(context, node.ty(), node.shape().clone(), buffer)?;
                }
                Ok(())
            }
        }
    }
}

impl Plan {
    /// Plans the computation of regions of pictures.
    pub fn new(results: &[(Picture, Rect)], options: &Options) -> Result<Plan> {
        let Some((first, _)) = results.first() else {
            return Err(Error::Call { name: "plan".into(), reason: "no image is asked for".into() });
        };
        for (picture, region) in results {
            if !picture.bounds().contains(*region) || region.area() == 0 {
                return Err(Error::Region { region: *region, bounds: picture.bounds() });
            }
            if !picture.context().is_same(first.context()) {
                return Err(Error::Call { name: "plan".into(), reason: "images of two devices are asked for".into() });
            }
        }
        let pictures: Vec<Picture> = results.iter().map(|(picture, _)| picture.clone()).collect();
        let wanted: Vec<Rect> = results.iter().map(|(_, region)| *region).collect();
        let mut items = Items::new(&pictures);
        let context = first.context().clone();
        let mut notes = vec![];
        transpose::insert(&mut items, options, &mut notes);
        if options.cancel != Switch::Off {
            transpose::cancel(&mut items, &mut notes);
        }
        regions::flow(&mut items, &wanted, options.realign.decides(|| true));
        if options.order.decides(|| true) {
            order::least_memory(&mut items);
        }
        Ok(Plan { context, options: *options, items, wanted, notes })
    }

    /// Computes the images. Planes are named by their numbers.
    pub fn run(&self) -> Result<Vec<Image>> {
        let nodes = self.nodes()?;
        nodes.iter().zip(&self.wanted).map(|(node, region)| image(node, *region)).collect()
    }

    /// Computes the images as arrays on the device, with the axes component, row, column. Does not wait for the device.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        self.lower(&mut Mode::Run, &mut vec![])
    }

    /// Returns the decisions and the kernels. Memory is allocated, and nothing is computed.
    pub fn explain(&self) -> Result<Explanation> {
        let (mut stages, mut notes) = (vec![], self.notes.clone());
        self.lower(&mut Mode::Explain(&mut stages), &mut notes)?;
        Ok(Explanation { notes, stages })
    }

    /// Returns how many transpositions are left.
    pub fn transpositions(&self) -> usize {
        self.items.items.iter().filter(|item| matches!(item.work, Work::Transpose)).count()
    }

    fn lower(&self, mode: &mut Mode<'_>, notes: &mut Vec<String>) -> Result<Vec<Node>> {
        let items = &self.items.items;
        let mut uses = self.items.uses();
        let mut values: Vec<Vec<Node>> = vec![vec![]; items.len()];
        for (number, item) in items.iter().enumerate() {
            let needed = item.needed.unwrap_or(item.bounds);
            let part = |port: &Port, values: &[Vec<Node>]| {
                let source = &items[port.item];
                let (region, bounds) = (source.needed.unwrap_or(source.bounds), source.bounds);
                Part { node: values[port.item][port.output].clone(), region, bounds }
            };
            let mut outputs = match &item.work {
                Work::Source(node) => vec![cropped(node, item.bounds, needed, false)?],
                Work::Transpose => {
                    let input = part(&item.inputs[0], &values);
                    let extents = input.node.shape().extents().to_vec();
                    let maps = [AxisMap::same(0), AxisMap::same(2), AxisMap::same(1)];
                    let shape = Shape::from([extents[0], extents[2], extents[1]]);
                    let turned = input.node.affine("transpose", &maps, shape, None)?;
                    // Its rows may be fewer than those of the input, where that is needed elsewhere.
                    vec![cropped(&turned, input.region, needed, item.transposed)?]
                }
                Work::Functor(primitive) => {
                    let components = match primitive.code.outputs.first() {
                        Some(crate::functor::Output::Component) => item.outputs.first().copied().unwrap_or(1),
                        _ => 1,
                    };
                    let site = Site {
                        context: &self.context,
                        primitive,
                        parts: item.inputs.iter().map(|port| part(port, &values)).collect(),
                        components,
                        bounds: item.bounds,
                        region: needed,
                        transposed: item.transposed,
                    };
                    self.call(&site, mode, notes)?
                }
            };
            let ends = match &item.work {
                Work::Source(_) => false,
                Work::Transpose => true,
                Work::Functor(primitive) => {
                    self.options.fuse == Switch::Off || self.options.contract == Switch::Off && !primitive.is_point()
                }
            };
            if ends {
                mode.stage(&self.context, &mut outputs)?;
            }
            for port in &item.inputs {
                uses[port.item] -= 1;
                if uses[port.item] == 0 {
                    values[port.item].clear();
                }
            }
            values[number] = outputs;
        }
        let mut results = vec![];
        for (port, region) in self.items.results.iter().zip(&self.wanted) {
            let item = &items[port.item];
            let from = item.needed.unwrap_or(item.bounds);
            results.push(cropped(&values[port.item][port.output], from, *region, false)?);
        }
        drop(values);
        mode.stage(&self.context, &mut results)?;
        Ok(results)
    }

    /// Lowers a call in the form that suits it.
    fn call(&self, site: &Site<'_>, mode: &mut Mode<'_>, notes: &mut Vec<String>) -> Result<Vec<Node>> {
        let primitive = site.primitive;
        let name = primitive.name();
        let turned = if site.transposed { ", transposed" } else { "" };
        let trace = match &primitive.code.nature {
            Nature::Parallel(trace) => trace,
            Nature::Moving(motion) => {
                let reach = primitive.reach().unwrap_or_default();
                let window = reach.left + reach.right + reach.above + reach.below;
                let parts = self.parts(site, motion.axis, window);
                if self.options.carry.decides(|| window > SHORT_WINDOW)
                    && let Some(results) = lower::moving::moving(site, motion, reach, parts)?
                {
                    let axis = match motion.axis {
                        Axis::Horizontal => "rows",
                        Axis::Vertical => "columns",
                    };
                    let split = if parts > 1 { format!(", in {parts} parts") } else { String::new() };
                    notes.push(format!("{name}: carries its state along {axis} over {}{split}{turned}", site.region));
                    return site.outputs(results);
                }
                &motion.whole
            }
        };
        if let Some(results) = lower::points::points(site, trace)? {
            let reads = trace.points.as_ref().map_or(0, |(_, taps)| taps.len());
            notes.push(format!("{name}: {reads} reads at known offsets over {}{turned}", site.region));
            return Ok(results);
        }
        let checked = trace.checked.as_ref().filter(|_| self.options.check);
        let function = checked.unwrap_or(&trace.function);
        let results = match primitive.reach() {
            Some(reach) => {
                let tile = self.tile(site, reach);
                match lower::window::window(site, function, reach, tile)? {
                    Some(results) => {
                        let staged = tile.map(|tile| format!(", staged in tiles of {} by {}", 32 * tile.columns, 8 * tile.rows));
                        let staged = staged.unwrap_or_default();
                        notes.push(format!("{name}: computed offsets over {}{staged}{turned}", site.region));
                        Some(results)
                    }
                    None => None,
                }
            }
            None => None,
        };
        let mut results = match results {
            Some(results) => results,
            None => {
                notes.push(format!("{name}: reads at computed places over {}{turned}", site.region));
                lower::compute::compute(site, function)?
            }
        };
        if checked.is_some()
            && let Some(report) = results.pop()
            && matches!(mode, Mode::Run)
        {
            check(primitive, &report)?;
        }
        site.outputs(results)
    }

    /// The number of parts into which lines are cut: so many that all cores have work, while computing states anew costs
    /// little.
    fn parts(&self, site: &Site<'_>, axis: Axis, window: u32) -> usize {
        let costs = Costs::of(self.context.device().machine());
        let (length, across) = match axis {
            Axis::Horizontal => (site.region.width as usize, site.region.height as usize),
            Axis::Vertical => (site.region.height as usize, site.region.width as usize),
        };
        let lines = (site.components * across) as u64;
        let wanted = costs.busy(costs.pick(LINES_PER_CORE)).div_ceil(lines.max(1)) as usize;
        let possible = (length / (SPLIT_WINDOWS * (window as usize + 1))).min(MOST_PARTS);
        match self.options.split {
            Switch::Off => 1,
            Switch::Auto => wanted.min(possible).max(1),
            Switch::On => wanted.min(possible).max(3).min(length.max(1)),
        }
    }

    /// The tile in which the windows of a call are staged.
    fn tile(&self, site: &Site<'_>, reach: Reach) -> Option<Tile> {
        let machine = self.context.device().machine();
        let values = vec![Type::F32; site.primitive.code.slots.len()];
        let [rows, columns] = axes(site.transposed, (reach.above, reach.below), (reach.left, reach.right));
        let window = [(0, 0), rows, columns];
        let reads = u64::from(rows.0 + rows.1 + 1) * u64::from(columns.0 + columns.1 + 1);
        let stages = self.options.stage.decides(|| !Costs::of(machine).in_vectors() && reads >= MANY_READS);
        if !stages {
            return None;
        }
        let several = self.options.several.decides(|| true);
        let largest = Tile::of(machine, &values, &window)?;
        let mut tile = if several { largest } else { Tile { columns: 1, rows: 1 } };
        // A flat window shares most in a wide tile, a tall one in a high tile.
        if several && self.options.shape.decides(|| rows.0 + rows.1 == 0 || columns.0 + columns.1 == 0) {
            tile = match rows.0 + rows.1 <= columns.0 + columns.1 {
                true => Tile { columns: largest.columns.max(2), rows: 1 },
                false => Tile { columns: 1, rows: largest.rows.max(2) },
            };
        }
        Some(tile)
    }
}

/// Pixels of a window besides the current one, up to which each pixel reads all of them.
const SHORT_WINDOW: u32 = 4;
/// Lines of moving averages for each core: several blocks of 32 on vectors, half of all threads that a core holds otherwise.
const LINES_PER_CORE: Each<u64> = Each { vectors: 128, threads: 1024 };
/// Windows that a part of a line has at least.
const SPLIT_WINDOWS: usize = 8;
/// Parts of a line, at most.
const MOST_PARTS: usize = 1024;
/// Pixels of a window, from which on it is worth to stage it.
const MANY_READS: u64 = 9;

/// Reads the report of a kernel in checking mode.
fn check(primitive: &Primitive, report: &Node) -> Result<()> {
    let worst = report.reduce(Combine::Max, &[0, 1, 2])?.read()?;
    let code = worst.lanes.first().and_then(|lane: &Literal| lane.as_i128()).unwrap_or(0) as i64;
    let Some((input, x, y)) = reported(code) else { return Ok(()) };
    let reach = primitive.code.inputs.get(input).and_then(|indexer| indexer.reach()).unwrap_or_default();
    let window = format!("{} left, {} right, {} above, {} below", reach.left, reach.right, reach.above, reach.below);
    Err(Error::Outside { name: primitive.name().to_owned(), input, x, y, window })
}

/// Reads an array as an image.
fn image(node: &Node, region: Rect) -> Result<Image> {
    let buffer = node.evaluate()?;
    let samples: Vec<f32> = buffer
        .view::<f32>()
        .ok_or_else(|| Error::Call { name: "picture".into(), reason: "no samples".into() })?
        .read()
        .map_err(broadloom_graph::Error::from)?;
    let size = (region.area() as usize).max(1);
    let plane =
        |(number, samples): (usize, &[f32])| Plane::new(&number.to_string(), region.width, region.height, samples.to_vec());
    let planes = samples.chunks_exact(size).enumerate().map(plane).collect::<std::result::Result<Vec<Plane>, _>>()?;
    Ok(Image::new(region, planes)?)
}
