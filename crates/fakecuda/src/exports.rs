//! Functions under the driver's names, one line each. The implementation is in the module of their kind.

#![allow(non_snake_case, reason = "functions have the driver's names")]

use crate::blas::Side;
use crate::code::Code;
use crate::graph::{CopyNode, FillNode, KernelNode};
use crate::{blas, device, graph, launch, link, memory, stream};
use broadloom_device::Launch;
use std::ffi::{c_char, c_int, c_uint, c_void};

macro_rules! exports {
    ($($name:ident($($argument:ident: $ty:ty),*) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unused_unsafe, reason = "some take nothing that could be wrong")]
            pub(crate) unsafe extern "C" fn $name($($argument: $ty),*) -> Code {
                // SAFETY: the caller passes the arguments that the driver's interface requires.
                unsafe { $body }
            }
        )*
    };
}

/// `CUlaunchAttribute`.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    id: c_int,
    pad: c_int,
    value: [c_int; 16],
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: usize,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

exports! {
    cuInit(_flags: c_uint) { device::init() }
    cuDriverGetVersion(version: *mut c_int) { device::driver_version(version) }
    cuGetErrorName(code: Code, name: *mut *const c_char) { device::error_text(code, name, true) }
    cuGetErrorString(code: Code, text: *mut *const c_char) { device::error_text(code, text, false) }
    cuDeviceGetCount(count: *mut c_int) { device::device_count(count) }
    cuDeviceGet(place: *mut c_int, ordinal: c_int) { device::get_device(place, ordinal) }
    cuDeviceGetName(name: *mut c_char, bytes: c_int, device: c_int) { device::device_name(name, bytes, device) }
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) { device::device_attribute(value, attribute, device) }
    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) { device::device_memory(bytes, device) }
    cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) { device::retain(context, device) }
    cuDevicePrimaryCtxRelease_v2(device: c_int) { device::release(device) }
    cuDevicePrimaryCtxReset_v2(device: c_int) { device::reset(device) }
    cuCtxSetCurrent(context: usize) { device::make_current(context) }
    cuCtxSetLimit(limit: c_int, value: usize) { device::set_limit(limit, value) }
    cuMemAlloc_v2(address: *mut u64, bytes: usize) { memory::allocate(address, bytes) }
    cuMemFree_v2(address: u64) { memory::free(address) }
    cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint) { memory::pin(pointer, bytes, flags) }
    cuMemHostUnregister(pointer: *mut c_void) { memory::unpin(pointer) }
    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, at: usize) { memory::copy_in(to, from, bytes, at) }
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, at: usize) { memory::copy_out(to, from, bytes, at) }
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, at: usize) { memory::copy(to, from, bytes, at) }
    cuMemsetD8Async(address: u64, value: u8, count: usize, at: usize) { memory::fill(address, value, count, at) }
    cuStreamCreate(place: *mut usize, flags: c_uint) { stream::create(place, flags) }
    cuStreamDestroy_v2(handle: usize) { stream::destroy(handle) }
    cuStreamSynchronize(handle: usize) { stream::synchronise(handle) }
    cuStreamQuery(handle: usize) { stream::query(handle) }
    cuStreamWaitEvent(handle: usize, event: usize, flags: c_uint) { stream::wait(handle, event, flags) }
    cuEventCreate(place: *mut usize, flags: c_uint) { stream::create_event(place, flags) }
    cuEventDestroy_v2(event: usize) { stream::destroy_event(event) }
    cuEventRecord(event: usize, at: usize) { stream::record(event, at) }
    cuEventQuery(event: usize) { stream::query_event(event) }
    cuEventSynchronize(event: usize) { stream::synchronise_event(event) }
    cuEventElapsedTime_v2(milliseconds: *mut f32, start: usize, end: usize) { stream::elapsed(milliseconds, start, end) }
    cuModuleLoadDataEx(
        module: *mut usize,
        image: *const c_void,
        count: c_uint,
        options: *const c_int,
        values: *const *mut c_void
    ) { launch::load(module, image, count, options, values) }
    cuLinkCreate_v2(_count: c_uint, _options: *const c_int, _values: *const *mut c_void, place: *mut usize) { link::create(place) }
    cuLinkAddData_v2(
        handle: usize,
        kind: c_int,
        data: *const c_void,
        bytes: usize,
        _name: *const c_char,
        _count: c_uint,
        _options: *const c_int,
        _values: *const *mut c_void
    ) { link::add(handle, kind, data, bytes) }
    cuLinkComplete(handle: usize, image: *mut *mut c_void, bytes: *mut usize) { link::complete(handle, image, bytes) }
    cuLinkDestroy(handle: usize) { link::destroy(handle) }
    cuModuleUnload(module: usize) { launch::unload(module) }
    cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) { launch::function(function, module, name) }
    cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: usize, name: *const c_char) {
        launch::variable(address, bytes, module, name)
    }
    cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: usize) { launch::attribute(value, attribute, function) }
    cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) { launch::set_attribute(function, attribute, value) }
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: usize, threads: c_int, _shared: usize) {
        launch::occupancy(blocks, function, threads)
    }
    cuLaunchKernel(
        function: usize,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        at: usize,
        _params: *const *const c_void,
        extra: *const usize
    ) {
        let shape = Launch::new([grid_x, grid_y, grid_z], [block_x, block_y, block_z]).shared(shared);
        launch::launch("cuLaunchKernel", function, shape, at, extra)
    }
    cuLaunchKernelEx(config: *const LaunchConfig, function: usize, _params: *const *const c_void, extra: *const usize) {
        let config = &*config;
        let mut shape = Launch::new(config.grid, config.block).shared(config.shared_bytes);
        for index in 0..config.attribute_count as usize {
            let attribute = &*config.attributes.add(index);
            // Cooperative launch. The other attribute in use, early start, is only a permission.
            shape.cooperative |= attribute.id == 2 && attribute.value[0] != 0;
            if attribute.id == 4 {
                shape.cluster = Some([0, 1, 2].map(|axis: usize| attribute.value[axis] as u32));
            }
        }
        launch::launch("cuLaunchKernelEx", function, shape, config.stream, extra)
    }
    cuGraphCreate(place: *mut usize, flags: c_uint) { graph::create(place, flags) }
    cuGraphDestroy(handle: usize) { graph::destroy(handle) }
    cuGraphAddKernelNode_v2(place: *mut usize, handle: usize, after: *const usize, count: usize, node: *const KernelNode) {
        graph::add_kernel(place, handle, after, count, node)
    }
    cuGraphAddMemcpyNode(
        place: *mut usize,
        handle: usize,
        after: *const usize,
        count: usize,
        node: *const CopyNode,
        _context: usize
    ) { graph::add_copy(place, handle, after, count, node) }
    cuGraphAddMemsetNode(
        place: *mut usize,
        handle: usize,
        after: *const usize,
        count: usize,
        node: *const FillNode,
        _context: usize
    ) { graph::add_fill(place, handle, after, count, node) }
    cuGraphKernelNodeSetAttribute(node: usize, attribute: c_int, value: *const c_int) { graph::set_attribute(node, attribute, value) }
    cuGraphInstantiateWithFlags(exec: *mut usize, handle: usize, _flags: u64) { graph::instantiate(exec, handle) }
    cuGraphExecDestroy(exec: usize) { graph::destroy_exec(exec) }
    cuGraphLaunch(exec: usize, at: usize) { graph::launch(exec, at) }
    cublasCreate_v2(place: *mut usize) { blas::create(place) }
    cublasDestroy_v2(handle: usize) { blas::destroy(handle) }
    cublasSetStream_v2(handle: usize, at: usize) { blas::set_stream(handle, at) }
    cublasSgemm_v2(
        handle: usize,
        a_way: c_int,
        b_way: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        _alpha: *const f32,
        a: u64,
        a_stride: c_int,
        b: u64,
        b_stride: c_int,
        _beta: *const f32,
        c: u64,
        c_stride: c_int
    ) {
        let side = |transposed, address, stride| Side { transposed, address, stride };
        let (a, b, c) = (side(a_way, a, a_stride), side(b_way, b, b_stride), side(0, c, c_stride));
        blas::product::<f32>("cublasSgemm", handle, [m, n, k], &a, &b, &c)
    }
    cublasDgemm_v2(
        handle: usize,
        a_way: c_int,
        b_way: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        _alpha: *const f64,
        a: u64,
        a_stride: c_int,
        b: u64,
        b_stride: c_int,
        _beta: *const f64,
        c: u64,
        c_stride: c_int
    ) {
        let side = |transposed, address, stride| Side { transposed, address, stride };
        let (a, b, c) = (side(a_way, a, a_stride), side(b_way, b, b_stride), side(0, c, c_stride));
        blas::product::<f64>("cublasDgemm", handle, [m, n, k], &a, &b, &c)
    }
}
