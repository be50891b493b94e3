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
mod config;
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
pub use config::Config;
pub use kernel::Kernel;
pub use sweep::{Sweep, sweep};

use writer::Writer;

/// Generates the kernel of a seed.
pub fn generate(seed: u64, config: &Config) -> Kernel {
    Writer::new(seed, config).kernel()
}
