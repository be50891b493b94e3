//! Campaigns of many kernels: run on a device, compared, counted.

use crate::{Config, Kernel, generate};
use broadloom_device::{Argument, Device, Error, Launch};
use broadloom_diag::Sources;
use broadloom_ptx::{Verified, parse, verify};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Outcome of one kernel.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The bytes of the output.
    pub output: Vec<u8>,
    /// True if it is significant: threads computed different results, and many kinds of instructions were
    /// run.
    pub useful: bool,
}

/// Outcomes of many kernels.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of generated kernels.
    pub kernels: usize,
    /// Number of significant kernels.
    pub useful: usize,
    /// Number of uses of each instruction.
    pub opcodes: BTreeMap<&'static str, usize>,
}

/// Reason why a campaign ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CampaignError {
    /// Generated kernel that is invalid, with its rendered diagnostics. It is a bug of the generator.
    #[error("{0}")]
    Invalid(String),
    /// Kernel that is judged wrong: its seed, and what differs.
    #[error("seed {seed}: {reason}")]
    Kernel {
        /// The seed that gives this kernel again.
        seed: u64,
        /// What the executor or the comparison reported.
        reason: String,
    },
}

/// Parses and verifies a generated kernel.
pub fn module(kernel: &Kernel) -> Result<Arc<Verified>, CampaignError> {
    let mut sources = Sources::new();
    let id = sources.add(format!("fuzz-{}.ptx", kernel.seed), kernel.text.as_str());
    let module = parse(&sources, id).and_then(verify).map(Arc::new);
    module.map_err(|diagnostics| CampaignError::Invalid(sources.render_all(&diagnostics)))
}

/// Runs a kernel on a device.
pub fn run(device: &Device, kernel: &Kernel, module: &Arc<Verified>) -> Result<Outcome, Error> {
    run_within(Duration::from_secs(60), device, kernel, module)
}

/// Runs a kernel that may not terminate on a device, with a time limit.
pub fn run_within(limit: Duration, device: &Device, kernel: &Kernel, module: &Arc<Verified>) -> Result<Outcome, Error> {
    let loaded = device.load(module)?;
    let input = device.upload(&kernel.input)?;
    let output = device.zeros::<u8>(kernel.output_bytes)?;
    let launch = Launch::new(kernel.grid, kernel.block).time_limit(limit);
    loaded.kernel("fuzz")?.launch(&launch, &[Argument::from(&input), Argument::from(&output)])?;
    let output = output.read()?;
    let useful = is_useful(kernel, module, &output);
    Ok(Outcome { output, useful })
}

fn is_useful(kernel: &Kernel, module: &Verified, output: &[u8]) -> bool {
    let threads = kernel.threads();
    let kinds: std::collections::BTreeSet<_> =
        module.kernels().flat_map(|(_, f)| f.instructions().filter_map(|(_, i)| i.opcode())).collect();
    let dump = (output.len() - threads.min(output.len())) / threads.max(1);
    let mut rows: Vec<&[u8]> = output.rchunks(dump.max(1)).collect();
    rows.sort_unstable();
    rows.dedup();
    kinds.len() >= 15 && (threads == 1 || rows.len() > 1)
}

/// Generates many kernels and reports their contents.
pub fn survey<E: std::fmt::Display>(
    seeds: std::ops::Range<u64>,
    config: &Config,
    mut each: impl FnMut(&Kernel, &Arc<Verified>) -> Result<bool, E>,
) -> Result<Report, CampaignError> {
    let mut report = Report::default();
    for seed in seeds {
        let kernel = generate(seed, config);
        let blamed = |reason: String| CampaignError::Kernel { seed, reason };
        let module = module(&kernel).map_err(|error| blamed(error.to_string()))?;
        report.kernels += 1;
        for (_, function) in module.kernels() {
            for (_, data) in function.instructions() {
                if let Some(opcode) = data.opcode() {
                    *report.opcodes.entry(opcode.name()).or_default() += 1;
                }
            }
        }
        report.useful += usize::from(each(&kernel, &module).map_err(|error| blamed(error.to_string()))?);
    }
    Ok(report)
}
