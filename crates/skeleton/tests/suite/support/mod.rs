//! Devices that need no hardware, and values to run programs on.

#![allow(dead_code, reason = "each test uses a part")]

use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::{Buffer, Device, Machine, MachineKind};
use broadloom_interp::Interp;
pub(crate) use broadloom_random::Random;
use broadloom_scalar::{AccessorKind, Builder, Element, Literal, Type, Value};
use broadloom_skeleton::{Call, LoadedProgram, Operator, Pattern, Source};
use std::cell::RefCell;
use std::collections::HashMap;

/// A device, and the target machine of its programs.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) machine: Machine,
    loaded: RefCell<HashMap<Pattern, LoadedProgram>>,
}

impl Bench {
    fn new(device: Device, machine: Machine) -> Bench {
        Bench { device, machine, loaded: RefCell::default() }
    }

    pub(crate) fn get(&self, pattern: &Pattern) -> LoadedProgram {
        let load = || pattern.program(&self.machine).and_then(|program| program.load(&self.device));
        let mut loaded = self.loaded.borrow_mut();
        loaded.entry(pattern.clone()).or_insert_with(|| load().unwrap_or_else(|error| panic!("{error}"))).clone()
    }

    /// Returns the number of programs that were made.
    pub(crate) fn len(&self) -> usize {
        self.loaded.borrow().len()
    }
}

/// Returns the interpreter, which checks for faults, the CPU, and the CPU with programs that are made for a
/// GPU.
pub(crate) fn benches() -> Vec<(&'static str, Bench)> {
    let options = broadloom_cpu::Options {
        threads: 2,
        memory_bytes: 1 << 30,
        cache: CacheFolder::Nowhere,
        ..broadloom_cpu::Options::default()
    };
    let interp = Device::new(Interp::new(broadloom_interp::Options::default()));
    let cpu = Device::new(Cpu::new(options).unwrap());
    let gpu = Machine { kind: MachineKind::Cuda, multiprocessors: 4, ..cpu.machine().clone() };
    let small = Machine { multiprocessors: 2, ..interp.machine().clone() };
    let cores = cpu.machine().clone();
    vec![("interp", Bench::new(interp, small)), ("cpu", Bench::new(cpu.clone(), cores)), ("cpu as a gpu", Bench::new(cpu, gpu))]
}

/// Returns the sizes of runs on a bench. The interpreter is slow: it takes `most` once in place of all larger
/// sizes.
pub(crate) fn sizes(bench: &str, sizes: &[u64], most: u64) -> Vec<u64> {
    let most = if bench == "interp" { most } else { u64::MAX };
    let mut sizes: Vec<u64> = sizes.iter().map(|size| *size.min(&most)).collect();
    sizes.dedup();
    sizes
}

/// Returns the CPU with programs that are made for an H200.
pub(crate) fn h200() -> Bench {
    let options = broadloom_cpu::Options {
        threads: 2,
        memory_bytes: 1 << 30,
        cache: CacheFolder::Nowhere,
        ..broadloom_cpu::Options::default()
    };
    let cpu = Device::new(Cpu::new(options).unwrap());
    let machine = Machine {
        kind: MachineKind::Cuda,
        multiprocessors: 132,
        registers: Some(65536),
        max_shared_bytes: 232_448,
        cache_bytes: Some(60 << 20),
        sm: 90,
        ..cpu.machine().clone()
    };
    Bench::new(cpu, machine)
}

/// The arguments of a run.
#[derive(Clone, Default)]
pub(crate) struct Given<'a> {
    pub(crate) inputs: &'a [Vec<Literal>],
    pub(crate) scalars: &'a [Literal],
    pub(crate) sizes: &'a [u64],
    /// Minimum number of elements of outputs, if the program does not state it.
    pub(crate) least: u64,
    /// Offset in bytes of inputs and outputs from an aligned address, a multiple of their elements' size.
    pub(crate) shifted: usize,
}

fn shifted(device: &Device, bytes: &[u8], by: usize) -> Buffer<u8> {
    let whole = device.allocate::<u8>(bytes.len() + by).unwrap();
    let part = whole.slice(by, bytes.len()).unwrap();
    if !bytes.is_empty() {
        part.write(bytes).unwrap();
    }
    part
}

