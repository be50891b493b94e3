//! Global state: one [`Runtime`] per process, created by the first call.
//!
//! The device is opened on first use. A program that only registers its kernels starts at once, and a program
//! that forks before that may use CUDA in the child. **After a kernel has failed, every later call returns
//! that error. In a child of a process with an open device, every call fails, as with NVIDIA's driver.**

use crate::check;
use crate::handles::Handles;
use crate::mirror::{FIRST_ADDRESS, Mirror};
use crate::objects::advice::AdviceTable;
use crate::objects::image::{HIGHEST_CAPABILITY, Image};
use crate::objects::kernels::Kernels;
use crate::objects::linking::Linking;
use crate::objects::memory::Allocations;
use crate::objects::physical::Physical;
use crate::objects::pools::Pools;
use crate::objects::references::Reference;
use crate::objects::streams::Streams;
use crate::objects::textures::{Array, Mipmap, TextureObject};
use crate::objects::user_objects::UserObject;
use crate::objects::work::{Event, Exec, Graph, NodeRef};
use crate::registration::Registry;
use crate::status::{Outcome, Status};
use crate::tell::{print, tell};
use broadloom_cpu::compile::Checks;
use broadloom_cpu::{Foreign, STRICT};
use broadloom_device::{Backend, Device, Error, Machine};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Global state of this process.
#[derive(Debug)]
pub(crate) struct Runtime {
    opened: OnceLock<Outcome<OpenedDevice>>,
    sticky: AtomicU32,
    /// Fat binaries, and the host side of kernels and variables.
    pub(crate) registry: Registry,
    /// Kernels by handle.
    pub(crate) kernels: Kernels,
    /// Allocations that programs know.
    pub(crate) memory: Allocations,
    /// Arrays for textures and surfaces.
    pub(crate) arrays: Handles<Array>,
    /// Link operations in progress.
    pub(crate) linkings: Handles<Linking>,
    /// Physical memory without addresses.
    pub(crate) physicals: Handles<Physical>,
    pub(crate) mipmaps: Handles<Mipmap>,
    /// Texture and surface objects, by the device's handles.
    pub(crate) objects: Handles<TextureObject>,
    pub(crate) streams: Streams,
    pub(crate) events: Handles<Event>,
    /// Modules and libraries of the driver API.
    pub(crate) modules: Handles<Image>,
    pub(crate) graphs: Handles<Graph>,
    /// Nodes of graphs.
    pub(crate) nodes: Handles<NodeRef>,
    /// Instantiated graphs.
    pub(crate) execs: Handles<Exec>,
    /// User objects of graphs.
    pub(crate) user_objects: Handles<UserObject>,
    /// Advice on managed memory.
    pub(crate) advice: AdviceTable,
    /// Memory pools.
    pub(crate) pools: Pools,
    /// Texture and surface references of modules.
    pub(crate) references: Handles<Reference>,
}

#[derive(Debug)]
pub(crate) struct OpenedDevice {
    pub(crate) device: Device,
    /// True if the device shares the address space of this process.
    pub(crate) unified: bool,
    /// Memory shared by host and kernels, if the address spaces differ.
    pub(crate) mirror: Option<Mirror>,
    process: u32,
}

impl OpenedDevice {
    /// Returns the executor.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        self.device.backend()
    }

    /// Returns the description of the machine.
    pub(crate) fn machine(&self) -> &Machine {
        self.device.machine()
    }
}

