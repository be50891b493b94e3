//! Tests of the references against pinned results of SciPy, OpenCV, Pillow and NumPy.

use crate::values::{noise, values};
use broadloom_effect::catalogue::{Chain, EFFECTS, Effect, Engine, Inputs, Kind, Reference, Settings, chain};
use broadloom_effect::{Alpha, Image, Plane, Rect, reference};

/// Returns an image of numbers that Python also computes: ((7x + 13y + 3xy + 5p) mod 17) / 17 in plane p.
fn pattern(width: u32, height: u32, names: &[&str]) -> Image {
    let value = |x: u32, y: u32, plane: u32| ((x * 7 + y * 13 + x * y * 3 + plane * 5) % 17) as f32 / 17.0;
    let plane = |(index, name): (usize, &&str)| {
        let samples = (0..height).flat_map(|y| (0..width).map(move |x| value(x, y, index as u32))).collect();
        Plane::new::<f32>(name, width, height, samples).unwrap()
    };
    Image::new(Rect::sized(width, height), names.iter().enumerate().map(plane).collect()).unwrap()
}

/// Runs an effect.
fn run(name: &str, settings: &[&str], inputs: &[Image]) -> Image {
    let steps = chain(name, settings).unwrap();
    reference::run(&steps[0], inputs).unwrap_or_else(|error| panic!("{error}"))
}

fn near(result: &Plane, places: &[(u32, u32)], expected: &[f32], tolerance: f32, what: &str) {
    for ((x, y), expected) in places.iter().zip(expected) {
        let found = result.value(*x, *y).unwrap();
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {found} at ({x}, {y}), not {expected}");
    }
}

/// Pixels whose results are pinned.
const PLACES: [(u32, u32); 4] = [(0, 0), (8, 6), (4, 3), (1, 5)];

