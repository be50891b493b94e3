//! Structures that programs pass, with the layout of the headers.

use crate::location::MemLocation;
use crate::status::{Outcome, Status};

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

impl Dim3 {
    /// Converts to an array.
    pub(crate) fn list(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

/// `cudaExtent` and `cudaPos`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PitchedPtr {
    pub(crate) ptr: usize,
    pub(crate) pitch: usize,
    pub(crate) xsize: usize,
    pub(crate) ysize: usize,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memcpy3DParms {
    pub(crate) src_array: usize,
    pub(crate) src_pos: Extent,
    pub(crate) src_ptr: PitchedPtr,
    pub(crate) dst_array: usize,
    pub(crate) dst_pos: Extent,
    pub(crate) dst_ptr: PitchedPtr,
    pub(crate) extent: Extent,
    pub(crate) kind: u32,
}

/// `cudaLaunchConfig_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: usize,
    pub(crate) stream: usize,
    pub(crate) attributes: usize,
    pub(crate) count: u32,
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverLaunchConfig {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) stream: usize,
    pub(crate) attributes: usize,
    pub(crate) count: u32,
}

/// `cudaLaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: u32,
    pad: u32,
    pub(crate) value: [u32; 16],
}

/// `cudaFuncAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FuncAttributes {
    pub(crate) shared_bytes: usize,
    pub(crate) const_bytes: usize,
    pub(crate) local_bytes: usize,
    pub(crate) max_threads: i32,
    pub(crate) registers: i32,
    pub(crate) ptx_version: i32,
    pub(crate) binary_version: i32,
    pub(crate) cache_mode: i32,
    pub(crate) max_dynamic_shared: i32,
    pub(crate) carveout: i32,
    pub(crate) explicit_cluster: i32,
    pub(crate) cluster: [i32; 3],
    pub(crate) spread: i32,
    pub(crate) large_clusters: i32,
    pub(crate) reserved: i32,
}

/// `cudaPointerAttributes`, with the fields that all versions have.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PointerAttributes {
    pub(crate) kind: u32,
    pub(crate) device: i32,
    pub(crate) device_pointer: usize,
    pub(crate) host_pointer: usize,
}

/// `cudaMemcpyAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyAttributes {
    pub(crate) order: u32,
    pub(crate) from_hint: MemLocation,
    pub(crate) to_hint: MemLocation,
    pub(crate) flags: u32,
}

/// `cudaMemcpy3DOperand`: either address, row length in elements, rows per slice and a hint, or array and
/// offset.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopyOperand {
    pub(crate) kind: u32,
    pub(crate) words: [usize; 4],
}

/// `cudaMemcpy3DBatchOp`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BoxOperation {
    pub(crate) from: CopyOperand,
    pub(crate) to: CopyOperand,
    pub(crate) extent: Extent,
    pub(crate) order: u32,
    pub(crate) flags: u32,
}

/// `cudaMemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolProperties {
    pub(crate) kind: u32,
    pub(crate) handles: u32,
    pub(crate) location: MemLocation,
    pub(crate) security: usize,
    pub(crate) most: usize,
    pub(crate) usage: u16,
    reserved: [u8; 54],
}

impl PoolProperties {
    /// Creates the properties of a pool that cannot be shared and has no size limit.
    pub(crate) fn new(kind: u32, location: MemLocation) -> PoolProperties {
        PoolProperties { kind, handles: 0, location, security: 0, most: 0, usage: 0, reserved: [0; 54] }
    }
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocationProperties {
    pub(crate) kind: u32,
    pub(crate) handles: u32,
    pub(crate) location: MemLocation,
    pub(crate) security: usize,
    pub(crate) flags: [u8; 8],
}

impl AllocationProperties {
    /// Creates the properties of pinned memory at a location, with the kinds of handles for sharing it.
    pub(crate) fn new(location: MemLocation, handles: u32) -> AllocationProperties {
        AllocationProperties { kind: 1, handles, location, security: 0, flags: [0; 8] }
    }

