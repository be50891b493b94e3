//! Launches that go ahead of their code.

use crate::testing::{device_with, module};
use broadloom_device::{Device, Error, Launch};

/// Returns the text of kernels that pass a number on: `k0` writes 1, each other kernel adds its number to
/// the value it reads.
fn text(kernels: u32) -> String {
    let kernel = |number: u32| {
        format!(
            ".visible .entry k{number}(.param .u64 out) {{
                .reg .b32 %r<3>; .reg .b64 %d<2>;
                ld.param.u64 %d0, [out]; ld.global.u32 %r0, [%d0]; mad.lo.u32 %r1, %r0, 3, {number}; st.global.u32 [%d0], %r1; ret;
            }}"
        )
    };
    let kernels: String = (0..kernels).map(kernel).collect();
    format!(".version 8.0 .target sm_80 .address_size 64 {kernels}")
}

#[test]
fn launches_ahead_keep_their_order() {
    for threads in [1, 2, 4] {
        let device = Device::new(device_with(threads, |options| options.ahead = true));
        let out = device.zeros::<u32>(1).unwrap();
        let loaded = device.load(&module(&text(6))).unwrap();
        for round in 0..2 {
            for number in 0..6 {
                let kernel = loaded.kernel(&format!("k{number}")).unwrap();
                kernel.launch(&Launch::linear(1, 1), &[(&out).into()]).unwrap();
            }
            let expected = (0..6 * (round + 1)).fold(0u32, |value, at| value.wrapping_mul(3).wrapping_add(at % 6));
            assert_eq!(out.read().unwrap(), [expected], "{threads} threads, round {round}");
        }
    }
}

#[test]
fn the_memory_of_a_launch_ahead_stays_until_it_ran() {
    let device = Device::new(device_with(2, |options| options.ahead = true));
    let loaded = device.load(&module(&text(4))).unwrap();
    for number in 0..4 {
        let out = device.zeros::<u32>(1).unwrap();
        loaded.kernel(&format!("k{number}")).unwrap().launch(&Launch::linear(1, 1), &[(&out).into()]).unwrap();
    }
    drop(loaded);
    device.synchronise().unwrap();
}

#[test]
fn what_can_be_told_at_once_is_told_by_the_launch() {
    let device = Device::new(device_with(2, |options| options.ahead = true));
    let loaded = device.load(&module(&text(1))).unwrap();
    let (kernel, out) = (loaded.kernel("k0").unwrap(), device.zeros::<u32>(1).unwrap());
    let refused = kernel.launch(&Launch { shared_bytes: 1 << 20, ..Launch::linear(1, 1) }, &[(&out).into()]);
    assert!(matches!(&refused, Err(Error::BadLaunch { reason, .. }) if reason.contains("shared memory")), "{refused:?}");
    // The device is dropped while a kernel is compiled for it.
    kernel.launch(&Launch::linear(1, 1), &[(&out).into()]).unwrap();
}
