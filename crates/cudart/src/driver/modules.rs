//! Modules and libraries, their kernels and variables.

use crate::boundary::{Call, exported};
use crate::jit::{Logs, most_registers};
use crate::objects::image::Image;
use crate::pointer::{Out, Text};
use crate::status::{Outcome, Status};

pub(crate) use crate::shared_api::functions::*;
pub(crate) use crate::shared_api::modules::*;

/// Returns an attribute of a kernel.
fn fact(call: &Call, attribute: u32, function: usize) -> Outcome<i32> {
    let facts = attributes(call.runtime, &*call.runtime.kernel(function)?)?;
    Ok(match attribute {
        0 => facts.max_threads,
        1 => facts.shared_bytes as i32,
        2 => facts.const_bytes as i32,
        3 => facts.local_bytes as i32,
        4 => facts.registers,
        5 => facts.ptx_version,
        6 => facts.binary_version,
        7 => facts.cache_mode,
        8 => facts.max_dynamic_shared,
        9 => facts.carveout,
        10 => facts.explicit_cluster,
        11..=13 => facts.cluster[attribute as usize - 11],
        14 => facts.large_clusters,
        15 => facts.spread,
        _ => return Err(Status::INVALID_VALUE),
    })
}

exported! { driver
    fn cuModuleLoad(call, module: Out<usize>, path: Text) => load(call, module, Image::new(origin_of_file(&path.get()?)?));
    fn cuModuleLoadData = cuModuleLoadFatBinary(call, module: Out<usize>, image: usize)
        => load(call, module, Image::new(origin_at(image)?));

    /// Loads a module from memory, with compiler options.
    fn cuModuleLoadDataEx(call, module: Out<usize>, image: usize, count: u32, options: usize, values: usize) {
        let most = most_registers(count, options, values)?;
        Logs::among(count, options, values)?.write(|| load(call, module, Image::new(origin_at(image)?).with_most_registers(most)))
    }

    /// Returns the loading mode: lazy.
    fn cuModuleGetLoadingMode(_call, mode: Out<u32>) => mode.set(2);
    /// Returns the module of a library. Both are the same object.
    fn cuLibraryGetModule(call, module: Out<usize>, library: usize) => call.runtime.modules.get(library)?, module.set(library);
    fn cuFuncGetAttribute(call, value: Out<i32>, attribute: u32, function: usize) => value.set(fact(call, attribute, function)?);
    fn cuKernelGetAttribute(call, value: Out<i32>, attribute: u32, kernel: usize, _device: i32)
        => value.set(fact(call, attribute, kernel)?);
    fn cuKernelSetAttribute(call, attribute: u32, value: i32, kernel: usize, _device: i32)
        => set_attribute(call.runtime, &*call.runtime.kernel(kernel)?, attribute, value);

    fn cuFuncGetModule = cuKernelGetLibrary(call, module: Out<usize>, function: usize) {
        let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
        module.set(call.runtime.modules.handle_of(kernel.image()).ok_or(Status::INVALID_HANDLE)?)
    }

    /// Accepts a cache configuration, which has no effect.
    fn cuKernelSetCacheConfig(call, kernel: usize, _config: u32, _device: i32) => call.runtime.kernel(kernel).map(drop);
    /// Reports every function as loaded.
    fn cuFuncIsLoaded(call, state: Out<u32>, function: usize) => call.runtime.kernel(function)?, state.set(1);
    fn cuFuncLoad(call, function: usize) => call.runtime.kernel(function)?.resolved(call.runtime).map(drop);
}
