//! Traces: files of spans for Perfetto and Chrome (`chrome://tracing`; format: "Trace Event Format", events
//! `X` and `M`).
//!
//! A trace has *lanes*: one per active host thread, and for every device one per stream, besides others that
//! the executor adds. Spans of a thread are guards, so they are nested like calls. Spans of a device come
//! with times measured by the device and converted to the host's clock, and do not overlap. A process has at
//! most one trace at a time. **Without a trace, a span costs the test of one flag.**
//!
//! ```
//! use broadloom_device::trace::{Trace, span};
//!
//! let trace = Trace::start().expect("nobody else traces");
//! {
//!     let mut outer = span("plan");
//!     outer.note("nodes", 12);
//!     let _inner = span("fuse");
//! }
//! let mut json = vec![];
//! trace.finish(&mut json)?;
//! assert!(String::from_utf8_lossy(&json).contains(r#""name":"fuse""#));
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::activity::{self, Activity};
pub use serde_json::Value;
use serde_json::{Map, json};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of spans of a trace; further ones are only counted.
const MOST_SPANS: usize = 4 << 20;
/// Number of the host among the processes of a trace; devices follow.
const HOST: u64 = 1;

/// Note of a span: name and value.
pub type Note = (&'static str, Value);

static ON: AtomicBool = AtomicBool::new(false);

/// Span of a lane with its start and end.
#[derive(Debug)]
struct FinishedSpan {
    /// Process and thread in terms of the trace format.
    lane: (u64, u64),
    name: Cow<'static, str>,
    start: Instant,
    end: Instant,
    notes: Vec<Note>,
}

/// Span with its start and end in nanoseconds since the start of the trace.
type TimedSpan = (u64, u64, FinishedSpan);

#[derive(Debug)]
struct TraceState {
    number: u64,
    start: Instant,
    spans: Vec<FinishedSpan>,
    left_out: u64,
    /// Names of the host's threads.
    threads: Vec<String>,
    /// Devices in order of appearance, each with its lanes.
    devices: Vec<(String, Vec<String>)>,
}

fn state() -> MutexGuard<'static, Option<TraceState>> {
    static STATE: Mutex<Option<TraceState>> = Mutex::new(None);
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Trace for which this thread has a lane, and the lane.
    static LANE: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Tests if a trace is active.
#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Active trace. If it is dropped unfinished, it is discarded.
#[derive(Debug)]
pub struct Trace {
    number: u64,
}

impl Trace {
    /// Starts a trace; `None` if one is already active.
    pub fn start() -> Option<Trace> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut state = state();
        if state.is_some() {
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
        let start = Instant::now();
        *state = Some(TraceState { number, start, spans: vec![], left_out: 0, threads: vec![], devices: vec![] });
        ON.store(true, Ordering::Relaxed);
        Some(Trace { number })
    }

    /// Returns the total time of all device spans so far.
    pub fn device_time(&self) -> Duration {
        let state = state();
        let own = state.as_ref().filter(|state| state.number == self.number);
        let spans = own.into_iter().flat_map(|state| &state.spans).filter(|span| span.lane.0 != HOST);
        spans.map(|span| span.end.saturating_duration_since(span.start)).sum()
    }

    /// Ends the trace and writes it.
    pub fn finish(self, out: &mut dyn Write) -> io::Result<()> {
        match self.take() {
            Some(state) => state.write(out),
            None => Ok(()),
        }
    }

    fn take(&self) -> Option<TraceState> {
        let mut state = state();
        if state.as_ref().is_some_and(|state| state.number == self.number) {
            ON.store(false, Ordering::Relaxed);
            state.take()
        } else {
            None
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Span of the creating thread, which ends on drop.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct Span {
    open: Option<OpenSpan>,
    _activity: Activity,
}

/// Span that has not ended.
#[derive(Debug)]
struct OpenSpan {
    name: Cow<'static, str>,
    start: Instant,
    notes: Vec<Note>,
}

/// Starts a span of this thread.
#[inline]
pub fn span(name: impl Into<Cow<'static, str>>) -> Span {
    span_with(|| name)
}

/// Starts a span of this thread with a computed name.
#[inline]
pub fn span_with<N: Into<Cow<'static, str>>>(name: impl FnOnce() -> N) -> Span {
    if !is_on() {
        return Span { open: None, _activity: activity::begin(name) };
    }
    let name = name().into();
    let noted = activity::begin(|| name.clone());
    Span { open: Some(OpenSpan { name, start: Instant::now(), notes: vec![] }), _activity: noted }
}

impl Span {
    /// Adds a note.
    #[inline]
    pub fn note(&mut self, what: &'static str, value: impl Into<Value>) {
        if let Some(open) = &mut self.open {
            open.notes.push((what, value.into()));
        }
    }

    /// Adds a note with a computed value.
    #[inline]
    pub fn note_with<V: Into<Value>>(&mut self, what: &'static str, value: impl FnOnce() -> V) {
        if self.open.is_some() {
            self.note(what, value());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(OpenSpan { name, start, notes }) = self.open.take() {
            finish_span(name, start, notes);
        }
    }
}

#[cold]
fn finish_span(name: Cow<'static, str>, start: Instant, notes: Vec<Note>) {
    let end = Instant::now();
    let mut state = state();
    let Some(state) = state.as_mut() else { return };
    let lane = state.lane();
    state.push(FinishedSpan { lane: (HOST, lane), name, start, end, notes });
}

/// Lane of a thread, for another thread that works for it while it waits.
#[derive(Clone, Copy, Debug)]
pub struct Lane((u64, u64));

impl Lane {
    /// Returns the lane of this thread.
    pub fn current() -> Lane {
        let lane = if is_on() { state().as_mut().map(TraceState::lane) } else { None };
        Lane(lane.map_or((0, 0), |_| LANE.get()))
    }

    /// Makes it the lane of this thread, if it exists.
    pub fn enter(self) {
        if self.0.0 != 0 {
            LANE.set(self.0);
        }
    }
}

/// Adds a span of a device: its lane, name and times by the host's clock. Spans of one lane do not overlap.
pub fn device_span(device: &str, lane: &str, name: impl Into<Cow<'static, str>>, times: (Instant, Instant), notes: Vec<Note>) {
    let (start, end) = times;
    let mut state = state();
    let Some(state) = state.as_mut() else { return };
    let position = state.devices.iter().position(|(known, _)| known == device).unwrap_or_else(|| {
        state.devices.push((device.to_owned(), vec![]));
        state.devices.len() - 1
    });
    let lanes = &mut state.devices[position].1;
    let number = lanes.iter().position(|known| known == lane).unwrap_or_else(|| {
        lanes.push(lane.to_owned());
        lanes.len() - 1
    });
    state.push(FinishedSpan { lane: (HOST + 1 + position as u64, number as u64), name: name.into(), start, end, notes });
}

/// Formats a shape for notes.
pub fn shape([x, y, z]: [u32; 3]) -> Value {
    json!([x, y, z])
}

impl TraceState {
    /// Returns the lane of this thread and creates it if needed.
    fn lane(&mut self) -> u64 {
        let (number, lane) = LANE.get();
        if number == self.number {
            return lane;
        }
        let lane = self.threads.len() as u64;
        let name = std::thread::current().name().map_or_else(|| format!("thread {lane}"), str::to_owned);
        self.threads.push(name);
        LANE.set((self.number, lane));
        lane
    }

    fn push(&mut self, span: FinishedSpan) {
        if self.spans.len() < MOST_SPANS {
            self.spans.push(span);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns the nanoseconds since the trace started.
    fn since_start(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let spans = std::mem::take(&mut self.spans);
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let mut first = true;
        let mut put = |event: &Value| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            write!(out, "{comma}\n{event}")
        };
        for event in self.names() {
            put(&event)?;
        }
        // Lanes in order, each sorted by time with outer spans before inner ones.
        let mut lanes: BTreeMap<(u64, u64), Vec<TimedSpan>> = BTreeMap::new();
        for span in spans {
            let (start, end) = (self.since_start(span.start), self.since_start(span.end));
            lanes.entry(span.lane).or_default().push((start, end.max(start), span));
        }
        for (lane, mut spans) in lanes {
            spans.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
            let mut last = 0;
            for (mut start, mut end, span) in spans {
                if lane.0 != HOST {
                    // Clocks agree to a fraction of a microsecond. Spans of a lane are shifted so that they
                    // do not overlap.
                    start = start.max(last);
                    end = end.max(start);
                    last = end;
                }
                let notes: Map<String, Value> = span.notes.into_iter().map(|(what, value)| (what.to_owned(), value)).collect();
                put(&json!({
                    "ph": "X", "name": span.name, "pid": lane.0, "tid": lane.1,
                    "ts": start as f64 / 1e3, "dur": (end - start) as f64 / 1e3, "args": notes,
                }))?;
            }
        }
        if self.left_out > 0 {
            let (left_out, ts) = (self.left_out, self.since_start(Instant::now()) as f64 / 1e3);
            put(&json!({
                "ph": "i", "s": "g", "name": "spans left out", "pid": HOST, "tid": 0, "ts": ts, "args": { "count": left_out },
            }))?;
        }
        writeln!(out, "\n]}}")?;
        out.flush()
    }

    /// Returns the events that name processes and lanes, in display order.
    fn names(&self) -> Vec<Value> {
        let named = |kind: &str, pid: u64, tid: u64, args: Value| json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args });
        let host = ("host".to_owned(), self.threads.clone());
        let mut events = vec![];
        for (pid, (process, lanes)) in (HOST..).zip(std::iter::once(&host).chain(&self.devices)) {
            events.push(named("process_name", pid, 0, json!({ "name": process })));
            events.push(named("process_sort_index", pid, 0, json!({ "sort_index": pid })));
            for (tid, lane) in (0..).zip(lanes) {
                events.push(named("thread_name", pid, tid, json!({ "name": lane })));
                events.push(named("thread_sort_index", pid, tid, json!({ "sort_index": tid })));
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks the trace, of which a process has one.
    fn alone() -> MutexGuard<'static, ()> {
        static ONE: Mutex<()> = Mutex::new(());
        ONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(trace: Trace) -> Vec<Value> {
        let mut text = vec![];
        trace.finish(&mut text).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        json["traceEvents"].as_array().unwrap().clone()
    }

    /// Returns start and end in nanoseconds, which the file's microseconds represent exactly. Their
    /// floating-point sums would not.
    fn times(event: &Value) -> (i64, i64) {
        let nanoseconds = |what: &str| (event[what].as_f64().unwrap() * 1e3).round() as i64;
        let start = nanoseconds("ts");
        (start, start + nanoseconds("dur"))
    }

    #[test]
    fn spans_of_threads_lie_inside_of_each_other() {
        let _one = alone();
        drop(span("nobody looks"));
        let trace = Trace::start().unwrap();
        assert!(Trace::start().is_none());
        let work = || {
            let mut outer = span("outer \"quoted\"\n");
            outer.note("bytes", 7u64);
            for _ in 0..3 {
                let _inner = span_with(|| "inner".to_owned());
                std::thread::sleep(Duration::from_micros(50));
            }
        };
        work();
        std::thread::Builder::new().name("helper".into()).spawn(work).unwrap().join().unwrap();
        let events = events(trace);
        assert!(!is_on());
        let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let outer: Vec<&&Value> = spans.iter().filter(|event| event["name"] == "outer \"quoted\"\n").collect();
        assert_eq!((spans.len(), outer.len()), (8, 2));
        for outer in outer {
            assert_eq!(outer["args"]["bytes"], 7);
            let (start, end) = times(outer);
            let inner = spans.iter().filter(|event| event["name"] == "inner" && event["tid"] == outer["tid"]);
            let mut last = start;
            for (from, to) in inner.map(|event| times(event)) {
                assert!(last <= from && from < to && to <= end, "{start} {last} {from} {to} {end}");
                last = to;
            }
        }
        let names: Vec<&str> = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
        assert!(names.contains(&"host") && names.contains(&"helper"), "{names:?}");
    }

    #[test]
    fn lanes_of_devices_do_not_overlap() {
        let _one = alone();
        let trace = Trace::start().unwrap();
        let now = Instant::now();
        let at = |from: u64, to: u64| (now + Duration::from_nanos(from), now + Duration::from_nanos(to));
        device_span("cuda:0", "stream 1", "second", at(1900, 3000), vec![("grid", shape([4, 1, 1]))]);
        device_span("cuda:0", "stream 1", "first", at(1000, 2000), vec![]);
        device_span("cuda:0", "stream 0", "other", at(0, 5000), vec![]);
        device_span("cpu", "stream 0", "elsewhere", (now - Duration::from_secs(100), now), vec![]);
        let events = events(trace);
        let find = |name: &str| events.iter().find(|event| event["ph"] == "X" && event["name"] == name).unwrap();
        let (first, second) = (find("first"), find("second"));
        assert!(times(first).1 <= times(second).0 && times(second).0 < times(second).1);
        assert_eq!((&first["pid"], &first["tid"]), (&second["pid"], &second["tid"]));
        assert_ne!(find("other")["tid"], first["tid"]);
        assert_ne!(find("elsewhere")["pid"], first["pid"]);
        assert_eq!(second["args"]["grid"], json!([4, 1, 1]));
        assert!(times(find("elsewhere")).0 >= 0);
        // Spans of an unfinished trace are discarded.
        let trace = Trace::start().unwrap();
        drop(span("left"));
        drop(trace);
        assert!(!is_on());
    }
}
