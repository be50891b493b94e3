//! Large, deep or numerous kernels, each in a size that compiles quickly, and time limits that end
//! compilation.

use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Device, Error, FaultKind, Launch};
use broadloom_diag::Sources;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Generous limit for a debug build on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

const HEAD: &str = ".version 8.0 .target sm_80 .address_size 64\n";

/// Returns a kernel around a body that changes `%r1`, which each of 32 threads loads from `out`. `%r0` is the
/// thread.
fn kernel(registers: &str, body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 out) {{ .reg .u64 %o<4>; .reg .u32 %r<8>; .reg .pred %p<4>; {registers}
         ld.param.u64 %o0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %o1, %r0, 4; add.u64 %o2, %o0, %o1; ld.global.u32 %r1, [%o2];
         {body}
         st.global.u32 [%o2], %r1; ret; }}"
    )
}

fn launch(text: &str, limit: Duration) -> Result<Vec<u32>, Error> {
    let mut sources = Sources::new();
    let id = sources.add("large.ptx", text);
    let module = broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).unwrap_or_else(|found| panic!("{found:?}"));
    let options = Options { threads: 1, cache: CacheFolder::Nowhere, memory_bytes: 1 << 30, ..Options::default() };
    let device = Device::new(Cpu::new(options)?);
    let data = device.upload(&(0..32u32).collect::<Vec<_>>())?;
    let kernel = device.load(&Arc::new(module))?.kernel("k")?;
    kernel.launch(&Launch::linear(1, 32).time_limit(limit), &[(&data).into()])?;
    data.read()
}

fn run(text: &str) -> Vec<u32> {
    launch(text, LIMIT).unwrap_or_else(|error| panic!("{error}"))
}

/// Each level calls the next one twice, the second time only for the thread with the number of the level.
#[test]
fn a_tree_of_calls_with_2_to_the_40_leaves() {
    let mut text = format!("{HEAD}.func (.reg .u32 %r) f40(.reg .u32 %x) {{ add.u32 %r, %x, 1; ret; }}\n");
    for level in (0..40).rev() {
        let next = level + 1;
        let function = format!(
            ".func (.reg .u32 %r) f{level}(.reg .u32 %x) {{ .reg .u32 %a<4>; .reg .pred %p;
             call (%a0), f{next}, (%x); mov.u32 %a1, 0; mov.u32 %a2, %tid.x; setp.ne.u32 %p, %a2, {level}; @%p bra $done;
             call (%a1), f{next}, (%a0); $done: add.u32 %r, %a0, %a1; ret; }}\n"
        );
        text += &function;
    }
    text += &kernel("", "call (%r1), f0, (%r0);");
    let expected: Vec<u32> = (0..32).map(|thread| (thread + 1) + (thread + 2)).collect();
    assert_eq!(run(&text), expected);
}

#[test]
fn a_chain_of_a_thousand_functions() {
    let last = 1000;
    let mut text = format!("{HEAD}.func (.reg .u32 %r) f{last}(.reg .u32 %x) {{ add.u32 %r, %x, 1; ret; }}\n");
    for level in (0..last).rev() {
        let next = level + 1;
        writeln!(
            text,
            ".func (.reg .u32 %r) f{level}(.reg .u32 %x) {{ .reg .u32 %a; call (%a), f{next}, (%x); add.u32 %r, %a, 1; ret; }}"
        )
        .unwrap();
    }
    text += &kernel("", "call (%r1), f0, (%r0);");
    assert_eq!(run(&text), (0..32).map(|thread| thread + 1001).collect::<Vec<u32>>());
}

#[test]
fn a_list_of_300_targets() {
    let labels: Vec<String> = (0..300).map(|label| format!("$l{label}")).collect();
    let mut body = format!("mul.lo.u32 %r1, %r1, 9; targets: .branchtargets {}; brx.idx %r1, targets;\n", labels.join(", "));
    for (number, label) in labels.iter().enumerate() {
        writeln!(body, "{label}: add.u32 %r1, %r1, {number}; bra $end;").unwrap();
    }
    body += "$end:";
    assert_eq!(run(&format!("{HEAD}{}", kernel("", &body))), (0..32).map(|thread| 18 * thread).collect::<Vec<u32>>());
}

#[test]
fn branches_200_deep_and_loops_12_deep() {
    let mut body = String::new();
    for level in 0..200 {
        writeln!(body, "setp.lt.u32 %p0, %r0, {level}; @%p0 bra $e{level}; add.u32 %r1, %r1, 1;").unwrap();
    }
    for level in (0..200).rev() {
        writeln!(body, "$e{level}: xor.b32 %r1, %r1, 0;").unwrap();
    }
    // The innermost body runs once for each thread below 5, and twice for the thread 5 on each level.
    let counters = ".reg .u32 %c<12>; .reg .u32 %n;";
    body += "setp.eq.u32 %p1, %r0, 5; selp.u32 %n, 2, 1, %p1;\n";
    for level in 0..12 {
        write!(body, "mov.u32 %c{level}, 0;\n$l{level}: ").unwrap();
    }
    body += "add.u32 %r1, %r1, 1;\n";
    for level in (0..12).rev() {
        writeln!(body, "add.u32 %c{level}, %c{level}, 1; setp.lt.u32 %p0, %c{level}, %n; @%p0 bra $l{level};").unwrap();
    }
    let rounds = |thread| if thread == 5 { 1 << 12 } else { 1 };
    let expected: Vec<u32> = (0..32).map(|thread| thread + (thread + 1) + rounds(thread)).collect();
    assert_eq!(run(&format!("{HEAD}{}", kernel(counters, &body))), expected);
}

#[test]
fn compilation_counts_towards_the_time_limit() {
    let mut body = String::new();
    for number in 0..3000 {
        writeln!(body, "mad.lo.u32 %r1, %r1, 3, {number}; xor.b32 %r1, %r1, %r0;").unwrap();
    }
    let started = Instant::now();
    match launch(&format!("{HEAD}{}", kernel("", &body)), Duration::from_millis(20)) {
        Err(Error::Fault(fault)) => {
            assert_eq!((fault.kind, fault.kernel.as_str()), (FaultKind::TimeLimit, "k"));
            assert!(fault.message.starts_with("it was not compiled within 20ms, and was at `"), "{}", fault.message);
        }
        outcome => panic!("{outcome:?}"),
    }
    assert!(started.elapsed() < LIMIT);
}