impl Runtime {
    /// Returns the global state of this process.
    pub(crate) fn get() -> &'static Runtime {
        static RUNTIME: OnceLock<Runtime> = OnceLock::new();
        RUNTIME.get_or_init(|| Runtime {
            opened: OnceLock::new(),
            sticky: AtomicU32::new(0),
            registry: Registry::default(),
            kernels: Kernels::new(),
            memory: Allocations::default(),
            arrays: Handles::new(4),
            linkings: Handles::new(11),
            physicals: Handles::new(12),
            mipmaps: Handles::new(9),
            objects: Handles::new(10),
            streams: Streams::new(),
            events: Handles::new(2),
            modules: Handles::new(3),
            graphs: Handles::new(5),
            nodes: Handles::new(6),
            execs: Handles::new(7),
            user_objects: Handles::new(13),
            advice: AdviceTable::default(),
            pools: Pools::new(),
            references: Handles::new(14),
        })
    }

    /// Returns the device and opens it on first use. After a kernel has failed, returns that error.
    pub(crate) fn device(&self) -> Outcome<&OpenedDevice> {
        match self.sticky.load(Ordering::Relaxed) {
            0 => {}
            code => return Err(Status(code)),
        }
        let opened = self.opened.get_or_init(open).as_ref().map_err(|status| *status)?;
        if opened.process == std::process::id() { Ok(opened) } else { Err(Status::NOT_INITIALIZED) }
    }

    /// Returns the device if it is open in this process.
    pub(crate) fn opened(&self) -> Option<&OpenedDevice> {
        let opened = self.opened.get()?.as_ref().ok()?;
        (opened.process == std::process::id()).then_some(opened)
    }

    /// Returns the reported compute capability: 75 is 7.5. It is `BROADLOOM_CUDA_CAPABILITY` or the highest
    /// architecture of the program's PTX, clamped to the range from 7.5 to the device's maximum.
    pub(crate) fn capability(&self) -> u32 {
        static CHOSEN: OnceLock<Option<u32>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(broadloom_device::settings::cuda_capability);
        chosen.unwrap_or_else(|| self.registry.highest_ptx().unwrap_or(75).clamp(75, HIGHEST_CAPABILITY))
    }

    /// Converts a device error to a status. A kernel's error is sticky and is reported on standard error.
    pub(crate) fn judge<T>(&self, outcome: broadloom_device::Result<T>) -> Outcome<T> {
        outcome.map_err(|error| {
            let status = Status::of_error(&error);
            if status.is_sticky() && self.sticky.swap(status.0, Ordering::Relaxed) == 0 {
                // The checker's finding is more detailed.
                let found = matches!(error, Error::Fault(_)) && check::active().is_some();
                if !found {
                    tell(&error.to_string());
                }
            }
            status
        })
    }
}

/// Size in bytes of a GPU page. Allocations of a GPU are adjacent within such pages, so small out-of-bounds
/// accesses seldom fault there, and existing programs contain some.
const GPU_PAGE: usize = 2 << 20;

/// Returns the time limit of a launch, including compilation.
pub(crate) fn time_limit() -> Option<Duration> {
    static LIMIT: OnceLock<Option<Duration>> = OnceLock::new();
    *LIMIT.get_or_init(broadloom_device::settings::time_limit)
}

/// Opens the device that `BROADLOOM_DEVICE` names: `cpu` (the default), `cpu:strict` or `interp`. Checking
/// mode uses `interp`.
fn open() -> Outcome<OpenedDevice> {
    let name = std::env::var("BROADLOOM_DEVICE").unwrap_or_default();
    let process = std::process::id();
    let checked = check::is_wanted();
    let refused = |message: &str| {
        tell(message);
        Err(Status::NO_DEVICE)
    };
    match name.as_str() {
        "interp" | "cpu" | STRICT | "auto" | "" if checked || name == "interp" => {
            let options = broadloom_interp::Options {
                first_address: FIRST_ADDRESS,
                check: checked,
                strict_barriers: broadloom_device::settings::strict_barriers(),
                output: Arc::new(print),
                stop: checked.then_some(&broadloom_cpu::signals::STOP),
                ..broadloom_interp::Options::default()
            };
            let interp = broadloom_interp::Interp::new(options);
            if checked {
                check::start(interp.clone());
            }
            let mirror = Some(Mirror::new(interp.clone()));
            Ok(OpenedDevice { device: Device::new(interp), unified: false, mirror, process })
        }
        "cpu" | STRICT | "auto" | "" => {
            broadloom_cpu::compile::before_leaving(crate::exit::before_leaving);
            let mut options = broadloom_cpu::Options {
                output: Arc::new(print),
                slack_bytes: GPU_PAGE,
                notice: Some(Arc::new(crate::tell::progress)),
                foreign: Some(Foreign::new(|address| Runtime::get().memory.shared_by_program(address))),
                ..broadloom_cpu::Options::default()
            };
            // The program may pass any address to a kernel.
            options.compile.checks = if name == STRICT { Checks::Strict } else { Checks::Confined };
            match broadloom_cpu::Cpu::new(options) {
                Ok(cpu) => Ok(OpenedDevice { device: Device::new(cpu), unified: true, mirror: None, process }),
                Err(error) => refused(&error.to_string()),
            }
        }
        _ if name.starts_with("cuda") => refused(&format!(
            "BROADLOOM_DEVICE is `{name}`, and NVIDIA's libraries were not found; without it the program runs on the CPU"
        )),
        _ => refused(&format!(
            "BROADLOOM_DEVICE is `{name}`; CUDA programs run on `cpu`, `cpu:strict` or `interp`, or on a GPU with `cuda`"
        )),
    }
}
