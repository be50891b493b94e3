//! The least and the greatest value of a square.
//!
//! Large squares follow van Herk, Gil and Werman: along a line that is cut into blocks as long as the window, the extreme of a
//! window is the extreme of two numbers, one carried forwards from the start of a block and one backwards from its end.

use crate::functor::{Axis, Indexer, Kernel, Moving, Output, Precise, Primitive, Reach, Real, Whole};
use crate::{Boundary, Picture, Result};

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
