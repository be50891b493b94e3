//! Accesses near address 0 fault like all others: no path to one is removed, and the reported address is the
//! real one.
//!
//! It is a program of its own because a trial is ignored where the host lacks its instructions.

use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Device, Error, FaultKind, Launch};
use broadloom_diag::Sources;
use broadloom_ptx::{Verified, parse, verify};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::fmt::Write;
use std::sync::Arc;

/// Addresses of the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// One constant address in all lanes.
    Same(u64),
    /// A constant address in one lane; the others are elsewhere in the program.
    Lane(u64),
    /// One constant address under a guard that holds in one lane.
    Guarded(u64),
    /// Adjacent addresses from 0 on.
    Row,
    /// Adjacent addresses from 0 on, under a guard that holds from the fourth lane on.
    GuardedRow,
    /// Scattered addresses.
    Apart,
    /// Address passed by the launch, which is 0.
    Given,
}

const WAYS: [Way; 8] =
    [Way::Same(0), Way::Same(16), Way::Lane(0), Way::Guarded(0), Way::Row, Way::GuardedRow, Way::Apart, Way::Given];

/// Accesses to `[%a]` under the guard `@G`. Loaded values go into `%x` or `%r`.
const ACCESSES: [(&str, u64); 15] = [
    ("@G ld.global.u8 %r, [%a];", 1),
    ("@G ld.global.u32 %r, [%a];", 4),
    ("@G ld.global.u64 %x, [%a];", 8),
    ("@G ld.volatile.global.u32 %r, [%a];", 4),
    ("@G ld.global.nc.u32 %r, [%a];", 4),
    ("@G ld.global.v4.u32 {%r, %s, %s, %s}, [%a];", 16),
    ("@G ld.volatile.global.v2.u64 {%x, %y}, [%a];", 16),
    ("@G st.global.u8 [%a], %r;", 1),
    ("@G st.global.u32 [%a], %r;", 4),
    ("@G st.u32 [%a], %r;", 4),
    ("@G st.global.v4.u32 [%a], {%r, %s, %r, %s};", 16),
    ("@G atom.global.add.u32 %r, [%a], %s;", 4),
    ("@G atom.global.cas.b64 %x, [%a], %y, %x;", 8),
    ("@G atom.global.inc.u32 %r, [%a], 5;", 4),
    ("@G red.global.add.f32 [%a], %f;", 4),
];

/// Returns a kernel that does one of many accesses, selected by its last parameter.
fn text() -> String {
    let mut text = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 given, .param .u32 which) {
    .reg .pred %p, %g; .reg .b32 %r, %s, %t, %which; .reg .b64 %out, %given, %a, %o, %x, %y; .reg .f32 %f;
    ld.param.u64 %out, [out]; ld.param.u64 %given, [given]; ld.param.u32 %which, [which];
    mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %out, %out, %o;
    mov.u32 %r, 7; mov.u32 %s, 9; mov.u64 %x, 7; mov.u64 %y, 8; mov.f32 %f, 0f3f800000;
"
    .to_owned();
    for (number, (way, (access, bytes))) in cases().enumerate() {
        let address = match way {
            Way::Same(at) | Way::Lane(at) | Way::Guarded(at) => format!("mov.u64 %a, {at};"),
            Way::Row | Way::GuardedRow => format!("mul.wide.u32 %a, %t, {bytes};"),
            Way::Apart => "mul.lo.u32 %s, %t, %t; mul.wide.u32 %a, %s, 64;".to_owned(),
            Way::Given => "mov.u64 %a, %given;".to_owned(),
        };
        let guard = match way {
            Way::Guarded(_) => "setp.eq.u32 %g, %t, 3;",
            Way::GuardedRow => "setp.ge.u32 %g, %t, 3;",
            Way::Lane(_) | Way::Same(_) | Way::Row | Way::Apart | Way::Given => "",
        };
        let condition = match way {
            // The whole warp skips it, except for one lane.
            Way::Lane(_) => {
                format!("setp.eq.u32 %g, %which, {number}; setp.eq.and.u32 %p, %t, 3, %g; @!%p bra NOT{number};")
            }
            _ => format!("setp.ne.u32 %p, %which, {number}; @%p bra NOT{number};"),
        };
        let access = access.replace("@G ", if guard.is_empty() { "" } else { "@%g " });
        let _ = writeln!(text, "    {condition} {guard} {address} {access} bra DONE;\nNOT{number}:");
    }
    text + "
    mov.u32 %r, 1;
DONE:
    cvt.u32.u64 %s, %x; add.u32 %r, %r, %s;
    st.global.u32 [%out], %r;
    ret;
}"
}

fn cases() -> impl Iterator<Item = (Way, (&'static str, u64))> {
    WAYS.into_iter().flat_map(|way| ACCESSES.map(|access| (way, access)))
}

fn module(text: &str) -> Arc<Verified> {
    let mut sources = Sources::new();
    let id = sources.add("null.ptx", text.to_owned());
    let module = parse(&sources, id).and_then(verify);
    Arc::new(module.unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong))))
}

fn run_on(vectors: &str, vectorise: bool) -> Result<Completion, Failed> {
    let options = Options { threads: 1, memory_bytes: 1 << 24, cache: CacheFolder::Nowhere, ..Options::default() };
    let Some(mut options) = options.vectors(vectors) else {
        return Ok(Completion::ignored_with(format!("skipped: this machine has no {vectors}")));
    };
    options.compile.vectorise = vectorise;
    let device = Device::new(Cpu::new(options).unwrap());
    let out = device.zeros::<u32>(32).unwrap();
    let kernel = device.load(&module(&text())).unwrap().kernel("k").unwrap();
    let mut wrong = vec![];
    for (number, (way, (access, bytes))) in cases().enumerate() {
        let arguments = [(&out).into(), 0u64.into(), (number as u32).into()];
        let outcome = kernel.launch(&Launch::linear(1, 32), &arguments).and_then(|()| device.synchronise());
        let lanes = || 0..32u64;
        let expected: Vec<u64> = match way {
            Way::Same(at) | Way::Lane(at) | Way::Guarded(at) => vec![at],
            Way::Row => lanes().map(|lane| lane * bytes).collect(),
            Way::GuardedRow => lanes().skip(3).map(|lane| lane * bytes).collect(),
            Way::Apart => lanes().map(|lane| lane * lane * 64).collect(),
            Way::Given => vec![0],
        };
        match outcome {
            Err(Error::Fault(fault)) if fault.kind == FaultKind::OutOfBounds => {
                if !fault.address.is_some_and(|at| expected.contains(&at)) {
                    wrong.push(format!("{way:?} `{access}`: told {:x?}", fault.address));
                }
            }
            other => wrong.push(format!("{way:?} `{access}`: {other:?}")),
        }
    }
    if wrong.is_empty() { Ok(Completion::Completed) } else { Err(wrong.join("\n").into()) }
}

fn main() {
    let arguments = Arguments::from_args();
    let ways = [
        ("vectors_of_the_host", "host", true),
        ("vectors_of_256_bits", "avx2", true),
        ("vectors_of_128_bits", "sse4.2", true),
        ("one_thread_at_a_time", "host", false),
    ];
    let trial = |(name, vectors, vectorise)| Trial::ignorable_test(name, move || run_on(vectors, vectorise));
    libtest_mimic::run(&arguments, ways.map(trial).into()).exit();
}
