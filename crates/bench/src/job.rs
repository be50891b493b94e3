//! A benchmark that is ready on a device: the launches of one repetition, its work, and the judge of its
//! result.

use crate::error::Failure;
use broadloom::device::{Argument, Element, Kernel, Launch, Machine, Module, Result};
use broadloom::graph::Summary;
use std::any::Any;

/// The conditions that decide the size of a benchmark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// True for sizes that the interpreter finishes quickly.
    pub(crate) quick: bool,
    /// True if the device is a GPU.
    pub(crate) gpu: bool,
    /// Size of the host's last-level cache. Arrays that must not fit into the cache take twice as much in
    /// total.
    pub(crate) cache_bytes: u64,
}

impl Scale {
    /// Returns the number of elements of arrays that exceed the cache, with `bytes` for each element. It is a
    /// multiple of `multiple`.
    pub(crate) fn elements(self, bytes: u64, multiple: usize, quick: usize) -> usize {
        let total = (2 * self.cache_bytes).clamp(128 << 20, 1 << 30);
        if self.quick { quick } else { ((total / bytes) as usize).next_multiple_of(multiple) }
    }

    /// Returns the side of square arrays that exceed the cache.
    pub(crate) fn side(self, bytes: u64, multiple: usize, quick: usize) -> usize {
        let points = self.elements(bytes, 1, quick * quick) as f64;
        if self.quick { quick } else { (points.sqrt() as usize).next_multiple_of(multiple) }
    }

    /// Returns a size that does not depend on the cache.
    pub(crate) fn fixed(self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Returns a size that depends on the kind of the device.
    pub(crate) fn either(self, gpu: usize, cpu: usize, quick: usize) -> usize {
        self.fixed(if self.gpu { gpu } else { cpu }, quick)
    }
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes moved.
    Bytes,
    /// Operations on floating-point numbers.
    Operations,
}

/// The work of one repetition: inputs read once, outputs written once, and nominal operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) unit: Unit,
    pub(crate) bytes: f64,
    pub(crate) operations: f64,
    /// True if the bytes come from memory, not from a cache.
    pub(crate) in_memory: bool,
    /// True if almost nothing is written.
    pub(crate) reads_only: bool,
}

impl Work {
    /// Returns work that is counted in bytes from memory.
    pub(crate) fn memory(bytes: usize, operations: usize) -> Work {
        let (bytes, operations) = (bytes as f64, operations as f64);
        Work { unit: Unit::Bytes, bytes, operations, in_memory: true, reads_only: false }
    }

    /// Returns work that is counted in bytes from memory, without writes.
    pub(crate) fn reading(bytes: usize, operations: usize) -> Work {
        Work { reads_only: true, ..Work::memory(bytes, operations) }
    }

    /// Returns work that is counted in operations. Its data stays in caches.
    pub(crate) fn arithmetic(bytes: usize, operations: f64) -> Work {
        Work { unit: Unit::Operations, operations, in_memory: false, ..Work::memory(bytes, 0) }
    }
}

/// The findings of the judge about a correct result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// The checksum that a peer must also have.
    pub(crate) checksum: f64,
    /// Number of operations, if it depends on the data.
    pub(crate) operations: Option<f64>,
}

impl From<f64> for Verdict {
    fn from(checksum: f64) -> Self {
        Verdict { checksum, operations: None }
    }
}

/// One launch of a repetition.
struct Step {
    kernel: Kernel,
    launch: Launch,
    arguments: Vec<Argument>,
}

type Judge = Box<dyn Fn(u64) -> std::result::Result<Verdict, Failure>>;
type Repetition = Box<dyn Fn() -> std::result::Result<(), Failure>>;
type PlanFunction = Box<dyn Fn() -> std::result::Result<Summary, Failure>>;

/// A benchmark that is ready on a device.
pub(crate) struct Job {
    pub(crate) work: Work,
    steps: Vec<Step>,
    /// An action instead of launches.
    expression: Option<Repetition>,
    /// Makes the plan of a repetition.
    planned: Option<PlanFunction>,
    judge: Judge,
    /// Buffers that launches use and the judge does not hold. A launch knows only their addresses.
    kept: Vec<Box<dyn Any>>,
}

impl Job {
    /// Makes a job without launches. The judge gets the number of repetitions.
    pub(crate) fn new<V: Into<Verdict>>(work: Work, judge: impl Fn(u64) -> std::result::Result<V, Failure> + 'static) -> Self {
        let judge = move |repetitions| judge(repetitions).map(Into::into);
        Job { work, steps: vec![], expression: None, planned: None, judge: Box::new(judge), kept: vec![] }
    }

    /// Keeps buffers as long as the job lives.
    pub(crate) fn keep(mut self, buffers: impl Any) -> Self {
        self.kept.push(Box::new(buffers));
        self
    }

    /// Adds a launch to each repetition.
    pub(crate) fn step(mut self, module: &Module, kernel: &str, launch: Launch, arguments: &[Argument]) -> Result<Self> {
        self.steps.push(Step { kernel: module.kernel(kernel)?, launch, arguments: arguments.to_vec() });
        Ok(self)
    }

