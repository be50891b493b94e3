//! Textures made and bound by the host: variables of modules, mipmaps, freed memory.

use broadloom_device::texture::{Channel, Filter, Image, Layers, Level, Sampler, Surface, TexelFormat, Texture};
use broadloom_device::{Argument, Buffer, Device, Error, FaultKind, Launch, Module};
use broadloom_diag::Sources;
use broadloom_filetest::{DEVICES, PrintedText};
use broadloom_ptx::{parse, verify};
use libtest_mimic::{Arguments, Completion, Trial};
use std::sync::Arc;

const FLOAT: TexelFormat = TexelFormat { channel: Channel::Float, bits: 32, channels: 1 };

/// Kernel in which each thread reads level `%tid.x / 4` of the variable `t`, or of the given texture, writes
/// it, and adds it to the surface `s`.
const TEXT: &str = ".version 8.0 .target sm_80 .address_size 64
    .global .texref t;
    .global .surfref s;
    .visible .entry read(.param .u64 out, .param .u64 texture) {
        .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .pred %p;
        ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [texture];
        mov.u32 %r0, %tid.x; mad.wide.u32 %rd2, %r0, 4, %rd0;
        cvt.rn.f32.u32 %f0, %r0; mul.f32 %f0, %f0, 0f3E800000;
        mov.f32 %f1, 0f3F000000;
        setp.eq.u64 %p, %rd1, 0;
        @%p bra BOUND;
        tex.level.1d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1}], %f0;
        bra WRITE;
    BOUND:
        tex.level.1d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [t, {%f1}], %f0;
    WRITE:
        st.global.f32 [%rd2], %f2; ret;
    }
    .visible .entry mark(.param .u64 out, .param .u64 surface) {
        .reg .b32 %r<8>; .reg .b64 %rd<8>;
        mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u64 %rd0, s;
        sust.b.1d.b32.zero [%rd0, {%r1}], %r0;
        suld.b.1d.b32.zero %r2, [s, {%r1}];
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r0, 4, %rd1; st.global.b32 [%rd2], %r2; ret;
    }";

struct Setup {
    name: &'static str,
    device: Device,
    module: Module,
}

/// Test on one device.
type Test = fn(&Setup);

const TESTS: &[(&str, Test)] = &[
    ("variables_are_what_is_bound_to_them", variables_are_what_is_bound_to_them),
    ("surfaces_are_written_and_read", surfaces_are_written_and_read),
    ("memory_that_is_gone_is_an_error_of_the_launch", memory_that_is_gone_is_an_error_of_the_launch),
];

/// Runs every test on every device of the host; trials of a missing device are ignored.
fn main() {
    let arguments = Arguments::from_args();
    let mut trials = vec![];
    for entry in DEVICES.iter().filter(|entry| !entry.is_shared) {
        for (name, test) in TESTS {
            trials.push(Trial::ignorable_test(format!("{name}@{}", entry.name), move || {
                let device = match entry.open(&PrintedText::default()) {
                    Ok(device) => device,
                    Err(why) => return Ok(Completion::ignored_with(format!("skipped: {}", why.0))),
                };
                let mut sources = Sources::new();
                let id = sources.add("test.ptx", TEXT);
                let code = Arc::new(verify(parse(&sources, id).unwrap()).unwrap());
                let module = device.load(&code)?;
                test(&Setup { name: entry.name, device, module });
                Ok(Completion::Completed)
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

impl Setup {
    fn run(&self, kernel: &str, handle: u64, threads: u32) -> Result<Vec<f32>, Error> {
        let out = self.device.zeros::<f32>(threads as usize)?;
        let kernel = self.module.kernel(kernel)?;
        kernel.launch(&Launch::linear(1, threads), &[Argument::from(&out), Argument::from(handle)])?;
        self.device.synchronise()?;
        out.read()
    }

    /// Creates a mipmap of three levels, in each of which all texels are equal.
    fn mipmap(&self) -> (Texture, Buffer<f32>) {
        let memory = self.device.upload(&[1.0f32, 1.0, 1.0, 1.0, 2.0, 2.0, 4.0]).unwrap();
        let level =
            |start: u64, width| Level { address: memory.address() + 4 * start, image: Image::packed(FLOAT, [width, 1, 1]) };
        let sampler = Sampler { level_filter: Filter::Linear, normalised_coordinates: true, ..Sampler::default() };
        let levels = vec![level(0, 4), level(4, 2), level(6, 1)];
        (Texture { levels, layers: Layers::None, is_buffer: false, sampler }, memory)
    }
}

fn variables_are_what_is_bound_to_them(setup: &Setup) {
    let fault = |outcome: Result<Vec<f32>, Error>| match outcome {
        Err(Error::Fault(fault)) => fault,
        other => panic!("{}: {other:?}", setup.name),
    };
    let unbound = fault(setup.run("read", 0, 12));
    assert!(unbound.kind == FaultKind::OutOfBounds && unbound.message.contains("nothing is bound"), "{unbound}");
    let (texture, _memory) = setup.mipmap();
    setup.module.bind_texture("t", Some(&texture)).unwrap();
    let expected = [1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.0, 4.0, 4.0];
    assert_eq!(setup.run("read", 0, 12).unwrap(), expected, "{}", setup.name);
    let handle = setup.device.create_texture(&texture).unwrap();
    assert_eq!(setup.run("read", handle, 12).unwrap(), expected, "{}", setup.name);
    setup.device.destroy_opaque(handle).unwrap();
    assert!(setup.device.destroy_opaque(handle).is_err());
    assert!(fault(setup.run("read", handle, 4)).message.contains("is not a texture"));
    setup.module.bind_texture("t", None).unwrap();
    fault(setup.run("read", 0, 12));
    for wrong in ["s", "nobody"] {
        assert!(matches!(setup.module.bind_texture(wrong, Some(&texture)), Err(Error::BadTexture { .. })), "{wrong}");
    }
}

fn surfaces_are_written_and_read(setup: &Setup) {
    let memory = setup.device.zeros::<u32>(6).unwrap();
    let format = TexelFormat { channel: Channel::Unsigned, bits: 32, channels: 1 };
    let level = Level { address: memory.address(), image: Image::packed(format, [6, 1, 1]) };
    setup.module.bind_surface("s", Some(&Surface { level, layers: Layers::None })).unwrap();
    let read = setup.run("mark", 0, 8).unwrap();
    let bits: Vec<u32> = read.iter().map(|value| value.to_bits()).collect();
    assert_eq!(bits, [0, 1, 2, 3, 4, 5, 0, 0], "{}", setup.name);
    assert_eq!(memory.read().unwrap(), [0, 1, 2, 3, 4, 5]);
}

fn memory_that_is_gone_is_an_error_of_the_launch(setup: &Setup) {
    let (texture, memory) = setup.mipmap();
    let handle = setup.device.create_texture(&texture).unwrap();
    assert!(setup.run("read", handle, 4).is_ok());
    drop(memory);
    assert!(matches!(setup.run("read", handle, 4), Err(Error::Fault(_))), "{}", setup.name);
    assert!(setup.device.create_texture(&texture).is_err(), "{}: there is no memory for it", setup.name);
}
