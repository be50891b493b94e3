//! Random kernels from the instruction table.
//!
//! Every kernel is valid PTX, terminates, has no race and no undefined value, and writes everything it
//! computed to memory, so that two executors can be compared byte by byte. Pure instructions are drawn from
//! the table, in all forms of the target. Loops, divergence, barriers, shuffles, atomics, calls, shared and
//! local memory come from templates that ensure these properties:
//!
//! - recursive functions count their depth;
//! - loops count down from a small number, and some end earlier; branches are forward, or back edges of such
//!   loops;
//! - barriers stand only where all threads of the block arrive together, shuffles and votes where those of
//!   their mask do;
//! - a thread writes its own part of shared or global memory, and reads another's only between two barriers;
//! - accumulators that several threads share use commutative integer operations whose result is not read;
//! - every register is initialised before the first statement.
//!
//! ```
//! use broadloom_fuzzgen::{Config, generate};
//!
//! let kernel = generate(7, &Config::default());
//! assert_eq!(kernel.text, generate(7, &Config::default()).text);
//! ```

mod campaign;
mod collectives;
mod forms;
mod functions;
mod kernel;
mod nans;
mod pools;
mod statements;
mod sweep;
mod writer;

pub use broadloom_random::Random;
pub use campaign::{Outcome, Report, module, run, run_within, survey};
pub use sweep::{Sweep, sweep};

use writer::Writer;

/// Configuration of the generated kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of statements at the top level of a kernel.
    pub statements: usize,
    /// Maximum nesting of loops and branches.
    pub depth: usize,
    /// Maximum threads per block.
    pub threads: u32,
    /// Maximum blocks.
    pub blocks: u32,
    /// Target: forms of later ones are not drawn.
    pub sm: u16,
    /// Version of PTX: forms of later ones are not drawn.
    pub isa: (u8, u8),
    /// True to draw approximate instructions too. Only round trips use that.
    pub approximate: bool,
    /// True to restrict kernels to what the manual defines and NVIDIA's machines follow, so that they can be
    /// compared with a GPU. The following are then omitted:
    ///
    /// - payloads of NaNs in `f32` and `f64` (a NaN result is made canonical);
    /// - sums of doubles in memory;
    /// - conversions to `tf32`, to halves with `.ftz` and to doubles with `.sat`;
    /// - shifts of 16 bits, bit fields of 64 bits (machines do not truncate positions to 8 bits), absolute
    ///   values of 16 bits, comparisons with half results, `fns`;
    /// - scalar video instructions (the assembler's sequences for them deviate from the manual);
    /// - guards on instructions that the assembler turns into several;
    /// - warp masks that are computed on only one side of a branch;
    /// - known positions of signed bit fields from 32 on;
    /// - masks of all lanes that the assembler knows to be that;
    /// - branches on predicates that are computed with;
    /// - generic addresses of local memory where lanes have diverged;
    /// - functions that call others or themselves.
    ///
    /// `docs/CUDA.md` tells which of 2,000 kernels showed what: of the last five, one, two, three, two and
    /// ten.
    pub portable: bool,
    /// True to make visible which NaN an instruction on `f64` gave, which the manual does not define.
    /// Otherwise such a result is made canonical, and no doubles are summed in memory.
    pub nan_payloads: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            statements: 24,
            depth: 3,
            threads: 96,
            blocks: 3,
            sm: 90,
            isa: (8, 5),
            approximate: false,
            portable: true,
            nan_payloads: false,
        }
    }
}

/// Kernel with its launch. It takes two addresses: the data it reads (`input`) and the memory it writes
/// (`output`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The module as text; the kernel is called `fuzz`.
    pub text: String,
    /// Seed that it was generated from.
    pub seed: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads per block.
    pub block: [u32; 3],
    /// Contents of the input.
    pub input: Vec<u32>,
    /// Bytes of the output.
    pub output_bytes: usize,
}

impl Kernel {
    /// Returns the number of threads of the launch.
    pub fn threads(&self) -> usize {
        self.grid.iter().chain(&self.block).map(|n| *n as usize).product()
    }

    /// Describes a byte of the output of a kernel from [`generate`].
    pub fn describe_byte(&self, byte: usize) -> String {
        kernel::describe_byte(self.threads(), byte)
    }
}

/// Generates the kernel of a seed.
pub fn generate(seed: u64, config: &Config) -> Kernel {
    Writer::new(seed, config).kernel()
}
