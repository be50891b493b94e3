//! Functions that compiled programs call before `main` and at exit.

use crate::boundary::{DefaultStream, runtime};
use crate::pointer::{In, Out, Text};
use crate::registration::Wrapper;

/// Registers a fat binary and returns its handle.
pub(crate) extern "C" fn __cudaRegisterFatBinary(wrapper: In<Wrapper>) -> usize {
    let mut handle = 0;
    runtime("__cudaRegisterFatBinary", DefaultStream::Legacy, |call| {
        handle = call.runtime.registry.add(wrapper)?;
        Ok(())
    });
    handle
}

/// Ends the registration of a fat binary.
pub(crate) extern "C" fn __cudaRegisterFatBinaryEnd(_handle: usize) {}

/// Unregisters a fat binary when a library is closed or the program ends.
pub(crate) extern "C" fn __cudaUnregisterFatBinary(handle: usize) {
    runtime("__cudaUnregisterFatBinary", DefaultStream::Legacy, |call| {
        if let Ok(image) = call.runtime.registry.image(handle) {
            call.runtime.forget_kernels(&image);
            call.runtime.registry.remove(handle);
        }
        Ok(())
    });
}

/// Registers the kernel of a host function.
pub(crate) extern "C" fn __cudaRegisterFunction(
    handle: usize,
    host: usize,
    _device: Text,
    name: Text,
    _thread_limit: i32,
    _tid: usize,
    _bid: usize,
    _block: usize,
    _grid: usize,
    _warp_size: usize,
) {
    runtime("__cudaRegisterFunction", DefaultStream::Legacy, |call| {
        call.runtime.registry.add_function(handle, host, name.get()?)
    });
}

/// Registers the device variable of a host variable.
pub(crate) extern "C" fn __cudaRegisterVar(
    handle: usize,
    host: usize,
    _address: usize,
    name: Text,
    _external: i32,
    _bytes: usize,
    _constant: i32,
    _global: i32,
) {
    runtime("__cudaRegisterVar", DefaultStream::Legacy, |call| call.runtime.registry.add_variable(handle, host, name.get()?));
}

/// Registers the host address that receives the address of a managed variable.
pub(crate) extern "C" fn __cudaRegisterManagedVar(
    handle: usize,
    host: usize,
    _address: usize,
    name: Text,
    _external: i32,
    _bytes: usize,
    _constant: i32,
    _global: i32,
) {
    runtime("__cudaRegisterManagedVar", DefaultStream::Legacy, |call| {
        let registry = &call.runtime.registry;
        registry.image(handle)?.add_managed(name.get()?, host);
        registry.add_variable(handle, host, name.get()?)
    });
}

/// Registers a host variable that the device reads directly.
pub(crate) extern "C" fn __cudaRegisterHostVar(handle: usize, name: Text, host: usize, _bytes: usize) {
    runtime("__cudaRegisterHostVar", DefaultStream::Legacy, |call| call.runtime.registry.add_variable(handle, host, name.get()?));
}

/// Loads a fat binary whose managed variables the program is about to use.
pub(crate) extern "C" fn __cudaInitModule(handle: usize) -> u8 {
    let status = runtime("__cudaInitModule", DefaultStream::Legacy, |call| {
        let image = call.runtime.registry.image(handle)?;
        if image.has_managed() { image.loaded(call.runtime).map(drop) } else { Ok(()) }
    });
    u8::from(status == 0)
}

/// Does nothing: there is no unified function table here.
pub(crate) extern "C" fn __cudaRegisterUnifiedTable(_handle: usize, _table: Out<usize>) {}
