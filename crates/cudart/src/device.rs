//! Properties and attributes of the device in CUDA's terms.
//!
//! The numbers describe the host machine in a form that CUDA programs accept. Each core is a multiprocessor,
//! warps have 32 threads, and the compute capability is configurable. Features that a CPU lacks are 0. One
//! list of fields serves the attributes and `cudaDeviceProp` in all its versions.

use crate::state::Runtime;
use crate::status::{Outcome, Status};
use FieldLayout::{Bytes, Ints, Size};
use FieldVersion::{All, Old, Thirteen, Twelve};

/// Limits from which occupancy is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) threads_per_multiprocessor: u32,
    pub(crate) blocks_per_multiprocessor: u32,
    pub(crate) shared_per_multiprocessor: u32,
}

impl Limits {
    pub(crate) fn of(runtime: &Runtime) -> Outcome<Limits> {
        let shared = runtime.device()?.machine().max_shared_bytes + 1024;
        let (threads, blocks) = match runtime.capability() {
            75 => (1024, 16),
            86..=89 => (1536, 16),
            _ => (2048, 32),
        };
        Ok(Limits { threads_per_multiprocessor: threads, blocks_per_multiprocessor: blocks, shared_per_multiprocessor: shared })
    }
}

/// Layout of a field in `cudaDeviceProp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldLayout {
    /// Byte array.
    Bytes(usize),
    /// Array of `int`.
    Ints(usize),
    /// One `size_t`.
    Size,
}

/// Versions of the structure that contain a field. Versions 11 and 12 start with the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldVersion {
    All,
    /// Versions up to 12.
    Old,
    /// Versions from 12 on.
    Twelve,
    /// Versions from 13 on.
    Thirteen,
}

