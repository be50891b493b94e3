//! Trace of work on the GPU, with a plausibility check of its times: every piece lies between its submission
//! and the end of the wait for it, and has the duration that events report.

use crate::part::{Options, Summary};
use broadloom_cuda::Cuda;
use broadloom_device::trace::{Trace, Value};
use broadloom_device::{Device, Error, Launch, Stream};
use broadloom_diag::Sources;
use broadloom_filetest::Failure;
use std::sync::Arc;

const FILE: &str = "trace.json";
/// Tolerance in microseconds between GPU spans and host spans: half of a round trip.
const SLACK: f64 = 20.0;

const KERNEL: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 data, .param .u32 rounds)
{
    .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, 1;
again:
    mad.lo.u32 %r2, %r2, 3, %r1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra again;
    st.global.u32 [%d1], %r2;
    ret;
}
";

/// Takes, checks and writes the trace.
pub(crate) fn run(_options: &Options) -> Summary {
    let mut summary = Summary::default();
    let Some(trace) = Trace::start() else { return summary };
    let worked = work();
    let mut text = vec![];
    let written = trace.finish(&mut text).and_then(|()| std::fs::write(FILE, &text));
    let outcome = worked.map_err(Failure::from).and_then(|lines| {
        written?;
        summary.lines.extend(lines);
        judge(&String::from_utf8_lossy(&text)).map(|lines| summary.lines.extend(lines))
    });
    match outcome {
        Ok(()) => summary.passed += 1,
        Err(why) => summary.failed.push(("trace".to_owned(), why.0)),
    }
    summary
}

fn work() -> Result<Vec<String>, Error> {
    let cuda = Cuda::new(broadloom_cuda::Options { timing: true, ..broadloom_cuda::Options::default() })?;
    let device = Device::new(cuda.clone());
    let mut sources = Sources::new();
    let id = sources.add("trace.ptx", KERNEL);
    let code = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).map_err(Error::Unsupported)?;
    let spin = device.load(&Arc::new(code))?.kernel("spin")?;
    let data = device.upload(&vec![1u32; 1 << 20])?;
    let other = device.stream()?;
    let (start, end) = (device.event()?, device.event()?);
    let launch = |stream: Stream, rounds: u32| spin.launch(&Launch::linear(4, 64).on(stream), &[(&data).into(), rounds.into()]);
    launch(Stream::default(), 10)?;
    device.synchronise()?;
    start.record(Stream::default())?;
    launch(Stream::default(), 2_000_000)?;
    end.record(Stream::default())?;
    launch(other.id(), 1_000_000)?;
    launch(Stream::default(), 10)?;
    data.read()?;
    device.synchronise()?;
    let took = end.since(&start)?.as_secs_f64() * 1e6;
    let of = cuda.statistics();
    let counted = of.first().map_or(String::new(), |kernel| format!("{} launches, {:?}", kernel.launches, kernel.run_time));
    Ok(vec![format!("the long launch takes {took:.1} µs by events; all launches by the statistics: {counted}")])
}

fn judge(text: &str) -> Result<Vec<String>, Failure> {
    let json: Value = text.parse().map_err(|error| format!("no JSON: {error}"))?;
    let events = json["traceEvents"].as_array().ok_or("no events")?;
    let spans = |host: bool, name: &str| -> Vec<(f64, f64)> {
        let mine = events.iter().filter(|event| event["ph"] == "X" && event["name"] == name && (event["pid"] == 1) == host);
        let times = mine.map(|event| (event["ts"].as_f64().unwrap_or(-1.0), event["dur"].as_f64().unwrap_or(-1.0)));
        let mut times: Vec<(f64, f64)> = times.map(|(start, dur)| (start, start + dur)).collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        times
    };
    let (given, ran) = (spans(true, "launch spin"), spans(false, "spin"));
    let end = spans(true, "wait").last().ok_or("no wait")?.1;
    if given.len() != 4 || ran.len() != 4 {
        return Err(format!("{} launches given, {} run", given.len(), ran.len()).into());
    }
    let mut lines = vec![];
    for (start, stop) in &ran {
        let call = given.iter().filter(|(given, _)| *given <= start + SLACK).count();
        lines.push(format!("spin from {start:.1} to {stop:.1} µs, {call} launches given by then"));
        if call == 0 || *stop > end + SLACK {
            return Err(format!("a launch ran from {start} to {stop}, given {given:?}, waited for until {end}").into());
        }
    }
    Ok(lines)
}
