//! Loading of modules: PTX from a fat binary, a file or a text, on first use.

use crate::fatbin::{self, FatbinError, container_at};
use crate::objects::image::{Image, LoadedImage, Origin};
use crate::pointer::Out;
use crate::state::Runtime;
use crate::status::{Outcome, Status};
use crate::tell::tell;
use crate::{device_runtime, link};
use broadloom_device::{Error, GlobalVariable};
use broadloom_diag::{Code, Diagnostic, Diagnostics, Sources};
use broadloom_ptx::{Mnemonic, Space, Verified};
use std::sync::{Arc, PoisonError};

const UNKNOWN: Code = Code("R0001");

impl Drop for LoadedImage {
    fn drop(&mut self) {
        for address in &self.variables {
            Runtime::get().forget_variable(*address);
        }
    }
}

impl Image {
    /// Returns the loaded module and loads it on first use.
    pub(crate) fn loaded(&self, runtime: &Runtime) -> Outcome<&LoadedImage> {
        runtime.device()?;
        let loaded = self.loaded.get_or_init(|| self.load(runtime)).as_ref().map_err(|status| *status)?;
        self.tell_managed(runtime, loaded);
        Ok(loaded)
    }

    fn tell_managed(&self, runtime: &Runtime, loaded: &LoadedImage) {
        let mut managed = self.managed.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, place) in managed.drain(..) {
            if let Some(GlobalVariable { address, bytes }) = loaded.module.variable(&name) {
                runtime.show_variable(address, bytes);
                Out::at(place).set_if_wanted(address);
            }
        }
    }

    fn texts(&self, capability: u32) -> Result<Vec<String>, (Status, String)> {
        let invalid = |error: FatbinError| (Status::INVALID_IMAGE, error.to_string());
        let of_container = |bytes: &[u8]| {
            let entries = fatbin::entries(bytes).map_err(invalid)?;
            let best = fatbin::best(&entries, capability).map_err(|error| (Status::NO_BINARY_FOR_GPU, error.to_string()))?;
            best.text().map_err(invalid)
        };
        match &self.origin {
            Origin::FatBinaries(addresses) => {
                let bytes = addresses.iter().map(|address| container_at(*address).map_err(invalid));
                let texts = bytes.map(|bytes| of_container(&bytes?)).collect::<Result<Vec<String>, _>>()?;
                Ok(texts.into_iter().filter(|text| addresses.len() == 1 || !link::is_device_runtime(text)).collect())
            }
            Origin::Bytes(bytes) => Ok(vec![of_container(bytes)?]),
            Origin::Text(text) => Ok(vec![text.clone()]),
        }
    }

    /// Loads the module. If the program's own kernels are refused, the process exits with an error status
    /// even if the program ignores the errors.
    fn load(&self, runtime: &Runtime) -> Outcome<LoadedImage> {
        let loaded = self.read(runtime);
        if loaded.is_err() && self.registered {
            crate::exit::exit_with_failure();
        }
        loaded
    }

    fn read(&self, runtime: &Runtime) -> Outcome<LoadedImage> {
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
            Status::of_error(&error)
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
        Ok(LoadedImage { module, variables, sources: Arc::new(sources), version })
    }

    /// Returns a global variable.
    pub(crate) fn variable(&self, runtime: &Runtime, name: &str) -> Outcome<GlobalVariable> {
        self.loaded(runtime)?.module.variable(name).ok_or(Status::NOT_FOUND)
    }
}

/// Parses and verifies a whole PTX text. Errors in kernels that are never launched are reported too, as
/// NVIDIA's assembler does.
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

/// Returns errors for instructions that PTX does not have. PTX instructions that a device does not support
/// are reported later, at the launch of a kernel that contains one.
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

/// Returns the target architecture of the code.
fn version_of(code: &Verified) -> u32 {
    u32::from(code.target.sm)
}

/// Reports why a device refuses a module.
pub(crate) fn tell_refusal(sources: &Sources, error: &Error) {
    match error {
        Error::Unsupported(diagnostics) => refuse(sources, diagnostics),
        error => tell(&error.to_string()),
    }
}

/// Maximum number of reported problems per module.
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

/// Returns the name of the program.
fn program() -> String {
    let path = std::env::current_exe().ok();
    path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())).unwrap_or_else(|| "the program".into())
}
