//! The CPU as a device: real kernels through the interface that front ends use.

use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Argument, Backend, Device, Error, FaultKind, Launch, Stream};
use broadloom_diag::Sources;
use broadloom_ptx::Verified;
use std::sync::{Arc, Mutex};

fn module(text: &str) -> Arc<Verified> {
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", format!(".version 8.0 .target sm_80 .address_size 64\n{text}"));
    Arc::new(broadloom_ptx::verify(broadloom_ptx::parse(&sources, id).unwrap()).unwrap())
}

fn options() -> Options {
    Options { threads: 2, cache: CacheFolder::Nowhere, memory_bytes: 1 << 30, ..Options::default() }
}

const ADD: &str = "
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd4, %r5, 4;
    add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;
    ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd7], %f3;
DONE:
    ret;
}";

#[test]
fn vectors_are_added() {
    let cpu = Cpu::new(options()).unwrap();
    let device = Device::new(cpu.clone());
    let n = 100_003usize;
    let a = device.upload(&(0..n).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let b = device.upload(&(0..n).map(|i| 0.5 * i as f32).collect::<Vec<_>>()).unwrap();
    let c = device.zeros::<f32>(n).unwrap();
    let kernel = device.load(&module(ADD)).unwrap().kernel("add").unwrap();
    for _ in 0..2 {
        let arguments = [Argument::from(&a), Argument::from(&b), Argument::from(&c), Argument::from(n as u32)];
        kernel.launch(&Launch::linear((n as u32).div_ceil(256), 256), &arguments).unwrap();
    }
    let sums = c.read().unwrap();
    assert!(sums.iter().enumerate().all(|(i, sum)| *sum == 1.5 * i as f32));
    let statistics = cpu.statistics();
    assert_eq!(statistics.len(), 1);
    assert_eq!((statistics[0].kernel.as_str(), statistics[0].launches, statistics[0].from_cache), ("add", 2, false));
    assert!(statistics[0].compile_time.as_nanos() > 0 && statistics[0].run_time.as_nanos() > 0);
}

/// The error names the block and the warp of a stray access, for any of those that one call runs.
#[test]
fn a_stray_access_names_block_and_warp() {
    let text = "
.visible .entry k(.param .u64 p) {
    .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d<3>;
    ld.param.u64 %d0, [p];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r2, %r1, 128, %r0;
    setp.lt.u32 %p, %r2, 448;
    @%p bra DONE;
    bar.sync 0;
    mul.wide.u32 %d1, %r2, 4; add.s64 %d2, %d0, %d1;
    st.global.u32 [%d2+0x40000000], %r0;
DONE:
    ret;
}";
    let device = Device::new(Cpu::new(Options { threads: 1, ..options() }).unwrap());
    let out = device.zeros::<u32>(4).unwrap();
    let kernel = device.load(&module(text)).unwrap().kernel("k").unwrap();
    let outcome = kernel.launch(&Launch::linear(4, 128), &[(&out).into()]).and_then(|()| device.synchronise());
    let Err(Error::Fault(fault)) = outcome else { panic!("a fault was expected: {outcome:?}") };
    assert_eq!((fault.kind, fault.block), (FaultKind::OutOfBounds, Some([3, 0, 0])));
    // Threads 448 and following are those of the third block from its third warp on.
    assert!(fault.message.contains("(warp 2)"), "{}", fault.message);
}

/// With slack around buffers, a kernel can leave them by that much. Without slack, that is a fault.
#[test]
fn a_kernel_may_leave_its_buffer_by_the_slack() {
    let text = "
.visible .entry k(.param .u64 p, .param .s64 at) {
    .reg .b32 %r0; .reg .b64 %d<2>;
    ld.param.u64 %d0, [p]; ld.param.s64 %d1, [at];
    add.s64 %d0, %d0, %d1;
    ld.global.u32 %r0, [%d0]; add.u32 %r0, %r0, 1; st.global.u32 [%d0], %r0;
    ret;
}";
    const BYTES: i64 = 4 << 20;
    for slack in [0, 2 << 20] {
        let device = Device::new(Cpu::new(Options { threads: 1, slack_bytes: slack, ..options() }).unwrap());
        let buffer = device.zeros::<u32>(BYTES as usize / 4).unwrap();
        let kernel = device.load(&module(text)).unwrap().kernel("k").unwrap();
        for at in [-8192, BYTES + 8192] {
            let outcome =
                kernel.launch(&Launch::linear(1, 1), &[(&buffer).into(), at.into()]).and_then(|()| device.synchronise());
            match (slack, outcome) {
                (0, Err(Error::Fault(fault))) => assert_eq!(fault.kind, FaultKind::OutOfBounds),
                (0, outcome) => panic!("a fault was expected: {outcome:?}"),
                (_, outcome) => outcome.unwrap(),
            }
        }
        assert!(buffer.read().unwrap().iter().all(|value| *value == 0));
    }
}

#[test]
fn rows_of_threads_that_nothing_tells_apart_run_as_one() {
    let text = "
.visible .entry adds(.param .u64 p) {
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    ld.param.u64 %d0, [p];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
    ld.global.u32 %r1, [%d2]; add.u32 %r1, %r1, 1; st.global.u32 [%d2], %r1;
    ret;
}
.visible .entry counts(.param .u64 p) {
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    ld.param.u64 %d0, [p];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
    red.global.add.u32 [%d2], 1;
    ret;
}
.visible .entry rows(.param .u64 p) {
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    ld.param.u64 %d0, [p];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mad.lo.u32 %r0, %r1, 32, %r0;
    mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r0;
    ret;
}";
    let device = Device::new(Cpu::new(options()).unwrap());
    let module = device.load(&module(text)).unwrap();
    let run = |name: &str, block: [u32; 3]| {
        let out = device.zeros::<u32>(256).unwrap();
        module.kernel(name).unwrap().launch(&Launch::new([1, 1, 1], block), &[(&out).into()]).unwrap();
        out.read().unwrap()
    };
    let firsts = |count: usize, value: u32| [vec![value; count], vec![0; 256 - count]].concat();
    assert_eq!(run("adds", [32, 8, 1]), firsts(32, 1), "rows add to what all of them read");
    assert_eq!(run("counts", [32, 8, 1]), firsts(32, 8), "every row counts");
    assert_eq!(run("rows", [32, 8, 1]), (0..256).collect::<Vec<u32>>());
    // Warps that are not rows of the block are left unchanged: no thread is missing.
    assert!(run("adds", [16, 8, 1])[..16].iter().all(|value| *value >= 1));
}

#[test]
fn all_warps_have_read_before_one_writes_behind_the_loop() {
    let kernel = |name: &str, first: &str| {
        format!(
            ".visible .entry {name}(.param .u64 p, .param .u32 n) {{
    .reg .pred %p, %q; .reg .b32 %r<6>; .reg .b64 %d<3>; .shared .align 4 .u32 word;
    ld.param.u64 %d0, [p]; ld.param.u32 %r4, [n];
    mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 0;
    {first}
    @%p st.shared.u32 [word], 1;
    bar.sync 0;
    mov.u32 %r1, 0; mov.u32 %r2, 0;
AGAIN:
    ld.shared.u32 %r3, [word]; add.u32 %r1, %r1, %r3;
    add.u32 %r2, %r2, 1; setp.lt.u32 %q, %r2, %r4; @%q bra AGAIN;
    @%p st.shared.u32 [word], 100;
    mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1; st.global.u32 [%d2], %r1;
    ret;
}}"
        )
    };
    // Two barriers, one of them with a count, make each warp a separate fiber.
    let text = kernel("block", "") + &kernel("warps", "bar.sync 1, 128;");
    let device = Device::new(Cpu::new(options()).unwrap());
    let module = device.load(&module(&text)).unwrap();
    for name in ["block", "warps"] {
        let out = device.zeros::<u32>(128).unwrap();
        module.kernel(name).unwrap().launch(&Launch::linear(1, 128), &[(&out).into(), 5u32.into()]).unwrap();
        assert_eq!(out.read().unwrap(), vec![5; 128], "{name}");
    }
}

