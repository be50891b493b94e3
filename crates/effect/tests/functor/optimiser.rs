//! Tests of the optimiser: every combination of its options gives the same image, and its structure is the
//! one that the paper describes.

use crate::devices::{Images, Random, any_options, as_gpu, assert_near, contexts, middle, thorough};
use broadloom_effect::effects::Filter;
use broadloom_effect::functor::{Axis, Indexer, Output, Primitive};
use broadloom_effect::plan::{Options, Plan, Switch};
use broadloom_effect::{Boundary, Image, Picture, Rect, Result, effects};
use broadloom_graph::{Context, KernelSummary};

fn any_boundary(random: &mut Random) -> Boundary {
    [Boundary::Clamp, Boundary::Mirror, Boundary::Wrap, Boundary::Constant(0.5)][random.below(4)]
}

fn any_axis(random: &mut Random) -> Axis {
    [Axis::Horizontal, Axis::Vertical][random.below(2)]
}

/// Appends a call of a random functor with random pictures of a list.
fn grow(random: &mut Random, pictures: &mut Vec<Picture>) -> Result<()> {
    let any = |random: &mut Random, pictures: &[Picture]| pictures[random.below(pictures.len())].clone();
    let (a, b) = (any(random, pictures), any(random, pictures));
    let boundary = any_boundary(random);
    let axis = any_axis(random);
    match random.below(8) {
        0 => pictures.push(Primitive::point("mix", 2, |x| x[0] * 0.5 + x[1] * 0.25)?.one(&[&a, &b])?),
        1 => pictures.push(effects::line_mean(&a, axis, 1, boundary)?),
        2 => pictures.push(effects::line_mean(&a, axis, 13, boundary)?),
        3 => pictures.push(effects::sobel(&a, boundary)?),
        4 => {
            // A loop whose radius is a parameter.
            let inputs = [Indexer::square(2), Indexer::point()];
            let functor = Primitive::from_kernel("loop", &inputs, &[Output::Component], &[random.below(3) as f32], |k| {
                let radius = k.parameter(0).cast::<i32>();
                let sum = k.local(0.0f32);
                k.repeat(-radius, radius + 1, |y| {
                    k.repeat(-radius, radius + 1, |x| sum.set(sum.get() + k.input(0).at(x, y)));
                });
                vec![sum.get() * 0.0625 + k.input(1).centre() * 0.5]
            })?;
            pictures.push(functor.with_boundary(boundary).one(&[&a, &b])?);
        }
        5 => {
            let offsets = [[0, 0], [3, -1], [-2, 2], [0, 4]];
            let functor = Primitive::from_kernel("sparse", &[Indexer::sparse(&offsets)], &[Output::Component; 2], &[], |k| {
                let tap = |number: i32| k.input(0).tap(number);
                vec![(tap(0) + tap(1)) * 0.5, (tap(2) - tap(3)) * 0.5]
            })?;
            pictures.extend(functor.with_boundary(boundary).apply(&[&a])?);
        }
        6 => {
            // A vertical filter, which can be transposed, and a position.
            let functor = Primitive::from_kernel("filter", &[Indexer::line(axis, 3)], &[Output::Component], &[], |k| {
                let input = k.input(0);
                let place = (k.x() + k.y() * 3).cast::<f32>() * 0.0078125;
                vec![input.along(-3) * 0.25 + input.along(2) * 0.5 + place]
            })?;
            pictures.push(functor.with_boundary(boundary).one(&[&a])?);
        }
        _ => pictures.push(effects::extreme(&a, 4, effects::Extreme::Least, boundary)?),
    }
    Ok(())
}

