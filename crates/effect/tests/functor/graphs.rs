//! Tests of chains as one graph, tiles, memory, and asynchronous reductions.

use crate::devices::{Images, Random, assert_near, contexts};
use broadloom_device::Device;
use broadloom_effect::catalogue::{Chain, Engine, Reference, chain};
use broadloom_effect::effects::{self, Layers, OnDevice};
use broadloom_effect::functor::{Axis, Indexer, Output, Primitive};
use broadloom_effect::plan::{self, Options, Plan, Switch};
use broadloom_effect::{Boundary, Image, Picture, Rect, Reduction, Result, SampleType};
use broadloom_graph::Context;

/// Returns a CPU with the given memory. Larger allocations fail.
fn cpu(memory_bytes: u64) -> Context {
    let options = broadloom_cpu::Options { memory_bytes, ..broadloom_cpu::Options::default() };
    Context::new(&Device::new(broadloom_cpu::Cpu::new(options).expect("a CPU")))
}

#[test]
fn a_chain_is_one_graph() {
    let context = &contexts()[0];
    let image = Random(40).image(4, 9, 7);
    let steps = chain("gaussian,unsharp,color_matrix", &["gaussian.sigma=0.6", "unsharp.sigma=0.6"]).expect("a chain");
    let inputs = std::slice::from_ref(&image);
    let all = Chain { steps: &steps, inputs, further: &[], planes: &[], region: None };
    let layers = effects::chained(context, &all).expect("a graph");
    let wanted: Vec<(Picture, Rect)> = layers.pictures().into_iter().map(|picture| (picture, layers.bounds())).collect();
    let told = Plan::new(&wanted, &Options::default()).and_then(|plan| plan.explain()).expect("a plan");
    assert!(told.kernels() <= 5, "{}", told.text());
    let mut expected = image.clone();
    for step in &steps {
        expected = effects::run(context, step, &[expected], &Options::default()).expect("an image");
    }
    let found = OnDevice::new(context, Options::default()).run_chain(&all, &mut |_, _| {}).expect("an image");
    assert_near(&found, &expected, 0.0, "a chain");
    // Planes that are not named are kept.
    let planes = ["B".to_owned(), "R".to_owned()];
    let some = Chain { steps: &steps[..2], planes: &planes, ..all };
    let found = OnDevice::new(context, Options::default()).run_chain(&some, &mut |_, _| {}).expect("an image");
    assert!(found.names().eq(["R", "G", "B", "A"]));
    assert_eq!(found.plane("G").map(|plane| plane.to_f32()), image.plane("G").map(|plane| plane.to_f32()));
    assert_ne!(found.plane("R").map(|plane| plane.to_f32()), image.plane("R").map(|plane| plane.to_f32()));
    let wrong = Chain { planes: &["Q".to_owned()], ..some };
    let told = OnDevice::new(context, Options::default()).run_chain(&wrong, &mut |_, _| {}).expect_err("no such plane");
    assert!(told.to_string().contains('Q'), "{told}");
    // An effect does not overwrite a plane that is not named.
    let grey = Image::from_f32(2, 1, [("R", vec![0.0, 1.0]), ("Y", vec![0.5, 0.25])]).expect("an image");
    let (steps, planes) = (chain("harris", &["radius=0"]).expect("a chain"), ["R".to_owned()]);
    let over = Chain { steps: &steps, inputs: std::slice::from_ref(&grey), further: &[], planes: &planes, region: None };
    let engines: [Box<dyn Engine>; 2] = [Box::new(Reference), Box::new(OnDevice::new(context, Options::default()))];
    for mut engine in engines {
        let told = engine.run_chain(&over, &mut |_, _| {}).expect_err("a plane of this name").to_string();
        assert!(told.starts_with("`harris`: it makes the plane `Y`, which the image has"), "{told}");
        let both = ["R".to_owned(), "Y".to_owned()];
        let found = engine.run_chain(&Chain { planes: &both, ..over }, &mut |_, _| {}).expect("an image");
        assert!(found.names().eq(["Y"]));
    }
}

/// A region of a result equals the region of the whole result, including planes that no effect takes.
#[test]
fn a_region_of_a_chain_is_the_same() {
    let image = Random(42).image(4, 23, 19).with_origin(-7, 5).expect("an image");
    let steps =
        chain("gaussian,median,unsharp", &["gaussian.sigma=0.6", "median.radius=1", "unsharp.sigma=0.6"]).expect("a chain");
    let planes = ["B".to_owned(), "R".to_owned()];
    let inputs = std::slice::from_ref(&image);
    let all = Chain { steps: &steps, inputs, further: &[], planes: &planes, region: None };
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(Reference)];
    engines.extend(contexts().iter().map(|own| Box::new(OnDevice::new(own, Options::default())) as Box<dyn Engine>));
    for mut engine in engines {
        let whole = engine.run_chain(&all, &mut |_, _| {}).expect("an image");
        for region in [Rect::new(-7, 5, 23, 19), Rect::new(-7, 5, 1, 1), Rect::new(3, 9, 4, 7), Rect::new(15, 23, 1, 1)] {
            let part = Chain { region: Some(region), ..all };
            let found = engine.run_chain(&part, &mut |_, _| {}).expect("an image");
            assert_eq!(found.bounds(), region);
            assert_near(&found, &whole.view(region).expect("a region"), 0.0, "a region");
        }
        for region in [Rect::new(-8, 5, 2, 2), Rect::new(15, 23, 2, 1), Rect::new(100, 100, 1, 1)] {
            let told =
                engine.run_chain(&Chain { region: Some(region), ..all }, &mut |_, _| {}).expect_err("no region").to_string();
            assert!(told.contains("reaches beyond the image"), "{told}");
        }
    }
}

