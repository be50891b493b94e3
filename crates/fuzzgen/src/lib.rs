//! Random kernels from the instruction table.
//!
//! Every kernel is valid PTX, terminates, has no race and no undefined value, and writes everything it computed to memory, so
//! that two executors can be compared byte by byte. Pure instructions are drawn from the table, all forms that the target
//! has; loops, divergence, barriers, shuffles, atomics, calls, shared and local memory come from templates that keep the
//! promises above:
//!
//! - functions that call themselves count how deep they are;
//! - loops count down from a small number, and some end earlier; branches are forward, or back edges of such loops;
//! - barriers stand only where all threads of the block come by together, shuffles and votes where those of their mask do;
//! - a thread writes its own part of shared or global memory, and reads another's only between two barriers;
//! - accumulators that several threads share take commutative integer operations whose result nobody reads;
//! - every register is set before the first statement.
//!
//! ```
//! use broadloom_fuzzgen::{Config, generate};
//!
//! let kernel = generate(7, &Config::default());
//! assert_eq!(kernel.text, generate(7, &Config::default()).text);
//! ```

mod campaign;
mod forms;
mod functions;
mod pools;
mod statements;
mod sweep;
mod together;

pub use broadloom_random::Random;
pub use campaign::{Outcome, Report, module, run, run_within, survey};
pub use sweep::{Sweep, sweep};

use statements::Writer;

/// The kinds of kernels to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Statements at the top level of a kernel.
    pub statements: usize,
    /// How deep loops and branches nest.
    pub depth: usize,
    /// Most threads per block.
    pub threads: u32,
    /// Most blocks.
    pub blocks: u32,
    /// The target: forms of later ones are not drawn.
    pub sm: u16,
    /// The version of PTX: forms of later ones are not drawn.
    pub isa: (u8, u8),
    /// Whether instructions whose result may be off are drawn. Only round trips want that.
    pub approximate: bool,
    /// Whether to stay with what the manual fixes and NVIDIA's machines follow, so that kernels can be compared with a GPU.
    /// Left out are then: payloads of NaNs in `f32` and `f64` (a result that is NaN is made canonical), sums of doubles
    /// in memory, conversions to `tf32`, to halves with `.ftz` and to doubles with `.sat`, shifts of 16 bits, bit fields of 64 bits (machines do not cut positions to 8 bits), absolute values of 16 bits, comparisons that give
    /// halves, `fns`, scalar video instructions (the assembler's sequences for them leave the manual), guards on instructions that the assembler turns into several,
    /// masks of warps that are made on one side of a branch alone, known positions of signed bit fields from 32 on, masks of all lanes that the assembler knows to be that,
    /// branches on predicates that are computed with, generic addresses of local memory where lanes have parted, and functions that call others or
    /// themselves. Which of 2,000 kernels showed what stands in `docs/CUDA.md`: of the last five, one, two, three, two and ten.
    pub portable: bool,
    /// Whether it can be seen which NaN an instruction on `f64` gave, of which the manual says nothing. Where it cannot, such a
    /// result is made canonical, and no doubles are summed in memory.
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

/// A kernel with its launch. It takes two addresses: what it reads (`input`) and what it writes (`output`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The module as text; the kernel is called `fuzz`.
    pub text: String,
    /// The seed that it was made from.
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
    /// Threads of the launch.
    pub fn threads(&self) -> usize {
        self.grid.iter().chain(&self.block).map(|n| *n as usize).product()
    }

    /// Describes a byte of the output of a kernel from [`generate`].
    pub fn place(&self, byte: usize) -> String {
        statements::place(self.threads(), byte)
    }
}

/// The kernel of a seed.
pub fn generate(seed: u64, config: &Config) -> Kernel {
    Writer::new(seed, config).kernel()
}