/// Results for the pattern of 9×7 pixels.
#[rustfmt::skip]
const PINNED: &[(&str, &[&str], [f32; 4])] = &[
    ("gaussian", &["sigma=1.5", "boundary=clamp"], [0.325434, 0.459862, 0.402680, 0.355665]),
    ("box", &["radius=2", "boundary=clamp"], [0.369412, 0.428235, 0.418824, 0.341176]),
    ("median", &["radius=1", "boundary=clamp"], [0.352941, 0.352941, 0.411765, 0.294118]),
    ("erode", &["radius=2", "boundary=clamp"], [0.000000, 0.000000, 0.000000, 0.000000]),
    ("dilate", &["radius=1", "boundary=clamp"], [0.764706, 0.882353, 0.823529, 0.823529]),
    ("open", &["boundary=clamp"], [0.000000, 0.176471, 0.058824, 0.117647]),
    ("close", &["boundary=clamp"], [0.764706, 0.882353, 0.705882, 0.705882]),
    ("sobel", &["boundary=clamp"], [2.382171, 2.354411, 0.526134, 0.836039]),
    ("unsharp", &["amount=1.5", "sigma=1", "boundary=clamp"], [-0.434961, 0.210665, -0.373399, -0.201421]),
    ("gaussian", &["sigma=1.5", "boundary=mirror"], [0.453926, 0.612602, 0.402669, 0.317082]),
    ("box", &["radius=2", "boundary=mirror"], [0.465882, 0.630588, 0.418824, 0.310588]),
    ("median", &["radius=1", "boundary=mirror"], [0.352941, 0.882353, 0.411765, 0.294118]),
    ("erode", &["radius=2", "boundary=mirror"], [0.000000, 0.000000, 0.000000, 0.000000]),
    ("dilate", &["radius=1", "boundary=mirror"], [0.764706, 0.882353, 0.823529, 0.823529]),
    ("open", &["boundary=mirror"], [0.000000, 0.176471, 0.058824, 0.117647]),
    ("close", &["boundary=mirror"], [0.764706, 0.882353, 0.705882, 0.705882]),
    ("sobel", &["boundary=mirror"], [0.000000, 0.000000, 0.526134, 0.836039]),
    ("unsharp", &["amount=1.5", "sigma=1", "boundary=mirror"], [-0.659364, 0.006643, -0.373368, -0.173363]),
    ("gaussian", &["sigma=1.5", "boundary=wrap"], [0.455674, 0.489180, 0.402664, 0.362066]),
    ("box", &["radius=2", "boundary=wrap"], [0.522353, 0.463529, 0.418824, 0.324706]),
    ("median", &["radius=1", "boundary=wrap"], [0.352941, 0.588235, 0.411765, 0.294118]),
    ("erode", &["radius=2", "boundary=wrap"], [0.000000, 0.000000, 0.000000, 0.000000]),
    ("dilate", &["radius=1", "boundary=wrap"], [0.764706, 0.882353, 0.823529, 0.823529]),
    ("open", &["boundary=wrap"], [0.000000, 0.294118, 0.058824, 0.117647]),
    ("close", &["boundary=wrap"], [0.764706, 0.764706, 0.705882, 0.705882]),
    ("sobel", &["boundary=wrap"], [0.784804, 1.638634, 0.526134, 0.836039]),
    ("unsharp", &["amount=1.5", "sigma=1", "boundary=wrap"], [-0.611563, 0.154074, -0.373398, -0.186709]),
    ("gaussian", &["sigma=1.5", "boundary=constant"], [0.169851, 0.217496, 0.393914, 0.235051]),
    ("box", &["radius=2", "boundary=constant"], [0.167059, 0.197647, 0.418824, 0.200000]),
    ("median", &["radius=1", "boundary=constant"], [0.000000, 0.000000, 0.411765, 0.294118]),
    ("erode", &["radius=2", "boundary=constant"], [0.000000, 0.000000, 0.000000, 0.000000]),
    ("dilate", &["radius=1", "boundary=constant"], [0.764706, 0.882353, 0.823529, 0.823529]),
    ("open", &["boundary=constant"], [0.000000, 0.000000, 0.058824, 0.117647]),
    ("close", &["boundary=constant"], [0.000000, 0.000000, 0.705882, 0.705882]),
    ("sobel", &["boundary=constant"], [2.21976, 2.921108, 0.526134, 0.836039]),
    ("unsharp", &["amount=1.5", "sigma=1", "boundary=constant"], [-0.272603, 0.514537, -0.373219, -0.128164]),
    ("harris", &[], [514.1131, 354.70285, 582.8894, 94.60008]),
    ("bilateral", &["radius=3", "sigma_range=0.2"], [0.172936, 0.396333, 0.148565, 0.172401]),
    ("nlmeans", &["search=5", "strength=0.3"], [0.364922, 0.345803, 0.290237, 0.240236]),
    ("degrain", &["threshold=0.02", "decay=0.5", "shrink=soft"], [0.103551, 0.345953, 0.119505, 0.164860]),
];

/// Results for the pattern of 40×33 pixels.
#[rustfmt::skip]
const LARGE: &[(&str, &[&str], [f32; 4])] = &[
    ("diffusion", &[], [0.217114, 0.413445, 0.256988, 0.286733]),
    ("degrain", &["threshold=0.02", "decay=0.5", "shrink=soft"], [0.101868, 0.370152, 0.119803, 0.170147]),
];

#[test]
fn results_are_those_of_other_libraries() {
    for (pinned, image) in [(PINNED, pattern(9, 7, &["Y"])), (LARGE, pattern(40, 33, &["Y"]))] {
        for (name, settings, expected) in pinned {
            let result = run(name, settings, std::slice::from_ref(&image));
            near(&result.planes()[0], &PLACES, expected, 3e-6, &format!("{name} {settings:?}"));
        }
    }
}

