//! Loops that may wait for other threads, and the reads they wait at: `broadloom_analysis::Waiting` on
//! kernels after the pipeline.

use broadloom_analysis::{Cfg, Dominators, Loops, Waiting};
use broadloom_diag::Sources;
use broadloom_ptx::{Func, Module, parse, verify};
use broadloom_transform::facts::Facts;
use broadloom_transform::pipeline::{self, Verification};

const START: &str = ".version 8.0 .target sm_80 .address_size 64
.global .u32 flag; .shared .u32 sflag; .shared .b32 sarray[64];
.func (.param .b32 r) look(.param .b64 p) {
    .reg .b32 %x; .reg .b64 %p;
    ld.param.u64 %p, [p]; ld.volatile.u32 %x, [%p]; st.param.b32 [r], %x; ret;
}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) {
    .reg .b32 %r<20>, %t, %n; .reg .b64 %d<12>, %a, %b; .reg .pred %p<8>; .local .b32 kept[4]; .reg .f32 %f<4>;
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
    cvta.to.global.u64 %a, %a; cvta.to.global.u64 %b, %b; mov.u32 %r0, 0; mov.u32 %r9, 0;
";

/// Returns the reads that loops of a kernel wait at, without their operands.
fn waits(body: &str) -> Vec<String> {
    let text = format!("{START}{body}\nst.global.u32 [%b], %r9; ret; }}");
    waits_of(text).into_iter().flat_map(|(_, waits)| waits).collect()
}

/// Returns the reads that loops of each kernel of a module wait at.
fn waits_of(text: String) -> Vec<(String, Vec<String>)> {
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", text);
    let module = parse(&sources, id).and_then(verify).unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong)));
    let kernels = module.functions.iter().filter(|(_, function)| function.is_kernel && function.has_body);
    kernels.map(|(kernel, function)| (function.name.clone(), waits_in(&module, kernel))).collect()
}

fn waits_in(module: &Module, kernel: Func) -> Vec<String> {
    let facts = Facts { block: Some([64, 1, 1]), grid: None };
    let function = pipeline::run_pipeline(module, kernel, pipeline::STAGES, &facts, Verification::InDebug, |_, _| {}).unwrap();
    let cfg = Cfg::new(&function).unwrap();
    let dominators = Dominators::new(&cfg);
    let loops = Loops::new(&cfg, &dominators);
    let waiting = Waiting::new(module, &function, &cfg, &dominators, &loops);
    let mut found: Vec<String> = waiting.waits().iter().map(|wait| function.insts[wait.inst].mnemonic_text()).collect();
    found.dedup();
    found
}

#[track_caller]
fn assert_waits(body: &str, expected: &[&str]) {
    assert_eq!(waits(body), expected, "{body}");
}

#[test]
fn polling_waits() {
    for poll in [
        "atom.global.add.u32 %r1, [%a], 0;",
        "atom.global.add.u32 %r1, [%a], %n;",
        "atom.global.or.b32 %r1, [%a], 0;",
        "atom.global.and.b32 %r1, [%a], -1;",
        "atom.global.xor.b32 %r1, [%a], 0;",
        "atom.global.max.u32 %r1, [%a], 0;",
        "atom.global.min.u32 %r1, [%a], 0xffffffff;",
        "atom.global.exch.b32 %r1, [%a], 0;",
        "atom.global.cas.b32 %r1, [%a], 0, 0;",
        "ld.volatile.global.u32 %r1, [%a];",
        "ld.relaxed.gpu.global.u32 %r1, [%a];",
        "ld.acquire.gpu.global.u32 %r1, [%a];",
        "ld.global.u32 %r1, [%a];",
        "ld.u32 %r1, [%a];",
        "ld.shared.u32 %r1, [sflag];",
        "atom.shared.add.u32 %r1, [sflag], 0;",
    ] {
        let mnemonic = poll.split(' ').next().unwrap();
        assert_waits(&format!("L: {poll} setp.eq.u32 %p0, %r1, 0; @%p0 bra L;"), &[mnemonic]);
    }
}

