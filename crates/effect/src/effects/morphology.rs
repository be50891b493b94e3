//! The minimum and the maximum of a square.
//!
//! Large squares follow van Herk, Gil and Werman. A line is cut into blocks as long as the window. The
//! extreme of a window is the extreme of two numbers. One is carried forwards from the start of a block to
//! the end of the window. The other is carried backwards from the end of a block to the start of the window.
//! The second sweep combines both, so only one intermediate image is stored.

use crate::functor::{Axis, Indexer, Kernel, Moving, Output, Precise, Primitive, Real, Whole};
use crate::{Boundary, Picture, Result};

/// The extreme to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The minimum.
    Least,
    /// The maximum.
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

    /// Returns the neutral element.
    fn nothing(self) -> f64 {
        match self {
            Extreme::Least => f64::INFINITY,
            Extreme::Greatest => f64::NEG_INFINITY,
        }
    }
}

/// Sweep over the blocks of a line. Forwards, it computes the extreme from the start of a block to the last
/// pixel of the window. Backwards, it computes the extreme from the end of a block to the first pixel of the
/// window. It then combines this extreme with the other one, which is the second input.
struct Block {
    axis: Axis,
    radius: u32,
    extreme: Extreme,
    backwards: bool,
}

impl Block {
    fn length(&self) -> i32 {
        2 * self.radius as i32 + 1
    }

    /// Returns the offset of the pixel that a step adds.
    fn end(&self) -> i32 {
        let radius = self.radius as i32;
        if self.backwards { -radius } else { radius }
    }

    /// Returns the position of that pixel in its block.
    fn place<'k>(&self, k: &Kernel<'k>) -> Whole<'k> {
        let along = match self.axis {
            Axis::Horizontal => k.x(),
            Axis::Vertical => k.y(),
        };
        // Pixels before the first one have negative positions.
        let length = self.length();
        ((along + self.end()) % length + length) % length
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
        let window = Indexer::line(self.axis, self.radius);
        if self.backwards { vec![window, Indexer::point()] } else { vec![window] }
    }

    fn start<'k>(&self, k: Kernel<'k>) -> Vec<Precise<'k>> {
        let found = k.local(self.extreme.nothing());
        let place = self.place(&k);
        let count = if self.backwards { self.length() - 1 - place } else { place };
        k.repeat(1, self.length(), |i| {
            k.when(i.le(count), || {
                let sample = k.input(0).along(if self.backwards { i + self.end() } else { self.end() - i });
                found.set(self.extreme.of_states(found.get(), sample.cast::<f64>()));
            });
        });
        vec![found.get()]
    }

    fn step<'k>(&self, k: Kernel<'k>, state: &[Precise<'k>]) -> (Vec<Precise<'k>>, Vec<Real<'k>>) {
        let first = if self.backwards { self.length() - 1 } else { 0 };
        let sample = k.input(0).along(self.end());
        let begins = self.place(&k).eq(first);
        let found = begins.select(sample.cast::<f64>(), self.extreme.of_states(state[0], sample.cast::<f64>()));
        let own = found.cast::<f32>();
        let result = if self.backwards { self.extreme.of(k.input(1).centre(), own) } else { own };
        (vec![found], vec![result])
    }
}

/// Maximum radius for which an extreme is computed from its taps.
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
    let part = |backwards: bool| Block { axis, radius, extreme, backwards }.build();
    let forwards = part(false)?.with_boundary(boundary).one(&[picture])?;
    part(true)?.with_boundary(boundary).one(&[picture, &forwards])
}

/// Computes the minimum or the maximum of a square: erosion and dilation.
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
