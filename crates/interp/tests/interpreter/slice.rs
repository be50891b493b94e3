//! Minimal test through all layers: text to module to result.

use broadloom_device::{Argument, Device, Launch};
use broadloom_diag::Sources;
use broadloom_interp::{Interp, Options};
use broadloom_ptx::{parse, verify};
use std::sync::{Arc, Mutex};

fn device() -> Device {
    Device::new(Interp::new(Options::default()))
}

fn load(device: &Device, text: &str) -> broadloom_device::Module {
    let mut sources = Sources::new();
    let id = sources.add("test.ptx", text);
    let module = parse(&sources, id).unwrap_or_else(|d| panic!("{}", sources.render_all(&d)));
    let module = verify(module).unwrap_or_else(|d| panic!("{}", sources.render_all(&d)));
    device.load(&Arc::new(module)).unwrap()
}

#[test]
fn threads_write_their_numbers() {
    let device = device();
    let module = load(
        &device,
        ".version 8.0 .target sm_75 .address_size 64
        .visible .entry k(.param .u64 out) {
            .reg .b64 %rd<4>; .reg .b32 %r<4>;
            ld.param.u64 %rd0, [out];
            mov.u32 %r0, %tid.x;
            mov.u32 %r1, %ctaid.x;
            shl.b32 %r2, %r1, 5;
            or.b32 %r2, %r2, %r0;
            mov.b64 %rd1, {%r2, 0};
            shl.b64 %rd1, %rd1, 2;
            or.b64 %rd2, %rd0, %rd1;
            st.global.u32 [%rd2], %r2;
            ret;
        }",
    );
    let out = device.zeros::<u32>(64).unwrap();
    module.kernel("k").unwrap().launch(&Launch::linear(2, 32), &[Argument::from(&out)]).unwrap();
    assert_eq!(out.read().unwrap(), (0..64).collect::<Vec<u32>>());
}

#[test]
fn shuffles_barriers_and_atomics_meet() {
    let device = device();
    let module = load(
        &device,
        ".version 8.0 .target sm_75 .address_size 64
        .visible .entry k(.param .u64 out) {
            .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p<2>;
            .shared .align 4 .b8 buffer[256];
            ld.param.u64 %rd0, [out];
            mov.u32 %r0, %tid.x;
            shl.b32 %r1, %r0, 2;
            mov.u32 %r2, buffer;
            or.b32 %r1, %r1, %r2;
            st.shared.u32 [%r1], %r0;
            bar.sync 0;
            xor.b32 %r3, %r1, 128;
            ld.shared.u32 %r4, [%r3];
            shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;
            atom.global.add.u32 %r6, [%rd0], %r5;
            ret;
        }",
    );
    let out = device.zeros::<u32>(1).unwrap();
    module.kernel("k").unwrap().launch(&Launch::linear(3, 64), &[Argument::from(&out)]).unwrap();
    assert_eq!(out.read().unwrap(), [3 * (0..64).sum::<u32>()]);
}

#[test]
fn printf_reaches_the_sink() {
    let text = Arc::new(Mutex::new(Vec::new()));
    let sink = text.clone();
    let output = Arc::new(move |bytes: &[u8]| sink.lock().unwrap().extend_from_slice(bytes));
    let device = Device::new(Interp::new(Options { output, ..Options::default() }));
    let module = load(
        &device,
        ".version 8.0 .target sm_75 .address_size 64
        .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
        .global .align 1 .b8 format[12] = {116, 61, 37, 100, 32, 37, 103, 10, 0};
        .visible .entry k() {
            .reg .b64 %rd<4>; .reg .b32 %r<4>;
            .local .align 8 .b8 depot[16];
            mov.u32 %r0, %tid.x;
            mov.u64 %rd0, depot;
            cvta.local.u64 %rd1, %rd0;
            st.local.u32 [%rd0], %r0;
            mov.b64 %rd3, 0d3FF8000000000000;
            st.local.b64 [%rd0+8], %rd3;
            mov.u64 %rd2, format;
            cvta.global.u64 %rd2, %rd2;
            { .param .b64 p0; .param .b64 p1; .param .b32 r0;
              st.param.b64 [p0], %rd2; st.param.b64 [p1], %rd1;
              call.uni (r0), vprintf, (p0, p1);
              ld.param.b32 %r1, [r0]; }
            ret;
        }",
    );
    module.kernel("k").unwrap().launch(&Launch::linear(1, 2), &[]).unwrap();
    assert_eq!(String::from_utf8(text.lock().unwrap().clone()).unwrap(), "t=0 1.5\nt=1 1.5\n");
}