/// Fields in order, each with the number of its first attribute.
const FIELDS: &[(&str, FieldLayout, FieldVersion, u32)] = &[
    ("name", Bytes(256), All, 0),
    ("uuid", Bytes(16), All, 0),
    ("luid", Bytes(8), All, 0),
    ("luidDeviceNodeMask", Ints(1), All, 0),
    ("totalGlobalMem", Size, All, 0),
    ("sharedMemPerBlock", Size, All, 8),
    ("regsPerBlock", Ints(1), All, 12),
    ("warpSize", Ints(1), All, 10),
    ("memPitch", Size, All, 11),
    ("maxThreadsPerBlock", Ints(1), All, 1),
    ("maxThreadsDim", Ints(3), All, 2),
    ("maxGridSize", Ints(3), All, 5),
    ("clockRate", Ints(1), Old, 13),
    ("totalConstMem", Size, All, 9),
    ("major", Ints(1), All, 75),
    ("minor", Ints(1), All, 76),
    ("textureAlignment", Size, All, 14),
    ("texturePitchAlignment", Size, All, 51),
    ("deviceOverlap", Ints(1), Old, 15),
    ("multiProcessorCount", Ints(1), All, 16),
    ("kernelExecTimeoutEnabled", Ints(1), Old, 17),
    ("integrated", Ints(1), All, 18),
    ("canMapHostMemory", Ints(1), All, 19),
    ("computeMode", Ints(1), Old, 20),
    ("maxTexture1D", Ints(1), All, 21),
    ("maxTexture1DMipmap", Ints(1), All, 77),
    ("maxTexture1DLinear", Ints(1), Old, 69),
    ("maxTexture2D", Ints(2), All, 22),
    ("maxTexture2DMipmap", Ints(2), All, 73),
    ("maxTexture2DLinear", Ints(3), All, 70),
    ("maxTexture2DGather", Ints(2), All, 45),
    ("maxTexture3D", Ints(3), All, 24),
    ("maxTexture3DAlt", Ints(3), All, 47),
    ("maxTextureCubemap", Ints(1), All, 52),
    ("maxTexture1DLayered", Ints(2), All, 42),
    ("maxTexture2DLayered", Ints(3), All, 27),
    ("maxTextureCubemapLayered", Ints(2), All, 53),
    ("maxSurface1D", Ints(1), All, 55),
    ("maxSurface2D", Ints(2), All, 56),
    ("maxSurface3D", Ints(3), All, 58),
    ("maxSurface1DLayered", Ints(2), All, 61),
    ("maxSurface2DLayered", Ints(3), All, 63),
    ("maxSurfaceCubemap", Ints(1), All, 66),
    ("maxSurfaceCubemapLayered", Ints(2), All, 67),
    ("surfaceAlignment", Size, All, 30),
    ("concurrentKernels", Ints(1), All, 31),
    ("ECCEnabled", Ints(1), All, 32),
    ("pciBusID", Ints(1), All, 33),
    ("pciDeviceID", Ints(1), All, 34),
    ("pciDomainID", Ints(1), All, 50),
    ("tccDriver", Ints(1), All, 35),
    ("asyncEngineCount", Ints(1), All, 40),
    ("unifiedAddressing", Ints(1), All, 41),
    ("memoryClockRate", Ints(1), Old, 36),
    ("memoryBusWidth", Ints(1), All, 37),
    ("l2CacheSize", Ints(1), All, 38),
    ("persistingL2CacheMaxSize", Ints(1), All, 108),
    ("maxThreadsPerMultiProcessor", Ints(1), All, 39),
    ("streamPrioritiesSupported", Ints(1), All, 78),
    ("globalL1CacheSupported", Ints(1), All, 79),
    ("localL1CacheSupported", Ints(1), All, 80),
    ("sharedMemPerMultiprocessor", Size, All, 81),
    ("regsPerMultiprocessor", Ints(1), All, 82),
    ("managedMemory", Ints(1), All, 83),
    ("isMultiGpuBoard", Ints(1), All, 84),
    ("multiGpuBoardGroupID", Ints(1), All, 85),
    ("hostNativeAtomicSupported", Ints(1), All, 86),
    ("singleToDoublePrecisionPerfRatio", Ints(1), Old, 87),
    ("pageableMemoryAccess", Ints(1), All, 88),
    ("concurrentManagedAccess", Ints(1), All, 89),
    ("computePreemptionSupported", Ints(1), All, 90),
    ("canUseHostPointerForRegisteredMem", Ints(1), All, 91),
    ("cooperativeLaunch", Ints(1), All, 95),
    ("cooperativeMultiDeviceLaunch", Ints(1), Old, 96),
    ("sharedMemPerBlockOptin", Size, All, 97),
    ("pageableMemoryAccessUsesHostPageTables", Ints(1), All, 100),
    ("directManagedMemAccessFromHost", Ints(1), All, 101),
    ("maxBlocksPerMultiProcessor", Ints(1), All, 106),
    ("accessPolicyMaxWindowSize", Ints(1), All, 109),
    ("reservedSharedMemPerBlock", Size, All, 111),
    ("hostRegisterSupported", Ints(1), Twelve, 99),
    ("sparseCudaArraySupported", Ints(1), Twelve, 112),
    ("hostRegisterReadOnlySupported", Ints(1), Twelve, 113),
    ("timelineSemaphoreInteropSupported", Ints(1), Twelve, 114),
    ("memoryPoolsSupported", Ints(1), Twelve, 115),
    ("gpuDirectRDMASupported", Ints(1), Twelve, 116),
    ("gpuDirectRDMAFlushWritesOptions", Ints(1), Twelve, 117),
    ("gpuDirectRDMAWritesOrdering", Ints(1), Twelve, 118),
    ("memoryPoolSupportedHandleTypes", Ints(1), Twelve, 119),
    ("deferredMappingCudaArraySupported", Ints(1), Twelve, 121),
    ("ipcEventSupported", Ints(1), Twelve, 125),
    ("clusterLaunch", Ints(1), Twelve, 120),
    ("unifiedFunctionPointers", Ints(1), Twelve, 129),
    ("deviceNumaConfig", Ints(1), Thirteen, 130),
    ("deviceNumaId", Ints(1), Thirteen, 131),
    ("mpsEnabled", Ints(1), Thirteen, 133),
    ("hostNumaId", Ints(1), Thirteen, 134),
    ("gpuPciDeviceID", Ints(1), Thirteen, 139),
    ("gpuPciSubsystemID", Ints(1), Thirteen, 140),
    ("hostNumaMultinodeIpcSupported", Ints(1), Thirteen, 143),
];

/// Values of the attributes that are not fields of the structure.
const OTHER_ATTRIBUTES: &[(u32, i64)] = &[
    (98, 0),
    (104, 0),
    (105, 0),
    (107, 0),
    (110, 0),
    (124, 0),
    (126, 1),
    (127, 0),
    (128, 0),
    (132, 0),
    (135, 0),
    (136, 0),
    (137, 0),
    (138, 0),
    (141, 0),
    (142, 0),
];

