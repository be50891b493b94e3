//! Measurement of times: Broadloom and the peers take turns within one run, and the median of each counts.
//!
//! Short repetitions run in bursts, for Broadloom and the peers alike. The measured time is then that of one
//! repetition that is followed by the next, as in loops of programs. The time to wake an idle device or core,
//! and to get its answer, does not count.

use crate::error::Failure;
use crate::job::Job;
use crate::peer::{Peer, PeerError};
use broadloom::device::Device;
use broadloom::device::trace::Trace;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// The amount of measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasurementEffort {
    /// Minimum number of measured turns of each party.
    pub(crate) repetitions: usize,
    /// Minimum sum of the measured times of each party. A turn contributes its mean time of a repetition.
    pub(crate) time: Duration,
    /// Pause before each turn. Threads of the other party spin for a while before they sleep.
    pub(crate) pause: Duration,
}

impl MeasurementEffort {
    /// The effort for figures.
    pub(crate) const FULL: MeasurementEffort =
        MeasurementEffort { repetitions: 5, time: Duration::from_millis(500), pause: Duration::from_millis(20) };
    /// The effort for a functional test without figures.
    pub(crate) const QUICK: MeasurementEffort = MeasurementEffort { repetitions: 1, time: Duration::ZERO, pause: Duration::ZERO };
    /// Maximum number of measured turns, however short they are.
    const MOST: usize = 200;
    /// Approximate time of a turn, and maximum repetitions in a turn.
    const BURST: Duration = Duration::from_millis(10);
    const MOST_AT_ONCE: u64 = 500;

    /// Returns the number of repetitions for a turn, from the time of one.
    fn at_once(self, one: Duration) -> u64 {
        if self.time.is_zero() {
            return 1;
        }
        let many = MeasurementEffort::BURST.as_nanos() / one.as_nanos().max(1);
        u64::try_from(many).unwrap_or(u64::MAX).clamp(1, MeasurementEffort::MOST_AT_ONCE)
    }

    /// Sum of measured times from which on two turns suffice.
    const LONG: Duration = Duration::from_secs(10);

    /// Returns whether these times suffice.
    fn is_enough(self, times: &[Duration]) -> bool {
        let all: Duration = times.iter().sum();
        let often = times.len() >= self.repetitions || times.len() > 1 && all >= MeasurementEffort::LONG;
        times.len() >= MeasurementEffort::MOST || often && all >= self.time
    }
}

/// The measured times.
#[derive(Debug)]
pub(crate) struct Times {
    /// Our median.
    pub(crate) ours: Duration,
    /// Our fastest time, which other work of the machine disturbs least.
    pub(crate) fastest: Duration,
    /// The median and the fastest time of each peer, or its error.
    pub(crate) peers: Vec<Result<[Duration; 2], PeerError>>,
    /// Number of our repetitions, including the warm-up.
    pub(crate) repetitions: u64,
}

/// Runs a job and its peers by turns. The first repetition of each is a warm-up. The second determines the
/// number of repetitions in a turn.
pub(crate) fn by_turns(
    device: &Device,
    job: &Job,
    peers: &mut [Peer],
    effort: MeasurementEffort,
) -> std::result::Result<Times, Failure> {
    let mut ours = Turns::default();
    let mut theirs: Vec<Result<Turns, PeerError>> = peers.iter().map(|_| Ok(Turns::default())).collect();
    loop {
        ours.take(effort, |count| burst(device, job, count))?;
        for (peer, outcome) in peers.iter_mut().zip(&mut theirs) {
            let Ok(turns) = outcome else { continue };
            if effort.is_enough(&turns.times) {
                continue;
            }
            if let Err(error) = turns.take(effort, |count| peer.run(count)) {
                *outcome = Err(error);
            }
        }
        if effort.is_enough(&ours.times) && theirs.iter().flatten().all(|turns| effort.is_enough(&turns.times)) {
            break;
        }
    }
    let both = |turns: Turns| {
        let fastest = turns.times.iter().min().copied().unwrap_or_default();
        [median(turns.times).unwrap_or_default(), fastest]
    };
    let repetitions = ours.repetitions;
    let [middle, fastest] = both(ours);
    Ok(Times { ours: middle, fastest, peers: theirs.into_iter().map(|turns| turns.map(both)).collect(), repetitions })
}

