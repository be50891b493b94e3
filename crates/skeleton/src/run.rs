//! Programs loaded on a device, and their runs.
//!
//! A run never waits for the device: it launches in the order of one stream. Temporaries come from the
//! device's pool. They return to it right after the last launch, which the device allows.

use crate::call::Call;
use crate::cost::Costs;
use crate::program::{Argument, Output, Program, Step};
use crate::{Count, Error, Result};
use broadloom_device::{Argument as DeviceArgument, Buffer, Device, Kernel, Launch, MatrixProduct, Recorder};
use broadloom_scalar::{Literal, Lowering, Type, lower_with};
use std::sync::Arc;

/// First target with instructions that wait for earlier kernels.
const OVERLAPS: u16 = 90;

/// A program that is ready to run on a device. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct LoadedProgram(Arc<LoadedData>);

#[derive(Debug)]
struct LoadedData {
    program: Program,
    device: Device,
    kernels: Vec<Kernel>,
}

/// A launch with its arguments.
struct PreparedLaunch {
    kernel: usize,
    launch: Launch,
    arguments: Vec<DeviceArgument>,
}

/// Lowers the kernels of a program to a module for a device.
fn lowered(program: &Program, device: &Device) -> Result<broadloom_ptx::Verified> {
    let machine = device.machine();
    let most = Lowering::default();
    let costs = Costs::of(machine);
    let overlap = costs.starts_early() && machine.isa >= most.version;
    let target = broadloom_ptx::Target::sm(if overlap { OVERLAPS } else { machine.sm.min(80) });
    let lowering = Lowering {
        version: most.version.min(machine.isa),
        target,
        overlap,
        flush: costs.flushes(),
        contract: program.contract,
        ..most
    };
    Ok(lower_with(&program.kernels, &lowering)?)
}

impl Program {
    /// Loads the program on a device.
    pub fn load(self, device: &Device) -> Result<LoadedProgram> {
        LoadedProgram::new(self, device)
    }
}

impl LoadedProgram {
    fn new(program: Program, device: &Device) -> Result<LoadedProgram> {
        program.check()?;
        let module = device.load(&Arc::new(lowered(&program, device)?))?;
        let kernels = program.kernels.iter().map(|kernel| Ok(module.kernel(kernel.name())?)).collect::<Result<_>>()?;
        Ok(LoadedProgram(Arc::new(LoadedData { program, device: device.clone(), kernels })))
    }

    /// Returns the program that was loaded.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Returns the PTX text of its kernels, as it was passed to the device.
    pub fn ptx(&self) -> Result<String> {
        Ok(broadloom_ptx::print(&*lowered(&self.0.program, &self.0.device)?))
    }

    /// Returns the device that the program is loaded on.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Compiles all remaining code, so that the first run does not compile.
    pub fn prepare(&self) -> Result<()> {
        for step in &self.0.program.steps {
            // Counts that depend on sizes are not known yet, and are not part of the code.
            let shared_bytes = step.shared_bytes.of(&[]).and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
            self.0.kernels[step.kernel].prepare(&Launch::new([1, 1, 1], step.block).shared(shared_bytes))?;
        }
        Ok(())
    }

    /// Runs the program with its own temporaries.
    ///
    /// Returns before the work is done. Reading a buffer waits for it and reports errors.
    pub fn run(&self, call: &Call<'_>) -> Result<()> {
        let temporaries = self.temporaries(call.sizes)?;
        self.run_with(call, &temporaries)
    }

    /// Allocates the temporaries of a run with these sizes.
    pub fn temporaries(&self, sizes: &[u64]) -> Result<Vec<Buffer<u8>>> {
        let lengths = self.temporary_lengths(sizes)?;
        lengths.into_iter().map(|bytes| Ok(self.0.device.allocate::<u8>(bytes)?)).collect()
    }

    /// Returns the number of bytes of each temporary.
    pub(crate) fn temporary_lengths(&self, sizes: &[u64]) -> Result<Vec<usize>> {
        let length = |bytes: u64| usize::try_from(bytes).map_err(|_| self.0.program.too_large(sizes));
        self.0.program.temporary_bytes(sizes)?.into_iter().map(length).collect()
    }

    /// Runs the program with temporaries of the caller. Each must have at least the bytes that
    /// [`Program::temporary_bytes`] returns. Temporaries that must be zero are filled here.
    pub fn run_with(&self, call: &Call<'_>, temporaries: &[Buffer<u8>]) -> Result<()> {
        let launches = self.launches(call, temporaries)?;
        if let Some(product) = self.product(call) {
            return Ok(self.0.device.backend().product(call.stream, &product)?);
        }
        for (buffer, temporary) in temporaries.iter().zip(&self.0.program.temporaries) {
            if temporary.zeroed && !buffer.is_empty() {
                buffer.fill_bytes_in(call.stream, 0)?;
            }
        }
        for ready in launches {
            self.0.kernels[ready.kernel].launch(&ready.launch, &ready.arguments)?;
        }
        Ok(())
    }

    /// Adds a run to a sequence for replay. The sequence keeps the buffers alive.
    pub fn record(&self, recorder: &mut Recorder, call: &Call<'_>, temporaries: &[Buffer<u8>]) -> Result<()> {
        let launches = self.launches(call, temporaries)?;
        for buffer in call.inputs.iter().chain(call.outputs).chain(temporaries) {
            recorder.keep(buffer);
        }
        if let Some(product) = self.product(call) {
            recorder.product(product);
            return Ok(());
        }
        for (buffer, temporary) in temporaries.iter().zip(&self.0.program.temporaries) {
            if temporary.zeroed && !buffer.is_empty() {
                recorder.fill_bytes(buffer, 0);
            }
        }
        for ready in launches {
            recorder.launch(&self.0.kernels[ready.kernel], &ready.launch, &ready.arguments)?;
        }
        Ok(())
    }

