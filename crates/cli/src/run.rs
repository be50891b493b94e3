//! `broadloom run`: a kernel launched, its buffers shown or kept.

use crate::failure::{Exit, Failure};
use crate::launching::{Launched, deliver, failure, launch};
use crate::options::Run;
use crate::terminal::Terminal;

/// Runs a kernel.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let launched = launch("run", &options.launch, false, terminal)?;
    if options.stats {
        statistics(&launched, terminal);
    }
    let outputs = launched.outcome.map_err(|error| failure(error, launched.sources))?;
    deliver(&outputs, terminal)?;
    Ok(Exit::Done)
}

fn statistics(launched: &Launched, terminal: &mut Terminal) {
    let instructions = launched.interp.statistics().instructions;
    let (blocks, threads) = (launched.launch.blocks(), launched.launch.threads_per_block());
    let seconds = launched.time.as_secs_f64();
    let rate = instructions as f64 / seconds.max(1e-9) / 1e6;
    terminal.remark(&format!(
        "kernel {}: {} blocks of {} threads, {} instructions in {:.3} ms, {rate:.1} million per second",
        launched.kernel,
        blocks,
        threads,
        instructions,
        seconds * 1e3
    ));
}
