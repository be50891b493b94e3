//! Attributes of kernels.

use crate::boundary::exported;
use crate::objects::kernels::Kernel;
use crate::occupancy::REGISTERS;
use crate::pointer::{Out, kept_text};
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::types::FuncAttributes;
use std::ffi::c_char;
use std::sync::atomic::Ordering;

/// Returns the attributes of a kernel.
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
        explicit_cluster: i32::from(resolved.kernel.function().directive("explicitcluster").is_some()),
        cluster: kernel.required(resolved).map_or([0; 3], |size| size.map(|blocks| blocks as i32)),
        spread: kernel.spread.load(Ordering::Relaxed) as i32,
        large_clusters: i32::from(kernel.large_clusters.load(Ordering::Relaxed)),
        reserved: 0,
    })
}

/// Sets an attribute of a kernel.
pub(crate) fn set_attribute(runtime: &Runtime, kernel: &Kernel, attribute: u32, value: i32) -> Outcome {
    const MAX_DYNAMIC_SHARED: u32 = 8;
    const CARVEOUT: u32 = 9;
    const REQUIRED_WIDTH: u32 = 11;
    const REQUIRED_DEPTH: u32 = 13;
    const LARGE_CLUSTERS: u32 = 14;
    const SPREAD: u32 = 15;
    let resolved = kernel.resolved(runtime)?;
    match attribute {
        MAX_DYNAMIC_SHARED => kernel.set_max_dynamic(runtime, value),
        CARVEOUT => {
            if !(-1..=100).contains(&value) {
                return Err(Status::INVALID_VALUE);
            }
            kernel.carveout.store(value, Ordering::Relaxed);
            Ok(())
        }
        // A compiled-in cluster size cannot be changed.
        REQUIRED_WIDTH..=REQUIRED_DEPTH => {
            let blocks = u32::try_from(value).map_err(|_| Status::INVALID_VALUE)?;
            if resolved.kernel.function().directive("reqnctapercluster").is_some() {
                return Err(Status::NOT_PERMITTED);
            }
            kernel.required_cluster[(attribute - REQUIRED_WIDTH) as usize].store(blocks, Ordering::Relaxed);
            Ok(())
        }
        LARGE_CLUSTERS if value == 0 || value == 1 => {
            kernel.large_clusters.store(value == 1, Ordering::Relaxed);
            Ok(())
        }
        SPREAD if (0..=2).contains(&value) => {
            kernel.spread.store(value as u32, Ordering::Relaxed);
            Ok(())
        }
        _ => Err(Status::INVALID_VALUE),
    }
}

/// Returns a kernel's name as a pointer that stays valid.
pub(crate) fn kept_name(kernel: &Kernel) -> *const c_char {
    kept_text(Box::leak(kernel.name().to_owned().into_boxed_str()))
}

exported! { runtime
    /// Accepts a cache configuration, which has no effect.
    fn cudaFuncSetCacheConfig = cudaFuncSetSharedMemConfig | cuFuncSetCacheConfig = cuFuncSetSharedMemConfig(call, function: usize, _config: u32)
        => call.runtime.kernel(function).map(drop);
    fn cudaFuncGetName | cuFuncGetName = cuKernelGetName(call, name: Out<*const c_char>, function: usize)
        => name.set(kept_name(&*call.runtime.kernel(function)?));

    fn cudaFuncGetParamInfo | cuFuncGetParamInfo = cuKernelGetParamInfo(call, function: usize, index: usize, offset: Out<usize>, size: Out<usize>) {
        let kernel = call.runtime.kernel(function)?;
        let param = kernel.resolved(call.runtime)?.kernel.params().get(index).ok_or(Status::INVALID_VALUE)?;
        offset.set(param.offset as usize)?;
        size.set_if_wanted(param.bytes as usize);
        Ok(())
    }

    fn cudaFuncGetParamCount | cuFuncGetParamCount = cuKernelGetParamCount(call, function: usize, count: Out<usize>)
        => count.set(call.runtime.kernel(function)?.resolved(call.runtime)?.kernel.params().len());

    fn cudaFuncSetAttribute | cuFuncSetAttribute(call, function: usize, attribute: u32, value: i32) {
        let kernel = call.runtime.kernel(function)?;
        set_attribute(call.runtime, &kernel, attribute, value)
    }

    fn cudaGetKernel | cuKernelGetFunction(call, handle: Out<usize>, function: usize)
        => handle.set(call.runtime.kernel(function)?.handle());
}
