//! Code that the verifier accepts or refuses. Every line was checked with NVIDIA's assembler, which agrees.

use broadloom_diag::{Code, Diagnostics, Sources};
use broadloom_ptx::verify::codes;
use broadloom_ptx::{parse, verify};

const REGISTERS: &str = "
    .reg .pred %p<4>; .reg .b8 %rc<4>; .reg .b16 %rs<4>; .reg .u16 %us<4>; .reg .f16 %h<4>; .reg .f16x2 %hh<4>;
    .reg .b32 %r<8>; .reg .u32 %u<4>; .reg .s32 %s<4>; .reg .f32 %f<8>; .reg .b64 %rd<8>; .reg .u64 %ud<4>;
    .reg .f64 %fd<4>; .reg .b128 %q<2>;";

const VARIABLES: &str = "
    .global .align 4 .b8 bytes[16]; .global .align 8 .f64 doubles[4]; .shared .f32 tile[4]; .const .u32 table[4];
    .extern .shared .align 16 .b8 dynamic[]; .global .texref image;
    .func (.param .b32 r) f(.param .b32 a, .param .b64 b) { st.param.b32 [r], 1; ret; }
    .func (.reg .b32 r) in_registers(.reg .b32 a) { mov.b32 r, a; ret; }
    .func struct_taker(.param .align 8 .b8 a[16]) { ret; }
    .func float_taker(.param .f32 a) { ret; }
    .func nothing() { ret; }
    .entry other() { ret; }";

fn check(text: &str) -> Result<(), (Sources, Diagnostics)> {
    let mut sources = Sources::new();
    let id = sources.add("t.ptx", text);
    let module = parse(&sources, id).unwrap_or_else(|d| panic!("{}", sources.render_all(&d)));
    verify(module).map(drop).map_err(|diagnostics| (sources, diagnostics))
}

fn with_header(text: &str) -> String {
    format!(".version 8.5\n.target sm_90\n.address_size 64\n{text}\n")
}

fn in_kernel(body: &str) -> String {
    with_header(&format!("{VARIABLES}\n.visible .entry k(.param .u64 P) {{{REGISTERS}\n{body}\nret;\n}}"))
}

#[track_caller]
fn accept(text: &str, shown: &str) {
    if let Err((sources, diagnostics)) = check(text) {
        panic!("`{shown}` should verify:\n{}", sources.render_all(&diagnostics));
    }
}

#[track_caller]
fn refuse(text: &str, shown: &str, code: Code) {
    let Err((sources, diagnostics)) = check(text) else { panic!("`{shown}` should not verify") };
    let found: Vec<Code> = diagnostics.iter().map(|d| d.code).collect();
    assert!(found.contains(&code), "`{shown}` should give {code}, not:\n{}", sources.render_all(&diagnostics));
    assert!(diagnostics.iter().all(|d| d.primary.is_some()), "`{shown}`: a diagnostic without a place");
}

fn accept_in_kernel(lines: &[&str]) {
    lines.iter().for_each(|line| accept(&in_kernel(line), line));
}

fn refuse_in_kernel(code: Code, lines: &[&str]) {
    lines.iter().for_each(|line| refuse(&in_kernel(line), line, code));
}

fn accept_in_module(lines: &[&str]) {
    lines.iter().for_each(|line| accept(&with_header(line), line));
}

fn refuse_in_module(code: Code, lines: &[&str]) {
    lines.iter().for_each(|line| refuse(&with_header(line), line, code));
}

