//! Removal of grain over several frames, with motion search.

use super::edges::mean_of_components;
use crate::functor::{Indexer, Output, Primitive};
use crate::{Boundary, Error, Picture, Result};

/// Finds the motion of each block: the offset with the least sum of absolute differences, the first in the order of rows. The
/// result has a pixel for each block, with the offset along x and y.
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

/// The settings of temporal degraining.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Temporal {
    /// The side of a block, in pixels.
    pub block: u32,
    /// The largest motion along x and y, in pixels.
    pub search: u32,
    /// The difference that counts as noise.
    pub strength: f32,
}

/// Removes grain: a mean over frames along the motion, weighted by likeness. The current frame is in the middle.
pub fn temporal_degrain(frames: &[Picture], settings: &Temporal, boundary: Boundary) -> Result<Picture> {
    let middle = frames.len() / 2;
    let Some(current) = frames.get(middle).filter(|_| frames.len() % 2 == 1 && settings.block > 0) else {
        let reason = "an odd number of frames and blocks of at least one pixel are wanted".to_owned();
        return Err(Error::Functor { name: "temporal_degrain".into(), reason });
    };
    let own = mean_of_components(current)?;
    let mut sums: Option<[Picture; 2]> = None;
    let side = settings.block as i32;
    let parameters = [1.0 / (settings.strength * settings.strength)];
    for (_, frame) in frames.iter().enumerate().filter(|(number, _)| *number != middle) {
        let offsets = motion(&own, &mean_of_components(frame)?, settings.block, settings.search, boundary)?;
        let inputs = [Indexer::point(), Indexer::anywhere(), Indexer::anywhere().pixel(2)];
        let weigh = Primitive::from_kernel("weigh", &inputs, &[Output::Component; 2], &parameters, |k| {
            let here = k.input(0).centre();
            let block = |component: usize| k.input(2).component(component).pick(k.x() / side, k.y() / side).cast::<i32>();
            let there = k.input(1).pick(k.x() + block(0), k.y() + block(1));
            let difference = there - here;
            let weight = (-(difference * difference * k.parameter(0))).exp();
            vec![weight * there, weight]
        })?;
        let weighed: [Picture; 2] = weigh.with_boundary(boundary).call([current, frame, &offsets])?;
        let add = Primitive::point("sum", 2, |x| x[0] + x[1])?;
        sums = Some(match sums {
            None => weighed,
            Some(sums) => [add.one(&[&sums[0], &weighed[0]])?, add.one(&[&sums[1], &weighed[1]])?],
        });
    }
    let Some([sum, weights]) = sums else { return Ok(current.clone()) };
    let mean = Primitive::point("mean", 3, |x| (x[0] + x[1]) / (x[2] + 1.0))?;
    mean.one(&[current, &sum, &weights])
}