/// Compares random graphs with their straight translation. Every fourth graph is also compared in a region.
/// Every fifth graph has rows longer than a warp, so that functors can become chains. Returns the number of
/// chains.
fn graphs(context: &broadloom_graph::Context, seed: u64, count: usize) -> Result<usize> {
    let mut random = Random(seed);
    let mut chains = 0;
    for number in 0..count {
        let is_wide = number % 5 == 0;
        let (width, height) = match is_wide {
            true => (34 + random.below(24) as u32, 18 + random.below(8) as u32),
            false => (1 + random.below(9) as u32, 1 + random.below(6) as u32),
        };
        let planes = 1 + usize::from(random.below(4) == 0);
        let mut pictures = vec![Picture::new(context, &random.image(planes, width, height))?];
        for _ in 0..1 + random.below(2) {
            grow(&mut random, &mut pictures)?;
        }
        let mut last = pictures.pop().expect("a picture");
        if is_wide {
            last = effects::sobel(&effects::sobel(&last, any_boundary(&mut random))?, any_boundary(&mut random))?;
        }
        let part = middle(last.bounds());
        let expected = last.region(last.bounds(), &Options::straight())?;
        let mut options = any_options(&mut random);
        if is_wide && random.below(2) == 0 {
            (options.fuse, options.contract, options.chain) = (Switch::Auto, Switch::Auto, Switch::On);
        }
        let what = format!("graph {number}: {options}");
        assert_near(&last.region(last.bounds(), &options)?, &expected, 1e-5, &what);
        if number % 4 == 0 {
            assert_near(&last.region(part, &options)?, &expected.view(part)?, 1e-5, &what);
        }
        let told = Plan::new(&[(last.clone(), last.bounds())], &options)?.explain()?;
        let found = told.stages.iter().flat_map(|stage| &stage.kernels).filter(|kernel| kernel.links > 0).count();
        assert!(found == 0 || options.chain != Switch::Off, "{what}: {}", told.text());
        chains += found;
    }
    Ok(chains)
}

#[test]
fn every_combination_of_options_gives_the_same_image() -> Result<()> {
    let [interp, cpu] = contexts();
    let more = if thorough() { 20 } else { 1 };
    assert_eq!(graphs(interp, 20, 120 * more)? + graphs(&as_gpu(), 22, 78 * more)?, 0, "chains are for CPUs");
    let chains = graphs(cpu, 21, 8 * more)?;
    assert!(chains >= 1, "{chains} chains");
    Ok(())
}

/// Degraining has the wavelet transforms of four levels, three each, as functors with windows.
#[test]
fn the_point_operations_of_degrain_cause_no_kernel_of_their_own() -> Result<()> {
    for context in contexts() {
        let picture = Picture::new(context, &Random(22).image(3, 64, 48))?;
        let result = effects::degrain(&picture, 4, effects::Shrinkage::soft(0.02), Boundary::Clamp)?;
        let whole = |options: &Options| Plan::new(&[(result.clone(), result.bounds())], options)?.explain();
        let straight = whole(&Options::straight())?;
        let fused = whole(&Options::default())?;
        // 12 transforms, 12 thresholds, 4 sums.
        assert_eq!(straight.kernels(), 28, "{}", straight.text());
        assert!(fused.kernels() <= 12, "{}", fused.text());
        assert!(fused.bytes_moved() * 2 < straight.bytes_moved(), "{}", fused.text());
    }
    Ok(())
}

/// All levels of degraining are one pass on a CPU: the bands between them stay in ring buffers of rows.
/// Images are larger than the caches of the cores.
#[test]
fn degrain_is_one_chain_on_a_cpu() -> Result<()> {
    let context = &contexts()[1];
    let height = (1 << 20) / 640 + 1;
    let clamped = (3, Boundary::Clamp);
    for (planes, boundary) in
        [clamped, (1, Boundary::Clamp), (1, Boundary::Mirror), (1, Boundary::Constant(0.25)), (1, Boundary::Wrap)]
    {
        let picture = Picture::new(context, &Random(22).image(planes, 640, height))?;
        let result = effects::degrain(&picture, 4, effects::Shrinkage::soft(0.02), boundary)?;
        let plan = Plan::new(&[(result.clone(), result.bounds())], &Options::default())?;
        let explanation = plan.explain()?;
        if boundary != Boundary::Wrap {
            assert_eq!(explanation.kernels(), 1, "{planes} {boundary:?} {}", explanation.text());
            assert_eq!(explanation.stages[0].kernels[0].name, "chain");
            assert_eq!(explanation.bytes_moved(), 2 * planes as u64 * 640 * u64::from(height) * 4, "{}", explanation.text());
            let apart =
                Plan::new(&[(result.clone(), result.bounds())], &Options { contract: Switch::Off, ..Options::default() })?;
            assert!(apart.explain()?.kernels() > 1, "the switch `contract`");
            let apart = Plan::new(&[(result.clone(), result.bounds())], &Options { chain: Switch::Off, ..Options::default() })?;
            assert!(apart.explain()?.kernels() > 1, "the switch `chain`");
            assert!(explanation.text().contains("kernels in one with rows in rings"), "{}", explanation.text());
        }
        let straight = Plan::new(&[(result.clone(), result.bounds())], &Options::straight())?.run()?;
        assert_near(&plan.run()?[0], &straight[0], 0.0, &format!("{boundary:?}"));
    }
    Ok(())
}