#[test]
fn sensors_become_pictures() {
    let image = pattern(9, 7, &["Y"]);
    let expected =
        [[0.0, 0.352941, 0.371324, 0.235294], [0.25, 0.602941, 0.058824, 0.279412], [-0.154412, 0.992647, -0.316176, 0.117647]];
    let result = run("demosaic", &[], std::slice::from_ref(&image));
    assert!(result.names().eq(["R", "G", "B"]));
    for (plane, expected) in result.planes().iter().zip(expected) {
        near(plane, &PLACES, &expected, 2e-6, plane.name());
    }
    // A grey sensor gives a grey picture for every pattern. The camera applies its curve.
    let grey = Image::filled(Rect::sized(6, 5), &["Y"], 0.25f32).unwrap();
    for layout in ["rggb", "bggr", "grbg", "gbrg"] {
        let set = format!("pattern={layout}");
        let flat = run("demosaic", &[&set], std::slice::from_ref(&grey));
        assert!(values(&flat).concat().iter().all(|value| (value - 0.25).abs() < 1e-6));
        let plain = [set.as_str(), "gamma=1", "contrast=0", "white=0.5"];
        let flat = run("camera", &plain, std::slice::from_ref(&grey));
        assert!(values(&flat).concat().iter().all(|value| (value - 0.5).abs() < 1e-6));
    }
    // v = 0.25^(1/2.2) = 0.532521; b = 2 − √2, a = 2 − 2b; 1 − a(1−v)² − b(1−v).
    let curved = run("camera", &[], std::slice::from_ref(&grey));
    near(&curved.planes()[1], &[(2, 2)], &[0.545_089], 2e-4, "camera");
    // A hot pixel is not brighter than the pixels of its colour.
    let mut hot = vec![0.25f32; 30];
    hot[14] = 9.0;
    let hot = Image::from_f32(6, 5, [("Y", hot)]).unwrap();
    assert_eq!(values(&run("camera", &[], &[hot])), values(&curved));
}

#[test]
fn sizes_change_as_in_pillow() {
    let image = pattern(60, 50, &["Y"]);
    let cases = [
        ("bicubic", [0.406205, 0.823247], [0.668606, 0.458148]),
        ("lanczos", [0.402345, 0.816135], [0.684334, 0.4169]),
        ("bilinear", [0.450368, 0.777574], [0.637269, 0.476052]),
    ];
    for (filter, larger, smaller) in cases {
        for (width, height, expected) in [(90, 80, larger), (25, 20, smaller)] {
            let set = [format!("width={width}"), format!("height={height}"), format!("filter={filter}")];
            let result = run("resize", &[&set[0], &set[1], &set[2]], std::slice::from_ref(&image));
            assert_eq!((result.width(), result.height()), (width, height));
            near(&result.planes()[0], &[(12, 10), (11, 9)], &expected, 3e-6, filter);
        }
    }
    let kept = run("resize", &["width=30"], std::slice::from_ref(&image));
    assert_eq!((kept.width(), kept.height()), (30, 25));
    let same = run("resize", &["width=60", "height=50"], std::slice::from_ref(&image));
    let close = values(&same)[0].iter().zip(&values(&image)[0]).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close, "the same size changes nothing");
    let step = &chain("resize", &["width=16777216", "height=16777216"]).unwrap()[0];
    assert!(reference::run(step, std::slice::from_ref(&image)).unwrap_err().to_string().starts_with("there is no memory"));
    let step = Settings::new(Effect::find("resize").unwrap());
    assert!(reference::run(&step, &[image]).unwrap_err().to_string().contains("needs a new size"));
}

#[test]
fn contrast_is_limited_as_in_opencv() {
    let value = |x: u32, y: u32| ((x * x / 400 + 3 * y) / 3) as u8;
    let samples: Vec<u8> = (0..120).flat_map(|y| (0..200).map(move |x| value(x, y))).collect();
    let image = Image::new(Rect::sized(200, 120), vec![Plane::new("Y", 200, 120, samples).unwrap()]).unwrap();
    let result = run("clahe", &["tiles=2", "clip=3"], &[image]);
    // OpenCV distributes the excess in integer counts and rounds its results.
    let expected = [2.0, 233.0, 110.0, 147.0].map(|value: f32| value / 255.0);
    near(&result.planes()[0], &[(0, 0), (199, 119), (130, 70), (30, 100)], &expected, 2.0 / 255.0, "clahe");
}

