//! Tests of the catalogue's effects on devices against the naive references.

use crate::devices::{Images, Random, assert_near, contexts, thorough};
use broadloom_effect::catalogue::{Effect, Settings, chain};
use broadloom_effect::plan::{Options, Plan};
use broadloom_effect::{Boundary, Image, Picture, Rect, effects, reference};
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

fn computed(context: &Context, text: &str, image: &Image) -> Image {
    let (name, settings) = text.split_once(' ').unwrap_or((text, ""));
    let settings: Vec<&str> = settings.split_whitespace().collect();
    let step = chain(name, &settings).expect("settings").swap_remove(0);
    effects::run(context, &step, std::slice::from_ref(image), &Options::default()).expect("an image")
}

/// Settings of effects that take one image with any planes, with the allowed error.
const EACH: &[(&str, f32)] = &[
    ("tone_map exposure=1", 1e-6),
    ("curves points=0,0.1,0.3,0.5,1,0.9", 1e-5),
    ("curves points=0.2,0,0.7,1 interpolation=linear", 1e-5),
    ("box radius=2", 1e-5),
    ("box radius=14", 1e-5),
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
    ("rotate", 0.0),
    ("rotate angle=180", 0.0),
    ("rotate angle=270", 0.0),
    ("flip", 0.0),
    ("flip axis=vertical", 0.0),
    ("levels black=0.1 white=0.8 low=0.2 high=0.9", 1e-5),
    ("resize percent=150 filter=nearest", 0.0),
    ("resize percent=30 filter=nearest", 0.0),
    ("resize percent=150", 1e-5),
];

/// Effects that select and combine planes agree with their references, alone and in a chain.
#[test]
fn planes_are_selected_and_composed_on_devices() {
    use broadloom_effect::Alpha;
    for context in contexts() {
        for alpha in [Alpha::Straight, Alpha::Associated] {
            let [image, below] = [61, 62].map(|seed| Random(seed).image(4, 9, 7));
            let names = ["R", "G", "B", "A"];
            let named = |image: &Image| {
                let planes = image.planes().iter().zip(names).map(|(plane, name)| plane.clone().renamed(name)).collect();
                image.with_planes(planes).expect("an image").with_alpha(alpha)
            };
            let (image, below) = (named(&image), named(&below));
            let opaque = below.select(&["R", "G", "B"]).expect("an image");
            for text in [
                "channels planes=B,R=A,Q=0.5,G",
                "grayscale",
                "crop x=1 y=2 width=3",
                "levels gamma=1.7",
                "premultiply",
                "premultiply alpha=straight",
            ] {
                check(context, text, std::slice::from_ref(&image), 1e-4);
            }
            for (front, back) in [(&image, &below), (&image, &opaque), (&opaque, &image), (&opaque, &opaque)] {
                check(context, "composite", &[front.clone(), back.clone()], 1e-5);
            }
        }
    }
    // A part of a chain is a part for the effects behind it.
    let image = Random(63).image(1, 9, 7);
    let steps = chain("crop,rotate,box", &["x=2", "y=1", "width=5", "height=4", "radius=1"]).expect("a chain");
    let [mut expected, mut found] = [image.clone(), image];
    for step in &steps {
        expected = reference::run(step, &[expected]).expect("an image");
        found = effects::run(&contexts()[1], step, &[found], &Options::default()).expect("an image");
    }
    assert_near(&found, &expected, 1e-5, "a chain");
    assert_eq!((found.width(), found.height()), (4, 5));
}

const RULES: [&str; 4] = ["boundary=mirror", "boundary=clamp", "boundary=wrap", "boundary=constant border=0.25"];

#[test]
fn effects_agree_with_their_references() {
    for (device, context) in contexts().iter().enumerate() {
        let mut random = Random(7);
        for (number, (text, tolerance)) in EACH.iter().enumerate() {
            let has_rule = Effect::find(text.split(' ').next().unwrap_or_default()).expect("an effect").boundary.is_some();
            // Each effect is tested with one rule per device. The rules rotate between effects and devices.
            let rule = if has_rule { RULES[(number + device) % 4] } else { "" };
            let (width, height) = [[(9, 7), (5, 11), (13, 4)], [(33, 7), (9, 17), (40, 6)]][device][number % 3];
            if device > 0 && number % 5 != 4 && !thorough() {
                continue;
            }
            let image = random.image(1 + number % 3, width, height);
            let text = format!("{text} {rule}");
            check(context, &text, std::slice::from_ref(&image), *tolerance);
            if device > 0 && !["bilateral", "nlmeans"].iter().any(|name| text.starts_with(name)) {
                // All devices give the same bits without elementary functions.
                let (found, expected) = (computed(context, &text, &image), computed(&contexts()[0], &text, &image));
                assert_near(&found, &expected, 0.0, &text);
            }
        }
    }
}

