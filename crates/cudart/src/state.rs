//! Everything that the library knows: one [`Runtime`] for the process, made when the first call comes.
//!
//! The device is opened when something needs it, so that a program that only registers its kernels starts at once, and one that forks before
//! that may use CUDA in its child. **A device that a kernel has failed on gives that error to every later call. A child of a process that had
//! opened the device is told that it cannot be used, as NVIDIA's driver does.**

use crate::advice::AllAdvice;
use crate::check::{self, Checking};
use crate::driver::linking::Linking;
use crate::driver::mapping::Physical;
use crate::events::Event;
use crate::graphs::{Exec, Graph, NodeRef};
use crate::handles::Handles;
use crate::image::{HIGHEST_CAPABILITY, Image};
use crate::kernels::Kernels;
use crate::memory::{Allocations, Array};
use crate::mirror::{FIRST_ADDRESS, Mirror};
use crate::pools::Pools;
use crate::references::Reference;
use crate::registration::Registry;
use crate::status::{Outcome, Status};
use crate::streams::Streams;
use crate::tell::{print, tell};
use crate::textures::{Mipmap, TextureObject};
use crate::user_objects::UserObject;
use broadloom_device::{Backend, Device, Error, FaultKind, Machine};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Everything that there is in this process.
#[derive(Debug)]
pub(crate) struct Runtime {
    opened: OnceLock<Outcome<Opened>>,
    sticky: AtomicU32,
    /// Fat binaries, and what the host's side of kernels and variables is.
    pub(crate) registry: Registry,
    /// Kernels by handle.
    pub(crate) kernels: Kernels,
    /// Memory that programs know of.
    pub(crate) memory: Allocations,
    /// Arrays for textures and surfaces.
    pub(crate) arrays: Handles<Array>,
    /// Modules that are being linked.
    pub(crate) linkings: Handles<Linking>,
    /// Memory without addresses.
    pub(crate) physicals: Handles<Physical>,
    /// Mipmapped arrays.
    pub(crate) mipmaps: Handles<Mipmap>,
    /// Texture and surface objects, by the device's handles.
    pub(crate) objects: Handles<TextureObject>,
    /// Streams.
    pub(crate) streams: Streams,
    /// Events.
    pub(crate) events: Handles<Event>,
    /// Modules and libraries of the driver.
    pub(crate) modules: Handles<Image>,
    /// Graphs.
    pub(crate) graphs: Handles<Graph>,
    /// Nodes of graphs.
    pub(crate) nodes: Handles<NodeRef>,
    /// Graphs that can be launched.
    pub(crate) execs: Handles<Exec>,
    /// What programs want to live as long as graphs.
    pub(crate) user_objects: Handles<UserObject>,
    /// What was said of managed memory.
    pub(crate) advice: AllAdvice,
    /// Pools of memory.
    pub(crate) pools: Pools,
    /// Texture and surface references of modules.
    pub(crate) references: Handles<Reference>,
}

/// The device, once it is open.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The device.
    pub(crate) device: Device,
    /// Whether addresses of the device are addresses of this process.
    pub(crate) unified: bool,
    /// What host and kernels share, where addresses are not.
    pub(crate) mirror: Option<Mirror>,
    /// What is known of a program that is checked.
    pub(crate) checking: Option<Checking>,
    process: u32,
}

impl Opened {
    /// The executor.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        self.device.backend()
    }

    /// What it can do.
    pub(crate) fn machine(&self) -> &Machine {
        self.device.machine()
    }
}

impl Runtime {
    /// The one of this process.
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
            advice: AllAdvice::default(),
            pools: Pools::new(),
            references: Handles::new(14),
        })
    }

    /// The device, opened by whoever needs it first; the error of a kernel that failed, from then on.
    pub(crate) fn device(&self) -> Outcome<&Opened> {
        match self.sticky.load(Ordering::Relaxed) {
            0 => {}
            code => return Err(Status(code)),
        }
        let opened = self.opened.get_or_init(open).as_ref().map_err(|status| *status)?;
        if opened.process == std::process::id() { Ok(opened) } else { Err(Status::NOT_INITIALIZED) }
    }

    /// The device, when it is open in this process.
    pub(crate) fn opened(&self) -> Option<&Opened> {
        let opened = self.opened.get()?.as_ref().ok()?;
        (opened.process == std::process::id()).then_some(opened)
    }

    /// The capability that the device claims: 75 is 7.5. `BROADLOOM_CUDA_CAPABILITY`, or the highest that the program's kernels were compiled
    /// for, from 7.5 up to what the device takes.
    pub(crate) fn capability(&self) -> u32 {
        static CHOSEN: OnceLock<Option<u32>> = OnceLock::new();
        let chosen = CHOSEN.get_or_init(broadloom_device::settings::cuda_capability);
        chosen.unwrap_or_else(|| self.registry.highest_ptx().unwrap_or(75).clamp(75, HIGHEST_CAPABILITY))
    }

    /// Turns what a device said into a status. The error of a kernel stays with the device, and is told to the person.
    pub(crate) fn judge<T>(&self, outcome: broadloom_device::Result<T>) -> Outcome<T> {
        outcome.map_err(|error| {
            let status = status_of(&error);
            if status.is_sticky() && self.sticky.swap(status.0, Ordering::Relaxed) == 0 {
                // A finding says more.
                let found = matches!(error, Error::Fault(_)) && self.opened().is_some_and(|opened| opened.checking.is_some());
                if !found {
                    tell(&error.to_string());
                }
            }
            status
        })
    }
}