/// Compares sequences of windows, in several planes and parts of rows. Later windows read intermediate
/// results too. Returns the number of chains.
fn rings(context: &Context, chain: Switch, random: &mut Random, planes: usize, [width, height]: [u32; 2]) -> Result<usize> {
    let input = Picture::new(context, &random.image(planes, width, height))?;
    let mut pictures = vec![input.clone()];
    for _ in 0..4 {
        let last = pictures[pictures.len() - 1].clone();
        let other = pictures[random.below(pictures.len())].clone();
        let boundary = [Boundary::Clamp, Boundary::Mirror, Boundary::Constant(0.25)][random.below(3)];
        // Six taps at any offsets, or a line of eleven.
        let is_line = random.below(3) == 0;
        let offsets = match is_line {
            true => (0..11).map(|tap| [tap - 4, 0]).collect(),
            false => vec![[0, 0], [random.below(9) - 4, -2], [-1, random.below(13) - 6], [3, 1], [-4, 4], [1, -1]],
        };
        let inputs = [Indexer::sparse(&offsets), Indexer::point()];
        let taps = Primitive::from_kernel("taps", &inputs, &[Output::Component; 2], &[], |k| {
            let taps = 0..offsets.len() as i32;
            let sum = taps.fold(k.input(1).centre() * 0.5, |sum, tap| sum + k.input(0).tap(tap) * 0.125);
            vec![sum, sum * 0.5 - k.input(0).tap(1)]
        })?;
        pictures.extend(taps.with_boundary(boundary).apply(&[&last, &other])?);
    }
    let (a, b) = (pictures[pictures.len() - 1].clone(), pictures[pictures.len() - 4].clone());
    let both = [(a.clone(), a.bounds()), (b.clone(), b.bounds())];
    let plan = Plan::new(&both, &Options { chain, ..Options::default() })?;
    let is_chain = |kernel: &&KernelSummary| kernel.name == "chain";
    let chains = plan.explain()?.stages.iter().flat_map(|stage| &stage.kernels).filter(is_chain).count();
    let straight = Plan::new(&both, &Options::straight())?.run()?;
    for (found, expected) in plan.run()?.iter().zip(&straight) {
        assert_near(found, expected, 0.0, &format!("{planes} planes, {width}×{height}"));
    }
    Ok(chains)
}

#[test]
fn rows_between_windows_stay_in_rings() -> Result<()> {
    let mut random = Random(29);
    let mut chains = 0;
    for number in 0..4 {
        let width = [33, 700, 1025, 2050][number] + random.below(40) as u32;
        let height = (1 << 20) / width + 1;
        chains += rings(&contexts()[1], Switch::Auto, &mut random, 1 + number % 2, [width, height])?;
    }
    assert!(chains >= 2, "{chains} chains");
    Ok(())
}

/// Tests images that are smaller than a block of a chain.
#[test]
fn small_images_keep_rows_between_windows_in_rings() -> Result<()> {
    let mut random = Random(31);
    let mut chains = 0;
    for number in 0..if thorough() { 60 } else { 4 } {
        let width = [33, 100, 230, 300, 560][number % 5] + random.below(40) as u32;
        let height = [16, 17, 40, 90][number % 4] + random.below(12) as u32;
        chains += rings(&contexts()[1], Switch::On, &mut random, 1 + number % 2, [width, height])?;
    }
    assert!(chains >= 2, "{chains} chains");
    Ok(())
}

