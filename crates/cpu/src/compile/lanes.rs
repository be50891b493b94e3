//! Shapes of values across the lanes of a warp, as the emitter needs them.

use broadloom_analysis::{LANE_BITS, Shape};
use broadloom_ptx::Reg;

/// Shapes of all registers of a function. With one lane every register is uniform.
#[derive(Clone, Debug)]
pub(crate) enum Shapes {
    /// One lane.
    One,
    Warp(Box<broadloom_analysis::Shapes>),
}

impl Shapes {
    /// Returns the shape of a register wherever it is read.
    pub(crate) fn shape(&self, reg: Reg) -> Shape {
        match self {
            Shapes::One => Shape::uniform(64),
            Shapes::Warp(shapes) => shapes.shape(reg),
        }
    }
}

/// Returns the signed offset of each lane's value from the first. Returns `None` if it is not known for all
/// lanes.
pub(crate) fn offsets(shape: &Shape) -> Option<Vec<i64>> {
    if shape.known() < LANE_BITS {
        return None;
    }
    let shift = 64 - shape.bits().clamp(1, 64);
    (0..32).map(|lane| shape.offset(lane).map(|offset| ((offset << shift) as i64) >> shift)).collect()
}