/// Tests all rules, the smallest sizes, one to eight planes, and images that are parts of larger ones.
#[test]
fn effects_agree_for_all_rules_sizes_and_planes() {
    let context = &contexts()[0];
    let mut random = Random(11);
    let sizes = [(1, 1), (1, 5), (6, 1), (4, 3), (7, 2)];
    for (number, (text, tolerance)) in EACH.iter().enumerate() {
        let has_rule = Effect::find(text.split(' ').next().unwrap_or_default()).expect("an effect").boundary.is_some();
        for turn in 0..2 {
            let rule = RULES[(number + turn + turn * number / 4) % 4];
            let (width, height) = sizes[turn * (1 + number % 4)];
            let whole = random.image(1 + (2 * number + turn) % 8, width + 3, height + 2);
            // The pitch of a part is larger than its width.
            let part = whole.view(Rect::new(1, 2, width, height)).expect("a part");
            let text = if has_rule { format!("{text} {rule}") } else { (*text).to_owned() };
            check(context, &text, &[part], *tolerance);
        }
    }
}

/// A square larger than the image contains pixels several times. Each pixel is read once, for every radius.
#[test]
fn medians_of_squares_larger_than_the_image_agree() {
    let mut random = Random(13);
    for (device, context) in contexts().iter().enumerate() {
        for (number, rule) in RULES.iter().enumerate() {
            for (turn, (radius, width, height)) in [(4, 6, 13), (5, 17, 4), (20, 5, 4), (9, 1, 3)].into_iter().enumerate() {
                if device == 0 || turn == number || thorough() {
                    let image = random.image(1 + turn % 2, width, height);
                    check(context, &format!("median radius={radius} {rule}"), &[image], 0.0);
                }
            }
        }
    }
    // The square contains every pixel 133·399 times.
    let image = random.image(1, 15, 5);
    let mut sorted = image.planes()[0].to_f32();
    sorted.sort_by(f32::total_cmp);
    let found = computed(&contexts()[0], "median radius=997 boundary=wrap", &image);
    assert!(found.planes()[0].to_f32().iter().all(|value| *value == sorted[37]), "{found:?}");
}

/// Samples that are not finite matter in windows that hold them, and nowhere else on their lines.
#[test]
fn samples_that_are_not_finite_leave_moving_averages() {
    let mut random = Random(33);
    let (width, height) = (90, 70);
    let mut samples: Vec<f32> = (0..width * height).map(|_| random.below(1000u32) as f32 / 1000.0).collect();
    for (x, y, value) in [(20, 10, f32::NAN), (60, 40, f32::INFINITY), (70, 44, f32::NEG_INFINITY), (3, 66, f32::INFINITY)] {
        samples[y * width + x] = value;
    }
    let image = Image::from_f32(width as u32, height as u32, [("Y", samples)]).expect("an image");
    for context in contexts() {
        check(context, "box radius=13 boundary=clamp", std::slice::from_ref(&image), 1e-5);
        // The window of `gaussian` has a radius of 30 pixels.
        let found = computed(context, "gaussian sigma=8 boundary=clamp", &image);
        let found = found.planes()[0].to_f32();
        assert!(found[10 * width + 20].is_nan() && found[66 * width + 3] == f32::INFINITY);
        for place in (0..found.len()).filter(|place| place % width > 51 && place / width < 10) {
            assert!(found[place].is_finite(), "({}, {})", place % width, place / width);
        }
    }
}

/// The mean of a large cell is as exact as that of a small one.
#[test]
fn grids_of_large_cells_are_exact() {
    let mut random = Random(34);
    let samples = (0..260 * 250).map(|_| 0.55 + random.below(1000u32) as f32 / 10000.0).collect();
    let image = Image::from_f32(260, 250, [("Y", samples)]).expect("an image");
    check(&contexts()[0], "bilateral_grid cell=256 range=0.5", &[image], 1e-5);
}