#[test]
fn edges_are_thin_and_connected() {
    let disc = |x: u32, y: u32| f32::from((x.abs_diff(32).pow(2) + y.abs_diff(24).pow(2)) < 200);
    let samples = (0..48).flat_map(|y| (0..64).map(move |x| disc(x, y))).collect();
    let image = Image::from_f32(64, 48, [("Y", samples)]).unwrap();
    let edges = run("canny", &["low=0.2", "high=1"], std::slice::from_ref(&image));
    let count: f32 = values(&edges)[0].iter().sum();
    assert!((70.0..=120.0).contains(&count), "{count} pixels of a circle of radius 14");
    let none = run("canny", &["low=0.2", "high=100"], &[image]);
    assert_eq!(values(&none)[0].iter().sum::<f32>(), 0.0);
}

#[test]
fn colours_are_mixed() {
    let image = Image::from_f32(1, 1, [("A", vec![0.5]), ("R", vec![1.0]), ("G", vec![2.0]), ("B", vec![3.0])]).unwrap();
    let one = std::slice::from_ref(&image);
    let mixed = run("color_matrix", &["matrix=0,1,0,0,0,1,1,1,1"], one);
    assert_eq!(values(&mixed).concat(), [0.5, 2.0, 3.0, 6.0]);
    assert_eq!(values(&run("tone_map", &["exposure=1"], one)).concat(), [0.5, 2.0 / 3.0, 0.8, 6.0 / 7.0]);
    let bent = run("curves", &["points=0,0,1,0.5,2,2", "interpolation=linear"], one);
    assert_eq!(values(&bent).concat(), [0.5, 0.5, 2.0, 3.5]);
    let smooth = run("curves", &["points=0,0,1,0.5,2,2"], one);
    assert_eq!(values(&smooth).concat()[1..3], [0.5, 2.0]);
    let few = Image::from_f32(1, 1, [("Y", vec![0.0])]).unwrap();
    let error = reference::run(&Settings::new(Effect::find("color_matrix").unwrap()), &[few]).unwrap_err();
    assert_eq!(error.to_string(), "`color_matrix`: it needs red, green and blue; the image has 1 of them");
    let step = &chain("curves", &["points=0,0,0,1"]).unwrap()[0];
    assert!(reference::run(step, one).unwrap_err().to_string().contains("x must ascend"));
    // Devices compute in f32. These numbers are equal in f32.
    let near = &chain("curves", &["points=1,0,1.00000001,1"]).unwrap()[0];
    assert!(
        reference::run(near, one).unwrap_err().to_string().ends_with("x must ascend as f32, and 1 is followed by 1.00000001")
    );
    for (name, settings) in [
        ("camera", ["black=1", "white=1.00000001"]),
        ("clahe", ["low=1", "high=1.00000001"]),
        ("bilateral_grid", ["low=1", "high=1.00000001"]),
    ] {
        let grey = Image::from_f32(1, 1, [("Y", vec![0.5])]).unwrap();
        let error = reference::run(&chain(name, &settings).unwrap()[0], &[grey]).unwrap_err().to_string();
        assert!(error.ends_with(", which is 1, as an f32"), "{error}");
    }
}

#[test]
fn extremes_leave_out_what_is_no_number() {
    let nan = f32::NAN;
    let image = Image::from_f32(4, 1, [("Y", vec![nan, nan, 2.0, -1.0])]).unwrap();
    let one = std::slice::from_ref(&image);
    for (name, inside) in [("erode", [2.0, -1.0, -1.0]), ("dilate", [2.0, 2.0, 2.0])] {
        let found = values(&run(name, &["boundary=clamp"], one)).concat();
        assert!(found[0].is_nan() && found[1..] == inside, "{name}: {found:?}");
        let same = values(&run(name, &["radius=0"], one)).concat();
        assert!(same[0].is_nan() && same[1].is_nan() && same[2..] == [2.0, -1.0], "{name}: {same:?}");
    }
}

#[test]
fn screens_are_keyed() {
    let colors = [("R", vec![0.0, 1.0, 0.5]), ("G", vec![1.0, 0.0, 0.5]), ("B", vec![0.0, 0.0, 0.5])];
    let image = Image::from_f32(3, 1, colors).unwrap();
    let result = run("key", &[], std::slice::from_ref(&image));
    assert!(result.names().eq(["R", "G", "B", "A"]));
    assert_eq!(values(&result)[3], [0.0, 1.0, 1.0]);
    assert!(values(&result)[..3].iter().all(|plane| plane[0] == 0.0));
    assert!((values(&result)[1][2] - 0.5).abs() < 1e-6);
    let step = &chain("key", &["color=1,1,1"]).unwrap()[0];
    assert!(reference::run(step, &[image]).unwrap_err().to_string().ends_with("it must not be grey"));
}

