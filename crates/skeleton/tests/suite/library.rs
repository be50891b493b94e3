//! The library keeps a limited number of programs and removes the least recently used.

use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_interp::Interp;
use broadloom_scalar::{AccessorKind, Builder, Type};
use broadloom_skeleton::{Call, Domain, Library, Map, Pattern, Sink, Source};

/// `i ↦ x[i] + constant`
fn adds(constant: i32) -> Pattern {
    let f = Builder::function("adds");
    let i = f.parameter("i", Type::I32);
    let x = f.accessor("x", AccessorKind::Input, Type::I32, 1);
    let source = Source::new(f.finish_function(&[f.add(f.read(x, &[i.into()]), constant)]).unwrap(), 1).unwrap();
    Map { domain: Domain::LINE, source, sink: Sink::STORE }.into()
}

#[test]
fn the_least_recently_used_goes() {
    let device = Device::new(Interp::new(Default::default()));
    let library = Library::with_most(&device, 3);
    let first = library.get(&adds(0)).unwrap();
    for constant in 1..3 {
        library.get(&adds(constant)).unwrap();
    }
    library.get(&adds(0)).unwrap();
    assert_eq!(library.len(), 3);
    for constant in 3..20 {
        library.get(&adds(constant)).unwrap();
        // A program that is used repeatedly is not replaced.
        let again = library.get(&adds(0)).unwrap();
        assert!(std::ptr::eq(again.program(), first.program()), "{constant}");
        assert_eq!(library.len(), 3);
    }
    // A removed program is made again, and a program that is still held runs.
    let gone = library.get(&adds(5)).unwrap();
    drop(library);
    let input = device.upload(&[1i32, 2, 3]).unwrap().view::<u8>().unwrap();
    let output = device.allocate::<i32>(3).unwrap();
    let call = Call { inputs: &[input], outputs: &[output.view::<u8>().unwrap()], sizes: &[3], ..Call::default() };
    gone.run(&call).unwrap();
    assert_eq!(output.read().unwrap(), [6, 7, 8]);
}

/// Elements are counted in 32 bits and lanes in 64. The last of more than 2³¹ lanes are read and written at
/// their places.
#[test]
fn elements_of_several_lanes_beyond_32_bits() {
    const FAR: usize = 1 << 29;
    let four = Type::vector(broadloom_scalar::Element::U8, 4).unwrap();
    let f = Builder::function("far");
    let (i, far) = (f.parameter("i", Type::I32), f.parameter("far", Type::I32));
    let x = f.accessor("x", AccessorKind::Input, four, 1);
    let source = Source::new(f.finish_function(&[f.read(x, &[f.add(i, far).into()])]).unwrap(), 1).unwrap();
    let g = Builder::function("back");
    let (i, x, far) = (g.parameter("i", Type::I32), g.parameter("x", four), g.parameter("far", Type::I32));
    let y = g.accessor("y", AccessorKind::Output, four, 1);
    g.write(y, &[g.add(i, far).into()], g.add(x, x));
    let sink = Sink::new(g.finish_function(&[]).unwrap(), 1, 1).unwrap();
    let options = broadloom_cpu::Options {
        threads: 2,
        memory_bytes: 3 << 30,
        cache: CacheFolder::Nowhere,
        ..broadloom_cpu::Options::default()
    };
    let device = Device::new(Cpu::new(options).unwrap());
    let program = Map { domain: Domain::LINE, source, sink }.program(device.machine()).unwrap().load(&device).unwrap();
    // Untouched memory is not backed by physical pages.
    let memory = device.allocate::<u8>(4 * (FAR + 16)).unwrap();
    let end = memory.slice(4 * FAR, 64).unwrap();
    end.write(&[7u8; 64]).unwrap();
    let scalars = [(FAR as i32).into(), (FAR as i32 + 8).into()];
    let (inputs, outputs) = ([memory.clone()], [memory.clone()]);
    program.run(&Call { inputs: &inputs, outputs: &outputs, scalars: &scalars, sizes: &[8], ..Call::default() }).unwrap();
    let expected: Vec<u8> = [7u8; 32].into_iter().chain([14; 32]).collect();
    assert_eq!(end.read().unwrap(), expected);
}
