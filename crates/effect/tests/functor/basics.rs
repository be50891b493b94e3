//! Tests of functors of each kind against their definitions.

use crate::devices::{Images, Random, assert_near, at, contexts, middle, thorough};
use broadloom_effect::functor::{Axis, Functor, Indexer, Kernel, Moving, Output, Precise, Primitive, Real};
use broadloom_effect::plan::{Options, Plan, Switch};
use broadloom_effect::{Boundary, Image, Picture, Rect, Reduction, Result};
use broadloom_skeleton::Rule;

/// The wavelet transform along an axis, as in the paper.
struct Dwt1d {
    axis: Axis,
    radius: u32,
}

impl Functor for Dwt1d {
    fn name(&self) -> String {
        "dwt1d".into()
    }
    fn inputs(&self) -> Vec<Indexer> {
        vec![Indexer::line(self.axis, self.radius)]
    }
    fn outputs(&self) -> Vec<Output> {
        vec![Output::Component, Output::Component]
    }
    fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
        let (input, radius) = (k.input(0), self.radius as i32);
        let centre = input.centre();
        let high = (centre - (input.along(radius) + input.along(-radius)) * 0.5) * 0.5;
        vec![high, centre - high]
    }
}

/// Mean of a square, by a loop whose radius is a parameter.
struct Square {
    radius: u32,
    looks: f32,
}

impl Functor for Square {
    fn name(&self) -> String {
        "square".into()
    }
    fn inputs(&self) -> Vec<Indexer> {
        vec![Indexer::square(self.radius)]
    }
    fn parameters(&self) -> Vec<f32> {
        vec![self.looks]
    }
    fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
        let radius = k.parameter(0).cast::<i32>();
        let sum = k.local(0.0f32);
        k.repeat(-radius, radius + 1, |y| {
            k.repeat(-radius, radius + 1, |x| sum.set(sum.get() + k.input(0).at(x, y)));
        });
        let side = k.parameter(0) * 2.0 + 1.0;
        vec![sum.get() / (side * side)]
    }
}

/// Sum of a line, carried along it.
struct Running {
    axis: Axis,
    radius: u32,
    backwards: bool,
}

impl Moving for Running {
    fn name(&self) -> String {
        "running".into()
    }
    fn axis(&self) -> Axis {
        self.axis
    }
    fn backwards(&self) -> bool {
        self.backwards
    }
    fn inputs(&self) -> Vec<Indexer> {
        vec![Indexer::line(self.axis, self.radius + 1)]
    }
    fn start<'k>(&self, k: Kernel<'k>) -> Vec<Precise<'k>> {
        let (sum, radius) = (k.local(0.0f64), self.radius as i32);
        let shift = if self.backwards { 1 } else { -1 };
        k.repeat(shift - radius, shift + radius + 1, |i| sum.set(sum.get() + k.input(0).along(i).cast::<f64>()));
        vec![sum.get()]
    }
    fn step<'k>(&self, k: Kernel<'k>, state: &[Precise<'k>]) -> (Vec<Precise<'k>>, Vec<Real<'k>>) {
        let radius = self.radius as i32;
        let (new, old) = if self.backwards { (-radius, radius + 1) } else { (radius, -radius - 1) };
        let sum = state[0] + k.input(0).along(new).cast::<f64>() - k.input(0).along(old).cast::<f64>();
        // The position is part of the result, so that it is tested too.
        let place = (k.x() + k.y() * 100 + k.width() + k.component() * 1000).cast::<f32>();
        (vec![sum], vec![sum.cast::<f32>() + place])
    }
}

const RULES: [(Boundary, Rule); 4] = [
    (Boundary::Clamp, Rule::Clamp),
    (Boundary::Mirror, Rule::Mirror),
    (Boundary::Wrap, Rule::Wrap),
    (Boundary::Constant(0.25), Rule::Constant),
];

