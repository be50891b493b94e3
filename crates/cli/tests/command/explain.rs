//! Tests of `broadloom explain`.

use crate::harness::{broadloom, broadloom_with_input, shell};

#[test]
fn says_what_is_in_a_module() {
    broadloom(&["explain", "examples/reduce.ptx"]).exits(0).says(&[
        "examples/reduce.ptx: PTX 9.4 for sm_75, addresses of 64 bits",
        "compiled from examples/reduce.cu",
        "kernel reduce",
        "+0     .u64       reduce_param_0           reads .f32",
        "+16    .u32       reduce_param_2",
        "1024 bytes: _ZZ6reduceE4tile .b8[1024]",
        "1 atom.global.add.f32",
    ]);
}

/// Names of source files in a module do not reach the terminal as control sequences.
#[test]
fn names_in_a_module_are_printable() {
    let text = std::fs::read_to_string("../../examples/race.ptx").unwrap().replace("race.cu\"", "\u{1b}[31mrace.cu\"");
    assert!(text.contains('\u{1b}'));
    let explained = broadloom_with_input(&["explain", "-"], text.as_bytes()).exits(0).says(&["␛[31mrace.cu"]);
    let launch = ["check", "-", "--block", "64", "--arg", "f32[64]:iota", "--arg", "f32[1]:zero", "--arg", "i32:64"];
    let checked = broadloom_with_input(&launch, text.as_bytes()).exits(1).complains(&["␛[31mrace.cu:12"]);
    assert!(!explained.out.contains('\u{1b}') && !checked.err.contains('\u{1b}'), "{}", checked.err);
}

#[test]
fn counts_shared_memory_of_called_functions_and_of_the_module() {
    let text = "
        .version 7.0 .target sm_70 .address_size 64
        .shared .f32 outside[16];
        .extern .shared .b8 dynamic[];
        .func f() { .shared .b32 inside[4]; ret; }
        .entry k() { .reg .b32 %r; call f, (); mov.u32 %r, outside; mov.u32 %r, dynamic; ret; }";
    let outcome = broadloom_with_input(&["explain", "-"], text.as_bytes()).exits(0);
    let kernel = outcome.out.split("kernel k").nth(1).unwrap_or_default();
    assert!(kernel.contains("80 bytes: inside .b32[4], outside .f32[16], dynamic .b8[]"), "{}", outcome.out);
    assert!(kernel.contains("calls         f"), "{}", outcome.out);
}

#[test]
fn prints_the_module_back_and_the_print_is_a_fixed_point() {
    let first = broadloom(&["explain", "examples/saxpy.ptx", "--emit", "ptx"]).exits(0).says(&[".visible .entry saxpy("]);
    let second = broadloom_with_input(&["explain", "--emit", "ptx", "-"], first.out.as_bytes()).exits(0);
    assert_eq!(first.out, second.out);
}

#[test]
fn shows_every_stage_of_the_passes() {
    let stage = |name: &str| broadloom(&["explain", "examples/reduce.ptx", "--emit", name]).exits(0);
    for name in ["inlined", "lowered", "ssa", "folded", "shared", "converted", "cleaned", "registers"] {
        stage(name).says(&[".visible .entry reduce(", "bar.sync"]);
    }
    stage("ssa").says(&["block0:", "\t-> "]);
    let again = broadloom_with_input(&["explain", "--emit", "ptx", "-"], stage("registers").out.as_bytes()).exits(0);
    assert_eq!(again.out, stage("registers").out);
    let any = broadloom(&["explain", "examples/reduce.ptx", "--emit", "cleaned"]).exits(0).says(&["%ntid.x"]);
    let fixed = broadloom(&["explain", "examples/reduce.ptx", "--emit", "cleaned", "--block", "256"]).exits(0);
    assert!(!fixed.out.contains("%ntid.x") && fixed.out.len() < any.out.len(), "{}", fixed.out);
    broadloom(&["explain", "examples/reduce.ptx", "--emit", "cleaned", "--block", "0"]).exits(2).complains(&["above 0"]);
    broadloom(&["explain", "--help"]).exits(0).says(&["folded", "every register written once"]);
}

#[test]
fn shows_what_the_cpu_runs() {
    let stage = |name: &str| broadloom(&["explain", "examples/reduce.ptx", "--emit", name, "--block", "256"]).exits(0);
    stage("linearised").says(&[".visible .entry reduce(", "vote.sync.any.pred", "bar.sync"]);
    stage("llvm").says(&["define", "@kernel(", "<32 x float>"]);
    stage("llvm-opt").says(&["define", "@kernel("]);
    stage("asm").says(&["kernel:\n", ".text"]);
    broadloom(&["explain", "examples/reduce.ptx", "--emit", "asm"]).exits(2).complains(&["one shape of block", "--block 256"]);
    broadloom(&["explain", "examples/reduce.ptx", "--emit", "llvm", "--block", "32", "--kernel", "x"])
        .exits(2)
        .complains(&["no kernel `x`"]);
}