impl Runtime {
    pub(crate) fn device_name(&self) -> Outcome<String> {
        Ok(format!("Broadloom on {}", self.device()?.machine().name.trim()))
    }

    /// Returns the value of a field, or of one element of an array field.
    fn field(&self, name: &str, index: usize) -> Outcome<i64> {
        let opened = self.device()?;
        let machine = opened.machine();
        let limits = Limits::of(self)?;
        let int = i64::from;
        let capability = int(self.capability());
        let host = int(u32::from(opened.unified));
        Ok(match name {
            "totalGlobalMem" => machine.memory_bytes as i64,
            "sharedMemPerBlock" => int(crate::objects::kernels::DEFAULT_SHARED),
            "sharedMemPerBlockOptin" => int(machine.max_shared_bytes),
            "sharedMemPerMultiprocessor" => int(limits.shared_per_multiprocessor),
            "reservedSharedMemPerBlock" => 1024,
            "regsPerBlock" | "regsPerMultiprocessor" => 65536,
            "warpSize" => int(machine.warp_size),
            "memPitch" => int(i32::MAX as u32),
            "maxThreadsPerBlock" => int(machine.max_threads_per_block),
            "maxThreadsDim" => int(machine.max_block[index]),
            "maxGridSize" => int(machine.max_grid[index]),
            "maxThreadsPerMultiProcessor" => int(limits.threads_per_multiprocessor),
            "maxBlocksPerMultiProcessor" => int(limits.blocks_per_multiprocessor),
            "clockRate" => clock_khz(),
            "totalConstMem" => 65536,
            "major" => capability / 10,
            "minor" => capability % 10,
            "textureAlignment" | "surfaceAlignment" => 512,
            "texturePitchAlignment" => 32,
            "multiProcessorCount" => int(machine.multiprocessors),
            "l2CacheSize" => machine.cache_bytes.map_or(0, |bytes| bytes.min(i32::MAX as u64) as i64),
            "canMapHostMemory" | "managedMemory" | "canUseHostPointerForRegisteredMem" | "hostRegisterSupported" => 1,
            "concurrentManagedAccess"
            | "directManagedMemAccessFromHost"
            | "hostNativeAtomicSupported"
            | "integrated"
            | "hostRegisterReadOnlySupported" => host,
            "unifiedAddressing"
            | "concurrentKernels"
            | "streamPrioritiesSupported"
            | "cooperativeLaunch"
            | "cooperativeMultiDeviceLaunch"
            | "clusterLaunch"
            | "memoryPoolsSupported"
            | "deviceOverlap"
            | "asyncEngineCount"
            | "globalL1CacheSupported"
            | "localL1CacheSupported"
            | "computePreemptionSupported" => 1,
            // IPC for memory and events; pools are shared through file descriptors.
            "ipcEventSupported" | "memoryPoolSupportedHandleTypes" => host,
            "singleToDoublePrecisionPerfRatio" => 2,
            "maxTexture1D" | "maxTexture1DMipmap" | "maxSurface1D" => 131_072,
            "maxTexture1DLinear" => 1 << 28,
            "maxTexture2D" | "maxTexture2DLinear" | "maxSurface2D" => [131_072, 65_536, 2_097_120][index.min(2)],
            "maxTexture2DMipmap" | "maxTexture2DGather" | "maxTextureCubemap" | "maxSurfaceCubemap" => 32_768,
            "maxTexture3D" | "maxSurface3D" => 16_384,
            "maxTexture3DAlt" => [8192, 8192, 32_768][index.min(2)],
            "maxTexture1DLayered" | "maxSurface1DLayered" => [32_768, 2048][index.min(1)],
            "maxTexture2DLayered" | "maxSurface2DLayered" => [32_768, 32_768, 2048][index.min(2)],
            "maxTextureCubemapLayered" | "maxSurfaceCubemapLayered" => [32_768, 2046][index.min(1)],
            // Kernels reach host memory that CUDA knows, and no other.
            "pageableMemoryAccess" | "pageableMemoryAccessUsesHostPageTables" => 0,
            "hostNumaId" | "deviceNumaId" => -1,
            _ => 0,
        })
    }