#[test]
fn fields_move_pixels() {
    let image = pattern(5, 4, &["R", "G"]);
    let field = |dx: f32, dy: f32| Image::from_f32(5, 4, [("X", vec![dx; 20]), ("Y", vec![dy; 20])]).unwrap();
    let moved = run("warp", &["boundary=wrap"], &[image.clone(), field(1.0, -1.0)]);
    assert_eq!(moved.planes()[1].value(4, 0), image.planes()[1].value(0, 3));
    let between = run("warp", &["scale=0.5", "boundary=clamp"], &[image.clone(), field(1.0, 0.0)]);
    let mean = (image.planes()[0].value(1, 2).unwrap() + image.planes()[0].value(2, 2).unwrap()) / 2.0;
    assert!((between.planes()[0].value(1, 2).unwrap() - mean).abs() < 1e-6);
    for far in [f32::NAN, f32::INFINITY, -1e30] {
        for rule in ["clamp", "mirror", "wrap", "constant"] {
            run("warp", &[&format!("boundary={rule}")], &[image.clone(), field(far, far)]);
        }
    }
    let step = Settings::new(Effect::find("warp").unwrap());
    let error = reference::run(&step, &[image.clone(), pattern(4, 4, &["X", "Y"])]).unwrap_err().to_string();
    assert_eq!(error, "`warp`: its images must cover the same pixels; one is 5×4 at (0, 0), another 4×4 at (0, 0)");
    let error = reference::run(&step, &[image]).unwrap_err().to_string();
    assert_eq!(error, "`warp`: it takes 2 images, and there are 1");
}

#[test]
fn motion_is_followed() {
    // A picture that moves by (1, 2) per frame. The mean along the motion is the current frame.
    let whole = noise(40, 40, &["R", "G"], 5);
    let frame = |step: i32| {
        let view = whole.view(Rect::new(8 - step, 8 - 2 * step, 20, 20)).unwrap();
        view.with_origin(0, 0).unwrap()
    };
    let frames: Vec<Image> = (0..3).map(frame).collect();
    let result = run("temporal_degrain", &["frames=1", "strength=100", "block=5"], &frames);
    let middle = |image: &Image| values(&image.view(Rect::new(5, 5, 10, 10)).unwrap()).concat();
    let close = middle(&result).iter().zip(middle(&frames[1])).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(close, "the motion was not found");
    let plain = run("temporal_degrain", &["frames=1", "strength=100", "search=0"], &frames);
    assert_ne!(middle(&plain), middle(&frames[1]));
    let error = reference::run(&Settings::new(Effect::find("temporal_degrain").unwrap()), &frames).unwrap_err();
    assert_eq!(error.to_string(), "`temporal_degrain`: it takes 5 images, and there are 3");
}

#[test]
fn constant_images_stay_constant() {
    let image = Image::filled(Rect::sized(20, 14), &["R", "G", "B"], 0.375f32).unwrap();
    for name in ["gaussian", "box", "median", "bilateral", "bilateral_grid", "degrain", "diffusion", "nlmeans", "unsharp"] {
        let result = run(name, &[], std::slice::from_ref(&image));
        let far = values(&result).concat().into_iter().map(|value| (value - 0.375).abs()).fold(0.0, f32::max);
        assert!(far < 1e-6, "{name} is off by {far}");
    }
}

#[test]
fn details_grow_with_alpha() {
    let image = noise(24, 17, &["Y"], 3);
    let spread = |image: &Image| values(image)[0].iter().map(|value| (value - 0.5).powi(2)).sum::<f32>();
    let plain = run("local_laplacian", &["alpha=0"], std::slice::from_ref(&image));
    let close = values(&plain)[0].iter().zip(&values(&image)[0]).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(close, "without gain nothing changes");
    assert!(spread(&run("local_laplacian", &["alpha=4"], std::slice::from_ref(&image))) > 1.1 * spread(&image));
}

