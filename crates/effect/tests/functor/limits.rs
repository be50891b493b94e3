//! Tests of settings at the ends of their ranges, and of NaN.

use crate::devices::{Images, Random, assert_near, contexts};
use broadloom_effect::catalogue::{EFFECTS, EffectError, Inputs, Kind, Settings, chain};
use broadloom_effect::effects::{self, Layers};
use broadloom_effect::plan::Options;
use broadloom_effect::{Image, reference};

/// Builds the graph of an effect with one setting for images of 6×5 pixels.
fn built(settings: &Settings, image: &Image) -> Result<Layers, EffectError> {
    let count = match settings.effect().inputs {
        Inputs::Images(roles) => roles.len(),
        Inputs::Frames(parameter) => 2 * settings.integer(parameter) as usize + 1,
    };
    let inputs: Vec<Layers> = (0..count).map(|_| Layers::from(image)).collect();
    effects::apply(&contexts()[0], settings, &inputs)
}

/// Effects accept every value that the catalogue allows. Graphs are built and not computed.
#[test]
fn the_ends_of_ranges_are_possible() {
    let mut random = Random(51);
    let mut count = 0;
    for effect in EFFECTS.iter().filter(|effect| !matches!(effect.name, "canny" | "lut")) {
        let planes = if matches!(effect.name, "demosaic" | "camera") { 1 } else { 3 };
        let image = random.image(planes, 6, 5);
        for parameter in effect.all_parameters() {
            let ends = match parameter.kind {
                // A size is possible if there is memory for it.
                _ if matches!(effect.name, "resize" | "crop") => vec![],
                Kind::Integer(low, high) | Kind::Odd(low, high) => vec![low.to_string(), high.to_string()],
                Kind::Number(low, high) => vec![low.to_string(), high.to_string()],
                Kind::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
                Kind::Numbers(_) | Kind::Planes | Kind::File => vec![],
            };
            for end in ends {
                let mut settings = Settings::new(effect);
                settings.set(parameter.name, &end).expect("a value of the range");
                let other = matches!((effect.name, parameter.name), (_, "low" | "high") | ("bilateral_grid", "range"));
                match built(&settings, &image) {
                    Ok(_) => count += 1,
                    // These two settings depend on each other.
                    Err(EffectError::BadValue { .. }) if other => {}
                    Err(error) => panic!("{} {}={end}: {error}", effect.name, parameter.name),
                }
            }
        }
    }
    assert!(count > 150, "{count} settings");
}

#[test]
fn settings_that_are_too_much_together_are_told() {
    let image = Random(52).image(3, 6, 5);
    let error = |name: &str, settings: &[&str]| match built(&chain(name, settings).expect("settings")[0], &image) {
        Ok(_) => panic!("{name} {settings:?} is possible"),
        Err(error) => {
            // The machine is not at fault.
            assert!(matches!(error, EffectError::Inputs { .. } | EffectError::BadValue { .. }), "{error:?}");
            error.to_string()
        }
    };
    let told = error("clahe", &["tiles=256", "bins=65536"]);
    assert!(told.ends_with("make 12884901888 bins, and 67108864 are possible: set tiles or bins to less"), "{told}");
    let told = error("bilateral_grid", &["range=0.0001"]);
    assert_eq!(told, "`bilateral_grid` cannot have range=0.0001: it must be at least 1/4094 of high − low, which are 1 and 0");
    let told = error("resize", &["width=16777216"]);
    assert!(
        told.starts_with("`resize`: from ")
            && told.ends_with("weights, and at most 67108864 are possible: choose a smaller size"),
        "{told}"
    );
    assert!(error("camera", &[]).ends_with("the image has 3"));
}

#[test]
fn extremes_leave_out_what_is_no_number() {
    let mut samples = Random(53).image(1, 7, 6).planes()[0].to_f32();
    for place in [0, 1, 7, 8, 20, 33] {
        samples[place] = f32::NAN;
    }
    let image = Image::from_f32(7, 6, [("Y", samples)]).expect("an image");
    for (context, texts) in contexts().iter().zip([&["erode", "dilate", "close"][..], &["close"]]) {
        for text in texts {
            let step = chain(text, &["boundary=clamp"]).expect("settings").swap_remove(0);
            let expected = reference::run(&step, std::slice::from_ref(&image)).expect("an image");
            let found = effects::run(context, &step, std::slice::from_ref(&image), &Options::default()).expect("an image");
            let is_nan = |image: &Image| image.planes()[0].to_f32().iter().map(|value| value.is_nan()).collect::<Vec<bool>>();
            assert_eq!(is_nan(&found), is_nan(&expected), "{text}");
            let finite = |image: &Image| {
                let samples = image.planes()[0].to_f32().into_iter().map(|value| if value.is_nan() { 9.0 } else { value });
                Image::from_f32(7, 6, [("Y", samples.collect())]).expect("an image")
            };
            assert_near(&finite(&found), &finite(&expected), 0.0, text);
        }
    }
}
