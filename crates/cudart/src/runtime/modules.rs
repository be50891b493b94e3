//! Libraries: modules that a program loads while it runs.

use crate::boundary::exported;
use crate::driver::modules::{function, global, kernels, load, origin_at, origin_of_file};
use crate::image::Image;
use crate::jit::{Logs, most_registers};
use crate::pointer::{Out, Text};
use crate::status::Status;

exported! { runtime
    /// Loads a library from memory.
    fn cudaLibraryLoadData | cuLibraryLoadData(call, library: Out<usize>, code: usize, options: usize, values: usize, count: u32, _lo: usize, _lv: usize, _ln: u32) {
        let most = most_registers(count, options, values)?;
        Logs::among(count, options, values)?.write(|| load(call, library, Image::new(origin_at(code)?).with_most_registers(most)))
    }

    /// Loads a library from a file.
    fn cudaLibraryLoadFromFile | cuLibraryLoadFromFile(call, library: Out<usize>, path: Text, options: usize, values: usize, count: u32, _lo: usize, _lv: usize, _ln: u32) {
        let most = most_registers(count, options, values)?;
        Logs::among(count, options, values)?
            .write(|| load(call, library, Image::new(origin_of_file(&path.get()?)?).with_most_registers(most)))
    }

    /// Unloads a library.
    fn cudaLibraryUnload | cuModuleUnload = cuLibraryUnload(call, library: usize) {
        call.runtime.device()?;
        call.runtime.forget_kernels(&call.runtime.modules.remove(library)?);
        Ok(())
    }

    /// Returns a kernel of a library.
    fn cudaLibraryGetKernel | cuModuleGetFunction = cuLibraryGetKernel(call, kernel: Out<usize>, library: usize, name: Text) {
        function(call, kernel, library, name)
    }

    /// Returns a variable of a library.
    fn cudaLibraryGetGlobal = cudaLibraryGetManaged | cuModuleGetGlobal = cuModuleGetGlobal_v2 = cuLibraryGetGlobal = cuLibraryGetManaged(call, address: Out<u64>, bytes: Out<usize>, library: usize, name: Text) {
        global(call, address, bytes, library, name)
    }

    /// Returns the number of kernels of a library.
    fn cudaLibraryGetKernelCount | cuLibraryGetKernelCount(call, count: Out<u32>, library: usize) {
        let image = call.runtime.modules.get(library)?;
        count.set(image.loaded(call.runtime)?.module.code().kernels().count() as u32)
    }

    /// Returns as many kernels of a library as fit.
    fn cudaLibraryEnumerateKernels | cuLibraryEnumerateKernels = cuModuleEnumerateFunctions(call, place: Out<usize>, room: u32, library: usize) {
        if room == 0 {
            return Err(Status::INVALID_VALUE);
        }
        place.set_all(&kernels(call, library, room)?)
    }
}
