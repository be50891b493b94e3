//! Effects by name, on a device.

use super::*;
use crate::catalogue::{Chain, EffectError, Engine, Inputs, Settings, Step, chosen_planes, only_named, other_size};
use crate::file::Cube;
use crate::image::{Alpha, Image};
use crate::plan::{self, Explanation, Options, Plan};
use crate::{Boundary, Error, Picture, reference};
use broadloom_graph::Context;
use broadloom_skeleton::Rule;

/// Engine that runs effects of the catalogue on a device.
#[derive(Clone, Debug)]
pub struct OnDevice {
    context: Context,
    options: Options,
}

impl OnDevice {
    /// Creates an engine for a device, with options of the optimiser.
    pub fn new(context: &Context, options: Options) -> OnDevice {
        OnDevice { context: context.clone(), options }
    }

    /// Explains the plan of a chain; `None` if it has no planes to compute.
    fn explanation(&self, chain: &Chain<'_>) -> Result<Option<Explanation>, EffectError> {
        let layers = chained(&self.context, chain, &self.options)?;
        let wanted: Vec<(Picture, crate::Rect)> =
            layers.pictures().into_iter().map(|picture| (picture, layers.bounds())).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let told = Plan::new(&wanted, &self.options).and_then(|plan| plan.explain());
        told.map(Some).map_err(|error| failed(&names(chain), error))
    }
}

impl Engine for OnDevice {
    fn run(&mut self, step: &Step, inputs: &[Image]) -> Result<Image, EffectError> {
        run(&self.context, step, inputs, &self.options)
    }

    fn run_chain(&mut self, chain: &Chain<'_>, progress: &mut dyn FnMut(usize, usize)) -> Result<Image, EffectError> {
        let layers = chained(&self.context, chain, &self.options)?;
        layers.image_with(&self.options, progress).map_err(|error| failed(&names(chain), error))
    }

    fn explain(&mut self, chain: &Chain<'_>) -> Result<String, EffectError> {
        Ok(self.explanation(chain)?.map_or(String::new(), |told| told.text_on(self.context.device())))
    }

    fn ptx(&mut self, chain: &Chain<'_>) -> Result<String, EffectError> {
        let texts = self.explanation(chain)?.map(|told| told.ptx()).transpose();
        Ok(texts.map_err(|error| failed(&names(chain), error))?.unwrap_or_default())
    }

    fn statistics(&mut self, chain: &Chain<'_>) -> Result<Vec<String>, EffectError> {
        let layers = chained(&self.context, chain, &self.options)?;
        statistics(&layers, &self.options).map_err(|error| failed(&names(chain), error))
    }
}

/// Returns the names of a chain's effects.
fn names(chain: &Chain<'_>) -> String {
    chain.steps.iter().map(|step| step.effect().name).collect::<Vec<&str>>().join(",")
}

/// Measures the kernels of an image and the gain of each technique.
fn statistics(layers: &Layers, options: &Options) -> crate::Result<Vec<String>> {
    let wanted: Vec<(Picture, crate::Rect)> = layers.pictures().into_iter().map(|picture| (picture, layers.bounds())).collect();
    if wanted.is_empty() {
        return Ok(vec![]);
    }
    let plan = Plan::new(&wanted, options)?;
    if !plan.fits() {
        return Ok(vec!["the image is computed in tiles, whose kernels are not measured".to_owned()]);
    }
    let (_, profiles) = plan.profile()?;
    let total: f64 = profiles.iter().map(|profile| profile.time.as_secs_f64()).sum();
    let mut lines = vec![];
    for profile in &profiles {
        let ms = profile.time.as_secs_f64() * 1e3;
        let share = 100.0 * profile.time.as_secs_f64() / total.max(1e-12);
        let bytes = (profile.kernel.bytes_read + profile.kernel.bytes_written) as f64 / 1e6;
        lines.push(format!("{:<28}{ms:>10.3} ms {share:>5.1} %  {bytes:>9.2} MB", profile.functors.join(", ")));
    }
    let gains = plan::gains(&wanted, options)?;
    for gain in gains.iter().filter(|gain| gain.changes) {
        lines.push(format!("without {:<20}{:>10.3} ms {:>6.2} ×", gain.name, gain.without.as_secs_f64() * 1e3, gain.factor()));
    }
    let unchanged: Vec<&str> = gains.iter().filter(|gain| !gain.changes).map(|gain| gain.name).collect();
    if !unchanged.is_empty() {
        lines.push(format!("the kernels are the same without {}", unchanged.join(", ")));
    }
    Ok(lines)
}

