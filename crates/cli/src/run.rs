//! `broadloom run`: a kernel launched, its buffers shown or kept; or a NESL or VCODE program.

use crate::failure::{Exit, Failure};
use crate::launching::{deliver, failure, launch, open};
use crate::nesl;
use crate::options::Run;
use crate::statistics;
use crate::terminal::Terminal;
use crate::tracing::traced;

/// Runs a kernel, or a NESL or VCODE program.
pub fn run(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    traced(options.trace.as_deref(), || perform(options, terminal))
}

fn perform(options: &Run, terminal: &mut Terminal) -> Result<Exit, Failure> {
    if nesl::is_program(options.launch.file.as_deref()) {
        return nesl::run(options, terminal);
    }
    if nesl::is_vcode(options.launch.file.as_deref()) {
        return nesl::run_vcode(options, terminal);
    }
    let device = options.launch.device.as_deref();
    let launched = launch("run", &options.launch, |terminal| open(device, options.stats, terminal), terminal)?;
    if options.stats {
        statistics::tell(&launched, terminal);
    }
    let outputs = launched.outcome.map_err(|error| failure(error, launched.sources))?;
    deliver(&outputs, terminal)?;
    Ok(Exit::Done)
}
