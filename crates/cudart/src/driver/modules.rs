//! Modules and libraries, their kernels and variables.

use crate::boundary::{Call, exported};
use crate::fatbin::container_bytes;
use crate::image::{Image, Origin};
use crate::jit::{Logs, most_registers};
use crate::pointer::{In, Out, Text, bytes_at};
use crate::registration::{Wrapper, origin};
use crate::runtime::functions::{attributes, kept_name, set_attribute};
pub(crate) use crate::runtime::functions::{
    cuFuncGetName, cuFuncGetParamCount, cuFuncGetParamInfo, cuFuncSetCacheConfig, cuFuncSetSharedMemConfig,
};
pub(crate) use crate::runtime::modules::{
    cuLibraryEnumerateKernels, cuLibraryGetGlobal, cuLibraryGetKernel, cuLibraryGetKernelCount, cuLibraryGetManaged,
    cuLibraryLoadData, cuLibraryLoadFromFile, cuLibraryUnload, cuModuleEnumerateFunctions, cuModuleGetFunction,
    cuModuleGetGlobal, cuModuleGetGlobal_v2, cuModuleUnload,
};
use crate::status::{Outcome, Status};
use crate::tell::tell;
use std::ffi::c_char;
use std::io::Read;

/// Detects the format of a module in memory: a fat binary with or without its control structure, or PTX.
pub(crate) fn origin_at(address: usize) -> Outcome<Origin> {
    let head = bytes_at(address, 4)?;
    if head == 0x4662_43b1u32.to_le_bytes() {
        return origin(In::<Wrapper>::at(address));
    }
    if head == 0xba55_ed50u32.to_le_bytes() {
        return Ok(Origin::FatBinaries(vec![address]));
    }
    if head == *b"\x7fELF" {
        tell("a module of machine code was loaded; compile it to PTX (`nvcc -ptx`) or to a fat binary with PTX");
        return Err(Status::NO_BINARY_FOR_GPU);
    }
    Ok(Origin::Text(Text::at(address).get()?))
}

/// Maximum size of a module file in bytes.
const MOST_FILE: u64 = 1 << 31;