#[test]
fn grids_of_all_settings_agree_with_their_reference() {
    let context = &contexts()[0];
    let mut random = Random(14);
    let settings = [
        "cell=3 range=0.25",
        "cell=5 range=0.3 low=0.1 high=0.85",
        "cell=2 range=0.07 low=-0.5 high=0.5",
        "cell=4 range=1000 low=0 high=3000",
        // The upper end is in the middle between two cells, and `f32` rounds it down.
        "cell=3 range=0.32 high=0.48",
    ];
    for (number, settings) in settings.iter().enumerate() {
        for (turn, rule) in RULES.iter().enumerate() {
            let (width, height) = [(9, 7), (13, 4), (5, 11), (1, 6)][(number + turn) % 4];
            let image = random.image(1 + number % 2, width, height);
            check(context, &format!("bilateral_grid {settings} {rule}"), &[image], 1e-4);
        }
    }
    // Samples in the middle between two cells, and next to it.
    let middle = |step: u32| (step as f32 + 0.5) * 0.125;
    let samples = (0..8).flat_map(|step| [middle(step), middle(step).next_down(), middle(step).next_up()]);
    let image = Image::from_f32(6, 4, [("Y", samples.collect())]).expect("an image");
    check(context, "bilateral_grid cell=2 range=0.125", &[image], 1e-4);
    // The upper end is in the middle between two cells. Rounded down to a sample, it is in the lower cell.
    let ends = [0.48f32, 0.48f32.next_up(), 0.48f32.next_down(), 0.1, 0.9, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let image = Image::from_f32(4, 2, [("Y", ends.to_vec())]).expect("an image");
    check(context, "bilateral_grid cell=2 range=0.32 high=0.48", &[image], 1e-4);
}

#[test]
fn tables_of_colours_agree_with_their_reference() {
    let folder = std::env::temp_dir().join(format!("broadloom-lut-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let entry = |i: usize| format!("{} {} {}", (i * 7 % 10) as f32 / 10.0, (i * 3 % 8) as f32 / 8.0, (i % 5) as f32 / 4.0);
    let table = |head: &str, count: usize| {
        let entries: Vec<String> = (0..count).map(entry).collect();
        format!("{head}\nDOMAIN_MIN 0.1 0 -0.5\nDOMAIN_MAX 0.9 1 1.5\n{}\n", entries.join("\n"))
    };
    let (solid, flat) = (folder.join("solid.cube"), folder.join("flat.cube"));
    std::fs::write(&solid, table("LUT_3D_SIZE 3", 27)).expect("a file");
    std::fs::write(&flat, table("LUT_1D_SIZE 5", 5)).expect("a file");
    let image = Random(12).image(4, 7, 5);
    for (device, context) in contexts().iter().enumerate() {
        for (file, how) in [(&solid, "trilinear"), (&solid, "tetrahedral"), (&flat, "trilinear")] {
            if device == 0 || how == "tetrahedral" {
                let text = format!("lut file={} interpolation={how}", file.display());
                check(context, &text, std::slice::from_ref(&image), 1e-5);
            }
        }
    }
    std::fs::remove_dir_all(&folder).expect("a folder");
}

#[test]
fn effects_on_colours_sizes_and_frames_agree_with_their_references() {
    for (device, context) in contexts().iter().enumerate() {
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
            if device == 0 || thorough() {
                check(context, text, std::slice::from_ref(image), tolerance);
            }
        }
        if device > 0 && !thorough() {
            check(context, "resize width=7 height=13 filter=lanczos", &[rgb], 1e-5);
            return;
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
    let context = &contexts()[0];
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
    assert!(told("resize width=16777216 height=16777216", &[image]).contains("resize"));
}

/// Tests large squares: a window moves along rows of tiles.
#[test]
fn medians_of_large_squares_agree() {
    let mut random = Random(17);
    for (device, context) in contexts().iter().enumerate() {
        for (number, rule) in RULES.iter().enumerate() {
            for (turn, (radius, width, height)) in [(10, 19, 23), (9, 140, 12), (7, 15, 40), (20, 31, 33)].into_iter().enumerate()
            {
                if turn == number || device > 0 && thorough() {
                    let image = random.image(4 - turn, width, height);
                    check(context, &format!("median radius={radius} {rule}"), &[image], 0.0);
                }
            }
        }
        // One value, two values, and all kinds of values.
        let odd = [f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0, 0.0, f32::MIN_POSITIVE, -1e-40, 1.5, -2.5];
        let constant = |_: usize| 0.25f32;
        let few = |place: usize| if place % 7 < 3 { 1.0f32 } else { -1.0 };
        let all = |place: usize| odd[place * place % 97 % odd.len()];
        for value in [&constant as &dyn Fn(usize) -> f32, &few, &all] {
            let image = Image::from_f32(24, 20, [("Y", (0..24 * 20).map(value).collect())]).expect("an image");
            check(context, "median radius=8", &[image], 0.0);
        }
    }
}

/// NaN is greater than all numbers, and NaN with its sign set is less.
#[test]
fn medians_order_nan() {
    for context in contexts() {
        for (radius, count, expected) in [(1, 4, 7.0f32), (10, 220, 7.0), (10, 221, f32::NAN)] {
            // All windows are the same square, with `count` NaN samples and otherwise sevens.
            let side = 2 * radius + 1;
            let sample = |place: usize| if place < count { f32::NAN } else { 7.0 };
            for sign in [1.0f32, -1.0] {
                let samples = (0..side * side).map(|place| sample(place).copysign(sign)).collect();
                let image = Image::from_f32(side as u32, side as u32, [("Y", samples)]).expect("an image");
                let found = computed(context, &format!("median radius={radius} boundary=wrap"), &image);
                let bits = (expected.copysign(sign)).to_bits();
                assert!(found.planes()[0].to_f32().iter().all(|value| value.to_bits() == bits), "{radius}, {count}, {sign}");
            }
        }
    }
}

/// The work of a large median grows linearly with the radius, for any samples.
#[test]
fn medians_take_time_linear_in_the_radius() {
    let work = |radius: u32, sample: &dyn Fn(usize) -> f32| {
        let interp = broadloom_interp::Interp::new(broadloom_interp::Options::default());
        let context = Context::new(&broadloom_device::Device::new(interp.clone()));
        let image = Image::from_f32(200, 16, [("Y", (0..200 * 16).map(sample).collect())]).expect("an image");
        computed(&context, &format!("median radius={radius}"), &image);
        interp.statistics().instructions
    };
    let noise = |place: usize| (place * 7919 % 6389) as f32;
    // Neighbouring medians have very different ranks.
    let stripes = |place: usize| (place * 7919 % 6389) as f32 * if (place % 200 / 15).is_multiple_of(2) { 1.0 } else { -1.0 };
    for sample in [&noise as &dyn Fn(usize) -> f32, &stripes] {
        let (small, large) = (work(10, sample), work(40, sample));
        assert!(large < 6 * small, "{small} and {large} instructions");
    }
}

/// Regions and tiles of large medians equal those of the whole image, with the boundary rules at its edges.
#[test]
fn regions_of_large_medians_agree() {
    let image = Random(19).image(1, 60, 34);
    let rules = [&[Boundary::Mirror, Boundary::Clamp, Boundary::Shrink][..], &[Boundary::Wrap, Boundary::Constant(0.25)]];
    for (context, rules) in contexts().iter().zip(rules) {
        let picture = Picture::from_image(context, &image);
        for boundary in rules.iter().copied() {
            let median = effects::median(&picture, 9, boundary).expect("a picture");
            let whole = median.image().expect("an image");
            let region = Rect::new(20, 12, 31, 11);
            let part = median.region(region, &Options::default()).expect("an image");
            assert_near(&part, &whole.view(region).expect("a part"), 0.0, "a region");
            let options = Options { memory: Some(100_000), ..Options::default() };
            let tiled = median.region(median.bounds(), &options).expect("an image");
            assert_near(&tiled, &whole, 0.0, "tiles");
            // The second run makes a template of the plan.
            let again = effects::median(&Picture::new(context, &image).expect("a picture"), 9, boundary).expect("a picture");
            let plan = Plan::new(&[(again.clone(), again.bounds())], &Options::default()).expect("a plan");
            for _ in 0..3 {
                assert_near(&plan.run().expect("an image")[0], &whole, 0.0, "a run");
            }
        }
    }
}

/// An image with many tiles is computed in bands. They need less memory than all tiles at once.
#[test]
fn large_medians_are_computed_in_bands() {
    let (width, height, radius) = (1300u32, 900u32, 12i64);
    let image = Random(23).image(2, width, height);
    let median =
        effects::median(&Picture::from_image(&contexts()[1], &image), radius as u32, Boundary::Clamp).expect("a picture");
    let plan = Plan::new(&[(median.clone(), median.bounds())], &Options::default()).expect("a plan");
    let (bytes, peak) = (u64::from(width) * u64::from(height) * 8, plan.explain().expect("a plan").stages[0].peak_bytes);
    assert!(peak < 12 * bytes, "{peak} bytes for an image of {bytes}");
    let found = median.image().expect("an image");
    let mut random = Random(24);
    for plane in 0..2 {
        let (samples, medians) = (image.planes()[plane].to_f32(), found.planes()[plane].to_f32());
        for _ in 0..200 {
            let (x, y) = (random.below(width as usize) as i64, random.below(height as usize) as i64);
            let at = |x: i64, y: i64| {
                samples[(y.clamp(0, i64::from(height) - 1) * i64::from(width) + x.clamp(0, i64::from(width) - 1)) as usize]
            };
            let square = (-radius..=radius).flat_map(|j| (-radius..=radius).map(move |i| (x + i, y + j)));
            let mut values: Vec<f32> = square.map(|(x, y)| at(x, y)).collect();
            values.sort_by(f32::total_cmp);
            let found = medians[(y * i64::from(width) + x) as usize];
            assert_eq!(found, values[values.len() / 2], "plane {plane} at ({x}, {y})");
        }
    }
}
