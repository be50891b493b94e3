//! Loads at loaded indices: lanes within 64 words are read at once and distributed, others are gathered.

use crate::support::{for_avx512, parsed};
use broadloom_cpu::compile::{Stage, show};
use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Device, Launch};

/// Returns a kernel in which thread `i` reads an index and the element there.
fn text(guard: &str) -> String {
    format!(
        ".version 8.0 .target sm_80 .address_size 64
.visible .entry at(.param .u64 a, .param .u64 indices, .param .u64 c, .param .u32 lanes)
{{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<10>; .reg .f32 %f<2>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [indices]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [lanes];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r2, 32, %r3;
    mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd2, %rd4; add.s64 %rd6, %rd3, %rd4;
    ld.global.s32 %r5, [%rd5];
    {guard}
    mad.wide.s32 %rd7, %r5, 4, %rd1;
    ld.global.f32 %f1, [%rd7];
    st.global.f32 [%rd6], %f1;
DONE:
    ret;
}}"
    )
}

const GUARD: &str = "setp.ge.u32 %p1, %r3, %r1; @%p1 bra DONE;";

/// Indices of a warp, counted from some element: ascending, descending, around the first lane, in a table, equal, and further apart than a window.
fn shapes() -> Vec<Vec<i32>> {
    let of = |index: fn(i32) -> i32| (0..32).map(index).collect::<Vec<i32>>();
    vec![
        of(|i| i * 2 / 3),
        of(|i| 2 * i),
        of(|i| 63 * (i / 31)),
        of(|i| 64 * (i / 31)),
        of(|i| 31 - i),
        of(|i| i * 37 % 64),
        of(|i| (i * 11 + 7) % 12 + i / 8 * 12),
        of(|_| 5),
        of(|i| i * 1009 % 4096),
    ]
}

#[test]
fn lanes_read_their_elements_from_windows_and_beyond() {
    let device = Device::new(Cpu::new(Options { threads: 1, cache: CacheFolder::Nowhere, ..Options::default() }).unwrap());
    // Whole pages: nothing is readable after the last element.
    let count = 8192;
    let a = device.upload(&(0..count).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let mut indices: Vec<i32> = vec![];
    for first in [0, 1, 960, 961, 1000, 1023, 4000, count - 65, count - 64, count - 32, count - 1] {
        indices.extend(shapes().iter().flatten().map(|index| (first + index).min(count - 1)));
    }
    let blocks = (indices.len() / 32) as u32;
    for guard in ["", GUARD] {
        let module = std::sync::Arc::new(broadloom_ptx::verify(parsed(text(guard))).unwrap());
        let kernel = device.load(&module).unwrap().kernel("at").unwrap();
        for lanes in if guard.is_empty() { vec![32u32] } else { vec![32, 9, 1, 0] } {
            // Indices of lanes that take no part lie anywhere.
            let takes_part = |thread: usize| thread % 32 < lanes as usize;
            let own = |(thread, index): (usize, &i32)| if takes_part(thread) { *index } else { i32::MAX - thread as i32 };
            let given = device.upload(&indices.iter().enumerate().map(own).collect::<Vec<i32>>()).unwrap();
            let c = device.upload(&vec![-1.0f32; indices.len()]).unwrap();
            kernel.launch(&Launch::linear(blocks, 32), &[(&a).into(), (&given).into(), (&c).into(), lanes.into()]).unwrap();
            for (thread, (found, index)) in c.read().unwrap().into_iter().zip(&indices).enumerate() {
                let expected = if takes_part(thread) { *index as f32 } else { -1.0 };
                assert_eq!(found, expected, "{guard} {lanes} lanes, thread {thread}");
            }
        }
    }
}

#[test]
fn windows_are_permuted_in_registers() {
    for guard in ["", GUARD] {
        let module = parsed(text(guard));
        let (kernel, _) = module.kernels().next().unwrap();
        let code = show(&module, kernel, [32, 1, 1], &for_avx512(), Stage::Llvm).unwrap();
        assert!(code.contains("vpermi2var") && code.contains("llvm.masked.gather"), "{code}");
    }
}

#[test]
fn lanes_in_rows_of_their_own_are_not_examined() {
    for (row, examined) in
        [("mul.lo.s32 %r5, %r5, %r1;", false), ("shl.b32 %r5, %r5, 10;", false), ("mul.lo.s32 %r5, %r5, 3;", true)]
    {
        let module = parsed(text(row));
        let (kernel, _) = module.kernels().next().unwrap();
        let code = show(&module, kernel, [32, 1, 1], &for_avx512(), Stage::Llvm).unwrap();
        assert_eq!(code.contains("vpermi2var"), examined, "{row}\n{code}");
        assert!(code.contains("llvm.masked.gather"), "{code}");
    }
}

/// Returns a kernel in which thread `i` reads an index, and sums the four elements from there on, each clamped to the array and weighed.
/// The last ones are read in another row.
fn taps(in_first_row: u32) -> String {
    let tap = |number: u32| {
        let row = if number < in_first_row { "%rd1" } else { "%rd9" };
        format!(
            "add.s32 %r6, %r5, {number}; min.s32 %r7, %r6, %r1; max.s32 %r8, %r7, 0; mad.wide.s32 %rd7, %r8, 4, {row};
    ld.global.f32 %f1, [%rd7]; fma.rn.f32 %f2, %f1, {}.0, %f2;",
            1 << number
        )
    };
    format!(
        ".version 8.0 .target sm_80 .address_size 64
.visible .entry taps(.param .u64 a, .param .u64 indices, .param .u64 c, .param .s32 last, .param .s32 row)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .f32 %f<3>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [indices]; ld.param.u64 %rd3, [c]; ld.param.s32 %r1, [last];
    ld.param.s32 %r9, [row]; mad.wide.s32 %rd9, %r9, 4, %rd1;
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r2, 32, %r3;
    mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd2, %rd4; add.s64 %rd6, %rd3, %rd4;
    ld.global.s32 %r5, [%rd5];
    mov.f32 %f2, 0.0;
    {} {} {} {}
    st.global.f32 [%rd6], %f2;
    ret;
}}",
        tap(0),
        tap(1),
        tap(2),
        tap(3)
    )
}