#[test]
fn grids_smooth_and_keep_edges() {
    let step = |x: u32| if x < 16 { 0.2 } else { 0.8 };
    let samples: Vec<f32> = (0..24 * 32u32).map(|i| step(i % 32) + 0.02 * ((i * 7 % 5) as f32 - 2.0)).collect();
    let image = Image::from_f32(32, 24, [("Y", samples)]).unwrap();
    let result = run("bilateral_grid", &["cell=4"], std::slice::from_ref(&image));
    for (x, y) in [(3, 3), (14, 10), (17, 10), (30, 20)] {
        let value = result.planes()[0].value(x, y).unwrap();
        assert!((value - step(x)).abs() < 0.03, "{value} at ({x}, {y})");
    }
    let fine = &chain("bilateral_grid", &["range=0.0001"]).unwrap()[0];
    assert!(reference::run(fine, &[image]).unwrap_err().to_string().contains("it must be at least 1/4094 of high − low"));
}

/// Returns images for an effect.
fn inputs(settings: &Settings, image: &Image) -> Vec<Image> {
    match settings.effect().inputs {
        Inputs::Images(roles) => vec![image.clone(); roles.len()],
        Inputs::Frames(parameter) => vec![image.clone(); 2 * settings.integer(parameter) as usize + 1],
    }
}

#[test]
fn every_effect_takes_every_size_rule_and_number_of_planes() {
    let all = ["R", "G", "B", "A", "Z", "l.R", "l.G", "l.B"];
    for (width, height) in [(1, 1), (1, 3), (2, 1), (5, 4)] {
        for count in [1, 3, 8] {
            let image = noise(width, height, &all[..count], u64::from(width) + count as u64);
            let image = image.with_origin(-7, 3).unwrap();
            for effect in EFFECTS.iter().filter(|effect| effect.name != "lut") {
                let sensor = matches!(effect.name, "demosaic" | "camera");
                let needs_colors = matches!(effect.name, "color_matrix" | "key" | "grayscale" | "channels");
                let too_few = needs_colors && count < 3 || effect.name == "warp" && count < 2;
                for rule in ["clamp", "mirror", "wrap", "constant"] {
                    let mut settings = Settings::new(effect);
                    if effect.boundary.is_some() {
                        settings.set("boundary", rule).unwrap();
                    } else if rule != "clamp" {
                        continue;
                    }
                    if effect.name == "resize" {
                        settings.set("width", "3").unwrap();
                    }
                    let result = Reference.run(&settings, &inputs(&settings, &image));
                    if sensor && count > 1 || too_few {
                        assert!(result.is_err(), "{}", effect.name);
                        continue;
                    }
                    let result = result.unwrap_or_else(|error| panic!("{error}"));
                    assert!(values(&result).concat().iter().all(|value| value.is_finite()), "{} {rule}", effect.name);
                    if !matches!(effect.name, "resize" | "rotate") {
                        assert_eq!(result.bounds(), image.bounds());
                    }
                }
            }
        }
    }
}

#[test]
fn padding_and_regions_do_not_show() {
    let wide = noise(12, 9, &["R", "G", "B"], 2);
    let view = wide.view(Rect::new(2, 1, 7, 6)).unwrap();
    let tight =
        Image::new(view.bounds(), view.planes().iter().map(|p| Plane::new(p.name(), 7, 6, p.to_f32()).unwrap()).collect())
            .unwrap();
    for effect in EFFECTS.iter().filter(|effect| !matches!(effect.name, "lut" | "demosaic" | "camera" | "resize")) {
        let settings = Settings::new(effect);
        let of = |image: &Image| values(&reference::run(&settings, &inputs(&settings, image)).unwrap());
        assert_eq!(of(&view), of(&tight), "{}", effect.name);
    }
}

