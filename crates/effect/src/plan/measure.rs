//! Times of kernels, and the gain of each technique.

use super::items::Work;
use super::{Mode, Options, Plan, Switch};
use crate::Result;
use crate::graph::{Picture, uploaded};
use crate::image::Rect;
use broadloom_graph::{KernelSummary, Node, Summary};
use std::time::{Duration, Instant};

/// The time of a kernel.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The functors whose results the kernel writes; those that were fused into them have none of their own.
    pub functors: Vec<String>,
    /// The kernel.
    pub kernel: KernelSummary,
    /// The time of one run.
    pub time: Duration,
}

/// The gain of a technique.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The technique.
    pub name: &'static str,
    /// The time without it.
    pub without: Duration,
    /// The time with all techniques.
    pub with: Duration,
    /// Whether the kernels without it are others. Equal kernels are measured once.
    pub changes: bool,
}

impl Gain {
    /// Returns by which factor the technique makes the effect faster.
    pub fn factor(&self) -> f64 {
        self.without.as_secs_f64() / self.with.as_secs_f64().max(1e-9)
    }
}

impl Plan {
    /// Computes the images and measures the kernels. Kernels run twice, the second time one by one.
    pub fn profile(&self) -> Result<(Vec<Node>, Vec<Profile>)> {
        let mut stages: Vec<(Summary, Vec<Duration>)> = vec![];
        let nodes = self.lower(&mut Mode::Measure(&mut stages), &mut vec![], &[])?;
        let mut profiles = vec![];
        for (summary, times) in stages {
            for (kernel, time) in summary.kernels.into_iter().zip(times) {
                let mut functors: Vec<String> = kernel.results.iter().map(|result| result.operation.clone()).collect();
                functors.dedup();
                profiles.push(Profile { functors, kernel, time });
            }
        }
        Ok((nodes, profiles))
    }

    /// Copies the images of the host to the device, so that runs do not.
    fn resident(mut self) -> Result<Plan> {
        for item in &mut self.items.items {
            if let Work::Host(image) = &item.work {
                let node = uploaded(&self.context, image)?;
                node.evaluate()?;
                item.work = Work::Source(node);
            }
        }
        Ok(self)
    }

    /// Returns the fastest time of a few runs, after one that makes everything ready.
    fn fastest(&self) -> Result<Duration> {
        let mut best = Duration::MAX;
        for round in 0..=RUNS {
            let start = Instant::now();
            drop(self.nodes()?);
            self.context.device().synchronise().map_err(broadloom_graph::Error::from)?;
            if round > 0 {
                best = best.min(start.elapsed());
            }
        }
        Ok(best)
    }
}

/// Runs of which the fastest counts.
const RUNS: usize = 3;

/// Measures the gain of each technique: the time with it switched off against the time with all that the options have. Options that give the same
/// kernels share one measurement, and only other kernels are compiled.
pub fn gains(results: &[(Picture, Rect)], options: &Options) -> Result<Vec<Gain>> {
    let mut measured: Vec<(String, Duration)> = vec![];
    let mut time_of = |options: &Options| -> Result<(usize, Duration)> {
        let plan = Plan::new(results, options)?;
        let kernels = plan.explain()?.kernels_in_full()?;
        if let Some(known) = measured.iter().position(|(own, _)| *own == kernels) {
            return Ok((known, measured[known].1));
        }
        measured.push((kernels, plan.resident()?.fastest()?));
        Ok((measured.len() - 1, measured[measured.len() - 1].1))
    };
    let (_, with) = time_of(options)?;
    let mut gains = vec![];
    for name in Options::NAMES {
        let mut less = *options;
        match less.switch(name) {
            Some(switch) if *switch != Switch::Off => *switch = Switch::Off,
            _ => continue,
        }
        let (number, without) = time_of(&less)?;
        gains.push(Gain { name, without, with, changes: number > 0 });
    }
    Ok(gains)
}