#[test]
fn registers_of_the_right_kind_and_width() {
    accept_in_kernel(&[
        "add.u32 %r0, %r1, %s2;",
        "add.f32 %r0, %f1, %r2;",
        "add.f16 %rs0, %h1, %rs2;",
        "add.f16x2 %r0, %hh1, %r2;",
        "add.u32 %hh0, %r1, %r2;",
        "and.b32 %f0, %u1, %hh2;",
        "and.b64 %fd0, %rd1, %rd2;",
        "mov.b32 %f0, %r1;",
        "selp.b16 %h0, %h1, %h2, %p0;",
        "setp.lt.and.f32 %p0, %r1, %f2, !%p1;",
        "shl.b64 %rd0, %rd1, %r2;",
        "mul.wide.s16 %r0, %rs1, %rs2;",
        "popc.b64 %r0, %rd0;",
        "cvt.u32.u8 %r0, %rs1;",
        "cvt.u8.u32 %rc0, %r1;",
        "cvt.rn.f32.u32 %rd0, %r1;",
        "cvt.rn.bf16.f32 %rs0, %f1;",
        "cvt.rna.tf32.f32 %r0, %f1;",
        "ld.global.u8 %rd1, [%rd0];",
        "ld.global.b8 %f0, [%rd0];",
        "ld.global.f32 %rd1, [%rd0];",
        "st.global.b16 [%rd0], %f1;",
        "shfl.sync.idx.b32 %f0, %f1, 0, 31, -1;",
    ]);
    refuse_in_kernel(
        codes::WRONG_KIND,
        &[
            "add.u32 %f0, %r1, %r2;",
            "add.f32 %f0, %u1, %f2;",
            "add.u16 %h0, %rs1, %rs2;",
            "add.f16 %us0, %h1, %rs2;",
            "add.f16x2 %f0, %hh1, %r2;",
            "add.bf16 %h0, %h1, %h2;",
            "add.bf16x2 %hh0, %hh1, %hh2;",
            "mov.u32 %f0, %r1;",
            "mov.u32 %r0, %p1;",
            "and.pred %p0, %p1, %r2;",
            "selp.b32 %r0, %r1, %r2, %r3;",
            "setp.eq.u32 %p0, %r1, %f2;",
            "cvt.rn.f32.u32 %f0, %f1;",
            "cvt.rna.tf32.f32 %f0, %f1;",
            "ld.global.u8 %f0, [%rd0];",
            "st.global.f32 [%rd0], %u1;",
            "red.global.add.u32 [%rd0], %f1;",
        ],
    );
    refuse_in_kernel(
        codes::WRONG_WIDTH,
        &[
            "add.u32 %rd0, %r1, %r2;",
            "add.u16 %rs0, %rs1, %r2;",
            "mov.b32 %rd0, %r1;",
            "mov.b16 %rc0, %rs1;",
            "shl.b32 %r0, %r1, %rd2;",
            "cvt.u32.u64 %r0, %r1;",
            "cvt.f32.f16 %f0, %f1;",
            "cvt.rn.bf16.f32 %r0, %f1;",
            "ld.global.f32 %fd0, [%rd0];",
            "ld.global.u32 %rs0, [%rd0];",
            "st.global.u16 [%rd0], %rc1;",
            "atom.global.add.u32 %rd1, [%rd0], 1;",
            "popc.b64 %rd0, %rd0;",
            "bar.sync %rd0;",
        ],
    );
}

#[test]
fn guards_are_predicates() {
    // The parser reports a bad guard first, so `verify_structure.rs` builds one by hand. Here are the valid
    // guards.
    accept_in_kernel(&["@%p0 add.u32 %r0, %r1, %r2;", "@!%p1 ret;"]);
}