fn image_of(image: &Image, planes: usize, pixel: impl Fn(usize, i64, i64) -> f32) -> Image {
    let (width, height) = (image.width(), image.height());
    let names = ["0", "1", "2", "3"];
    let planes = (0..planes).map(|plane| {
        let places = (0..i64::from(height)).flat_map(|y| (0..i64::from(width)).map(move |x| (x, y)));
        (names[plane], places.map(|(x, y)| pixel(plane, x, y)).collect())
    });
    Image::from_f32(width, height, planes).expect("an image")
}

#[test]
fn point_and_window_functors_compute_their_definitions() -> Result<()> {
    for (device, context) in contexts().iter().enumerate() {
        let mut random = Random(1);
        let few = device > 0 && !thorough();
        for (width, height) in if few { &[(37, 11)][..] } else { &[(1, 1), (7, 5)] }.iter().copied() {
            let image = random.image(2, width, height);
            let picture = Picture::new(context, &image)?;
            let scale = Primitive::point("scale", 2, |x| x[0] * 2.0 - x[1] * x[1])?;
            let [scaled] = scale.call([&picture, &picture])?;
            let value = |plane, x, y| at(&image, plane, x, y, Rule::Clamp, 0.0);
            let expected = image_of(&image, 2, |p, x, y| value(p, x, y) * 2.0 - value(p, x, y) * value(p, x, y));
            assert_near(&scaled.image()?, &expected, 0.0, "point");
            for (boundary, rule) in RULES.into_iter().skip(if few { 3 } else { 0 }) {
                let value = |p, x, y| at(&image, p, x, y, rule, 0.25);
                for (axis, dx, dy) in [(Axis::Horizontal, 2, 0), (Axis::Vertical, 0, 2)] {
                    let dwt = Dwt1d { axis, radius: 2 }.build()?.with_boundary(boundary);
                    let [high, low] = dwt.call([&picture])?;
                    let [sum] = Primitive::point("sum", 2, |x| x[0] + x[1])?.call([&high, &low])?;
                    let expected = image_of(&image, 2, |p, x, y| {
                        (value(p, x, y) - (value(p, x + dx, y + dy) + value(p, x - dx, y - dy)) * 0.5) * 0.5
                    });
                    assert_near(&high.image()?, &expected, 0.0, &format!("dwt {boundary:?}"));
                    assert_near(&sum.image()?, &image_of(&image, 2, value), 1e-6, "the parts give the whole");
                }
                let square = Square { radius: 3, looks: 2.0 }.build()?.with_boundary(boundary);
                let [mean] = square.call([&picture])?;
                let expected = image_of(&image, 2, |p, x, y| {
                    let places = (-2..3).flat_map(|dy| (-2..3).map(move |dx| (dx, dy)));
                    places.map(|(dx, dy)| value(p, x + dx, y + dy)).sum::<f32>() / 25.0
                });
                for stage in [Switch::Off, Switch::On] {
                    let options = Options { stage, ..Options::default() };
                    let found = mean.region(mean.bounds(), &options)?;
                    assert_near(&found, &expected, 1e-6, &format!("square {boundary:?} {stage:?}"));
                    let part = middle(mean.bounds());
                    assert_near(&mean.region(part, &options)?, &expected.view(part)?, 1e-6, "a region");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn moving_averages_carry_their_state() -> Result<()> {
    for (device, context) in contexts().iter().enumerate() {
        let mut random = Random(2);
        let few = device > 0 && !thorough();
        for (width, height) in if few { &[(37, 35)][..] } else { &[(1, 1), (11, 8)] }.iter().copied() {
            let image = random.image(2, width, height);
            let picture = Picture::new(context, &image)?;
            let motions = [Axis::Horizontal, Axis::Vertical].into_iter().cycle().zip([false, true, true, false]);
            for ((boundary, rule), (axis, backwards)) in RULES.into_iter().zip(motions).skip(if few { 2 } else { 0 }) {
                let [sum] = Running { axis, radius: 3, backwards }.build()?.with_boundary(boundary).call([&picture])?;
                let expected = image_of(&image, 2, |p, x, y| {
                    let one = |i| match axis {
                        Axis::Horizontal => at(&image, p, x + i, y, rule, 0.25),
                        Axis::Vertical => at(&image, p, x, y + i, rule, 0.25),
                    };
                    let place = x + 100 * y + i64::from(width) + 1000 * p as i64;
                    (-3..4).map(one).sum::<f32>() + place as f32
                });
                for (carry, transpose) in [(Switch::On, Switch::Off), (Switch::Off, Switch::Off), (Switch::On, Switch::On)] {
                    let options = Options { carry, transpose, ..Options::default() };
                    let what = format!("{axis:?} {boundary:?} {options}");
                    assert_near(&sum.region(sum.bounds(), &options)?, &expected, 0.0, &what);
                    let part = middle(sum.bounds());
                    assert_near(&sum.region(part, &options)?, &expected.view(part)?, 0.0, &what);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn regions_shrink_and_mistakes_are_told() -> Result<()> {
    let context = &contexts()[0];
    let picture = Picture::new(context, &Random(3).image(1, 9, 8))?;
    let dwt = Dwt1d { axis: Axis::Horizontal, radius: 2 }.build()?.with_boundary(Boundary::Shrink);
    let [high, _] = dwt.call([&picture])?;
    assert_eq!(high.bounds(), Rect::new(2, 0, 5, 8));
    assert_eq!(high.image()?.bounds(), high.bounds());
    let small = Picture::new(context, &Random(3).image(1, 4, 4))?;
    let told = dwt.apply(&[&small]).expect_err("it shrinks to nothing").to_string();
    assert!(told.contains("smaller than the window"), "{told}");

    struct Far;
    impl Functor for Far {
        fn name(&self) -> String {
            "far".into()
        }
        fn inputs(&self) -> Vec<Indexer> {
            vec![Indexer::square(1)]
        }
        fn kernel<'k>(&self, k: Kernel<'k>) -> Vec<Real<'k>> {
            vec![k.input(0).at(2, 0)]
        }
    }
    let told = Far.build().expect_err("a read outside").to_string();
    assert!(told.starts_with("functor `far`: input 0: a read 2 columns away is outside of its declared window"), "{told}");

    // A parameter determines the offsets of reads. The error is found at run time, only in checking mode.
    let square = Square { radius: 1, looks: 3.0 }.build()?;
    let [mean] = square.call([&picture])?;
    let options = Options { check: true, ..Options::default() };
    let told = mean.region(mean.bounds(), &options).expect_err("a read outside").to_string();
    assert!(told.starts_with("functor `square`, input 0: a read at ("), "{told}");
    assert!(told.contains("1 left, 1 right, 1 above, 1 below"), "{told}");
    mean.image()?;
    let [mean] = square.with_parameters(&[1.0])?.call([&picture])?;
    mean.region(mean.bounds(), &options)?;

    // Parameters change without a new compilation.
    let before = context.statistics();
    let plan = Plan::new(&[(square_mean(&picture, 0.5)?, picture.bounds())], &Options::default())?;
    plan.run()?;
    let after_one = context.statistics();
    Plan::new(&[(square_mean(&picture, 0.75)?, picture.bounds())], &Options::default())?.run()?;
    assert!(after_one.plans >= before.plans);
    assert_eq!(context.statistics().plans, after_one.plans);
    Ok(())
}

fn square_mean(picture: &Picture, looks: f32) -> Result<Picture> {
    Square { radius: 4, looks }.build()?.one(&[picture])
}

#[test]
fn frames_are_read_together_and_pictures_are_reduced() -> Result<()> {
    let context = &contexts()[0];
    let mut random = Random(4);
    let images: Vec<Image> = (0..3).map(|_| random.image(2, 5, 4)).collect();
    let frames = images.iter().map(|image| Picture::new(context, image)).collect::<Result<Vec<Picture>>>()?;
    let inputs = [Indexer::line(Axis::Horizontal, 1).frames(1, 1)];
    let blend = Primitive::from_kernel("blend", &inputs, &[Output::Component], &[], |k| {
        let input = k.input(0);
        vec![input.frame(-1).along(1) + input.centre() * 2.0 - input.frame(1).along(-1)]
    })?;
    let blend = blend.with_boundary(Boundary::Clamp);
    let [blended] = blend.call([&frames[0], &frames[1], &frames[2]])?;
    let value = |frame: usize, p, x, y| at(&images[frame], p, x, y, Rule::Clamp, 0.0);
    let expected = image_of(&images[1], 2, |p, x, y| value(0, p, x + 1, y) + value(1, p, x, y) * 2.0 - value(2, p, x - 1, y));
    assert_near(&blended.image()?, &expected, 0.0, "frames");
    let told = blend.apply(&[&frames[0]]).expect_err("frames are missing").to_string();
    assert!(told.contains("it takes 3 images, and is given 1"), "{told}");

    let options = Options::default();
    let samples: Vec<Vec<f32>> = expected.planes().iter().map(|plane| plane.to_f32()).collect();
    let least: Vec<f64> = samples.iter().map(|plane| f64::from(plane.iter().copied().fold(f32::MAX, f32::min))).collect();
    let sums: Vec<f64> = samples.iter().map(|plane| plane.iter().map(|sample| f64::from(*sample)).sum()).collect();
    assert_eq!(blended.reduce(Reduction::Least, &options)?, least);
    assert_eq!(blended.reduce(Reduction::Sum, &options)?, sums);
    let counts = blended.histogram(4, -1.0, 3.0, &options)?;
    for (plane, counts) in samples.iter().zip(counts) {
        let bin = |sample: &&f32, bin: usize| ((**sample + 1.0).floor().clamp(0.0, 3.0)) as usize == bin;
        let expected: Vec<u32> = (0..4).map(|number| plane.iter().filter(|sample| bin(sample, number)).count() as u32).collect();
        assert_eq!(counts, expected);
    }
    assert!(blended.histogram(0, 0.0, 1.0, &options).is_err());
    Ok(())
}

/// Compares with the power of `f64`, from the smallest normal number to 1. Both devices give the same bits.
#[test]
fn powers_of_numbers_up_to_one_are_near() -> Result<()> {
    let mut samples: Vec<f32> = (1..=254u32).map(|exponent| f32::from_bits(exponent << 23)).filter(|x| *x <= 1.0).collect();
    let mut random = Random(41);
    samples.extend((0..400).map(|number| (random.bits() >> 40) as f32 / (1u64 << 24) as f32 * 0.5f32.powi(number % 30)));
    samples.extend([
        0.0,
        f32::from_bits(1),
        f32::MIN_POSITIVE / 2.0,
        1.0 - f32::EPSILON / 2.0,
        0.5,
        0.70710677,
        std::f32::consts::FRAC_1_SQRT_2,
    ]);
    let image = Image::from_f32(samples.len() as u32, 1, [("R", samples.clone())])?;
    for exponent in [1.0f32 / 2.2, 1.0, 3.5, 0.01, 20.0] {
        let power = |context| -> Result<Vec<f32>> {
            let functor = Primitive::from_kernel("power", &[Indexer::point()], &[Output::Component], &[exponent], |k| {
                vec![k.input(0).centre().power_of_unit(k.parameter(0))]
            })?;
            Ok(functor.one(&[&Picture::new(context, &image)?])?.image()?.planes()[0].to_f32().to_vec())
        };
        let [interp, cpu] = contexts();
        let found = power(interp)?;
        assert_eq!(found, power(cpu)?, "exponent {exponent}");
        for (x, found) in samples.iter().zip(&found) {
            let expected = if *x < f32::MIN_POSITIVE { 0.0 } else { f64::from(*x).powf(f64::from(exponent)) };
            let error = f64::from(1.0 + exponent) * 2f64.powi(-22) + expected.log2().abs().min(126.0) * 2f64.powi(-24);
            // Subnormal results only have to be small.
            let near = (f64::from(*found) - expected).abs() <= expected * error || expected < 2e-38 && *found < 2e-38;
            assert!(near, "{x}^{exponent}: {found} and not {expected}");
        }
    }
    Ok(())
}
