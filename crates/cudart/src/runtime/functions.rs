//! Facts about kernels, and what programs set for them.

use crate::boundary::exported;
use crate::device::check_device;
use crate::kernels::Kernel;
use crate::occupancy::REGISTERS;
use crate::pointer::Out;
use crate::runtime::errors::kept;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::types::FuncAttributes;
use std::ffi::c_char;
use std::sync::atomic::Ordering;

/// The facts about a kernel.
pub(crate) fn attributes(runtime: &Runtime, kernel: &Kernel) -> Outcome<FuncAttributes> {
    let resolved = kernel.resolved(runtime)?;
    let known = runtime.judge(resolved.kernel.attributes())?;
    let version = resolved.version as i32;
    Ok(FuncAttributes {
        shared_bytes: resolved.static_shared as usize,
        const_bytes: resolved.constant as usize,
        local_bytes: resolved.local as usize,
        max_threads: resolved.max_threads as i32,
        registers: known.registers.unwrap_or(REGISTERS) as i32,
        ptx_version: version,
        binary_version: version,
        cache_mode: 0,
        max_dynamic_shared: kernel.max_dynamic(resolved) as i32,
        carveout: kernel.carveout.load(Ordering::Relaxed),
        rest: [0; 7],
    })
}

/// Sets what may be set for a kernel.
pub(crate) fn set_attribute(runtime: &Runtime, kernel: &Kernel, attribute: u32, value: i32) -> Outcome {
    const MAX_DYNAMIC_SHARED: u32 = 8;
    const CARVEOUT: u32 = 9;
    match attribute {
        MAX_DYNAMIC_SHARED => kernel.set_max_dynamic(runtime, value),
        CARVEOUT => {
            if !(-1..=100).contains(&value) {
                return Err(Status::INVALID_VALUE);
            }
            kernel.carveout.store(value, Ordering::Relaxed);
            Ok(())
        }
        // Clusters: sizes that a kernel must have, and whether unusual ones are allowed.
        11..=15 => Ok(()),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// A name that stays.
pub(crate) fn kept_name(kernel: &Kernel) -> *const c_char {
    kept(Box::leak(kernel.name().to_owned().into_boxed_str()))
}

exported! { runtime
    /// Facts about a kernel.
    fn cudaFuncGetAttributes(call, facts: Out<FuncAttributes>, function: usize) {
        facts.wanted()?;
        let kernel = call.runtime.kernel(function)?;
        facts.set(attributes(call.runtime, &kernel)?)
    }

    /// Sets something for a kernel.
    fn cudaFuncSetAttribute(call, function: usize, attribute: u32, value: i32) {
        let kernel = call.runtime.kernel(function)?;
        set_attribute(call.runtime, &kernel, attribute, value)
    }

    /// The same, for one device.
    fn cudaKernelSetAttributeForDevice(call, function: usize, attribute: u32, value: i32, device: i32) {
        check_device(device)?;
        let kernel = call.runtime.kernel(function)?;
        set_attribute(call.runtime, &kernel, attribute, value)
    }

    /// How caches are used, which makes no difference here.
    fn cudaFuncSetCacheConfig(call, function: usize, _config: u32) {
        call.runtime.kernel(function).map(drop)
    }

    /// How wide banks of shared memory are, which makes no difference here.
    fn cudaFuncSetSharedMemConfig(call, function: usize, _config: u32) {
        call.runtime.kernel(function).map(drop)
    }

    /// The name of a kernel.
    fn cudaFuncGetName(call, name: Out<*const c_char>, function: usize) {
        name.set(kept_name(&*call.runtime.kernel(function)?))
    }

    /// Where a parameter is in the block of parameters.
    fn cudaFuncGetParamInfo(call, function: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let kernel = call.runtime.kernel(function)?;
        let param = kernel.resolved(call.runtime)?.kernel.params().get(index).ok_or(Status::INVALID_VALUE)?;
        offset.set(param.offset as usize)?;
        size.set_if_wanted(param.bytes as usize);
        Ok(())
    }

    /// How many parameters a kernel has.
    fn cudaFuncGetParamCount(call, function: usize, count: Out<usize>) {
        count.set(call.runtime.kernel(function)?.resolved(call.runtime)?.kernel.params().len())
    }

    /// The driver's handle of a kernel.
    fn cudaGetFuncBySymbol(call, handle: Out<usize>, function: usize) {
        let kernel = call.runtime.kernel(function)?;
        kernel.resolved(call.runtime)?;
        handle.set(kernel.handle())
    }

    /// The handle of a kernel.
    fn cudaGetKernel(call, handle: Out<usize>, function: usize) {
        handle.set(call.runtime.kernel(function)?.handle())
    }
}