#[test]
fn immediates_of_the_right_kind() {
    accept_in_kernel(&[
        "add.u32 %r0, %r1, 4294967296;",
        "add.u32 %r0, %r1, -2147483649;",
        "add.s16 %rs0, %rs1, 65535;",
        "add.f32 %f0, %f1, 0d3FF0000000000000;",
        "add.f64 %fd0, %fd1, 0f3F800000;",
        "mov.b32 %r0, 0f3F800000;",
        "mov.b64 %rd0, 0d3FF0000000000000;",
        "st.global.u8 [%rd0], 256;",
        "st.global.v2.f32 [%rd0], {1.0, %f1};",
        "selp.b32 %r0, 1, 2, 1;",
        "mov.pred %p0, 2;",
        "bfe.u32 %r0, %r1, 255, 0;",
        "bar.sync 15;",
        "bar.sync 0, 0;",
        "pmevent 15;",
    ]);
    refuse_in_kernel(
        codes::BAD_IMMEDIATE,
        &[
            "add.u32 %r0, %r1, 1.0;",
            "add.u32 %r0, %r1, 0f3F800000;",
            "add.f32 %f0, %f1, 1;",
            "add.f64 %fd0, %fd1, 1;",
            "and.b32 %r0, %r1, 1.0;",
            "mov.u32 %r0, 0f3F800000;",
            "mov.b32 %r0, 0d3FF0000000000000;",
            "mov.b64 %rd0, 0f3F800000;",
            "add.f16 %rs0, %rs1, 1.0;",
            "fma.rn.f16 %rs0, %rs1, %rs2, 0x3C00;",
            "add.f16x2 %r0, %r1, 5;",
            "st.global.f32 [%rd0], 1;",
            "st.global.v2.f32 [%rd0], {%f0, 1};",
        ],
    );
    refuse_in_kernel(
        codes::OUT_OF_RANGE,
        &[
            "bfe.u32 %r0, %r1, 300, 2;",
            "bfe.u32 %r0, %r1, -1, 2;",
            "bfi.b32 %r0, %r1, %r2, 1, 256;",
            "bar.sync 16;",
            "bar.sync -1;",
            "bar.sync 0, 33;",
            "bar.arrive 0, 0;",
            "pmevent 16;",
            "discard.global.L2 [%rd0], 64;",
        ],
    );
}

#[test]
fn vectors_sinks_and_parts() {
    accept_in_kernel(&[
        "ld.global.v2.u32 {%r0, _}, [%rd0];",
        "ld.global.v2.u32 {%r0, %f1}, [%rd0];",
        "ld.global.v2.u8 {%rs0, %rs1}, [%rd0];",
        "ld.global.b16 { %rs0 }, [%rd0];",
        "mov.b64 %rd0, {%r0, %f1};",
        "mov.b64 %rd0, {%rs0, %rs1, %rs1, %h1};",
        "mov.b64 %rd0, {%r0, 1};",
        "mov.b64 {%r0, _}, %rd0;",
        "mov.b16 %rs0, {%rc0, %rc1};",
        "mov.b128 %q0, {%rd1, %rd2};",
        "atom.global.add.u32 _, [%rd0], 1;",
    ]);
    refuse_in_kernel(
        codes::BAD_VECTOR,
        &["ld.global.v2.u8 {%r0, %rs1}, [%rd0];", "mov.b64 %rd0, {%r0, %rs1};", "mov.b64 %rd0, {%r0, %r1, %r2};"],
    );
    refuse_in_kernel(codes::WRONG_WIDTH, &["mov.b64 %rd0, {%rs0, %rs1};", "mov.b32 {%r0, %r1}, %r2;"]);
    refuse_in_kernel(codes::WRONG_KIND, &["ld.global.v2.f32 {%f1, %u0}, [%rd0];", "ld.global.v2.u32 {_, %f1}, [%rd0];"]);
    refuse_in_kernel(codes::BAD_SINK, &["ld.global.u32 _, [%rd0];", "ld.global.v2.u32 {_, _}, [%rd0];", "add.u32 _, %r0, %r1;"]);
    refuse_in_kernel(
        codes::BAD_PART,
        &["add.s32 %r0, -%r1, %r2;", "add.u32 %r0, %r1.b0, %r2;", "vadd.s32.s32.s32 %r0, -%r1, %r2;"],
    );
}

