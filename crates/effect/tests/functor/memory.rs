//! Tests of memory: an effect needs the minimum of its graph and one image.

use crate::devices::{Images, Random, as_cpu, as_gpu, assert_near, contexts};
use broadloom_device::Device;
use broadloom_effect::catalogue::{EFFECTS, Inputs, chain};
use broadloom_effect::effects::{self, Layers};
use broadloom_effect::plan::{Options, Plan};
use broadloom_effect::{Image, Picture, Rect};
use broadloom_graph::Context;

/// Settings in addition to the defaults of all effects.
const MORE: &[&str] = &[
    "box radius=20",
    "close radius=20",
    "degrain levels=6",
    "diffusion radius=20",
    "dilate radius=20",
    "gaussian sigma=20",
    "harris radius=20",
    "median radius=4",
    "median radius=20",
    "resize width=1200",
    "unsharp sigma=20",
];

/// Memory that effects may need for any image size: tables, and states of moving averages.
const FIXED: u64 = 1 << 20;

/// Returns the peak memory of an effect on a device, and the allowed memory. The allowed memory is the
/// minimum of its graph, computed functor by functor, and one image.
fn needed(context: &Context, text: &str, [width, height]: [u32; 2]) -> (u64, u64, String) {
    let (name, settings) = text.split_once(' ').unwrap_or((text, ""));
    let settings: Vec<&str> = settings.split_whitespace().collect();
    let step = chain(name, &settings).unwrap_or_else(|error| panic!("{text}: {error}")).swap_remove(0);
    let planes: &[&str] = if matches!(name, "camera" | "demosaic") { &["Y"] } else { &["R", "G", "B"] };
    let image = || Image::filled(Rect::sized(width, height), planes, 0.5f32).expect("an image");
    let count = match step.effect().inputs {
        Inputs::Images(roles) => roles.len(),
        Inputs::Frames(parameter) => 2 * step.integer(parameter) as usize + 1,
    };
    let layers: Vec<Layers> = (0..count).map(|_| Layers::from(&image())).collect();
    let result = effects::apply(context, &step, &layers).unwrap_or_else(|error| panic!("{text}: {error}"));
    let wanted: Vec<(Picture, Rect)> = result.pictures().into_iter().map(|picture| (picture, result.bounds())).collect();
    let told = Plan::new(&wanted, &Options::default()).and_then(|plan| plan.explain()).expect("a plan");
    let one = 4 * result.names().len() as u64 * result.bounds().area();
    (told.peak_bytes, told.least_bytes + one + FIXED, told.text())
}

/// Effects that need other memory on a GPU, or whose plans equal those of the CPU and take long to make.
const ON_CPU: &[&str] = &["bilateral", "degrain levels=6", "median radius=4", "median radius=20", "nlmeans"];

/// Returns effects whose plans are made without a run. `canny` is excluded because it runs. `lut` is excluded
/// because it needs a file and is a point functor, `channels` and `premultiply` because they compute nothing here.
fn names() -> Vec<&'static str> {
    let all =
        EFFECTS.iter().map(|effect| effect.name).filter(|name| !matches!(*name, "canny" | "lut" | "channels" | "premultiply"));
    let wanting = |name: &'static str| if name == "resize" { "resize width=700" } else { name };
    all.map(wanting).chain(MORE.iter().copied()).collect()
}

#[test]
fn effects_need_the_minimum_and_one_image() {
    let mut wrong = vec![];
    for (device, context) in [("CPU", as_cpu()), ("GPU", as_gpu())] {
        for text in names().into_iter().filter(|text| device == "CPU" || !ON_CPU.contains(text)) {
            let (peak, most, told) = needed(&context, text, [1000, 700]);
            if peak > most {
                wrong.push(format!("{device}, {text}: {peak} bytes, and {most} are allowed\n{told}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Samples of large medians are sorted in bands. On a GPU a band must be large enough for its warps.
#[test]
fn bands_of_medians_are_bounded_on_a_gpu() {
    let (peak, most, told) = needed(&as_gpu(), "median radius=20", [4000, 3000]);
    assert!(peak <= most + 36 * (1 << 25), "{peak} bytes\n{told}");
}

/// Effects in tiles run within the memory that a plan may use, and give the same image.
#[test]
fn tiles_keep_to_the_memory_that_they_may_use() {
    let image = Random(43).image(2, 260, 200);
    let memory = 4 * 2 * 260 * 200;
    // Code, scalars and page rounding are added.
    let options = broadloom_cpu::Options { memory_bytes: memory + (256 << 10), ..broadloom_cpu::Options::default() };
    let small = Context::new(&Device::new(broadloom_cpu::Cpu::new(options).expect("a CPU")));
    for text in ["erode radius=6", "degrain levels=3", "canny sigma=1", "median radius=7", "clahe tiles=2"] {
        let (name, settings) = text.split_once(' ').expect("settings");
        let step = chain(name, &[settings]).expect("a step").swap_remove(0);
        let inputs = std::slice::from_ref(&image);
        let expected = effects::run(&contexts()[1], &step, inputs, &Options::default()).expect("an image");
        // An effect that needs a whole image needs room for it and a tile.
        let memory = if name == "clahe" { memory + (128 << 10) } else { memory * 3 / 4 };
        let options = Options { memory: Some(memory), ..Options::default() };
        let found = effects::run(&small, &step, inputs, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_near(&found, &expected, 0.0, text);
    }
}

/// The guide states the largest radius for which a GPU thread holds its window.
#[test]
fn windows_of_medians_fit_up_to_a_radius() {
    for (radius, fits) in [(232, true), (233, false)] {
        let (_, _, told) = needed(&as_gpu(), &format!("median radius={radius}"), [1000, 700]);
        assert_eq!(told.contains("median: of its window"), fits, "{radius}: {told}");
    }
}