    /// Checks that such memory can exist: it must be pinned, with a file descriptor as its handle or no
    /// handle.
    pub(crate) fn check(&self) -> Outcome {
        const STAYS: u32 = 1;
        self.location.checked()?;
        if self.kind != STAYS {
            return Err(Status::INVALID_VALUE);
        }
        if self.handles > 1 { Err(Status::NOT_SUPPORTED) } else { Ok(()) }
    }
}

/// `cudaDevResource`: a kind and its data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceResource {
    pub(crate) kind: u32,
    padding: [u32; 23],
    pub(crate) words: [u32; 10],
    next: usize,
}

impl DeviceResource {
    /// Creates a resource of multiprocessors: count, minimum partition size, alignment of partitions.
    pub(crate) fn multiprocessors(count: u32, least: u32, together: u32) -> DeviceResource {
        let mut words = [0; 10];
        words[..3].copy_from_slice(&[count, least, together]);
        DeviceResource { kind: 1, padding: [0; 23], words, next: 0 }
    }
}

/// `cudaLaunchParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchParams {
    pub(crate) function: usize,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) arguments: usize,
    pub(crate) shared: usize,
    pub(crate) stream: usize,
}

/// `CUDA_LAUNCH_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverLaunchParams {
    pub(crate) function: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) stream: usize,
    pub(crate) arguments: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverMemcpy2D {
    pub(crate) src_x: usize,
    pub(crate) src_y: usize,
    pub(crate) src_kind: u32,
    pub(crate) src_host: usize,
    pub(crate) src_device: u64,
    pub(crate) src_array: usize,
    pub(crate) src_pitch: usize,
    pub(crate) dst_x: usize,
    pub(crate) dst_y: usize,
    pub(crate) dst_kind: u32,
    pub(crate) dst_host: usize,
    pub(crate) dst_device: u64,
    pub(crate) dst_array: usize,
    pub(crate) dst_pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverSide {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) level: usize,
    pub(crate) kind: u32,
    pub(crate) host: usize,
    pub(crate) device: u64,
    pub(crate) array: usize,
    /// Context of `CUDA_MEMCPY3D_PEER`; 0 otherwise.
    pub(crate) context: usize,
    pub(crate) pitch: usize,
    pub(crate) height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverMemcpy3D {
    pub(crate) from: DriverSide,
    pub(crate) to: DriverSide,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `CUDA_KERNEL_NODE_PARAMS`: the runtime's parameters, followed by a library kernel and a context.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriverKernelNodeParams {
    pub(crate) params: KernelNodeParams,
    pub(crate) kernel: usize,
    pub(crate) context: usize,
}

/// `cudaGraphNodeParams`: the kind of a node and its parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphNodeParams {
    pub(crate) kind: u32,
    reserved: [u32; 3],
    pub(crate) words: [u64; 29],
    end: u64,
}

impl GraphNodeParams {
    /// Creates parameters of a kind, with all other words 0.
    pub(crate) fn new(kind: u32) -> GraphNodeParams {
        GraphNodeParams { kind, reserved: [0; 3], words: [0; 29], end: 0 }
    }
}

/// `cudaKernelNodeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelNodeParams {
    pub(crate) function: usize,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: u32,
    pub(crate) params: usize,
    pub(crate) extra: usize,
}

/// `cudaHostNodeParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostNodeParams {
    pub(crate) function: usize,
    pub(crate) data: usize,
}

/// `cudaMemsetParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemsetParams {
    pub(crate) dst: usize,
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    pub(crate) size: u32,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// `cudaMemAllocNodeParams`, up to the output fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemAllocNodeParams {
    pub(crate) pool: [u64; 11],
    pub(crate) access: usize,
    pub(crate) access_count: usize,
    pub(crate) bytes: usize,
    pub(crate) address: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares sizes with those of a C compiler for the CUDA 13 headers.
    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Memcpy3DParms>(), 160);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(size_of::<DriverLaunchConfig>(), 56);
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(size_of::<FuncAttributes>(), 80);
        assert_eq!(size_of::<DriverMemcpy2D>(), 128);
        assert_eq!(size_of::<DriverMemcpy3D>(), 200);
        assert_eq!((size_of::<DriverKernelNodeParams>(), size_of::<GraphNodeParams>()), (72, 256));
        assert_eq!(size_of::<KernelNodeParams>(), 56);
        assert_eq!(size_of::<MemsetParams>(), 40);
        assert_eq!(size_of::<MemAllocNodeParams>(), 120);
    }
}
