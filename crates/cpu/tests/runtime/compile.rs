//! Kernels of the corpus compile for every machine. The corpus as a suite compiles and runs all of them for
//! this one.

use broadloom_cpu::compile::{CompileOptions, Machine, Stage, compile, show};
use broadloom_diag::Sources;
use broadloom_transform::hoist_statics;
use std::path::{Path, PathBuf};

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx");
    let mut found = vec![];
    let mut work = vec![folder];
    while let Some(folder) = work.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                work.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn compile_all(options: &CompileOptions, every: usize) {
    let mut failures = vec![];
    let mut count = 0;
    for path in corpus().into_iter().step_by(every) {
        let mut sources = Sources::new();
        let id = sources.add(path.to_string_lossy(), std::fs::read_to_string(&path).unwrap());
        let mut module = broadloom_ptx::parse(&sources, id).unwrap();
        hoist_statics::run(&mut module);
        for (kernel, function) in module.kernels() {
            let refused = function.instructions().any(|(_, inst)| !broadloom_eval::is_run(inst));
            if refused {
                continue;
            }
            let block = match function.directive("reqntid") {
                Some(numbers) => [0, 1, 2].map(|axis| numbers.get(axis).copied().unwrap_or(1)),
                None => [128, 1, 1],
            };
            count += 1;
            if let Err(error) = compile(&module, kernel, block, options) {
                failures.push(format!("{}: {error}", path.display()));
            }
        }
    }
    assert!(count > 0, "the corpus is there");
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn as_vectors_for_this_machine() {
    compile_all(&CompileOptions::default(), 60);
}

#[test]
fn one_thread_at_a_time() {
    compile_all(&CompileOptions { vectorise: false, ..CompileOptions::default() }, 90);
}

#[test]
fn for_other_machines() {
    for machine in [Machine::avx2(), Machine::sse(), Machine::aarch64()] {
        compile_all(&CompileOptions { machine, ..CompileOptions::default() }, 180);
    }
}

/// Returns options for one fixed CPU, independent of this host: one with AVX-512 and nothing newer.
fn for_avx512() -> CompileOptions {
    CompileOptions { machine: Machine::named("skylake-avx512").unwrap(), ..CompileOptions::default() }
}

/// Unrolled loops have thousands of products, texels and rare instructions. Their arguments share one stack
/// slot for each kind of call.
#[test]
fn calls_of_one_kind_share_their_place_on_the_stack() {
    let texts = [
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3};",
        "vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r0;",
        "suld.b.1d.b32.trap {%r0}, [%rd0, {%r0}];",
    ];
    for text in texts {
        let slots = |count: usize| {
            let head = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\
                        .reg .b32 %r<3>; .reg .f32 %f<4>; .reg .b64 %rd<1>;\nld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %laneid; \
                        mul.lo.u32 %r2, %r0, %r0; cvt.rn.f32.u32 %f0, %r0; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n";
            let tail = "st.global.u32 [%rd0], %r0; st.global.f32 [%rd0+4], %f0; ret;\n}\n";
            let mut sources = Sources::new();
            let id = sources.add("k.ptx", format!("{head}{}{tail}", text.repeat(count)));
            let module = broadloom_ptx::parse(&sources, id).unwrap();
            let (kernel, _) = module.kernels().next().unwrap();
            show(&module, kernel, [64, 1, 1], &for_avx512(), Stage::Llvm).unwrap().matches("= alloca").count()
        };
        assert_eq!(slots(9), slots(1), "{text}");
    }
}

/// A row of 32 lanes is two lines, one element is one line, and scattered addresses are not prefetched.
#[test]
fn prefetches_ask_for_lines() {
    let code = |index: &str, level: &str| {
        let text = format!(
            ".version 8.0 .target sm_80 .address_size 64
            .visible .entry k(.param .u64 p) {{
                .reg .b64 %rd<4>; .reg .b32 %r<4>;
                ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; {index}
                mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
                prefetch.global.{level} [%rd3]; st.global.u32 [%rd1], 0;
                ret; }}"
        );
        let mut sources = Sources::new();
        let id = sources.add("prefetch.ptx", text);
        let module = broadloom_ptx::parse(&sources, id).unwrap();
        let (kernel, _) = module.kernels().next().unwrap();
        show(&module, kernel, [32, 1, 1], &for_avx512(), Stage::Llvm).unwrap()
    };
    let count = |index: &str, level: &str, near: u32| {
        let code = code(index, level);
        code.lines()
            .filter(|line| line.contains("call void @llvm.prefetch") && line.contains(&format!("i32 0, i32 {near}, i32 1")))
            .count()
    };
    assert_eq!(count("mov.u32 %r2, %r1;", "L1", 3), 2);
    assert_eq!(count("mov.u32 %r2, %r1;", "L2", 2), 2);
    assert_eq!(count("mov.u32 %r2, 7;", "L1", 3), 1);
    assert_eq!(count("mul.lo.u32 %r2, %r1, 1000;", "L1", 3), 0);
}

