//! Effects by name, on a device.

use super::*;
use crate::catalogue::{EffectError, Engine, Inputs, Settings, Step};
use crate::file::Cube;
use crate::image::{Image, Plane, SampleType};
use crate::plan::{Options, Plan};
use crate::{Boundary, Error, Picture, reference};
use broadloom_graph::Context;
use broadloom_skeleton::Rule;

/// Runs effects of the catalogue on a device.
#[derive(Clone, Debug)]
pub struct OnDevice {
    context: Context,
    options: Options,
}

impl OnDevice {
    /// Makes an engine for a device, with options of the optimiser.
    pub fn new(context: &Context, options: Options) -> OnDevice {
        OnDevice { context: context.clone(), options }
    }
}

impl Engine for OnDevice {
    fn run(&mut self, step: &Step, inputs: &[Image]) -> Result<Image, EffectError> {
        run(&self.context, step, inputs, &self.options)
    }
}

/// A run of an effect.
struct Run<'a> {
    context: &'a Context,
    settings: &'a Settings,
    options: &'a Options,
    /// The image that the effect changes; of frames, the middle one.
    image: &'a Image,
}

type Outcome = Result<Image, EffectError>;

/// Computes an effect. Samples of the result are `f32`.
pub fn run(context: &Context, settings: &Settings, inputs: &[Image], options: &Options) -> Outcome {
    let effect = settings.effect();
    settings.complete()?;
    reference::check(settings, inputs)?;
    let image = &inputs[inputs.len() / 2 * usize::from(matches!(effect.inputs, Inputs::Frames(_)))];
    let run = Run { context, settings, options, image };
    let boundary = boundary(settings);
    let number = |name: &str| settings.number(name) as f32;
    let whole = |name: &str| settings.integer(name).clamp(0, i64::from(u32::MAX)) as u32;
    match effect.name {
        "bilateral" => {
            let (space, range) = (number("sigma_space"), number("sigma_range"));
            run.each(|x| bilateral(x, whole("radius"), space, range, boundary))
        }
        "bilateral_grid" => {
            let (low, high) = reference::range(settings)?;
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
            run.each_color(|x| clahe(x, &Clahe { tiles, clip, bins, low, high }, boundary, options))
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
        "tone_map" => run.each(|x| tone_map(x, number("exposure"))),
        "unsharp" => run.each(|x| unsharp(x, settings.number("sigma"), number("amount"), boundary)),
        "warp" => {
            let names: Vec<&str> = inputs[1].names().take(2).collect();
            if names.len() < 2 {
                let reason = "its field needs two planes: the displacement along x and along y".to_owned();
                return Err(EffectError::Inputs { effect: effect.name, reason });
            }
            let field = run.picture(&inputs[1].select(&names)?)?;
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

/// The place of red in the pattern of the settings.
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
        match error {
            Error::Image(error) => EffectError::Image(error),
            other => EffectError::Device { effect: self.settings.effect().name.to_owned(), reason: other.to_string() },
        }
    }

    fn picture(&self, image: &Image) -> Result<Picture, EffectError> {
        Picture::new(self.context, image).map_err(|error| self.failed(error))
    }

    fn computed(&self, picture: &Picture) -> Outcome {
        let images = Plan::new(&[(picture.clone(), picture.bounds())], self.options).and_then(|plan| plan.run());
        let mut images = images.map_err(|error| self.failed(error))?;
        let none = || EffectError::Device { effect: self.settings.effect().name.to_owned(), reason: "no result".into() };
        images.pop().ok_or_else(none)
    }

    /// Computes a function of some planes. Returns its planes with other names.
    fn planes(&self, indices: &[usize], names: &[&str], function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        let all = self.image.planes();
        let chosen: Vec<&str> = indices.iter().map(|index| all[*index].name()).collect();
        let picture = self.picture(&self.image.select(&chosen)?)?;
        let result = self.computed(&function(&picture).map_err(|error| self.failed(error))?)?;
        let named = result.planes().iter().zip(names).map(|(plane, name)| plane.clone().renamed(name));
        Ok(Image::new(result.bounds(), named.collect::<Vec<Plane>>())?.with_color(self.image.color()))
    }

    /// Changes some planes; the others stay, as `f32`.
    fn some(&self, indices: &[usize], function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        let all = self.image.planes();
        if indices.is_empty() {
            return Ok(self.image.converted(SampleType::F32));
        }
        let names: Vec<&str> = indices.iter().map(|index| all[*index].name()).collect();
        let changed = self.planes(indices, &names, function)?;
        let plane = |(index, plane): (usize, &Plane)| match indices.iter().position(|changed| *changed == index) {
            Some(place) => changed.planes()[place].clone(),
            None => plane.converted(SampleType::F32),
        };
        let planes = all.iter().enumerate().map(plane).collect();
        Ok(Image::new(changed.bounds(), planes)?.with_color(self.image.color()))
    }

    /// Changes all planes.
    fn each(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        self.some(&(0..self.image.planes().len()).collect::<Vec<usize>>(), function)
    }

    /// Changes all planes but alpha.
    fn each_color(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        let planes = self.image.planes().iter().enumerate();
        let indices: Vec<usize> = planes.filter(|(_, plane)| plane.channel() != "A").map(|(index, _)| index).collect();
        self.some(&indices, function)
    }

    /// Changes red, green and blue.
    fn colors(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        let indices = reference::colors(self.settings.effect().name, self.image)?;
        self.some(&indices, function)
    }

    /// Makes one plane, `Y`, of all.
    fn to_one(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        self.planes(&(0..self.image.planes().len()).collect::<Vec<usize>>(), &["Y"], function)
    }

    /// Makes red, green and blue of the one plane of a sensor.
    fn sensor(&self, function: impl FnOnce(&Picture) -> crate::Result<Picture>) -> Outcome {
        match self.image.planes().len() {
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
        if self.settings.number("black") == self.settings.number("white") {
            return Err(self.bad("white", "it must differ from black"));
        }
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
        self.sensor(|x| camera(x, &settings, boundary))
    }

    fn key(&self) -> Outcome {
        let number = |name: &str| self.settings.number(name) as f32;
        let color = self.settings.numbers("color");
        let settings = ColourKey {
            color: [color[0] as f32, color[1] as f32, color[2] as f32],
            tolerance: number("tolerance"),
            softness: number("softness"),
            spill: number("spill"),
            premultiply: self.settings.choice("premultiply") == "yes",
        };
        if settings.color[0] == settings.color[1] && settings.color[1] == settings.color[2] {
            return Err(self.bad("color", "it must not be grey"));
        }
        let [red, green, blue] = reference::colors(self.settings.effect().name, self.image)?;
        let all = self.image.planes();
        let layer = all[red].layer();
        let alpha_name = if layer.is_empty() { "A".to_owned() } else { format!("{layer}.A") };
        if let Some(alpha) = all.iter().position(|plane| plane.name() == alpha_name) {
            return self.some(&[red, green, blue, alpha], |x| key(x, &settings));
        }
        // An image without alpha is opaque.
        let (width, height) = (self.image.width(), self.image.height());
        let opaque = Plane::new(&alpha_name, width, height, vec![1.0f32; self.image.bounds().area() as usize])?;
        let planes = all.iter().cloned().chain([opaque]).collect();
        let image = Image::new(self.image.bounds(), planes)?.with_color(self.image.color());
        Run { image: &image, ..*self }.some(&[red, green, blue, all.len()], |x| key(x, &settings))
    }

    fn laplacian(&self, boundary: Boundary) -> Outcome {
        let number = |name: &str| self.settings.number(name) as f32;
        let settings = LocalLaplacian {
            copies: self.settings.integer("levels") as u32,
            pyramid: self.settings.integer("pyramid") as u32,
            alpha: number("alpha"),
            beta: number("beta"),
        };
        match reference::colors(self.settings.effect().name, self.image) {
            Ok(indices) => self.some(&indices, |x| detail(x, &luma(x)?, &settings, boundary)),
            Err(_) => self.each(|x| detail(x, &mean_of_components(x)?, &settings, boundary)),
        }
    }
}

/// The brightness of red, green and blue.
fn luma(picture: &Picture) -> crate::Result<Picture> {
    use crate::functor::{Indexer, Output, Primitive};
    let inputs = [Indexer::point().pixel(3)];
    let functor = Primitive::from_kernel("luma", &inputs, &[Output::Pixel(1)], &[], |k| {
        let [r, g, b] = [0, 1, 2].map(|component| k.input(0).component(component).centre());
        vec![r * 0.299 + g * 0.587 + b * 0.114]
    })?;
    functor.one(&[picture])
}

/// Colours with the brightness that the local Laplacian filter gives.
fn detail(picture: &Picture, brightness: &Picture, settings: &LocalLaplacian, boundary: Boundary) -> crate::Result<Picture> {
    let bright = local_laplacian(brightness, settings, boundary)?;
    let functor = crate::functor::Primitive::point("recolour", 3, |x| x[1] / (x[2] + 0.01) * (x[0] + 0.01))?;
    functor.one(&[picture, &bright, brightness])
}
