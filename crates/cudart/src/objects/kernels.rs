//! Kernels as programs refer to them: by host function or by handle.

use crate::handles::{Handle, Handles};
use crate::objects::image::Image;
use crate::status::{Outcome, Status};
use broadloom_device::Launch;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Default limit in bytes of dynamic shared memory per launch.
pub(crate) const DEFAULT_SHARED: u32 = 48 << 10;

/// Launch settings that a program makes with the deprecated driver functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaunchSettings {
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    /// Parameter block.
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) handle: Handle,
    pub(crate) image: Arc<Image>,
    pub(crate) name: String,
    pub(crate) resolved: OnceLock<Outcome<ResolvedKernel>>,
    /// Limit of dynamic shared memory set by the program; negative if unset.
    pub(crate) max_dynamic: AtomicI32,
    /// Preferred share of the cache for shared memory.
    pub(crate) carveout: AtomicI32,
    /// Required cluster size in blocks, set by the program; 0 if unset.
    pub(crate) required_cluster: [AtomicU32; 3],
    /// True if clusters larger than the portable size are allowed.
    pub(crate) large_clusters: AtomicBool,
    /// Cluster scheduling policy. It has no effect here.
    pub(crate) spread: AtomicU32,
    /// Launch settings of the deprecated driver functions.
    pub(crate) settings: Mutex<LaunchSettings>,
}

/// Kernel of a loaded module.
#[derive(Debug)]
pub(crate) struct ResolvedKernel {
    /// The device's kernel.
    pub(crate) kernel: broadloom_device::Kernel,
    /// Static shared memory in bytes.
    pub(crate) static_shared: u32,
    /// Local memory per thread in bytes.
    pub(crate) local: u32,
    /// Constant memory of the module in bytes.
    pub(crate) constant: u32,
    /// Maximum number of threads per block.
    pub(crate) max_threads: u32,
    /// Architecture of the PTX that it was compiled from: 75 is 7.5.
    pub(crate) version: u32,
}

impl Kernel {
    /// Returns the module of the kernel.
    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Locks and returns the launch settings of the deprecated driver functions.
    pub(crate) fn settings(&self) -> MutexGuard<'_, LaunchSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of the kernel.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the handle of the kernel.
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Returns the maximum dynamic shared memory of a launch in bytes.
    pub(crate) fn max_dynamic(&self, resolved: &ResolvedKernel) -> u32 {
        match u32::try_from(self.max_dynamic.load(Ordering::Relaxed)) {
            Ok(raised) => raised,
            Err(_) => DEFAULT_SHARED.saturating_sub(resolved.static_shared),
        }
    }
}

/// Maximum number of blocks per cluster: the portable one, and the one of this device.
pub(crate) const CLUSTER_BLOCKS: [u64; 2] = [8, 16];

impl Kernel {
    /// Returns the required cluster size: the one that the kernel was compiled for, or the one that the
    /// program set.
    pub(crate) fn required(&self, resolved: &ResolvedKernel) -> Option<[u32; 3]> {
        let compiled = Launch::linear(1, 1).cluster_of(resolved.kernel.function());
        let set = self.required_cluster.each_ref().map(|blocks| blocks.load(Ordering::Relaxed));
        compiled.or_else(|| (set != [0; 3]).then(|| set.map(|blocks| blocks.max(1))))
    }

    /// Returns the maximum number of blocks per cluster.
    pub(crate) fn most_cluster_blocks(&self) -> u64 {
        CLUSTER_BLOCKS[usize::from(self.large_clusters.load(Ordering::Relaxed))]
    }

    /// Returns the cluster size of a launch, given the requested size if any.
    pub(crate) fn cluster(&self, resolved: &ResolvedKernel, wanted: Option<[u32; 3]>) -> Outcome<Option<[u32; 3]>> {
        let required = self.required(resolved);
        let Some(size) = wanted.or(required) else { return Ok(None) };
        let blocks: u64 = size.iter().map(|blocks| u64::from(*blocks)).product();
        // A compiled-in cluster size may exceed the portable limit.
        let most = if required.is_some() { CLUSTER_BLOCKS[1] } else { self.most_cluster_blocks() };
        if required.is_some_and(|required| required != size) || blocks == 0 || blocks > most {
            return Err(Status::INVALID_CLUSTER_SIZE);
        }
        Ok(Some(size))
    }
}

/// Table of all kernels.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) handles: Handles<Kernel>,
    pub(crate) by_host: Mutex<HashMap<usize, Arc<Kernel>>>,
}

impl Kernels {
    pub(crate) fn new() -> Kernels {
        Kernels { handles: Handles::new(8), by_host: Mutex::default() }
    }
}