#[test]
fn ends_of_ranges_do_not_panic() {
    let image = Image::from_f32(2, 2, ["R", "G", "B"].map(|name| (name, vec![0.0, -1.0, f32::NAN, 1e30]))).unwrap();
    for effect in EFFECTS.iter().filter(|effect| effect.name != "lut") {
        for parameter in effect.all_parameters() {
            let ends = match parameter.kind {
                Kind::Integer(low, _) | Kind::Odd(low, _) => vec![low.to_string()],
                // The largest image would take minutes.
                Kind::Number(low, _) if parameter.name == "percent" => vec![low.to_string()],
                Kind::Number(low, high) if parameter.name != "sigma" => vec![low.to_string(), high.to_string()],
                Kind::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
                _ => vec![],
            };
            for end in ends {
                let mut settings = Settings::new(effect);
                settings.set(parameter.name, &end).unwrap();
                let _ = reference::run(&settings, &inputs(&settings, &image));
            }
        }
    }
}

#[test]
fn chains_pass_results_on() {
    let image = pattern(9, 7, &["R", "G", "B"]);
    let steps = chain("box,warp,tone_map", &["radius=1"]).unwrap();
    let field = Image::from_f32(9, 7, [("X", vec![0.0; 63]), ("Y", vec![0.0; 63])]).unwrap();
    let result = {
        let chain = Chain { steps: &steps, inputs: std::slice::from_ref(&image), further: &[field], planes: &[], region: None };
        Reference.run_chain(&chain, &mut |_, _| {}).unwrap()
    };
    let soft = run("box", &["radius=1"], &[image]);
    assert_eq!(values(&result), values(&run("tone_map", &[], &[soft])));
}

fn run_one(name: &str, settings: &[&str], image: &Image) -> Image {
    run(name, settings, std::slice::from_ref(image))
}

