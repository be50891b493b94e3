//! Devices and images of the tests.

use broadloom_device::{Device, Machine, MachineKind};
use broadloom_effect::plan::{Options, Switch};
use broadloom_effect::{Image, Rect};
use broadloom_graph::Context;
pub(crate) use broadloom_random::Random;
use std::sync::OnceLock;

/// Returns a context for the interpreter and one for the CPU. All tests share them.
pub(crate) fn contexts() -> &'static [Context; 2] {
    static CONTEXTS: OnceLock<[Context; 2]> = OnceLock::new();
    CONTEXTS.get_or_init(|| {
        let interp = Device::new(broadloom_interp::Interp::new(broadloom_interp::Options::default()));
        let cpu = broadloom_cpu::Cpu::new(broadloom_cpu::Options::default()).expect("a CPU");
        [Context::new(&interp), Context::new(&Device::new(cpu))]
    })
}

/// Returns a context that plans for an H200 and runs kernels in the interpreter.
pub(crate) fn as_gpu() -> Context {
    let interp = broadloom_interp::Interp::new(broadloom_interp::Options::default());
    let machine = Machine {
        kind: MachineKind::Cuda,
        multiprocessors: 132,
        registers: Some(65536),
        max_shared_bytes: 232_448,
        cache_bytes: Some(60 << 20),
        ..broadloom_device::Backend::machine(&interp).clone()
    };
    let options = broadloom_interp::Options { machine: Some(machine), ..broadloom_interp::Options::default() };
    Context::new(&Device::new(broadloom_interp::Interp::new(options)))
}

/// Returns a context that plans for this CPU and runs kernels in the interpreter, so nothing is compiled.
pub(crate) fn as_cpu() -> Context {
    let cpu = broadloom_cpu::Cpu::new(broadloom_cpu::Options::default()).expect("a CPU");
    let machine = broadloom_device::Backend::machine(&cpu).clone();
    let options = broadloom_interp::Options { machine: Some(machine), ..broadloom_interp::Options::default() };
    Context::new(&Device::new(broadloom_interp::Interp::new(options)))
}

/// Returns options with random switches.
pub(crate) fn any_options(random: &mut Random) -> Options {
    let mut options = Options::default();
    for name in Options::NAMES {
        let switch = [Switch::Off, Switch::Auto, Switch::On][random.below(3)];
        *options.switch(name).expect("a name of the list") = switch;
    }
    options
}

/// Returns whether every case also runs on the CPU, where each needs a compilation. Otherwise only some cases
/// do.
pub(crate) fn thorough() -> bool {
    std::env::var_os("BROADLOOM_EVERY_CASE").is_some()
}

/// Random images.
pub(crate) trait Images {
    /// Returns an image of multiples of 1/256 from 0 to 1. Sums of a few samples are exact.
    fn image(&mut self, planes: usize, width: u32, height: u32) -> Image;
}

impl Images for Random {
    fn image(&mut self, planes: usize, width: u32, height: u32) -> Image {
        let names = ["R", "G", "B", "A", "Z", "U", "V", "W"];
        let mut sample = || self.below(257) as f32 / 256.0;
        let planes = (0..planes).map(|plane| (names[plane], (0..width * height).map(|_| sample()).collect()));
        Image::from_f32(width, height, planes).expect("an image")
    }
}

/// Returns the pixel of a plane at a position, by the boundary rule.
pub(crate) fn at(image: &Image, plane: usize, x: i64, y: i64, rule: broadloom_skeleton::Rule, border: f32) -> f32 {
    let (width, height) = (i64::from(image.width()), i64::from(image.height()));
    match (rule.index(x, width), rule.index(y, height)) {
        (Some(x), Some(y)) => image.planes()[plane].value(x as u32, y as u32).expect("inside"),
        _ => border,
    }
}

/// Asserts that two images are nearly equal.
pub(crate) fn assert_near(found: &Image, expected: &Image, tolerance: f32, what: &str) {
    assert_eq!((found.bounds(), found.planes().len()), (expected.bounds(), expected.planes().len()), "{what}");
    for (number, (a, b)) in found.planes().iter().zip(expected.planes()).enumerate() {
        for (place, (x, y)) in a.to_f32().iter().zip(b.to_f32()).enumerate() {
            let width = found.width() as usize;
            let near = (x - y).abs() <= tolerance * (1.0 + y.abs()) || x.is_nan() && y.is_nan() || *x == y;
            assert!(near, "{what}: plane {number} at ({}, {}): {x} and not {y}", place % width, place / width);
        }
    }
}

/// Returns a region in the middle of an image.
pub(crate) fn middle(bounds: Rect) -> Rect {
    let (width, height) = (bounds.width.div_ceil(3), bounds.height.div_ceil(3));
    Rect::new(bounds.x + (bounds.width / 3) as i32, bounds.y + (bounds.height / 3) as i32, width, height)
}