/// A GPU has no chains, for any value of the switch.
#[test]
fn effects_are_no_chains_on_a_gpu() -> Result<()> {
    let context = &as_gpu();
    let picture = Picture::new(context, &Random(22).image(1, 301, 70))?;
    for result in [
        effects::degrain(&picture, 4, effects::Shrinkage::soft(0.02), Boundary::Clamp)?,
        effects::resize(&picture, 100, 80, Filter::Bicubic)?,
    ] {
        let told =
            |chain: Switch| Plan::new(&[(result.clone(), result.bounds())], &Options { chain, ..Options::default() })?.explain();
        let is_chain = |kernel: &KernelSummary| matches!(kernel.name.as_str(), "chain" | "relay");
        let on = told(Switch::On)?;
        assert!(!on.stages.iter().flat_map(|stage| &stage.kernels).any(is_chain), "{}", on.text());
        assert_eq!(on.kernels(), told(Switch::Off)?.kernels(), "{}", on.text());
    }
    Ok(())
}

/// Stencils share kernels and have patches of four columns, for any length of rows. If rows are multiples of
/// 16 bytes, each mean along columns of diffusion includes the mean along rows that it reads in its kernel.
#[test]
fn stencils_are_joined_by_the_cost_of_their_patches() -> Result<()> {
    joined(&[100, 101, 102, 103].map(|width| (width, Boundary::Clamp)))
}

/// Stencils with other boundary rules give the same bits joined and alone.
#[test]
fn joined_stencils_agree_for_all_rules() -> Result<()> {
    joined(&[Boundary::Mirror, Boundary::Constant(0.25), Boundary::Wrap].map(|boundary| (103, boundary)))
}

fn joined(cases: &[(u32, Boundary)]) -> Result<()> {
    for (width, boundary) in cases.iter().copied() {
        // A context would reuse the plan of the first width for all widths.
        let context = &as_gpu();
        let picture = Picture::new(context, &Random(24).image(2, width, 70))?;
        // Patches of other widths read more, so fusing the means may not pay.
        let most = if width % 4 == 0 { 3 } else { 5 };
        for (result, kernels) in [
            (effects::degrain(&picture, 4, effects::Shrinkage::soft(0.02), boundary)?, 2..=3),
            (effects::diffusion(&picture, 8, 0.5, boundary)?, 3..=most),
        ] {
            let plan = Plan::new(&[(result.clone(), result.bounds())], &Options::default())?;
            // Code near the edges is larger with other rules, so kernels may have less room.
            if boundary == Boundary::Clamp {
                assert!(kernels.contains(&plan.explain()?.kernels()), "{}", plan.explain()?.text());
            }
            let straight = Plan::new(&[(result.clone(), result.bounds())], &Options::straight())?.run()?;
            assert_near(&plan.run()?[0], &straight[0], 0.0, &format!("{width} columns, {boundary:?}"));
        }
    }
    Ok(())
}

/// The second run of a plan makes a template. It has as few kernels as the first run, and gives the same
/// bits. Kernels for other sizes are not compiled.
#[test]
fn later_runs_have_as_few_kernels_as_the_first() -> Result<()> {
    let context = &as_gpu();
    let picture = Picture::new(context, &Random(25).image(2, 100, 70))?;
    for result in [
        effects::degrain(&picture, 4, effects::Shrinkage::soft(0.02), Boundary::Clamp)?,
        effects::diffusion(&picture, 8, 0.5, Boundary::Clamp)?,
    ] {
        let plan = Plan::new(&[(result.clone(), result.bounds())], &Options::default())?;
        let programs = context.statistics().programs;
        let told = plan.explain()?;
        let mut first = None;
        for run in 0..3 {
            let before = context.statistics().kernels;
            let found = plan.nodes()?[0].read()?.to_bytes();
            let kernels = context.statistics().kernels - before;
            assert_eq!(kernels, told.kernels() as u64, "run {run}: {}", told.text());
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "run {run}");
            if run == 0 {
                assert!(context.statistics().programs <= programs + told.kernels(), "{}", told.text());
            }
        }
    }
    Ok(())
}