/// A run of an effect.
struct Run<'a> {
    context: &'a Context,
    settings: &'a Settings,
    /// Image that the effect changes; for frames, the middle one.
    image: &'a Layers,
}

type Outcome = Result<Layers, EffectError>;

fn failed(effect: &str, error: Error) -> EffectError {
    match error {
        Error::Image(error) => EffectError::Image(error),
        other => EffectError::Device { effect: effect.to_owned(), reason: other.to_string() },
    }
}

/// Computes an effect. Samples of changed planes are `f32`.
pub fn run(context: &Context, settings: &Settings, inputs: &[Image], options: &Options) -> Result<Image, EffectError> {
    let layers: Vec<Layers> = inputs.iter().map(Layers::from).collect();
    let result = apply(context, settings, &layers, options)?;
    result.image(options).map_err(|error| failed(settings.effect().name, error))
}

/// Builds the graph of a chain. Computes nothing, except for `canny`.
pub fn chained(context: &Context, chain: &Chain<'_>, options: &Options) -> Outcome {
    let Chain { steps, inputs, further, planes, region } = *chain;
    let mut further = further.iter().map(Layers::from);
    let mut result: Option<Layers> = None;
    for step in steps {
        let is_of_frames = matches!(step.effect().inputs, Inputs::Frames(_));
        let mut inputs: Vec<Layers> = match result {
            None => inputs.iter().map(Layers::from).collect(),
            Some(image) => {
                let more = match step.effect().inputs {
                    Inputs::Images(roles) => roles.len() - 1,
                    Inputs::Frames(_) => 0,
                };
                std::iter::once(image).chain(further.by_ref().take(more)).collect()
            }
        };
        let Some(whole) = inputs.get(inputs.len() / 2 * usize::from(is_of_frames)).cloned() else {
            return Err(EffectError::Inputs { effect: step.effect().name, reason: "there is no image".to_owned() });
        };
        let chosen = chosen_planes(step, planes, whole.names(), whole.numeric())?;
        let Some(planes) = chosen else {
            result = Some(apply(context, step, &inputs, options)?);
            continue;
        };
        let changed = if is_of_frames { inputs.len() } else { 1 };
        for image in &mut inputs[..changed] {
            let there = image.names();
            let place = |name: &String| {
                let missing = || crate::ImageError::NoPlane {
                    name: name.clone(),
                    there: there.iter().map(|name| (*name).to_owned()).collect(),
                };
                there.iter().position(|own| own == name).ok_or_else(missing)
            };
            let indices = planes.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
            *image = image.select(&indices);
        }
        let part = apply(context, step, &inputs, options)?;
        if part.bounds() != whole.bounds() {
            return Err(other_size(step, &whole.names(), &planes));
        }
        let named: Vec<&str> = planes.iter().map(String::as_str).collect();
        only_named(step, &whole.names(), &named, part.names().into_iter())?;
        result = Some(whole.replaced(&named, part));
    }
    let result =
        result.ok_or(EffectError::Inputs { effect: "effect", reason: "a chain needs at least one effect".to_owned() })?;
    match region {
        Some(region) => Ok(result.within(region)?),
        None => Ok(result),
    }
}