/// Bytes of a page of a GPU. Its allocations lie side by side in pages of this size, so a kernel that leaves its buffer by less seldom
/// faults there, and programs are in use that do.
const GPU_PAGE: usize = 2 << 20;

/// Time that a launch may take, compilation included.
pub(crate) fn time_limit() -> Option<Duration> {
    static LIMIT: OnceLock<Option<Duration>> = OnceLock::new();
    *LIMIT.get_or_init(broadloom_device::settings::time_limit)
}

/// Opens the device that `BROADLOOM_DEVICE` names: `cpu`, which it is when nothing is said, or `interp`. What is checked runs on the latter.
fn open() -> Outcome<Opened> {
    let name = std::env::var("BROADLOOM_DEVICE").unwrap_or_default();
    let process = std::process::id();
    let checked = check::is_wanted();
    let refused = |message: &str| {
        tell(message);
        Err(Status::NO_DEVICE)
    };
    match name.as_str() {
        "interp" | "cpu" | "auto" | "" if checked || name == "interp" => {
            let options = broadloom_interp::Options {
                first_address: FIRST_ADDRESS,
                check: checked,
                output: Arc::new(print),
                stop: checked.then_some(&broadloom_cpu::signals::STOP),
                ..broadloom_interp::Options::default()
            };
            let interp = broadloom_interp::Interp::new(options);
            let checking = checked.then(|| Checking::new(interp.clone()));
            let mirror = Some(Mirror::new(interp.clone()));
            Ok(Opened { device: Device::new(interp), unified: false, mirror, checking, process })
        }
        "cpu" | "auto" | "" => {
            broadloom_cpu::compile::before_leaving(crate::tell::before_leaving);
            let options = broadloom_cpu::Options {
                output: Arc::new(print),
                slack_bytes: GPU_PAGE,
                notice: Some(Arc::new(crate::tell::progress)),
                ..broadloom_cpu::Options::default()
            };
            match broadloom_cpu::Cpu::new(options) {
                Ok(cpu) => Ok(Opened { device: Device::new(cpu), unified: true, mirror: None, checking: None, process }),
                Err(error) => refused(&error.to_string()),
            }
        }
        _ if name.starts_with("cuda") => refused(&format!(
            "BROADLOOM_DEVICE is `{name}`, and NVIDIA's libraries were not found; without it the program runs on the CPU"
        )),
        _ => refused(&format!("BROADLOOM_DEVICE is `{name}`; CUDA programs run on `cpu` or `interp`, or on a GPU with `cuda`")),
    }
}

/// What NVIDIA's runtime calls an error of a device.
pub(crate) fn status_of(error: &Error) -> Status {
    match error {
        Error::OutOfMemory { .. } => Status::OUT_OF_MEMORY,
        Error::BadAddress { .. } | Error::BadArgument { .. } | Error::BadTexture { .. } => Status::INVALID_VALUE,
        Error::UnknownKernel { .. } => Status::NOT_FOUND,
        Error::BadLaunch { .. } => Status::LAUNCH_OUT_OF_RESOURCES,
        Error::Unsupported(_) => Status::INVALID_PTX,
        Error::UnknownStream(_) | Error::UnknownEvent(_) => Status::INVALID_HANDLE,
        Error::NotHere { .. } => Status::NO_DEVICE,
        Error::Lost { .. } => Status::LAUNCH_FAILED,
        Error::Driver { code, .. } => Status(*code),
        Error::Fault(fault) => match fault.kind {
            FaultKind::OutOfBounds | FaultKind::UseAfterFree | FaultKind::BadFree => Status::ILLEGAL_ADDRESS,
            FaultKind::Misaligned => Status::MISALIGNED_ADDRESS,
            FaultKind::WrongSpace => Status::INVALID_ADDRESS_SPACE,
            FaultKind::Assert => Status::ASSERT,
            FaultKind::BadCall => Status::INVALID_PC,
            FaultKind::StackOverflow => Status::HARDWARE_STACK_ERROR,
            FaultKind::Deadlock | FaultKind::TimeLimit | FaultKind::Interrupted => Status::LAUNCH_TIMEOUT,
            FaultKind::Unsupported => Status::ILLEGAL_INSTRUCTION,
            FaultKind::Trap | FaultKind::BadBarrier => Status::LAUNCH_FAILED,
        },
    }
}