#[test]
fn conditions_are_followed() {
    // Through votes, selections, other loops, and the conjunction of two conditions.
    let vote = "L: ld.volatile.global.u32 %r1, [%a]; setp.ne.u32 %p0, %r1, 0; vote.sync.all.pred %p1, %p0, -1; @!%p1 bra L;";
    assert_waits(vote, &["ld.volatile.global.u32"]);
    let both = "L: add.u32 %r0, %r0, 1; ld.global.u32 %r1, [%a]; setp.ne.u32 %p0, %r1, 0; setp.gt.and.u32 %p1, %r0, 9, %p0; @!%p1 bra L;";
    assert_waits(both, &["ld.global.u32"]);
    let ring = "L: add.u32 %r0, %r0, 1; and.b32 %r0, %r0, 3; mad.wide.u32 %d0, %r0, 4, %a; ld.relaxed.gpu.global.u32 %r1, [%d0];
                setp.eq.u32 %p0, %r1, 0; @%p0 bra L;";
    assert_waits(ring, &["ld.relaxed.gpu.global.u32"]);
    let scanning = "L: mov.u32 %r0, 0; mov.u32 %r2, 1;
                    I: mad.wide.u32 %d0, %r0, 4, %a; ld.global.u32 %r1, [%d0]; min.u32 %r2, %r2, %r1; add.u32 %r0, %r0, 1;
                    setp.lt.u32 %p0, %r0, 4; @%p0 bra I;
                    setp.eq.u32 %p1, %r2, 0; @%p1 bra L;";
    assert_waits(scanning, &["ld.global.u32"]);
    // Back without a step if the value is not there yet.
    let look_back = "L: mad.wide.u32 %d0, %n, 4, %a; ld.volatile.global.u32 %r1, [%d0]; setp.eq.u32 %p0, %r1, 0; @%p0 bra L;
                     add.u32 %r9, %r9, %r1; sub.u32 %n, %n, 1; setp.ne.u32 %p1, %r1, 2; @%p1 bra L;";
    assert_waits(look_back, &["ld.volatile.global.u32"]);
    // A bound by a counter does not change that it is a poll.
    let tries = "L: ld.volatile.global.u32 %r1, [%a]; setp.ne.u32 %p0, %r1, 0; @%p0 bra E;
                 add.u32 %r0, %r0, 1; setp.lt.u32 %p1, %r0, 100000; @%p1 bra L; E:";
    assert_waits(tries, &["ld.volatile.global.u32"]);
    // Loop with two entries.
    let circle = "setp.eq.u32 %p0, %t, 0; @%p0 bra M;
                  L: add.u32 %r9, %r9, 1;
                  M: atom.global.or.b32 %r1, [%a], 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;";
    assert_waits(circle, &["atom.global.or.b32"]);
    let returns = "L: atom.global.max.u32 %r1, [%a], 0; setp.ne.u32 %p0, %r1, 0; @%p0 exit; bra L;";
    assert_waits(returns, &["atom.global.max.u32"]);
}