/// Builds the graph of an effect. Computes nothing, except for `canny`.
pub fn apply(context: &Context, settings: &Settings, inputs: &[Layers], options: &Options) -> Outcome {
    let effect = settings.effect();
    settings.complete()?;
    let shapes: Vec<(crate::Rect, Vec<&str>)> = inputs.iter().map(|input| (input.bounds(), input.names())).collect();
    reference::check(settings, &shapes)?;
    let image = &inputs[inputs.len() / 2 * usize::from(matches!(effect.inputs, Inputs::Frames(_)))];
    let run = Run { context, settings, image };
    let boundary = boundary(settings);
    let number = |name: &str| settings.number(name) as f32;
    let whole = |name: &str| settings.integer(name).clamp(0, i64::from(u32::MAX)) as u32;
    match effect.name {
        "bilateral" => {
            let (space, range) = (number("sigma_space"), number("sigma_range"));
            run.each(|x| bilateral(x, whole("radius"), space, range, boundary))
        }
        "bilateral_grid" => {
            let (low, high) = reference::grid_range(settings)?;
            let grid = Grid { cell: whole("cell"), range: settings.number("range"), low, high };
            run.each(|x| bilateral_grid(x, &grid, boundary))
        }
        "box" => run.each(|x| box_blur(x, whole("radius"), boundary)),
        "camera" => run.camera(boundary),
        "canny" => {
            let (low, high) = (number("low"), number("high"));
            run.to_one(|x| canny(x, settings.number("sigma"), low, high, boundary, options))
        }
        "clahe" => {
            let (low, high) = reference::range(settings)?;
            let (tiles, clip, bins) = (whole("tiles"), settings.number("clip"), whole("bins"));
            run.each_color(|x| clahe(x, &Clahe { tiles, clip, bins, low, high }, boundary))
        }
        "close" => run.each(|x| close(x, whole("radius"), boundary)),
        "color_matrix" => {
            let mut matrix = [0.0; 9];
            matrix.iter_mut().zip(settings.numbers("matrix")).for_each(|(own, value)| *own = *value as f32);
            run.colors(|x| color_matrix(x, matrix))
        }
        "curves" => {
            let curve = reference::Curve::new(settings)?;
            let narrow = |values: &[f64]| values.iter().map(|value| *value as f32).collect();
            let curve = Curve { xs: narrow(&curve.xs), ys: narrow(&curve.ys), slopes: narrow(&curve.slopes) };
            run.each_color(|x| curves(x, &curve))
        }
        "degrain" => run.each(|x| degrain(x, whole("levels"), number("threshold"), boundary)),
        "demosaic" => {
            let pattern = bayer(settings);
            run.sensor(|x| demosaic(x, pattern, boundary))
        }
        "diffusion" => run.each(|x| diffusion(x, whole("radius"), number("mix"), boundary)),
        "dilate" => run.each(|x| extreme(x, whole("radius"), Extreme::Greatest, boundary)),
        "erode" => run.each(|x| extreme(x, whole("radius"), Extreme::Least, boundary)),
        "gaussian" => run.each(|x| gaussian(x, settings.number("sigma"), boundary)),
        "harris" => run.to_one(|x| harris(x, whole("radius"), number("k"), boundary)),
        "key" => run.key(),
        "local_laplacian" => run.laplacian(boundary),
        "lut" => {
            let cube = Cube::read(settings.file("file"))?;
            let narrow = |values: [f64; 3]| values.map(|value| value as f32);
            let table = Table {
                is_solid: cube.is_solid,
                side: cube.side,
                low: narrow(cube.low),
                high: narrow(cube.high),
                entries: cube.entries.iter().map(|entry| narrow(*entry)).collect(),
                tetrahedral: settings.choice("interpolation") == "tetrahedral",
            };
            run.colors(|x| lut(x, &table))
        }
        "median" => run.each(|x| median(x, whole("radius"), boundary)),
        "nlmeans" => {
            let (search, patch) = (whole("search") / 2, whole("patch") / 2);
            run.each(|x| nlmeans(x, search, patch, number("strength"), boundary))
        }
        "open" => run.each(|x| open(x, whole("radius"), boundary)),
        "resize" => {
            let (width, height) = reference::new_size(settings, image.bounds())?;
            let filter = match settings.choice("filter") {
                "bicubic" => Filter::Bicubic,
                "bilinear" => Filter::Bilinear,
                _ => Filter::Lanczos,
            };
            run.each(|x| resize(x, width.max(0) as usize, height.max(0) as usize, filter))
        }
        "sobel" => run.each(|x| sobel(x, boundary)),
        "temporal_degrain" => {
            let temporal = Temporal { block: whole("block"), search: whole("search"), strength: number("strength") };
            let frames = inputs.iter().map(|frame| run.picture(frame)).collect::<Result<Vec<Picture>, _>>()?;
            run.each(|_| temporal_degrain(&frames, &temporal, boundary))
        }
        "tone_map" => run.each_color(|x| tone_map(x, number("exposure"))),
        "unsharp" => run.each(|x| unsharp(x, settings.number("sigma"), number("amount"), boundary)),
        "warp" => {
            if inputs[1].names().len() < 2 {
                let reason = "its field needs two planes: the displacement along x and along y".to_owned();
                return Err(EffectError::Inputs { effect: effect.name, reason });
            }
            let field = run.picture(&inputs[1].select(&[0, 1]))?;
            run.each(|x| warp(x, &field, number("scale"), boundary))
        }
        other => Err(EffectError::UnknownEffect { name: other.to_owned(), nearest: None }),
    }
}

