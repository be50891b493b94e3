//! Loads at a computed index and at the next one: gathered together if they are adjacent in all lanes.

use crate::support::{for_avx512, parsed};
use broadloom_cpu::compile::{Stage, show};
use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Argument, Device, Launch};

/// Returns a kernel in which thread `i` reads at `i * scale + shift`, rounded down and clamped to the array,
/// and `step` further, also clamped. It stores both.
fn text(second: &str, guard: &str) -> String {
    format!(
        ".version 8.0 .target sm_80 .address_size 64
.visible .entry both(.param .u64 a, .param .u64 c, .param .f32 scale, .param .f32 shift, .param .s32 step, .param .s32 last, .param .u32 lanes)
{{
    .reg .pred %p<2>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .f32 %f<8>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [c]; ld.param.f32 %f1, [scale]; ld.param.f32 %f2, [shift];
    ld.param.s32 %r1, [step]; ld.param.s32 %r2, [last]; ld.param.u32 %r3, [lanes];
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %tid.x; mad.lo.u32 %r6, %r4, 32, %r5;
    mul.wide.u32 %rd3, %r6, 8; add.s64 %rd4, %rd2, %rd3;
    cvt.rn.f32.u32 %f3, %r6; fma.rn.f32 %f4, %f3, %f1, %f2; cvt.rmi.s32.f32 %r7, %f4;
    min.s32 %r7, %r7, %r2; max.s32 %r7, %r7, 0;
    {guard}
    mad.wide.s32 %rd5, %r7, 4, %rd1;
    ld.global.f32 %f5, [%rd5];
    {second}
    st.global.v2.f32 [%rd4], {{%f5, %f6}};
DONE:
    ret;
}}"
    )
}

const GUARD: &str = "setp.ge.u32 %p1, %r5, %r3; @%p1 bra DONE;";
const HELD: &str = "add.s32 %r8, %r7, %r1; min.s32 %r8, %r8, %r2; max.s32 %r8, %r8, 0; mad.wide.s32 %rd6, %r8, 4, %rd1; ld.global.f32 %f6, [%rd6];";
/// Second load as a compiler emits it for a known step.
const BEHIND: &str = "add.s32 %r8, %r7, 0; mad.wide.s32 %rd6, %r8, 4, %rd1; ld.global.f32 %f6, [%rd6+4];";

#[test]
fn neighbours_are_found_and_others_too() {
    let device = Device::new(Cpu::new(Options { threads: 1, cache: CacheFolder::Nowhere, ..Options::default() }).unwrap());
    // Whole pages: nothing is readable after the last element.
    let count = 4096usize;
    let a = device.upload(&(0..count).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let (blocks, last) = (3u32, count as i32 - 1);
    for guard in ["", GUARD] {
        for second in [HELD, BEHIND] {
            let module = std::sync::Arc::new(broadloom_ptx::verify(parsed(text(second, guard))).unwrap());
            let kernel = device.load(&module).unwrap().kernel("both").unwrap();
            for (scale, shift) in [(1.7f32, 3.5f32), (-20.3, 3000.0), (0.0, 17.0), (100.0, -200.0), (61.0, 1.0)] {
                let steps = if second == HELD { vec![1, 0, 2, -1, i32::MAX] } else { vec![1] };
                for (step, lanes) in steps.into_iter().flat_map(|step| [(step, 32u32), (step, 7)]) {
                    // The constant offset is not clamped to the array, so the index there is one less at
                    // most.
                    let most = if second == HELD { last } else { last - 1 };
                    let c = device.upload(&vec![-1.0f32; 64 * blocks as usize]).unwrap();
                    let sizes = [step.into(), most.into(), lanes.into()];
                    let arguments: Vec<Argument> =
                        [(&a).into(), (&c).into(), scale.into(), shift.into()].into_iter().chain(sizes).collect();
                    kernel.launch(&Launch::linear(blocks, 32), &arguments).unwrap();
                    let found = c.read().unwrap();
                    for thread in 0..32 * blocks as usize {
                        let place = ((thread as f32).mul_add(scale, shift).floor() as i32).min(most).max(0);
                        let next = if second == HELD { place.wrapping_add(step).min(most).max(0) } else { place + 1 };
                        let takes_part = guard.is_empty() || thread % 32 < lanes as usize;
                        let expected = if takes_part { [place as f32, next as f32] } else { [-1.0; 2] };
                        let which = (guard, second, scale, shift, step, lanes, thread);
                        assert_eq!(found[2 * thread..2 * thread + 2], expected, "{which:?}");
                    }
                }
            }
        }
    }
}

/// Pairs are 64-bit words.
#[test]
fn neighbours_are_gathered_together() {
    let further = "ld.global.f32 %f6, [%rd5+8];";
    let elsewhere = "mad.wide.s32 %rd6, %r7, 4, %rd2; ld.global.f32 %f6, [%rd6];";
    for (second, is_pair) in [(HELD, true), (BEHIND, true), (further, false), (elsewhere, false)] {
        let module = parsed(text(second, ""));
        let (kernel, _) = module.kernels().next().unwrap();
        let code = show(&module, kernel, [32, 1, 1], &for_avx512(), Stage::Llvm).unwrap();
        assert_eq!(code.contains("llvm.masked.gather.v8i64"), is_pair, "{second}\n{code}");
    }
}
