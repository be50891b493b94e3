//! Handle of a loaded module: launches of its kernels.
//!
//! A kernel is compiled on its first launch with a block shape. That launch goes ahead if it can
//! (`crate::ahead`); else it waits for the code. Other launches of the kernel meanwhile wait for the same
//! code. The waiting time of a launch counts towards its time limit.

use crate::ahead;
use crate::kernel::SpecialisedKernel;
use crate::module::{CpuModule, LaunchRequest};
use crate::registers;
use crate::stream::{Limit, Work};
use broadloom_device::texture::{self, Surface, Texture};
use broadloom_device::{GlobalVariable, KernelAttributes, Launch, LoadedModule, Result};
use broadloom_ptx::Func;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Kernels by block shape, and by the cluster size of the launch.
type Kernels = HashMap<(Func, [u32; 3], Option<[u32; 3]>), Arc<SpecialisedKernel>>;

/// Handle of a loaded module, for launches. Compilations share it.
#[derive(Debug)]
pub(crate) struct Handle {
    module: Arc<CpuModule>,
    kernels: Mutex<Kernels>,
    /// Register estimates, by function.
    registers: Mutex<HashMap<Func, u32>>,
}

impl Handle {
    pub(crate) fn new(module: CpuModule) -> Handle {
        Handle { module: Arc::new(module), kernels: Mutex::default(), registers: Mutex::default() }
    }

    /// Returns a kernel for the block shape of a launch, and for its cluster size unless the kernel has its own.
    fn specialised(&self, kernel: Func, launch: &Launch) -> Arc<SpecialisedKernel> {
        let own = self.module.module().functions[kernel].directive("reqnctapercluster").is_some();
        let (block, cluster) = (launch.block, launch.cluster.filter(|_| !own));
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        kernels
            .entry((kernel, block, cluster))
            .or_insert_with(|| Arc::new(SpecialisedKernel::new(kernel, block, cluster)))
            .clone()
    }
}

impl LoadedModule for Handle {
    fn variable(&self, name: &str) -> Option<GlobalVariable> {
        self.module.variables.by_name(name)
    }

    fn bind_texture(&self, name: &str, texture: Option<&Texture>) -> Result<()> {
        let inside = |address, bytes| self.module.device().inside(address, bytes);
        let opaque = texture.map(|texture| texture::checked_texture(texture, inside)).transpose()?;
        self.module.variables.references.bind(&self.module.device().opaques, name, opaque)
    }

    fn bind_surface(&self, name: &str, surface: Option<&Surface>) -> Result<()> {
        let inside = |address, bytes| self.module.device().inside(address, bytes);
        let opaque = surface.map(|surface| texture::checked_surface(surface, inside)).transpose()?;
        self.module.variables.references.bind(&self.module.device().opaques, name, opaque)
    }

    fn attributes(&self, kernel: Func) -> Result<KernelAttributes> {
        let mut known = self.registers.lock().unwrap_or_else(PoisonError::into_inner);
        let registers = *known.entry(kernel).or_insert_with(|| registers::estimate(self.module.module(), kernel));
        Ok(KernelAttributes { registers: Some(registers), ..KernelAttributes::default() })
    }

    fn prepare(&self, kernel: Func, launch: &Launch) -> Result<()> {
        self.module.cluster(kernel, launch)?;
        let specialised = self.specialised(kernel, launch);
        if let Some(code) = specialised.known_code(&self.module, true) {
            return code.map(drop);
        }
        self.module.compiled(kernel, launch.time_limit, move |module| specialised.code(module, true)).map(drop)
    }

    fn launch(&self, kernel: Func, launch: &Launch, params: &[u8]) -> Result<()> {
        let device = self.module.device();
        device.shared.streams.check(launch.stream)?;
        let cluster = self.module.cluster(kernel, launch)?;
        let specialised = self.specialised(kernel, launch);
        let number = device.launches.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let (params, opaques) = (Cow::Borrowed(params), device.opaques.table());
        let request = LaunchRequest { kernel, launch: launch.clone(), params, cluster, number, opaques };
        let (compiled, spent) = match specialised.known_code_for(&self.module, launch.grid, &request.params) {
            Some(code) => (code?, Duration::ZERO),
            None if ahead::may_go(&self.module, &request, &specialised) => {
                return ahead::launch(&self.module, &specialised, request);
            }
            None => {
                let (grid, params) = (launch.grid, request.params.to_vec());
                self.module.compiled(kernel, launch.time_limit, move |module| specialised.code_for(module, grid, &params))?
            }
        };
        let work = Work::Launch(self.module.grid(&request, compiled)?);
        let limit = launch.time_limit.map(|total| Limit { total, spent });
        device.shared.streams.submit(launch.stream, work, limit, &|| Ok(()))
    }
}
