//! Effects of the catalogue on devices against the naive references.

use crate::devices::{Random, assert_near, contexts};
use broadloom_effect::catalogue::{Effect, Settings, chain};
use broadloom_effect::plan::Options;
use broadloom_effect::{Image, effects, reference};
use broadloom_graph::Context;

fn check(context: &Context, text: &str, inputs: &[Image], tolerance: f32) {
    let (name, settings) = text.split_once(' ').unwrap_or((text, ""));
    let settings: Vec<&str> = settings.split_whitespace().collect();
    let step = chain(name, &settings).unwrap_or_else(|error| panic!("{text}: {error}")).swap_remove(0);
    let expected = reference::run(&step, inputs).unwrap_or_else(|error| panic!("{text}: {error}"));
    let found = effects::run(context, &step, inputs, &Options::default());
    let found = found.unwrap_or_else(|error| panic!("{text}: {error}"));
    let what = format!("{text} of {}×{}", inputs[0].width(), inputs[0].height());
    assert!(found.names().eq(expected.names()), "{what}: {:?}", found.names().collect::<Vec<_>>());
    assert_near(&found, &expected, tolerance, &what);
}

/// Settings of effects that take one image of any planes, with the error that is allowed.
const EACH: &[(&str, f32)] = &[
    ("tone_map exposure=1", 1e-6),
    ("curves points=0,0.1,0.3,0.5,1,0.9", 1e-5),
    ("curves points=0.2,0,0.7,1 interpolation=linear", 1e-5),
    ("box radius=2", 1e-5),
    ("box radius=6", 1e-5),
    ("gaussian sigma=1.5", 1e-3),
    ("gaussian sigma=9", 2e-3),
    ("unsharp sigma=1 amount=2", 3e-3),
    ("sobel", 1e-5),
    ("erode radius=1", 0.0),
    ("dilate radius=5", 0.0),
    ("open radius=2", 0.0),
    ("close radius=4", 0.0),
    ("median radius=1", 0.0),
    ("median radius=3", 0.0),
    ("bilateral radius=2 sigma_space=1.5 sigma_range=0.3", 1e-5),
    ("nlmeans search=5 patch=3 strength=0.4", 1e-5),
    ("harris radius=2", 1e-4),
    ("harris radius=5", 1e-4),
    ("degrain levels=3 threshold=0.1", 1e-6),
    ("diffusion radius=5", 1e-5),
];

const RULES: [&str; 4] = ["boundary=mirror", "boundary=clamp", "boundary=wrap", "boundary=constant border=0.25"];

#[test]
fn effects_agree_with_their_references() {
    for (device, context) in contexts().iter().enumerate() {
        let mut random = Random(7);
        for (number, (text, tolerance)) in EACH.iter().enumerate() {
            let has_rule = Effect::find(text.split(' ').next().unwrap_or_default()).expect("an effect").boundary.is_some();
            // One rule for each effect on each device, another with each.
            let rule = if has_rule { RULES[(number + device) % 4] } else { "" };
            let (width, height) = [(23, 14), (9, 31), (33, 6)][number % 3];
            check(context, &format!("{text} {rule}"), &[random.image(1 + number % 3, width, height)], *tolerance);
        }
    }
}

#[test]
fn effects_take_the_smallest_images() {
    let context = &contexts()[0];
    for text in ["box radius=6", "gaussian sigma=9", "dilate radius=5", "median radius=3", "diffusion", "degrain", "sobel"] {
        for rule in ["boundary=mirror", "boundary=wrap"] {
            check(context, &format!("{text} {rule}"), &[Random(8).image(1, 1, 1)], 2e-3);
            check(context, &format!("{text} {rule}"), &[Random(9).image(1, 2, 1)], 2e-3);
        }
    }
}

#[test]
fn effects_on_colours_sizes_and_frames_agree_with_their_references() {
    for context in &contexts() {
        let mut random = Random(10);
        let rgb = random.image(3, 11, 9);
        let rgba = random.image(4, 8, 5);
        for (text, image, tolerance) in [
            ("color_matrix matrix=0.5,0.25,0.25,0,1,0,-1,0,2", &rgba, 1e-6),
            ("key tolerance=0.1 softness=0.3", &rgb, 1e-4),
            ("key tolerance=0.1 softness=0.3 premultiply=no", &rgba, 1e-4),
            ("resize width=7 height=13 filter=lanczos", &rgb, 1e-5),
            ("resize width=25 filter=bicubic", &rgba, 1e-5),
            ("resize height=4 filter=bilinear", &rgb, 1e-5),
            ("local_laplacian levels=4 pyramid=3 alpha=0.5", &rgb, 1e-4),
            ("bilateral_grid cell=4 range=0.2", &rgb, 1e-4),
            ("clahe tiles=2 bins=16", &rgba, 1e-5),
        ] {
            check(context, text, std::slice::from_ref(image), tolerance);
        }
        let sensor = random.image(1, 12, 10);
        check(context, "demosaic pattern=grbg", std::slice::from_ref(&sensor), 1e-5);
        check(context, "camera pattern=bggr red=1.5 blue=1.25 matrix=1.2,-0.1,-0.1,0,1,0,-0.1,-0.1,1.2", &[sensor], 1e-4);
        let frames: Vec<Image> = (0..3).map(|_| random.image(3, 13, 10)).collect();
        check(context, "temporal_degrain frames=1 block=4 search=1 strength=0.5", &frames, 1e-5);
        check(context, "warp scale=2.5", &[rgb.clone(), random.image(2, 11, 9)], 1e-5);
    }
}

#[test]
fn edges_are_thin_and_connected() {
    let context = &contexts()[1];
    let planes = [(
        "Y",
        (0..24 * 20).map(|i| if (i % 24 - 11) * (i % 24 - 11) + (i / 24 - 9) * (i / 24 - 9) < 40 { 1.0 } else { 0.0 }).collect(),
    )];
    let disc = Image::from_f32(24, 20, planes).expect("an image");
    check(context, "canny sigma=1 low=0.2 high=1.5", &[disc], 0.0);
}

#[test]
fn mistakes_in_settings_are_told() {
    let context = &contexts()[0];
    let image = Random(1).image(1, 4, 4);
    let told = |text: &str, inputs: &[Image]| {
        let (name, settings) = text.split_once(' ').unwrap_or((text, ""));
        let mut step = Settings::new(Effect::find(name).expect("an effect"));
        for setting in settings.split_whitespace() {
            let (name, value) = setting.split_once('=').expect("a setting");
            step.set(name, value).expect("a value");
        }
        effects::run(context, &step, inputs, &Options::default()).expect_err("a mistake").to_string()
    };
    assert!(told("color_matrix", std::slice::from_ref(&image)).contains("red, green and blue"));
    assert!(told("resize", std::slice::from_ref(&image)).contains("new size"));
    assert!(told("warp", &[image.clone(), image.clone()]).contains("two planes"));
    assert!(told("resize width=1073741824", &[image]).contains("resize"));
}
