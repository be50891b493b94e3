//! The median of a square.
//!
//! | square | method |
//! | --- | --- |
//! | up to 7×7 | a network of exchanges |
//! | up to about 100 samples | bitwise search of the median: the samples below a bound are counted |
//! | larger | [`sweep`]: a window that moves along rows |
//! | larger than a small image | the search, where each pixel is weighted by its multiplicity in the square |
//!
//! Samples are compared as integers in the total order of IEEE 754: −NaN, −∞, negative numbers, −0, +0,
//! positive numbers, +∞, +NaN. All methods find the same sample, so results do not depend on the method or
//! the device.

mod sweep;

use crate::functor::{Indexer, Kernel, Output, Primitive, Reach, Real, Whole};
use crate::graph::Window;
use crate::{Boundary, Picture, Result};
use broadloom_graph::{Node, Shape};
use broadloom_scalar::Type;

/// Returns the exchanges of Batcher's sorting network for `count` values.
pub fn network(count: usize) -> Vec<(usize, usize)> {
    let mut exchanges = vec![];
    let mut p = 1;
    while p < count {
        let mut k = p;
        while k >= 1 {
            for j in (k % p..count.saturating_sub(k)).step_by(2 * k) {
                for i in 0..k.min(count - j - k) {
                    if (i + j) / (2 * p) == (i + j + k) / (2 * p) {
                        exchanges.push((i + j, i + j + k));
                    }
                }
            }
            k /= 2;
        }
        p *= 2;
    }
    exchanges
}

/// Maximum radius for which a median is computed by a sorting network.
const NETWORK_RADIUS: u32 = 3;

/// Exchanges that move the median of nine values to its position (Paeth).
const MIDDLE_OF_9: [u8; 38] =
    [1, 2, 4, 5, 7, 8, 0, 1, 3, 4, 6, 7, 1, 2, 4, 5, 7, 8, 0, 3, 5, 8, 4, 7, 3, 6, 1, 4, 2, 5, 4, 7, 4, 2, 6, 4, 4, 2];

/// Exchanges that move the median of 25 values to its position (Devillard).
const MIDDLE_OF_25: [u8; 198] = [
    0, 1, 3, 4, 2, 4, 2, 3, 6, 7, 5, 7, 5, 6, 9, 10, 8, 10, 8, 9, 12, 13, 11, 13, 11, 12, 15, 16, 14, 16, 14, 15, 18, 19, 17, 19,
    17, 18, 21, 22, 20, 22, 20, 21, 23, 24, 2, 5, 3, 6, 0, 6, 0, 3, 4, 7, 1, 7, 1, 4, 11, 14, 8, 14, 8, 11, 12, 15, 9, 15, 9, 12,
    13, 16, 10, 16, 10, 13, 20, 23, 17, 23, 17, 20, 21, 24, 18, 24, 18, 21, 19, 22, 8, 17, 9, 18, 0, 18, 0, 9, 10, 19, 1, 19, 1,
    10, 11, 20, 2, 20, 2, 11, 12, 21, 3, 21, 3, 12, 13, 22, 4, 22, 4, 13, 14, 23, 5, 23, 5, 14, 15, 24, 6, 24, 6, 15, 7, 16, 7,
    19, 13, 21, 15, 23, 7, 13, 7, 15, 1, 9, 3, 11, 5, 17, 11, 17, 9, 17, 4, 10, 6, 12, 7, 14, 4, 6, 4, 7, 12, 14, 10, 14, 6, 7,
    10, 12, 6, 10, 6, 17, 12, 17, 7, 17, 7, 10, 12, 18, 7, 12, 10, 18, 12, 20, 10, 20, 10, 12,
];

/// Returns exchanges that move the median of `count` values to its position.
pub fn exchanges(count: usize) -> Vec<(usize, usize)> {
    let pairs = |list: &[u8]| list.chunks_exact(2).map(|pair| (usize::from(pair[0]), usize::from(pair[1]))).collect();
    match count {
        9 => pairs(&MIDDLE_OF_9),
        25 => pairs(&MIDDLE_OF_25),
        _ => network(count),
    }
}

