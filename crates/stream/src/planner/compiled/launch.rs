//! Launches of the kernels of a section.

use super::program::CompiledSection;
use crate::planner::restructure::cut::{BufferPlace, Shape};
use crate::planner::restructure::emit::{self, EmitOptions};
use broadloom_device::Buffer;
use broadloom_scalar::Literal;
use broadloom_skeleton::cost::dataflow;
use broadloom_skeleton::{Call, LoadedProgram, Result};

impl CompiledSection {
    /// Returns the kernel for the buffers of a call. The kernel with wide accesses needs aligned buffers.
    fn kernel(&self, number: usize, call: &Call<'_>) -> Result<&LoadedProgram> {
        let aligned = |buffer: &Buffer<u8>| buffer.address().is_multiple_of(u64::from(dataflow::ACCESS_BYTES));
        let (cut, wide) = (&self.cuts[number], &self.kernels[number]);
        if matches!(cut.shape, Shape::Firing | Shape::Spectrum(_)) || call.inputs.iter().chain(call.outputs).all(aligned) {
            return Ok(wide);
        }
        if let Some(narrow) = self.narrow[number].get() {
            return Ok(narrow);
        }
        let options = EmitOptions { wide: false, precision: self.precision, blocks: None };
        let made = emit::program(&self.fine, cut, &format!("stream_{number}_narrow"), &self.starts, options)?;
        let made = made.load(wide.device())?;
        Ok(self.narrow[number].get_or_init(|| made))
    }

    /// Launches a kernel on the buffers of the section. `before` units were run earlier.
    pub(super) fn launch(
        &self,
        kernel: usize,
        memory: &[Option<Buffer<u8>>],
        flag: &Buffer<u8>,
        units: i64,
        before: i64,
    ) -> Result<()> {
        let of = |wanted: &dyn Fn(BufferPlace) -> bool| -> Vec<Buffer<u8>> {
            let places = self.cuts[kernel].places.iter().zip(memory).filter(|(place, _)| wanted(**place));
            places.filter_map(|(_, memory)| memory.clone()).collect()
        };
        let inputs = of(&BufferPlace::is_input);
        let mut outputs = of(&BufferPlace::is_output);
        outputs.push(flag.clone());
        let scalars = [Literal::from(before.wrapping_mul(self.parts) as i32)];
        let sizes = [(units * self.parts) as u64];
        let call = Call { inputs: &inputs, outputs: &outputs, scalars: &scalars, sizes: &sizes, ..Call::default() };
        self.kernel(kernel, &call)?.run(&call)
    }
}