#[test]
fn special_registers() {
    accept_in_kernel(&[
        "mov.u32 %r0, %tid.x;",
        "mov.s32 %r0, %tid.x;",
        "mov.u16 %rs0, %tid.x;",
        "mov.u64 %rd0, %clock64;",
        "mov.u32 %r0, %gridid;",
        "cvt.u64.u32 %rd0, %tid.x;",
        "mov.pred %p0, %is_explicit_cluster;",
    ]);
    refuse_in_kernel(
        codes::BAD_SPECIAL,
        &[
            "mov.u64 %rd0, %tid.x;",
            "mov.u32 %r0, %clock64;",
            "mov.f32 %f0, %tid.x;",
            "add.u32 %r0, %r1, %tid.x;",
            "st.global.u32 [%rd0], %tid.x;",
            "setp.eq.u32 %p0, %tid.x, 0;",
        ],
    );
}

#[test]
fn addresses() {
    accept_in_kernel(&[
        "ld.global.u32 %r0, [%ud1];",
        "ld.shared.u32 %r0, [%r1];",
        "ld.shared.u32 %r0, [%rd1];",
        "ld.param.u64 %rd0, [P];",
        "ld.param.u32 %r0, [P+4];",
        "ld.global.u32 %r0, [bytes+-4];",
        "ld.global.u64 %rd0, [bytes];",
        "ld.u32 %r0, [tile];",
        "ld.const.u32 %r0, [table+100];",
        "ld.shared.f32 %f0, [dynamic+1000];",
        "ld.local.u32 %r0, [16];",
        "atom.add.u32 %r0, [tile], 1;",
        "mov.u64 %rd0, bytes+4;",
        "mov.u32 %r0, tile;",
        "mov.u32 %r0, table;",
        "mov.u64 %rd0, nothing;",
        "mov.u64 %rd0, P;",
        "cvta.global.u64 %rd0, bytes;",
    ]);
    refuse_in_kernel(
        codes::BAD_ADDRESS,
        &[
            "ld.global.u32 %r0, [%r1];",
            "ld.u32 %r0, [%r1];",
            "ld.global.u32 %r0, [%fd1];",
            "ld.shared.u32 %r0, [%f1];",
            "ld.shared.u32 %r0, [%p1];",
            "ld.global.u32 %r0, [nothing];",
            "ld.global.u32 %r0, [16];",
            "atom.shared.add.u32 %r0, [0], 1;",
            "ld.global.u32 %r0, [image];",
        ],
    );
    refuse_in_kernel(
        codes::WRONG_SPACE,
        &[
            "ld.shared.u32 %r0, [bytes];",
            "ld.const.u32 %r0, [bytes];",
            "st.global.u32 [table], 1;",
            "atom.global.add.u32 %r0, [tile], 1;",
            "ld.u64 %rd0, [P];",
            "ld.global.u64 %rd0, [P];",
            "cvta.shared.u64 %rd0, bytes;",
        ],
    );
    refuse_in_kernel(
        codes::BAD_SYMBOL,
        &["mov.u32 %r0, bytes;", "mov.f64 %fd0, tile;", "mov.u64 %rd0, nothing+4;", "mov.b16 %rs0, tile;"],
    );
    refuse_in_kernel(codes::BAD_PARAM_USE, &["st.param.u64 [P], %rd0;", "{ .param .b32 x; mov.u64 %rd0, x; }"]);
    refuse_in_module(
        codes::BAD_PARAM_USE,
        &[
            ".func (.param .b32 r) g() { .reg .b32 %x; ld.param.b32 %x, [r]; ret; }",
            ".func g(.param .b32 a) { st.param.b32 [a], 1; ret; }",
        ],
    );
}

/// The assembler accepts these, but no machine can run them.
#[test]
fn offsets_that_are_never_aligned() {
    accept_in_kernel(&["ld.global.f64 %fd0, [doubles+8];", "ld.global.u64 %rd0, [bytes+4];", "ld.global.u8 %rs0, [bytes+3];"]);
    refuse_in_kernel(
        codes::MISALIGNED,
        &["ld.global.f64 %fd0, [doubles+4];", "ld.global.u32 %r0, [bytes+2];", "st.shared.u16 [tile+-1], 1;"],
    );
}