/// The first two levels of degraining share a kernel on a GPU, and so do the last two.
#[test]
fn degrain_is_two_kernels_on_a_gpu() -> Result<()> {
    let context = &as_gpu();
    // Only the plan is examined.
    let picture = Picture::new(context, &Image::filled(Rect::sized(2063, 1545), &["R", "G", "B"], 0.5f32)?)?;
    let result = effects::degrain(&picture, 4, effects::Shrinkage::soft(0.02), Boundary::Clamp)?;
    let told = Plan::new(&[(result.clone(), result.bounds())], &Options::default())?.explain()?;
    assert_eq!(told.kernels(), 2, "{}", told.text());
    // Lanes exchange what they have filtered: columns of a level are computed once.
    let patches = told.stages.iter().flat_map(|stage| &stage.kernels).map(|kernel| kernel.patch);
    let patches: Vec<_> = patches.map(|patch| patch.map(|patch| (patch.columns, patch.skew, patch.exchanges))).collect();
    assert_eq!(patches, [Some((4, 3, true)); 2], "{}", told.text());
    Ok(())
}

#[test]
fn the_diffusion_graph_has_no_pair_of_transposes_left() -> Result<()> {
    let context = &contexts()[0];
    let picture = Picture::new(context, &Random(23).image(1, 40, 30))?;
    let count = |picture: &Picture, options: &Options| -> Result<usize> {
        Ok(Plan::new(&[(picture.clone(), picture.bounds())], options)?.transpositions())
    };
    let turned = Options { transpose: Switch::On, cancel: Switch::Off, ..Options::default() };
    let cancelled = Options { cancel: Switch::On, ..turned };
    // Two horizontal averages with a vertical one between them: nothing cancels, and nothing is transposed
    // twice.
    let diffusion = effects::diffusion(&picture, 16, 0.5, Boundary::Clamp)?;
    assert_eq!((count(&diffusion, &turned)?, count(&diffusion, &cancelled)?), (4, 4));
    assert_eq!(count(&diffusion, &Options::default())?, 0, "lines are staged in shared memory");
    // The horizontal part of a Gaussian by boxes: one transposition before and one after, also across a point
    // functor.
    let mut boxes = picture.clone();
    for _ in 0..3 {
        boxes = effects::line_mean(&boxes, Axis::Horizontal, 16, Boundary::Mirror)?;
        boxes = Primitive::point("scale", 1, |x| x[0] * 0.5)?.one(&[&boxes])?;
    }
    assert_eq!((count(&boxes, &turned)?, count(&boxes, &cancelled)?), (6, 2));
    let expected = boxes.region(boxes.bounds(), &Options::straight())?;
    assert_near(&boxes.region(boxes.bounds(), &cancelled)?, &expected, 1e-6, "transposed");
    let told = Plan::new(&[(boxes.clone(), boxes.bounds())], &cancelled)?.explain()?.text();
    assert!(told.contains("line_mean: transposed") && told.contains("4 of 6 transpositions cancelled"), "{told}");
    Ok(())
}

#[test]
fn regions_of_interest_flow_backwards() -> Result<()> {
    let context = &contexts()[0];
    let picture = Picture::new(context, &Random(24).image(1, 100, 80))?;
    let soft = effects::line_mean(&effects::sobel(&picture, Boundary::Clamp)?, Axis::Horizontal, 13, Boundary::Clamp)?;
    let region = Rect::new(40, 30, 10, 5);
    let options = Options { realign: Switch::Off, ..Options::default() };
    let told = Plan::new(&[(soft.clone(), region)], &options)?.explain()?.text();
    // The average reads 14 pixels to the left and 13 to the right.
    assert!(told.contains("sobel: 8 reads at known offsets over 37×5 at (26, 30)"), "{told}");
    let options = Options { realign: Switch::On, ..Options::default() };
    let told = Plan::new(&[(soft, region)], &options)?.explain()?.text();
    assert!(told.contains("carries its state along rows over 32×5 at (32, 30)"), "{told}");
    Ok(())
}

