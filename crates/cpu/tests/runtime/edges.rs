//! Rows that are read beyond their edges with a clamped index: lanes near an edge lie within few elements,
//! which are read at once.

use crate::support::{for_avx512, parsed};
use broadloom_cpu::compile::{Stage, show};
use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Argument, Device, Launch};

/// Returns a kernel in which each thread reads an element of its row, shifted by some columns and clamped to
/// the row. Only the first lanes of a warp do so.
fn text(guard: &str) -> String {
    format!(
        ".version 8.0 .target sm_80 .address_size 64
.visible .entry edges(.param .u64 a, .param .u64 c, .param .u32 width, .param .s32 by, .param .u32 lanes)
{{
    .reg .pred %p<2>; .reg .b32 %r<14>; .reg .b64 %rd<16>; .reg .f32 %f<2>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [c]; ld.param.u32 %r1, [width]; ld.param.s32 %r2, [by]; ld.param.u32 %r3, [lanes];
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %tid.x; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %nctaid.x;
    mad.lo.s32 %r8, %r4, 32, %r5;
    add.s32 %r9, %r8, %r2;
    sub.s32 %r10, %r1, 1;
    min.s32 %r9, %r9, %r10;
    max.s32 %r9, %r9, 0;
    mul.lo.s32 %r11, %r6, %r1;
    cvt.s64.s32 %rd3, %r11; cvt.s64.s32 %rd4, %r9;
    add.s64 %rd5, %rd3, %rd4;
    mul.lo.s64 %rd6, %rd5, 4;
    add.s64 %rd7, %rd1, %rd6;
    mul.lo.s32 %r12, %r6, %r7;
    mad.lo.s32 %r13, %r12, 32, %r8;
    mul.wide.u32 %rd8, %r13, 4;
    add.s64 %rd9, %rd2, %rd8;
    {guard}
    ld.global.f32 %f1, [%rd7];
    st.global.f32 [%rd9], %f1;
DONE:
    ret;
}}"
    )
}

const GUARD: &str = "setp.ge.u32 %p1, %r5, %r3; @%p1 bra DONE;";

#[test]
fn rows_are_read_beyond_their_edges() {
    let cpu = Cpu::new(Options { threads: 2, cache: CacheFolder::Nowhere, ..Options::default() }).unwrap();
    let device = Device::new(cpu);
    // Whole pages: nothing is readable after the last row.
    let (rows, width) = (128usize, 256usize);
    let a = device.upload(&(0..rows * width).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let across = width.div_ceil(32) + 1;
    for guard in ["", GUARD] {
        let module = std::sync::Arc::new(broadloom_ptx::verify(parsed(text(guard))).unwrap());
        let kernel = device.load(&module).unwrap().kernel("edges").unwrap();
        for (by, lanes) in [-300, -45, -33, -32, -31, -5, -1, 0, 1, 3, 30, 31, 32, 40, 300]
            .into_iter()
            .flat_map(|by| [(by, 32), (by, 20), (by, 1)])
        {
            let c = device.zeros::<f32>(rows * across * 32).unwrap();
            let arguments =
                [Argument::from(&a), Argument::from(&c), Argument::from(width as u32), Argument::from(by), Argument::from(lanes)];
            let launch = Launch::new([across as u32, rows as u32, 1], [32, 1, 1]);
            kernel.launch(&launch, &arguments).unwrap();
            for (i, got) in c.read().unwrap().into_iter().enumerate() {
                let (row, column) = (i / (across * 32), i % (across * 32));
                let held = (column as i64 + i64::from(by)).clamp(0, width as i64 - 1) as usize;
                let is_read = guard.is_empty() || column % 32 < lanes as usize;
                let want = if is_read { (row * width + held) as f32 } else { 0.0 };
                assert_eq!(got, want, "row {row}, column {column}, {by} further, {lanes} lanes, {guard:?}");
            }
        }
    }
}

/// Lanes near an edge read one row and get their elements from it; arbitrary lanes are still gathered.
#[test]
fn lanes_near_an_edge_read_one_row() {
    for guard in ["", GUARD] {
        let module = parsed(text(guard));
        let (kernel, _) = module.kernels().next().unwrap();
        let code = show(&module, kernel, [32, 1, 1], &for_avx512(), Stage::Llvm).unwrap();
        assert!(code.contains("vpermi2var") && code.contains("llvm.masked.gather"), "{code}");
        // The index is 32 bits: 64-bit addresses are not compared.
        assert!(!code.contains("icmp eq <32 x i64>"), "{code}");
    }
}
