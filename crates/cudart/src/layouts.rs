//! Test that structures have the layout of NVIDIA's headers. `scripts/cuda-layouts.sh` extracts
//! `functions/layouts.txt` from the headers.

use crate::driver::textures::DriverTextureDesc;
use crate::location::MemLocation;
use crate::objects::textures::TextureDesc;
use crate::runtime::peers::PeerParms;
use crate::sharing::ShareHandle;
use crate::types::{
    AllocationProperties, BoxOperation, CopyAttributes, CopyOperand, DeviceResource, DriverKernelNodeParams, DriverLaunchConfig,
    DriverLaunchParams, DriverMemcpy2D, DriverMemcpy3D, Extent, FuncAttributes, GraphNodeParams, HostNodeParams,
    KernelNodeParams, LaunchAttribute, LaunchConfig, MemAllocNodeParams, Memcpy3DParms, MemsetParams, PitchedPtr, PoolProperties,
};
use std::collections::BTreeSet;
use std::mem::offset_of;

const LAYOUTS: &str = include_str!("../functions/layouts.txt");

/// Adds the layouts of types to a list: C type, `size` or field name, and the size or offset. After `starts` comes a
/// structure to which some versions of CUDA add fields.
macro_rules! layouts {
    ($list:ident: $($c:ident $relation:tt $ours:ty { $($field:ident: $($path:ident).+),* })*) => {
        $(
            layouts!(@$relation $list $c $ours);
            $($list.push((stringify!($c), stringify!($field), offset_of!($ours, $($path).+)));)*
        )*
    };
    (@= $list:ident $c:ident $ours:ty) => {
        $list.push((stringify!($c), "size", size_of::<$ours>()));
    };
    (@starts $list:ident $c:ident $ours:ty) => {};
}

