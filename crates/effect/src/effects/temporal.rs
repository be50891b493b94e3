//! Removal of grain over several frames, with motion search.

use super::edges::mean_of_components;
use crate::functor::{Indexer, Output, Primitive};
use crate::{Boundary, Error, Picture, Result};

/// Finds the motion of each block: the offset with the smallest sum of absolute differences. The first in row
/// order wins a tie. The result has a pixel for each block, with the offset along x and y.
pub fn motion(current: &Picture, other: &Picture, block: u32, search: u32, boundary: Boundary) -> Result<Picture> {
    let bounds = current.bounds();
    let (columns, rows) = (bounds.width.div_ceil(block), bounds.height.div_ceil(block));
    let (side, far) = (block as i32, search as i32);
    let inputs = [Indexer::anywhere().pixel(1), Indexer::anywhere().pixel(1)];
    let functor = Primitive::from_kernel("motion", &inputs, &[Output::Pixel(2)], &[], |k| {
        let (own, there) = (k.input(0), k.input(1));
        let [width, height] = own.size();
        let (left, top) = (k.x() * side, k.y() * side);
        let (right, bottom) = ((left + side).min(width), (top + side).min(height));
        let (least, best_x, best_y) = (k.local(f32::INFINITY), k.local(0i32), k.local(0i32));
        k.repeat(-far, far + 1, |dy| {
            k.repeat(-far, far + 1, |dx| {
                let sum = k.local(0.0f32);
                k.repeat(top, bottom, |y| {
                    k.repeat(left, right, |x| {
                        sum.set(sum.get() + (own.pick(x, y) - there.pick(x + dx, y + dy)).abs());
                    });
                });
                let better = sum.get().lt(least.get());
                best_x.set(better.select::<i32>(dx, best_x.get()));
                best_y.set(better.select::<i32>(dy, best_y.get()));
                least.set(better.select::<f32>(sum.get(), least.get()));
            });
        });
        vec![best_x.get().cast(), best_y.get().cast()]
    })?;
    functor.with_boundary(boundary).with_size(columns as usize, rows as usize)?.one(&[current, other])
}

/// Settings of temporal degraining.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temporal {
    /// Side of a block, in pixels.
    pub block: u32,
    /// Maximum motion along x and y, in pixels.
    pub search: u32,
    /// Difference that counts as noise.
    pub strength: f32,
}

/// Number of frames whose weights are summed by one functor.
const TOGETHER: usize = 4;

/// Removes grain: a mean over frames along the motion, weighted by similarity. The current frame is the
/// middle one.
pub fn temporal_degrain(frames: &[Picture], settings: &Temporal, boundary: Boundary) -> Result<Picture> {
    let middle = frames.len() / 2;
    let Some(current) = frames.get(middle).filter(|_| frames.len() % 2 == 1 && settings.block > 0) else {
        let reason = "expected an odd number of frames and blocks of at least one pixel".to_owned();
        return Err(Error::Functor { name: "temporal_degrain".into(), reason });
    };
    let own = mean_of_components(current)?;
    let mut sums: Option<[Picture; 2]> = None;
    let side = settings.block as i32;
    let parameters = [1.0 / (settings.strength * settings.strength)];
    let others: Vec<&Picture> =
        frames.iter().enumerate().filter(|(number, _)| *number != middle).map(|(_, frame)| frame).collect();
    for frames in others.chunks(TOGETHER) {
        let mut pictures = vec![current.clone()];
        let mut inputs = vec![Indexer::point()];
        for frame in frames {
            let offsets = motion(&own, &mean_of_components(frame)?, settings.block, settings.search, boundary)?;
            pictures.extend([(*frame).clone(), offsets]);
            inputs.extend([Indexer::anywhere(), Indexer::anywhere().pixel(2)]);
        }
        let before = inputs.len();
        if let Some(sums) = sums {
            pictures.extend(sums);
            inputs.extend([Indexer::point(), Indexer::point()]);
        }
        let has_sums = inputs.len() > before;
        let weigh = Primitive::from_kernel("weigh", &inputs, &[Output::Component; 2], &parameters, |k| {
            let here = k.input(0).centre();
            let mut sums = has_sums.then(|| [before, before + 1].map(|number| k.input(number).centre()));
            for frame in (1..before).step_by(2) {
                let block = |component: usize| {
                    let offsets = k.input(frame + 1).component(component);
                    offsets.pick(k.x() / side, k.y() / side).cast::<i32>()
                };
                let there = k.input(frame).pick(k.x() + block(0), k.y() + block(1));
                let difference = there - here;
                let weight = (-(difference * difference * k.parameter(0))).exp();
                let own = [weight * there, weight];
                sums = Some(match sums {
                    None => own,
                    Some([sum, weights]) => [sum + own[0], weights + own[1]],
                });
            }
            sums.map_or(vec![], Vec::from)
        })?;
        let pictures: Vec<&Picture> = pictures.iter().collect();
        sums = weigh.with_boundary(boundary).apply(&pictures)?.try_into().ok();
    }
    let Some([sum, weights]) = sums else { return Ok(current.clone()) };
    let mean = Primitive::point("mean", 3, |x| (x[0] + x[1]) / (x[2] + 1.0))?;
    mean.one(&[current, &sum, &weights])
}
