//! What compiled programs call before `main`, and at their end.

use crate::boundary::{DefaultStream, runtime};
use crate::pointer::{In, Out, Text};
use crate::registration::Wrapper;

/// Registers a fat binary; a handle to it.
pub(crate) extern "C" fn __cudaRegisterFatBinary(wrapper: In<Wrapper>) -> usize {
    let mut handle = 0;
    runtime("__cudaRegisterFatBinary", DefaultStream::Legacy, |call| {
        handle = call.runtime.registry.add(wrapper)?;
        Ok(())
    });
    handle
}

/// All of a fat binary is registered.
pub(crate) extern "C" fn __cudaRegisterFatBinaryEnd(_handle: usize) {}

/// A fat binary goes away: a library is closed, or the program ends.
pub(crate) extern "C" fn __cudaUnregisterFatBinary(handle: usize) {
    runtime("__cudaUnregisterFatBinary", DefaultStream::Legacy, |call| {
        if let Ok(image) = call.runtime.registry.image(handle) {
            call.runtime.forget_kernels(&image);
            call.runtime.registry.remove(handle);
        }
        Ok(())
    });
}

/// Says which kernel a function of the host stands for.
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

/// Says which variable one of the host stands for.
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

/// Says where the host keeps the address of a managed variable.
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

/// Says which variable one of the host stands for that the device reads directly.
pub(crate) extern "C" fn __cudaRegisterHostVar(handle: usize, name: Text, host: usize, _bytes: usize) {
    runtime("__cudaRegisterHostVar", DefaultStream::Legacy, |call| call.runtime.registry.add_variable(handle, host, name.get()?));
}

/// The program is about to use a managed variable of a fat binary: its address must be there.
pub(crate) extern "C" fn __cudaInitModule(handle: usize) -> u8 {
    let status = runtime("__cudaInitModule", DefaultStream::Legacy, |call| {
        let image = call.runtime.registry.image(handle)?;
        if image.has_managed() { image.loaded(call.runtime).map(drop) } else { Ok(()) }
    });
    u8::from(status == 0)
}

/// A table of functions for both sides of a program; there is none here.
pub(crate) extern "C" fn __cudaRegisterUnifiedTable(_handle: usize, _table: Out<usize>) {}