#[test]
fn kernels_print_allocate_and_assert() {
    let text = r#"
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 format[12] = {116, 32, 37, 100, 32, 37, 46, 49, 102, 10, 0};
.global .align 1 .b8 message[4] = {97, 61, 98, 0};
.global .align 1 .b8 file[5] = {107, 46, 99, 117, 0};
.visible .entry print()
{
    .local .align 8 .b8 args[16];
    .reg .b32 %r<4>; .reg .b64 %rd<8>; .reg .f64 %fd<2>;
    mov.u64 %rd1, args; cvta.local.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x; st.local.u32 [args], %r1;
    cvt.rn.f64.u32 %fd1, %r1; st.local.f64 [args+8], %fd1;
    mov.u64 %rd3, format; cvta.global.u64 %rd4, %rd3;
    { .param .b64 p0; .param .b64 p1; .param .b32 q;
      st.param.b64 [p0], %rd4; st.param.b64 [p1], %rd2;
      call.uni (q), vprintf, (p0, p1); ld.param.b32 %r2, [q]; }
    ret;
}
.visible .entry heap(.param .u64 out)
{
    .reg .b64 %rd<8>; .reg .b32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, 64;
    { .param .b64 p0; .param .b64 q; st.param.b64 [p0], %rd2; call.uni (q), malloc, (p0); ld.param.b64 %rd3, [q]; }
    mov.u32 %r1, 77; st.u32 [%rd3+60], %r1; ld.u32 %r2, [%rd3+60];
    st.global.u32 [%rd1], %r2;
    { .param .b64 p0; st.param.b64 [p0], %rd3; call.uni free, (p0); }
    { .param .b64 p0; st.param.b64 [p0], %rd3; call.uni free, (p0); }
    ret;
}
.visible .entry assertion()
{
    .reg .b64 %rd<8>; .reg .b32 %r<4>;
    mov.u64 %rd1, message; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, file; cvta.global.u64 %rd2, %rd2;
    mov.u32 %r1, 42; mov.u64 %rd3, 1;
    { .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
      st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd2; st.param.b32 [p2], %r1; st.param.b64 [p3], %rd2; st.param.b64 [p4], %rd3;
      call.uni __assertfail, (p0, p1, p2, p3, p4); }
    ret;
}"#;
    let printed = Arc::new(Mutex::new(vec![]));
    let sink = printed.clone();
    let output: broadloom_cpu::Output =
        Arc::new(move |text: &[u8]| sink.lock().unwrap().push(String::from_utf8_lossy(text).into_owned()));
    let device = Device::new(Cpu::new(Options { output, ..options() }).unwrap());
    let module = device.load(&module(text)).unwrap();
    module.kernel("print").unwrap().launch(&Launch::linear(1, 3), &[]).unwrap();
    device.synchronise().unwrap();
    let mut lines = printed.lock().unwrap().clone();
    lines.sort();
    assert_eq!(lines, ["t 0 0.0\n", "t 1 1.0\n", "t 2 2.0\n"]);
    let out = device.zeros::<u32>(1).unwrap();
    module.kernel("heap").unwrap().launch(&Launch::linear(1, 1), &[Argument::from(&out)]).unwrap();
    let error = device.synchronise().unwrap_err();
    assert!(
        matches!(&error, Error::Fault(fault) if fault.kind == FaultKind::BadFree && fault.message.ends_with("was freed before")),
        "{error}"
    );
    assert_eq!(out.read().unwrap(), [77]);
    module.kernel("assertion").unwrap().launch(&Launch::linear(2, 1), &[]).unwrap();
    let error = device.synchronise().unwrap_err().to_string();
    assert!(error.starts_with("kernel `assertion`: k.cu:42: k.cu: assertion `a=b` failed\n  in block ("), "{error}");
}