#[test]
fn calls_fit_their_callee() {
    accept_in_kernel(&[
        "{ .param .b32 x; .param .b64 y; .param .b32 z; call (z), f, (x, y); }",
        "{ .param .f32 x; .param .f64 y; .param .s32 z; call (z), f, (x, y); }",
        "call (%r0), f, (%f1, 2);",
        "call (_), f, (%r0, %rd0);",
        "call (%f0), in_registers, (%r1);",
        "call nothing;",
        "{ .param .align 8 .b32 x[4]; call struct_taker, (x); }",
        "call float_taker, (%r0);",
        "{ p: .callprototype (.param .b32 _) _ (.param .b32 _); call (%r0), %rd0, (%r1), p; }",
    ]);
    refuse_in_kernel(
        codes::ARGUMENT_COUNT,
        &[
            "call f, (%r0, %rd0);",
            "call (%r0), f, (%r0);",
            "{ p: .callprototype (.param .b32 _) _ (.param .b32 _); call (%r0), %rd0, (), p; }",
        ],
    );
    refuse_in_kernel(
        codes::BAD_ARGUMENT,
        &[
            "{ .param .b32 x; .param .b64 y; .param .b64 z; call (z), f, (x, y); }",
            "call (%r0), f, (%rd0, %rd0);",
            "call (%rd0), in_registers, (%r1);",
            "{ .param .align 4 .b8 x[16]; call struct_taker, (x); }",
            "{ .param .align 8 .b8 x[12]; call struct_taker, (x); }",
            "call struct_taker, (%rd0);",
            "call float_taker, (%u0);",
            "call float_taker, (1);",
            "{ .global .b32 x; call float_taker, (x); }",
            "call (%r0), f, (1, P);",
        ],
    );
    refuse_in_kernel(codes::BAD_CALLEE, &["call other;", "call %rd0;", "{ p: .callprototype _ (); call %fd0, (), p; }"]);
}

#[test]
fn heads_of_functions() {
    accept_in_module(&[
        ".entry k() .maxntid 2048 { ret; }",
        ".entry k() .reqntid 32 .minnctapersm 2 .maxnreg 10000 { ret; }",
        ".func f() .noreturn { exit; }",
        ".entry k(.param .f32 a[4], .param .texref t, .param .u64 .ptr .global .align 4 p) { ret; }",
        ".entry k(.param .b8 a[32764]) { ret; }",
        ".func (.reg .b32 a, .reg .pred b) f(.param .b8 q[]) { ret; }",
        ".entry k() { }",
        ".entry k() { bra L; L: }",
        ".func f() { ret; } .func g(); .alias g, f; .entry k() { call g; ret; }",
        ".weak .func f() { ret; } .extern .func g(); .extern .entry k();",
        ".entry k() { .reg .u32 %i; t: .branchtargets A, A; brx.idx %i, t; A: ret; }",
    ]);
    refuse_in_module(
        codes::BAD_DIRECTIVE,
        &[
            ".entry k() .maxntid 0 { ret; }",
            ".entry k() .maxntid 32, 0 { ret; }",
            ".entry k() .maxntid 32 .reqntid 32 { ret; }",
            ".entry k() .maxnreg 0 { ret; }",
            ".func f() .maxntid 32 { ret; }",
            ".entry k() .noreturn { ret; }",
            ".func (.param .b32 r) f() .noreturn { exit; }",
        ],
    );
    refuse_in_module(
        codes::BAD_PARAM,
        &[
            ".entry k(.param .v4 .f32 a) { ret; }",
            ".func (.param .b32 r, .param .b32 s) f() { ret; }",
            ".func f(.param .u64 .ptr .global a) { ret; }",
        ],
    );
    refuse_in_module(codes::INCOMPLETE, &[".entry k(.param .f32 a[]) { ret; }", ".entry k(.param .b8 a[0]) { ret; }"]);
    refuse_in_module(
        codes::LIMIT,
        &[".entry k(.param .b8 a[32765]) { ret; }", ".entry k(.param .b8 a[32761], .param .u64 b) { ret; }"],
    );
    refuse_in_module(codes::BAD_LINKAGE, &[".extern .func f() { ret; }", ".common .func f() { ret; }"]);
    refuse_in_module(
        codes::BAD_ALIAS,
        &[
            ".entry k() { ret; } .func g(); .alias g, k;",
            ".func f() { ret; } .func g() { ret; } .alias g, f;",
            ".func f(.param .b32 a) { ret; } .func g(); .alias g, f;",
        ],
    );
    refuse_in_module(codes::WRONG_WIDTH, &[".entry k() { .reg .u64 %i; t: .branchtargets A; brx.idx %i, t; A: ret; }"]);
}

