//! Modules: source, and state once loaded.

use crate::fatbin::{self, container_at};
use crate::link;
use crate::status::Outcome;
use broadloom_device::Module;
use broadloom_diag::Sources;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Highest compute capability that the device reports: 90 is 9.0.
pub(crate) const HIGHEST_CAPABILITY: u32 = 90;

/// Source of a module.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Addresses of fat binaries in the program. Several are linked into one module.
    FatBinaries(Vec<usize>),
    /// Copy of a fat binary.
    Bytes(Vec<u8>),
    /// PTX text.
    Text(String),
}

#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) origin: Origin,
    /// True for the program's own kernels, which are registered before `main`: no call of the program can
    /// report their errors.
    pub(crate) registered: bool,
    /// Register limit set by the program.
    pub(crate) most_registers: Option<u32>,
    pub(crate) loaded: OnceLock<Outcome<LoadedImage>>,
    pub(crate) highest: OnceLock<Option<u32>>,
    /// Managed variables: names, and the host addresses that receive their addresses.
    pub(crate) managed: Mutex<Vec<(String, usize)>>,
}

/// Module of an image on the device.
#[derive(Debug)]
pub(crate) struct LoadedImage {
    /// The device's module.
    pub(crate) module: Module,
    /// Addresses of the variables.
    pub(crate) variables: Vec<u64>,
    /// PTX source, for messages.
    pub(crate) sources: Arc<Sources>,
    /// Target architecture of the PTX: 75 is 7.5.
    pub(crate) version: u32,
}

impl Image {
    /// Creates a module that the program loads explicitly.
    pub(crate) fn new(origin: Origin) -> Image {
        Image {
            origin,
            registered: false,
            most_registers: None,
            loaded: OnceLock::new(),
            highest: OnceLock::new(),
            managed: Mutex::default(),
        }
    }

    /// Sets the limit of registers per thread.
    pub(crate) fn with_most_registers(self, most_registers: Option<u32>) -> Image {
        Image { most_registers, ..self }
    }

    /// Creates a module of the program's own, registered kernels.
    pub(crate) fn registered(origin: Origin) -> Image {
        Image { registered: true, ..Image::new(origin) }
    }

    /// Adds a managed variable. Its address is written to `place` when the module is loaded.
    pub(crate) fn add_managed(&self, name: String, place: usize) {
        self.managed.lock().unwrap_or_else(PoisonError::into_inner).push((name, place));
    }

    /// Tests if there are managed variables whose addresses the host does not know yet.
    pub(crate) fn has_managed(&self) -> bool {
        !self.managed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns the highest architecture for which the module contains PTX.
    pub(crate) fn highest_ptx(&self) -> Option<u32> {
        let Origin::FatBinaries(addresses) = &self.origin else { return None };
        *self.highest.get_or_init(|| {
            let containers = addresses.iter().filter_map(|address| container_at(*address).ok());
            containers
                .filter(|bytes| addresses.len() == 1 || !link::brings_device_runtime(bytes))
                .filter_map(|bytes| {
                    fatbin::entries(&bytes).ok().and_then(|entries| fatbin::highest_ptx(&entries, HIGHEST_CAPABILITY))
                })
                .max()
        })
    }
}
