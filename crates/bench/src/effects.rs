//! The group `effects`: image effects, each optimised, in straight translation, and against peers.
//!
//! A benchmark is a graph of functors over an image that is already on the device. Each repetition computes
//! the whole image. The judge compares tiny images with the naive reference of the effect, and large ones
//! with the straight translation. The traffic of a benchmark is the minimum for any plan: the input is read
//! once, and the result is written once.

use crate::arrays::bell;
use crate::benchmark::{Benchmark, PreparedJob, Setup, Subject, square};
use crate::error::Failure;
use crate::group;
use crate::inputs::{units, weighed};
use crate::job::{Job, Work, close};
use crate::measure::by_turns;
use broadloom::Context;
use broadloom::effect::functor::{Axis, Indexer, Output, Primitive};
use broadloom::effect::plan::{Options, Plan};
use broadloom::effect::{Boundary, Image, Picture, Rect, catalogue, effects, reference};
use std::cell::RefCell;
use std::rc::Rc;

/// A measured effect.
#[derive(Clone, Copy)]
struct Effect {
    /// The number of input planes.
    planes: usize,
    /// Returns the height of an image of a given width.
    height: fn(usize) -> usize,
    /// Builds the graph.
    build: fn(&Picture) -> broadloom::effect::Result<Picture>,
    /// The equivalent effect of the catalogue with its settings. `None` for an effect with its own reference.
    same_as: Option<&'static str>,
    /// The allowed error against the reference.
    error: f64,
}

/// The settings of the camera pipeline.
const CAMERA: effects::Camera = effects::Camera {
    pattern: effects::Bayer { column: 0, row: 0 },
    levels: [0.0, 1.0],
    gains: [1.5, 1.25],
    matrix: [1.2, -0.1, -0.1, -0.1, 1.2, -0.1, -0.1, -0.1, 1.2],
    gamma: 2.2,
    contrast: 0.25,
    sharpen: 0.5,
};

fn portrait(width: usize) -> usize {
    width * 5 / 3
}

fn portrait_text(width: usize) -> String {
    format!("{width}×{}", portrait(width))
}

fn in_color(width: usize) -> String {
    format!("{}×3", portrait_text(width))
}

macro_rules! effect {
    ($name:literal, $peer:expr, $tolerance:expr, $full:expr, $quick:expr, $shown:expr, $effect:expr) => {
        Benchmark {
            group: group::EFFECTS,
            name: $name,
            peer: $peer,
            tolerance: $tolerance,
            size: |scale| scale.fixed($full, $quick),
            shown: $shown,
            subject: &$effect,
        }
    };
}

const fn in_portrait(
    planes: usize,
    build: fn(&Picture) -> broadloom::effect::Result<Picture>,
    same_as: &'static str,
    error: f64,
) -> Effect {
    Effect { planes, height: portrait, build, same_as: Some(same_as), error }
}

static DEGRAIN: Effect = Effect {
    planes: 3,
    height: |width| width * 1545 / 2063,
    build: |x| effects::degrain(x, 4, effects::Shrinkage::soft(0.02), Boundary::Clamp),
    same_as: Some("degrain levels=4 threshold=0.02 decay=0.5 shrink=soft boundary=clamp"),
    error: 1e-5,
};
static DIFFUSION: Effect = Effect {
    planes: 3,
    height: |width| width * 3 / 4,
    build: |x| effects::diffusion(x, 8, 0.5, Boundary::Clamp),
    same_as: Some("diffusion radius=8 mix=0.5 boundary=clamp"),
    error: 1e-5,
};
static SEPARABLE: Effect = Effect { planes: 1, height: |width| width, build: separable, same_as: None, error: 1e-5 };
static UNSHARP: Effect = in_portrait(3, |x| effects::unsharp(x, 1.5, 1.0, Boundary::Mirror), "unsharp sigma=1.5 amount=1", 2e-3);
static BILATERAL_GRID: Effect = in_portrait(
    1,
    |x| effects::bilateral_grid(x, &effects::GridSettings { cell: 8, range: 0.1, low: 0.0, high: 1.0 }, Boundary::Clamp),
    "bilateral_grid cell=8 range=0.1 low=0 high=1 boundary=clamp",
    1e-4,
);
static LOCAL_LAPLACIAN: Effect = in_portrait(
    3,
    |x| {
        let settings = effects::LocalLaplacian { copies: 8, pyramid: 8, alpha: 1.0, beta: 1.0 };
        effects::detail(x, &effects::luma(x)?, &settings, Boundary::Clamp)
    },
    "local_laplacian levels=8 pyramid=8 alpha=1 beta=1 boundary=clamp",
    1e-4,
);
static CAMERA_PIPELINE: Effect = in_portrait(
    1,
    |x| effects::camera(x, &CAMERA, Boundary::Mirror),
    "camera black=0 white=1 red=1.5 blue=1.25 matrix=1.2,-0.1,-0.1,-0.1,1.2,-0.1,-0.1,-0.1,1.2 gamma=2.2 contrast=0.25 sharpen=0.5",
    1e-4,
);
static NLMEANS: Effect =
    in_portrait(3, |x| effects::nlmeans(x, 3, 1, 0.1, Boundary::Mirror), "nlmeans search=7 patch=3 strength=0.1", 1e-4);
