//! How values lie across the lanes of a warp, as the emitter asks for it.

use broadloom_ptx::Reg;

/// How the value of a register lies across the lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Within aligned groups of so many lanes, as a power of two,
    pub(crate) group: u8,
    /// each lane has so much more than the one before.
    pub(crate) stride: i64,
}

impl Shape {
    pub(crate) fn is_uniform(self) -> bool {
        self.group >= 5 && self.stride == 0
    }

    pub(crate) fn is_affine(self) -> bool {
        self.group >= 5
    }
}

/// The shapes of all registers of a function.
#[derive(Debug, Default)]
pub(crate) struct Shapes;

impl Shapes {
    pub(crate) fn shape(&self, _reg: Reg) -> Shape {
        Shape { group: 5, stride: 0 }
    }
}