/// A function of the host sees the results of earlier work and delays later work. One that panics delays
/// nothing.
#[test]
fn functions_of_the_host_are_called_in_stream_order() {
    let cpu = Cpu::new(options()).unwrap();
    let device = Device::new(cpu.clone());
    let stream = cpu.create_stream().unwrap();
    let cell = device.zeros::<u8>(1 << 20).unwrap();
    device.synchronise().unwrap();
    let (seen, release) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    cpu.fill(stream, cell.address(), 7, 1 << 20).unwrap();
    cpu.call(stream, Box::new(move || seen.send(wait.recv()).unwrap())).unwrap();
    cpu.call(stream, Box::new(|| std::panic::resume_unwind(Box::new(())))).unwrap();
    let behind = cpu.create_event().unwrap();
    cpu.record_event(behind, stream).unwrap();
    assert!(!cpu.query_event(behind).unwrap() && !cpu.query_stream(stream).unwrap(), "the function has not returned");
    go.send(()).unwrap();
    cpu.synchronise_stream(stream).unwrap();
    assert!(cpu.query_stream(stream).unwrap() && cpu.query_stream(Stream(99)).is_err());
    assert!(release.recv().unwrap().is_ok() && cpu.query_event(behind).unwrap());
    assert_eq!(cell.read().unwrap(), [7; 1 << 20]);
    assert!(matches!(cpu.call(Stream(99), Box::new(|| {})), Err(Error::UnknownStream(99))));
}