/// Reads a module file. The size limit also stops files without an end.
pub(crate) fn file(path: &str) -> Outcome<Vec<u8>> {
    let mut bytes = vec![];
    let read = std::fs::File::open(path).and_then(|file| file.take(MOST_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|_| Status::FILE_NOT_FOUND)?;
    if bytes.len() as u64 > MOST_FILE { Err(Status::INVALID_IMAGE) } else { Ok(bytes) }
}

/// Detects the format of a module file.
pub(crate) fn origin_of_file(path: &str) -> Outcome<Origin> {
    let bytes = file(path)?;
    if container_bytes(&bytes).is_some() {
        return Ok(Origin::Bytes(bytes));
    }
    if bytes.starts_with(b"\x7fELF") {
        tell(&format!("{path} is machine code; compile it to PTX (`nvcc -ptx`) or to a fat binary with PTX"));
        return Err(Status::NO_BINARY_FOR_GPU);
    }
    String::from_utf8(bytes).map(|text| Origin::Text(text.trim_end_matches('\0').to_owned())).map_err(|_| Status::INVALID_IMAGE)
}

pub(crate) fn load(call: &Call, module: Out<usize>, image: Image) -> Outcome {
    module.wanted()?;
    image.loaded(call.runtime)?;
    module.set(call.runtime.modules.insert(image))
}

pub(crate) fn function(call: &Call, place: Out<usize>, module: usize, name: Text) -> Outcome {
    place.wanted()?;
    let image = call.runtime.modules.get(module)?;
    let name = name.get()?;
    image.loaded(call.runtime)?.module.kernel(&name).map_err(|_| Status::NOT_FOUND)?;
    place.set(call.runtime.add_kernel(&image, name).handle())
}

pub(crate) fn global(call: &Call, address: Out<u64>, bytes: Out<usize>, module: usize, name: Text) -> Outcome {
    let variable = call.runtime.modules.get(module)?.variable(call.runtime, &name.get()?)?;
    address.set_if_wanted(variable.address);
    bytes.set_if_wanted(variable.bytes as usize);
    Ok(())
}

/// Returns the handles of the first `most` kernels of a module.
pub(crate) fn kernels(call: &Call, module: usize, most: u32) -> Outcome<Vec<usize>> {
    let image = call.runtime.modules.get(module)?;
    let code = image.loaded(call.runtime)?.module.code();
    let names = code.kernels().map(|(_, kernel)| kernel.name.clone()).take(most as usize);
    Ok(names.map(|name| call.runtime.add_kernel(&image, name).handle()).collect())
}

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
    /// Loads a module from a file.
    fn cuModuleLoad(call, module: Out<usize>, path: Text) {
        load(call, module, Image::new(origin_of_file(&path.get()?)?))
    }

    /// Loads a module from memory.
    fn cuModuleLoadData = cuModuleLoadFatBinary(call, module: Out<usize>, image: usize) {
        load(call, module, Image::new(origin_at(image)?))
    }

    /// Loads a module from memory, with compiler options.
    fn cuModuleLoadDataEx(call, module: Out<usize>, image: usize, count: u32, options: usize, values: usize) {
        let most = most_registers(count, options, values)?;
        Logs::among(count, options, values)?.write(|| load(call, module, Image::new(origin_at(image)?).with_most_registers(most)))
    }

    /// Returns the number of kernels of a module.
    fn cuModuleGetFunctionCount(call, count: Out<u32>, module: usize) {
        let image = call.runtime.modules.get(module)?;
        count.set(image.loaded(call.runtime)?.module.code().kernels().count() as u32)
    }

    /// Returns the loading mode: lazy.
    fn cuModuleGetLoadingMode(_call, mode: Out<u32>) {
        mode.set(2)
    }

    /// Returns the module of a library. Both are the same object.
    fn cuLibraryGetModule(call, module: Out<usize>, library: usize) {
        call.runtime.modules.get(library)?;
        module.set(library)
    }

    /// Returns the function of a kernel. Both are the same object.
    fn cuKernelGetFunction(call, function: Out<usize>, kernel: usize) {
        function.set(call.runtime.kernel(kernel)?.handle())
    }

    /// Returns an attribute of a function.
    fn cuFuncGetAttribute(call, value: Out<i32>, attribute: u32, function: usize) {
        value.set(fact(call, attribute, function)?)
    }

    /// Sets an attribute of a function.
    fn cuFuncSetAttribute(call, function: usize, attribute: u32, value: i32) {
        set_attribute(call.runtime, &*call.runtime.kernel(function)?, attribute, value)
    }

    /// Returns an attribute of a kernel on a device.
    fn cuKernelGetAttribute(call, value: Out<i32>, attribute: u32, kernel: usize, _device: i32) {
        value.set(fact(call, attribute, kernel)?)
    }

    /// Sets an attribute of a kernel on a device.
    fn cuKernelSetAttribute(call, attribute: u32, value: i32, kernel: usize, _device: i32) {
        set_attribute(call.runtime, &*call.runtime.kernel(kernel)?, attribute, value)
    }

    /// Returns the name of a kernel.
    fn cuKernelGetName(call, name: Out<*const c_char>, kernel: usize) {
        name.set(kept_name(&*call.runtime.kernel(kernel)?))
    }

    /// Returns the module of a function.
    fn cuFuncGetModule(call, module: Out<usize>, function: usize) {
        let kernel = call.runtime.kernel(function).map_err(|_| Status::INVALID_HANDLE)?;
        module.set(call.runtime.modules.handle_of(kernel.image()).ok_or(Status::INVALID_HANDLE)?)
    }

    /// Returns the library of a kernel.
    fn cuKernelGetLibrary(call, library: Out<usize>, kernel: usize) {
        let kernel = call.runtime.kernel(kernel).map_err(|_| Status::INVALID_HANDLE)?;
        library.set(call.runtime.modules.handle_of(kernel.image()).ok_or(Status::INVALID_HANDLE)?)
    }

    /// Returns the number of parameters of a kernel.
    fn cuKernelGetParamCount(call, kernel: usize, count: Out<usize>) {
        count.set(call.runtime.kernel(kernel)?.resolved(call.runtime)?.kernel.params().len())
    }

    /// Returns offset and size of a parameter.
    fn cuKernelGetParamInfo(call, kernel: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let kernel = call.runtime.kernel(kernel)?;
        let param = kernel.resolved(call.runtime)?.kernel.params().get(index).ok_or(Status::INVALID_VALUE)?;
        offset.set(param.offset as usize)?;
        size.set_if_wanted(param.bytes as usize);
        Ok(())
    }

    /// Accepts a cache configuration, which has no effect.
    fn cuKernelSetCacheConfig(call, kernel: usize, _config: u32, _device: i32) {
        call.runtime.kernel(kernel).map(drop)
    }

    /// Reports every function as loaded.
    fn cuFuncIsLoaded(call, state: Out<u32>, function: usize) {
        call.runtime.kernel(function)?;
        state.set(1)
    }

    /// Loads a function.
    fn cuFuncLoad(call, function: usize) {
        call.runtime.kernel(function)?.resolved(call.runtime).map(drop)
    }
}
