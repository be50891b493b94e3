//! Kernel times, and the gain of each technique.

use super::{Mode, Options, Plan, Switch};
use crate::Result;
use crate::graph::Picture;
use crate::image::Rect;
use broadloom_graph::{KernelSummary, Node, Summary};
use std::time::Duration;

/// Measured time of a kernel.
#[derive(Clone, Debug)]
pub struct KernelTime {
    /// Functors whose results the kernel writes. Functors that are fused into them are not listed.
    pub functors: Vec<String>,
    /// The measured kernel.
    pub kernel: KernelSummary,
    /// Time of one run.
    pub time: Duration,
}

/// Gain of a technique.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Name of the technique.
    pub name: &'static str,
    /// Time without it.
    pub without: Duration,
    /// Time with all techniques.
    pub with: Duration,
    /// True if the kernels differ without the technique. Equal kernels are measured once.
    pub changes: bool,
}

impl Gain {
    /// Returns the factor by which the technique speeds up the effect.
    pub fn factor(&self) -> f64 {
        self.without.as_secs_f64() / self.with.as_secs_f64().max(1e-9)
    }
}

impl Plan {
    /// Computes the images and measures the kernels. Kernels run twice, the second time one at a time.
    pub fn profile(&self) -> Result<(Vec<Node>, Vec<KernelTime>)> {
        let mut stages: Vec<(Summary, Vec<Duration>)> = vec![];
        let nodes = self.lower(&mut Mode::Measure(&mut stages), &mut vec![], &[])?;
        let mut profiles = vec![];
        for (summary, times) in stages {
            for (kernel, time) in summary.kernels.into_iter().zip(times) {
                let mut functors: Vec<String> = kernel.results.iter().map(|result| result.operation.clone()).collect();
                functors.dedup();
                profiles.push(KernelTime { functors, kernel, time });
            }
        }
        Ok((nodes, profiles))
    }

    /// Computes the images once, so that all kernels are compiled.
    fn prepare(&self) -> Result<()> {
        self.lower(&mut Mode::Run, &mut vec![], &[])?;
        Ok(self.context.device().synchronise().map_err(broadloom_graph::Error::from)?)
    }

    /// Returns the fastest time of a few runs, after a first run that prepares everything. Copies of images
    /// to the device are not counted.
    fn fastest(&self) -> Result<Duration> {
        self.prepare()?;
        let mut best = Duration::MAX;
        for _ in 0..RUNS {
            let mut time = Duration::ZERO;
            self.lower(&mut Mode::Time(&mut time), &mut vec![], &[])?;
            best = best.min(time);
        }
        Ok(best)
    }
}

/// Number of runs, of which the fastest counts.
const RUNS: usize = 3;

/// Measures the gain of each technique: the time without it against the time with all techniques of the
/// options. Options that give equal kernels share one measurement. The other plans are compiled concurrently
/// if all of them fit into memory, and then measured one after the other.
pub fn gains(results: &[(Picture, Rect)], options: &Options) -> Result<Vec<Gain>> {
    let mut plans: Vec<(String, Plan)> = vec![];
    let mut number_of = |options: &Options| -> Result<usize> {
        let plan = Plan::new(results, options)?;
        let kernels = plan.explain()?.kernels_in_full()?;
        let known = plans.iter().position(|(own, _)| *own == kernels);
        Ok(known.unwrap_or_else(|| {
            plans.push((kernels, plan));
            plans.len() - 1
        }))
    };
    number_of(options)?;
    let mut numbers = vec![];
    for name in Options::NAMES {
        let mut less = *options;
        match less.switch(name) {
            Some(switch) if *switch != Switch::Off => *switch = Switch::Off,
            _ => continue,
        }
        numbers.push((name, number_of(&less)?));
    }
    let plans: Vec<Plan> = plans.into_iter().map(|(_, plan)| plan).collect();
    let bytes: u64 = plans.iter().map(|plan| plan.items.peak()).fold(0, u64::saturating_add);
    if bytes <= plans.first().map_or(0, Plan::memory) {
        // A plan that fails here also fails below, and its error is reported there.
        std::thread::scope(|scope| plans.iter().for_each(|plan| drop(scope.spawn(|| plan.prepare()))));
    }
    let times = plans.iter().map(Plan::fastest).collect::<Result<Vec<Duration>>>()?;
    let gain = |(name, number): (&'static str, usize)| Gain { name, without: times[number], with: times[0], changes: number > 0 };
    Ok(numbers.into_iter().map(gain).collect())
}