/// Returns a kernel in which two warps count bytes, four rows per iteration, with a stride of `step` bytes.
fn counting(step: u32) -> broadloom_ptx::Module {
    let row = |row: u32| {
        format!(
            "ld.global.u8 %h1, [%rd3+{}]; cvt.u32.u16 %r4, %h1; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r5; red.shared.add.u32 [%r4], 1;\n",
            32 * row
        )
    };
    let text = format!(
        ".version 8.0 .target sm_80 .address_size 64
        .visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n) .reqntid 32, 2, 1 {{
            .reg .pred %p<2>; .reg .b16 %h<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 4 .b32 bins[256];
            ld.param.u64 %rd1, [p]; ld.param.u64 %rd5, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r5, bins;
            mov.u32 %r3, %tid.y; mul.wide.u32 %rd2, %r3, %r1; cvt.u64.u32 %rd3, %r2; add.s64 %rd3, %rd3, %rd2; add.s64 %rd3, %rd3, %rd1; mad.lo.u32 %r2, %r3, 32, %r2;
            bar.sync 0; mov.u32 %r7, 0;
        $L: {}
            add.s64 %rd3, %rd3, {step}; add.u32 %r7, %r7, {step}; setp.lt.u32 %p1, %r7, %r1; @%p1 bra $L;
            bar.sync 0;
            shl.b32 %r8, %r2, 2; add.u32 %r8, %r8, %r5; ld.shared.u32 %r4, [%r8];
            mul.wide.u32 %rd4, %r2, 4; add.s64 %rd4, %rd4, %rd5; st.global.u32 [%rd4], %r4;
            ret; }}",
        (0..4).map(row).collect::<String>()
    );
    let mut sources = Sources::new();
    let id = sources.add("counting.ptx", text);
    broadloom_ptx::parse(&sources, id).unwrap()
}

/// Warps take turns in a loop whose rows are far apart, but not if a warp reads everything that it passes.
#[test]
fn warps_take_turns_where_others_read_what_lies_between() {
    let takes_turns = |step: u32| {
        let module = counting(step);
        let (kernel, _) = module.kernels().next().unwrap();
        let code = show(&module, kernel, [32, 2, 1], &for_avx512(), Stage::Llvm).unwrap();
        // Before and after both barriers; the loop itself is one more.
        code.lines().filter(|line| line.starts_with("piece")).count() > 3
    };
    assert_eq!([64, 128, 256, 4096].map(takes_turns), [false, false, true, true]);
}

/// Counting is scalar code: 64-byte registers would only slow the core down.
#[test]
fn counting_leaves_wide_registers_alone() {
    let module = counting(128);
    let (kernel, _) = module.kernels().next().unwrap();
    let code = show(&module, kernel, [32, 2, 1], &for_avx512(), Stage::Assembly).unwrap();
    assert!(code.contains("vpextrq") && !code.contains("zmm"), "{code}");
    // A CPU with conflict detection counts in vectors.
    let machine = Machine::named("sapphirerapids").unwrap();
    let code =
        show(&module, kernel, [32, 2, 1], &CompileOptions { machine, ..CompileOptions::default() }, Stage::Assembly).unwrap();
    assert!(code.contains("vpconflictd") && code.contains("vpopcntd"), "{code}");
}

/// A block of one thread is scalar code: results of calls are copied in words, and loops that copy are unrolled.
#[test]
fn one_thread_has_words_and_unrolled_loops() {
    let text = ".version 7.0 .target sm_70 .address_size 64
        .func (.param .align 8 .b8 rr[40]) f(.param .b64 a0, .param .b32 a1) {
            .reg .b64 %d<4>; .reg .b32 %r<6>; .reg .pred %p<2>;
            ld.param.b64 %d0, [a0]; ld.param.b32 %r0, [a1];
            setp.eq.u32 %p0, %r0, 0; @%p0 bra $end;
            sub.u32 %r1, %r0, 1; add.u64 %d1, %d0, 4096; mov.u32 %r2, 0;
        $head:
            setp.ge.u32 %p1, %r2, %r0; @%p1 bra $call;
            mad.wide.u32 %d2, %r2, 4, %d0; ld.global.b32 %r3, [%d2];
            mad.wide.u32 %d3, %r2, 4, %d1; st.global.b32 [%d3], %r3;
            add.u32 %r2, %r2, 1; bra $head;
        $call:
            { .param .b64 x0; .param .b32 x1; .param .align 8 .b8 y[40];
            st.param.b64 [x0], %d1; st.param.b32 [x1], %r1;
            call (y), f, (x0, x1); ld.param.b64 %d0, [y+8]; ld.param.b32 %r0, [y+32]; }
        $end:
            st.param.b32 [rr], 0; st.param.b64 [rr+8], %d0; st.param.b64 [rr+16], %d0; st.param.b64 [rr+24], %d0;
            st.param.b32 [rr+32], %r0; ret; }
        .visible .entry k(.param .u64 p, .param .u32 n) {
            .reg .b64 %d<3>; .reg .b32 %r<2>;
            ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n];
            { .param .b64 x0; .param .b32 x1; .param .align 8 .b8 y[40];
            st.param.b64 [x0], %d0; st.param.b32 [x1], %r0;
            call (y), f, (x0, x1); ld.param.b64 %d1, [y+8]; }
            st.global.u64 [%d0], %d1; ret; }";
    let mut sources = Sources::new();
    let id = sources.add("alone.ptx", text);
    let module = broadloom_ptx::parse(&sources, id).unwrap();
    let (kernel, _) = module.kernels().next().unwrap();
    let code = show(&module, kernel, [1, 1, 1], &for_avx512(), Stage::Optimised).unwrap();
    assert!(code.contains("call") && !code.contains("load <40 x i8>"), "{code}");
    assert!(code.matches("= load i32, ptr").count() >= 8 || code.contains("load <"), "{code}");
}
