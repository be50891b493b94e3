//! Activity of the device as lanes of a trace: one for each stream, and one for each thread that runs blocks.

use crate::stream::{Job, Work};
use broadloom_device::activity::{self, Activity};
use broadloom_device::{Stream, trace};
use std::borrow::Cow;
use std::time::Instant;

const DEVICE: &str = "cpu";

/// Returns the name and the notes of a piece of work; `None` for marks, which take no time.
fn described(work: &Work) -> Option<(Cow<'static, str>, Vec<trace::Note>)> {
    match work {
        Work::Launch(grid) => {
            let shapes = vec![("grid", trace::shape(grid.grid)), ("block", trace::shape(grid.block))];
            Some((grid.ready.name.clone().into(), shapes))
        }
        Work::Copy { bytes, .. } => Some(("copy".into(), vec![("bytes", (*bytes).into())])),
        Work::Fill { bytes, .. } => Some(("fill".into(), vec![("bytes", (*bytes).into())])),
        Work::Write { bytes, .. } => Some(("write".into(), vec![("bytes", bytes.len().into())])),
        Work::Call(_) => Some(("host function".into(), vec![])),
        Work::Pending(_) | Work::Mark(_) | Work::Await(_) => None,
    }
}

fn lane(stream: u32) -> String {
    format!("stream {stream}")
}

/// Begins the activity of a thread that runs its share of a piece of work.
#[inline]
pub(crate) fn activity(job: &Job) -> Activity {
    activity::begin(|| match &job.work {
        Work::Launch(grid) => format!("run kernel `{}`", grid.ready.name).into(),
        _ => described(&job.work).map_or(Cow::Borrowed("wait for a stream"), |(name, _)| name),
    })
}

/// Traces a finished piece of work of a stream.
#[cold]
pub(crate) fn finished(job: &Job, started: Instant) {
    if let Some((name, notes)) = described(&job.work) {
        trace::device_span(DEVICE, &lane(job.stream), name, (started, Instant::now()), notes);
    }
}

/// Traces a thread's share of a piece of work.
#[cold]
pub(crate) fn worked(worker: usize, job: &Job, started: Instant) {
    if let Some((name, _)) = described(&job.work) {
        trace::device_span(DEVICE, &format!("core {worker}"), name, (started, Instant::now()), vec![]);
    }
}

/// Copy between the host and the device, done by the calling thread.
pub(crate) struct TracedCopy(Option<(Stream, &'static str, usize, Instant)>);

impl TracedCopy {
    #[inline]
    pub(crate) fn new(stream: Stream, name: &'static str, bytes: usize) -> TracedCopy {
        TracedCopy(trace::is_on().then(|| (stream, name, bytes, Instant::now())))
    }
}

impl Drop for TracedCopy {
    fn drop(&mut self) {
        if let Some((stream, name, bytes, started)) = self.0.take() {
            trace::device_span(DEVICE, &lane(stream.0), name, (started, Instant::now()), vec![("bytes", bytes.into())]);
        }
    }
}
