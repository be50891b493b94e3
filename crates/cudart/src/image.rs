//! Modules: the PTX of a fat binary, of a file or of a text, made ready when something of it is first used.

use crate::device_runtime;
use crate::fatbin;
use crate::link;
use crate::pointer::Out;
use crate::registration::container_at;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::tell::tell;
use broadloom_device::{Error, GlobalVariable, Module};
use broadloom_diag::{Code, Diagnostic, Diagnostics, Sources};
use broadloom_ptx::{Mnemonic, Space, Verified};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The highest compute capability that the device claims: 90 is 9.0.
pub(crate) const HIGHEST_CAPABILITY: u32 = 90;

const UNKNOWN: Code = Code("R0001");

/// Where a module comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Fat binaries in the program, by their addresses, linked when there are several.
    FatBinaries(Vec<usize>),
    /// A fat binary in memory of ours.
    Bytes(Vec<u8>),
    /// PTX.
    Text(String),
}

/// A module.
#[derive(Debug)]
pub(crate) struct Image {
    origin: Origin,
    /// Whether it is the program's own, which nobody asks for by a call that could fail.
    registered: bool,
    /// The limit of registers that the program asked for.
    most_registers: Option<u32>,
    loaded: OnceLock<Outcome<Loaded>>,
    highest: OnceLock<Option<u32>>,
    /// Managed variables: names, and where the host keeps their addresses.
    managed: Mutex<Vec<(String, usize)>>,
}

/// A module that is ready.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The module of the device.
    pub(crate) module: Module,
    /// Where its variables are.
    variables: Vec<u64>,
    /// Its text, for messages.
    pub(crate) sources: Sources,
    /// The version and the architecture of its PTX: 75 is 7.5.
    pub(crate) version: u32,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        for address in &self.variables {
            Runtime::get().forget_variable(*address);
        }
    }
}

impl Image {
    /// A module that the program loads when it sees fit.
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

    /// Loads the image with a limit of the registers of a thread.
    pub(crate) fn with_most_registers(self, most_registers: Option<u32>) -> Image {
        Image { most_registers, ..self }
    }

    /// The program's own kernels.
    pub(crate) fn registered(origin: Origin) -> Image {
        Image { registered: true, ..Image::new(origin) }
    }

    /// The module, made ready by whoever needs it first.
    pub(crate) fn loaded(&self, runtime: &Runtime) -> Outcome<&Loaded> {
        runtime.device()?;
        let loaded = self.loaded.get_or_init(|| self.load(runtime)).as_ref().map_err(|status| *status)?;
        self.tell_managed(runtime, loaded);
        Ok(loaded)
    }

    /// A managed variable: its address is written to a place of the host's when the module is ready.
    pub(crate) fn add_managed(&self, name: String, place: usize) {
        self.managed.lock().unwrap_or_else(PoisonError::into_inner).push((name, place));
    }

    /// Whether it has managed variables whose addresses the host does not know.
    pub(crate) fn has_managed(&self) -> bool {
        !self.managed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn tell_managed(&self, runtime: &Runtime, loaded: &Loaded) {
        let mut managed = self.managed.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, place) in managed.drain(..) {
            if let Some(GlobalVariable { address, bytes }) = loaded.module.variable(&name) {
                runtime.show_variable(address, bytes);
                Out::at(place).set_if_wanted(address);
            }
        }
    }

    /// The highest architecture that it has PTX for.
    pub(crate) fn highest_ptx(&self) -> Option<u32> {
        let Origin::FatBinaries(addresses) = &self.origin else { return None };
        *self.highest.get_or_init(|| {
            let containers = addresses.iter().filter_map(|address| container_at(*address).ok());
            containers
                .filter(|bytes| addresses.len() == 1 || !brings_device_runtime(bytes))
                .filter_map(|bytes| {
                    fatbin::entries(&bytes).ok().and_then(|entries| fatbin::highest_ptx(&entries, HIGHEST_CAPABILITY))
                })
                .max()
        })
    }

    fn texts(&self, capability: u32) -> Result<Vec<String>, (Status, String)> {
        let of_container = |bytes: &[u8]| {
            let entries = fatbin::entries(bytes).map_err(|reason| (Status::INVALID_IMAGE, reason))?;
            let best = fatbin::best(&entries, capability).map_err(|reason| (Status::NO_BINARY_FOR_GPU, reason))?;
            best.text().map_err(|reason| (Status::INVALID_IMAGE, reason))
        };
        match &self.origin {
            Origin::FatBinaries(addresses) => {
                let bytes =
                    addresses.iter().map(|address| container_at(*address).map_err(|reason| (Status::INVALID_IMAGE, reason)));
                let texts = bytes.map(|bytes| of_container(&bytes?)).collect::<Result<Vec<String>, _>>()?;
                Ok(texts.into_iter().filter(|text| addresses.len() == 1 || !link::is_device_runtime(text)).collect())
            }
            Origin::Bytes(bytes) => Ok(vec![of_container(bytes)?]),
            Origin::Text(text) => Ok(vec![text.clone()]),
        }
    }

