//! Plans: how an effect is computed.
//!
//! A [`Plan`] lists the functors behind some pictures as items, and transforms the list. Regions of interest
//! propagate backwards, horizontal moving averages are transposed, and pairs of transpositions cancel. Then
//! every item is lowered to nodes of the graph in the form that suits its indexers. The planner of the graph
//! decides which items fuse into one kernel. The exception is an item that ends a stage: its images are
//! computed before the next item is lowered.
//!
//! Each technique has a switch in [`Options`]. [`Plan::explain`] reports where each was used.

mod evaluate;
mod hosts;
mod items;
mod ledger;
mod lower;
mod measure;
mod memory;
mod options;
mod order;
mod quantise;
mod regions;
mod rows;
mod tiles;
mod transpose;

pub use measure::{Gain, KernelTime, gains};
pub use options::{Options, Switch};
pub(crate) use rows::{RowPass, bands, read_u8, unknown};

use crate::functor::{Axis, PixelDependence, Primitive, Reach, reported};
use crate::graph::{Frame, Picture, allocated, uploaded};
use crate::image::{Image, Plane, Rect, Sample, reserved};
use crate::{Error, Result};
use broadloom_device::{Device, Element, Stream};
use broadloom_graph::{AxisMap, Combine, Context, Node, Shape, Summary, Template};
use broadloom_scalar::{Literal, Type};
use broadloom_skeleton::Tile;
use broadloom_skeleton::cost::{Costs, Each, LARGE};
use items::{Item, Items, Port, Work};
use ledger::Ledger;
use lower::{CallSite, ReadPart, axes, cropped, distance};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// An effect that is ready to be computed.
#[derive(Debug)]
pub struct Plan {
    context: Context,
    options: Options,
    items: Items,
    results: Vec<(Picture, Rect)>,
    notes: Vec<String>,
    /// Minimum memory of the graph, in bytes.
    least_bytes: u64,
    /// Items after which a stage ends, to save memory.
    cuts: OnceLock<BTreeSet<usize>>,
    /// State of the plan between runs.
    again: Mutex<RepeatState>,
    /// True if the results are not computed before they are read.
    is_lazy: bool,
}

/// State of a plan that runs several times.
#[derive(Debug, Default)]
enum RepeatState {
    /// The plan has not run.
    #[default]
    Never,
    /// The plan has run once, and its functors were lowered.
    Once,
    /// A template computes the images. Nothing is lowered any more.
    Ready(Arc<Template>),
    /// No template of the plan can be made.
    Impossible,
}

/// A plan as text: a line for each decision, and the kernels.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Decisions of the optimiser, in the order of the functors.
    pub notes: Vec<String>,
    /// Kernels of each stage.
    pub stages: Vec<Summary>,
    /// Maximum of device memory in use at any time, in bytes. It includes copies of host images, arrays that
    /// stages leave for later ones, and the needs of the kernels of a stage.
    pub peak_bytes: u64,
    /// Minimum memory of the graph, in bytes. Its functors run one after the other in an order that needs
    /// little memory, each with its inputs and its results.
    pub least_bytes: u64,
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

    /// Returns the PTX of all kernels.
    pub fn ptx(&self) -> Result<String> {
        let texts = self.stages.iter().map(Summary::ptx).collect::<std::result::Result<Vec<String>, _>>()?;
        Ok(texts.join("\n"))
    }

    /// Returns the kernels with their sizes and their PTX. Plans with equal kernels run alike.
    pub(crate) fn kernels_in_full(&self) -> Result<String> {
        let summaries: String = self.stages.iter().map(Summary::text).collect();
        Ok(summaries + &self.ptx()?)
    }

    /// Returns the explanation as text.
    pub fn text(&self) -> String {
        self.text_with(Summary::text)
    }

    /// Returns the explanation as text, with the estimated time of each kernel on a device.
    pub fn text_on(&self, device: &Device) -> String {
        self.text_with(|stage| stage.text_on(device))
    }

    fn text_with(&self, shown: impl Fn(&Summary) -> String) -> String {
        let mut text = String::new();
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        for (number, stage) in self.stages.iter().enumerate() {
            let _ = write!(text, "stage {number}: {}", shown(stage));
        }
        text
    }
}