/// Runs a pattern and returns the outputs.
pub(crate) fn run(bench: &Bench, pattern: &Pattern, given: &Given<'_>) -> Vec<Vec<Literal>> {
    let device = &bench.device;
    let loaded = bench.get(pattern);
    let program = loaded.program();
    let inputs: Vec<_> = given.inputs.iter().map(|values| shifted(device, &Literal::to_bytes(values), given.shifted)).collect();
    let counts = program.output_counts(given.sizes).unwrap();
    let outputs: Vec<_> = counts
        .iter()
        .zip(&program.outputs)
        .map(|(count, output)| {
            let bytes = vec![0; (*count).max(given.least) as usize * output.ty.bytes() as usize];
            shifted(device, &bytes, given.shifted)
        })
        .collect();
    let call = Call { inputs: &inputs, outputs: &outputs, scalars: given.scalars, sizes: given.sizes, ..Call::default() };
    let ran = loaded.run(&call).and_then(|()| Ok(device.synchronise()?));
    ran.unwrap_or_else(|error| panic!("{error}\n{program:?}"));
    outputs
        .iter()
        .zip(&program.outputs)
        .map(|(buffer, output)| match buffer.is_empty() {
            true => vec![],
            false => Literal::from_bytes(output.ty.element(), &buffer.read().unwrap()).collect(),
        })
        .collect()
}

/// Generation of literals.
pub(crate) trait Literals {
    /// Returns a small value of a type, for which arithmetic on a few values is exact.
    fn value(&mut self, element: Element) -> Literal;
    /// Returns several such values.
    fn values(&mut self, element: Element, count: u64) -> Vec<Literal>;
}

impl Literals for Random {
    fn value(&mut self, element: Element) -> Literal {
        match element {
            Element::Bool => (self.bits() & 1 == 1).into(),
            _ if element.is_float() => Literal::from_i128(element, i128::from(self.below(17u64)) - 8),
            _ => Literal::from_bits(element, self.bits()),
        }
    }

    fn values(&mut self, element: Element, count: u64) -> Vec<Literal> {
        (0..count).map(|_| self.value(element)).collect()
    }
}

/// Returns a source that reads the element at the position of a line.
pub(crate) fn identity(element: Element) -> Source {
    line("identity", element, |_, _, x| vec![x])
}

/// Returns a source that computes a function of the element at the position of a line.
pub(crate) fn line(name: &str, element: Element, body: impl Fn(&Builder, Value, Value) -> Vec<Value>) -> Source {
    let f = Builder::function(name);
    let i = f.parameter("i", Type::I32);
    let x = f.accessor("x", AccessorKind::Input, element, 1);
    let x = f.read(x, &[i.into()]);
    let results = body(&f, i, x);
    Source::new(f.finish_function(&results).unwrap(), 1).unwrap()
}

/// Returns a source that reads the element at a position of several axes, whose strides are scalars.
pub(crate) fn strided(axes: usize, index: Type, element: Element) -> Source {
    let f = Builder::function("element");
    let position: Vec<_> = (0..axes).map(|_| f.parameter("i", index)).collect();
    let strides: Vec<_> = (0..axes).map(|_| f.parameter("stride", index)).collect();
    let x = f.accessor("x", AccessorKind::Input, element, 1);
    let mut at = f.constant(index, 0);
    for (i, stride) in position.iter().zip(&strides) {
        at = f.add(at, f.mul(*i, *stride));
    }
    let value = f.read(x, &[at.into()]);
    Source::new(f.finish_function(&[value]).unwrap(), axes).unwrap()
}

/// Returns the strides of axes of these lengths.
pub(crate) fn strides(shape: &[u64]) -> Vec<u64> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

/// Returns a non-commutative operator on two values: a number and a power of its base, modulo 2³². It joins
/// numbers digit by digit.
pub(crate) fn joining() -> Operator {
    let f = Builder::function("join");
    let [a, m, b, n] = ["a", "m", "b", "n"].map(|name| f.parameter(name, Type::U32));
    let joined = [f.add(f.mul(a, n), b), f.mul(m, n)];
    Operator::new(f.finish_function(&joined).unwrap(), &[0u32.into(), 1u32.into()], false).unwrap()
}
