//! Memory use of a grid: no more than that of the blocks that run at the same time, for any number of blocks.
//!
//! It is a program of its own because the peak is that of the process.

use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Argument, Device, Launch};
use broadloom_diag::Sources;
use libtest_mimic::{Arguments, Completion, Trial};
use std::fs;
use std::sync::Arc;

/// Kernels in which the thread with a given number writes it, with or without a barrier before.
const TEXT: &str = ".version 8.0 .target sm_80 .address_size 64
.visible .entry alone(.param .u64 out, .param .u32 wanted)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d;
    ld.param.u64 %d, [out]; ld.param.u32 %r1, [wanted];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.eq.u32 %p, %r5, %r1; @%p st.global.u32 [%d], %r5; ret;
}
.visible .entry together(.param .u64 out, .param .u32 wanted)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d;
    ld.param.u64 %d, [out]; ld.param.u32 %r1, [wanted];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;
    bar.sync 0; setp.eq.u32 %p, %r5, %r1; @%p st.global.u32 [%d], %r5; ret;
}";

/// Returns the peak memory of this process in bytes; `None` if the host does not report it.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Runs the only trial of its process: other tests here would be counted.
fn main() {
    let trial = Trial::ignorable_test("a_billion_threads_take_no_memory", || match peak() {
        Some(_) => {
            a_billion_threads_take_no_memory();
            Ok(Completion::Completed)
        }
        None => Ok(Completion::ignored_with("skipped: /proc/self/status does not tell the peak memory")),
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}

fn a_billion_threads_take_no_memory() {
    let options = Options { threads: 2, cache: CacheFolder::Nowhere, memory_bytes: 1 << 30, ..Options::default() };
    let device = Device::new(Cpu::new(options).unwrap());
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", TEXT);
    let module = Arc::new(broadloom_ptx::verify(broadloom_ptx::parse(&sources, id).unwrap()).unwrap());
    let loaded = device.load(&module).unwrap();
    let out = device.zeros::<u32>(1).unwrap();
    for (name, blocks, threads) in [("alone", 1 << 20, 1024), ("together", 1 << 14, 256)] {
        let kernel = loaded.kernel(name).unwrap();
        let find = |blocks: u32| {
            let wanted = blocks * threads - 3;
            kernel.launch(&Launch::linear(blocks, threads), &[Argument::from(&out), Argument::from(wanted)]).unwrap();
            assert_eq!(out.read().unwrap(), [wanted]);
        };
        // Code, stacks and workers exist after the first blocks.
        find(64);
        let before = peak();
        find(blocks);
        let (before, after) = (before.unwrap(), peak().unwrap());
        // The system counts pages with a delay, so it may be less.
        let more = after.saturating_sub(before);
        assert!(more < 4 << 20, "{name}: {more} bytes more for {blocks} blocks than for 64");
    }
}
