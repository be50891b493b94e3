//! How values lie across the lanes of a warp, as the emitter asks for it.

use broadloom_analysis::{LANE_BITS, Shape};
use broadloom_ptx::Reg;

/// The shapes of all registers of a function; with one lane everything is the same in all of them.
#[derive(Clone, Debug)]
pub(crate) enum Shapes {
    /// One lane.
    One,
    /// A warp.
    Warp(Box<broadloom_analysis::Shapes>),
}

impl Shapes {
    /// The shape of a register wherever it is read.
    pub(crate) fn shape(&self, reg: Reg) -> Shape {
        match self {
            Shapes::One => Shape::uniform(64),
            Shapes::Warp(shapes) => shapes.shape(reg),
        }
    }
}

/// By how much each lane's value exceeds that of the first, with its sign; `None` when it is not known for all lanes.
pub(crate) fn offsets(shape: &Shape) -> Option<Vec<i64>> {
    if shape.known() < LANE_BITS {
        return None;
    }
    let shift = 64 - shape.bits().clamp(1, 64);
    (0..32).map(|lane| shape.offset(lane).map(|offset| ((offset << shift) as i64) >> shift)).collect()
}
