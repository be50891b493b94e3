//! Calls that run in lockstep, and the reasons why others do not.

use broadloom_cpu::compile::{CompileOptions, Machine, compile, not_vectorised};
use broadloom_diag::Sources;
use broadloom_ptx::Module;
use broadloom_transform::hoist_statics;

/// Builds a module with a function that cannot be inlined, around a body that uses `%x`, `%y` and `%p`, and a
/// kernel that calls it.
fn module(function: &str, kernel: &str) -> Module {
    let text = format!(
        ".version 8.0 .target sm_80 .address_size 64
        .shared .align 4 .b8 words[512];
        .func (.reg .b32 r) f(.reg .b32 n) {{
            .reg .b32 %x<8>, %y; .reg .b64 %d<4>; .reg .pred %p<4>, %q;
            mov.u32 r, 0;
            setp.eq.u32 %q, n, 0;
            {function}
            @%q ret;
            sub.u32 %y, n, 1;
            call (r), f, (%y);
        }}
        .func (.reg .b32 r) g(.reg .b32 n) {{ add.u32 r, n, 1; ret; }}
        .visible .entry k(.param .u64 out) {{
            .reg .b32 %x<8>; .reg .b64 %d<8>; .reg .pred %p<4>;
            mov.u32 %x0, %tid.x;
            {kernel}
            ret;
        }}"
    );
    let mut sources = Sources::new();
    let id = sources.add("k.ptx", text);
    let mut module = broadloom_ptx::parse(&sources, id).unwrap_or_else(|found| panic!("{found:?}"));
    hoist_statics::run(&mut module);
    broadloom_ptx::verify(module.clone()).unwrap_or_else(|found| panic!("{found:?}"));
    module
}

fn reason(function: &str, kernel: &str) -> Option<String> {
    let module = module(function, kernel);
    let (func, _) = module.kernels().next().unwrap();
    for machine in [Machine::host().clone(), Machine::aarch64()] {
        compile(&module, func, [64, 1, 1], &CompileOptions { machine, ..CompileOptions::default() }).unwrap();
    }
    not_vectorised(&module, func, [64, 1, 1], &CompileOptions::default()).unwrap()
}

/// Call by all lanes, with the same number of iterations in each.
const ALIKE: &str = "call (%x1), f, (7);";
/// Call by some lanes, while others have one ahead of them too.
const APART: &str = "and.b32 %x2, %x0, 1; setp.eq.u32 %p0, %x2, 0; @%p0 bra $else; call (%x1), f, (7); bra $both;
    $else: call (%x1), f, (7); $both:";

#[test]
fn calls_run_in_step() {
    let through_a_pointer = "mov.u64 %d0, f; mov.u64 %d1, g; setp.lt.u32 %p0, %x0, 9; selp.u64 %d2, %d0, %d1, %p0;
        p: .callprototype (.reg .b32 _) _ (.reg .b32 _); call (%x1), %d2, (%x0), p;";
    let kernels =
        [ALIKE, APART, "call (%x1), f, (%x0);", "setp.lt.u32 %p0, %x0, 9; @%p0 call (%x1), f, (%x0);", through_a_pointer];
    for kernel in kernels {
        assert_eq!(reason("", kernel), None, "{kernel}");
        assert_eq!(reason("setp.lt.u32 %p0, n, 3; @%p0 exit;", kernel), None, "{kernel}");
    }
    let found = "activemask.b32 %x0; vote.sync.ballot.b32 %x1, %q, %x0;";
    assert_eq!(reason(found, APART), None);
    for meeting in ["bar.sync 0;", "vote.sync.ballot.b32 %x1, %q, 0xffffffff;", "shfl.sync.idx.b32 %x1, n, 0, 31, 0xffffffff;"] {
        let early = "setp.gt.u32 %p0, %x0, 40; @%p0 bra $both; call (%x1), f, (7); $both:";
        // All lanes reach the first calls together. The values that the function passes on are unknown, but
        // the depth is known.
        let once = "mov.u32 %x3, 1; setp.eq.u32 %q, %x3, 1;";
        for kernel in [ALIKE, early] {
            assert_eq!(reason(&format!("{meeting} {once}"), kernel), None, "{meeting} {kernel}");
        }
    }
}

#[test]
fn what_cannot_says_why() {
    let meets = "lanes may come apart to a call of `f`, which must be come to together";
    let within = format!("it calls `f`, which cannot run in step: {meets}");
    let cases = [
        ("bar.sync 0;", APART, meets.to_owned()),
        ("shfl.sync.idx.b32 %x1, n, 0, 31, 0xffffffff;", APART, meets.to_owned()),
        // The depth is a parameter, which may differ.
        ("bar.sync 0;", ALIKE, within),
        (
            "setp.gt.u32 %p0, n, 5; @%p0 bra $in; bra $out; $in: bar.sync 0; $out:",
            ALIKE,
            "it calls `f`, which cannot run in step: lanes may come apart to `bar.sync`".to_owned(),
        ),
        ("alloca.u64 %d0, 16;", ALIKE, "`f` takes memory with `alloca`".to_owned()),
        (
            "mov.u64 %d0, words; atom.shared.cas.b32 %x0, [%d0], 0, 1; setp.eq.u32 %q, %x0, 0;",
            ALIKE,
            "lanes may wait for each other in `f`, which calls itself".to_owned(),
        ),
    ];
    for (function, kernel, expected) in cases {
        assert_eq!(reason(function, kernel).as_deref(), Some(expected.as_str()), "{function} {kernel}");
    }
}