    /// Makes it ready. A program whose own kernels are refused does not end well, whatever it makes of the errors.
    fn load(&self, runtime: &Runtime) -> Outcome<Loaded> {
        let loaded = self.read(runtime);
        if loaded.is_err() && self.registered {
            crate::tell::end_badly();
        }
        loaded
    }

    fn read(&self, runtime: &Runtime) -> Outcome<Loaded> {
        let opened = runtime.device()?;
        let mut texts = self.texts(runtime.capability()).map_err(|(status, reason)| {
            tell(&format!("the kernels of {} cannot be run: {reason}", program()));
            status
        })?;
        let text = if texts.len() == 1 { texts.remove(0) } else { link::link(&texts) };
        let text = self.most_registers.map(|most| link::limit_registers(&text, most)).unwrap_or(text);
        if link::LAUNCHING.iter().any(|name| text.contains(name)) {
            tell(&format!("the kernels of {} cannot be run: they launch kernels themselves (dynamic parallelism)", program()));
            return Err(Status::NOT_SUPPORTED);
        }
        let (sources, code) = assemble(text)?;
        let version = version_of(&code);
        let module = opened.device.load(&Arc::new(code)).map_err(|error| {
            tell_refusal(&sources, &error);
            crate::state::status_of(&error)
        })?;
        let mut variables = vec![];
        for variable in module.code().variables.values() {
            if matches!(variable.space, Space::Global | Space::Const)
                && let Some(GlobalVariable { address, bytes }) = module.variable(&variable.name)
            {
                runtime.memory.add_variable(address, bytes);
                variables.push(address);
            }
        }
        Ok(Loaded { module, variables, sources, version })
    }

    /// A global variable.
    pub(crate) fn variable(&self, runtime: &Runtime, name: &str) -> Outcome<GlobalVariable> {
        self.loaded(runtime)?.module.variable(name).ok_or(Status::NOT_FOUND)
    }
}

/// Whether a fat binary is NVIDIA's library for kernels that launch kernels, which `-rdc=true` adds to every program.
pub(crate) fn brings_device_runtime(container: &[u8]) -> bool {
    let entries = fatbin::entries(container).unwrap_or_default();
    entries.iter().any(|entry| entry.kind == fatbin::Kind::Ptx && entry.text().is_ok_and(|text| link::is_device_runtime(&text)))
}

/// The code of a text, all of it: what is wrong in a kernel that nobody launches is wrong as well, as it is for NVIDIA's assembler.
pub(crate) fn assemble(text: String) -> Outcome<(Sources, Verified)> {
    let mut sources = Sources::new();
    let id = sources.add(format!("{}.ptx", program()), device_runtime::define(text));
    let known = |code: Verified| match unknown_instructions(&code) {
        unknown if unknown.has_errors() => Err(unknown),
        _ => Ok(code),
    };
    match broadloom_ptx::parse(&sources, id).and_then(broadloom_ptx::verify).and_then(known) {
        Ok(code) => Ok((sources, code)),
        Err(diagnostics) => {
            refuse(&sources, &diagnostics);
            Err(Status::INVALID_PTX)
        }
    }
}

/// Instructions that PTX does not have. Those that it has, and a device does not run, are found when a kernel that reaches one is launched.
fn unknown_instructions(code: &Verified) -> Diagnostics {
    let mut unknown = Diagnostics::new();
    for data in code.functions.values().flat_map(|function| function.instructions().map(|(_, data)| data)) {
        if matches!(data.mnemonic, Mnemonic::Opaque(_)) {
            let message = format!("`{}` is not an instruction of PTX", data.mnemonic_text());
            unknown.push(Diagnostic::error(UNKNOWN, message).at(data.span, "not a name of any"));
        }
    }
    unknown
}

/// The architecture that the code was made for.
fn version_of(code: &Verified) -> u32 {
    u32::from(code.target.sm)
}

/// Says what a device will not run.
pub(crate) fn tell_refusal(sources: &Sources, error: &Error) {
    match error {
        Error::Unsupported(diagnostics) => refuse(sources, diagnostics),
        error => tell(&error.to_string()),
    }
}

/// Most problems of one module that are told.
const MOST_TOLD: usize = 3;

fn refuse(sources: &Sources, diagnostics: &Diagnostics) {
    for diagnostic in diagnostics.iter().take(MOST_TOLD) {
        tell(&sources.render(diagnostic));
    }
    let left = diagnostics.iter().count().saturating_sub(MOST_TOLD) + diagnostics.left_out();
    if left > 0 {
        tell(&format!("and {left} more of this kind"));
    }
}

/// What the program is called.
fn program() -> String {
    let path = std::env::current_exe().ok();
    path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())).unwrap_or_else(|| "the program".into())
}