/// Memory that is freed while a stream is busy can be reused by later work of that stream, and by nothing
/// else.
#[test]
fn work_goes_on_in_the_memory_of_what_came_before_it() {
    let cpu = Cpu::new(options()).unwrap();
    let device = Device::new(cpu.clone());
    let (stream, other) = (cpu.create_stream().unwrap(), cpu.create_stream().unwrap());
    let busy = |stream: Stream| {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        cpu.call(stream, Box::new(move || wait.recv().unwrap_or(()))).unwrap();
        go
    };
    for bytes in [1000, 1 << 20] {
        let freed = || {
            let buffer = device.allocate::<u8>(bytes).unwrap();
            buffer.address()
        };
        let first = busy(stream);
        let address = freed();
        assert_ne!(device.allocate::<u8>(bytes).unwrap().address(), address, "the stream is still busy with it");
        assert_ne!(device.allocate_behind::<u8>(other, bytes).unwrap().address(), address, "so it is");
        assert_ne!(device.allocate_behind::<u8>(stream, 2 * bytes + 4096).unwrap().address(), address, "too small");
        let address = freed();
        let second = busy(other);
        assert_ne!(device.allocate_behind::<u8>(stream, bytes).unwrap().address(), address, "another stream may be busy with it");
        drop(second);
        cpu.synchronise_stream(other).unwrap();
        let address = freed();
        let again = device.allocate_behind::<u8>(stream, bytes).unwrap();
        assert_eq!(again.address(), address);
        cpu.fill(stream, again.address(), 5, bytes as u64).unwrap();
        drop(first);
        cpu.synchronise_stream(stream).unwrap();
        // The waiting memory is free now, except for what was taken over.
        assert_ne!(device.allocate::<u8>(bytes).unwrap().address(), address);
        assert_eq!(again.read().unwrap(), vec![5; bytes]);
    }
    assert_eq!(cpu.memory().used, 0);
}

/// A worker that has just finished one launch does not release the memory of the next, which was submitted and
/// whose buffer was freed meanwhile. The pool keeps no buffer of this size, so a released one is a fault.
#[test]
fn memory_freed_while_another_launch_ends_stays_until_its_own_ends() {
    const WORDS: usize = 150_000;
    let device = Device::new(Cpu::new(Options { memory_bytes: 4 * WORDS as u64 * 3, ..options() }).unwrap());
    let kernel = device.load(&module(ADD)).unwrap().kernel("add").unwrap();
    for _ in 0..20_000 {
        let buffer = device.allocate::<f32>(WORDS).unwrap();
        let arguments = [Argument::from(&buffer), Argument::from(&buffer), Argument::from(&buffer), Argument::from(512)];
        kernel.launch(&Launch::linear(2, 256), &arguments).unwrap();
    }
    device.synchronise().unwrap();
}

/// Memory is free again when everything is done, also if a wait for an event ended last.
#[test]
fn memory_behind_a_wait_for_an_event_is_released() {
    let cpu = Cpu::new(options()).unwrap();
    let device = Device::new(cpu.clone());
    let (stream, other) = (cpu.create_stream().unwrap(), cpu.create_stream().unwrap());
    let (go, wait) = std::sync::mpsc::channel::<()>();
    cpu.call(stream, Box::new(move || wait.recv().unwrap_or(()))).unwrap();
    let event = cpu.create_event().unwrap();
    cpu.record_event(event, stream).unwrap();
    cpu.wait_event(other, event).unwrap();
    drop(device.allocate::<u8>(1 << 20).unwrap());
    assert_eq!(cpu.memory().used, 1 << 20, "the streams may still use it");
    drop(go);
    cpu.synchronise().unwrap();
    assert_eq!(cpu.memory().used, 0);
}

#[test]
fn streams_keep_their_order_and_run_beside_each_other() {
    // Each launch multiplies by 3 and adds its number: the result depends on the order.
    let text = "
.visible .entry step(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];
    ld.global.u32 %r2, [%rd1]; mad.lo.u32 %r3, %r2, 3, %r1; st.global.u32 [%rd1], %r3;
    ret;
}
.visible .entry wait(.param .u64 p)
{
    .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [p];
LOOP:
    ld.acquire.gpu.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra LOOP;
    ret;
}";
    let cpu = Cpu::new(options()).unwrap();
    let device = Device::new(cpu.clone());
    let module = device.load(&module(text)).unwrap();
    let step = module.kernel("step").unwrap();
    let streams: Vec<Stream> = (0..4).map(|_| cpu.create_stream().unwrap()).collect();
    let cells: Vec<_> = streams.iter().map(|_| device.zeros::<u32>(1).unwrap()).collect();
    device.synchronise().unwrap();
    for n in 0..200u32 {
        for (stream, cell) in streams.iter().zip(&cells) {
            let launch = Launch { stream: *stream, ..Launch::linear(1, 1) };
            step.launch(&launch, &[Argument::from(cell), Argument::from(n)]).unwrap();
        }
    }
    let expected = (0..200u32).fold(0u32, |x, n| x.wrapping_mul(3).wrapping_add(n));
    for (stream, cell) in streams.iter().zip(&cells) {
        let mut bytes = [0; 4];
        cpu.read(*stream, cell.address(), &mut bytes).unwrap();
        assert_eq!(u32::from_le_bytes(bytes), expected);
    }
    // One stream waits for another one.
    let flag = device.zeros::<u32>(1).unwrap();
    device.synchronise().unwrap();
    let waits = Launch { stream: streams[0], ..Launch::linear(1, 1) };
    module.kernel("wait").unwrap().launch(&waits, &[Argument::from(&flag)]).unwrap();
    let frees = Launch { stream: streams[1], ..Launch::linear(1, 1) };
    step.launch(&frees, &[Argument::from(&flag), Argument::from(1u32)]).unwrap();
    cpu.synchronise_stream(streams[0]).unwrap();
    assert!(matches!(cpu.synchronise_stream(Stream(99)), Err(Error::UnknownStream(99))));
}

