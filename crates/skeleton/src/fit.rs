//! Programs for known sizes. Grids, counts and parameter blocks are computed once. A run only writes
//! addresses and scalars into them.

use crate::call::Call;
use crate::program::Argument;
use crate::{LoadedProgram, Result};
use broadloom_device::{Buffer, CheckedLaunch};
use broadloom_scalar::Literal;
use smallvec::SmallVec;

/// Alignment, in bytes, of temporaries within one buffer.
const ALIGNMENT: usize = 256;

/// A program that is ready to run on a device for calls with fixed sizes: see [`LoadedProgram::fit`].
///
/// It has the effect of [`LoadedProgram::run`] and takes less host time.
#[derive(Clone, Debug)]
pub struct FittedProgram {
    loaded: LoadedProgram,
    sizes: Vec<u64>,
    /// Minimum number of bytes of each output.
    outputs: Vec<u64>,
    temporaries: Vec<usize>,
    launches: Vec<FittedLaunch>,
}

#[derive(Clone, Debug)]
struct FittedLaunch {
    launch: CheckedLaunch,
    /// The parameter block, without the values of the call.
    params: SmallVec<[u8; 64]>,
    /// Offsets of the values that come with a call.
    places: Vec<(usize, Argument)>,
}

impl LoadedProgram {
    /// Prepares the program for calls with these sizes: everything that depends on them is computed now.
    pub fn fit(&self, sizes: &[u64]) -> Result<FittedProgram> {
        FittedProgram::new(self, sizes)
    }
}

impl FittedProgram {
    fn new(loaded: &LoadedProgram, sizes: &[u64]) -> Result<FittedProgram> {
        let program = loaded.program();
        loaded.check_sizes(sizes)?;
        let mut launches = vec![];
        for step in &program.steps {
            let Some(launch) = loaded.launch(step, sizes)? else { continue };
            let kernel = &loaded.kernels()[step.kernel];
            let launch = kernel.checked(&launch)?;
            loaded.check_number("arguments of a kernel", kernel.params().len(), step.arguments.len())?;
            let mut params = SmallVec::from_elem(0, launch.param_bytes());
            let mut places = vec![];
            for (param, argument) in kernel.params().iter().zip(&step.arguments) {
                let place = param.offset as usize;
                let bytes = match argument {
                    Argument::Count(count, ty) => {
                        let value = Literal::from_i128(ty.element(), program.count(count, sizes)?.into());
                        write(&mut params, place, value.bits(), ty.element().bytes() as usize);
                        ty.element().bytes() as usize
                    }
                    Argument::Scalar(index) => {
                        places.push((place, argument.clone()));
                        program.scalars.get(*index).map_or(0, |ty| ty.element().bytes() as usize)
                    }
                    Argument::Input(_) | Argument::Output(_) | Argument::Temporary(_) => {
                        places.push((place, argument.clone()));
                        launch.address_bytes()
                    }
                };
                loaded.check_number("bytes of an argument", param.bytes as usize, bytes)?;
            }
            launches.push(FittedLaunch { launch, params, places });
        }
        let outputs = program.outputs.iter().map(|output| loaded.output_bytes(output, sizes)).collect::<Result<_>>()?;
        let temporaries = loaded.temporary_lengths(sizes)?;
        Ok(FittedProgram { loaded: loaded.clone(), sizes: sizes.to_vec(), outputs, temporaries, launches })
    }

    /// Returns the sizes that the program was fitted to.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Returns the total bytes of the temporaries that must be zero at the start of a run.
    pub fn zeroed_bytes(&self) -> usize {
        let zeroed = self.temporaries.iter().zip(&self.loaded.program().temporaries).filter(|(_, temporary)| temporary.zeroed);
        zeroed.map(|(bytes, _)| bytes.next_multiple_of(ALIGNMENT)).sum()
    }

    /// Runs the program. The sizes of the call must be the sizes of this value.
    /// Returns before the work is done. Reading a buffer waits for it and reports errors.
    pub fn run(&self, call: &Call<'_>) -> Result<()> {
        self.run_with(call, None)
    }

    /// Runs the program like [`FittedProgram::run`]. `zeros` is zeroed memory of the caller for temporaries
    /// that must be zero, [`FittedProgram::zeroed_bytes`] long. One fill can serve several programs.
    pub fn run_with(&self, call: &Call<'_>, zeros: Option<&Buffer<u8>>) -> Result<()> {
        let loaded = &self.loaded;
        loaded.check_given(call)?;
        loaded.check_outputs(call.outputs, self.outputs.iter().copied())?;
        if let Some(product) = loaded.product(call) {
            return Ok(loaded.device().backend().product(call.stream, &product)?);
        }
        let mut temporaries: SmallVec<[Buffer<u8>; 4]> = SmallVec::new();
        let mut zeros_taken = 0;
        for (bytes, temporary) in self.temporaries.iter().zip(&loaded.program().temporaries) {
            let given = zeros.filter(|_| temporary.zeroed).and_then(|zeros| zeros.slice(zeros_taken, *bytes));
            if let Some(given) = given {
                zeros_taken += bytes.next_multiple_of(ALIGNMENT);
                temporaries.push(given);
                continue;
            }
            let buffer = loaded.device().allocate_behind::<u8>(call.stream, *bytes)?;
            if temporary.zeroed && *bytes > 0 {
                buffer.fill_bytes_in(call.stream, 0)?;
            }
            temporaries.push(buffer);
        }
        for prepared in &self.launches {
            let width = prepared.launch.address_bytes();
            let mut params = prepared.params.clone();
            for (place, argument) in &prepared.places {
                match argument {
                    Argument::Input(index) => write(&mut params, *place, call.inputs[*index].address(), width),
                    Argument::Output(index) => write(&mut params, *place, call.outputs[*index].address(), width),
                    Argument::Temporary(index) => write(&mut params, *place, temporaries[*index].address(), width),
                    Argument::Scalar(index) => {
                        let scalar = call.scalars[*index];
                        write(&mut params, *place, scalar.bits(), scalar.element().bytes() as usize);
                    }
                    // Counts are already in the parameter block.
                    Argument::Count(..) => {}
                }
            }
            prepared.launch.run(call.stream, &params)?;
        }
        Ok(())
    }
}

fn write(params: &mut [u8], place: usize, bits: u64, bytes: usize) {
    params[place..place + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
}