    /// Returns the library call of the device that replaces all launches, if there is one. The call must have
    /// been checked.
    pub(crate) fn product(&self, call: &Call<'_>) -> Option<MatrixProduct> {
        let plain = self.0.program.product.as_ref()?;
        if self.0.device.backend().has_products() { plain.call(call) } else { None }
    }

    pub(crate) fn kernels(&self) -> &[Kernel] {
        &self.0.kernels
    }

    pub(crate) fn check_number(&self, what: &'static str, wanted: usize, given: usize) -> Result<()> {
        if wanted == given {
            return Ok(());
        }
        Err(Error::Number { program: self.0.program.name.clone(), what, wanted, given })
    }

    /// Checks that the program takes these sizes.
    pub(crate) fn check_sizes(&self, sizes: &[u64]) -> Result<()> {
        let program = &self.0.program;
        self.check_number("sizes", program.sizes, sizes.len())?;
        for limit in &program.limits {
            if program.count(limit, sizes)? > i32::MAX as u64 {
                return Err(program.too_large(sizes));
            }
        }
        for (count, least) in &program.least {
            if program.count(count, sizes)? < *least && !sizes.contains(&0) {
                return Err(Error::Small { program: program.name.clone(), sizes: sizes.to_vec(), least: *least });
            }
        }
        Ok(())
    }

    /// Checks the numbers of inputs, outputs and scalars, and the types of scalars.
    pub(crate) fn check_given(&self, call: &Call<'_>) -> Result<()> {
        let program = &self.0.program;
        self.check_number("inputs", program.inputs.len(), call.inputs.len())?;
        self.check_number("outputs", program.outputs.len(), call.outputs.len())?;
        self.check_number("scalars", program.scalars.len(), call.scalars.len())?;
        for (index, (scalar, ty)) in call.scalars.iter().zip(&program.scalars).enumerate() {
            if Type::of(scalar.element()) != *ty {
                let (program, given) = (program.name.clone(), Type::of(scalar.element()));
                return Err(Error::Scalar { program, index, wanted: *ty, given });
            }
        }
        Ok(())
    }

    /// Returns the minimum number of bytes of an output.
    pub(crate) fn output_bytes(&self, output: &Output, sizes: &[u64]) -> Result<u64> {
        let program = &self.0.program;
        program.count(&output.count, sizes)?.checked_mul(output.ty.bytes().into()).ok_or_else(|| program.too_large(sizes))
    }

    /// Checks that each output has at least the wanted number of bytes.
    pub(crate) fn check_outputs(&self, outputs: &[Buffer<u8>], wanted: impl Iterator<Item = u64>) -> Result<()> {
        for (index, (buffer, wanted)) in outputs.iter().zip(wanted).enumerate() {
            let given = buffer.len() as u64;
            if given < wanted {
                return Err(Error::Output { program: self.0.program.name.clone(), index, wanted, given });
            }
        }
        Ok(())
    }

    fn check(&self, call: &Call<'_>, temporaries: &[Buffer<u8>]) -> Result<()> {
        let program = &self.0.program;
        self.check_given(call)?;
        self.check_sizes(call.sizes)?;
        self.check_number("temporaries", program.temporaries.len(), temporaries.len())?;
        let wanted = program.outputs.iter().map(|output| self.output_bytes(output, call.sizes)).collect::<Result<Vec<u64>>>()?;
        self.check_outputs(call.outputs, wanted.into_iter())
    }

    /// Returns the launch of a step, or `None` if its grid is empty.
    pub(crate) fn launch(&self, step: &Step, sizes: &[u64]) -> Result<Option<Launch>> {
        let program = &self.0.program;
        let count = |count: &Count| u32::try_from(program.count(count, sizes)?).map_err(|_| program.too_large(sizes));
        let mut grid = [0u32; 3];
        for (axis, blocks) in step.grid.iter().enumerate() {
            grid[axis] = count(blocks)?;
        }
        let shared_bytes = count(&step.shared_bytes)?;
        Ok((!grid.contains(&0)).then(|| Launch::new(grid, step.block).shared(shared_bytes)))
    }

    /// Returns the launches of a call.
    fn launches(&self, call: &Call<'_>, temporaries: &[Buffer<u8>]) -> Result<Vec<PreparedLaunch>> {
        self.check(call, temporaries)?;
        let program = &self.0.program;
        let mut launches = Vec::with_capacity(program.steps.len());
        for step in &program.steps {
            let Some(launch) = self.launch(step, call.sizes)? else { continue };
            let launch = launch.on(call.stream);
            let arguments = step.arguments.iter().map(|argument| {
                Ok(match argument {
                    Argument::Input(index) => DeviceArgument::Address(call.inputs[*index].address()),
                    Argument::Output(index) => DeviceArgument::Address(call.outputs[*index].address()),
                    Argument::Temporary(index) => DeviceArgument::Address(temporaries[*index].address()),
                    Argument::Scalar(index) => bytes_of(call.scalars[*index]),
                    Argument::Count(count, ty) => {
                        let value = program.count(count, call.sizes)?;
                        bytes_of(Literal::from_i128(ty.element(), value.into()))
                    }
                })
            });
            launches.push(PreparedLaunch { kernel: step.kernel, launch, arguments: arguments.collect::<Result<_>>()? });
        }
        Ok(launches)
    }
}

fn bytes_of(literal: Literal) -> DeviceArgument {
    DeviceArgument::Bytes(literal.bits().to_le_bytes()[..literal.element().bytes() as usize].to_vec())
}