/// Code for a named CPU is shown on any x86-64 host, and an unknown name is reported.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "skipped: the CPUs that can be named are x86-64")]
fn code_for_a_cpu_that_is_named() {
    let asm = |cpu: &str| {
        shell(&format!("BROADLOOM_CPU={cpu} broadloom explain examples/saxpy.ptx --emit asm --block 256; echo code $?")).out
    };
    assert!(asm("znver4").contains("zmm") && asm("haswell").contains("ymm") && !asm("haswell").contains("zmm"));
    let unknown = asm("z80");
    assert!(unknown.contains("BROADLOOM_CPU=z80: no CPU `z80` is known; known are x86-64, "), "{unknown}");
    assert!(unknown.ends_with("code 2\n"), "{unknown}");
    let run = shell(
        "BROADLOOM_CPU=z80 broadloom run examples/saxpy.ptx --device cpu --block 32 --arg f32:2 --arg f32[32]:iota \
                     --arg f32[32]:iota --arg i32:32; echo code $?",
    );
    assert!(run.out.contains("BROADLOOM_CPU=z80: no CPU `z80` is known") && run.out.ends_with("code 2\n"), "{}", run.out);
}

#[test]
fn what_the_cpu_does_not_run_is_no_mistake_of_ours() {
    let text =
        ".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {\n  .reg .b32 %r;\n  frobnicate.b32 %r, %r;\n  ret;\n}\n";
    broadloom_with_input(&["explain", "-", "--emit", "llvm", "--block", "32"], text.as_bytes())
        .exits(3)
        .complains(&["the CPU does not run `frobnicate.b32`", "<stdin>:6:3"]);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    // The output is larger than any pipe buffer, so the writer must notice the closed end.
    let loud = shell("broadloom explain --emit ptx corpus/ptx/double_math.sm75.g.ptx; echo code $?").exits(0);
    assert!(loud.out.len() > 1 << 16 && loud.out.ends_with("code 0\n"));
    let cut = shell("{ broadloom explain --emit ptx corpus/ptx/double_math.sm75.g.ptx; echo code $? >&2; } | head -n 1").exits(0);
    assert!(cut.out.contains("code 0") && !cut.out.contains("panicked") && !cut.out.contains("error"), "{}", cut.out);
}

#[test]
fn a_full_disk_is_a_failure() {
    let launch = "examples/saxpy.ptx --arg f32:1 --arg f32[2]:1,2 --arg f32[2]:zero= --arg u32:2";
    for command in [
        "--help",
        "--version",
        "help",
        "help run",
        "bench --help",
        "effect list",
        "ptxas --version",
        "devices",
        "cache",
        "explain examples/saxpy.ptx",
        "explain examples/blur.graph",
        "run examples/nesl/quicksort.nesl",
        "run examples/stream/fft.str -i 2",
        &format!("run {launch}"),
        &format!("check {launch} --json -"),
        "bench kernels/saxpy --quick --no-peers -d interp",
    ] {
        let full = shell(&format!("broadloom {command} > /dev/full; echo code $?")).exits(0);
        let told = full.out.contains("standard output cannot be written: No space left on device");
        assert!(told && full.out.ends_with("code 3\n"), "{command}: {}", full.out);
    }
}

#[test]
fn colours_only_where_asked_or_seen() {
    let plain = broadloom(&["explain", "examples/saxpy.ptx"]).exits(0);
    assert!(!plain.out.contains('\x1b'));
    let styled = broadloom(&["explain", "examples/saxpy.ptx", "--color", "always"]).exits(0);
    assert!(styled.out.contains("\x1b[1mkernel saxpy\x1b[0m"));
}

#[test]
fn names_what_cannot_be_executed_with_its_place() {
    let text =
        ".version 7.0\n.target sm_70\n.address_size 64\n.entry k() {\n  .reg .b32 %r;\n  frobnicate.b32 %r, %r;\n  ret;\n}\n";
    broadloom_with_input(&["explain", "-"], text.as_bytes()).exits(0).says(&[
        "not in the table 1 frobnicate.b32",
        "what cannot be executed",
        "<stdin>:6:3: the interpreter does not run `frobnicate.b32`",
    ]);
}

#[test]
fn says_when_all_can_be_executed() {
    broadloom(&["explain", "examples/saxpy.ptx"]).exits(0).says(&["\nevery instruction can be executed\n"]);
}