#[test]
fn variables_and_their_contents() {
    accept_in_module(&[
        ".global .b8 a[4] = {1, 2};",
        ".global .b8 a = 256;",
        ".global .f32 a = 1.0; .global .f64 b = 0f3F800000; .global .b32 c = 1.0;",
        ".global .b32 a[2][2] = {{1, 2}, {3, 4}};",
        ".global .b32 a[][2] = {{1, 2}, {3, 4}};",
        ".global .v2 .b32 a[2] = {{1, 2}, {3, 4}};",
        ".global .b32 x; .global .u64 a[2] = {x, generic(x)+4}; .global .u8 b[2] = {0xFF(x), 0xFF00(x)};",
        ".func f() { ret; } .const .u64 a[1] = {f};",
        ".extern .global .b32 a; .extern .shared .b32 b[]; .common .global .b32 c; .weak .global .b32 d = 1;",
        ".const .b8 a[65536];",
        ".global .b128 a; .global .f16x2 b; .global .texref t[4];",
        ".global .align 1073741824 .b8 a; .global .align 1 .b32 b;",
        ".global .attribute(.managed) .b32 a;",
        ".global .samplerref s = {addr_mode_0 = clamp_to_border, filter_mode = linear, force_unnormalized_coords = 1};",
        ".global .texref t[2] = {{width = 3, channel_data_type = 0x10DE}, {width = 4}}; .global .surfref s = {};",
        ".entry k() { .local .b32 l; .shared .b32 s; .global .b32 g = 5; .const .b32 c[] = {1, 2}; ret; }",
    ]);
    refuse_in_module(
        codes::BAD_INITIALISER,
        &[
            ".global .b8 a[4] = 1;",
            ".global .b8 a = {1};",
            ".global .b32 a[2] = {1, 2, 3};",
            ".global .b32 a[2][2] = {1, 2, 3, 4};",
            ".global .u8 a = 1.0;",
            ".global .f32 a = 1;",
            ".global .f16 a = 1.0;",
            ".shared .b32 a = 1;",
            ".entry k() { .local .b32 a = 1; ret; }",
            ".global .b32 x; .global .b64 a = x;",
            ".global .b32 x; .global .u8 a = x;",
            ".global .b32 x; .global .u8 a = 0xFF0(x);",
            ".shared .b32 x; .global .u64 a = x;",
            ".func f() { ret; } .global .u64 a = f+4;",
            ".global .samplerref s = {width = 3};",
            ".global .samplerref s = {addr_mode_0 = nonsense};",
            ".global .texref t = 1;",
            ".global .b32 a = {width = 1};",
        ],
    );
    refuse_in_module(
        codes::BAD_VARIABLE,
        &[".local .b32 a;", ".shared .texref t;", ".shared .attribute(.managed) .b32 a;", ".const[1] .b8 a[4];", ".tex .u32 t;"],
    );
    refuse_in_module(
        codes::INCOMPLETE,
        &[".global .b32 a[];", ".global .b32 a[0];", ".global .b32 a[1][0];", ".entry k() { .shared .b32 a[]; ret; }"],
    );
    refuse_in_module(codes::BAD_LINKAGE, &[".extern .global .b32 a = 1;", ".common .shared .b32 a;"]);
}

