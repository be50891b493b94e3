//! Libraries: modules that a program loads while it runs.

use crate::boundary::{Call, exported};
use crate::fatbin::container_bytes;
use crate::jit::{Logs, most_registers};
use crate::objects::image::{Image, Origin};
use crate::pointer::{In, Out, Text, bytes_at};
use crate::registration::{Wrapper, origin};
use crate::status::{Outcome, Status};
use crate::tell::tell;
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

exported! { runtime
    fn cudaLibraryLoadData | cuLibraryLoadData(call, library: Out<usize>, code: usize, options: usize, values: usize, count: u32, _lo: usize, _lv: usize, _ln: u32) {
        let most = most_registers(count, options, values)?;
        Logs::among(count, options, values)?.write(|| load(call, library, Image::new(origin_at(code)?).with_most_registers(most)))
    }

    fn cudaLibraryLoadFromFile | cuLibraryLoadFromFile(call, library: Out<usize>, path: Text, options: usize, values: usize, count: u32, _lo: usize, _lv: usize, _ln: u32) {
        let most = most_registers(count, options, values)?;
        Logs::among(count, options, values)?
            .write(|| load(call, library, Image::new(origin_of_file(&path.get()?)?).with_most_registers(most)))
    }

    fn cudaLibraryUnload | cuModuleUnload = cuLibraryUnload(call, library: usize) {
        call.runtime.device()?;
        call.runtime.forget_kernels(&call.runtime.modules.remove(library)?);
        Ok(())
    }

    fn cudaLibraryGetKernel | cuModuleGetFunction = cuLibraryGetKernel(call, kernel: Out<usize>, library: usize, name: Text)
        => function(call, kernel, library, name);
    fn cudaLibraryGetGlobal = cudaLibraryGetManaged | cuModuleGetGlobal = cuModuleGetGlobal_v2 = cuLibraryGetGlobal = cuLibraryGetManaged(call, address: Out<u64>, bytes: Out<usize>, library: usize, name: Text)
        => global(call, address, bytes, library, name);

    fn cudaLibraryGetKernelCount | cuLibraryGetKernelCount = cuModuleGetFunctionCount(call, count: Out<u32>, library: usize) {
        let image = call.runtime.modules.get(library)?;
        count.set(image.loaded(call.runtime)?.module.code().kernels().count() as u32)
    }

    fn cudaLibraryEnumerateKernels | cuLibraryEnumerateKernels = cuModuleEnumerateFunctions(call, place: Out<usize>, room: u32, library: usize) {
        if room == 0 {
            return Err(Status::INVALID_VALUE);
        }
        place.set_all(&kernels(call, library, room)?)
    }
}