    /// Returns an attribute by its number.
    pub(crate) fn attribute(&self, number: u32) -> Outcome<i32> {
        let count = |shape: &FieldLayout| if let Ints(count) = shape { *count } else { 1 };
        let of = |first: u32, shape: &FieldLayout| {
            (first > 0 && number >= first).then(|| (number - first) as usize).filter(|at| *at < count(shape))
        };
        for (name, shape, _, first) in FIELDS {
            if let Some(index) = of(*first, shape) {
                return Ok(self.field(name, index)?.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
            }
        }
        // Stream memory operations: each waiting stream occupies a core.
        if matches!(number, 92..=94 | 122 | 123) {
            return Ok(i32::from(self.device()?.unified && self.device()?.machine().multiprocessors > 1));
        }
        // Virtual memory management, and memory handles that are file descriptors.
        if matches!(number, 102 | 103) {
            return Ok(i32::from(self.device()?.unified));
        }
        let other = OTHER_ATTRIBUTES.iter().find(|(attribute, _)| *attribute == number);
        other.map(|(_, value)| *value as i32).ok_or(Status::INVALID_VALUE)
    }

    /// Returns the bytes of `cudaDeviceProp` for a version.
    pub(crate) fn properties(&self, version: u32) -> Outcome<Vec<u8>> {
        let mut bytes: Vec<u8> = vec![];
        for (name, shape, since, _) in FIELDS {
            let there = match since {
                All => true,
                Old => version <= 12,
                Twelve => version >= 12,
                Thirteen => version >= 13,
            };
            if !there {
                continue;
            }
            match shape {
                Bytes(count) => {
                    let mut text = match *name {
                        "name" => self.device_name()?.into_bytes(),
                        "uuid" => uuid().to_vec(),
                        _ => vec![],
                    };
                    text.truncate(if *name == "name" { count - 1 } else { *count });
                    text.resize(*count, 0);
                    bytes.extend(text);
                }
                Ints(count) => {
                    for index in 0..*count {
                        bytes.extend((self.field(name, index)? as i32).to_le_bytes());
                    }
                }
                Size => {
                    bytes.resize(bytes.len().next_multiple_of(8), 0);
                    bytes.extend(self.field(name, 0)?.to_le_bytes());
                }
            }
        }
        bytes.resize(property_bytes(version), 0);
        Ok(bytes)
    }
}

/// Returns the size of `cudaDeviceProp` for a version.
fn property_bytes(version: u32) -> usize {
    match version {
        ..=11 => 728,
        12 => 1032,
        _ => 1008,
    }
}

/// Returns the UUID of the device, the same in every process.
pub(crate) fn uuid() -> [u8; 16] {
    *b"broadloom-cpu-00"
}

/// Returns the host's clock rate in kHz, or 0 if it is unknown.
fn clock_khz() -> i64 {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("cpu MHz"));
    let mhz = line.and_then(|line| line.split(':').nth(1)?.trim().parse::<f64>().ok());
    mhz.map_or(0, |mhz| (mhz * 1000.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares offsets with those that a C compiler gives for the headers of each version.
    #[test]
    fn properties_lie_where_the_headers_have_them() {
        let runtime = Runtime::get();
        let int = |bytes: &[u8], at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (eleven, twelve, thirteen) =
            (runtime.properties(11).unwrap(), runtime.properties(12).unwrap(), runtime.properties(13).unwrap());
        assert_eq!((eleven.len(), twelve.len(), thirteen.len()), (728, 1032, 1008));
        assert!(twelve.starts_with(b"Broadloom on ") && twelve[255] == 0);
        assert_eq!(eleven[..640], twelve[..640]);
        // warpSize, major, minor
        assert_eq!([int(&twelve, 308), int(&twelve, 360), int(&twelve, 364)], [32, 7, 5]);
        assert_eq!([int(&thirteen, 308), int(&thirteen, 360), int(&thirteen, 364)], [32, 7, 5]);
    }

    #[test]
    fn attributes_and_properties_agree() {
        let runtime = Runtime::get();
        assert_eq!((runtime.attribute(10), runtime.attribute(75), runtime.attribute(76)), (Ok(32), Ok(7), Ok(5)));
        assert_eq!((runtime.attribute(3), runtime.attribute(4)), (Ok(1024), Ok(64)));
        assert_eq!((runtime.attribute(0), runtime.attribute(9999)), (Err(Status::INVALID_VALUE), Err(Status::INVALID_VALUE)));
        assert!((1..=143).filter(|number| *number != 44).all(|number| runtime.attribute(number).is_ok()));
    }
}
