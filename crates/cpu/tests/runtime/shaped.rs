//! Code of a kernel for its launches: passes, proofs and the cache.

use crate::testing::{device_with, module};
use broadloom_cpu::Cpu;
use broadloom_device::{CacheFolder, Device, Launch};
use std::path::PathBuf;

/// Kernel in which every thread writes `%tid.x + n` as a 64-bit integer. Lanes are not consecutive where
/// the sum wraps around.
const TEXT: &str = ".version 8.0 .target sm_80 .address_size 64
    .visible .entry k(.param .u64 out, .param .u32 n) {
        .reg .b32 %r<4>; .reg .b64 %d<5>;
        ld.param.u64 %d0, [out]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x;
        add.s32 %r2, %r0, %r1; cvt.s64.s32 %d1, %r2;
        mul.wide.u32 %d2, %r1, 8; add.s64 %d3, %d0, %d2; st.global.s64 [%d3], %d1; ret;
    }";

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("broadloom-shaped-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// Runs launches like in a new process, as far as caches go. Returns how often passes ran, and whether
/// each code came from the cache.
fn launched(folder: &std::path::Path, numbers: &[u32]) -> (u32, Vec<bool>) {
    let cpu: Cpu = device_with(1, |options| options.cache = CacheFolder::At(folder.to_owned()));
    let device = Device::new(cpu.clone());
    let out = device.zeros::<i64>(32).unwrap();
    let kernel = device.load(&module(TEXT)).unwrap().kernel("k").unwrap();
    for n in numbers {
        kernel.launch(&Launch::linear(1, 32), &[(&out).into(), (*n).into()]).unwrap();
        let expected: Vec<i64> = (0..32u32).map(|lane| i64::from(n.wrapping_add(lane) as i32)).collect();
        assert_eq!(out.read().unwrap(), expected);
    }
    (cpu.drafts(), cpu.statistics().iter().map(|kernel| kernel.from_cache).collect())
}

#[test]
fn a_kernel_from_the_cache_needs_no_pass_and_still_proves() {
    let folder = folder("proof");
    let (fits, wraps) = (7, 0x7fff_fff0);
    // Passes run once for code and proof together.
    assert_eq!(launched(&folder, &[fits, fits, fits + 1]), (1, vec![false]));
    assert_eq!(launched(&folder, &[fits]), (0, vec![true]));
    // A launch that violates the assumption is detected without passes too, and gets other code.
    assert_eq!(launched(&folder, &[fits, wraps]), (1, vec![true, false]));
    assert_eq!(launched(&folder, &[wraps, fits, wraps]), (0, vec![true, true]));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn launches_of_similar_sizes_are_proved_once() {
    let cpu: Cpu = device_with(1, |options| options.cache = CacheFolder::Nowhere);
    let device = Device::new(cpu.clone());
    let kernel = device.load(&module(TEXT)).unwrap().kernel("k").unwrap();
    let outs: Vec<_> = (0..3).map(|_| device.zeros::<i64>(32).unwrap()).collect();
    let proofs = |numbers: &[u32]| {
        let before = cpu.proofs();
        for (number, out) in numbers.iter().zip(outs.iter().cycle()) {
            kernel.launch(&Launch::linear(1, 32), &[out.into(), (*number).into()]).unwrap();
        }
        outs.iter().for_each(|out| drop(out.read().unwrap()));
        cpu.proofs() - before
    };
    proofs(&[3, 0x7fff_fff5]);
    // Other buffers and other sizes up to the same power of two need no proof.
    assert_eq!(proofs(&[1000, 1000, 1024, 513, 700]), 1);
    assert_eq!(proofs(&[512, 511, 1000]), 1);
    // Sizes that wrap around are looked at one by one.
    assert_eq!(proofs(&[0x7fff_fff0, 0x7fff_fff0, 0x7fff_fff1, 0x7fff_fff1]), 4);
}

#[test]
fn the_proof_is_found_with_either_code() {
    let folder = folder("either");
    let wraps = 0x7fff_fff0;
    // Once to find that it wraps, once for code that may.
    assert_eq!(launched(&folder, &[wraps]), (2, vec![false]));
    assert_eq!(launched(&folder, &[wraps]), (0, vec![true]));
    assert_eq!(launched(&folder, &[7, wraps]), (1, vec![false, true]));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Kernel in which thread `t` stores the sum of `values[0 .. n]` to `sums[2 * t]` in every iteration,
/// beginning with `t`.
const SUMS: &str = ".version 8.0 .target sm_80 .address_size 64
    .visible .entry k(.param .u64 sums, .param .u64 values, .param .u32 n) {
        .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %d<6>;
        ld.param.u64 %d0, [sums]; ld.param.u64 %d1, [values]; ld.param.u32 %r0, [n];
        mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 8; add.s64 %d3, %d0, %d2; mov.u32 %r2, 0; mov.u32 %r3, %r1;
        round:
        ld.global.u32 %r4, [%d1]; add.u32 %r3, %r3, %r4; st.global.u32 [%d3], %r3;
        add.s64 %d1, %d1, 4; add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, %r0; @%p0 bra round;
        ret;
    }";

#[test]
fn stores_stay_in_a_loop_that_reads_what_they_write() {
    let cpu: Cpu = device_with(1, |options| options.cache = CacheFolder::Nowhere);
    let device = Device::new(cpu);
    let kernel = device.load(&module(SUMS)).unwrap().kernel("k").unwrap();
    let sums = device.zeros::<u32>(64).unwrap();
    let values = device.upload(&[1u32, 2, 3, 4]).unwrap();
    kernel.launch(&Launch::linear(1, 32), &[(&sums).into(), (&values).into(), 4u32.into()]).unwrap();
    let expected: Vec<u32> = (0..64).map(|at| if at % 2 == 0 { at / 2 + 10 } else { 0 }).collect();
    assert_eq!(sums.read().unwrap(), expected);
    // One thread, which reads its own sum in its first iteration, then the elements after it.
    let own = device.upload(&[5u32, 7, 9, 0]).unwrap();
    let launch = |n: u32| kernel.launch(&Launch::linear(1, 1), &[(&own).into(), (&own).into(), n.into()]).unwrap();
    launch(1);
    assert_eq!(own.read().unwrap(), [5, 7, 9, 0]);
    launch(3);
    assert_eq!(own.read().unwrap(), [21, 7, 9, 0]);
    // A value that it has just stored: the sum is stored in the second value.
    let second = own.slice(1, 3).unwrap();
    own.write(&[5, 7, 9, 0]).unwrap();
    kernel.launch(&Launch::linear(1, 1), &[(&second).into(), (&own).into(), 3u32.into()]).unwrap();
    assert_eq!(own.read().unwrap(), [5, 5 + 5 + 9, 9, 0]);
}