/// Computes stages, explains them, or measures their kernels.
enum Mode<'a> {
    Run,
    Explain(&'a mut ExplainedStages),
    Measure(&'a mut Vec<(Summary, Vec<Duration>)>),
    /// Computes stages and adds up their times.
    Time(&'a mut Duration),
}

/// Stages of a plan that is explained.
#[derive(Default)]
struct ExplainedStages {
    stages: Vec<Summary>,
    peak_bytes: u64,
}

impl Mode<'_> {
    /// Ends a stage: computes these arrays into memory. Arrays of `held` bytes are already in memory.
    fn stage(&mut self, context: &Context, nodes: &mut [Node], held: u64) -> Result<()> {
        match self {
            Mode::Run => Ok(context.evaluate(nodes)?),
            Mode::Time(time) => {
                let wait = || context.device().synchronise().map_err(broadloom_graph::Error::from);
                wait()?;
                let start = Instant::now();
                context.evaluate(nodes)?;
                wait()?;
                **time += start.elapsed();
                Ok(())
            }
            Mode::Measure(stages) => {
                stages.push(context.measure(nodes)?);
                Ok(())
            }
            Mode::Explain(told) => {
                let summary = context.explain(nodes)?;
                told.peak_bytes = told.peak_bytes.max(held + summary.peak_bytes);
                told.stages.push(summary);
                for node in nodes.iter_mut() {
                    *node = allocated(context, node.ty(), node.shape().clone())?;
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
        let least_bytes = least(items.clone(), &wanted);
        let context = first.context().with_chains(options.chains()).with_single_positions(options.several == Switch::Off);
        let mut notes = vec![];
        transpose::insert(&mut items, options, &mut notes);
        if options.cancel != Switch::Off {
            transpose::cancel(&mut items, &mut notes);
        }
        regions::flow(&mut items, &wanted, options.realign.decides(|| true));
        if options.order.decides(|| true) {
            order::least_memory(&mut items);
        }
        let results = results.to_vec();
        let cuts = OnceLock::new();
        Ok(Plan { context, options: *options, items, results, notes, least_bytes, cuts, again: Mutex::default(), is_lazy: false })
    }

    /// Computes the images. Planes are named by their indices. Images that need more memory than the options
    /// allow are computed in tiles.
    pub fn run(&self) -> Result<Vec<Image>> {
        self.run_with(&mut |_, _| {})
    }

    /// Computes the images as [`Plan::run`] does. After each tile, calls `progress` with the number of
    /// finished tiles and the total.
    pub fn run_with(&self, progress: &mut dyn FnMut(usize, usize)) -> Result<Vec<Image>> {
        if !self.fits() {
            return self.run_tiles(progress);
        }
        let nodes = self.nodes()?;
        nodes.iter().zip(&self.results).map(|(node, (_, region))| image(node, *region)).collect()
    }

    /// Computes the images as arrays on the device, with the axes component, row, column. Does not wait for
    /// the device. The second run makes a template of the graph. It and all later runs only launch kernels.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let sources = self.sources();
        let mut again = self.again.lock().unwrap_or_else(PoisonError::into_inner);
        *again = match std::mem::take(&mut *again) {
            RepeatState::Never => RepeatState::Once,
            RepeatState::Once => {
                self.template(&sources).map_or(RepeatState::Impossible, |template| RepeatState::Ready(Arc::new(template)))
            }
            other => other,
        };
        let template = match &*again {
            RepeatState::Ready(template) => Some(template.clone()),
            RepeatState::Never | RepeatState::Once | RepeatState::Impossible => None,
        };
        drop(again);
        match template {
            Some(template) => Ok(template.call(&sources)?),
            None => self.lower(&mut Mode::Run, &mut vec![], &[]),
        }
    }

    /// Returns the arrays that are already in memory, in the order of their items.
    fn sources(&self) -> Vec<Node> {
        let ready = |item: &Item| match &item.work {
            Work::Source(node) if node.buffer().is_some() => Some(node.clone()),
            Work::Source(_) | Work::Host(_) | Work::Functor(_) | Work::Whole(_) | Work::Transpose => None,
        };
        self.items.items.iter().filter_map(ready).collect()
    }

    /// Makes a template of the graph as a function of its sources; `None` if the graph is not such a
    /// function.
    fn template(&self, sources: &[Node]) -> Option<Template> {
        let is_host = |item: &Item| matches!(item.work, Work::Host(_));
        if sources.is_empty() || self.options.check || self.items.items.iter().any(is_host) {
            return None;
        }
        let lowered = |symbols: &[Node]| {
            let failed = |error: Error| broadloom_graph::Error::Plan { what: "an effect".into(), reason: error.to_string() };
            self.lower(&mut Mode::Run, &mut vec![], symbols).map_err(failed)
        };
        self.context.template_of_sizes(sources, lowered).ok()
    }

    /// Returns the decisions and the kernels. Allocates memory and computes nothing.
    pub fn explain(&self) -> Result<Explanation> {
        let (mut told, mut notes) = (ExplainedStages::default(), self.notes.clone());
        self.lower(&mut Mode::Explain(&mut told), &mut notes, &[])?;
        let ExplainedStages { stages, peak_bytes, .. } = told;
        Ok(Explanation { notes, stages, peak_bytes, least_bytes: self.least_bytes })
    }

    /// Returns the number of remaining transpositions.
    pub fn transpositions(&self) -> usize {
        self.items.items.iter().filter(|item| matches!(item.work, Work::Transpose)).count()
    }

    /// Lowers all items. Symbols, if given, replace the [sources](Plan::sources).
    fn lower(&self, mode: &mut Mode<'_>, notes: &mut Vec<String>, symbols: &[Node]) -> Result<Vec<Node>> {
        self.lower_with(self.cuts()?, mode, notes, symbols)
    }

    /// Lowers all items, and ends a stage after the items in `cuts`.
    fn lower_with(
        &self,
        cuts: &BTreeSet<usize>,
        mode: &mut Mode<'_>,
        notes: &mut Vec<String>,
        symbols: &[Node],
    ) -> Result<Vec<Node>> {
        let items = &self.items.items;
        let mut symbols = symbols.iter();
        let splits_components = Costs::of(self.context.device().machine()).splits_components();
        let splits = self.options.chain.decides(|| splits_components);
        let apart = self.items.apart();
        let relayed = self.relayed();
        let mut uses = self.items.uses();
        let mut values: Vec<Vec<Node>> = vec![vec![]; items.len()];
        let mut ledger = Ledger::new(items.len());
        for (number, item) in items.iter().enumerate() {
            let needed = item.needed.unwrap_or(item.bounds);
            let part = |port: &Port, values: &[Vec<Node>]| {
                let source = &items[port.item];
                let (region, bounds) = (source.needed.unwrap_or(source.bounds), source.bounds);
                ReadPart { node: values[port.item][port.output].clone(), region, bounds, lines: relayed[port.item] }
            };
            let mut outputs = match &item.work {
                Work::Source(node) => {
                    let symbol = if node.buffer().is_some() { symbols.next() } else { None };
                    vec![cropped(symbol.unwrap_or(node), item.bounds, needed, false)?]
                }
                Work::Host(image) => {
                    let is_copied = !matches!(mode, Mode::Explain(_));
                    vec![uploaded(&self.context, &image.view(needed)?, is_copied)?]
                }
                Work::Transpose => {
                    let input = part(&item.inputs[0], &values);
                    let extents = input.node.shape().extents().to_vec();
                    let maps = [AxisMap::same(0), AxisMap::same(2), AxisMap::same(1)];
                    let shape = Shape::from([extents[0], extents[2], extents[1]]);
                    let turned = input.node.affine("transpose", &maps, shape, None)?;
                    // The result may have fewer rows than the input, if other consumers need more of the
                    // input.
                    vec![cropped(&turned, input.region, needed, item.transposed)?]
                }
                Work::Whole(whole) => {
                    let parts: Vec<ReadPart> = item.inputs.iter().map(|port| part(port, &values)).collect();
                    let mut inputs: Vec<Node> = parts.iter().map(|part| part.node.clone()).collect();
                    let seen = whole.window.map(|_| format!("its window over {needed}"));
                    notes.push(format!("{}: of {}", whole.name, seen.as_deref().unwrap_or("whole images")));
                    let origin = parts.first().map_or([0, 0], |part| distance(part.region, needed));
                    let size = [needed.height as usize, needed.width as usize];
                    let wanted = lower::shape(item.outputs[0], needed, false);
                    let on_host = whole.rows.as_ref().is_some_and(|rows| rows.on_host);
                    if on_host {
                        let alive = (0..number).filter(|item| !values[*item].is_empty());
                        mode.stage(&self.context, &mut inputs, ledger.held(alive))?;
                    }
                    let node = match mode {
                        Mode::Explain(_) if on_host => allocated(&self.context, Type::F32, wanted.clone())?,
                        _ => (whole.make)(&inputs, &Frame { origin, size })?,
                    };
                    if node.ty() != Type::F32 || node.shape().extents() != wanted.extents() {
                        let reason = format!("it makes an array of `{}` with the shape {}", node.ty(), node.shape());
                        return Err(Error::Call { name: whole.name.clone(), reason });
                    }
                    vec![node]
                }
                Work::Functor(primitive) => {
                    let components = match primitive.code.outputs.first() {
                        Some(crate::functor::Output::Component) => item.outputs.first().copied().unwrap_or(1),
                        _ => 1,
                    };
                    let is_large = components as u64 * needed.area() >= LARGE as u64;
                    let in_relay = relayed[number] || item.inputs.iter().any(|port| relayed[port.item]);
                    let site = CallSite {
                        context: &self.context,
                        primitive,
                        parts: item.inputs.iter().map(|port| part(port, &values)).collect(),
                        components,
                        bounds: item.bounds,
                        region: needed,
                        transposed: item.transposed,
                        splits,
                        alone: apart[number] && !in_relay && self.options.chain.decides(|| splits_components && is_large),
                        component: None,
                    };
                    self.call(&site, mode, notes)?
                }
            };
            let ends = match &item.work {
                Work::Source(_) | Work::Host(_) => false,
                Work::Transpose => true,
                Work::Whole(_) => self.options.fuse == Switch::Off,
                Work::Functor(primitive) => {
                    self.options.fuse == Switch::Off || self.options.contract == Switch::Off && !primitive.is_point()
                }
            };
            match &item.work {
                Work::Host(image) => ledger.settled(number, image.view(needed)?.bytes()),
                Work::Source(_) | Work::Transpose | Work::Whole(_) | Work::Functor(_) => ledger.pending(number, &item.inputs),
            }
            let alive = |values: &[Vec<Node>]| (0..number).filter(|item| !values[*item].is_empty()).collect::<Vec<usize>>();
            if ends {
                let held = ledger.held(alive(&values).into_iter().chain([number]));
                mode.stage(&self.context, &mut outputs, held)?;
                ledger.settled(number, outputs.iter().map(ledger::bytes_of).sum());
            }
            for port in &item.inputs {
                uses[port.item] -= 1;
                if uses[port.item] == 0 {
                    values[port.item].clear();
                }
            }
            values[number] = outputs;
            if cuts.contains(&number) {
                let held = ledger.held(alive(&values).into_iter().chain([number]));
                self.cut(number, &mut values, held, mode, &mut ledger)?;
            }
        }
        let held = ledger.held(self.items.results.iter().map(|port| port.item));
        let mut results = vec![];
        for (port, (_, region)) in self.items.results.iter().zip(&self.results) {
            let item = &items[port.item];
            let from = item.needed.unwrap_or(item.bounds);
            results.push(cropped(&values[port.item][port.output], from, *region, false)?);
        }
        drop(values);
        if !self.is_lazy {
            mode.stage(&self.context, &mut results, held)?;
        }
        Ok(results)
    }

    /// Ends a stage after an item. Afterwards, everything that is read later is in memory, and nothing else.
    fn cut(&self, number: usize, values: &mut [Vec<Node>], held: u64, mode: &mut Mode<'_>, ledger: &mut Ledger) -> Result<()> {
        let later = self.items.items[number + 1..].iter().flat_map(|item| &item.inputs).chain(&self.items.results);
        let ports: BTreeSet<(usize, usize)> =
            later.filter(|port| !values[port.item].is_empty()).map(|port| (port.item, port.output)).collect();
        let is_pending = |(item, output): &(usize, usize)| values[*item][*output].buffer().is_none();
        let ports: Vec<(usize, usize)> = ports.into_iter().filter(is_pending).collect();
        let mut nodes: Vec<Node> = ports.iter().map(|(item, output)| values[*item][*output].clone()).collect();
        mode.stage(&self.context, &mut nodes, held)?;
        for item in ports.iter().map(|port| port.0).collect::<BTreeSet<usize>>() {
            let own = ports.iter().zip(&nodes).filter(|(port, _)| port.0 == item);
            let own: Vec<(usize, &Node)> = own.map(|(port, node)| (port.1, node)).collect();
            // Outputs that are no longer read would keep their inputs alive.
            values[item].fill(own[0].1.clone());
            own.iter().for_each(|(output, node)| values[item][*output] = (*node).clone());
            ledger.settled(item, own.iter().map(|(_, node)| ledger::bytes_of(node)).sum());
        }
        Ok(())
    }

    /// Returns for each item whether its lines are computed on demand and kept in the cache of a core.
    fn relayed(&self) -> Vec<bool> {
        let costs = Costs::of(self.context.device().machine());
        let is_fused = self.options.fuse != Switch::Off && self.options.contract != Switch::Off;
        let is_good = |item: &Item| {
            let region = item.needed.unwrap_or(item.bounds);
            let (components, bytes) = (item.outputs.iter().sum::<usize>() as u64, Type::F32.bytes());
            let is_large = components * region.area() >= LARGE as u64;
            costs.relays(u64::from(region.width) * u64::from(bytes)) && self.options.chain.decides(|| is_large)
        };
        let lines = self.items.lines().into_iter().zip(&self.items.items);
        lines.map(|(lines, item)| lines && is_fused && is_good(item)).collect()
    }

    /// Lowers a call in the form that suits it.
    fn call(&self, site: &CallSite<'_>, mode: &mut Mode<'_>, notes: &mut Vec<String>) -> Result<Vec<Node>> {
        let primitive = site.primitive;
        let name = primitive.name();
        let turned = if site.transposed { ", transposed" } else { "" };
        let trace = match &primitive.code.nature {
            PixelDependence::Parallel(trace) => trace,
            PixelDependence::Moving(motion) => {
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
                let lines = if site.parts.iter().any(|part| part.lines) { " of lines in the cache" } else { "" };
                notes.push(format!("{name}: reads at computed places{lines} over {}{turned}", site.region));
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

    /// Returns the number of parts into which lines are cut. It gives work to all cores while keeping the
    /// cost of recomputing states low.
    fn parts(&self, site: &CallSite<'_>, axis: Axis, window: u32) -> usize {
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

    /// Returns the tile for staging the windows of a call in shared memory; `None` if they are not staged.
    fn tile(&self, site: &CallSite<'_>, reach: Reach) -> Option<Tile> {
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
        // A flat window shares most in a wide tile, a tall window in a high tile.
        if several && self.options.shape.decides(|| rows.0 + rows.1 == 0 || columns.0 + columns.1 == 0) {
            tile = match rows.0 + rows.1 <= columns.0 + columns.1 {
                true => Tile { columns: largest.columns.max(2), rows: 1 },
                false => Tile { columns: 1, rows: largest.rows.max(2) },
            };
        }
        Some(tile)
    }
}

/// Returns the bytes that a graph needs if each functor is computed on its own, without temporary arrays.
fn least(mut items: Items, wanted: &[Rect]) -> u64 {
    regions::flow(&mut items, wanted, false);
    order::least_memory(&mut items);
    items.least()
}

/// Maximum extent of a window, without the current pixel, for which each pixel reads the whole window.
const SHORT_WINDOW: u32 = 4;
/// Lines of moving averages per core: several blocks of 32 on vectors, otherwise half of all threads of a
/// core.
const LINES_PER_CORE: Each<u64> = Each { vectors: 128, threads: 1024 };
/// Minimum number of windows in a part of a line.
const SPLIT_WINDOWS: usize = 8;
/// Maximum number of parts of a line.
const MOST_PARTS: usize = 1024;
/// Minimum number of pixels of a window for staging.
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

/// Reads an array of `f32`, or of integers of 8 or 16 bits, as an image, plane by plane.
fn image(node: &Node, region: Rect) -> Result<Image> {
    match node.ty() {
        Type::U8 => image_of::<u8>(node, region),
        Type::U16 => image_of::<u16>(node, region),
        _ => image_of::<f32>(node, region),
    }
}

fn image_of<T: Sample + Element>(node: &Node, region: Rect) -> Result<Image> {
    let buffer = node.evaluate()?;
    let all = buffer.view::<T>();
    let size = region.area() as usize;
    let mut planes = vec![];
    for number in 0..node.shape().extents()[0] {
        let part = all.as_ref().and_then(|all| all.slice(number * size, size));
        let part = part.ok_or_else(|| Error::Call { name: "picture".into(), reason: "no samples".into() })?;
        let mut samples = reserved::<T>(size as u64)?;
        samples.resize(size, T::default());
        part.read_into(Stream::default(), &mut samples).map_err(broadloom_graph::Error::from)?;
        planes.push(Plane::new(&number.to_string(), region.width, region.height, samples)?);
    }
    Ok(Image::new(region, planes)?)
}
