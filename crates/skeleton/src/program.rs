//! Programs: kernels with their launches, the result of a pattern.

use crate::plain::PlainProduct;
use crate::{Count, Error, Result};
use broadloom_scalar::{Kernel, Type};

/// An argument of a kernel, by its number among the arguments of the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// The address of an input.
    Input(usize),
    /// The address of an output.
    Output(usize),
    /// The address of a temporary of the program.
    Temporary(usize),
    /// A scalar parameter of the call, by number.
    Scalar(usize),
    /// A count, computed from the sizes, as a value of an integer type.
    Count(Count, Type),
}

/// Memory that lives as long as one run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Temporary {
    /// The size in bytes, from the sizes of the call.
    pub bytes: Count,
    /// True if all bytes are zero when the run starts. Otherwise they are undefined.
    pub zeroed: bool,
}

/// An output of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// The type of its elements.
    pub ty: Type,
    /// Minimum number of elements. 0 for an output that is written at computed places.
    pub count: Count,
}

/// A launch. It is skipped if its grid is empty for the sizes of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The kernel, by its number in the program.
    pub kernel: usize,
    /// Number of blocks in each direction.
    pub grid: [Count; 3],
    /// Number of threads of a block in each direction.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: Count,
    /// Arguments of the kernel.
    pub arguments: Vec<Argument>,
}

/// A pattern for a machine: kernels, and their launches for any sizes. It is a value that can be compared and
/// printed.
///
/// The inputs are those of the pattern's functions, in the order in which the pattern names the functions.
/// The scalars follow the same order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// Name in traces and errors.
    pub name: String,
    /// Kernels that the steps launch.
    pub kernels: Vec<Kernel>,
    /// Element types of the inputs.
    pub inputs: Vec<Type>,
    /// Buffers that the program writes, in the order of its results.
    pub outputs: Vec<Output>,
    /// Types of the scalars.
    pub scalars: Vec<Type>,
    /// Number of sizes of a call.
    pub sizes: usize,
    /// Counts that must be less than 2³¹, because the program's indices have 32 bits.
    pub limits: Vec<Count>,
    /// Counts with their minimum values.
    pub least: Vec<(Count, u64)>,
    /// Temporary memory.
    pub temporaries: Vec<Temporary>,
    /// The launches, in order.
    pub steps: Vec<Step>,
    /// True if a product whose only use is a sum may be fused with it, which changes the last bits.
    pub contract: bool,
    /// An equivalent product of matrices in memory, for a device that has a library for it.
    pub product: Option<PlainProduct>,
}

impl Program {
    /// Checks that all steps refer to existing kernels and arguments.
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

    /// Returns the number of bytes of each temporary for these sizes.
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