#[test]
fn pixels_move_by_crop_rotate_and_flip() {
    let image = Image::from_f32(3, 2, [("Y", vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]).unwrap();
    let of = |name: &str, settings: &[&str]| {
        let result = run_one(name, settings, &image);
        (result.width(), result.planes()[0].to_f32())
    };
    assert_eq!(of("crop", &["x=1", "width=1"]), (1, vec![2.0, 5.0]));
    assert_eq!(of("crop", &["y=1"]), (3, vec![4.0, 5.0, 6.0]));
    assert_eq!(of("rotate", &[]), (2, vec![4.0, 1.0, 5.0, 2.0, 6.0, 3.0]));
    assert_eq!(of("rotate", &["angle=180"]), (3, vec![6.0, 5.0, 4.0, 3.0, 2.0, 1.0]));
    assert_eq!(of("rotate", &["angle=270"]), (2, vec![3.0, 6.0, 2.0, 5.0, 1.0, 4.0]));
    assert_eq!(of("flip", &[]), (3, vec![3.0, 2.0, 1.0, 6.0, 5.0, 4.0]));
    assert_eq!(of("flip", &["axis=vertical"]), (3, vec![4.0, 5.0, 6.0, 1.0, 2.0, 3.0]));
    assert_eq!(of("resize", &["percent=200", "filter=nearest"]).1[..6], [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    assert_eq!(of("resize", &["width=1", "height=2", "filter=nearest"]), (1, vec![2.0, 5.0]));
    let error = |name: &str, settings: &[&str]| {
        reference::run(&chain(name, settings).unwrap()[0], std::slice::from_ref(&image)).unwrap_err().to_string()
    };
    assert_eq!(error("crop", &["x=2", "width=2"]), "`crop`: 2×2 at (2, 0) is not in the image, which has 3×2 pixels");
    assert_eq!(error("crop", &["y=2"]), "`crop`: 3×0 at (0, 2) is not in the image, which has 3×2 pixels");
    assert!(error("resize", &["width=2", "percent=50"]).contains("its new size is given twice"));
}

#[test]
fn planes_are_selected_and_composed() {
    let one = |names: &[&str], values: &[f32]| {
        Image::from_f32(1, 1, names.iter().zip(values).map(|(name, value)| (*name, vec![*value])).collect::<Vec<_>>()).unwrap()
    };
    let of = |image: &Image| image.planes().iter().map(|plane| (plane.name().to_owned(), plane.to_f32()[0])).collect::<Vec<_>>();
    let named = |pairs: &[(&str, f32)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<Vec<_>>();
    let image = one(&["R", "G", "B", "A"], &[0.5, 0.25, 1.0, 0.5]).with_alpha(Alpha::Straight);
    assert_eq!(of(&run_one("channels", &["planes=B,R=G,A=1"], &image)), named(&[("B", 1.0), ("R", 0.25), ("A", 1.0)]));
    assert_eq!(of(&run_one("grayscale", &["weights=1,2,3"], &image)), named(&[("A", 0.5), ("Y", 4.0)]));
    assert_eq!(
        of(&run_one("levels", &["black=0.25", "white=0.75", "gamma=2", "high=2"], &image))[..3],
        named(&[("R", 2.0 * 0.5f32.sqrt()), ("G", 0.0), ("B", 2.0)])
    );
    let associated = run_one("premultiply", &[], &image);
    assert_eq!((of(&associated)[0].1, of(&associated)[3].1, associated.alpha()), (0.25, 0.5, Alpha::Associated));
    let straight = run_one("premultiply", &["alpha=straight"], &associated);
    assert_eq!((of(&straight), straight.alpha()), (of(&image), Alpha::Straight));
    let over = |image: &Image, below: &Image| {
        reference::run(&chain::<&str>("composite", &[]).unwrap()[0], &[image.clone(), below.clone()])
    };
    let opaque = one(&["R", "G", "B"], &[1.0, 1.0, 0.0]);
    assert_eq!(of(&over(&image, &opaque).unwrap()), named(&[("R", 0.75), ("G", 0.625), ("B", 0.5)]));
    assert_eq!(of(&over(&opaque, &image).unwrap()), named(&[("R", 1.0), ("G", 1.0), ("B", 0.0), ("A", 1.0)]));
    let both = over(&image, &image).unwrap();
    assert_eq!((of(&both), both.alpha()), (named(&[("R", 0.375), ("G", 0.1875), ("B", 0.75), ("A", 0.75)]), Alpha::Associated));
    let error = over(&image, &one(&["Y"], &[1.0])).unwrap_err().to_string();
    assert_eq!(error, "`composite`: the background has no plane `R`; it has Y");
    let error = |planes: &str| chain("channels", &[planes]).unwrap_err().to_string();
    assert!(error("planes=R,R").contains("it takes planes with commas between them"));
    let missing = reference::run(&chain("channels", &["planes=Q"]).unwrap()[0], &[image]).unwrap_err().to_string();
    assert_eq!(missing, "there is no plane `Q`; there is R, G, B, A");
}

/// Noise of 0.02 in a picture of waves and edges: the default removes most of it, and the estimate finds it.
#[test]
fn degrain_improves_a_noisy_picture() {
    let (width, height) = (96, 80);
    let clean: Vec<f32> = (0..width * height)
        .map(|at| {
            let (x, y) = ((at % width) as f32, (at / width) as f32);
            let edge = if (x - 48.0).hypot(y - 40.0) < 25.0 { 0.25 } else { 0.0 };
            0.4 + 0.15 * (x * 0.15).sin() * (y * 0.11).cos() + edge
        })
        .collect();
    let mut random = crate::values::Random(7);
    let mut uniform = || (random.bits() >> 40) as f32 / (1u64 << 24) as f32;
    // A sum of twelve uniform numbers is nearly normal, with a deviation of 1.
    let noisy = clean.iter().map(|value| value + 0.02 * ((0..12).map(|_| uniform()).sum::<f32>() - 6.0)).collect::<Vec<f32>>();
    let image = Image::from_f32(width, height, [("Y", noisy.clone())]).unwrap();
    let mut estimate = broadloom_effect::image::NoiseEstimate::new(&image);
    estimate.add(&image);
    let (name, noise) = estimate.finish().remove(0);
    assert!(name == "Y" && (0.018..0.023).contains(&noise), "{name} {noise}");
    let psnr = |values: &[f32]| {
        let sum: f64 = values.iter().zip(&clean).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        -10.0 * (sum / f64::from(width * height)).log10()
    };
    let (before, after) = (psnr(&noisy), psnr(&values(&run("degrain", &[], &[image]))[0]));
    assert!(before < 34.3 && after > before + 4.0, "{before} {after}");
}