    /// Sets an action for each repetition, which makes its own launches.
    pub(crate) fn expression(mut self, repetition: impl Fn() -> std::result::Result<(), Failure> + 'static) -> Self {
        self.expression = Some(Box::new(repetition));
        self
    }

    /// Sets the function that plans the action of a repetition.
    pub(crate) fn planned(mut self, planned: impl Fn() -> std::result::Result<Summary, Failure> + 'static) -> Self {
        self.planned = Some(Box::new(planned));
        self
    }

    /// Predicts the milliseconds of a repetition. Returns `None` if there is no plan of the whole repetition.
    pub(crate) fn predicted_ms(&self, machine: &Machine) -> std::result::Result<Option<f64>, Failure> {
        let Some(planned) = &self.planned else { return Ok(None) };
        let plan = planned()?;
        Ok(plan.predicted(machine).filter(|_| !plan.kernels.is_empty()).map(|time| time.as_secs_f64() * 1e3))
    }

    /// Returns the number of launches in a repetition, without those of its action.
    pub(crate) fn launches(&self) -> usize {
        self.steps.len()
    }

    /// Prepares the kernels for their launches.
    pub(crate) fn prepare(&self) -> Result<()> {
        self.steps.iter().try_for_each(|step| step.kernel.prepare(&step.launch))
    }

    /// Submits one repetition to the device.
    pub(crate) fn launch(&self) -> std::result::Result<(), Failure> {
        self.steps.iter().try_for_each(|step| step.kernel.launch(&step.launch, &step.arguments))?;
        self.expression.as_ref().map_or(Ok(()), |repetition| repetition())
    }

    /// Compares the result after `repetitions` repetitions with the reference.
    pub(crate) fn judge(&self, repetitions: u64) -> std::result::Result<Verdict, Failure> {
        (self.judge)(repetitions)
    }
}

/// Returns a linear launch with a thread for each element.
pub(crate) fn one_each(count: usize, threads: u32) -> Launch {
    Launch::linear(count.div_ceil(threads as usize) as u32, threads)
}

/// Returns a launch of blocks of 32 × 8 threads over a square.
pub(crate) fn square(side: usize) -> Launch {
    Launch::new([side.div_ceil(32) as u32, side.div_ceil(8) as u32, 1], [32, 8, 1])
}

/// Fails at the first element whose error exceeds `relative` times the reference plus `absolute`.
pub(crate) fn close(got: &[f32], want: impl Fn(usize) -> f64, relative: f64, absolute: f64) -> std::result::Result<(), Failure> {
    close_at(got, 0..got.len(), want, relative, absolute)
}

/// Checks some of the elements, as [`close`] does.
pub(crate) fn close_at(
    got: &[f32],
    places: impl Iterator<Item = usize>,
    want: impl Fn(usize) -> f64,
    relative: f64,
    absolute: f64,
) -> std::result::Result<(), Failure> {
    for index in places {
        let (got, want) = (f64::from(got[index]), want(index));
        // Written so that NaN fails.
        let near = (got - want).abs() <= relative * want.abs() + absolute;
        if !near {
            return Err(Failure::Wrong(format!(
                "element {index} is {got}, the reference says {want} (allowed: {relative:e} of it plus {absolute:e})"
            )));
        }
    }
    Ok(())
}

/// Fails at the first element that differs from the reference.
pub(crate) fn equal<T: Element + PartialEq + std::fmt::Display>(
    got: &[T],
    want: impl Fn(usize) -> T,
) -> std::result::Result<(), Failure> {
    for (index, &got) in got.iter().enumerate() {
        let want = want(index);
        if got != want {
            return Err(Failure::Wrong(format!("element {index} is {got}, the reference says {want}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_cache() {
        let scale = Scale { quick: false, gpu: false, cache_bytes: 300 << 20 };
        assert!(scale.elements(12, 1 << 20, 7) * 12 >= 600 << 20);
        assert_eq!(scale.elements(12, 1 << 20, 7) % (1 << 20), 0);
        assert!(scale.side(8, 512, 7).pow(2) * 8 >= 600 << 20);
        let small = Scale { quick: false, gpu: true, cache_bytes: 1 << 20 };
        assert!(small.elements(1, 1, 7) >= 128 << 20);
        assert_eq!((scale.either(100, 10, 1), small.either(100, 10, 1)), (10, 100));
        let quick = Scale { quick: true, ..small };
        assert_eq!((quick.elements(12, 64, 7), quick.side(8, 64, 7), quick.fixed(100, 3)), (7, 7, 3));
    }

    #[test]
    fn what_is_far_is_wrong() {
        assert!(close(&[1.0, 2.0], |i| 1.0 + i as f64, 1e-6, 0.0).is_ok());
        assert!(close(&[1.0, 2.1], |i| 1.0 + i as f64, 1e-6, 0.0).is_err());
        assert!(close(&[f32::NAN], |_| 1.0, 1e-6, 1.0).is_err());
        assert!(equal(&[1u32, 2], |i| i as u32 + 1).is_ok() && equal(&[1u32, 3], |i| i as u32 + 1).is_err());
    }
}