/// Returns an integer with the order of the samples: the bits of the sample. All bits of a negative sample
/// except the sign are inverted.
fn key(sample: Real<'_>) -> Whole<'_> {
    let bits = sample.to_bits();
    bits.lt(0).select::<i32>(i32::MAX - bits, bits)
}

/// Returns the sample of a key.
fn unkey(key: Whole<'_>) -> Real<'_> {
    key.lt(0).select::<i32>(i32::MAX - key, key).from_bits()
}

/// Number of steps of the search: one for each bit of a sample.
const SEARCH_STEPS: u64 = 32;
/// Time to exchange a sample in a moving window, as a multiple of the time to count a sample in a step of the
/// search. Measured on a CPU with radii from 6 to 100.
const EXCHANGE: u64 = 54;
/// Time to sort a sample of a tile, in the same unit.
const SORT: u64 = 1400;

/// Returns the moving windows if they take less time than a search in squares of `pixels` pixels.
fn moving(picture: &Picture, radius: u32, pixels: u64) -> Option<sweep::Sweep> {
    let tile = sweep::largest_tile(picture.context().device().machine(), radius)?;
    let bounds = picture.bounds();
    let tiles = sweep::Tiles::new([bounds.height as usize, bounds.width as usize], radius, tile);
    let side = 2 * u64::from(radius) + 1;
    let exchanges = 2 * side + side * side / tiles.columns() as u64;
    let sorted = tiles.samples().saturating_mul(SORT) / bounds.area().max(1);
    (sorted + EXCHANGE * exchanges < SEARCH_STEPS * pixels).then_some(sweep::Sweep { radius, tile })
}

/// Computes the exact median of a square.
///
/// A square larger than the picture contains pixels several times. The boundary rule determines their
/// multiplicities, and each pixel is read once.
pub fn median(picture: &Picture, radius: u32, boundary: Boundary) -> Result<Picture> {
    if radius == 0 {
        return Ok(picture.clone());
    }
    let side = radius as i32;
    let bounds = picture.bounds();
    let window = 2 * u64::from(radius) + 1;
    let covers = |extent: u32| boundary != Boundary::Shrink && u64::from(extent) < window;
    let seen = |extent: u32| if covers(extent) { u64::from(extent) } else { window };
    let pixels = seen(bounds.width) * seen(bounds.height);
    let moving = if radius > NETWORK_RADIUS { moving(picture, radius, pixels) } else { None };
    if let Some(sweep) = moving {
        let reach = Reach { left: radius, right: radius, above: radius, below: radius };
        let rule = boundary.rule();
        let window = Window { reach, boundary };
        let device = picture.context().device().clone();
        let scratch = move |components: usize, size: [usize; 2]| {
            sweep::Bands::new(device.machine(), components, size, sweep).bytes(components, size)
        };
        return picture.windowed("median", window, scratch, move |array, frame| sweep::medians(array, frame, sweep, &rule));
    }
    if radius > NETWORK_RADIUS && (covers(bounds.width) || covers(bounds.height)) {
        let table = |extent: u32| covers(extent).then(|| often(picture, extent, radius, boundary)).transpose();
        return covering(picture, side, [table(bounds.width)?, table(bounds.height)?], boundary);
    }
    let inputs = [Indexer::square(radius)];
    let functor = if radius <= NETWORK_RADIUS {
        Primitive::from_kernel("median", &inputs, &[Output::Component], &[], |k| {
            let places = (-side..=side).flat_map(|y| (-side..=side).map(move |x| (x, y)));
            // Integers have one order and no NaN, so an exchange is two instructions.
            let mut values: Vec<Whole<'_>> = places.map(|(x, y)| key(k.input(0).at(x, y))).collect();
            for (low, high) in exchanges(values.len()) {
                (values[low], values[high]) = (values[low].min(values[high]), values[low].max(values[high]));
            }
            vec![unkey(values[values.len() / 2])]
        })?
    } else {
        Primitive::from_kernel("median", &inputs, &[Output::Component], &[], |k| vec![selected(&k, side)])?
    };
    functor.with_boundary(boundary).one(&[picture])
}

/// Counts the multiplicity of each pixel in the window around each position of an axis. The table has a
/// column for each position. Its first row is for pixels outside the image with a constant value. The other
/// rows are for the pixels of the axis.
fn often(picture: &Picture, extent: u32, radius: u32, boundary: Boundary) -> Result<Picture> {
    let (size, radius) = (extent as usize, i64::from(radius));
    let (extent, period) = (i64::from(extent), (2 * (i64::from(extent) - 1)).max(1));
    let pixel = |place: i64| match boundary {
        Boundary::Clamp | Boundary::Shrink => place.clamp(0, extent - 1),
        Boundary::Wrap => place.rem_euclid(extent),
        Boundary::Mirror => {
            let place = place.rem_euclid(period);
            place.min(period - place).min(extent - 1)
        }
        Boundary::Constant(_) if (0..extent).contains(&place) => place,
        Boundary::Constant(_) => -1,
    };
    let mut counts = vec![0.0f32; (size + 1) * size];
    for place in 0..extent {
        for offset in -radius..=radius {
            counts[(pixel(place + offset) + 1) as usize * size + place as usize] += 1.0;
        }
    }
    let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    Picture::from_node(Node::upload(picture.context(), Type::F32, Shape::from([1, size + 1, size]), &bytes)?, 0, 0)
}

/// Repeats a body for the positions along an axis in the window around `own`, with the multiplicity of each.
/// `table` is the index of the input with the multiplicities of the axis.
fn each<'k>(k: &Kernel<'k>, own: Whole<'k>, table: Option<usize>, side: i32, body: &dyn Fn(Whole<'k>, Whole<'k>)) {
    match table.map(|number| k.input(number)) {
        Some(table) => k.repeat(0, table.size()[1], |entry| body(entry - 1, table.pick(own, entry).cast::<i32>())),
        None => k.repeat(-side, side + 1, |offset| body(own + offset, k.constant(1))),
    }
}

/// Computes the median of a square that is larger than the picture along one axis or both. Each of these axes
/// has a table.
fn covering(picture: &Picture, side: i32, tables: [Option<Picture>; 2], boundary: Boundary) -> Result<Picture> {
    let mut inputs = vec![Indexer::anywhere()];
    inputs.extend(tables.iter().flatten().map(|_| Indexer::anywhere().pixel(1)));
    let numbers = [tables[0].as_ref().map(|_| 1), tables[1].as_ref().map(|_| inputs.len() - 1)];
    let functor = Primitive::from_kernel("median", &inputs, &[Output::Component], &[], |k| {
        vec![middle(&k, side, |bound| {
            let count = k.local(0i32);
            each(&k, k.y(), numbers[1], side, &|y, rows| {
                each(&k, k.x(), numbers[0], side, &|x, columns| {
                    let is_less = key(k.input(0).pick(x, y)).lt(bound);
                    count.set(count.get() + is_less.select::<i32>(rows * columns, 0));
                });
            });
            count.get()
        })]
    })?;
    let pictures: Vec<&Picture> = std::iter::once(picture).chain(tables.iter().flatten()).collect();
    functor.with_boundary(boundary).one(&pictures)
}

/// Computes the median of the square around the current pixel.
fn selected<'k>(k: &Kernel<'k>, side: i32) -> Real<'k> {
    middle(k, side, |bound| {
        let count = k.local(0i32);
        k.repeat(-side, side + 1, |y| {
            k.repeat(-side, side + 1, |x| {
                let is_less = key(k.input(0).at(x, y)).lt(bound);
                count.set(count.get() + is_less.select::<i32>(1, 0));
            });
        });
        count.get()
    })
}

/// Finds the median of a square bit by bit: the largest number such that at most half of the values are
/// smaller. `less_than` counts the keys below a bound.
fn middle<'k>(k: &Kernel<'k>, side: i32, less_than: impl Fn(Whole<'k>) -> Whole<'k>) -> Real<'k> {
    let middle = (2 * side + 1) * (2 * side + 1) / 2;
    let found = k.local::<i32>(less_than(k.constant(0)).le(middle).select::<i32>(0, i32::MIN));
    let step = k.local(1i32 << 30);
    k.repeat(0, 31, |_| {
        let next = found.get() + step.get();
        let fits = less_than(next).le(middle);
        found.set(fits.select::<i32>(next, found.get()));
        step.set(step.get() / 2);
    });
    unkey(found.get())
}
