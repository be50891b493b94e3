//! Functions applied to many elements on devices that need no hardware.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod generate;
pub(crate) mod random;

use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::{Argument, Device, Launch};
use broadloom_interp::Interp;
use broadloom_scalar::{Axis, Builder, Function, Kernel, LaunchBounds, Literal, Lowering, Type, lower_with};
use std::sync::Arc;

/// Returns the interpreter and the CPU.
pub(crate) fn devices() -> Vec<(&'static str, Device)> {
    let options = broadloom_cpu::Options {
        threads: 2,
        memory_bytes: 1 << 30,
        cache: CacheFolder::Nowhere,
        ..broadloom_cpu::Options::default()
    };
    vec![
        ("interp", Device::new(Interp::new(broadloom_interp::Options::default()))),
        ("cpu", Device::new(Cpu::new(options).unwrap())),
    ]
}

/// Returns a kernel that applies a function of plain values to each element of its arrays.
pub(crate) fn map_kernel(function: &Function) -> Kernel {
    let b = Builder::kernel("map");
    b.launch_bounds(LaunchBounds::block(64));
    let inputs: Vec<_> = function.parameters().iter().map(|p| b.pointer(&p.name, p.ty.element())).collect();
    let outputs: Vec<_> =
        function.result_types().iter().enumerate().map(|(i, ty)| b.pointer(&format!("out{i}"), ty.element())).collect();
    let count = b.parameter("count", Type::U32);
    let i = b.global_thread(Axis::X);
    b.if_then(b.lt(i, count), || {
        let arguments: Vec<_> = inputs.iter().map(|input| b.load(*input, i)).collect();
        let results = b.inline(function, &arguments, &mut []);
        for (output, result) in outputs.iter().zip(results) {
            b.store(*output, i, result);
        }
    });
    b.finish_kernel().unwrap()
}

/// Runs a kernel made by [`map_kernel`] on a device. `inputs[p][i]` is parameter `p` of element `i`. Results
/// have the same form.
pub(crate) fn run_map(
    device: &Device,
    kernel: &Kernel,
    lowering: &Lowering,
    inputs: &[Vec<Literal>],
    results: &[Type],
) -> Vec<Vec<Literal>> {
    let module = Arc::new(lower_with(std::slice::from_ref(kernel), lowering).unwrap_or_else(|error| panic!("{error}\n{kernel}")));
    keep(&module);
    let loaded = device.load(&module).unwrap_or_else(|error| panic!("{error}\n{}", broadloom_ptx::print(&module)));
    let count = inputs.first().map_or(1, Vec::len);
    let buffers: Vec<_> = inputs.iter().map(|values| device.upload(&Literal::to_bytes(values)).unwrap()).collect();
    let outputs: Vec<_> = results.iter().map(|ty| device.zeros::<u8>(count * ty.bytes() as usize).unwrap()).collect();
    let mut arguments: Vec<Argument> = buffers.iter().chain(&outputs).map(Argument::from).collect();
    arguments.push(Argument::from(count as u32));
    let launch = Launch::linear((count as u32).div_ceil(64), 64);
    let ran = loaded.kernel("map").unwrap().launch(&launch, &arguments).and_then(|()| device.synchronise());
    ran.unwrap_or_else(|error| panic!("{error}\n{kernel}\n{}", broadloom_ptx::print(&module)));
    outputs.iter().zip(results).map(|(output, ty)| Literal::from_bytes(ty.element(), &output.read().unwrap()).collect()).collect()
}

/// Writes a module to the folder `BROADLOOM_SCALAR_PTX`, if that is set, for checks by NVIDIA's assembler.
pub(crate) fn keep(module: &broadloom_ptx::Verified) {
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    if let Ok(folder) = std::env::var("BROADLOOM_SCALAR_PTX") {
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::fs::write(format!("{folder}/{}_{number}.ptx", std::process::id()), broadloom_ptx::print(module)).unwrap();
    }
}

/// Returns two lowerings with the same results: not simplified, and simplified.
pub(crate) fn exact_lowerings() -> [(&'static str, Lowering); 2] {
    let plain = Lowering { simplify: false, contract: false, ..Lowering::default() };
    [("plain", plain.clone()), ("simplified", Lowering { simplify: true, ..plain })]
}

/// Returns true for the same bits, or if both are NaN.
pub(crate) fn same(a: Literal, b: Literal) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}
