//! The least, the greatest and the middle value of a square.
//!
//! Large squares follow van Herk, Gil and Werman: along a line that is cut into blocks as long as the window, the extreme of a
//! window is the extreme of two numbers, one carried forwards from the start of a block and one backwards from its end.

use crate::functor::{Axis, Indexer, Kernel, Moving, Output, Precise, Primitive, Reach, Real, Whole};
use crate::{Boundary, Picture, Result};
use broadloom_graph::{Node, Shape};
use broadloom_scalar::Type;

/// The value that is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

impl Extreme {
    fn of<'k>(self, a: Real<'k>, b: Real<'k>) -> Real<'k> {
        match self {
            Extreme::Least => a.min(b),
            Extreme::Greatest => a.max(b),
        }
    }

    fn of_states<'k>(self, a: Precise<'k>, b: Precise<'k>) -> Precise<'k> {
        match self {
            Extreme::Least => a.min(b),
            Extreme::Greatest => a.max(b),
        }
    }

    /// A value that changes nothing.
    fn nothing(self) -> f64 {
        match self {
            Extreme::Least => f64::INFINITY,
            Extreme::Greatest => f64::NEG_INFINITY,
        }
    }
}

/// The extreme from the edge of a block to the current pixel.
struct Block {
    axis: Axis,
    length: u32,
    extreme: Extreme,
    backwards: bool,
}

impl Block {
    fn place<'k>(&self, k: &Kernel<'k>) -> Whole<'k> {
        let along = match self.axis {
            Axis::Horizontal => k.x(),
            Axis::Vertical => k.y(),
        };
        // The pixels of the window before the first one have negative numbers.
        let length = self.length as i32;
        (along % length + length) % length
    }
}

impl Moving for Block {
    fn name(&self) -> String {
        "block_extreme".into()
    }

    fn axis(&self) -> Axis {
        self.axis
    }

    fn backwards(&self) -> bool {
        self.backwards
    }

    fn inputs(&self) -> Vec<Indexer> {
        let far = self.length - 1;
        vec![if self.backwards { Indexer::stretch(self.axis, 0, far) } else { Indexer::stretch(self.axis, far, 0) }]
    }

    fn start<'k>(&self, k: Kernel<'k>) -> Vec<Precise<'k>> {
        let found = k.local(self.extreme.nothing());
        let place = self.place(&k);
        let count = if self.backwards { self.length as i32 - 1 - place } else { place };
        k.repeat(1, self.length as i32, |i| {
            k.when(i.le(count), || {
                let sample = k.input(0).along(if self.backwards { i } else { -i });
                found.set(self.extreme.of_states(found.get(), sample.cast::<f64>()));
            });
        });
        vec![found.get()]
    }

    fn step<'k>(&self, k: Kernel<'k>, state: &[Precise<'k>]) -> (Vec<Precise<'k>>, Vec<Real<'k>>) {
        let first = if self.backwards { self.length as i32 - 1 } else { 0 };
        let sample = k.input(0).along(0);
        let begins = self.place(&k).eq(first);
        let found = begins.select(sample.cast::<f64>(), self.extreme.of_states(state[0], sample.cast::<f64>()));
        (vec![found], vec![found.cast::<f32>()])
    }
}

/// The radius up to which an extreme is computed from its taps.
const FEW_TAPS: u32 = 3;

fn line(picture: &Picture, axis: Axis, radius: u32, extreme: Extreme, boundary: Boundary) -> Result<Picture> {
    if radius <= FEW_TAPS {
        let inputs = [Indexer::line(axis, radius)];
        let functor = Primitive::from_kernel("extreme", &inputs, &[Output::Component], &[], |k| {
            let radius = radius as i32;
            let mut found = k.input(0).along(-radius);
            for i in 1 - radius..=radius {
                found = extreme.of(found, k.input(0).along(i));
            }
            vec![found]
        })?;
        return functor.with_boundary(boundary).one(&[picture]);
    }
    let length = 2 * radius + 1;
    let margin = match axis {
        Axis::Horizontal => Reach { left: radius, right: radius, ..Reach::default() },
        Axis::Vertical => Reach { above: radius, below: radius, ..Reach::default() },
    };
    let part = |backwards: bool| {
        let block = Block { axis, length, extreme, backwards }.build()?.with_boundary(boundary);
        block.with_margin(margin)?.one(&[picture])
    };
    let (forwards, backwards) = (part(false)?, part(true)?);
    let inputs = [Indexer::line(axis, radius), Indexer::line(axis, radius)];
    let both = Primitive::from_kernel("extreme_of_blocks", &inputs, &[Output::Component], &[], |k| {
        let radius = radius as i32;
        vec![extreme.of(k.input(0).along(radius), k.input(1).along(-radius))]
    })?;
    both.with_boundary(Boundary::Shrink).one(&[&forwards, &backwards])
}

/// Computes the least or the greatest value of a square: erosion and dilation.
pub fn extreme(picture: &Picture, radius: u32, extreme: Extreme, boundary: Boundary) -> Result<Picture> {
    if radius == 0 {
        return Ok(picture.clone());
    }
    let rows = line(picture, Axis::Horizontal, radius, extreme, boundary)?;
    line(&rows, Axis::Vertical, radius, extreme, boundary)
}