/// The turns of one party.
#[derive(Debug, Default)]
struct Turns {
    /// The mean time of a repetition, for each turn that counts.
    times: Vec<Duration>,
    /// Number of repetitions in all.
    repetitions: u64,
    /// Number of repetitions in a turn. Zero until it is known.
    at_once: u64,
}

impl Turns {
    /// Takes one turn. `run` runs a number of repetitions and returns the mean time of one.
    fn take<E>(&mut self, effort: MeasurementEffort, mut run: impl FnMut(u64) -> Result<Duration, E>) -> Result<(), E> {
        thread::sleep(effort.pause);
        if self.at_once == 0 {
            let mut time = run(1)?;
            self.repetitions += 1;
            // The first repetition may have allocated memory and loaded code.
            if !effort.time.is_zero() {
                time = run(1)?;
                self.repetitions += 1;
            }
            self.at_once = effort.at_once(time);
            if effort.time.is_zero() {
                self.times.push(time);
            }
        } else {
            self.times.push(run(self.at_once)?);
            self.repetitions += self.at_once;
        }
        Ok(())
    }
}

/// Measures one repetition, until its results are available.
pub(crate) fn repetition(device: &Device, job: &Job) -> Result<Duration, Failure> {
    burst(device, job, 1)
}

/// Measures the mean time of several repetitions that are submitted without waits in between.
fn burst(device: &Device, job: &Job, count: u64) -> Result<Duration, Failure> {
    let start = Instant::now();
    for _ in 0..count {
        job.launch()?;
    }
    device.synchronise()?;
    Ok(start.elapsed().div_f64(count as f64))
}

/// Number of repetitions in a trace.
const TRACED: u64 = 5;

/// Measures the time that a GPU works for a repetition, by its own clock. Submission by the host and pauses
/// between kernels do not count. Returns `None` if the time is not known.
pub(crate) fn device_time(device: &Device, job: &Job) -> Result<Option<Duration>, Failure> {
    let mut times = vec![];
    for _ in 0..TRACED {
        let Some(trace) = Trace::start() else { return Ok(None) };
        burst(device, job, TRACED)?;
        times.push(trace.device_time().div_f64(TRACED as f64));
    }
    // Work that a library submits to the device is not traced.
    Ok(median(times).filter(|time| !time.is_zero()))
}

/// Writes a trace of a few repetitions. Their times do not count, because tracing slows the device down.
pub(crate) fn write_trace(device: &Device, job: &Job, path: &Path) -> Result<io::Result<()>, Failure> {
    let Some(trace) = Trace::start() else { return Ok(Err(io::Error::other("another trace is being taken"))) };
    burst(device, job, TRACED)?;
    let file = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::File::create(path));
    Ok(file.and_then(|file| trace.finish(&mut io::BufWriter::new(file))))
}

/// Measures a process of the command from its start to its end. It must print the expected text.
pub(crate) fn time_command(call: &mut Command, expected: &str) -> Result<Duration, Failure> {
    let start = Instant::now();
    let output = call.output();
    let time = start.elapsed();
    let unusable = |error| Failure::Outside(format!("{} cannot be run: {error}", call.get_program().display()));
    let output = output.map_err(unusable)?;
    if output.status.success() && output.stdout == expected.as_bytes() {
        return Ok(time);
    }
    let printed = [output.stdout, output.stderr].concat();
    Err(Failure::Wrong(format!("the command gave {}", String::from_utf8_lossy(&printed).trim())))
}

/// Returns the median: the middle time, or the mean of the two in the middle.
pub(crate) fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    let (low, high) = (times.get(times.len().checked_sub(1)? / 2)?, times.get(times.len() / 2)?);
    Some((*low + *high) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let times = |list: &[u64]| list.iter().map(|&ms| Duration::from_millis(ms)).collect::<Vec<_>>();
        assert_eq!(median(vec![]), None);
        assert_eq!(median(times(&[9, 1, 5])), Some(Duration::from_millis(5)));
        assert_eq!(median(times(&[4, 1, 2, 100])), Some(Duration::from_millis(3)));
    }
}