#[test]
fn loops_that_end_by_themselves_do_not_wait() {
    for body in [
        // A counter; a bound that is reloaded in each iteration.
        "L: add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, %n; @%p0 bra L;",
        "L: st.global.u32 [%b+4], %r0; add.u32 %r0, %r0, 1; ld.global.u32 %r1, [%a]; setp.lt.u32 %p0, %r0, %r1; @%p0 bra L;",
        // A linear search of an array, and a binary one.
        "L: mad.wide.u32 %d0, %r0, 4, %a; ld.global.u32 %r1, [%d0]; add.u32 %r0, %r0, 1; setp.ne.u32 %p0, %r1, 7; @%p0 bra L;",
        "mov.u32 %r4, %n; L: add.u32 %r1, %r0, %r4; shr.u32 %r1, %r1, 1; mad.wide.u32 %d0, %r1, 4, %a; ld.global.u32 %r2, [%d0];
         setp.lt.u32 %p0, %r2, 7; add.u32 %r3, %r1, 1; selp.b32 %r0, %r3, %r0, %p0; selp.b32 %r4, %r4, %r1, %p0;
         setp.lt.u32 %p1, %r0, %r4; @%p1 bra L;",
        "mov.u32 %r4, %n; L: setp.ge.u32 %p1, %r0, %r4; @%p1 bra E; add.u32 %r1, %r0, %r4; shr.u32 %r1, %r1, 1; mad.wide.u32 %d0, %r1, 4, %a;
         ld.global.u32 %r2, [%d0]; setp.lt.u32 %p0, %r2, 7; @%p0 bra M; mov.u32 %r4, %r1; st.global.u32 [%b+4], %r2; bra L;
         M: add.u32 %r0, %r1, 1; bra L; E:",
        // A hash table that is searched from an index on, wrapping around its end.
        "L: add.u32 %r0, %r0, 1; and.b32 %r0, %r0, 63; mad.wide.u32 %d0, %r0, 4, %a; ld.global.u32 %r1, [%d0];
         setp.ne.u32 %p0, %r1, 7; @%p0 bra L;",
        // A linked list.
        "mov.b64 %d0, %a; L: ld.global.u64 %d0, [%d0]; setp.ne.u64 %p0, %d0, 0; @%p0 bra L;",
        "mov.u32 %r0, %t; L: mad.wide.u32 %d0, %r0, 4, %a; mov.u32 %r1, %r0; ld.global.u32 %r0, [%d0]; setp.ne.u32 %p0, %r0, %r1; @%p0 bra L;",
        // Work distribution by a counter.
        "L: atom.global.add.u32 %r1, [%a], 1; setp.lt.u32 %p0, %r1, %n; @%p0 bra L;",
        "L: atom.global.inc.u32 %r1, [%a], 100; setp.lt.u32 %p0, %r1, 50; @%p0 bra L;",
        // Memory that the loop itself writes.
        "L: ld.global.u32 %r1, [%a]; add.u32 %r1, %r1, 1; st.global.u32 [%a], %r1; ld.global.u32 %r2, [%a+4]; setp.lt.u32 %p0, %r1, %r2; @%p0 bra L;",
        // A flag that is read between barriers.
        "L: bar.sync 0; ld.shared.u32 %r1, [sflag]; setp.eq.u32 %p0, %r1, 0; @%p0 bra L;",
        // A result that decides nothing.
        "L: atom.global.or.b32 %r1, [%a], 1; add.u32 %r9, %r9, %r1; add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, %n; @%p0 bra L;",
        // A timer, and bits that are cleared one by one.
        "L: mov.u32 %r1, %clock; ld.global.u32 %r2, [%a]; setp.lt.u32 %p0, %r1, %r2; @%p0 bra L;",
        "mov.u32 %r1, %n; L: sub.u32 %r2, %r1, 1; and.b32 %r1, %r1, %r2; ld.global.u32 %r3, [%a]; setp.gt.u32 %p0, %r1, %r3; @%p0 bra L;",
    ] {
        assert_waits(body, &[]);
    }
}

/// No benchmark contains a waiting loop. In the corpus, only the kernels in [`WAITING`] do.
#[test]
fn real_kernels_wait_where_they_are_meant_to() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![];
    for (folder, end) in [("crates/bench/kernels", ".ptx"), ("corpus/ptx", ".sm75.ptx")] {
        let mut files: Vec<_> = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.to_string_lossy().ends_with(end));
        files.sort();
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let waiting = waits_of(text).into_iter().filter(|(_, waits)| !waits.is_empty());
            found.extend(waiting.map(|(kernel, waits)| format!("{name}: {kernel}: {}", waits.join(", "))));
        }
    }
    assert_eq!(found, WAITING, "{found:#?}");
}

const WAITING: &[&str] = &[
    "acquire_release.sm75: acquire_release: ld.acquire.gpu.global.u32",
    "acquire_release.sm75: relaxed_fences: ld.relaxed.gpu.u32",
    "acquire_release.sm75: acquire_release_lock: atom.acquire.gpu.global.cas.b32",
    "atomics_float.sm75: atomics_float: atom.global.cas.b32",
    "atomics_wide.sm75: atomics_wide: atom.global.cas.b64",
    "atomics_wide.sm75: atomics_short: atom.global.cas.b16",
    "barrier_phases.sm75: barrier_phases: ld.acquire.cta.b64",
    "barrier_phases.sm75: barrier_leaving: ld.acquire.cta.b64",
    "barrier_phases.sm75: barrier_many_at_once: ld.acquire.cta.b64",
    "barrier_pipeline.sm75: barrier_pipeline: ld.acquire.cta.b64",
    "connected_components.sm75: components_join: atom.global.add.u32, atom.global.cas.b32, atom.global.add.u32",
    "grid_barrier.sm75: grid_barrier: ld.volatile.global.u32",
    "hash_table.sm75: hash_insert: atom.global.cas.b32",
    "producer_consumer.sm75: producer_consumer: ld.volatile.shared.u32",
    "scan_lookback.sm75: scan_lookback: atom.global.add.u64",
    "spin_lock.sm75: spin_lock: atom.global.cas.b32",
    "spin_lock.sm75: ticket_lock: ld.volatile.global.u32",
];