#[test]
fn tiles_give_the_same_image_in_less_memory() -> Result<()> {
    let image = Random(41).image(2, 200, 300).with_origin(-7, 5)?;
    let one = u64::from(200u32 * 300 * 4 * 2);
    // Less than the image itself, plus some memory for code and scalars.
    let small = cpu(one / 2 + (64 << 10));
    for rule in [Boundary::Mirror, Boundary::Constant(0.5)] {
        let built = |context: &Context| -> Result<Picture> {
            let soft = effects::gaussian(&Picture::from_image(context, &image), 0.6, rule)?;
            effects::sobel(&soft, rule)
        };
        let expected = built(&contexts()[1])?.image()?;
        let options = Options { memory: Some(one / 2), ..Options::default() };
        let picture = built(&small)?;
        let mut steps = vec![];
        let plan = Plan::new(&[(picture.clone(), picture.bounds())], &options)?;
        let found = plan.run_with(&mut |done, all| steps.push((done, all)))?;
        assert_near(&found[0], &expected, 0.0, "tiles");
        assert!(steps.len() > 4 && steps.last().is_some_and(|(done, all)| done == all), "{steps:?}");
    }
    let picture = effects::sobel(&Picture::from_image(&small, &image), Boundary::Clamp)?;
    let options = Options { memory: Some(1000), ..Options::default() };
    let told = picture.region(picture.bounds(), &options).expect_err("too little").to_string();
    assert!(told.contains("bytes of memory, and 1000 may be used"), "{told}");
    Ok(())
}

/// Returns a sum of many images. In the order of the graph all of them are alive at once.
fn nested(picture: &Picture, count: i32) -> Result<Picture> {
    let sum = Primitive::point("sum", 2, |x| x[0] + x[1])?;
    let part = |number: i32| {
        Primitive::from_kernel("part", &[Indexer::line(Axis::Horizontal, 2)], &[Output::Component], &[number as f32], |k| {
            vec![(k.input(0).along(-2) - k.input(0).along(2)) * k.parameter(0)]
        })?
        .one(&[picture])
    };
    let parts = (1..=count).map(part).collect::<Result<Vec<Picture>>>()?;
    let mut parts = parts.into_iter().rev();
    let mut all = parts.next().expect("a part");
    for part in parts {
        all = sum.one(&[&part, &all])?;
    }
    Ok(all)
}

#[test]
fn the_order_needs_the_least_memory_and_at_most_one_image_more() -> Result<()> {
    let image = Random(42).image(1, 256, 256);
    let one = 256 * 256 * 4;
    // The minimum is the source, two parts and their sum. Scalars and code need a little more. Nothing is cut
    // into tiles here.
    let run = |options: &Options| -> Result<f64> {
        let context = cpu(5 * one + (64 << 10));
        let sum = nested(&Picture::new(&context, &image)?, 9)?;
        let nodes = Plan::new(&[(sum.clone(), sum.bounds())], options)?.nodes()?;
        let total = nodes[0].reduce(broadloom_graph::Combine::Sum, &[0, 1, 2])?.read()?;
        Ok(total.lanes.first().and_then(|lane| lane.as_f64()).unwrap_or(f64::NAN))
    };
    run(&Options { order: Switch::On, ..Options::straight() })?;
    // All nine parts are alive in the order of the graph.
    let failed = run(&Options::straight()).map(|_| ()).expect_err("too little memory").to_string();
    assert!(failed.contains("memory"), "{failed}");
    Ok(())
}