static GAUSSIAN: Effect = in_portrait(3, |x| effects::gaussian(x, 2.0, Boundary::Mirror), "gaussian sigma=2", 2e-3);
static MEDIAN: Effect = in_portrait(3, |x| effects::median(x, 2, Boundary::Clamp), "median radius=2 boundary=clamp", 0.0);
static RESIZE: Effect = Effect {
    planes: 3,
    height: portrait,
    build: |x| {
        let bounds = x.bounds();
        effects::resize(x, bounds.width as usize * 3 / 2, bounds.height as usize * 3 / 2, effects::Filter::Bicubic)
    },
    same_as: Some("resize filter=bicubic"),
    error: 1e-5,
};
static CLAHE: Effect = in_portrait(
    1,
    |x| effects::clahe(x, &effects::Clahe { tiles: 8, clip: 4.0, bins: 256, low: 0.0, high: 1.0 }, Boundary::Mirror),
    "clahe tiles=8 clip=4 bins=256 low=0 high=1",
    1e-4,
);

/// All benchmarks, in run order.
pub(crate) static ALL: [Benchmark; 12] = [
    effect!("degrain", include_str!("../peers/degrain.cpp"), 1e-5, 2063, 45, |n| format!("{n}×{}×3", n * 1545 / 2063), DEGRAIN),
    effect!("diffusion", include_str!("../peers/diffusion.cpp"), 1e-5, 3072, 48, |n| format!("{n}×{}×3", n * 3 / 4), DIFFUSION),
    effect!("separable", include_str!("../peers/convolution.cpp"), 1e-5, 4000, 40, square, SEPARABLE),
    effect!("bilateral_grid", include_str!("../peers/bilateral_grid.cpp"), 1e-4, 1536, 48, portrait_text, BILATERAL_GRID),
    effect!("local_laplacian", include_str!("../peers/local_laplacian.cpp"), 1e-4, 1536, 48, in_color, LOCAL_LAPLACIAN),
    effect!("camera", include_str!("../peers/camera.cpp"), 1e-4, 1536, 48, portrait_text, CAMERA_PIPELINE),
    effect!("nlmeans", include_str!("../peers/nlmeans.cpp"), 1e-4, 1536, 24, in_color, NLMEANS),
    effect!(
        "unsharp",
        concat!(include_str!("../peers/blur.h"), include_str!("../peers/unsharp.cpp")),
        1e-4,
        1536,
        48,
        in_color,
        UNSHARP
    ),
    effect!(
        "gaussian",
        concat!(include_str!("../peers/blur.h"), include_str!("../peers/gaussian.cpp")),
        1e-4,
        1536,
        48,
        in_color,
        GAUSSIAN
    ),
    effect!("median", include_str!("../peers/median.cpp"), 1e-12, 1536, 30, in_color, MEDIAN),
    effect!("resize", include_str!("../peers/resize.cpp"), 1e-2, 1536, 48, in_color, RESIZE),
    effect!("clahe", include_str!("../peers/clahe.cpp"), 2e-2, 1536, 48, portrait_text, CLAHE),
];

/// Builds a blur of five taps along rows and columns.
fn separable(picture: &Picture) -> broadloom::effect::Result<Picture> {
    let weights = bell::<5>(1.0);
    let along = |picture: &Picture, axis: Axis| {
        let inputs = [Indexer::line(axis, 2)];
        let functor = Primitive::from_kernel("taps", &inputs, &[Output::Component], &weights[2..], |k| {
            let x = k.input(0);
            let sum = x.centre() * k.parameter(0) + (x.along(-1) + x.along(1)) * k.parameter(1);
            vec![sum + (x.along(-2) + x.along(2)) * k.parameter(2)]
        })?;
        functor.with_boundary(Boundary::Clamp).one(&[picture])
    };
    along(&along(picture, Axis::Vertical)?, Axis::Horizontal)
}

/// Returns the samples of an image, plane by plane.
fn samples(image: &Image) -> Vec<f32> {
    image.planes().iter().flat_map(|plane| plane.to_f32()).collect()
}

