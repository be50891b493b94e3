//! How times are taken: ours and the peer's by turns within one run, and the median of each counts.
//!
//! What is short is repeated at once, ours and the peer's, as loops of programs do: what counts is how long each takes when the next follows it, not what it
//! takes to wake an idle device or core and to hear from it.

use crate::error::Failure;
use crate::job::Job;
use crate::peer::Peer;
use broadloom::device::Device;
use broadloom::device::trace::Trace;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// At least so many repetitions of each.
    pub(crate) repetitions: usize,
    /// And at least so long, all repetitions of each together.
    pub(crate) time: Duration,
    /// Before each repetition. Threads that wait for work of the other party spin for a while before they sleep.
    pub(crate) pause: Duration,
}

impl Effort {
    /// What figures are made with.
    pub(crate) const FULL: Effort = Effort { repetitions: 5, time: Duration::from_millis(500), pause: Duration::from_millis(20) };
    /// Whether it works, not how fast.
    pub(crate) const QUICK: Effort = Effort { repetitions: 1, time: Duration::ZERO, pause: Duration::ZERO };
    /// So many at most, however short they are.
    const MOST: usize = 200;
    /// How long the repetitions of a turn take, and how many they are at most.
    const BURST: Duration = Duration::from_millis(10);
    const MOST_AT_ONCE: u64 = 500;

    /// Repetitions for a turn, by how long one takes.
    fn at_once(self, one: Duration) -> u64 {
        if self.time.is_zero() {
            return 1;
        }
        let many = Effort::BURST.as_nanos() / one.as_nanos().max(1);
        u64::try_from(many).unwrap_or(u64::MAX).clamp(1, Effort::MOST_AT_ONCE)
    }

    /// What takes so long all together need not be repeated more often.
    const LONG: Duration = Duration::from_secs(10);

    /// Whether these times are all that is wanted.
    fn is_enough(self, times: &[Duration]) -> bool {
        let all: Duration = times.iter().sum();
        let often = times.len() >= self.repetitions || times.len() > 1 && all >= Effort::LONG;
        times.len() >= Effort::MOST || often && all >= self.time
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// Our median.
    pub(crate) ours: Duration,
    /// Our fastest time, which other work of the machine disturbs least.
    pub(crate) fastest: Duration,
    /// The median and the fastest time of each peer, or why it gave up.
    pub(crate) peers: Vec<Result<[Duration; 2], String>>,
    /// How often ours was run, warming up included.
    pub(crate) repetitions: u64,
}

/// Runs a job and its peers by turns. The first repetition of each only warms up, and the second says how many make a turn.
pub(crate) fn by_turns(device: &Device, job: &Job, peers: &mut [Peer], effort: Effort) -> std::result::Result<Times, Failure> {
    let mut ours = Turns::default();
    let mut theirs: Vec<Result<Turns, String>> = peers.iter().map(|_| Ok(Turns::default())).collect();
    loop {
        ours.take(effort, |count| burst(device, job, count))?;
        for (peer, outcome) in peers.iter_mut().zip(&mut theirs) {
            let Ok(turns) = outcome else { continue };
            if effort.is_enough(&turns.times) {
                continue;
            }
            if let Err(reason) = turns.take(effort, |count| peer.run(count)) {
                *outcome = Err(reason);
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
    /// How long a repetition took, in the mean of each turn that counts.
    times: Vec<Duration>,
    /// How many there were in all.
    repetitions: u64,
    /// How many make a turn; zero until one is known.
    at_once: u64,
}

impl Turns {
    /// One turn. `run` makes so many repetitions and says how long each took.
    fn take<E>(&mut self, effort: Effort, mut run: impl FnMut(u64) -> Result<Duration, E>) -> Result<(), E> {
        thread::sleep(effort.pause);
        if self.at_once == 0 {
            let mut time = run(1)?;
            self.repetitions += 1;
            // The first may have taken memory and loaded code.
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

/// How long one repetition takes, until its results are there.
pub(crate) fn repetition(device: &Device, job: &Job) -> Result<Duration, Failure> {
    burst(device, job, 1)
}

/// How long each of several repetitions takes that wait for each other, and for nothing else.
fn burst(device: &Device, job: &Job, count: u64) -> Result<Duration, Failure> {
    let start = Instant::now();
    for _ in 0..count {
        job.launch()?;
    }
    device.synchronise()?;
    Ok(start.elapsed().div_f64(count as f64))
}

/// Repetitions in a trace.
const TRACED: u64 = 5;

/// How long a GPU is at work for a repetition, by its own clock. What the host takes to give it the work does not count, nor do pauses between kernels.
pub(crate) fn device_time(device: &Device, job: &Job) -> Result<Option<Duration>, Failure> {
    let mut times = vec![];
    for _ in 0..TRACED {
        let Some(trace) = Trace::start() else { return Ok(None) };
        burst(device, job, TRACED)?;
        times.push(trace.device_time().div_f64(TRACED as f64));
    }
    // Nothing is known of work that a library gives the device.
    Ok(median(times).filter(|time| !time.is_zero()))
}

/// Writes what happens when in a few repetitions, whose times count for nothing else: whoever looks at a device slows it down.
pub(crate) fn traced(device: &Device, job: &Job, path: &Path) -> Result<io::Result<()>, Failure> {
    let Some(trace) = Trace::start() else { return Ok(Err(io::Error::other("another trace is being taken"))) };
    burst(device, job, TRACED)?;
    let file = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::File::create(path));
    Ok(file.and_then(|file| trace.finish(&mut io::BufWriter::new(file))))
}

/// The middle one, or the mean of the two in the middle.
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