#[test]
fn reductions_are_pictures_and_nobody_waits_for_them() -> Result<()> {
    let context = &contexts()[0];
    let image = Image::from_f32(4, 2, [("R", vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), ("G", vec![0.5; 8])])?;
    let picture = Picture::new(context, &image)?;
    let most = picture.reduced(Reduction::Greatest)?;
    let mean = picture.reduced(Reduction::Mean)?;
    let counts = picture.counted(4, 0.0, 8.0)?;
    let inputs = [Indexer::point(), Indexer::anywhere(), Indexer::anywhere(), Indexer::anywhere()];
    let scale = Primitive::from_kernel("scale", &inputs, &[Output::Component], &[], |k| {
        vec![k.input(0).centre() / k.input(1).pick(0, 0) + k.input(2).pick(0, 0) + k.input(3).pick(k.x(), 0) * 100.0]
    })?;
    let scaled = scale.one(&[&picture, &most, &mean, &counts])?;
    let before = context.statistics().waits;
    let found = scaled.image()?;
    assert_eq!(context.statistics().waits, before);
    let counted = [1.0, 2.0, 2.0, 3.0];
    for (place, sample) in found.planes()[0].to_f32().into_iter().enumerate() {
        assert_eq!(sample, (place + 1) as f32 / 8.0 + 4.5 + counted[place % 4] * 100.0);
    }
    assert_eq!(found.planes()[1].to_f32()[..4], [801.5, 1.5, 1.5, 1.5]);
    let equalised =
        effects::clahe(&picture, &effects::Clahe { tiles: 2, clip: 2.0, bins: 8, low: 0.0, high: 8.0 }, Boundary::Mirror)?;
    equalised.image()?;
    assert_eq!(context.statistics().waits, before, "no histogram comes to the host");
    Ok(())
}

#[test]
fn kernels_and_gains_are_measured() -> Result<()> {
    let context = &contexts()[0];
    let picture =
        effects::degrain(&Picture::new(context, &Random(43).image(1, 8, 6))?, 2, effects::Shrinkage::soft(0.1), Boundary::Clamp)?;
    let wanted = [(picture.clone(), picture.bounds())];
    let (nodes, profiles) = Plan::new(&wanted, &Options::default())?.profile()?;
    assert_eq!(nodes.len(), 1);
    assert!(!profiles.is_empty() && profiles.iter().all(|profile| !profile.functors.is_empty()));
    let gains = plan::gains(&wanted, &Options { stage: Switch::Off, ..Options::default() })?;
    assert_eq!(gains.len(), Options::NAMES.len() - 1);
    assert!(gains.iter().all(|gain| gain.name != "stage" && gain.factor() > 0.0));
    // A technique that changes no kernel is not measured. Its time is that of all techniques together.
    let (changed, same): (Vec<plan::Gain>, Vec<plan::Gain>) = gains.iter().copied().partition(|gain| gain.changes);
    assert!(changed.iter().any(|gain| gain.name == "fuse"), "{gains:?}");
    assert!(!same.is_empty() && same.iter().all(|gain| gain.without == gain.with), "{gains:?}");
    Ok(())
}

/// Gains are measured with the kernels of normal runs: nothing else is compiled.
#[test]
fn gains_compile_nothing_else() -> Result<()> {
    let image = Random(47).image(1, 9, 7).converted(SampleType::U8);
    let fresh = || Context::new(&Device::new(broadloom_interp::Interp::new(broadloom_interp::Options::default())));
    let wanted = |context: &Context| -> Result<[(Picture, Rect); 1]> {
        let picture = effects::degrain(&Picture::from_image(context, &image), 2, effects::Shrinkage::soft(0.1), Boundary::Clamp)?;
        Ok([(picture.clone(), picture.bounds())])
    };
    let (measured, run) = (fresh(), fresh());
    plan::gains(&wanted(&measured)?, &Options::default())?;
    let wanted = wanted(&run)?;
    Plan::new(&wanted, &Options::default())?.run()?;
    for name in Options::NAMES {
        let mut less = Options::default();
        *less.switch(name).expect("a name of the list") = Switch::Off;
        Plan::new(&wanted, &less)?.run()?;
    }
    assert_eq!(measured.statistics().programs, run.statistics().programs);
    Ok(())
}

/// States at the starts of lines are computed in loops, so the code for a short window is not longer than for
/// a long one.
#[test]
fn states_are_computed_in_loops() -> Result<()> {
    let picture = Picture::new(&contexts()[1], &Random(45).image(1, 64, 48))?;
    let lines = |radius: u32| -> Result<usize> {
        let grown = effects::extreme(&picture, radius, effects::Extreme::Greatest, Boundary::Mirror)?;
        Ok(Plan::new(&[(grown.clone(), grown.bounds())], &Options::default())?.explain()?.ptx()?.lines().count())
    };
    let (short, long) = (lines(9)?, lines(40)?);
    assert!(short <= long + long / 4, "{short} and {long} lines");
    Ok(())
}

#[test]
fn layers_keep_planes_where_they_are() -> Result<()> {
    let context = &contexts()[0];
    let image = Random(44).image(4, 5, 3);
    let layers = Layers::from(&image);
    assert!(layers.pictures().is_empty());
    let again = Layers::new(&layers.picture(context)?, &["R", "G", "B", "A"], image.color());
    assert_eq!(again.pictures().len(), 1);
    assert_near(&again.image(&Options::default())?, &image, 0.0, "layers");
    Ok(())
}