/// A device that is dropped while it is busy finishes its work and then ends, and so do idle workers.
#[test]
fn devices_end_with_work_under_way() {
    let text = "
.visible .entry count(.param .u64 p, .param .u32 n)
{
    .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;
LOOP:
    add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd1], %r2; setp.lt.u32 %p1, %r2, %r1; @%p1 bra LOOP;
    ret;
}";
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for _ in 0..5 {
            let device = Device::new(Cpu::new(Options { threads: 3, ..options() }).unwrap());
            let cell = device.zeros::<u32>(1).unwrap();
            let kernel = device.load(&module(text)).unwrap().kernel("count").unwrap();
            device.synchronise().unwrap();
            kernel.launch(&Launch::linear(1, 1), &[Argument::from(&cell), Argument::from(10_000_000u32)]).unwrap();
        }
        ended.send(()).unwrap();
    });
    assert!(end.recv_timeout(std::time::Duration::from_secs(60)).is_ok(), "a device does not end");
}

#[test]
fn copies_and_fills_are_in_order_and_checked() {
    let cpu = Cpu::new(options()).unwrap();
    let stream = Stream::default();
    let bytes = 20 << 20;
    let (a, b) = (cpu.allocate(bytes).unwrap(), cpu.allocate(bytes).unwrap());
    cpu.fill(stream, a, 7, bytes).unwrap();
    cpu.copy(stream, b, a, bytes).unwrap();
    cpu.fill(stream, a, 9, bytes).unwrap();
    cpu.write(stream, b + 5, &[1, 2, 3]).unwrap();
    // Overlapping, upwards by one.
    cpu.copy(stream, b + 1, b, bytes - 1).unwrap();
    let mut found = vec![0; bytes as usize];
    cpu.read(stream, b, &mut found).unwrap();
    let mut expected = vec![7; bytes as usize];
    expected[6..9].copy_from_slice(&[1, 2, 3]);
    assert!(found == expected);
    cpu.read(stream, a, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 9));
    assert!(cpu.fill(stream, a, 0, bytes + 1).is_err());
    assert!(cpu.copy(stream, a, b + 1, bytes).is_err());
    assert!(cpu.write(stream, a + bytes, &[1]).is_err());
    assert!(cpu.read(stream, 4096, &mut [0]).is_err());
    // Memory that is freed while work uses it stays until the work is done.
    cpu.fill(stream, a, 1, bytes).unwrap();
    cpu.free(a).unwrap();
    assert!(cpu.free(a).is_err());
    cpu.synchronise().unwrap();
    assert!(matches!(cpu.allocate(1 << 40), Err(Error::OutOfMemory { .. })));
    cpu.free(b).unwrap();
    assert!(cpu.allocate((1 << 30) - (1 << 20)).is_ok());
}

#[test]
fn a_launch_that_cannot_be_is_refused() {
    let text = "
.visible .entry big() { .shared .align 4 .b8 room[40000]; .reg .b64 %rd<2>; mov.u64 %rd1, room; st.shared.u32 [room], 1; ret; }";
    let device = Device::new(Cpu::new(options()).unwrap());
    let kernel = device.load(&module(text)).unwrap().kernel("big").unwrap();
    kernel.launch(&Launch::linear(1, 1), &[]).unwrap();
    let error = kernel.launch(&Launch::linear(1, 1).shared(200_000), &[]).unwrap_err().to_string();
    assert_eq!(error, "kernel `big`: it needs 240000 bytes of shared memory, a block has at most 232448");
    device.synchronise().unwrap();
}
