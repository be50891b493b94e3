//! Measurements of a GPU: launches, memory, copies, sequences. Times to be compared are taken alternately.

use crate::part::{Options, Summary};
use broadloom_cuda::Cuda;
use broadloom_device::{CacheFolder, Device, Error, Launch, Stream};
use broadloom_diag::Sources;
use broadloom_ptx::{parse, verify};
use std::sync::Arc;
use std::time::Instant;

const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry empty() { ret; }
.visible .entry small(.param .u64 data)
{
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    ld.param.u64 %d1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2;
    ld.global.u32 %r2, [%d1];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%d1], %r2;
    ret;
}
";

/// Takes all measurements.
pub(crate) fn run(_options: &Options) -> Summary {
    let mut summary = Summary::default();
    if let Err(error) = take(&mut summary) {
        summary.failed.push(("figures".to_owned(), error.to_string()));
    }
    summary
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn take(summary: &mut Summary) -> Result<(), Error> {
    let start = Instant::now();
    let folder = std::env::temp_dir().join(format!("broadloom-figures-{}", std::process::id()));
    let options = broadloom_cuda::Options { cache: CacheFolder::At(folder.clone()), ..broadloom_cuda::Options::default() };
    let cuda = Cuda::new(options.clone())?;
    let opened = start.elapsed().as_secs_f64();
    let device = Device::new(cuda.clone());
    let mut sources = Sources::new();
    let id = sources.add("figures.ptx", KERNELS);
    let code = Arc::new(parse(&sources, id).and_then(verify).map_err(Error::Unsupported)?);
    let start = Instant::now();
    let module = device.load(&code)?;
    let loaded = start.elapsed().as_secs_f64();
    let mut line = |text: String| summary.lines.push(text);
    let again = Device::new(Cuda::new(options)?);
    let start = Instant::now();
    again.load(&code)?;
    let found = start.elapsed().as_secs_f64();
    let _ = std::fs::remove_dir_all(&folder);
    line(format!(
        "open: {opened:.3} s; two small kernels compiled in {:.2} ms, from the cache in {:.2} ms",
        loaded * 1e3,
        found * 1e3
    ));

    // Empty launches, in batches that fit the driver's queue; host time only.
    let (empty, shape) = (module.kernel("empty")?, Launch::linear(1, 32));
    let (mut ours, mut bare) = (vec![], vec![]);
    for round in 0..60 {
        device.synchronise()?;
        let start = Instant::now();
        for _ in 0..200 {
            empty.launch(&shape, &[])?;
        }
        let time = start.elapsed().as_secs_f64() / 200.0;
        device.synchronise()?;
        let other = cuda.bare_launch_time(200).unwrap_or(f64::NAN);
        if round >= 10 {
            ours.push(time * 1e6);
            bare.push(other * 1e6);
        }
    }
    let (ours, bare) = (median(ours), median(bare));
    line(format!("empty launch: {ours:.2} µs, bare cuLaunchKernel {bare:.2} µs, ratio {:.2}", ours / bare));
    let mut waits = vec![];
    for _ in 0..200 {
        let start = Instant::now();
        empty.launch(&shape, &[])?;
        device.backend().synchronise_stream(Stream::default())?;
        waits.push(start.elapsed().as_secs_f64() * 1e6);
    }
    line(format!("empty launch and wait: {:.2} µs", median(waits)));

    // Pool allocations.
    for bytes in [1 << 10, 1 << 20, 64 << 20] {
        drop(device.allocate::<u8>(bytes)?);
        let mut times = vec![];
        for _ in 0..20 {
            let start = Instant::now();
            for _ in 0..1000 {
                drop(device.allocate::<u8>(bytes)?);
            }
            times.push(start.elapsed().as_secs_f64() / 1000.0 * 1e6);
        }
        line(format!("pool: {} KiB allocated and freed in {:.3} µs", bytes >> 10, median(times)));
    }

    // Copies, timed by events.
    let bytes = 512 << 20;
    let (before, after) = (device.event()?, device.event()?);
    let timed = |act: &mut dyn FnMut() -> Result<(), Error>| -> Result<f64, Error> {
        let mut times = vec![];
        for _ in 0..12 {
            before.record(Stream::default())?;
            act()?;
            after.record(Stream::default())?;
            times.push(after.since(&before)?.as_secs_f64());
        }
        Ok(median(times))
    };
    let mut host = device.host_buffer::<u8>(bytes)?;
    host.values()?.fill(1);
    let data = device.allocate::<u8>(bytes)?;
    let up = timed(&mut || host.upload(Stream::default(), &data))?;
    let down = timed(&mut || host.download(Stream::default(), &data))?;
    let rate = |bytes: usize, seconds: f64| bytes as f64 / seconds / 1e9;
    line(format!("pinned copies: {:.1} GB/s to the device, {:.1} GB/s back", rate(bytes, up), rate(bytes, down)));
    drop((host, data));
    let large = 4usize << 30;
    let (from, to) = (device.zeros::<u8>(large)?, device.zeros::<u8>(large)?);
    let copied = timed(&mut || to.copy_from(Stream::default(), &from))?;
    line(format!("device copy: {:.0} GB/s read and written", rate(2 * large, copied)));
    drop((from, to));
    // Copy by one host thread, for comparison.
    let values = vec![1u8; 256 << 20];
    let mut other = vec![0u8; values.len()];
    let mut plain = vec![];
    for _ in 0..5 {
        let start = Instant::now();
        other.copy_from_slice(&values);
        plain.push(start.elapsed().as_secs_f64());
    }
    drop(other);
    let plain = rate(values.len(), median(plain));
    let buffer = device.allocate::<u8>(values.len())?;
    let mut back = vec![0u8; values.len()];
    let (mut writes, mut reads) = (vec![], vec![]);
    for _ in 0..5 {
        let start = Instant::now();
        buffer.write(&values)?;
        device.synchronise()?;
        writes.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        buffer.read_into(Stream::default(), &mut back)?;
        reads.push(start.elapsed().as_secs_f64());
    }
    let (written, read) = (rate(values.len(), median(writes)), rate(values.len(), median(reads)));
    line(format!(
        "ordinary memory: {written:.1} GB/s to the device, {read:.1} GB/s back; one thread of the host copies {plain:.1} GB/s"
    ));

    // Twenty small kernels as one sequence.
    let words = device.zeros::<u32>(256)?;
    let small = module.kernel("small")?;
    let mut recorder = device.recorder();
    recorder.keep(&words);
    for _ in 0..20 {
        recorder.launch(&small, &Launch::linear(1, 256), &[(&words).into()])?;
    }
    let recording = recorder.finish()?;
    recording.replay(Stream::default())?;
    let replays = 100;
    let sequence = timed(&mut || (0..replays).try_for_each(|_| recording.replay(Stream::default())))?;
    let each = sequence / f64::from(replays) / 20.0;
    line(format!("sequence of 20 small kernels: {:.2} µs per kernel", each * 1e6));
    let apart = timed(&mut || (0..20 * 10).try_for_each(|_| small.launch(&Launch::linear(1, 256), &[(&words).into()])))?;
    line(format!("the same launched one by one: {:.2} µs per kernel", apart / 200.0 * 1e6));
    let expected = 20 * (1 + 12 * replays as u32) + 200 * 12;
    let found = words.read()?;
    if found.iter().all(|value| *value == expected) {
        summary.passed += 1;
    } else {
        summary.failed.push(("sequence".to_owned(), format!("{} instead of {expected}", found[0])));
    }
    let start = Instant::now();
    let machine = device.measured_machine();
    summary.lines.push(format!(
        "machine: bandwidth {:.0} GB/s, launch cost {:.2} µs, measured in {:.2} s",
        machine.bandwidth.unwrap_or(f64::NAN) / 1e9,
        machine.launch_cost.unwrap_or(f64::NAN) * 1e6,
        start.elapsed().as_secs_f64(),
    ));
    Ok(())
}