fn boundary(settings: &Settings) -> Boundary {
    match settings.rule() {
        Rule::Mirror => Boundary::Mirror,
        Rule::Wrap => Boundary::Wrap,
        Rule::Constant => Boundary::Constant(settings.border() as f32),
        Rule::Clamp | Rule::Inside => Boundary::Clamp,
    }
}

/// Returns the position of red in the pattern of the settings.
fn bayer(settings: &Settings) -> Bayer {
    let (column, row) = match settings.choice("pattern") {
        "bggr" => (1, 1),
        "grbg" => (1, 0),
        "gbrg" => (0, 1),
        _ => (0, 0),
    };
    Bayer { column, row }
}

impl Run<'_> {
    fn failed(&self, error: Error) -> EffectError {
        let effect = self.settings.effect().name;
        match error {
            // The functors are built in, so the settings or sizes exceed their limits.
            Error::Functor { reason, .. } => EffectError::Inputs { effect, reason },
            other => failed(effect, other),
        }
    }

    fn picture(&self, image: &Layers) -> Result<Picture, EffectError> {
        image.picture(self.context).map_err(|error| self.failed(error))
    }

    /// Applies a function to some planes. Returns the planes of its result under other names.
    fn planes(&self, indices: &[usize], names: &[&str], function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        let picture = self.picture(&self.image.select(indices))?;
        let result = function(&picture).map_err(|error| self.failed(error))?;
        Ok(self.image.with_picture(&result, names))
    }

    /// Changes some planes and keeps the others.
    fn some(&self, indices: &[usize], function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        if indices.is_empty() {
            return Ok(self.image.clone());
        }
        let all = self.image.names();
        let names: Vec<&str> = indices.iter().map(|index| all[*index]).collect();
        Ok(self.image.replaced(&names, self.planes(indices, &names, function)?))
    }

    fn count(&self) -> usize {
        self.image.names().len()
    }

    /// Changes all planes.
    fn each(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        self.some(&(0..self.count()).collect::<Vec<usize>>(), function)
    }

    /// Changes all planes but alpha.
    fn each_color(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        let names = self.image.names();
        let indices: Vec<usize> = (0..names.len()).filter(|index| reference::channel(names[*index]) != "A").collect();
        self.some(&indices, function)
    }

    /// Changes red, green and blue.
    fn colors(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        let indices = reference::colors(self.settings.effect().name, &self.image.names())?;
        self.some(&indices, function)
    }

    /// Computes one plane, `Y`, from all planes.
    fn to_one(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        self.planes(&(0..self.count()).collect::<Vec<usize>>(), &["Y"], function)
    }

    /// Computes red, green and blue from the single plane of a sensor.
    fn sensor(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        match self.count() {
            1 => self.planes(&[0], &["R", "G", "B"], function),
            count => Err(EffectError::Inputs {
                effect: self.settings.effect().name,
                reason: format!("it needs one plane with the values of a sensor; the image has {count}"),
            }),
        }
    }

    fn bad(&self, name: &str, reason: &str) -> EffectError {
        EffectError::BadValue {
            effect: self.settings.effect().name.to_owned(),
            name: name.to_owned(),
            value: self.settings.value(name).to_string(),
            reason: reason.to_owned(),
        }
    }

    fn camera(&self, boundary: Boundary) -> Outcome {
        let number = |name: &str| self.settings.number(name) as f32;
        reference::levels(self.settings)?;
        let mut matrix = [0.0; 9];
        matrix.iter_mut().zip(self.settings.numbers("matrix")).for_each(|(own, value)| *own = *value as f32);
        let settings = Camera {
            pattern: bayer(self.settings),
            levels: [number("black"), number("white")],
            gains: [number("red"), number("blue")],
            matrix,
            gamma: number("gamma"),
            contrast: number("contrast"),
            sharpen: number("sharpen"),
        };
        Ok(self.sensor(|x| camera(x, &settings, boundary))?.with_gamma(self.settings.number("gamma")))
    }

    fn key(&self) -> Outcome {
        let number = |name: &str| self.settings.number(name) as f32;
        let color = self.settings.numbers("color");
        let settings = ColourKey {
            color: [color[0] as f32, color[1] as f32, color[2] as f32],
            tolerance: number("tolerance"),
            softness: number("softness"),
            spill: number("spill"),
            factor: KeyFactor::new(self.image.alpha(), self.settings.choice("premultiply") == "yes"),
        };
        let alpha_of_result = if self.settings.choice("premultiply") == "yes" { Alpha::Associated } else { Alpha::Straight };
        if settings.color[0] == settings.color[1] && settings.color[1] == settings.color[2] {
            return Err(self.bad("color", "it must not be grey"));
        }
        let all = self.image.names();
        let [red, green, blue] = reference::colors(self.settings.effect().name, &all)?;
        let alpha_name = match reference::layer(all[red]) {
            "" => "A".to_owned(),
            layer => format!("{layer}.A"),
        };
        if let Some(alpha) = all.iter().position(|name| *name == alpha_name) {
            let keyed = self.some(&[red, green, blue, alpha], |x| key(x, &settings))?;
            return Ok(keyed.with_alpha(alpha_of_result));
        }
        // An image without alpha is opaque.
        let image = self.image.with_filled(&alpha_name, 1.0).map_err(|error| self.failed(error))?;
        let keyed = Run { image: &image, ..*self }.some(&[red, green, blue, all.len()], |x| key(x, &settings))?;
        Ok(keyed.with_alpha(alpha_of_result))
    }

    fn laplacian(&self, boundary: Boundary) -> Outcome {
        let number = |name: &str| self.settings.number(name) as f32;
        let settings = LocalLaplacian {
            copies: self.settings.integer("levels") as u32,
            pyramid: self.settings.integer("pyramid") as u32,
            alpha: number("alpha"),
            beta: number("beta"),
        };
        match reference::colors(self.settings.effect().name, &self.image.names()) {
            Ok(indices) => self.some(&indices, |x| detail(x, &luma(x)?, &settings, boundary)),
            Err(_) => self.each_color(|x| detail(x, &mean_of_components(x)?, &settings, boundary)),
        }
    }
}

/// Computes the brightness of red, green and blue.
pub fn luma(picture: &Picture) -> crate::Result<Picture> {
    use crate::functor::{Indexer, Output, Primitive};
    let inputs = [Indexer::point().pixel(3)];
    let functor = Primitive::from_kernel("luma", &inputs, &[Output::Pixel(1)], &[], |k| {
        let [r, g, b] = [0, 1, 2].map(|component| k.input(0).component(component).centre());
        vec![r * 0.299 + g * 0.587 + b * 0.114]
    })?;
    functor.one(&[picture])
}

/// Gives colours the brightness that the local Laplacian filter computes.
pub fn detail(picture: &Picture, brightness: &Picture, settings: &LocalLaplacian, boundary: Boundary) -> crate::Result<Picture> {
    let bright = local_laplacian(brightness, settings, boundary)?;
    let functor = crate::functor::Primitive::point("recolour", 3, |x| x[1] / (x[2] + 0.01) * (x[0] + 0.01))?;
    functor.one(&[picture, &bright, brightness])
}
