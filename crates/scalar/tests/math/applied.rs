//! An elementary function as a kernel on a device.

use crate::support::map_kernel;
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::{Argument, Device, Kernel, Launch};
use broadloom_interp::Interp;
use broadloom_scalar::{Builder, Function, MathFunction, Precision, Type, lower};
use std::sync::Arc;

/// Returns a function that only calls the elementary function.
pub(crate) fn function_of(function: MathFunction, precision: Precision, ty: Type) -> Function {
    let b = Builder::function(function.name());
    let arguments: Vec<_> = (0..function.arguments()).map(|index| b.parameter(&format!("x{index}"), ty)).collect();
    b.finish_function(&[b.math(function, precision, &arguments)]).unwrap()
}

/// Returns the CPU, with all its cores.
pub(crate) fn cpu() -> Device {
    let options =
        broadloom_cpu::Options { memory_bytes: 1 << 30, cache: CacheFolder::Nowhere, ..broadloom_cpu::Options::default() };
    Device::new(Cpu::new(options).unwrap())
}

/// Returns the interpreter.
pub(crate) fn interp() -> Device {
    Device::new(Interp::new(broadloom_interp::Options::default()))
}

/// A function, ready to be applied to many arguments.
pub(crate) struct Applied {
    device: Device,
    kernel: Kernel,
}

impl Applied {
    pub(crate) fn new(device: &Device, function: MathFunction, precision: Precision, ty: Type) -> Applied {
        let kernel = map_kernel(&function_of(function, precision, ty));
        let module = Arc::new(lower(&[kernel]).unwrap_or_else(|error| panic!("{function}: {error}")));
        let loaded =
            device.load(&module).unwrap_or_else(|error| panic!("{function}: {error}\n{}", broadloom_ptx::print(&module)));
        Applied { device: device.clone(), kernel: loaded.kernel("map").unwrap() }
    }

    /// Returns the results for lists of arguments of the same length, one list for each parameter.
    pub(crate) fn run<T: broadloom_device::Element>(&self, arguments: &[&[T]]) -> Vec<T> {
        let count = arguments[0].len();
        let inputs: Vec<_> = arguments.iter().map(|values| self.device.upload(values).unwrap()).collect();
        let output = self.device.zeros::<T>(count).unwrap();
        let mut values: Vec<Argument> = inputs.iter().map(Argument::from).collect();
        values.push(Argument::from(&output));
        values.push(Argument::from(count as u32));
        self.kernel.launch(&Launch::linear((count as u32).div_ceil(64), 64), &values).unwrap();
        output.read().unwrap()
    }
}