#[test]
fn memory_has_limits() {
    refuse_in_module(
        codes::LIMIT,
        &[
            ".const .b8 a[65537];",
            ".const .b8 a[40000]; .const .b8 b[40000];",
            ".global .b8 a[1152921504606846976];",
            ".shared .b8 a[1152921504606846976];",
            ".shared .align 1073741824 .b8 a[4]; .shared .align 1073741824 .b8 b[4];",
            ".entry k() { .local .b8 a[1152921504606846976]; ret; }",
            ".entry k() { .param .b8 a[1152921504606846976]; ret; }",
            ".entry k() { .shared .b8 a[49153]; .reg .u32 %r; mov.u32 %r, a; ret; }",
        ],
    );
    accept_in_module(&[".shared .b8 a[232448]; .entry k() { ret; }"]);
}

#[test]
fn versions_and_targets() {
    let module = |version: &str, target: &str, line: &str| {
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ .reg .b32 %r<4>; .reg .b64 %rd<2>;\n{line}\nret; }}"
        )
    };
    let activemask = "activemask.b32 %r0;";
    accept(&module("6.2", "sm_70", activemask), activemask);
    refuse(&module("6.1", "sm_70", activemask), activemask, codes::NEEDS_VERSION);
    let redux = "redux.sync.add.u32 %r0, %r1, -1;";
    accept(&module("7.0", "sm_80", redux), redux);
    refuse(&module("7.0", "sm_75", redux), redux, codes::NEEDS_TARGET);
    let setmaxnreg = "setmaxnreg.inc.sync.aligned.u32 24;";
    accept(&module("8.0", "sm_90a", setmaxnreg), setmaxnreg);
    refuse(&module("8.0", "sm_90", setmaxnreg), setmaxnreg, codes::NEEDS_TARGET);
    let special = "mov.u32 %r0, %cluster_ctarank;";
    accept(&module("7.8", "sm_90", special), special);
    refuse(&module("7.8", "sm_89", special), special, codes::NEEDS_TARGET);
    refuse(&module("7.7", "sm_80", special), special, codes::NEEDS_VERSION);

    let Err((_, found)) = check(&module("6.3", "sm_80", "")) else { panic!("sm_80 is newer than PTX 6.3") };
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), [codes::BAD_HEADER]);
    // A hundred uses of an unavailable instruction are one finding.
    let many = activemask.repeat(100);
    let Err((_, found)) = check(&module("6.1", "sm_70", &many)) else { panic!("activemask is newer") };
    assert_eq!(found.error_count(), 1);
}

#[test]
fn large_parameters_need_a_new_version() {
    let kernel = |version: &str, bytes: u32| {
        format!(".version {version}\n.target sm_75\n.address_size 64\n.entry k(.param .b8 a[{bytes}]) {{ ret; }}")
    };
    accept(&kernel("8.0", 4352), "4352 bytes");
    refuse(&kernel("8.0", 4353), "4353 bytes", codes::LIMIT);
    accept(&kernel("8.1", 4353), "4353 bytes");
}

#[test]
fn findings_say_what_to_do() {
    let text = in_kernel("add.u64 %rd0, %rd1, %r2;");
    let Err((sources, diagnostics)) = check(&text) else { panic!("mixed widths") };
    let shown = sources.render_all(&diagnostics);
    for part in ["`%r2` is a `.b32` register", "`b` of `add.u64`", "`cvt.u64.u32` converts the value"] {
        assert!(shown.contains(part), "`{part}` is missing in:\n{shown}");
    }
}

#[test]
fn opaque_instructions_pass() {
    accept_in_kernel(&["frobnicate.b32 %r0, %r1;"]);
}