/// Computes the reference of an effect.
fn expected(effect: &Effect, input: &Image) -> Result<Vec<f64>, Failure> {
    let wide = |image: &Image| samples(image).into_iter().map(f64::from).collect();
    let Some(text) = effect.same_as else {
        let weights = bell::<5>(1.0).map(f64::from);
        let (width, height) = (input.width() as usize, input.height() as usize);
        let values: Vec<f64> = wide(input);
        let near = |place: usize, k: usize, end: usize| (place + k).saturating_sub(2).min(end - 1);
        let rows = |y: usize, x: usize| (0..5).map(|k| weights[k] * values[near(y, k, height) * width + x]).sum::<f64>();
        let at = |i: usize| (0..5).map(|k| weights[k] * rows(i / width, near(i % width, k, width))).sum();
        return Ok((0..width * height).map(at).collect());
    };
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut settings: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    if name == "resize" {
        settings.push(format!("width={}", input.width() * 3 / 2));
        settings.push(format!("height={}", input.height() * 3 / 2));
    }
    let failed = |error: broadloom::effect::EffectError| Failure::Wrong(format!("the reference does not run: {error}"));
    let step = catalogue::chain(name, &settings).map_err(failed)?.swap_remove(0);
    Ok(wide(&reference::run(&step, std::slice::from_ref(input)).map_err(failed)?))
}

impl Subject for Effect {
    /// Prepares an effect, and measures its straight translation.
    fn prepare(&self, setup: &Setup, tiny: usize, size: usize) -> Result<PreparedJob, Failure> {
        let context = Context::new(&setup.device);
        let quick = setup.scale.quick;
        let [job, _] = jobs(&context, *self, tiny, quick)?;
        let compile = setup.first_overhead(&job)?;
        let [job, straight] = jobs(&context, *self, size, quick)?;
        let time = by_turns(&setup.device, &straight, &mut [], setup.effort())?.ours;
        straight.judge(1)?;
        drop(straight);
        let before = context.statistics().kernels;
        setup.repetition(&job)?;
        let launches = context.statistics().kernels - before;
        Ok(PreparedJob { straight_ms: Some(time.as_secs_f64() * 1e3), ..PreparedJob::new(job, launches, compile) })
    }
}

/// Makes the jobs of an effect: the optimised plan, and the straight translation.
fn jobs(context: &Context, effect: Effect, width: usize, quick: bool) -> Result<[Job; 2], Failure> {
    let height = (effect.height)(width);
    let names = ["R", "G", "B"];
    let all = units(effect.planes * width * height, 1, 0.0, 1.0);
    let planes = all.chunks_exact(width * height).zip(names).map(|(plane, name)| (name, plane.to_vec()));
    let input = Image::from_f32(width as u32, height as u32, planes).map_err(broadloom::effect::Error::from)?;
    let picture = Picture::new(context, &input)?;
    let result = (effect.build)(&picture)?;
    let bounds = result.bounds();
    let work = Work::memory(4 * (effect.planes * width * height + result.components() * bounds.area() as usize), 0);
    let straight: Rc<RefCell<Option<Vec<f32>>>> = Rc::default();
    let translated = straight.clone();
    let plain = job(&result, bounds, &Options::straight(), work, move |found| {
        *translated.borrow_mut() = Some(found.to_vec());
        Ok(checksum(found))
    })?;
    let optimised = job(&result, bounds, &Options::default(), work, move |found| {
        match straight.borrow().as_ref().filter(|_| !quick) {
            Some(straight) => close(found, |i| f64::from(straight[i]), 1e-6, 1e-6)?,
            None => {
                let expected = expected(&effect, &input)?;
                close(found, |i| expected[i], effect.error, effect.error)?;
            }
        }
        Ok(checksum(found))
    })?;
    Ok([optimised, plain])
}

fn checksum(found: &[f32]) -> f64 {
    weighed(found.iter().map(|x| f64::from(*x)), 0)
}

/// Makes a job that computes a picture. The judge gets the samples of the last repetition.
fn job(
    result: &Picture,
    bounds: Rect,
    options: &Options,
    work: Work,
    judge: impl Fn(&[f32]) -> Result<f64, Failure> + 'static,
) -> Result<Job, Failure> {
    let plan = Rc::new(Plan::new(&[(result.clone(), bounds)], options)?);
    let last = Rc::new(RefCell::new(vec![]));
    let nodes = last.clone();
    let repetition = move || {
        // The memory of the last repetition is freed first.
        last.borrow_mut().clear();
        *last.borrow_mut() = plan.nodes()?;
        Ok(())
    };
    let judge = move |_| {
        let nodes = nodes.borrow();
        let Some(node) = nodes.first() else { return Err(Failure::Wrong("there is no result".into())) };
        let buffer = node.evaluate()?;
        let found: Vec<f32> = match buffer.view::<f32>() {
            Some(view) => view.read()?,
            None => return Err(Failure::Wrong("the result has no samples".into())),
        };
        judge(&found)
    };
    Ok(Job::new(work, judge).expression(repetition))
}
