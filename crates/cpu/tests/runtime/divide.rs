//! Integer divisions of vectors by one number: the quotient comes from a product with its inverse, and is exact.

use crate::support::{for_avx512, parsed};
use broadloom_cpu::compile::{Stage, show};
use broadloom_cpu::{CacheFolder, Cpu, Options};
use broadloom_device::{Device, Launch};

/// Returns a kernel in which every thread divides its element by a parameter, and stores quotient and rest.
fn text(ty: &str) -> String {
    format!(
        ".version 8.0 .target sm_80 .address_size 64
.visible .entry divide(.param .u64 a, .param .u64 c, .param .{ty} by)
{{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [c]; ld.param.{ty} %r1, [by];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r2, 32, %r3;
    mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;
    mul.wide.u32 %rd5, %r4, 8; add.s64 %rd6, %rd2, %rd5;
    ld.global.{ty} %r5, [%rd4];
    div.{ty} %r6, %r5, %r1;
    rem.{ty} %r7, %r5, %r1;
    st.global.v2.b32 [%rd6], {{%r6, %r7}};
    ret;
}}"
    )
}

/// Numbers at the ends of the range, around powers of two and around multiples of the divisor, and others.
fn dividends(by: u32) -> Vec<u32> {
    let mut all: Vec<u32> = vec![];
    for bit in 0..32 {
        all.extend([(1u32 << bit).wrapping_sub(1), 1 << bit, (1u32 << bit).wrapping_add(1)]);
    }
    for factor in [1u32, 2, 3, 1000, 65535, u32::MAX / by.max(1)] {
        let multiple = by.wrapping_mul(factor);
        all.extend([multiple.wrapping_sub(1), multiple, multiple.wrapping_add(1)]);
    }
    all.extend([0, u32::MAX, u32::MAX - 1, i32::MIN as u32, i32::MIN as u32 + 1, i32::MAX as u32]);
    all.extend((0..200u32).map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i % 32)));
    all.resize(all.len().next_multiple_of(32), 7);
    all
}

#[test]
fn quotients_by_one_number_are_exact() {
    let device = Device::new(Cpu::new(Options { threads: 1, cache: CacheFolder::Nowhere, ..Options::default() }).unwrap());
    let [unsigned, signed] = ["u32", "s32"].map(|ty| {
        let module = std::sync::Arc::new(broadloom_ptx::verify(parsed(text(ty))).unwrap());
        device.load(&module).unwrap().kernel("divide").unwrap()
    });
    let most = [u32::MAX, u32::MAX - 1, i32::MAX as u32, i32::MIN as u32, i32::MIN as u32 + 1, 1 << 31, (1 << 31) + 1];
    for by in [1u32, 2, 3, 5, 7, 10, 12, 255, 641, 1536, 2063, 65535, 65537, 16_777_213, 1 << 30].into_iter().chain(most) {
        let numbers = dividends(by);
        let a = device.upload(&numbers).unwrap();
        let c = device.zeros::<u32>(2 * numbers.len()).unwrap();
        let launch = Launch::linear((numbers.len() / 32) as u32, 32);
        unsigned.launch(&launch, &[(&a).into(), (&c).into(), by.into()]).unwrap();
        for (pair, number) in c.read().unwrap().chunks(2).zip(&numbers) {
            assert_eq!(pair, [number / by, number % by], "{number} / {by}");
        }
        let signed_by = by as i32;
        signed.launch(&launch, &[(&a).into(), (&c).into(), signed_by.into()]).unwrap();
        for (pair, number) in c.read().unwrap().chunks(2).zip(&numbers) {
            let number = *number as i32;
            let expected = [number.wrapping_div(signed_by) as u32, number.wrapping_rem(signed_by) as u32];
            assert_eq!(pair, expected, "{number} / {signed_by}");
        }
    }
}

#[test]
fn vectors_are_not_divided() {
    for ty in ["u32", "s32"] {
        let module = parsed(text(ty));
        let (kernel, _) = module.kernels().next().unwrap();
        let code = show(&module, kernel, [32, 1, 1], &for_avx512(), Stage::Llvm).unwrap();
        assert!(code.contains("fdiv double") && !code.contains("fdiv <32 x double>"), "{code}");
    }
}