/// Loads from one row share a window of four vectors. Another row has a window of its own.
#[test]
fn loads_from_one_row_share_a_window() {
    let device = Device::new(Cpu::new(Options { threads: 1, cache: CacheFolder::Nowhere, ..Options::default() }).unwrap());
    let (count, row) = (8192, 5000);
    for (in_first_row, vectors) in [(4, 4), (2, 8)] {
        let parsed_taps = parsed(taps(in_first_row));
        let (kernel, _) = parsed_taps.kernels().next().unwrap();
        let code = show(&parsed_taps, kernel, [32, 1, 1], &for_avx512(), Stage::Llvm).unwrap();
        assert_eq!(code.matches("load <16 x i32>").count(), vectors, "{code}");
        let a = device.upload(&(0..count + row).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        let module = std::sync::Arc::new(broadloom_ptx::verify(parsed_taps).unwrap());
        let kernel = device.load(&module).unwrap().kernel("taps").unwrap();
        let mut indices: Vec<i32> = vec![];
        for first in [-40, -2, 0, 1, 958, 1000, 4000, count - 70, count - 64, count - 32, count - 1, i32::MAX - 5000, i32::MIN] {
            indices.extend(shapes().iter().flatten().map(|index| first.wrapping_add(*index)));
        }
        let given = device.upload(&indices).unwrap();
        let c = device.zeros::<f32>(indices.len()).unwrap();
        let arguments = [(&a).into(), (&given).into(), (&c).into(), (count - 1).into(), row.into()];
        kernel.launch(&Launch::linear((indices.len() / 32) as u32, 32), &arguments).unwrap();
        for (thread, (found, index)) in c.read().unwrap().into_iter().zip(&indices).enumerate() {
            let at = |tap: u32| {
                let index = index.wrapping_add(tap as i32).min(count - 1).max(0);
                (if tap < in_first_row { index } else { index + row }) as f32
            };
            assert_eq!(found, at(0) + 2.0 * at(1) + 4.0 * at(2) + 8.0 * at(3), "thread {thread}");
        }
    }
}
