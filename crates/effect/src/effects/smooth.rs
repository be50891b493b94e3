//! Filters that preserve edges.

use crate::functor::{Indexer, Output, Primitive, Real};
use crate::{Boundary, Picture, Result};
use std::f32::consts::LOG2_E;

/// Computes the bilateral filter with exact weights of distance and of difference.
pub fn bilateral(picture: &Picture, radius: u32, space: f32, range: f32, boundary: Boundary) -> Result<Picture> {
    let side = radius as i32;
    let parameters = [0.5 / (space * space) * LOG2_E, 0.5 / (range * range) * LOG2_E];
    let inputs = [Indexer::square(radius)];
    let functor = Primitive::from_kernel("bilateral", &inputs, &[Output::Component], &parameters, |k| {
        let here = k.input(0).centre();
        let (sum, weights) = (k.local(0.0f32), k.local(0.0f32));
        k.repeat(-side, side + 1, |y| {
            k.repeat(-side, side + 1, |x| {
                let there = k.input(0).at(x, y);
                let distance = (x * x + y * y).cast::<f32>() * k.parameter(0);
                let difference = (there - here) * (there - here) * k.parameter(1);
                let weight = (-distance - difference).exp2();
                sum.set(sum.get() + weight * there);
                weights.set(weights.get() + weight);
            });
        });
        vec![sum.get() / weights.get()]
    })?;
    functor.with_boundary(boundary).one(&[picture])
}

/// Computes non-local means: weights exp(−mean squared difference of patches / strength²) over the search
/// square. `search` and `patch` are radii.
pub fn nlmeans(picture: &Picture, search: u32, patch: u32, strength: f32, boundary: Boundary) -> Result<Picture> {
    let (far, near) = (search as i32, patch as i32);
    let count = ((2 * patch + 1) * (2 * patch + 1)) as f32;
    let inputs = [Indexer::square(search + patch)];
    let parameters = [1.0 / (strength * strength) / count * LOG2_E];
    let functor = Primitive::from_kernel("nlmeans", &inputs, &[Output::Component], &parameters, |k| {
        let (sum, weights) = (k.local(0.0f32), k.local(0.0f32));
        // A small patch around the pixel stays in registers.
        let places = (-near..=near).flat_map(|v| (-near..=near).map(move |u| (u, v)));
        let own: Vec<(i32, i32, Real<'_>)> = match near {
            0..=2 => places.map(|(u, v)| (u, v, k.input(0).at(u, v))).collect(),
            _ => vec![],
        };
        k.repeat(-far, far + 1, |y| {
            k.repeat(-far, far + 1, |x| {
                let distance = k.local(0.0f32);
                for (u, v, sample) in &own {
                    let difference = *sample - k.input(0).at(x + *u, y + *v);
                    distance.set(distance.get() + difference * difference);
                }
                if own.is_empty() {
                    k.repeat(-near, near + 1, |v| {
                        k.repeat(-near, near + 1, |u| {
                            let difference = k.input(0).at(u, v) - k.input(0).at(x + u, y + v);
                            distance.set(distance.get() + difference * difference);
                        });
                    });
                }
                let weight = (-distance.get() * k.parameter(0)).exp2();
                sum.set(sum.get() + weight * k.input(0).at(x, y));
                weights.set(weights.get() + weight);
            });
        });
        vec![sum.get() / weights.get()]
    })?;
    functor.with_boundary(boundary).one(&[picture])
}