/// Components of large images that are read anywhere have one kernel each, which writes to its place in the
/// result. Small images have one kernel for all components.
#[test]
fn components_of_large_images_are_resized_one_by_one() -> Result<()> {
    let context = &contexts()[1];
    let chain = |switch: Switch| Options { chain: switch, ..Options::default() };
    for (width, height, switch, kernels) in
        [(1900, 500, Switch::Auto, 6), (1900, 500, Switch::Off, 2), (40, 30, Switch::Auto, 2), (40, 30, Switch::On, 6)]
    {
        let picture = Picture::new(context, &Random(31).image(3, width, height))?;
        // Rows are resampled first if that leaves less than half of the pixels.
        let (wide, high) = (width as usize * 2 / 5, height as usize);
        let result = effects::resize(&picture, wide, high, Filter::Bicubic)?;
        let plan = Plan::new(&[(result.clone(), result.bounds())], &chain(switch))?;
        let told = plan.explain()?;
        assert_eq!(told.kernels(), kernels, "{width}×{height}: {}", told.text());
        let straight = Plan::new(&[(result.clone(), result.bounds())], &Options::straight())?.run()?;
        assert_near(&plan.run()?[0], &straight[0], 0.0, &format!("{width}×{height}"));
    }
    Ok(())
}

/// Columns and then rows are resampled in one kernel, which reads the image once and writes the result.
#[test]
fn lines_between_both_axes_of_a_resized_image_stay_in_the_cache() -> Result<()> {
    let context = &contexts()[1];
    let chain = |switch: Switch| Options { chain: switch, ..Options::default() };
    let sizes = [(640u32, 600u32, 960, 750), (700, 640, 651, 1000), (3000, 400, 1350, 300), (40, 30, 64, 32), (33, 60, 32, 70)];
    for (number, (width, height, wide, high)) in sizes.into_iter().enumerate() {
        let filter = [Filter::Bicubic, Filter::Lanczos, Filter::Bilinear][number % 3];
        let picture = Picture::new(context, &Random(33).image(1 + 2 * (number % 2), width, height))?;
        let result = effects::resize(&picture, wide, high, filter)?;
        let straight = Plan::new(&[(result.clone(), result.bounds())], &Options::straight())?.run()?;
        for switch in [Switch::Auto, Switch::On] {
            let plan = Plan::new(&[(result.clone(), result.bounds())], &chain(switch))?;
            let told = plan.explain()?;
            let is_large = width * high as u32 * picture.components() as u32 >= 1 << 20;
            let kernels = if is_large || switch == Switch::On { 1 } else { 2 };
            assert_eq!(told.kernels(), kernels, "{width}×{height}: {}", told.text());
            assert_eq!(told.stages[0].kernels[0].name == "relay", kernels == 1, "{}", told.text());
            assert_near(&plan.run()?[0], &straight[0], 0.0, &format!("{width}×{height}"));
        }
        let part = middle(result.bounds());
        assert_near(&result.region(part, &chain(Switch::On))?, &straight[0].view(part)?, 0.0, "a region");
    }
    Ok(())
}

/// The components of a pixel are links of one chain, from the sensor values to the sharpened picture. Colours
/// are computed together.
#[test]
fn the_camera_pipeline_is_one_chain_on_a_cpu() -> Result<()> {
    let context = &contexts()[1];
    let camera = effects::Camera {
        pattern: effects::Bayer { column: 1, row: 0 },
        levels: [0.0, 1.0],
        gains: [1.5, 1.25],
        matrix: [1.2, -0.1, -0.1, -0.1, 1.2, -0.1, -0.1, -0.1, 1.2],
        gamma: 2.2,
        contrast: 0.25,
        sharpen: 0.5,
    };
    let height = (1 << 20) / 640 + 1;
    let picture = Picture::new(context, &Random(32).image(1, 640, height))?;
    let result = effects::camera(&picture, &camera, Boundary::Mirror)?;
    let plan = Plan::new(&[(result.clone(), result.bounds())], &Options::default())?;
    let told = plan.explain()?;
    assert_eq!(told.kernels(), 1, "{}", told.text());
    assert_eq!(told.bytes_moved(), 4 * 640 * u64::from(height) * 4, "{}", told.text());
    let straight = Plan::new(&[(result.clone(), result.bounds())], &Options::straight())?.run()?;
    assert_near(&plan.run()?[0], &straight[0], 0.0, "camera");
    Ok(())
}
