//! Programs: kernels with their launches, the result of a pattern.

use crate::{Count, Error, Loaded, PlainProduct, Result};
use broadloom_device::Device;
use broadloom_scalar::{Kernel, Type};

/// An argument of a kernel, by its number among those of the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// The address of an input.
    Input(usize),
    /// The address of an output.
    Output(usize),
    /// The address of a temporary of the program.
    Temporary(usize),
    /// A scalar.
    Scalar(usize),
    /// A number that follows from the sizes, as a value of an integer type.
    Count(Count, Type),
}

/// Memory that lives as long as one run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Temporary {
    /// Bytes.
    pub bytes: Count,
    /// True if all of them are zero when the run starts; else they are anything.
    pub zeroed: bool,
}

/// An output of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// The type of its elements.
    pub ty: Type,
    /// Least number of elements; 0 for an output that is written at computed places.
    pub count: Count,
}

/// A launch. Where its grid is empty for the sizes of a call, it does not happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The kernel, by its number in the program.
    pub kernel: usize,
    /// Blocks in each direction.
    pub grid: [Count; 3],
    /// Threads of a block in each direction.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: Count,
    /// Arguments of the kernel.
    pub arguments: Vec<Argument>,
}

/// A pattern for a machine: kernels, and their launches for any sizes. It is a value: it can be compared and printed.
///
/// Inputs are those of the pattern's functions, one function behind the other in the order in which the pattern names them; scalars
/// likewise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// Name in traces and errors.
    pub name: String,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The types of the elements of its inputs.
    pub inputs: Vec<Type>,
    /// Its outputs.
    pub outputs: Vec<Output>,
    /// The types of its scalars.
    pub scalars: Vec<Type>,
    /// Number of sizes of a call.
    pub sizes: usize,
    /// Numbers that must be less than 2³¹, because the program's indices have 32 bits.
    pub limits: Vec<Count>,
    /// Numbers that must be at least so large.
    pub least: Vec<(Count, u64)>,
    /// Temporary memory.
    pub temporaries: Vec<Temporary>,
    /// The launches, in order.
    pub steps: Vec<Step>,
    /// True if products that are only added to may be fused with the sum, which changes the last bits.
    pub contract: bool,
    /// A product of matrices in memory that is the same as all launches, for a device that has a library for it.
    pub product: Option<PlainProduct>,
}

impl Program {
    /// The program made ready for a device.
    pub fn load(self, device: &Device) -> Result<Loaded> {
        Loaded::new(self, device)
    }

    /// Checks that its steps name kernels and arguments that are there.
    pub(crate) fn check(&self) -> Result<()> {
        let check = |what: &'static str, index: usize, given: usize| match index < given {
            true => Ok(()),
            false => Err(Error::Number { program: self.name.clone(), what, wanted: index + 1, given }),
        };
        for step in &self.steps {
            check("kernels", step.kernel, self.kernels.len())?;
            for argument in &step.arguments {
                match argument {
                    Argument::Input(index) => check("inputs", *index, self.inputs.len())?,
                    Argument::Output(index) => check("outputs", *index, self.outputs.len())?,
                    Argument::Temporary(index) => check("temporaries", *index, self.temporaries.len())?,
                    Argument::Scalar(index) => check("scalars", *index, self.scalars.len())?,
                    Argument::Count(..) => {}
                }
            }
        }
        Ok(())
    }

    /// Returns the number of elements that each output must have for these sizes.
    pub fn output_counts(&self, sizes: &[u64]) -> Result<Vec<u64>> {
        self.outputs.iter().map(|output| self.count(&output.count, sizes)).collect()
    }

    /// Returns the bytes of each temporary for these sizes.
    pub fn temporary_bytes(&self, sizes: &[u64]) -> Result<Vec<u64>> {
        self.temporaries.iter().map(|temporary| self.count(&temporary.bytes, sizes)).collect()
    }

    pub(crate) fn count(&self, count: &Count, sizes: &[u64]) -> Result<u64> {
        count.of(sizes).ok_or_else(|| self.too_large(sizes))
    }

    pub(crate) fn too_large(&self, sizes: &[u64]) -> Error {
        Error::Sizes { program: self.name.clone(), sizes: sizes.to_vec() }
    }
}