/// Returns our layouts.
fn ours() -> Vec<(&'static str, &'static str, usize)> {
    let mut list = vec![];
    layouts! { list:
        cudaMemcpy3DParms = Memcpy3DParms {
            srcArray: src_array, srcPos: src_pos, srcPtr: src_ptr, dstArray: dst_array, dstPos: dst_pos,
            dstPtr: dst_ptr, extent: extent, kind: kind
        }
        cudaPitchedPtr = PitchedPtr { ptr: ptr, pitch: pitch, xsize: xsize, ysize: ysize }
        cudaExtent = Extent { width: width, height: height, depth: depth }
        cudaLaunchConfig_t = LaunchConfig {
            gridDim: grid, blockDim: block, dynamicSmemBytes: shared, stream: stream, attrs: attributes,
            numAttrs: count
        }
        CUlaunchConfig = DriverLaunchConfig {
            gridDimX: grid, blockDimX: block, sharedMemBytes: shared, hStream: stream, attrs: attributes,
            numAttrs: count
        }
        cudaLaunchAttribute = LaunchAttribute { id: id, val: value }
        cudaFuncAttributes starts FuncAttributes {
            sharedSizeBytes: shared_bytes, constSizeBytes: const_bytes, localSizeBytes: local_bytes,
            maxThreadsPerBlock: max_threads, numRegs: registers, ptxVersion: ptx_version,
            binaryVersion: binary_version, cacheModeCA: cache_mode, maxDynamicSharedSizeBytes: max_dynamic_shared,
            preferredShmemCarveout: carveout, clusterDimMustBeSet: explicit_cluster, requiredClusterWidth: cluster,
            clusterSchedulingPolicyPreference: spread, nonPortableClusterSizeAllowed: large_clusters
        }
        cudaMemcpyAttributes = CopyAttributes { srcAccessOrder: order, flags: flags }
        cudaMemcpy3DOperand = CopyOperand { type: kind, op: words }
        cudaMemcpy3DBatchOp = BoxOperation { src: from, dst: to, extent: extent, srcAccessOrder: order, flags: flags }
        CUDA_MEMCPY3D_BATCH_OP = BoxOperation {}
        cudaMemPoolProps = PoolProperties { allocType: kind, handleTypes: handles, location: location, maxSize: most }
        CUmemPoolProps = PoolProperties {}
        CUmemAllocationProp = AllocationProperties { requestedHandleTypes: handles, location: location }
        CUdevResource = DeviceResource { type: kind, sm: words }
        CUDA_LAUNCH_PARAMS = DriverLaunchParams {
            function: function, gridDimX: grid, blockDimX: block, sharedMemBytes: shared, hStream: stream,
            kernelParams: arguments
        }
        CUDA_MEMCPY3D_PEER = DriverMemcpy3D { srcContext: from.context, dstContext: to.context, dstPitch: to.pitch }
        cudaMemLocation = MemLocation { type: kind, id: id }
        CUDA_MEMCPY2D = DriverMemcpy2D {
            srcXInBytes: src_x, srcY: src_y, srcMemoryType: src_kind, srcHost: src_host, srcDevice: src_device,
            srcArray: src_array, srcPitch: src_pitch, dstXInBytes: dst_x, dstMemoryType: dst_kind, dstHost: dst_host,
            dstDevice: dst_device, dstArray: dst_array, dstPitch: dst_pitch, WidthInBytes: width, Height: height
        }
        CUDA_MEMCPY3D = DriverMemcpy3D {
            srcXInBytes: from.x, srcZ: from.z, srcMemoryType: from.kind, srcHost: from.host, srcDevice: from.device,
            srcArray: from.array, srcPitch: from.pitch, srcHeight: from.height, dstXInBytes: to.x,
            dstMemoryType: to.kind, dstDevice: to.device, dstPitch: to.pitch, WidthInBytes: width, Height: height,
            Depth: depth
        }
        CUDA_KERNEL_NODE_PARAMS = DriverKernelNodeParams {
            func: params.function, gridDimX: params.grid, blockDimX: params.block, sharedMemBytes: params.shared,
            kernelParams: params.params, extra: params.extra, kern: kernel, ctx: context
        }
        cudaGraphNodeParams = GraphNodeParams { type: kind, kernel: words }
        cudaKernelNodeParams = KernelNodeParams {
            func: function, gridDim: grid, blockDim: block, sharedMemBytes: shared, kernelParams: params, extra: extra
        }
        cudaHostNodeParams = HostNodeParams { fn: function, userData: data }
        cudaMemsetParams = MemsetParams { dst: dst, pitch: pitch, value: value, elementSize: size, width: width, height: height }
        cudaMemAllocNodeParams = MemAllocNodeParams {
            accessDescs: access, accessDescCount: access_count, bytesize: bytes, dptr: address
        }
        cudaTextureDesc = TextureDesc {
            addressMode: address, filterMode: filter, readMode: read, sRGB: srgb, borderColor: border,
            normalizedCoords: normalised, maxAnisotropy: anisotropy, mipmapFilterMode: level_filter,
            mipmapLevelBias: level_bias, minMipmapLevelClamp: least_level, maxMipmapLevelClamp: most_level,
            disableTrilinearOptimization: trilinear, seamlessCubemap: seamless
        }
        CUDA_TEXTURE_DESC = DriverTextureDesc {
            addressMode: address, filterMode: filter, flags: flags, maxAnisotropy: anisotropy,
            mipmapFilterMode: level_filter, mipmapLevelBias: level_bias, minMipmapLevelClamp: least_level,
            maxMipmapLevelClamp: most_level, borderColor: border
        }
        cudaMemcpy3DPeerParms = PeerParms {
            srcArray: src_array, srcPtr: src_ptr, srcDevice: src_device, dstArray: dst_array, dstDevice: dst_device,
            extent: extent
        }
        cudaIpcMemHandle_t = ShareHandle {}
        cudaIpcEventHandle_t = ShareHandle {}
        cudaMemPoolPtrExportData = ShareHandle {}
        CUstreamBatchMemOpParams = [u64; 6] {}
        CUDA_BATCH_MEM_OP_NODE_PARAMS = [u64; 4] {}
        CUDA_ARRAY_DESCRIPTOR = [u64; 3] {}
        CUDA_ARRAY3D_DESCRIPTOR = [u64; 5] {}
        CUDA_RESOURCE_DESC = [u64; 18] {}
        cudaConditionalNodeParams = [u64; 4] {}
        cudaKernelNodeAttrValue = [u64; 8] {}
        cudaGraphEdgeData = u64 {}
        cudaMemAccessDesc = [u32; 3] {}
        cudaChannelFormatDesc = [i32; 5] {}
        CUgraphNodeParams = GraphNodeParams {}
        CUDA_KERNEL_NODE_PARAMS_v3 = DriverKernelNodeParams {}
    }
    list
}

#[test]
fn structures_lie_as_the_headers_have_them() {
    let own: BTreeSet<String> = ours().into_iter().map(|(name, part, number)| format!("{name} {part} {number}")).collect();
    let headers: BTreeSet<String> = LAYOUTS.lines().map(str::to_owned).collect();
    let (missing, wrong): (Vec<_>, Vec<_>) = (headers.difference(&own).collect(), own.difference(&headers).collect());
    assert!(missing.is_empty() && wrong.is_empty(), "the headers have {missing:#?}, and ours are {wrong:#?}");
}
