//! Tests that devices, plans and options of the optimiser do not change the bits of a result.

use crate::devices::{Random, any_options, as_gpu, assert_near, contexts, thorough};
use broadloom_effect::catalogue::chain;
use broadloom_effect::plan::Options;
use broadloom_effect::{Image, effects};
use broadloom_graph::Context;

fn computed(context: &Context, text: &str, inputs: &[Image], options: &Options) -> Image {
    let (name, settings) = text.split_once(' ').unwrap_or((text, ""));
    let settings: Vec<&str> = settings.split_whitespace().collect();
    let step = chain(name, &settings).unwrap_or_else(|error| panic!("{text}: {error}")).swap_remove(0);
    effects::run(context, &step, inputs, options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Effects with their planes, and the allowed difference. States that are carried along lines are sums in
/// double precision. Their order depends on where lines are split.
const EFFECTS: &[(&str, usize, f32)] = &[
    ("tone_map exposure=1", 3, 0.0),
    ("curves points=0,0.1,0.3,0.5,1,0.9", 1, 0.0),
    ("box radius=2", 2, 0.0),
    ("gaussian sigma=1.5", 1, 0.0),
    ("unsharp sigma=1 amount=2", 1, 0.0),
    ("sobel", 1, 0.0),
    ("open radius=2", 1, 0.0),
    ("median radius=1", 1, 0.0),
    ("bilateral radius=2", 1, 0.0),
    ("nlmeans search=5 patch=3 strength=0.4", 1, 0.0),
    ("harris radius=2", 3, 0.0),
    ("degrain levels=3", 1, 0.0),
    ("color_matrix matrix=0.5,0.25,0.25,0,1,0,-1,0,2", 3, 0.0),
    ("key tolerance=0.1 softness=0.3", 3, 0.0),
    ("resize width=7 height=13", 1, 0.0),
    ("local_laplacian levels=4 pyramid=3 alpha=0.5", 3, 0.0),
    ("bilateral_grid cell=4 range=0.2", 1, 0.0),
    ("clahe tiles=2 bins=16", 1, 0.0),
    ("demosaic pattern=grbg", 1, 0.0),
    ("camera", 1, 0.0),
    ("canny sigma=1 low=0.2 high=1.5", 1, 0.0),
    ("gaussian sigma=9", 1, 1e-6),
    ("diffusion radius=5", 1, 0.0),
    ("box radius=14", 1, 1e-6),
];

/// Returns an image whose sums and products are rounded.
fn rough(random: &mut Random, planes: usize, width: u32, height: u32) -> Image {
    let names = ["R", "G", "B", "A"];
    let mut sample = || (random.bits() >> 40) as f32 / (1u64 << 24) as f32 * 1.1 - 0.05;
    let planes = (0..planes).map(|plane| (names[plane], (0..width * height).map(|_| sample()).collect()));
    Image::from_f32(width, height, planes.collect::<Vec<_>>()).expect("an image")
}

#[test]
fn devices_and_options_do_not_change_the_bits_of_a_result() {
    let ([interp, cpu], gpu) = (contexts(), &as_gpu());
    let mut random = Random(30);
    for (number, (text, planes, tolerance)) in EFFECTS.iter().enumerate() {
        let inputs = [rough(&mut random, *planes, 12, 9)];
        let expected = computed(interp, text, &inputs, &Options::straight());
        let same = |context: &Context, options: &Options, what: &str| {
            let found = computed(context, text, &inputs, options);
            assert_near(&found, &expected, *tolerance, &format!("{text}, {what}: {options}"));
        };
        same(gpu, &Options::default(), "a GPU");
        if number % 2 == 0 || thorough() {
            same(interp, &any_options(&mut random), "interp");
        } else {
            same(gpu, &any_options(&mut random), "a GPU");
        }
        if number % 8 == 2 || thorough() {
            same(cpu, &any_options(&mut random), "cpu");
            same(cpu, &Options::default(), "cpu");
        }
    }
}
