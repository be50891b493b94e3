//! How times are taken: ours and the peer's by turns within one run, and the median of each counts.
//!
//! A GPU is given many repetitions at once, as loops of programs do: what counts is how long each takes when the next waits behind it, not what it takes to
//! wake an idle device and to hear from it.

use crate::error::Failure;
use crate::job::Job;
use crate::peer::Peer;
use broadloom::device::{Device, MachineKind};
use std::thread;
use std::time::{Duration, Instant};

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
    /// How long the repetitions take that a GPU is given at once, and how many they are at most.
    const BURST: Duration = Duration::from_millis(10);
    const MOST_AT_ONCE: u64 = 100;
}

/// What was measured.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    /// Our median.
    pub(crate) ours: Duration,
    /// The peer's median.
    pub(crate) peer: Option<Duration>,
    /// How often each was run, warming up included.
    pub(crate) repetitions: u64,
    /// Why the peer gave up.
    pub(crate) without_peer: Option<String>,
}

/// Runs a job and its peer by turns. The first repetition of each only warms up.
pub(crate) fn by_turns(
    device: &Device,
    job: &Job,
    mut peer: Option<&mut Peer>,
    effort: Effort,
) -> std::result::Result<Times, Failure> {
    let (mut ours, mut theirs) = (vec![], vec![]);
    let mut without_peer = None;
    let mut repetitions = 0;
    let mut at_once = 1;
    loop {
        thread::sleep(effort.pause);
        let time = burst(device, job, at_once)?;
        repetitions += at_once;
        let peer_time = match peer.as_deref_mut().filter(|_| without_peer.is_none()) {
            Some(peer) => {
                thread::sleep(effort.pause);
                peer.run().map_err(|reason| without_peer = Some(reason)).ok()
            }
            None => None,
        };
        if repetitions > 1 || effort.time.is_zero() {
            ours.push(time);
            theirs.extend(peer_time);
        } else if device.machine().kind == MachineKind::Cuda {
            let many = Effort::BURST.as_nanos() / time.as_nanos().max(1);
            at_once = u64::try_from(many).unwrap_or(u64::MAX).clamp(1, Effort::MOST_AT_ONCE);
        }
        let is_enough = |times: &[Duration]| {
            times.len() >= Effort::MOST || times.len() >= effort.repetitions && times.iter().sum::<Duration>() >= effort.time
        };
        if is_enough(&ours) && (without_peer.is_some() || peer.is_none() || is_enough(&theirs)) {
            break;
        }
    }
    let peer = if without_peer.is_some() { None } else { median(theirs) };
    Ok(Times { ours: median(ours).unwrap_or_default(), peer, repetitions, without_peer })
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