/// Erodes, then dilates.
pub fn open(picture: &Picture, radius: u32, boundary: Boundary) -> Result<Picture> {
    extreme(&extreme(picture, radius, Extreme::Least, boundary)?, radius, Extreme::Greatest, boundary)
}

/// Dilates, then erodes.
pub fn close(picture: &Picture, radius: u32, boundary: Boundary) -> Result<Picture> {
    extreme(&extreme(picture, radius, Extreme::Greatest, boundary)?, radius, Extreme::Least, boundary)
}

/// The exchanges of Batcher's sorting network for so many values.
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

/// The radius up to which a median is computed by a sorting network.
const NETWORK_RADIUS: u32 = 3;

/// Exchanges after which the middle of nine values is in its place (Paeth).
const MIDDLE_OF_9: [u8; 38] =
    [1, 2, 4, 5, 7, 8, 0, 1, 3, 4, 6, 7, 1, 2, 4, 5, 7, 8, 0, 3, 5, 8, 4, 7, 3, 6, 1, 4, 2, 5, 4, 7, 4, 2, 6, 4, 4, 2];

/// Exchanges after which the middle of 25 values is in its place (Devillard).
const MIDDLE_OF_25: [u8; 198] = [
    0, 1, 3, 4, 2, 4, 2, 3, 6, 7, 5, 7, 5, 6, 9, 10, 8, 10, 8, 9, 12, 13, 11, 13, 11, 12, 15, 16, 14, 16, 14, 15, 18, 19, 17, 19,
    17, 18, 21, 22, 20, 22, 20, 21, 23, 24, 2, 5, 3, 6, 0, 6, 0, 3, 4, 7, 1, 7, 1, 4, 11, 14, 8, 14, 8, 11, 12, 15, 9, 15, 9, 12,
    13, 16, 10, 16, 10, 13, 20, 23, 17, 23, 17, 20, 21, 24, 18, 24, 18, 21, 19, 22, 8, 17, 9, 18, 0, 18, 0, 9, 10, 19, 1, 19, 1,
    10, 11, 20, 2, 20, 2, 11, 12, 21, 3, 21, 3, 12, 13, 22, 4, 22, 4, 13, 14, 23, 5, 23, 5, 14, 15, 24, 6, 24, 6, 15, 7, 16, 7,
    19, 13, 21, 15, 23, 7, 13, 7, 15, 1, 9, 3, 11, 5, 17, 11, 17, 9, 17, 4, 10, 6, 12, 7, 14, 4, 6, 4, 7, 12, 14, 10, 14, 6, 7,
    10, 12, 6, 10, 6, 17, 12, 17, 7, 17, 7, 10, 12, 18, 7, 12, 10, 18, 12, 20, 10, 20, 10, 12,
];

/// Exchanges after which the middle of so many values is in its place.
pub fn exchanges(count: usize) -> Vec<(usize, usize)> {
    let pairs = |list: &[u8]| list.chunks_exact(2).map(|pair| (usize::from(pair[0]), usize::from(pair[1]))).collect();
    match count {
        9 => pairs(&MIDDLE_OF_9),
        25 => pairs(&MIDDLE_OF_25),
        _ => network(count),
    }
}

/// An integer that is in the order of the samples: the bits, those of negative samples turned round but for the sign.
fn key(sample: Real<'_>) -> Whole<'_> {
    let bits = sample.to_bits();
    bits.lt(0).select::<i32>(i32::MAX - bits, bits)
}

/// The sample of a key.
fn unkey(key: Whole<'_>) -> Real<'_> {
    key.lt(0).select::<i32>(i32::MAX - key, key).from_bits()
}

/// Computes the exact median of a square.
///
/// A square that is larger than the picture has pixels several times. They are counted by how often the boundary rule gives them, and each is read once.
pub fn median(picture: &Picture, radius: u32, boundary: Boundary) -> Result<Picture> {
    if radius == 0 {
        return Ok(picture.clone());
    }
    let side = radius as i32;
    let bounds = picture.bounds();
    let covers = |extent: u32| boundary != Boundary::Shrink && u64::from(extent) < 2 * u64::from(radius) + 1;
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

/// Counts how often the window around each place of an axis has each pixel. The table has a column for each place. Its first row is for pixels outside, where they
/// have a value of their own, and the others are for the pixels of the axis.
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

/// Repeats a body for the places of an axis that the window around one of them has, and the number of times that each counts. The table of the axis is an
/// input.
fn each<'k>(k: &Kernel<'k>, own: Whole<'k>, table: Option<usize>, side: i32, body: &dyn Fn(Whole<'k>, Whole<'k>)) {
    match table.map(|number| k.input(number)) {
        Some(table) => k.repeat(0, table.size()[1], |entry| body(entry - 1, table.pick(own, entry).cast::<i32>())),
        None => k.repeat(-side, side + 1, |offset| body(own + offset, k.constant(1))),
    }
}

/// Computes the median of a square that is larger than the picture along one axis or both, which have a table each.
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

/// Finds the median of the square around the current pixel.
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

/// Finds the middle value of a square bit by bit: the greatest number that at most half of the values are less than. `less_than` counts the keys below a bound.
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
