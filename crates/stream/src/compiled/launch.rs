//! Launches of the kernels of a section.

use super::Ready;
use crate::restructure::cut::Place;
use broadloom_device::Buffer;
use broadloom_scalar::Literal;
use broadloom_skeleton::{Call, Result};

impl Ready {
    /// Runs a kernel on the buffers of the section, for units of which `before` were run earlier.
    pub(super) fn launch(
        &self,
        kernel: usize,
        memory: &[Option<Buffer<u8>>],
        flag: &Buffer<u8>,
        (units, before): (i64, i64),
    ) -> Result<()> {
        let of = |wanted: &dyn Fn(Place) -> bool| -> Vec<Buffer<u8>> {
            let places = self.cuts[kernel].places.iter().zip(memory).filter(|(place, _)| wanted(**place));
            places.filter_map(|(_, memory)| memory.clone()).collect()
        };
        let inputs = of(&|place| matches!(place, Place::Read | Place::Staged(_)));
        let mut outputs = of(&|place| matches!(place, Place::Written | Place::Collected(_)));
        outputs.push(flag.clone());
        let scalars = [Literal::from(before.wrapping_mul(self.parts) as i32)];
        let sizes = [(units * self.parts) as u64];
        let call = Call { inputs: &inputs, outputs: &outputs, scalars: &scalars, sizes: &sizes, ..Call::default() };
        self.kernels[kernel].run(&call)
    }
}
